"""Figures to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def save_figure(draw: Callable[[], Any], path: Path) -> None:
    """Draw into a figure of its own and write it; the name's ending says in which format."""
    # Loading matplotlib takes a second, which no other command should wait for.
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    draw()
    try:
        plt.savefig(path, dpi=150)
    finally:
        plt.close("all")
