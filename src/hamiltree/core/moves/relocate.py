"""Relocate: a split with a leaf child goes, and a new one comes anywhere, as one step.

Label: a node with a leaf child, which goes; in the tree without it any node, a side where that is
internal, and a rule. Back: the same labels of the new split, from the same tree between.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..scan.proposals import draw_rule_by_scan, put_rule, weigh
from ..scan.rows import NEW_LEAF
from ..tree.nodes import REMOVABLE, count_kind, grow, nth_kind, prune
from .insert_delete import insert_rule, remove_rule


@kernel
def relocate_informed(proposals, tree, new, mode, rng):
    candidates = count_kind(tree, REMOVABLE)
    if candidates == 0:
        return -np.inf
    node = nth_kind(tree, REMOVABLE, pick(candidates, rng))
    if tree.size[node] == 3:
        _, log_back = weigh(proposals, new, node, node, NEW_LEAF, NEW_LEAF, mode)
        prune(new, node)
    else:
        log_back = remove_rule(proposals, new, node, mode) - math.log(2.0)
    target = pick(new.n_nodes[0], rng)
    if new.size[target] == 1:
        log_forth = draw_rule_by_scan(proposals, new, target, NEW_LEAF, NEW_LEAF, mode, rng)
        if log_forth == -np.inf:
            return -np.inf
        grow(new, target)
        put_rule(proposals.scan, new, target)
    else:
        log_forth = insert_rule(proposals, new, target, mode, rng) - math.log(2.0)
        if log_forth == -np.inf:
            return -np.inf
    return log_back - log_forth + math.log(candidates) - math.log(count_kind(new, REMOVABLE))
