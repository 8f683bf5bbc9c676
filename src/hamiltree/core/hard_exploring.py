"""Informed moves between hard trees: ``informed`` proposes, ``hard_moves`` settles and decides.

The scans look at every row as CGM's rule priors do, so that what they draw is available at its own
node. Whether what stands below is still available, ``settle`` finds out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from .hard_moves import INFORMED, UNKNOWN, HardModel, HardState, accept_or_refuse
from .informed import ENTRIES, GROW, NAMES, move_of, propose_informed
from .jit import inlined, kernel, never_inline, opaque
from .nodes import copy_tree
from .partition import copy_cell
from .proposed_rules import MODE_COLUMNS, connect
from .references import refer
from .scan_data import ScanModel, ScanWork
from .scan_scores import make_scorer


class Explorer(NamedTuple):
    """What the informed moves of one chain need beside its state."""

    scan_model: ScanModel
    scan_work: ScanWork
    sweep: NDArray[np.int64]
    """Moves of an iteration, in order, numbered as in ``informed``."""
    tally: NDArray[np.int64]
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""
    propose: int
    """Where this process keeps ``propose_informed``, compiled apart; see ``jit.opaque``."""


_propose, _propose_address = opaque(propose_informed, returns=types.float64)


def make_explorer(
    scan_model: ScanModel,
    sweep: tuple[str, ...],
    model: HardModel,
    state: HardState,
    rng: np.random.Generator,
) -> Explorer:
    """Compiles the moves, or loads what was compiled before."""
    work = make_scorer(scan_model, model.shape.max_leaves, 0)
    scan_model = connect(scan_model, work, state.tree, rng)
    address = _propose_address(
        scan_model, work, state.tree, state.new_tree, GROW, MODE_COLUMNS, rng
    )
    return Explorer(
        scan_model=scan_model,
        scan_work=work,
        sweep=np.array([ENTRIES[name] for name in sweep], np.int64),
        tally=np.zeros((2, len(NAMES), 2), np.int64),
        propose=address,
    )


@inlined
def same_node(tree, i, other, j):
    if tree.size[i] == 1 or other.size[j] == 1:
        return tree.size[i] == other.size[j]
    return tree.feature[i] == other.feature[j] and tree.threshold[i] == other.threshold[j]


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


@inlined
def carry_cells(state, at):
    """Cells of all nodes outside the subtree that changed, at their new places."""
    tree, cells, new_cells = state.tree, state.cells, state.new_cells
    shift = state.new_tree.n_nodes[0] - tree.n_nodes[0]
    for i in range(at + 1):
        copy_cell(cells, i, new_cells, i)
    for i in range(at + tree.size[at], tree.n_nodes[0]):
        copy_cell(cells, i, new_cells, i + shift)


@kernel
def attempt_informed(model, state, explorer, move, rng):
    """Propose a move and accept it or not; returns whether the tree changed."""
    never_inline()
    tree, new = state.tree, state.new_tree
    copy_tree(tree, new)
    log_ratio = _propose(
        explorer.propose,
        (explorer.scan_model, explorer.scan_work, tree, new, move, MODE_COLUMNS, rng),
    )
    if log_ratio == -np.inf:
        return False
    at = changed_subtree(tree, new)
    if at < 0:
        return False
    carry_cells(state, at)
    return accept_or_refuse(model, state, INFORMED, log_ratio, at, UNKNOWN, rng)


@inlined
def sweep_hard_tree(given_model, given_state, given_explorer, phase, rng):
    """Attempt the moves of the sweep one by one."""
    model, state, explorer = refer(given_model), refer(given_state), refer(given_explorer)
    for k in range(explorer.sweep.shape[0]):
        move = move_of(explorer.sweep[k], rng)
        if move < 0:
            continue
        explorer.tally[phase, move, 1] += 1
        if attempt_informed(model, state, explorer, move, rng):
            explorer.tally[phase, move, 0] += 1
