"""One look for every plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

if TYPE_CHECKING:
    from ..posterior import Posterior

INK = "#2b2b2b"
MUTED = "#8a8a8a"
FAINT = "#d9d9d9"
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6fb0", "#b3a300")
"""Told apart by people with any colour vision; repeated beyond eight."""
QUANTITIES = {
    "log_posterior": "log posterior",
    "log_likelihood": "log-likelihood",
    "n_leaves": "number of leaves",
    "depth": "depth",
}
"""What ``plot_trace`` and ``plot_rank`` can show, and its name on an axis."""

Colour = tuple[float, float, float]


def colour(index: int) -> str:
    """Colour of a chain or a class."""
    return PALETTE[index % len(PALETTE)]


def towards_white(base: Any, share: float) -> Colour:
    """Mix a colour with white; a share of 1 keeps it, 0 is white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(base))
    return red, green, blue


def readable_on(background: Any) -> str:
    """Ink or white, whichever stands out."""
    red, green, blue = to_rgb(background)
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.55 else "white"


def new_axes(ax: Axes | None, width: float = 6.0, height: float = 3.6) -> Axes:
    """``ax``, or axes in a new figure of this size in inches."""
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def clean(ax: Axes) -> None:
    """Two thin axes and quiet ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(colors=MUTED, labelcolor=INK, labelsize=9)
    ax.xaxis.label.set(color=INK, size=10)
    ax.yaxis.label.set(color=INK, size=10)
    ax.title.set(color=INK, size=11)


def legend_above(ax: Axes, n_entries: int) -> None:
    """A quiet legend in one line over the axes; none for one entry, or more than fit."""
    if not 1 < n_entries <= len(PALETTE):
        return
    legend = ax.legend(
        frameon=False, fontsize=8, labelcolor=INK, ncols=n_entries, loc="lower right",
        bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0, handlelength=1.2, handletextpad=0.4,
        columnspacing=1.2,
    )  # fmt: skip
    for line in legend.get_lines():
        if line.get_linestyle() != "None":
            line.set_linewidth(2.0)


def recorded(posterior: Posterior, quantity: str) -> Any:
    """One of ``QUANTITIES``, [chain, draw]."""
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity must be one of {', '.join(QUANTITIES)}, got {quantity!r}")
    return getattr(posterior, quantity)
