"""What the posterior predicts as one feature changes and all others stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..utils.arrays import FloatArray, evenly
from .features import column_of, mark_training_values, shown_classes
from .style import clean, colour, legend_above, new_axes

if TYPE_CHECKING:
    from ..posterior import Posterior

GRID = 60
ROWS = 100
DRAWS = 1000


def plot_partial_dependence(
    posterior: Posterior,
    feature: str | int | None = None,
    X: ArrayLike | None = None,
    label: Any = None,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Mean prediction over rows in which one feature is set to each value of a grid.

    Line: posterior mean; band: central ``coverage`` of the draws, of which at most 1,000 are
    used, as are at most 100 rows of ``X`` (the training rows unless given), all evenly spaced.
    For two classes the second is shown, for more all of them, unless ``label`` names one. Means,
    not observations: the noise of single rows is not in the band.
    """
    column = column_of(posterior, feature)
    classes = shown_classes(posterior, label)
    scale = posterior.preprocessing
    rows = posterior.data("plot_partial_dependence").X if X is None else scale.rows(X)
    rows = rows[evenly(len(rows), ROWS)]
    lowest = scale.minimum[column]
    grid = np.linspace(lowest, lowest + scale.span[column], GRID)
    curves = _curves(posterior, rows, int(scale.used[column]), grid)
    ax = new_axes(ax, 6.0, 3.6)
    tails = [(1 - coverage) / 2, (1 + coverage) / 2]
    for place, k in enumerate(classes or [0]):
        own = curves[..., k]
        low, high = np.quantile(own, tails, axis=0)
        name = None if scale.classes is None else str(scale.classes[k])
        ax.fill_between(grid, low, high, color=colour(k), alpha=0.18, lw=0, zorder=1)
        ax.plot(grid, own.mean(axis=0), color=colour(k), lw=2, label=name, zorder=2 + place)
    mark_training_values(ax, posterior, column)
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
