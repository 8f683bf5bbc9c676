"""A tree as nested plain values in the user's units; text, pictures and reports are made of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tree import Tree


def nested_dict(tree: Tree) -> dict[str, Any]:
    """See ``Tree.to_dict``."""
    intervals, values, rows = tree.intervals, tree.values, tree.n_rows
    split = leaf = 0

    def build(node: int) -> dict[str, Any]:
        """The node, then its subtrees: in preorder, as splits and leaves are numbered."""
        nonlocal split, leaf
        n_rows = None if rows is None else float(rows[node])
        if tree.size[node] == 1:
            interval = None if intervals is None else intervals[leaf].tolist()
            content = {**_leaf(tree, leaf, values[leaf]), "interval": interval, "rows": n_rows}
            leaf += 1
            return content
        content = {**_split(tree, split), "n_rows": n_rows}
        split += 1
        content["yes"] = build(node + 1)
        content["no"] = build(node + 1 + int(tree.size[node + 1]))
        return content

    return build(0)


def _split(tree: Tree, split: int) -> dict[str, Any]:
    scale, tau = tree.preprocessing, float(tree.threshold[split])
    certainty = None if tree.certainty is None else float(tree.certainty[split])
    chains = None if tree.chains is None else int(tree.chains[split])
    if tree.weights.shape[1] == 0:
        column = int(tree.feature[split])
        kind = 0 if tree.kinds is None else int(tree.kinds[column])
        about = {
            "column": int(scale.used[column]),
            "feature": scale.used_names[column],
            "threshold": scale.threshold_to_user(column, tau),
            "h": float(tree.h[column] * scale.span[column]),
            "certainty": certainty,
            "chains": chains,
        }
        return about if kind == 0 else about | _special(tree, split, column, kind)
    # sum_j w_j (x_j - minimum_j) / span_j <= tau, with the x_j freed of their shift and scale
    coefficients = tree.weights[split] / scale.span
    return {
        "column": scale.used.tolist(),
        "feature": list(scale.used_names),
        "weights": coefficients.tolist(),
        "threshold": float(tau + coefficients @ scale.minimum),
        "h": float(tree.h[0]),
        "certainty": certainty,
        "chains": chains,
    }


SIDES = ("yes", "no", "imputed")
"""Where the missing cells of a column of numbers go, by ``levels``."""


def _special(tree: Tree, split: int, column: int, kind: int) -> dict[str, Any]:
    """What a split on a category, or on numbers with missing cells, has beside a threshold.

    ``levels``: those that go to yes, left; ``missing``: the side of missing cells, or "imputed".
    """
    assert tree.levels is not None
    right = int(tree.levels[split])
    if kind < 0:
        about: dict[str, Any] = {"missing": SIDES[right]}
        if math.isinf(tree.threshold[split]):
            about |= {"threshold": None, "h": 0.0}
        return about
    column_of = tree.preprocessing.column(column)
    left = [code for code in range(kind) if not right >> code & 1]
    return {
        "threshold": None,
        "h": 0.0,
        "levels": [column_of.label(code) for code in left],
        "other_levels": [column_of.label(code) for code in range(kind) if code not in left],
    }


def _leaf(tree: Tree, leaf: int, value: Any) -> dict[str, Any]:
    classes = tree.preprocessing.classes
    if classes is None:
        content = {"mean": float(value)}
        if tree.leaf.shape[1] > 1:
            content["sd"] = float(tree.preprocessing.sd_to_user(tree.leaf[leaf, 1]))
        return content
    return {
        "classes": classes.tolist(),
        "probabilities": value.tolist(),
        "counts": tree.leaf[leaf].tolist(),
    }
