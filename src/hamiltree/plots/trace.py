"""Log posterior, number of leaves or depth, draw by draw, one line per chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..posterior import posterior_of
from ..utils.arrays import evenly
from .style import QUANTITIES, clean, colour, legend_above, new_axes, recorded

if TYPE_CHECKING:
    from ..posterior import Posterior

MOST = 1000
"""Draws per chain: with more, the chain that is drawn last hides the others."""


def plot_trace(
    posterior: Posterior, quantity: str = "log_posterior", ax: Axes | None = None
) -> Axes:
    """Draw the trace of "log_posterior", "n_leaves" or "depth".

    Chains that agree cover the same range; a chain that stays in a range of its own is stuck. Of
    more than 1,000 draws per chain, 1,000 are drawn, evenly spaced.

    Examples
    --------
    >>> from hamiltree.plots import plot_trace
    >>> ax = plot_trace(model, "n_leaves")
    """
    posterior = posterior_of(posterior)
    values = recorded(posterior, quantity)
    ax = new_axes(ax, 7.0, 3.0)
    whole = quantity in ("n_leaves", "depth")
    draws = evenly(posterior.n_draws, MOST)
    for chain in range(posterior.n_chains):
        ax.plot(
            draws, values[chain, draws], label=f"chain {chain}",
            color=colour(chain), linewidth=0.8, alpha=0.85,
            drawstyle="steps-mid" if whole else "default",
        )  # fmt: skip
    if whole:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("draw")
    ax.set_ylabel(QUANTITIES[quantity])
    ax.margins(x=0.01)
    legend_above(ax, posterior.n_chains)
    clean(ax)
    return ax
