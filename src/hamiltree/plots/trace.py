"""Log posterior and number of leaves, draw by draw, a line a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .style import MUTED, clean, colour

if TYPE_CHECKING:
    from ..posterior import Posterior


def plot_trace(posterior: Posterior, ax: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """Draw the two traces; ``ax`` is a pair, the upper one for the log posterior.

    Chains that agree cover the same range; a chain that stays in a range of its own is stuck.
    """
    if ax is None:
        _, pair = plt.subplots(
            2, 1, figsize=(7, 4.2), sharex=True, height_ratios=(3, 2), layout="constrained"
        )
        ax = tuple(pair)
    upper, lower = ax
    number = np.arange(posterior.n_draws)
    for chain in range(posterior.n_chains):
        look: dict[str, Any] = {"color": colour(chain), "linewidth": 0.8, "alpha": 0.85}
        upper.plot(number, posterior.log_posterior[chain], label=f"chain {chain}", **look)
        lower.plot(number, posterior.n_leaves[chain], drawstyle="steps-mid", **look)
    upper.set_ylabel("log posterior")
    lower.set_ylabel("leaves")
    lower.set_xlabel("draw")
    lower.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if 1 < posterior.n_chains <= 8:
        legend = upper.legend(
            frameon=False, fontsize=8, labelcolor=MUTED, ncols=posterior.n_chains,
            loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, handlelength=1.2,
        )  # fmt: skip
        for line in legend.get_lines():
            line.set_linewidth(2.0)
    for one in (upper, lower):
        one.margins(x=0.01)
        clean(one)
    return upper, lower
