"""What is given 30 % should happen 30 % of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..posterior import posterior_of
from .features import shown_classes
from .style import MUTED, clean, colour, legend_above, new_axes

if TYPE_CHECKING:
    from ..posterior import Posterior

BINS = 10
LEVELS = np.linspace(0.05, 0.95, 19)


def plot_calibration(
    posterior: Posterior, X: ArrayLike, y: ArrayLike, label: Any = None, ax: Axes | None = None
) -> Axes:
    """Calibration: predictions against observations, on held-out rows.

    Classification: rows in ten groups of equal size by their predicted probability of a class;
    the observed share with its 90 % interval (Jeffreys'). Of two classes the second is shown, of
    more classes all, unless ``label`` names one. Regression: the share of targets inside central
    predictive intervals of each coverage; a calibrated model lies in the grey band with
    probability 90 % at each coverage.

    Examples
    --------
    >>> from hamiltree.plots import plot_calibration
    >>> ax = plot_calibration(model, X_test, y_test)
    """
    posterior = posterior_of(posterior)
    target = np.asarray(y)
    rows = np.asarray(X)
    if target.shape != rows.shape[:1] or len(target) == 0:
        raise ValueError(f"X and y must have as many rows, got {rows.shape} and {target.shape}")
    ax = new_axes(ax, 4.4, 4.2)
    ax.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls=(0, (4, 3)), zorder=1)
    classes = shown_classes(posterior, label)
    if classes:
        _reliability(ax, posterior, X, target, classes)
    else:
        _coverage(ax, posterior, X, target.astype(float))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    clean(ax)
    return ax


def _reliability(
    ax: Axes, posterior: Posterior, X: ArrayLike, y: NDArray[Any], codes: list[int]
) -> None:
    classes = posterior.preprocessing.classes
    assert classes is not None
    unknown = set(np.unique(y).tolist()) - set(classes.tolist())
    if unknown:
        raise ValueError(f"y has classes that training did not have: {sorted(unknown, key=str)}")
    probabilities = posterior.predict_mean(X)
    for k in codes:
        order = np.argsort(probabilities[:, k], kind="stable")
        groups = np.array_split(order, min(BINS, len(order)))
        predicted = np.array([probabilities[group, k].mean() for group in groups])
        hits = np.array([np.sum(y[group] == classes[k]) for group in groups])
        sizes = np.array([len(group) for group in groups])
        low, high = stats.beta.ppf([[0.05], [0.95]], hits + 0.5, sizes - hits + 0.5)
        ax.vlines(predicted, low, high, color=colour(k), lw=1.2, alpha=0.6, zorder=2)
        ax.plot(
            predicted, hits / sizes, "o", color=colour(k), markersize=6, markeredgecolor="white",
            label=str(classes[k]), zorder=3,
        )  # fmt: skip
    if len(codes) == 1:
        ax.set_xlabel(f"predicted probability of {classes[codes[0]]}")
    else:
        ax.set_xlabel("predicted probability")
        legend_above(ax, len(codes))
    ax.set_ylabel("observed share")


def _coverage(ax: Axes, posterior: Posterior, X: ArrayLike, y: NDArray[Any]) -> None:
    tails = np.concatenate([(1 - LEVELS) / 2, (1 + LEVELS) / 2])
    low, high = np.split(posterior.predict_quantiles(X, tails), 2)
    inside = np.mean((low <= y) & (y <= high), axis=1)
    chance = stats.binom.ppf([[0.05], [0.95]], len(y), LEVELS) / len(y)
    ax.fill_between(LEVELS, *chance, color=MUTED, alpha=0.2, lw=0, zorder=0)
    ax.plot(LEVELS, inside, "o-", color=colour(0), markersize=5, lw=1.2, markeredgecolor="white")
    ax.set_xlabel("coverage of the predictive interval")
    ax.set_ylabel("targets inside it")
