"""Moves between hard trees: grow, prune, change, swap and restructure, for any rule prior.

A move builds a proposal beside the current tree and returns the log ratio of the densities of
proposing back and forth; priors and likelihoods of both trees are compared in one place,
``accept_or_refuse``. A move that is not possible is refused: the chain stays.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from ..backend.jit import kernel
from ..backend.records import CONSTANT, SCRATCH, STATE, Float1, Int1, Record
from ..moves.swap import swap_rules
from ..sampling import accept, pick, tempered
from ..tree.nodes import (
    INTERNAL,
    PRUNABLE,
    ZERO,
    Tree,
    copy_tree,
    count_kind,
    grow,
    n_leaves,
    nth_kind,
    prune,
)
from .leaves import LeafModel, combine, leaf_parts
from .partition import HardData, NodeCells, copy_cells, copy_rows, split_by_rule, sum_rows
from .restructure import PartitionWork, restructure
from .rules import RuleModel, RuleWork, draw_rule_at, log_draw_at, log_rule_at, some_rule
from .shapes import ShapePrior, log_tree_prior

GROW, PRUNE, CHANGE, SWAP, RESTRUCTURE, INFORMED = 0, 1, 2, 3, 4, 5
UNKNOWN = np.nan
"""Log prior of a rule that is still to be computed."""


class HardModel(Record):
    """All that defines the posterior over hard trees."""

    data: HardData
    rules: RuleModel
    shape: ShapePrior
    leaf: LeafModel
    power: Annotated[Float1, STATE]
    """[1]; the likelihood enters to this power; 0 leaves the prior."""


class HardState(Record, role="state"):
    """One chain's tree, the proposal beside it, and scratch."""

    tree: Tree
    cells: NodeCells
    new_tree: Annotated[Tree, SCRATCH]
    new_cells: Annotated[NodeCells, SCRATCH]
    log_prior: Float1
    """[1]; of ``tree``, as is the next."""
    log_like: Float1
    spare: Annotated[Int1, SCRATCH]
    """[n]"""
    no_rows: Annotated[Float1, CONSTANT]
    """[n_stats]; zeros: the sums of a leaf without rows."""
    rule_work: RuleWork
    partition_work: PartitionWork


@kernel
def settle(model, tree, cells, at, log_rule, spare, rule_work):
    """Partition the rows of the subtree at a node and fill its cells; False if its prior is 0.

    The node's own rows stand in their range, in any order. ``log_rule`` is the log prior of its
    rule, or UNKNOWN.
    """
    data, rules = model.data, model.rules
    for i in range(at, at + tree.size[at]):
        start, stop = cells.start[i], cells.stop[i]
        if tree.size[i] == 1:
            sum_rows(data, cells.rows, start, stop, cells.stats[i])
            cells.part[i], cells.spread[i] = leaf_parts(model.leaf, cells.stats[i])
            cells.can_split[i] = some_rule(rules, data, cells.rows, start, stop)
            continue
        if i > at or math.isnan(log_rule):
            log_rule = log_rule_at(rules, data, rule_work, cells.rows, start, stop, tree, i)
            if log_rule == -np.inf:
                return False
        cells.log_rule[i] = log_rule
        cells.can_split[i] = True
        middle = split_by_rule(data, tree, i, cells.rows, spare, start, stop)
        left, right = i + 1, i + 1 + tree.size[i + 1]
        cells.start[left], cells.stop[left] = start, middle
        cells.start[right], cells.stop[right] = middle, stop
    for i in range(at + tree.size[at] - 1, at - 1, -1):
        if tree.size[i] > 1:
            for s in range(cells.stats.shape[1]):
                right = i + 1 + tree.size[i + 1]
                cells.stats[i, s] = cells.stats[i + 1, s] + cells.stats[right, s]
    return True


@kernel
def log_marginal(model, tree, cells):
    """Log marginal likelihood of the tree from its leaves' parts."""
    part = 0.0
    spread = 0.0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            part += cells.part[i]
            spread += cells.spread[i]
    return combine(model.leaf, part, spread, model.data.mass)


@kernel
def count_open(tree, cells):
    """Leaves in which a rule is available."""
    count = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1 and cells.can_split[i]:
            count += 1
    return count


@kernel
def nth_open(tree, cells, k):
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1 and cells.can_split[i]:
            if k == 0:
                return i
            k -= 1
    return -1


# ------------------------------------------------------------------ the moves
# Each returns (log ratio of proposing back and forth, node whose subtree is to be settled or -1,
# log prior of that node's rule). ``state.new_tree`` and ``new_cells`` start as copies.


@kernel
def propose_grow(model, state, rng):
    """Split an open leaf, all alike, by a drawn rule; back: prune that node."""
    tree, cells = state.new_tree, state.new_cells
    n_open = count_open(tree, cells)
    if n_open == 0 or n_leaves(tree) >= model.shape.max_leaves:
        return -np.inf, -1, UNKNOWN
    leaf = nth_open(tree, cells, pick(n_open, rng))
    f, threshold, levels, log_density, log_rule = draw_rule_at(
        model.rules,
        model.data,
        state.rule_work,
        state.cells.rows,
        cells.start[leaf],
        cells.stop[leaf],
        rng,
    )
    copy_cells(cells, leaf + 1, cells, leaf + 3, tree.n_nodes[0] - leaf - 1)
    grow(tree, leaf)
    tree.feature[leaf] = f
    tree.threshold[leaf] = threshold
    tree.levels[leaf] = levels
    log_forth = log_density - math.log(n_open)
    log_back = -math.log(count_kind(tree, PRUNABLE))
    return log_back - log_forth, leaf, log_rule


@kernel
def propose_prune(model, state, rng):
    """Make a leaf of a node with two leaves, all alike; back: grow it with the same rule."""
    tree, cells = state.new_tree, state.new_cells
    candidates = count_kind(tree, PRUNABLE)
    if candidates == 0 or n_leaves(tree) <= model.shape.min_leaves:
        return -np.inf, -1, UNKNOWN
    node = nth_kind(tree, PRUNABLE, pick(candidates, rng))
    log_density = log_draw_at(
        model.rules,
        model.data,
        state.cells.rows,
        cells.start[node],
        cells.stop[node],
        tree,
        node,
        cells.log_rule[node],
    )
    copy_cells(cells, node + 3, cells, node + 1, tree.n_nodes[0] - node - 3)
    prune(tree, node)
    cells.part[node], cells.spread[node] = leaf_parts(model.leaf, cells.stats[node])
    log_forth = -math.log(candidates)
    log_back = log_density - math.log(count_open(tree, cells))
    return log_back - log_forth, -1, UNKNOWN


@kernel
def propose_change(model, state, rng):
    """Draw the rule of an internal node anew; its rows, hence what can be drawn, stay the same."""
    tree, cells = state.new_tree, state.new_cells
    splits = n_leaves(tree) - 1
    if splits == 0:
        return -np.inf, -1, UNKNOWN
    node = nth_kind(tree, INTERNAL, pick(splits, rng))
    start, stop = cells.start[node], cells.stop[node]
    rows = state.cells.rows
    log_back = log_draw_at(
        model.rules, model.data, rows, start, stop, tree, node, cells.log_rule[node]
    )
    f, threshold, levels, log_forth, log_rule = draw_rule_at(
        model.rules, model.data, state.rule_work, rows, start, stop, rng
    )
    tree.feature[node] = f
    tree.threshold[node] = threshold
    tree.levels[node] = levels
    return log_back - log_forth, node, log_rule


@kernel
def propose_swap(state, rng):
    """An internal parent and child, all pairs alike, exchange rules; its own reverse."""
    parent = swap_rules(state.tree, state.new_tree, rng)
    return -np.inf if parent < 0 else 0.0, parent, UNKNOWN


@kernel
def propose_restructure(model, state, rng):
    """A new tree over the same leaves."""
    log_ratio = restructure(
        model.data, state.tree, state.cells, state.new_tree, state.partition_work, rng
    )
    return log_ratio, 0, UNKNOWN


# ------------------------------------------------------------------ accept or refuse


@kernel
def attempt(model, state, move, rng):
    """Propose a move and accept it or not; returns whether it was accepted."""
    tree, cells = state.tree, state.cells
    new_tree, new_cells = state.new_tree, state.new_cells
    copy_tree(tree, new_tree)
    copy_cells(cells, ZERO, new_cells, ZERO, tree.n_nodes[0])
    if move == GROW:
        log_ratio, at, log_rule = propose_grow(model, state, rng)
    elif move == PRUNE:
        log_ratio, at, log_rule = propose_prune(model, state, rng)
    elif move == CHANGE:
        log_ratio, at, log_rule = propose_change(model, state, rng)
    elif move == SWAP:
        log_ratio, at, log_rule = propose_swap(state, rng)
    elif move == RESTRUCTURE:
        log_ratio, at, log_rule = propose_restructure(model, state, rng)
    else:
        return False
    if log_ratio == -np.inf:
        return False
    return accept_or_refuse(model, state, move, log_ratio, at, log_rule, rng)


@kernel
def accept_or_refuse(model, state, move, log_ratio, at, log_rule, rng):
    """Settle the proposal at a node (-1: it is), compare both trees, and move or stay."""
    tree, cells = state.tree, state.cells
    new_tree, new_cells = state.new_tree, state.new_cells
    if at >= 0:
        copy_rows(cells.rows, new_cells.rows, new_cells.start[at], new_cells.stop[at])
        if not settle(model, new_tree, new_cells, at, log_rule, state.spare, state.rule_work):
            return False
    log_prior = log_tree_prior(model.shape, new_tree, new_cells)
    log_ratio += log_prior - state.log_prior[0]
    log_like = log_marginal(model, new_tree, new_cells)
    if move != RESTRUCTURE:  # the leaves stay, and with them the likelihood but for rounding
        power = model.power[0]
        log_ratio += tempered(power, log_like) - tempered(power, state.log_like[0])
    if not accept(log_ratio, rng):
        return False
    if at >= 0:
        copy_rows(new_cells.rows, cells.rows, new_cells.start[at], new_cells.stop[at])
    copy_tree(new_tree, tree)
    copy_cells(new_cells, ZERO, cells, ZERO, new_tree.n_nodes[0])
    state.log_prior[0] = log_prior
    state.log_like[0] = log_like
    return True
