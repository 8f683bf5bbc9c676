"""Priors over the shapes of hard trees: CGM's split probabilities, and WU's pinball.

CGM: a node at depth d splits with probability alpha (1 + d)^-beta; one in which no rule is
available stops with probability 1. WU: 1 + Poisson(lambda) leaves; at a node with m leaves below
it, 1 + Binomial(m - 2, p) of them go left.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import Float1, Record
from ..tree.priors import LARGEST_SPLIT_PROBABILITY


class ShapePrior(Record):
    """Tables, so that the prior of a whole tree costs a few additions."""

    min_leaves: int
    """Trees smaller than this, or larger than max_leaves, have prior 0."""
    max_leaves: int
    pinball: bool
    """WU's; the first two tables are CGM's, the others WU's."""
    log_split: Float1
    """[max_leaves] by depth"""
    log_stop: Float1
    log_leaves: Float1
    """[max_leaves + 1] by number of leaves; all 0 for CGM"""
    log_factorial: Float1
    """[max_leaves + 1]"""
    log_p: float
    log_not_p: float


def make_shape_prior(
    *,
    min_leaves: int,
    max_leaves: int,
    alpha_split: float,
    beta_split: float,
    expected_splits: float,
    left_share: float,
    pinball: bool,
) -> ShapePrior:
    depth = np.arange(max_leaves)
    split = np.minimum(alpha_split * (1.0 + depth) ** -beta_split, LARGEST_SPLIT_PROBABILITY)
    log_factorial = np.array([math.lgamma(k + 1.0) for k in range(max_leaves + 1)])
    log_leaves = np.zeros(max_leaves + 1)
    if pinball:
        log_leaves[0] = -np.inf
        log_leaves[1:] = np.arange(max_leaves) * math.log(expected_splits) - expected_splits
        log_leaves[1:] -= log_factorial[:-1]
    return ShapePrior(
        min_leaves=int(min_leaves),
        max_leaves=int(max_leaves),
        pinball=bool(pinball),
        log_split=np.log(split),
        log_stop=np.log1p(-split),
        log_leaves=log_leaves,
        log_factorial=log_factorial,
        log_p=math.log(left_share),
        log_not_p=math.log1p(-left_share),
    )


@kernel
def log_pinball(shape, below, left):
    """1 + Binomial(below - 2, p) = left, of the ``below`` leaves under a node."""
    n = below - 2
    k = left - 1
    total = shape.log_factorial[n] - shape.log_factorial[k] - shape.log_factorial[n - k]
    return total + k * shape.log_p + (n - k) * shape.log_not_p


@kernel
def log_tree_prior(shape, tree, cells):
    """Log prior of shape and rules; ``cells`` knows the rules' and which nodes can split."""
    leaves = (tree.n_nodes[0] + 1) // 2
    total = shape.log_leaves[leaves]
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1:
            total += cells.log_rule[i]
            if shape.pinball:
                below = (tree.size[i] + 1) // 2
                total += log_pinball(shape, below, (tree.size[i + 1] + 1) // 2)
            else:
                total += shape.log_split[tree.depth[i]]
        elif cells.can_split[i] and not shape.pinball:
            total += shape.log_stop[tree.depth[i]]
    return total
