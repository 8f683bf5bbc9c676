"""A search for the hard tree of highest log posterior, by the informed moves of its chains."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import RNG, Float1
from ..backend.units import unit
from ..moves.propose import move_of
from ..sampling import LEAST_GAIN, accept_gain, tempered
from ..scan.proposals import MODE_COLUMNS
from ..tree.nodes import ZERO, Tree, copy_tree
from .informed_sweep import Explorer, carry_cells, changed_subtree
from .moves import UNKNOWN, HardModel, HardState, log_marginal, settle
from .partition import copy_cells, copy_rows
from .shapes import log_tree_prior


@kernel
def place_hard(model, state):
    """Find out all about ``state.tree``, whose shape and rules are given; its log posterior."""
    cells = state.cells
    cells.start[0] = 0
    cells.stop[0] = cells.rows.shape[0]
    for k in range(cells.rows.shape[0]):
        cells.rows[k] = k
    if not settle(model, state.tree, cells, ZERO, UNKNOWN, state.spare, state.rule_work):
        return -np.inf
    state.log_prior[0] = log_tree_prior(model.shape, state.tree, cells)
    state.log_like[0] = log_marginal(model, state.tree, cells)
    return state.log_prior[0] + tempered(model.power[0], state.log_like[0])


@kernel
def gain_of(model, state, at, power):
    """Settle the proposal at a node; its log posterior less the state's, and both its parts."""
    cells, new_tree, new_cells = state.cells, state.new_tree, state.new_cells
    copy_rows(cells.rows, new_cells.rows, new_cells.start[at], new_cells.stop[at])
    if not settle(model, new_tree, new_cells, at, UNKNOWN, state.spare, state.rule_work):
        return -np.inf, 0.0, 0.0
    log_prior = log_tree_prior(model.shape, new_tree, new_cells)
    log_like = log_marginal(model, new_tree, new_cells)
    gain = log_prior - state.log_prior[0]
    gain += tempered(power, log_like) - tempered(power, state.log_like[0])
    return gain, log_prior, log_like


@kernel
def climb_hard(model, state, explorer, coldness, best, found, rng):
    """Sweeps from the state, one for each ``coldness``, whose target is the posterior to it.

    At infinity only what improves is accepted. ``best`` becomes the best tree that was met, if its
    log posterior is above ``found`` [1], which becomes it. Scans see the likelihood to the power
    that ``model.power`` has; the posterior's own is ``found[1]``.
    """
    power = found[1]
    tree, new, cells, new_cells = state.tree, state.new_tree, state.cells, state.new_cells
    propose = explorer.propose
    for t in range(coldness.shape[0]):
        cold = coldness[t]
        if not math.isinf(cold):
            model.power[0] = cold * power
        for k in range(explorer.sweep.shape[0]):
            move = move_of(explorer.sweep[k], rng)
            if move < 0:
                continue
            copy_tree(tree, new)
            log_q = propose(explorer.proposals, tree, new, move, MODE_COLUMNS, rng)
            if log_q == -np.inf:
                continue
            at = changed_subtree(tree, new)
            if at < 0:
                continue
            carry_cells(state, at)
            gain, log_prior, log_like = gain_of(model, state, at, power)
            if not accept_gain(gain, log_q, cold, rng):
                continue
            copy_rows(new_cells.rows, cells.rows, new_cells.start[at], new_cells.stop[at])
            copy_tree(new, tree)
            copy_cells(new_cells, ZERO, cells, ZERO, new.n_nodes[0])
            state.log_prior[0] = log_prior
            state.log_like[0] = log_like
            value = log_prior + tempered(power, log_like)
            if value > found[0] + LEAST_GAIN:
                found[0] = value
                copy_tree(tree, best)
    model.power[0] = power


unit(place_hard, HardModel, HardState, seconds=4)
unit(climb_hard, HardModel, HardState, Explorer, Float1, Tree, Float1, RNG, seconds=2)
