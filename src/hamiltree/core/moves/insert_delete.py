"""Insert and delete: a split anywhere on a path.

Labels: an internal node, a side for the new leaf and a rule; a node with one leaf child. Above a
leaf an insertion would be a grow: there is none.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..scan.proposals import draw_rule_by_scan, put_rule, weigh
from ..scan.rows import NEW_LEAF
from ..tree.nodes import (
    DELETABLE,
    INTERNAL,
    count_kind,
    insert_above,
    n_leaves,
    nth_kind,
    remove_above,
    right_child,
)


@kernel
def insert_rule(proposals, new, node, mode, rng):
    """Put a split above an internal node, with a leaf on a side chosen by a coin."""
    leaf_left = rng.random() < 0.5
    left, right = (NEW_LEAF, node) if leaf_left else (node, NEW_LEAF)
    log_rule = draw_rule_by_scan(proposals, new, node, left, right, mode, rng)
    if log_rule > -np.inf:
        insert_above(new, node, leaf_left)
        put_rule(proposals.scan, new, node)
    return log_rule


@kernel
def remove_rule(proposals, new, node, mode):
    """Take out a split with one leaf; log density of drawing its rule where it was."""
    leaf_left = new.size[node + 1] == 1
    left = NEW_LEAF if leaf_left else node + 1
    right = right_child(new, node) if leaf_left else NEW_LEAF
    _, log_rule = weigh(proposals, new, node, node, left, right, mode)
    remove_above(new, node, leaf_left)
    return log_rule


@kernel
def insert_informed(proposals, tree, new, mode, rng):
    leaves = n_leaves(new)
    if leaves == 1 or leaves >= proposals.scan.model.prior.max_leaves:
        return -np.inf
    node = nth_kind(new, INTERNAL, pick(leaves - 1, rng))
    log_rule = insert_rule(proposals, new, node, mode, rng)
    if log_rule == -np.inf:
        return -np.inf
    return math.log(2.0 * (leaves - 1)) - math.log(count_kind(new, DELETABLE)) - log_rule


@kernel
def delete_informed(proposals, tree, new, mode, rng):
    candidates = count_kind(new, DELETABLE)
    leaves = n_leaves(new)
    if candidates == 0 or leaves <= proposals.scan.model.prior.min_leaves:
        return -np.inf
    node = nth_kind(new, DELETABLE, pick(candidates, rng))
    log_rule = remove_rule(proposals, new, node, mode)
    return log_rule + math.log(candidates) - math.log(2.0 * (leaves - 2))
