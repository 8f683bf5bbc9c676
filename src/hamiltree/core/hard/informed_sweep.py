"""Informed moves between hard trees: ``core.moves`` proposes, ``moves`` settles and decides.

The scans look at every row as CGM's rule priors do, so that what they draw is available at its own
node. Whether what stands below is still available, ``settle`` finds out.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from ..backend.jit import kernel
from ..backend.records import CONSTANT, Int1, Int3, Record
from ..moves.propose import ENTRIES, NAMES, PROPOSE, move_of, propose_informed
from ..scan.data import ScanData, ScanModel, make_scan
from ..scan.proposals import MODE_COLUMNS, Proposals, make_proposals
from ..scan.scores import fill_first_tables
from ..tree.nodes import ZERO, copy_tree
from .moves import INFORMED, UNKNOWN, accept_or_refuse
from .partition import copy_cells


class Explorer(Record, role="state"):
    """What the informed moves of one chain need beside its state."""

    proposals: Proposals
    propose: Annotated[Any, PROPOSE]
    """``moves.propose.propose_informed``."""
    sweep: Annotated[Int1, CONSTANT]
    """Moves of an iteration, in order, numbered as in ``moves.propose``."""
    tally: Int3
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""


def make_explorer(
    data: ScanData, model: ScanModel, sweep: tuple[str, ...], max_leaves: int
) -> Explorer:
    scan = fill_first_tables(make_scan(data, model, max_leaves, 0))
    return Explorer(
        proposals=make_proposals(scan),
        propose=propose_informed,
        sweep=np.array([ENTRIES[name] for name in sweep], np.int64),
        tally=np.zeros((2, len(NAMES), 2), np.int64),
    )


@kernel
def same_node(tree, i, other, j):
    if tree.size[i] == 1 or other.size[j] == 1:
        return tree.size[i] == other.size[j]
    if tree.feature[i] != other.feature[j] or tree.threshold[i] != other.threshold[j]:
        return False
    return tree.levels[i] == other.levels[j]


@kernel
def changed_subtree(tree, new):
    """The smallest subtree in which two trees differ, by its root's place in both; -1 if none.

    Nodes that come before the first difference have the same places in both trees, and so have
    its ancestors.
    """
    n, m = tree.n_nodes[0], new.n_nodes[0]
    at = 0
    while at < min(n, m) and same_node(tree, at, new, at):
        at += 1
    if at == n:
        return -1
    alike = 0
    while alike < min(n, m) - at and same_node(tree, n - 1 - alike, new, m - 1 - alike):
        alike += 1
    while at > 0:
        after, new_after = n - at - tree.size[at], m - at - new.size[at]
        if after == new_after and after <= alike:
            break
        at = tree.parent[at]
    return at


@kernel
def carry_cells(state, at):
    """Cells of all nodes outside the subtree that changed, at their new places."""
    tree, cells, new_cells = state.tree, state.cells, state.new_cells
    shift = state.new_tree.n_nodes[0] - tree.n_nodes[0]
    copy_cells(cells, ZERO, new_cells, ZERO, at + 1)
    after = at + tree.size[at]
    copy_cells(cells, after, new_cells, after + shift, tree.n_nodes[0] - after)


@kernel
def attempt_informed(model, state, explorer, move, rng):
    """Propose a move and accept it or not; returns whether the tree changed."""
    tree, new = state.tree, state.new_tree
    copy_tree(tree, new)
    propose = explorer.propose
    log_ratio = propose(explorer.proposals, tree, new, move, MODE_COLUMNS, rng)
    if log_ratio == -np.inf:
        return False
    at = changed_subtree(tree, new)
    if at < 0:
        return False
    carry_cells(state, at)
    return accept_or_refuse(model, state, INFORMED, log_ratio, at, UNKNOWN, rng)


@kernel
def sweep_hard_tree(model, state, explorer, phase, rng):
    """Attempt the moves of the sweep one by one."""
    for k in range(explorer.sweep.shape[0]):
        move = move_of(explorer.sweep[k], rng)
        if move < 0:
            continue
        explorer.tally[phase, move, 1] += 1
        if attempt_informed(model, state, explorer, move, rng):
            explorer.tally[phase, move, 0] += 1
