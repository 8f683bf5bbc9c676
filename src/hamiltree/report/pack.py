"""Trees as the flat arrays that the page reads, in base64; the layout is that of ``Draws``."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..posterior import Posterior
from ..posterior.tree import Tree
from ..utils.arrays import FloatArray


def pack_forest(
    drawn: Posterior, draws: Sequence[Tree], featured: Sequence[Tree], sampled: FloatArray | None
) -> dict[str, Any]:
    """The draws of the page, then the trees to read.

    ``drawn`` holds the same draws as ``draws``, as a posterior of their own; ``sampled`` are their
    leaves' class probabilities, drawn once for the intervals.
    """
    trees = [*draws, *featured]
    ends = np.cumsum([len(tree.size) for tree in trees])
    # Of each tree where h was learned, otherwise of all.
    softness = np.stack([tree.h for tree in (trees if drawn.draws.h_learned else trees[:1])])
    arrays = {
        "nodeOffset": packed("i4", [0, *ends]),
        "size": packed("i4", _joined([tree.size for tree in trees])),
        "feature": packed("i4", _joined([tree.feature for tree in trees])),
        "threshold": packed("f8", _joined([tree.threshold for tree in trees])),
        # sets of 64 bits, as two numbers of 32
        "levelsLow": packed("f8", _joined([_levels(tree) & 0xFFFFFFFF for tree in trees])),
        "levelsHigh": packed("f8", _joined([_levels(tree) >> 32 for tree in trees])),
        "weights": packed("f8", _joined([tree.weights for tree in trees])),
        "leaf": packed("f8", _joined([tree.leaf for tree in trees])),
        "sampledLeaf": packed("f8", [] if sampled is None else sampled),
        "h": packed("f8", softness),
        "sigma": packed("f8", drawn.draws.sigma),
        # What is only shown, and NaN where only training data, which are missing, could tell:
        "rows": packed("f4", _joined([_or_nan(t.n_rows, len(t.size)) for t in trees])),
        "certainty": packed("f4", _joined([_or_nan(t.certainty, len(t.feature)) for t in trees])),
        "interval": packed("f4", _joined([_or_nan(t.intervals, 2 * t.n_leaves) for t in trees])),
    }
    n_classes = drawn.n_classes
    return {
        "arrays": arrays,
        "nDraws": len(draws),
        "ruleColumns": trees[0].weights.shape[1],
        "leafWidth": trees[0].leaf.shape[1],
        "softnesses": softness.shape[1],
        "classPrior": np.array(drawn.configuration.method.class_concentration(n_classes)),
    }


def bytes_of_a_tree(posterior: Posterior) -> float:
    """What an average tree takes in the page."""
    leaves = float(np.sum(posterior.weights * posterior.n_leaves))
    width = posterior.draws.leaf.shape[1]
    a_leaf = 4 + 8 * width + (8 * width + 8 * width if posterior.n_classes else 8) + 4
    a_split = 4 + 4 + 8 + 4 + 4 + 8 * posterior.draws.split_weights.shape[1]
    own_h = 8 * len(posterior.preprocessing.used) if posterior.draws.h_learned else 0
    return float(leaves * a_leaf + (leaves - 1) * a_split + own_h + 20) * 4 / 3


def packed(kind: str, values: ArrayLike) -> dict[str, str]:
    """An array as the page unpacks it."""
    data = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()
    return {"type": kind, "data": b64encode(data).decode()}


def _joined(arrays: Sequence[Any]) -> FloatArray:
    return np.concatenate([np.ravel(array) for array in arrays])


def _levels(tree: Tree) -> NDArray[np.uint64]:
    """What goes right beside larger numbers, of each split."""
    return np.zeros(len(tree.threshold), np.uint64) if tree.levels is None else tree.levels


def _or_nan(values: FloatArray | None, length: int) -> FloatArray:
    return np.full(length, np.nan) if values is None else values
