"""The posterior of the number of leaves, with that of each chain on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ..posterior import posterior_of
from .style import clean, colour, legend_above, new_axes, towards_white

if TYPE_CHECKING:
    from ..posterior import Posterior


def plot_leaves(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Number of leaves: share of the draws (bars), and of the draws of each chain (dots).

    Dots far from the top of their bar are chains that disagree.

    Examples
    --------
    >>> from hamiltree.plots import plot_leaves
    >>> ax = plot_leaves(model)
    """
    posterior = posterior_of(posterior)
    ax = new_axes(ax, 6.0, 3.4)
    sizes = np.arange(posterior.n_leaves.min(), posterior.n_leaves.max() + 1)
    by_chain = np.array(
        [
            np.bincount(leaves - sizes[0], weights=weights, minlength=len(sizes))
            / max(weights.sum(), 1e-300)  # an island can be without any weight
            for leaves, weights in zip(posterior.n_leaves, posterior.weights, strict=True)
        ]
    )
    together = posterior.weights.sum(axis=1) @ by_chain
    ax.bar(sizes, together, width=0.72, color=towards_white(colour(0), 0.3), zorder=1)
    if posterior.n_chains > 1:
        offsets = np.linspace(-0.24, 0.24, posterior.n_chains)
        for chain, shares in enumerate(by_chain):
            ax.plot(
                sizes + offsets[chain], shares, "o", color=colour(chain), markersize=4.5,
                markeredgecolor="white", markeredgewidth=0.6, zorder=2, label=f"chain {chain}",
            )  # fmt: skip
        legend_above(ax, posterior.n_chains)
    ax.set_xlim(sizes[0] - 0.7, sizes[-1] + 0.7)
    ax.set_ylim(0, 1.08 * float(by_chain.max()))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("number of leaves")
    ax.set_ylabel("posterior share")
    clean(ax)
    return ax
