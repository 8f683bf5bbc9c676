"""Where the trees split a feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from ..posterior import posterior_of
from .features import column_of, mark_training_values
from .style import MUTED, clean, colour, new_axes, towards_white

if TYPE_CHECKING:
    from ..posterior import Posterior

BINS = 60


def plot_thresholds(
    posterior: Posterior, feature: str | int | None = None, ax: Axes | None = None
) -> Axes:
    """Number of splits per tree by threshold, on one feature (by default the one used most).

    Bars: all draws; lines: each chain on its own; ticks below: the training rows, if they were
    kept. The area of the bars is the mean number of splits of a tree on the feature, without
    splits on whether it is missing.

    Raises
    ------
    ValueError
        For HMC-DFI, whose thresholds belong to weighted sums of all features, and for categories.

    Examples
    --------
    >>> from hamiltree.plots import plot_thresholds
    >>> ax = plot_thresholds(model, "petal length (cm)")
    """
    posterior = posterior_of(posterior)
    if posterior.draws.split_weights.shape[1]:
        raise ValueError("thresholds of hmc-dfi are on weighted sums, not on single features")
    column = column_of(posterior, feature)
    draws, scale = posterior.draws, posterior.preprocessing
    if scale.column(column).levels is not None:
        raise ValueError(
            f"{scale.used_names[column]} is a category: its splits are on sets of levels and have "
            "no thresholds"
        )
    on_it = (draws.feature == column) & np.isfinite(draws.threshold)
    thresholds = scale.minimum[column] + draws.threshold[on_it] * scale.span[column]
    n_splits = draws.n_leaves.ravel() - 1
    weights = np.repeat(posterior.weights.ravel(), n_splits)[on_it]
    chains = np.repeat(np.arange(n_splits.size) // posterior.n_draws, n_splits)[on_it]
    lowest, highest = scale.minimum[column], scale.minimum[column] + scale.span[column]
    edges = np.linspace(lowest, highest, BINS + 1)
    ax = new_axes(ax, 6.0, 3.2)
    together = np.histogram(thresholds, edges, weights=weights)[0] / np.diff(edges)
    ax.bar(edges[:-1], together, np.diff(edges), align="edge", color=towards_white(colour(0), 0.3))
    chain_weights = posterior.weights.sum(axis=1)
    if posterior.n_chains > 1:
        for chain in np.flatnonzero(chain_weights > 0):
            own = chains == chain
            height = np.histogram(thresholds[own], edges, weights=weights[own])[0]
            height = height / np.diff(edges) / chain_weights[chain]
            ax.stairs(height, edges, color=colour(int(chain)), lw=0.8, alpha=0.8)
    mark_training_values(ax, posterior, column)
    per_tree = float(weights.sum())
    ax.annotate(
        f"{per_tree:.2f} splits per tree", (1.0, 1.0), xycoords="axes fraction", ha="right",
        va="top", fontsize=9, color=MUTED,
    )  # fmt: skip
    ax.set_xlim(lowest, highest)
    ax.set_xlabel(f"threshold on {scale.used_names[column]}")
    ax.set_ylabel("splits per tree and unit")
    clean(ax)
    return ax
