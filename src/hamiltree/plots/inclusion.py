"""How often the trees split on each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from ..posterior import posterior_of
from ..posterior.representative_tree import inclusion_of_used, shares_of_splits
from .style import INK, MUTED, clean, colour, new_axes, towards_white

if TYPE_CHECKING:
    from ..posterior import Posterior


def plot_inclusion(
    posterior: Posterior, coverage: float = 0.9, max_features: int = 20, ax: Axes | None = None
) -> Axes:
    """Share of a tree's splits that are on each feature, the most used features on top.

    Large dot: mean over the trees with at least one split (``feature_importances_``); bar: the
    central ``coverage`` of the trees; small dots: the mean in each chain; percentage: share of all
    trees that use the feature.

    Raises
    ------
    ValueError
        For HMC-DFI: each split uses every feature, with weights that are barely more concentrated
        than their prior and say nothing about importance.

    Examples
    --------
    >>> from hamiltree.plots import plot_inclusion
    >>> ax = plot_inclusion(model)
    """
    posterior = posterior_of(posterior)
    if posterior.draws.split_weights.shape[1]:
        raise ValueError(
            "every split of hmc-dfi uses all features, with weights that say nothing about "
            "importance: use plot_partial_dependence, or "
            "sklearn.inspection.permutation_importance"
        )
    mean = inclusion_of_used(posterior)
    if not mean.any():
        raise ValueError("no tree splits: there is no feature to show")
    order = np.argsort(-mean, kind="stable")[:max_features]
    shares = shares_of_splits(posterior.draws, order)
    weights = np.where(posterior.n_leaves.ravel() > 1, posterior.weights.ravel(), 0.0)
    ax = new_axes(ax, 6.0, 0.32 * len(order) + 1.0)
    rows = np.arange(len(order))[::-1]
    tails = [(1 - coverage) / 2, (1 + coverage) / 2]
    low, high = np.quantile(shares, tails, axis=0, weights=weights, method="inverted_cdf")
    ax.hlines(
        rows, low, high, color=towards_white(colour(0), 0.35), lw=5, zorder=1,
        label=f"{coverage:.0%} of the trees",
    )  # fmt: skip
    if posterior.n_chains > 1:
        by_chain = shares.reshape(posterior.n_chains, posterior.n_draws, -1)
        for chain, own in enumerate(weights.reshape(posterior.weights.shape)):
            if own.sum() > 0:
                at = own @ by_chain[chain] / own.sum()
                name = None if chain else "each chain"
                ax.plot(at, rows, "o", color=MUTED, markersize=3, zorder=2, label=name)
    ax.plot(
        mean[order], rows, "o", color=colour(0), markersize=7, markeredgecolor="white", zorder=3,
        label="mean",
    )  # fmt: skip
    used_by = posterior.weights.ravel() @ (shares > 0)
    for row, share in zip(rows, used_by, strict=True):
        ax.annotate(
            f"{share:.0%}", (1.0, row), xycoords=("axes fraction", "data"),
            xytext=(6, 0), textcoords="offset points", va="center", fontsize=8, color=MUTED,
        )  # fmt: skip
    ax.annotate(
        "trees that\nuse it", (1.0, 1.0), xycoords="axes fraction", xytext=(6, 2),
        textcoords="offset points", va="bottom", fontsize=8, color=MUTED, linespacing=1.0,
    )  # fmt: skip
    names = posterior.preprocessing.used_names
    ax.set_yticks(rows, [names[feature] for feature in order])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.set_xlim(left=0)
    ax.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("share of a tree's splits")
    clean(ax)
    ax.tick_params(axis="y", length=0)
    return ax
