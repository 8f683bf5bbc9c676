"""One look for every plot."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

INK = "#2b2b2b"
MUTED = "#8a8a8a"
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6fb0", "#b3a300")
"""Told apart by people with any colour vision; repeated beyond eight."""

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


def clean(ax: Axes) -> None:
    """Two thin axes and quiet ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(colors=MUTED, labelcolor=INK, labelsize=9)
    ax.xaxis.label.set(color=INK, size=10)
    ax.yaxis.label.set(color=INK, size=10)
    ax.title.set(color=INK, size=11)
