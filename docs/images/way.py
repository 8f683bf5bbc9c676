"""Draw the way of a row from fit to predict_proba: ``python docs/images/way.py`` (a second)."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from hamiltree.plots.style import INK, MUTED, colour

FIT = [
    ("check parameters and table", "estimators/", "rows [n, all columns] and y"),
    ("scale columns to [0, 1], code classes", "inputs/", "Problem: columns [p, n], y [n]"),
    ("parameters and shared values: what to build", "methods/", "Configuration"),
    ("put model, state and loop together", "samplers/", "Sampler"),
    ("run chains side by side, keep checkpoints", "running/", "Chain.advance(n)"),
    ("propose, accept, record: compiled", "core/", "pieces of draws"),
    ("collect the pieces as flat arrays", "running/chains.py", "Draws"),
    ("draws, scaling and configuration as one", "posterior/", ""),
]
"""What happens, where, and what it hands on."""
PREDICT = [
    ("check the table", "estimators/", "new rows [m, all columns]"),
    ("scale columns as in fit", "inputs/", "columns [p, m]"),
    ("route each row through every tree", "core/predict.py", "mean over the draws"),
]
STEP, HEIGHT, WIDTH, RIGHT = 1.0, 0.62, 4.4, 5.6
ARROW = {"arrowstyle": "->", "color": INK}


def main() -> None:
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "way"})
    _, ax = plt.subplots(figsize=(9.6, 8.4), layout="constrained")
    draw_steps(ax, 0.0, len(FIT), FIT, "fit(X, y)", colour(0))
    draw_steps(ax, RIGHT, len(PREDICT), PREDICT, "predict_proba(X)", colour(5))
    ax.annotate("", (RIGHT, 1.0), (WIDTH, 1.0), arrowprops=ARROW)
    ax.text(WIDTH + 0.15, 1.15, "Posterior", color=MUTED, fontsize=9)
    result = "probabilities [m, classes]"
    ax.text(RIGHT + WIDTH / 2, 0.15, result, ha="center", va="center", color=INK, fontsize=9.5)
    ax.set(xlim=(-0.1, RIGHT + WIDTH + 0.1), ylim=(-0.2, len(FIT) + 1.1))
    ax.axis("off")
    path = Path(__file__).with_name("way.svg")
    plt.savefig(path, metadata={"Date": None})
    lines = path.read_text("utf-8").splitlines()
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines), "utf-8")
    print(path)


def draw_steps(
    ax: Axes, left: float, top: float, steps: list[tuple[str, str, str]], call: str, tint: str
) -> None:
    """Boxes from the top down, the folder in each, and beside each arrow what is handed on."""
    middle = left + WIDTH / 2
    box = {"boxstyle": "round,pad=0.02,rounding_size=0.08", "edgecolor": tint, "linewidth": 1.4}
    ax.text(middle, top + 0.82, call, ha="center", weight="bold", family="monospace", color=INK)
    ax.annotate("", (middle, top + HEIGHT / 2), (middle, top + 0.72), arrowprops=ARROW)
    for k, (what, folder, handed_on) in enumerate(steps):
        y = top - k * STEP
        patch = matplotlib.patches.FancyBboxPatch(
            (left, y - HEIGHT / 2), WIDTH, HEIGHT, facecolor="white", **box
        )
        ax.add_patch(patch)
        ax.text(middle, y + 0.12, folder, ha="center", va="center", weight="bold", color=tint,
                family="monospace", fontsize=10)  # fmt: skip
        ax.text(middle, y - 0.14, what, ha="center", va="center", color=INK, fontsize=9.5)
        if handed_on:
            below = y - STEP + HEIGHT / 2
            ax.annotate("", (middle, below), (middle, y - HEIGHT / 2), arrowprops=ARROW)
            ax.text(middle + 0.12, y - STEP / 2, handed_on, va="center", color=MUTED, fontsize=9)


if __name__ == "__main__":
    main()
