"""Predictions of rows with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from ..posterior import posterior_of
from .features import shown_classes
from .style import FAINT, INK, clean, colour, legend_above, new_axes, towards_white

if TYPE_CHECKING:
    from ..posterior import Posterior

MOST = 2000
"""Rows beyond which single ones cannot be seen any more."""


def plot_predictions(
    posterior: Posterior,
    X: ArrayLike,
    y: ArrayLike | None = None,
    label: Any = None,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Rows from the lowest to the highest prediction, each with its interval.

    Regression: posterior mean and central predictive interval of a new observation, with the
    observed ``y`` on top. Classification: probability of one class (``label``; by default the
    second of two) with its credible interval, in the colour of the observed class.

    Examples
    --------
    >>> from hamiltree.plots import plot_predictions
    >>> ax = plot_predictions(model, X_test, y_test, label="setosa")
    """
    posterior = posterior_of(posterior)
    rows = np.asarray(X)
    if not 0 < len(rows) <= MOST:
        raise ValueError(f"plot_predictions shows 1 to {MOST} rows, got {len(rows)}")
    observed = None if y is None else np.asarray(y)
    if observed is not None and observed.shape != rows.shape[:1]:
        raise ValueError(f"X and y must have as many rows, got {rows.shape} and {observed.shape}")
    codes = shown_classes(posterior, label)
    if len(codes) > 1:
        raise ValueError("there are more than two classes: say which by label=")
    tails = [(1 - coverage) / 2, (1 + coverage) / 2]
    mean = posterior.predict_mean(X)
    if codes:
        ends = posterior.predict_probability_quantiles(X, tails, 0)[:, :, codes[0]]
        mean = mean[:, codes[0]]
    else:
        ends = posterior.predict_quantiles(X, tails)
    order = np.lexsort((ends[1], mean))
    ax = new_axes(ax, 7.0, 3.6)
    place = np.arange(len(order))
    width = min(4.0, max(0.6, 380 / len(order)))
    if codes:
        _classes(ax, posterior, place, mean[order], ends[:, order], observed, order, width)
        classes = posterior.preprocessing.classes
        assert classes is not None
        ax.set_ylabel(f"probability of {classes[codes[0]]}")
        ax.set_ylim(-0.02, 1.02)
    else:
        ax.vlines(
            place, *ends[:, order], color=towards_white(colour(0), 0.35), lw=width, zorder=1,
            label=f"{coverage:.0%} interval",
        )  # fmt: skip
        ax.plot(place, mean[order], color=colour(0), lw=1.6, zorder=2, label="mean")
        if observed is not None:
            ax.plot(
                place, observed[order], "o", color=INK, markersize=min(4.0, width + 1.6),
                markeredgecolor="white", markeredgewidth=0.4, zorder=3, label="observed",
            )  # fmt: skip
        legend_above(ax, 2 if observed is None else 3)
        ax.set_ylabel("prediction")
    ax.set_xlim(-1, len(order))
    ax.set_xlabel(f"{len(order)} rows, by their prediction")
    ax.set_xticks([])
    clean(ax)
    return ax


def _classes(
    ax: Axes,
    posterior: Posterior,
    place: NDArray[np.intp],
    mean: NDArray[Any],
    ends: NDArray[Any],
    observed: NDArray[Any] | None,
    order: NDArray[np.intp],
    width: float,
) -> None:
    """Intervals in grey, means on top in the colour of the observed class."""
    ax.vlines(place, *ends, color=FAINT, lw=width, zorder=1)
    size = min(5.0, width + 2.5)
    look: dict[str, Any] = {"markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.5}
    if observed is None:
        ax.plot(place, mean, "o", color=colour(0), zorder=2, **look)
        return
    classes = posterior.preprocessing.classes
    assert classes is not None
    shown = 0
    for k, name in enumerate(classes):
        own = observed[order] == name
        if own.any():
            shown += 1
            ax.plot(place[own], mean[own], "o", color=colour(k), label=str(name), zorder=2, **look)
    legend_above(ax, shown)
