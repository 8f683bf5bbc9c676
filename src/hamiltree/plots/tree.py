"""A tree as boxes and lines: rules in the branches, what is predicted in the leaves."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from ..posterior import posterior_of
from ..posterior.tree import Tree
from ..posterior.tree_text import how_common, mean_text, rows_text, rule_text, soft_marks, softness
from .style import INK, MUTED, colour, readable_on, towards_white

FONT = 9.0
"""Points; smaller only where the given axes are too narrow."""
LETTER = 0.58
"""Width of a letter over the font size, for the default font; a little on the safe side."""
LINE = 1.3
"""Height of a line over the font size."""
WRAP = 18
"""Letters per line of a box."""


class Box(NamedTuple):
    """A node, placed: leaves stand one unit apart, levels one unit below each other."""

    x: float
    level: int
    text: str
    background: Any
    children: tuple[int, ...]
    """Places in the list of boxes, yes before no; empty for a leaf."""
    certainty: float | None
    """Of a split, where it is known."""


class Look(NamedTuple):
    """What the boxes of all leaves share."""

    low: float
    """Of the leaf means."""
    high: float
    assigned: bool
    """As for ``rows_text``."""


def plot_tree(tree: Tree | Any, ax: Axes | None = None) -> Axes:
    """Draw a tree, or the best tree of a fitted model or posterior.

    In a figure of its own, a tree of up to about 16 leaves is readable.

    The box of a split shows its certainty (see ``Tree.certainty``); its edge is thicker for more
    certain splits, and dashed if the certainty is below one half. A leaf shows the most probable
    class or the mean, its 90% credible interval and the number of training rows. A soft split
    says what it does with rows near its threshold, as in ``Tree.to_text``.

    Examples
    --------
    >>> from hamiltree.plots import plot_tree
    >>> ax = plot_tree(model.best_tree())
    """
    if not isinstance(tree, Tree):
        tree = posterior_of(tree).best_tree()
    boxes: list[Box] = []
    root = tree.to_dict()
    look = Look(*_mean_range(tree), assigned=bool(soft_marks(tree.preprocessing, root)))
    _place(tree, root, 0, boxes, look)
    n_leaves, n_levels = tree.n_leaves, tree.depth + 1
    letters = max(len(line) for box in boxes for line in box.text.split("\n")) + 2
    lines = max(box.text.count("\n") + 1 for box in boxes) + 1
    if ax is None:
        width = max(n_leaves * letters * LETTER * FONT / 72, 3.0)
        height = max((n_levels * (lines + 2.4) - 1.5) * LINE * FONT / 72, 1.2)
        figure = plt.figure(figsize=(width, height))
        ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(-0.5, n_leaves - 0.5)
    ax.set_ylim(-n_levels + 0.45, 0.55)
    ax.set_axis_off()

    extent = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    across = extent.width * points / n_leaves / (letters * LETTER)
    down = extent.height * points / n_levels / ((lines + 1.2) * LINE)
    font = max(3.0, min(FONT, across, down))
    for box in boxes:
        for side, child in zip(("yes", "no"), box.children, strict=False):
            below = boxes[child]
            ax.plot([box.x, below.x], [-box.level, -below.level], color=MUTED, lw=1.0, zorder=1)
            ax.text(
                (box.x + below.x) / 2, -(box.level + below.level) / 2, side, fontsize=0.8 * font,
                color=MUTED, ha="center", va="center", zorder=2,
                bbox={"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
        shape = "round,pad=0.35" if box.children else "round,pad=0.35,rounding_size=0.6"
        ax.text(
            box.x, -box.level, box.text, fontsize=font, color=readable_on(box.background),
            ha="center", va="center", zorder=3, linespacing=1.15,
            bbox={
                "boxstyle": shape, "facecolor": box.background, **_edge(box),
            },
        )  # fmt: skip
    return ax


def _edge(box: Box) -> dict[str, Any]:
    """None around a leaf; around a split the heavier the surer, dashed below one half."""
    if not box.children:
        return {"edgecolor": "none"}
    if box.certainty is None:
        return {"edgecolor": MUTED, "linewidth": 0.8}
    style = (0, (4, 2)) if box.certainty < 0.5 else "solid"
    return {"edgecolor": INK, "linewidth": 0.5 + 1.2 * box.certainty, "linestyle": style}


def _place(tree: Tree, node: dict[str, Any], level: int, boxes: list[Box], look: Look) -> int:
    """Add a node and all below it; returns its place in the list."""
    if "threshold" not in node:
        x = float(sum(not box.children for box in boxes))
        boxes.append(Box(x, level, *_leaf_look(tree, node, look), (), None))
        return len(boxes) - 1
    children = tuple(_place(tree, node[side], level + 1, boxes, look) for side in ("yes", "no"))
    x = sum(boxes[child].x for child in children) / 2
    rule = _rule_text(tree, node)
    boxes.append(Box(x, level, rule, "white", children, node["certainty"]))
    return len(boxes) - 1


def _rule_text(tree: Tree, node: dict[str, Any]) -> str:
    text = rule_text(tree.preprocessing, node)
    left, less, right = text.rpartition(" <= ")
    if not less:
        lines = textwrap.wrap(text, WRAP)[:4]
        return "\n".join([*lines, *how_common(tree, node)])
    if "weights" in node:  # one term per line, the operator at its end
        lines = left.replace(" + ", " +\n").replace("\n...", " ...").split("\n")
    else:
        lines = textwrap.wrap(left, WRAP)[:3]
    lines.append(f"\N{LESS-THAN OR EQUAL TO} {right}")
    return "\n".join([*lines, *softness(tree.preprocessing, node), *how_common(tree, node)])


def _leaf_look(tree: Tree, leaf: dict[str, Any], look: Look) -> tuple[str, Any]:
    """Text and colour: the likeliest class, paler the less probable; means from pale to full."""
    if "mean" in leaf:
        low, high = look.low, look.high
        share = (leaf["mean"] - low) / (high - low) if high > low else 0.5
        text = mean_text(tree.preprocessing, leaf).replace(" (", "\n(").replace(", ", "\n")
        text = "\n".join([text, *rows_text(leaf, assigned=look.assigned)])
        return text, towards_white(colour(0), 0.1 + 0.8 * share)
    probabilities = leaf["probabilities"]
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    chance = 1 / len(probabilities)
    shade = (probabilities[best] - chance) / (1 - chance) if chance < 1 else 1.0
    name = textwrap.shorten(str(leaf["classes"][best]), WRAP, placeholder="...")
    low, high = leaf["interval"][best]
    lines = [f"{name} {probabilities[best]:.2f}", f"({low:.2f} to {high:.2f})"]
    text = "\n".join([*lines, *rows_text(leaf, assigned=look.assigned)])
    return text, towards_white(colour(best), 0.15 + 0.6 * max(shade, 0.0))


def _mean_range(tree: Tree) -> tuple[float, float]:
    means = tree.preprocessing.y_to_user(tree.leaf[:, 0])
    return float(means.min()), float(means.max())
