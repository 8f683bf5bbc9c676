"""Grow and prune. Labels: a leaf and a rule; a node with two leaves."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..scan.proposals import draw_rule_by_scan, put_rule, weigh
from ..scan.rows import NEW_LEAF
from ..tree.nodes import LEAF, PRUNABLE, count_kind, grow, n_leaves, nth_kind, prune


@kernel
def grow_informed(proposals, tree, new, mode, rng):
    prior = proposals.scan.model.prior
    leaves = n_leaves(new)
    if leaves >= prior.max_leaves:
        return -np.inf
    leaf = nth_kind(new, LEAF, pick(leaves, rng))
    log_rule = draw_rule_by_scan(proposals, new, leaf, NEW_LEAF, NEW_LEAF, mode, rng)
    if log_rule == -np.inf:
        return -np.inf
    grow(new, leaf)
    put_rule(proposals.scan, new, leaf)
    return math.log(leaves) - math.log(count_kind(new, PRUNABLE)) - log_rule


@kernel
def prune_informed(proposals, tree, new, mode, rng):
    candidates = count_kind(new, PRUNABLE)
    leaves = n_leaves(new)
    if candidates == 0 or leaves <= proposals.scan.model.prior.min_leaves:
        return -np.inf
    node = nth_kind(new, PRUNABLE, pick(candidates, rng))
    _, log_rule = weigh(proposals, new, node, node, NEW_LEAF, NEW_LEAF, mode)
    prune(new, node)
    return log_rule + math.log(candidates) - math.log(leaves - 1)
