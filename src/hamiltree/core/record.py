"""Kept draws of one chain, packed as they are made; shared by all samplers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .buffers import CLASSES, COLLAPSED
from .collapsed import solve_upper
from .jit import inlined, kernel, never_inline
from .nodes import n_leaves, tree_depth
from .priors import draw_mean, log_prior
from .target import evaluate

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
FIRST_STAT = SCALARS.index("divergent")


class Block(NamedTuple):
    """Room for a number of draws; drained by Python whenever it is full."""

    filled: NDArray[np.int64]
    """[4]: trees, nodes, splits and leaves written so far."""
    n_nodes: NDArray[np.int64]
    """[trees]"""
    size: NDArray[np.int32]
    """[nodes]"""
    feature: NDArray[np.int32]
    """[splits]"""
    threshold: NDArray[np.float64]
    weights: NDArray[np.float64]
    """[splits, p or 0]"""
    leaf: NDArray[np.float64]
    """[leaves, K]"""
    scalars: NDArray[np.float64]
    """[trees, len(SCALARS)]"""
    h: NDArray[np.float64]
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
        weights=np.zeros((leaves, n_weights)),
        leaf=np.zeros((leaves, n_values)),
        scalars=np.zeros((256, len(SCALARS))),
        h=np.zeros((256, n_softness)),
    )


def drain(block: Block) -> Block:
    """Copy out what was written, and start over."""
    trees, nodes, splits, leaves = block.filled
    kept = Block(
        filled=block.filled.copy(),
        n_nodes=block.n_nodes[:trees].copy(),
        size=block.size[:nodes].copy(),
        feature=block.feature[:splits].copy(),
        threshold=block.threshold[:splits].copy(),
        weights=block.weights[:splits].copy(),
        leaf=block.leaf[:leaves].copy(),
        scalars=block.scalars[:trees].copy(),
        h=block.h[:trees].copy(),
    )
    block.filled[:] = 0
    return kept


@inlined
def is_full(block, max_leaves):
    return (
        block.filled[TREES] == block.n_nodes.shape[0]
        or block.filled[LEAVES] + max_leaves > block.leaf.shape[0]
    )


@kernel
def record_tree(model, tree, work, block, rng):
    """Write the tree, its leaves' values and its densities; returns the row of its scalars.

    Leaf values: class counts, explicit means, or means drawn given the rest where those are
    integrated out (from their prior where the likelihood is switched off).
    """
    never_inline()
    family = model.family
    log_like = evaluate(model, tree, work, np.bool_(False))
    leaves = n_leaves(tree)
    draws = work.counts[:, 0]
    if family == COLLAPSED:
        for k in range(leaves):
            if model.power[0] == 0.0:
                draws[k] = draw_mean(model.leaf_prior, rng)
            else:
                draws[k] = rng.standard_normal()
        if model.power[0] != 0.0:
            solve_upper(work.gram, leaves, draws)
            for k in range(leaves):
                draws[k] += work.table[k, 0]
    row, node, split, leaf = block.filled
    for i in range(tree.n_nodes[0]):
        block.size[node] = tree.size[i]
        node += 1
        if tree.size[i] > 1:
            block.feature[split] = tree.feature[i]
            block.threshold[split] = tree.threshold[i]
            for f in range(tree.weights.shape[1]):
                block.weights[split, f] = tree.weights[i, f]
            split += 1
        else:
            k = leaf - block.filled[LEAVES]
            if family == CLASSES:
                for m in range(block.leaf.shape[1]):
                    block.leaf[leaf, m] = work.counts[k, m]
            else:
                block.leaf[leaf, 0] = draws[k] if family == COLLAPSED else tree.value[i]
            leaf += 1
    block.n_nodes[row] = tree.n_nodes[0]
    block.filled[TREES] = row + 1
    block.filled[NODES], block.filled[SPLITS], block.filled[LEAVES] = node, split, leaf
    scalars = block.scalars[row]
    scalars[0] = leaves
    scalars[1] = tree_depth(tree)
    scalars[2] = log_like
    scalars[3] = log_prior(family, model.prior, model.leaf_prior, tree)
    scalars[3] += 0.0 if model.power[0] == 0.0 else model.power[0] * log_like
    scalars[4] = np.nan if family == CLASSES else tree.sigma[0]
    return row
