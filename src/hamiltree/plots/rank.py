"""Ranks of each chain's draws among the draws of all chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from ..posterior import posterior_of
from .style import INK, MUTED, QUANTITIES, clean, colour, new_axes, recorded, towards_white

if TYPE_CHECKING:
    from ..posterior import Posterior

BINS = 20
ROW = 0.9
"""Height of the tallest bar; chains stand one unit apart."""


def plot_rank(
    posterior: Posterior, quantity: str = "log_posterior", ax: Axes | None = None
) -> Axes:
    """Rank plot: for each chain, a histogram of the ranks of its draws among all draws.

    If chains agree, all bars reach the dashed line, apart from noise; bars that pile up on one
    side show a chain in a range of its own. Equal values are ranked in random order.

    Examples
    --------
    >>> from hamiltree.plots import plot_rank
    >>> ax = plot_rank(model, "n_leaves")
    """
    posterior = posterior_of(posterior)
    values = recorded(posterior, quantity)
    if posterior.n_chains < 2:
        raise ValueError("ranks compare chains, and there is one: fit with n_chains=4")
    if posterior.has_particles:
        raise ValueError("ranks compare Markov chains, and these are weighted particles")
    ax = new_axes(ax, 6.0, 0.7 * posterior.n_chains + 1.0)
    shuffled = np.random.default_rng(0).permutation(values.size)
    order = shuffled[np.argsort(values.ravel()[shuffled], kind="stable")]
    rank = np.empty(values.size)
    rank[order] = (np.arange(values.size) + 0.5) / values.size
    edges = np.linspace(0, 1, min(BINS, max(2, posterior.n_draws // 5)) + 1)
    heights = [np.histogram(ranks, edges)[0] for ranks in rank.reshape(values.shape)]
    tallest = np.max(heights)
    expected = posterior.n_draws / (len(edges) - 1) / tallest
    for chain, height in enumerate(heights):
        base = posterior.n_chains - 1.0 - chain
        ax.bar(
            edges[:-1], ROW * height / tallest, width=np.diff(edges), bottom=base,
            align="edge", color=towards_white(colour(chain), 0.55), edgecolor="white", zorder=1,
        )  # fmt: skip
        ax.plot([0, 1], [base + ROW * expected] * 2, color=INK, lw=0.8, ls=(0, (4, 3)), zorder=2)
        ax.axhline(base, color=MUTED, lw=0.6, zorder=2)
    ax.set_yticks(np.arange(posterior.n_chains)[::-1] + ROW / 2)
    ax.set_yticklabels([f"chain {chain}" for chain in range(posterior.n_chains)])
    ax.set_xlim(0, 1)
    ax.set_ylim(0, posterior.n_chains)
    ax.set_xlabel(f"rank of the {QUANTITIES[quantity]} among all draws")
    clean(ax)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax
