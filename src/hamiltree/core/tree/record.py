"""Kept draws of one chain, packed as they are made; shared by all samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import kernel
from ..backend.records import Float1, Float2, Int1, Record, Short1, Word1
from .nodes import n_leaves, tree_depth

TREES, NODES, SPLITS, LEAVES = 0, 1, 2, 3
SCALARS = (
    "n_leaves",
    "depth",
    "log_likelihood",
    "log_posterior",
    "sigma",
    "divergent",
    "nuts_depth",
    "step_size",
    "accept_stat",
    "n_gradients",
    "log_weight",
    "founder",
)
"""Columns of ``Block.scalars``. The samplers write those from ``divergent`` on; weights are of
particles, and stay 0 for Markov chains."""
N_LEAVES, DEPTH, LOG_LIKELIHOOD, LOG_POSTERIOR, SIGMA = range(5)
DIVERGENT, NUTS_DEPTH, STEP_SIZE, ACCEPT_STAT, N_GRADIENTS = range(5, 10)
LOG_WEIGHT, FOUNDER = 10, 11
"""Their places."""


class Block(Record, role="scratch"):
    """Room for a number of draws; drained by Python whenever it is full."""

    filled: Int1
    """[4]: trees, nodes, splits and leaves written so far."""
    n_nodes: Int1
    """[trees]"""
    size: Short1
    """[nodes]"""
    feature: Short1
    """[splits]"""
    threshold: Float1
    levels: Word1
    weights: Float2
    """[splits, p or 0]"""
    leaf: Float2
    """[leaves, K]"""
    scalars: Float2
    """[trees, len(SCALARS)]"""
    h: Float2
    """[trees, 1 or p] where it is learned; [trees, 0] else."""


def make_block(max_leaves: int, n_weights: int, n_values: int, n_softness: int = 0) -> Block:
    """Room for 256 trees, unless they are large: then for as many as fit 16,384 leaves."""
    leaves = max(16_384, max_leaves)
    return Block(
        filled=np.zeros(4, np.int64),
        n_nodes=np.zeros(256, np.int64),
        size=np.zeros(2 * leaves, np.int32),
        feature=np.zeros(leaves, np.int32),
        threshold=np.zeros(leaves),
        levels=np.zeros(leaves, np.uint64),
        weights=np.zeros((leaves, n_weights)),
        leaf=np.zeros((leaves, n_values)),
        scalars=np.zeros((256, len(SCALARS))),
        h=np.zeros((256, n_softness)),
    )


class Piece(NamedTuple):
    """Draws that were made: the arrays of a ``Block``, as long as they are."""

    filled: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    size: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    levels: NDArray[np.uint64]
    weights: NDArray[np.float64]
    leaf: NDArray[np.float64]
    scalars: NDArray[np.float64]
    h: NDArray[np.float64]
    rungs: NDArray[np.float64]
    """[trees, rungs]; log-likelihood of every replica of the chain; [trees, 0] without any."""


def drain(block: Block) -> Piece:
    """Copy out what was written, and start over."""
    trees, nodes, splits, leaves = block.filled
    kept = Piece(
        filled=block.filled.copy(),
        n_nodes=block.n_nodes[:trees].copy(),
        size=block.size[:nodes].copy(),
        feature=block.feature[:splits].copy(),
        threshold=block.threshold[:splits].copy(),
        levels=block.levels[:splits].copy(),
        weights=block.weights[:splits].copy(),
        leaf=block.leaf[:leaves].copy(),
        scalars=block.scalars[:trees].copy(),
        h=block.h[:trees].copy(),
        rungs=np.zeros((trees, 0)),
    )
    block.filled[:] = 0
    return kept


def joined(pieces: Sequence[Piece]) -> Piece:
    """All draws of a chain in one piece."""
    if len(pieces) == 1:
        return pieces[0]
    named = zip(Piece._fields, zip(*pieces, strict=True), strict=True)
    whole = {name: np.concatenate(arrays) for name, arrays in named if name != "filled"}
    return Piece(filled=np.sum([piece.filled for piece in pieces], axis=0), **whole)


@kernel
def is_full(block, max_leaves):
    return (
        block.filled[TREES] == block.n_nodes.shape[0]
        or block.filled[LEAVES] + max_leaves > block.leaf.shape[0]
    )


@kernel
def write_shape(tree, block):
    """Write sizes and rules of a tree; returns (row of its scalars, place of its first leaf)."""
    row, node, split = block.filled[TREES], block.filled[NODES], block.filled[SPLITS]
    first_leaf = block.filled[LEAVES]
    for i in range(tree.n_nodes[0]):
        block.size[node] = tree.size[i]
        node += 1
        if tree.size[i] > 1:
            block.feature[split] = tree.feature[i]
            block.threshold[split] = tree.threshold[i]
            block.levels[split] = tree.levels[i]
            for f in range(tree.weights.shape[1]):
                block.weights[split, f] = tree.weights[i, f]
            split += 1
    block.n_nodes[row] = tree.n_nodes[0]
    block.filled[TREES], block.filled[NODES], block.filled[SPLITS] = row + 1, node, split
    block.filled[LEAVES] = first_leaf + n_leaves(tree)
    block.scalars[row, N_LEAVES] = n_leaves(tree)
    block.scalars[row, DEPTH] = tree_depth(tree)
    return row, first_leaf
