"""A tree as text: rules, leaves, and both as indented lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..inputs.preprocess import Preprocessing

if TYPE_CHECKING:
    from .tree import Tree

SHOWN = 3
"""Weights of an oblique rule, and classes of a leaf, that are written out."""
FEW = 2
"""Values of a column near a soft threshold that are named; where there are more, h is."""
OF_MISSING = {None: "", "no": "", "yes": " or missing", "imputed": ", imputed if missing"}
"""What a rule on numbers says of missing cells, by the side that they go to."""
CLEAR = 0.99
"""Share of the rows with a value that a soft split must send to one side for it to seem hard."""


def tree_text(tree: Tree) -> str:
    """Rules as indented lines, with what the marks in them mean at the end."""
    scale, root = tree.preprocessing, tree.to_dict()
    lines: list[str] = []
    words, marks = branch_words(scale), soft_marks(scale, root)

    def add(node: dict[str, Any], depth: int, side: str) -> None:
        start = "  " * depth + side
        if "threshold" not in node:
            lines.append(start + leaf_text(scale, node, assigned=bool(marks)))
            return
        shown = ", ".join([*softness(scale, node), *how_common(tree, node)])
        rule = rule_text(scale, node)
        lines.append(f"{start}{rule}  ({shown})" if shown else start + rule)
        for side, word in zip(("yes", "no"), words, strict=True):
            add(node[side], depth + 1, f"{word}: ".ljust(len(words[0]) + 2))

    add(root, 0, "")
    lines += _about_softness(marks, words, rows=root.get("n_rows") is not None)
    if tree.n_leaves > 1 and tree.certainty is not None:
        lines.append("(% of trees: share of the sampled trees that have such a split)")
    return "\n".join(lines)


def branch_words(scale: Preprocessing) -> tuple[str, str]:
    """What stands before the two branches of a split: "yes" and "no", unless classes have these."""
    names = [] if scale.classes is None else [str(label).lower() for label in scale.classes]
    return ("then", "else") if {"yes", "no"} & set(names) else ("yes", "no")


def rule_text(scale: Preprocessing, split: dict[str, Any], *, exact: bool = False) -> str:
    """A split of ``to_dict`` as text.

    ``exact``: thresholds on whole numbers and ranks with decimals, for cells that are neither.
    """
    if "weights" in split:
        return f"{_weighted_sum(scale, split)} <= {split['threshold']:.4g}"
    name = split["feature"]
    if "levels" in split:
        return _levels_text(name, split["levels"], split["other_levels"])
    if split["threshold"] is None:
        return f"{name} is missing" if split["missing"] == "yes" else f"{name} is present"
    place = int(np.searchsorted(scale.used, split["column"]))
    column = scale.column(place)
    threshold = in_units(split["threshold"], float(scale.span[place]))
    if exact:
        threshold += f" (rank; {column.order[0]} is 0)" if column.order else ""
    elif column.order:
        rank = int(min(max(np.floor(split["threshold"]), 0), len(column.order) - 1))
        threshold = str(column.order[rank])
    elif column.whole and not _shows_h(softness(scale, split)):
        threshold = f"{np.floor(split['threshold']):.0f}"
    return f"{name} <= {threshold}{OF_MISSING[split.get('missing')]}"


def _levels_text(name: str, levels: list[str], others: list[str]) -> str:
    """Levels that go to yes: the shorter of the set and its complement."""
    if len(levels) == 1:
        return f"{name} is {levels[0]}"
    if len(others) == 1:
        return f"{name} is not {others[0]}"
    if len(others) < len(levels) and len(levels) > SHOWN:
        return f"{name} not in {{{', '.join(others)}}}"
    return f"{name} in {{{', '.join(levels)}}}"


def leaf_text(scale: Preprocessing, leaf: dict[str, Any], *, assigned: bool) -> str:
    """A leaf of ``to_dict`` as text, the likeliest classes first; see ``rows_text``."""
    rows = "".join(f"; {text}" for text in rows_text(leaf, assigned=assigned, digits=1))
    if "mean" in leaf:
        return f"mean {mean_text(scale, leaf)}{rows}"
    order = np.argsort(leaf["probabilities"])[::-1]
    parts = [f"{leaf['classes'][k]} {leaf['probabilities'][k]:.2f}" for k in order[:SHOWN]]
    low, high = leaf["interval"][order[0]]
    parts[0] += f" ({low:.2f} to {high:.2f})"
    parts += ["..."] * (len(order) > SHOWN)
    return ", ".join(parts) + rows


def mean_text(scale: Preprocessing, leaf: dict[str, Any]) -> str:
    """Mean, its interval and the noise sd of a regression leaf, each where there is one."""
    span = 4 * scale.y_sd
    text = in_units(leaf["mean"], span)
    if leaf["interval"] is not None:
        text += " ({} to {})".format(*(in_units(end, span) for end in leaf["interval"]))
    return f"{text}, sd {in_units(leaf['sd'], span)}" if "sd" in leaf else text


def in_units(value: float, span: float) -> str:
    """A number to a thousandth of the span of its scale, or a little finer."""
    if not 1e-4 < span < 1e7:
        return f"{value:.6g}"
    return f"{value:.{max(0, 3 - int(np.floor(np.log10(span))))}f}"


def how_common(tree: Tree, split: dict[str, Any]) -> list[str]:
    """Share of the trees that have a split, where known, and how many chains, if not all."""
    if tree.census is None:
        return []
    marks = [f"{split['certainty']:.0%} of trees"]
    if split["chains"] < tree.census.n_chains:
        marks.append(f"in {split['chains']} of {tree.census.n_chains} chains")
    return marks


def rows_text(leaf: dict[str, Any], *, assigned: bool, digits: int = 0) -> list[str]:
    """Training rows of a leaf, where known; ``assigned`` to it if the tree has ``soft_marks``."""
    if leaf["rows"] is None:
        return []
    number = f"{leaf['rows']:.{digits}f}".removesuffix(".0")
    return [f"{number} rows assigned" if assigned else f"{number} rows"]


def soft_marks(scale: Preprocessing, node: dict[str, Any]) -> list[str]:
    """``softness`` of all splits from a node on."""
    if "threshold" not in node:
        return []
    below = [mark for side in ("yes", "no") for mark in soft_marks(scale, node[side])]
    return softness(scale, node) + below


def softness(scale: Preprocessing, split: dict[str, Any]) -> list[str]:
    """What a soft split does with rows near its threshold; empty where no value is near.

    For whole numbers and ordered categories, the share of the rows with the value that go to yes,
    as long as few values are near; otherwise h.
    """
    h, threshold = split["h"], split["threshold"]
    if h <= 0:
        return []
    whole = [f"h = {h:.2g}"]
    if "weights" in split:
        return whole
    column = scale.column(int(np.searchsorted(scale.used, split["column"])))
    if not (column.whole or column.order):
        return whole
    reach = h * np.log(CLEAR / (1 - CLEAR))
    near = np.arange(np.ceil(threshold - reach), np.floor(threshold + reach) + 1) + 0.0  # no -0
    if column.order:
        near = near[(near >= 0) & (near < len(column.order))]
    if len(near) > FEW:
        return whole
    names = [str(column.order[int(x)]) if column.order else f"{x:.0f}" for x in near]
    shares = 1 / (1 + np.exp((near - threshold) / h))
    yes = branch_words(scale)[0]
    return [f"at {name}: {share:.0%} {yes}" for name, share in zip(names, shares, strict=True)]


def _shows_h(marks: list[str]) -> bool:
    return any(mark.startswith("h = ") for mark in marks)


def _about_softness(marks: list[str], words: tuple[str, str], *, rows: bool) -> list[str]:
    """What the marks of soft splits mean, and the rows of leaves."""
    lines = []
    if _shows_h(marks):
        lines.append(
            f"(h: a row goes to {words[1]} with probability 1 / (1 + exp(-(x - threshold) / h)))"
        )
    shares = [mark for mark in marks if mark.startswith("at ")]
    if shares:
        value, share = shares[0].removeprefix("at ").rsplit(": ", 1)
        lines.append(
            f"({shares[0]}: of the rows with the value {value}, the split sends "
            f"{share.removesuffix(' ' + words[0])} to {words[0]})"
        )
    if marks and rows:
        lines.append(
            "(rows assigned: not exactly those that satisfy the rules; near a soft threshold they "
            "go both ways)"
        )
    return lines


def _weighted_sum(scale: Preprocessing, split: dict[str, Any]) -> str:
    # Largest by their weight on the unit scale, which is what moves rows.
    order = np.argsort(np.array(split["weights"]) * scale.span)[::-1]
    parts = [f"{split['weights'][j]:.3g}*{split['feature'][j]}" for j in order[:SHOWN]]
    return " + ".join(parts + ["..."] * (len(order) > SHOWN))
