"""Informed moves between trees: rules drawn by scans of the data, with exact proposal ratios.

Each move edits ``new``, a copy of ``tree``, and returns log q(back) - log q(forth), or minus
infinity where the move is not possible, which keeps the chain where it is. Priors and likelihoods
are compared by the caller. A move and its reverse have the same probability of being tried, and
their labels are one to one: each says below which they are.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inlined, kernel, never_inline
from .nodes import (
    copy_range,
    copy_rule,
    count_prunable,
    grow,
    insert_above,
    n_leaves,
    nth_internal,
    nth_leaf,
    nth_prunable,
    prune,
    prune_all,
    relink,
    remove_above,
    right_child,
)
from .priors import split_probability
from .proposed_rules import (
    MODE_COLUMNS,
    NO_RULE,
    draw_rule_by_scan,
    draw_threshold_by_scan,
    draw_weighed,
    log_threshold_by_scan,
    put_rule,
    weigh,
)
from .rotation import rotate
from .scan_rows import NEW_LEAF, find_rows

GROW, PRUNE, INSERT, DELETE, CHANGE, REGROW, TRANSPOSE, SWAP, RELOCATE, ROTATE = range(10)
NAMES = (
    "grow",
    "prune",
    "insert",
    "delete",
    "change",
    "regrow",
    "transpose",
    "swap",
    "relocate",
    "rotate",
)
RARE = len(NAMES)
"""In a sweep: with even odds none, or one of the moves that take several scans."""
ENTRIES = {name: k for k, name in enumerate((*NAMES, "rare")) if name not in ("prune", "delete")}
"""What a sweep can be made of."""
IMPOSSIBLE = -np.inf


@inlined
def pick(count, rng):
    return int(rng.random() * count)


@inlined
def move_of(entry, rng):
    """The move that an entry of a sweep stands for this time, or -1.

    GROW is grow or prune by a fair coin, INSERT insert or delete.
    """
    if entry == RARE:
        chance = 6.0 * rng.random()
        if chance >= 3.0:
            return -1
        return REGROW if chance < 1.0 else TRANSPOSE if chance < 2.0 else RELOCATE
    if entry in (GROW, INSERT) and rng.random() < 0.5:
        return entry + 1
    return entry


# ------------------------------------------------------------------ grow and prune
# Labels: a leaf and a rule; a node with two leaves.


@inlined
def grow_informed(model, work, new, mode, rng):
    leaves = n_leaves(new)
    if leaves >= model.prior.max_leaves:
        return IMPOSSIBLE
    leaf = nth_leaf(new, pick(leaves, rng))
    find_rows(model, work, new, leaf)
    log_rule = draw_rule_by_scan(model, work, new, NEW_LEAF, NEW_LEAF, mode, rng)
    if log_rule == -np.inf:
        return IMPOSSIBLE
    grow(new, leaf)
    put_rule(work, new, leaf)
    return math.log(leaves) - math.log(count_prunable(new)) - log_rule


@inlined
def prune_informed(model, work, new, mode, rng):
    candidates = count_prunable(new)
    leaves = n_leaves(new)
    if candidates == 0 or leaves <= model.prior.min_leaves:
        return IMPOSSIBLE
    node = nth_prunable(new, pick(candidates, rng))
    find_rows(model, work, new, node)
    _, log_rule = weigh(model, work, new, node, NEW_LEAF, NEW_LEAF, mode)
    prune(new, node)
    return log_rule + math.log(candidates) - math.log(leaves - 1)


# ------------------------------------------------------------------ insert and delete
# Labels: an internal node, a side for the new leaf and a rule; a node with one leaf child.


@inlined
def has_one_leaf(tree, i):
    if tree.size[i] <= 3:
        return False
    return tree.size[i + 1] == 1 or tree.size[right_child(tree, i)] == 1


@kernel
def count_deletable(tree):
    count = 0
    for i in range(tree.n_nodes[0]):
        if has_one_leaf(tree, i):
            count += 1
    return count


@kernel
def nth_deletable(tree, k):
    for i in range(tree.n_nodes[0]):
        if has_one_leaf(tree, i):
            if k == 0:
                return i
            k -= 1
    return -1


@inlined
def insert_informed(model, work, new, mode, rng):
    leaves = n_leaves(new)
    if leaves == 1 or leaves >= model.prior.max_leaves:
        return IMPOSSIBLE
    node = nth_internal(new, pick(leaves - 1, rng))
    log_rule = insert_rule(model, work, new, node, mode, rng)
    if log_rule == -np.inf:
        return IMPOSSIBLE
    return math.log(2.0 * (leaves - 1)) - math.log(count_deletable(new)) - log_rule


@inlined
def insert_rule(model, work, new, node, mode, rng):
    """Put a split above an internal node, with a leaf on a side chosen by a coin."""
    leaf_left = rng.random() < 0.5
    find_rows(model, work, new, node)
    left, right = (NEW_LEAF, node) if leaf_left else (node, NEW_LEAF)
    log_rule = draw_rule_by_scan(model, work, new, left, right, mode, rng)
    if log_rule > -np.inf:
        insert_above(new, node, leaf_left)
        put_rule(work, new, node)
    return log_rule


@inlined
def delete_informed(model, work, new, mode, rng):
    candidates = count_deletable(new)
    leaves = n_leaves(new)
    if candidates == 0 or leaves <= model.prior.min_leaves:
        return IMPOSSIBLE
    node = nth_deletable(new, pick(candidates, rng))
    log_rule = remove_rule(model, work, new, node, mode)
    return log_rule + math.log(candidates) - math.log(2.0 * (leaves - 2))


@inlined
def remove_rule(model, work, new, node, mode):
    """Take out a split with one leaf; log density of drawing its rule where it was."""
    leaf_left = new.size[node + 1] == 1
    left = NEW_LEAF if leaf_left else node + 1
    right = right_child(new, node) if leaf_left else NEW_LEAF
    find_rows(model, work, new, node)
    _, log_rule = weigh(model, work, new, node, left, right, mode)
    remove_above(new, node, leaf_left)
    return log_rule


# ------------------------------------------------------------------ change
# Label: an internal node and a rule. One scan serves both ways: it does not see the node's rule.


@inlined
def change_informed(model, work, new, mode, rng):
    leaves = n_leaves(new)
    if leaves == 1:
        return IMPOSSIBLE
    node = nth_internal(new, pick(leaves - 1, rng))
    left, right = node + 1, right_child(new, node)
    find_rows(model, work, new, node)
    _, log_back = weigh(model, work, new, node, left, right, mode)
    log_forth = draw_weighed(model, work, mode, rng)
    put_rule(work, new, node)
    return log_back - log_forth


# ------------------------------------------------------------------ regrow a subtree
# Label: a node, any, and the subtree grown there. Nodes are picked by the reciprocal of their size:
# a large subtree costs many scans and is rarely accepted.


@inlined
def sum_of_picks(tree):
    total = 0.0
    for i in range(tree.n_nodes[0]):
        total += 1.0 / tree.size[i]
    return total


@inlined
def pick_small(tree, rng):
    """A node by the reciprocal of its size, and the sum of these."""
    total = sum_of_picks(tree)
    u = rng.random() * total
    for i in range(tree.n_nodes[0]):
        u -= 1.0 / tree.size[i]
        if u < 0.0:
            return i, total
    return tree.n_nodes[0] - 1, total


@inlined
def decide(model, work, tree, node, everything):
    """Probability of splitting a node in a regrown subtree, from its scan."""
    by_prior = split_probability(model.prior, tree.depth[node])
    if everything == -np.inf:
        return 0.0
    # one step ahead: the best this split alone can do, against stopping here
    gain = everything - model.power[0] * work.start[0]
    odds = math.log(by_prior) - math.log1p(-by_prior) + gain
    by_scan = 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0
    return 0.9 * by_scan + 0.1 * by_prior


@inlined
def log_regrown(model, work, tree, node):
    """Log density of the subtree below a node under ``regrow``."""
    total = 0.0
    for i in range(node, node + tree.size[node]):
        find_rows(model, work, tree, i)
        rule_of = i if tree.size[i] > 1 else NO_RULE
        everything, log_rule = weigh(model, work, tree, rule_of, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
        split = decide(model, work, tree, i, everything)
        total += math.log1p(-split) if tree.size[i] == 1 else math.log(split) + log_rule
    return total


@inlined
def regrow_informed(model, work, tree, new, rng):
    node, all_forth = pick_small(tree, rng)
    log_back = log_regrown(model, work, tree, node)
    prune_all(new, node)
    log_forth = 0.0
    end = node + 1
    i = node
    while i < end:
        find_rows(model, work, new, i)
        everything, _ = weigh(model, work, new, NO_RULE, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
        split = decide(model, work, new, i, everything)
        if rng.random() < split:
            if n_leaves(new) >= model.prior.max_leaves:
                return IMPOSSIBLE
            log_forth += math.log(split) + draw_weighed(model, work, MODE_COLUMNS, rng)
            grow(new, i)
            put_rule(work, new, i)
            end += 2
        else:
            log_forth += math.log1p(-split)
        i += 1
    if n_leaves(new) < model.prior.min_leaves:
        return IMPOSSIBLE
    log_back -= math.log(new.size[node] * sum_of_picks(new))
    log_forth -= math.log(tree.size[node] * all_forth)
    return log_back - log_forth


# ------------------------------------------------------------------ transpose
# v(f,t){a(g,s1){A,B}, b(g,s2){C,D}} becomes v(g,s){a(f,.){A,C}, b(f,.){B,D}}. Label: the node,
# which child's threshold rises, which new child inherits t; the other threshold is drawn. Back:
# the node, the child that rises is the one that inherited, and the heir is the one that rose.
# HMC-DFI has no equal columns: there, any two internal children do, and a whole rule is drawn.


@inlined
def can_transpose(tree, i):
    if tree.size[i] < 7:
        return False
    left, right = i + 1, i + 1 + tree.size[i + 1]
    if tree.size[left] == 1 or tree.size[right] == 1:
        return False
    return tree.weights.shape[1] > 0 or tree.feature[left] == tree.feature[right]


@kernel
def count_transposable(tree):
    count = 0
    for i in range(tree.n_nodes[0]):
        if can_transpose(tree, i):
            count += 1
    return count


@kernel
def nth_transposable(tree, k):
    for i in range(tree.n_nodes[0]):
        if can_transpose(tree, i):
            if k == 0:
                return i
            k -= 1
    return -1


@inlined
def transpose_informed(model, work, tree, new, mode, rng):
    candidates = count_transposable(tree)
    if candidates == 0:
        return IMPOSSIBLE
    v = nth_transposable(tree, pick(candidates, rng))
    a, b = v + 1, right_child(tree, v)
    left_rises = rng.random() < 0.5
    left_inherits = rng.random() < 0.5
    riser, dropped = (a, b) if left_rises else (b, a)
    log_back = log_one_rule(model, work, tree, dropped, mode)
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
    log_forth = draw_one_rule(model, work, new, drawn, mode, rng)
    if log_forth == -np.inf:
        return IMPOSSIBLE
    return log_back - log_forth + math.log(candidates) - math.log(count_transposable(new))


@inlined
def log_one_rule(model, work, tree, node, mode):
    left, right = node + 1, right_child(tree, node)
    find_rows(model, work, tree, node)
    if tree.weights.shape[1] > 0:
        _, log_density = weigh(model, work, tree, node, left, right, mode)
        return log_density
    return log_threshold_by_scan(model, work, tree, node, left, right)


@inlined
def draw_one_rule(model, work, tree, node, mode, rng):
    left, right = node + 1, right_child(tree, node)
    find_rows(model, work, tree, node)
    if tree.weights.shape[1] > 0:
        log_density = draw_rule_by_scan(model, work, tree, left, right, mode, rng)
        put_rule(work, tree, node)
        return log_density
    return draw_threshold_by_scan(model, work, tree, node, left, right, rng)


# ------------------------------------------------------------------ swap
# Label: an internal node with an internal parent. Its own reverse.


@inlined
def same_rule(tree, i, j):
    if tree.feature[i] != tree.feature[j] or tree.threshold[i] != tree.threshold[j]:
        return False
    for f in range(tree.weights.shape[1]):  # noqa: SIM110 (no generators in compiled code)
        if tree.weights[i, f] != tree.weights[j, f]:
            return False
    return True


@kernel
def swap_rules(tree, new, rng):
    """A parent and a child exchange rules; the node to settle, or -1 where it is not possible.

    Where both children have the same rule, both get the parent's. Where the other child has the
    parent's rule, the exchange would not be undone by another one, so it is refused.
    """
    pairs = n_leaves(tree) - 2  # every internal node but the root is a child
    if pairs < 1:
        return -1
    child = nth_internal(tree, 1 + pick(pairs, rng))
    parent = tree.parent[child]
    right = right_child(tree, parent)
    other = right if child == parent + 1 else parent + 1
    if tree.size[other] > 1:
        if same_rule(tree, other, parent):
            return -1
        if same_rule(tree, other, child):
            copy_rule(tree, parent, new, other)
    copy_rule(tree, child, new, parent)
    copy_rule(tree, parent, new, child)
    return parent


# ------------------------------------------------------------------ relocate
# Label: a node with a leaf child, which goes; in the tree without it any node, a side where that
# is internal, and a rule. Back: the same labels of the new split, from the same tree between.


@inlined
def has_leaf(tree, i):
    return tree.size[i] > 1 and (tree.size[i + 1] == 1 or tree.size[right_child(tree, i)] == 1)


@kernel
def count_removable(tree):
    count = 0
    for i in range(tree.n_nodes[0]):
        if has_leaf(tree, i):
            count += 1
    return count


@kernel
def nth_removable(tree, k):
    for i in range(tree.n_nodes[0]):
        if has_leaf(tree, i):
            if k == 0:
                return i
            k -= 1
    return -1


@inlined
def relocate_informed(model, work, tree, new, mode, rng):
    candidates = count_removable(tree)
    if candidates == 0:
        return IMPOSSIBLE
    node = nth_removable(tree, pick(candidates, rng))
    if tree.size[node] == 3:
        find_rows(model, work, new, node)
        _, log_back = weigh(model, work, new, node, NEW_LEAF, NEW_LEAF, mode)
        prune(new, node)
    else:
        log_back = remove_rule(model, work, new, node, mode) - math.log(2.0)
    target = pick(new.n_nodes[0], rng)
    if new.size[target] == 1:
        find_rows(model, work, new, target)
        log_forth = draw_rule_by_scan(model, work, new, NEW_LEAF, NEW_LEAF, mode, rng)
        if log_forth == -np.inf:
            return IMPOSSIBLE
        grow(new, target)
        put_rule(work, new, target)
    else:
        log_forth = insert_rule(model, work, new, target, mode, rng) - math.log(2.0)
        if log_forth == -np.inf:
            return IMPOSSIBLE
    return log_back - log_forth + math.log(candidates) - math.log(count_removable(new))


# ------------------------------------------------------------------ one of them


@kernel
def propose_informed(model, work, tree, new, move, mode, rng):
    """Edit ``new``, a copy of ``tree``, by a move; log q(back) - log q(forth)."""
    never_inline()
    if move == GROW:
        return grow_informed(model, work, new, mode, rng)
    if move == PRUNE:
        return prune_informed(model, work, new, mode, rng)
    if move == INSERT:
        return insert_informed(model, work, new, mode, rng)
    if move == DELETE:
        return delete_informed(model, work, new, mode, rng)
    if move == CHANGE:
        return change_informed(model, work, new, mode, rng)
    if move == REGROW:
        return regrow_informed(model, work, tree, new, rng)
    if move == TRANSPOSE:
        return transpose_informed(model, work, tree, new, mode, rng)
    if move == SWAP:
        return 0.0 if swap_rules(tree, new, rng) >= 0 else IMPOSSIBLE
    if move == ROTATE:
        return 0.0 if rotate(tree, new, rng) else IMPOSSIBLE
    return relocate_informed(model, work, tree, new, mode, rng)
