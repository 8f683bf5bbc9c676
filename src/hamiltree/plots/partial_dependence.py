"""What the posterior predicts as one feature changes and all others stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from ..posterior import posterior_of
from ..utils.arrays import FloatArray, evenly
from .features import column_of, encoded_names, mark_training_values, shown_classes
from .style import clean, colour, legend_above, new_axes

if TYPE_CHECKING:
    from ..posterior import Posterior

GRID = 60
ROWS = 100
DRAWS = 1000


def plot_partial_dependence(
    posterior: Posterior,
    feature: str | int | Sequence[str | int] | None = None,
    X: ArrayLike | None = None,
    label: Any = None,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes | NDArray[Any]:
    """Mean prediction over rows in which one feature is set to each value of a grid.

    Line: posterior mean (for a category, a point per level); band: central ``coverage`` of the
    draws. At most 1,000 draws and 100 rows of ``X`` (by default the training rows), evenly spaced,
    are used. Of two classes the second is shown, of more classes all, unless ``label`` names one.
    The band is for means, not observations: it does not include the noise of single rows.

    A list of features gives a figure with one plot per feature, and an array of axes; so does a
    feature that was encoded as several columns, one per category. ``ax`` is for a single plot.

    Examples
    --------
    >>> from hamiltree.plots import plot_partial_dependence
    >>> axes = plot_partial_dependence(model, ["petal length (cm)", "petal width (cm)"])
    """
    posterior = posterior_of(posterior)
    listed = _listed(posterior, feature)
    if len(listed) == 1:
        return _one(posterior, listed[0], X, label, coverage, ax)
    if ax is not None:
        raise ValueError(f"ax is for one feature, got {len(listed)}: leave it out")
    across = min(len(listed), 3)
    down = -(-len(listed) // across)
    size = (4.2 * across, 3.0 * down)
    _, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    for place, own in zip(axes.ravel(), listed, strict=False):
        _one(posterior, own, X, label, coverage, place)
    for place in axes.ravel()[len(listed) :]:
        place.set_axis_off()
    return axes.ravel()[: len(listed)]


def _listed(
    posterior: Posterior, feature: str | int | Sequence[str | int] | None
) -> list[str | int | None]:
    """The columns to show, one at least."""
    given = [feature] if feature is None or isinstance(feature, str | int) else list(feature)
    listed: list[str | int | None] = []
    for own in given:
        listed += encoded_names(posterior, own) if isinstance(own, str) else [own]
    if not listed:
        raise ValueError("there is no feature to show: the list is empty")
    return listed


def _one(
    posterior: Posterior,
    feature: str | int | None,
    X: ArrayLike | None,
    label: Any,
    coverage: float,
    ax: Axes | None,
) -> Axes:
    column = column_of(posterior, feature)
    classes = shown_classes(posterior, label)
    scale = posterior.preprocessing
    rows = posterior.data("plot_partial_dependence").X if X is None else scale.rows(X)
    rows = rows[evenly(len(rows), ROWS)]
    lowest = scale.minimum[column]
    category = scale.column(column)
    grid = np.linspace(lowest, lowest + scale.span[column], GRID)
    if category.levels is not None:
        grid = np.arange(float(category.n_levels))
    curves = _curves(posterior, rows, int(scale.used[column]), grid)
    ax = new_axes(ax, 6.0, 3.6)
    tails = [(1 - coverage) / 2, (1 + coverage) / 2]
    for place, k in enumerate(classes or [0]):
        own = curves[..., k]
        low, high = np.quantile(own, tails, axis=0)
        name = None if scale.classes is None else str(scale.classes[k])
        middle = own.mean(axis=0)
        if category.levels is not None:
            shift = 0.12 * (place - (len(classes or [0]) - 1) / 2)
            reach = np.abs(np.stack([low, high]) - middle)
            ax.errorbar(
                grid + shift, middle, reach, fmt="o", color=colour(k), label=name, capsize=3
            )
            continue
        ax.fill_between(grid, low, high, color=colour(k), alpha=0.18, lw=0, zorder=1)
        ax.plot(grid, middle, color=colour(k), lw=2, label=name, zorder=2 + place)
    if category.levels is None:
        mark_training_values(ax, posterior, column)
    else:
        ax.set_xticks(grid, [category.label(int(code)) for code in grid])
    ax.set_xlabel(scale.used_names[column])
    if scale.classes is None:
        ax.set_ylabel("mean prediction")
    elif len(classes) == 1:
        ax.set_ylabel(f"probability of {scale.classes[classes[0]]}")
    else:
        ax.set_ylabel("probability")
        legend_above(ax, len(classes))
    if scale.classes is not None:
        ax.set_ylim(0, 1)
    if category.levels is None:
        ax.set_xlim(grid[0], grid[-1])
    clean(ax)
    return ax


def _curves(posterior: Posterior, rows: FloatArray, column: int, grid: FloatArray) -> FloatArray:
    """[draw, grid, class], or [draw, grid, 1] for regression, of equally weighted draws."""
    chosen = posterior.equally_weighted(DRAWS)
    out = []
    for value in grid:
        changed = rows.copy()
        changed[:, column] = value
        predictions = chosen.predict_draws(changed)[0]
        out.append(predictions.mean(axis=1).reshape(len(predictions), -1))
    return np.stack(out, axis=1)
