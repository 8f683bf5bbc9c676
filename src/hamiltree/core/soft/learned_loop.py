"""The compiled loop of RJHMC-Tree with h="learn": its kernels, and steps of h.

Regression: the sweep and NUTS as they are, then h by slice sampling. Classification: each informed
move, and NUTS, is corrected on its own for the likelihood that is normalised over labels
(``learned_h`` says how); each is reversible, which the sweep as a whole is not. Then h, and then
the leaf probabilities by way of a leaf drawn for each row.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..backend.records import RNG
from ..backend.units import unit
from ..sampling import tempered
from ..tree.nodes import copy_tree, n_leaves
from ..tree.priors import log_prior
from ..tree.record import LEAVES, LOG_LIKELIHOOD, LOG_POSTERIOR, Block, is_full
from .adaptation import end_window, freeze
from .data import CLASSES
from .hmc_steps import SAMPLING, WARMUP, Calls, Plan, State, sweep_moves
from .learned_h import LearnedH, correct, log_dirichlet, log_prior_of_h, refresh, update_h
from .loop import begin, record_draw
from .target import likelihood


@kernel
def remember(state, learning, phase):
    """Where a step starts, and goes back to when it is refused."""
    copy_tree(state.tree, learning.before)
    learning.like_before[0] = state.log_like[0]
    for move in range(learning.accepted_before.shape[0]):
        learning.accepted_before[move] = state.informed_tally[phase, move, 0]


@kernel
def corrected_moves(state, plan, learning, phase, rng):
    """The sweep, each accepted move corrected for what the target has beside the moves' own."""
    tally = state.informed_tally[phase]
    for k in range(plan.sweep.shape[0]):
        remember(state, learning, phase)
        sweep_moves(state, plan.sweep[k : k + 1], phase, rng)
        for move in range(tally.shape[0]):
            if tally[move, 0] > learning.accepted_before[move]:  # one at most
                log_like, kept = correct(
                    state.model, state.tree, state.work, learning, state.log_like[0], rng
                )
                state.log_like[0] = log_like
                if not kept:
                    tally[move, 0] -= 1


@kernel
def nuts_step(state, plan, steps, phase, rng):
    info, log_like, step = steps(state, plan, state.tree, state.log_like[0], phase, True, rng)
    state.log_like[0] = log_like
    return info, step


@kernel
def classification_iteration(state, plan, steps, learning, phase, rng):
    model = state.model
    corrected_moves(state, plan, learning, phase, rng)
    remember(state, learning, phase)
    info, step = nuts_step(state, plan, steps, phase, rng)
    if n_leaves(state.tree) > 1:
        log_like, kept = correct(model, state.tree, state.work, learning, state.log_like[0], rng)
        state.log_like[0] = log_like
        learning.nuts_tally[phase, 0] += 1 if kept else 0
        learning.nuts_tally[phase, 1] += 1
    update_h(model, state.tree, state.work, learning, learning.log_like[0], rng)
    state.log_like[0] = likelihood(model, state.tree, state.work)
    refresh(model, state.tree, state.work, learning, state.log_like[0], rng)
    return info, step


@kernel
def regression_iteration(state, plan, steps, learning, phase, rng):
    sweep_moves(state, plan.sweep, phase, rng)
    info, step = nuts_step(state, plan, steps, phase, rng)
    if 4 * state.iteration[0] >= plan.n_warmup:
        # before there is a tree, large h fits best, and what then grows takes long to undo
        state.log_like[0] = update_h(
            state.model, state.tree, state.work, learning, state.log_like[0], rng
        )
        state.proposals.scan.tables.sigma[0] = np.nan  # its tables were for another h
    return info, step


@kernel
def record_learned(state, learning, block, row):
    """h, and the density of all that is learned; for classification the rows of each leaf.

    Given the rows of its leaf, the probabilities of a leaf are Dirichlet: so counts of rows mean to
    predictions and intervals what they mean where probabilities are integrated out.
    """
    model, tree, scalars = state.model, state.tree, block.scalars
    for f in range(block.h.shape[1]):
        block.h[row, f] = model.h[f]
    if model.family == CLASSES:
        leaves = n_leaves(tree)
        first = block.filled[LEAVES] - leaves
        for k in range(leaves):
            for m in range(block.leaf.shape[1]):
                block.leaf[first + k, m] = learning.rows[k, m]
        scalars[row, LOG_LIKELIHOOD] = learning.log_like[0]
        scalars[row, LOG_POSTERIOR] = log_prior(False, model.prior, model.leaf_prior, tree)
        scalars[row, LOG_POSTERIOR] += log_dirichlet(learning.prior, learning.p, leaves)
        scalars[row, LOG_POSTERIOR] += tempered(model.power[0], learning.log_like[0])
    scalars[row, LOG_POSTERIOR] += log_prior_of_h(model, learning)


@kernel
def advance_learning(state, plan, calls, learning, block, n, rng):
    """Up to n iterations, fewer when the block is full; returns how many."""
    model, steps = state.model, calls.steps
    if state.iteration[0] == 0 and n > 0:
        begin(state, rng)
        if model.family == CLASSES:
            learning.p[0] = 1.0 / learning.p.shape[1]
            refresh(model, state.tree, state.work, learning, state.log_like[0], rng)
    for done in range(n):
        t = state.iteration[0]
        phase = WARMUP if t < plan.n_warmup else SAMPLING
        if phase == SAMPLING and is_full(block, model.prior.max_leaves):
            return done
        if t == plan.n_warmup:
            freeze(state.tuning)
        if model.family == CLASSES:
            info, step = classification_iteration(state, plan, steps, learning, phase, rng)
        else:
            info, step = regression_iteration(state, plan, steps, learning, phase, rng)
        if phase == SAMPLING:
            row = record_draw(state, block, info, step, rng)
            record_learned(state, learning, block, row)
        elif plan.window_end[t]:
            end_window(state.tuning)
        state.iteration[0] = t + 1
    return n


unit(advance_learning, State, Plan, Calls, LearnedH, Block, int, RNG)
