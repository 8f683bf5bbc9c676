"""A tree as a small SVG drawing, without any library: for notebooks and pages."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from .describe import percent
from .tree_text import mean_text, rows_text, rule_text, soft_marks, softness

if TYPE_CHECKING:
    from .tree import Tree

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f6fb0", "#b3a300")
"""Of classes, as in the plots."""
MARK = "#d55e00"
WIDTH, LINE = 124, 15
"""Of a box, and from one of its lines to the next, in pixels."""
ACROSS, DOWN = 134, 38
"""From one box to the next, and between two levels."""
LETTERS = 19
"""Per line of a box."""
MOST_LINES = 4
"""Of either part of a rule."""
MOST_LEAVES = 24
"""A larger tree is not drawn: nobody could read it."""


@dataclass
class _Box:
    x: float
    level: int
    lines: list[str]
    fill: str
    strength: float
    children: tuple[int, ...]
    dashed: bool = False
    """A split that fewer than half of the sampled trees have."""


def tree_svg(tree: Tree, marked: Collection[int] = ()) -> str:
    """The tree as ``<svg>``; ``marked`` are nodes in preorder whose path is drawn heavier.

    Empty for trees of more than 24 leaves.
    """
    if tree.n_leaves > MOST_LEAVES:
        return ""
    boxes = _boxes(tree)
    tall = LINE * max(len(box.lines) for box in boxes) + 13
    width, height = tree.n_leaves * ACROSS + 4, tree.depth * (tall + DOWN) + tall + 6
    parts = []
    for number, box in enumerate(boxes):
        for side, child in zip(("yes", "no"), box.children, strict=False):
            heavy = number in marked and child in marked
            parts.append(_edge(box, boxes[child], side, tall, heavy))
    parts += [_drawn(box, tall, number in marked) for number, box in enumerate(boxes)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'style="max-width:100%;width:{width}px;height:auto;font:11px system-ui,sans-serif" '
        f'text-anchor="middle" fill="currentColor" role="img" '
        f'aria-label="decision tree with {tree.n_leaves} leaves">{"".join(parts)}</svg>'
    )


def _boxes(tree: Tree) -> list[_Box]:
    """Nodes in preorder, placed: leaves side by side, splits between their children."""
    boxes: list[_Box] = []
    means = tree.preprocessing.y_to_user(tree.leaf[:, 0])
    ends = (float(means.min()), float(means.max()))
    root = tree.to_dict()
    assigned = bool(soft_marks(tree.preprocessing, root))
    n_leaves = 0

    def place(node: dict[str, Any], level: int) -> int:
        nonlocal n_leaves
        number = len(boxes)
        if "threshold" not in node:
            fill, strength, lines = _leaf(tree, node, ends, assigned)
            x = (n_leaves + 0.5) * ACROSS + 2
            n_leaves += 1
            boxes.append(_Box(x, level, lines, fill, strength, ()))
            return number
        lines = _rule(node["feature"], rule_text(tree.preprocessing, node))
        lines += [_cut(mark) for mark in softness(tree.preprocessing, node)]
        certainty = node["certainty"]
        if certainty is not None:
            lines.append(f"{percent(certainty)} of trees")
        dashed = certainty is not None and certainty < 0.5
        boxes.append(_Box(0.0, level, lines, "none", 0.0, (), dashed))
        children = (place(node["yes"], level + 1), place(node["no"], level + 1))
        boxes[number].children = children
        boxes[number].x = sum(boxes[child].x for child in children) / 2
        return number

    place(root, 0)
    return boxes


def _leaf(
    tree: Tree, leaf: dict[str, Any], ends: tuple[float, float], assigned: bool
) -> tuple[str, float, list[str]]:
    """Colour, its strength, and the lines of a leaf."""
    rows = rows_text(leaf, assigned=assigned)
    if "mean" in leaf:
        low, high = ends
        share = (leaf["mean"] - low) / (high - low) if high > low else 0.5
        text = mean_text(tree.preprocessing, leaf).split(",")[0]
        mean, _, interval = text.partition(" (")
        lines = [mean, *([f"({interval}"] if interval else []), *rows]
        return PALETTE[0], 0.15 + 0.45 * share, lines
    probabilities = leaf["probabilities"]
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    low, high = leaf["interval"][best]
    lines = [
        _cut(f"{leaf['classes'][best]} {percent(probabilities[best])}"),
        f"({_short(low)} to {_short(high)}%)",
        *rows,
    ]
    return PALETTE[best % len(PALETTE)], 0.12 + 0.4 * probabilities[best], lines


def _short(share: float) -> str:
    """Percent, never rounded to certainty."""
    text = percent(share).removesuffix("%")
    return text.replace("over ", ">").replace("under ", "<")


def _rule(feature: Any, text: str) -> list[str]:
    """A rule: its feature first, then what is asked about it; a weighted sum has no feature."""
    left, less, right = text.rpartition(" <= ")
    asked = f"\N{LESS-THAN OR EQUAL TO} {right}" if less else ""
    if not less and isinstance(feature, str) and text.startswith(f"{feature} "):
        left, asked = feature, text[len(feature) + 1 :]
    return [*_wrapped(left or text), *(_wrapped(asked) if asked else [])]


def _wrapped(text: str) -> list[str]:
    """Part of a rule over a few lines, the last of them cut where more do not fit."""
    lines = textwrap.wrap(text, LETTERS)
    if len(lines) > MOST_LINES:
        lines[MOST_LINES - 1 :] = [_cut(" ".join(lines[MOST_LINES - 1 :]))]
    return lines


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _edge(box: _Box, below: _Box, side: str, tall: int, marked: bool) -> str:
    top, bottom = box.level * (tall + DOWN) + tall + 2, below.level * (tall + DOWN) + 2
    colour, width = (MARK, 3) if marked else ("#8a8a8a", 1.2)
    x, y = (box.x + below.x) / 2, (top + bottom) / 2 + 4
    return (
        f'<line x1="{box.x:.1f}" y1="{top}" x2="{below.x:.1f}" y2="{bottom}" stroke="{colour}" '
        f'stroke-width="{width}"/><text x="{x + (-12 if side == "yes" else 12):.1f}" y="{y:.1f}" '
        f'text-anchor="{"end" if side == "yes" else "start"}" opacity="0.7">{side}</text>'
    )


def _drawn(box: _Box, tall: int, marked: bool) -> str:
    left, top = box.x - WIDTH / 2, box.level * (tall + DOWN) + 2
    stroke, width = (MARK, 2.5) if marked else ("#8a8a8a", 1)
    dashes = ' stroke-dasharray="5 3"' if box.dashed else ""
    radius = 12 if not box.children else 3
    fill = (
        f'fill="{box.fill}" fill-opacity="{box.strength:.2f}"'
        if box.fill != "none"
        else 'fill="none"'
    )
    first = top + tall / 2 + 4 - LINE * (len(box.lines) - 1) / 2
    texts = "".join(
        f'<text x="{box.x:.1f}" y="{first + LINE * k:.1f}"'
        f"{' font-weight=' + chr(34) + '600' + chr(34) if k == 0 else ''}>"
        f"{escape(line)}</text>"
        for k, line in enumerate(box.lines)
    )
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{WIDTH}" height="{tall}" rx="{radius}" {fill} '
        f'stroke="{stroke}" stroke-width="{width}"{dashes}/>{texts}'
    )
