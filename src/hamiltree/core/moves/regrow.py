"""Regrow: a subtree is replaced by one grown top down by scans.

Label: a node, any, and the subtree grown there. Nodes are picked by the reciprocal of their size: a
large subtree costs many scans and is rarely accepted.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..scan.leaf_means import OUTSIDE_NODE
from ..scan.proposals import MODE_COLUMNS, NO_RULE, draw_weighed, put_rule, weigh
from ..scan.rows import NEW_LEAF
from ..tree.nodes import grow, n_leaves, prune_all
from ..tree.priors import split_probability


@kernel
def sum_of_picks(tree):
    total = 0.0
    for i in range(tree.n_nodes[0]):
        total += 1.0 / tree.size[i]
    return total


@kernel
def pick_small(tree, rng):
    """A node by the reciprocal of its size, and the sum of these."""
    total = sum_of_picks(tree)
    u = rng.random() * total
    for i in range(tree.n_nodes[0]):
        u -= 1.0 / tree.size[i]
        if u < 0.0:
            return i, total
    return tree.n_nodes[0] - 1, total


@kernel
def decide(scan, tree, node, everything):
    """Probability of splitting a node in a regrown subtree, from its scan."""
    by_prior = split_probability(scan.model.prior, tree.depth[node])
    if everything == -np.inf:
        return 0.0
    # one step ahead: the best this split alone can do, against stopping here
    gain = everything - scan.model.power[0] * scan.sides.start[0]
    odds = math.log(by_prior) - math.log1p(-by_prior) + gain
    by_scan = 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
    return 0.9 * by_scan + 0.1 * by_prior


@kernel
def log_regrown(proposals, tree, node):
    """Log density of the subtree below a node under ``regrow_informed``."""
    total = 0.0
    for i in range(node, node + tree.size[node]):
        rule_of = i if tree.size[i] > 1 else NO_RULE
        everything, log_rule = weigh(proposals, tree, i, rule_of, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
        split = decide(proposals.scan, tree, i, everything)
        total += math.log1p(-split) if tree.size[i] == 1 else math.log(split) + log_rule
    return total


@kernel
def regrow_informed(proposals, tree, new, mode, rng):
    """Always by scans of all columns, whatever the mode."""
    prior, frame = proposals.scan.model.prior, proposals.scan.means.frame
    node, all_forth = pick_small(tree, rng)
    frame[0] = node  # what is grown later must not count
    log_back = log_regrown(proposals, tree, node)
    prune_all(new, node)
    log_forth = 0.0
    end = node + 1
    i = node
    while i < end:
        everything, _ = weigh(proposals, new, i, NO_RULE, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
        split = decide(proposals.scan, new, i, everything)
        if rng.random() < split:
            if n_leaves(new) >= prior.max_leaves:
                frame[0] = OUTSIDE_NODE
                return -np.inf
            log_forth += math.log(split) + draw_weighed(proposals, MODE_COLUMNS, rng)
            grow(new, i)
            put_rule(proposals.scan, new, i)
            end += 2
        else:
            log_forth += math.log1p(-split)
        i += 1
    frame[0] = OUTSIDE_NODE
    if n_leaves(new) < prior.min_leaves:
        return -np.inf
    log_back -= math.log(new.size[node] * sum_of_picks(new))
    log_forth -= math.log(tree.size[node] * all_forth)
    return log_back - log_forth
