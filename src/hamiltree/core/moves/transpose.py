"""Transpose: a node exchanges levels with its two children.

v(f,t){a(g,s1){A,B}, b(g,s2){C,D}} becomes v(g,s){a(f,.){A,C}, b(f,.){B,D}}. Label: the node, which
child's rule rises, which new child inherits t; the other threshold, or set of levels, is drawn.
Back: the node, the child that rises is the one that inherited, and the heir is the one that rose.
HMC-DFI has no equal columns: there, any two internal children do, and a whole rule is drawn.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..scan.proposals import (
    draw_in_column_by_scan,
    draw_rule_by_scan,
    log_in_column_by_scan,
    put_rule,
    weigh,
)
from ..tree.nodes import (
    TRANSPOSABLE,
    copy_range,
    copy_rule,
    count_kind,
    nth_kind,
    relink,
    right_child,
)


@kernel
def log_one_rule(proposals, tree, node, mode):
    left, right = node + 1, right_child(tree, node)
    if tree.weights.shape[1] > 0:
        _, log_density = weigh(proposals, tree, node, node, left, right, mode)
        return log_density
    return log_in_column_by_scan(proposals, tree, node, left, right)


@kernel
def draw_one_rule(proposals, tree, node, mode, rng):
    left, right = node + 1, right_child(tree, node)
    if tree.weights.shape[1] > 0:
        log_density = draw_rule_by_scan(proposals, tree, node, left, right, mode, rng)
        put_rule(proposals.scan, tree, node)
        return log_density
    return draw_in_column_by_scan(proposals, tree, node, left, right, rng)


@kernel
def transpose_informed(proposals, tree, new, mode, rng):
    candidates = count_kind(tree, TRANSPOSABLE)
    if candidates == 0:
        return -np.inf
    v = nth_kind(tree, TRANSPOSABLE, pick(candidates, rng))
    a, b = v + 1, right_child(tree, v)
    left_rises = rng.random() < 0.5
    left_inherits = rng.random() < 0.5
    riser, dropped = (a, b) if left_rises else (b, a)
    log_back = log_one_rule(proposals, tree, dropped, mode)
    # [v][a'][A][C][b'][B][D]
    at = copy_range(tree, a + 1, new, v + 2)
    at = copy_range(tree, b + 1, new, at)
    new_b = at
    at = copy_range(tree, right_child(tree, a), new, at + 1)
    at = copy_range(tree, right_child(tree, b), new, at)
    new_a = v + 1
    new.size[new_a] = new_b - new_a
    new.size[new_b] = at - new_b
    relink(new)
    copy_rule(tree, riser, new, v)
    copy_rule(tree, v, new, new_a)
    copy_rule(tree, v, new, new_b)
    drawn = new_b if left_inherits else new_a
    log_forth = draw_one_rule(proposals, new, drawn, mode, rng)
    if log_forth == -np.inf:
        return -np.inf
    return log_back - log_forth + math.log(candidates) - math.log(count_kind(new, TRANSPOSABLE))
