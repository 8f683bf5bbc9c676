"""The compiled loop of RJHMC-Tree: one iteration after the other, and the draws they leave.

``composed`` (the default): rule sweep, NUTS, jump, each leaving the posterior invariant.
``double-sided`` (algorithm 1 of the paper): k steps, a jump, k steps, one acceptance. Side one runs
[rules, NUTS] and side two [NUTS, rules], the reverse of one another, so that the ratio's
derivation holds although neither composition is reversible by itself.

An iteration ends with what there is beside the tree: a learned h, and the leaf probabilities of the
likelihood that is normalised over labels.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel
from ..backend.records import RNG
from ..backend.units import unit
from ..sampling import accept
from ..tree.nodes import copy_tree
from ..tree.priors import draw_small_tree
from ..tree.record import (
    ACCEPT_STAT,
    DIVERGENT,
    LOG_POSTERIOR,
    N_GRADIENTS,
    NUTS_DEPTH,
    STEP_SIZE,
    Block,
    is_full,
)
from .adaptation import end_window, freeze
from .data import LABELS, has_noise
from .hmc_steps import SAMPLING, WARMUP, Calls, Plan, State, set_h, sweep_moves
from .leaf_probabilities import refresh_probabilities, start_probabilities
from .learned_h import log_prior_of_h
from .prior_jumps import STAY
from .record import record_tree
from .target import likelihood, log_posterior


@inlined
def update_the_rest(state, plan, calls, phase, rng):
    """A learned h, and leaf probabilities, given the tree."""
    model, tree, update_h = state.model, state.tree, calls.update_h
    # before there is a tree, large h fits a regression best, and what grows then is slow to undo
    waits = has_noise(model.family) and 4 * state.iteration[0] < plan.n_warmup
    if plan.h_prior.learned and not waits:
        moves, adapting = state.tuning.h_moves, phase == WARMUP
        log_like = update_h(
            model, tree, state.work, plan.h_prior, moves, adapting, state.log_like[0], rng
        )
        state.log_like[0] = log_like
        if has_noise(model.family):
            state.proposals.scan.tables.sigma[0] = np.nan  # its tables were for another h
    if model.family == LABELS:
        log_like = refresh_probabilities(model, tree, state.work, state.log_like[0], rng)
        state.log_like[0] = log_like


@inlined
def one_iteration(state, plan, calls, phase, rng):
    """x -> x' (k steps), x' -> x'' (jump) and, double-sided, x'' -> x* (k steps); accept or not.

    Composed, x' is kept whatever becomes of the jump. Double-sided, one decision is made at the
    end, and x is kept where it is negative (algorithm 1).
    """
    model, tree, proposal, tally = state.model, state.tree, state.proposal, state.tally[phase]
    steps, jump = calls.steps, calls.jump
    if plan.sweep.shape[0] > 0:
        sweep_moves(state, plan.sweep, phase, rng)
    start = log_posterior(model, tree, state.log_like[0])
    copy_tree(tree, proposal)
    log_like = state.log_like[0]
    info, log_like, step = steps(state, plan, proposal, log_like, phase, True, rng)
    if not plan.double_sided:
        copy_tree(proposal, tree)
        state.log_like[0] = log_like
    if not plan.prior_moves:
        return info, step
    if model.family == LABELS:
        calls.label_jump(state, plan, jump, phase, rng)
        return info, step
    before = log_posterior(model, proposal, log_like)
    move, log_q = jump(model, proposal, plan.probs[phase], rng)
    tally[move, 1] += 1
    if log_q == -np.inf:
        return info, step
    if move != STAY:
        log_like = likelihood(model, proposal, state.work)
    after = log_posterior(model, proposal, log_like)
    if plan.double_sided:
        info, log_like, step = steps(state, plan, proposal, log_like, phase, False, rng)
    log_ratio = after - before + log_q
    if plan.biased[phase]:
        log_ratio = log_posterior(model, proposal, log_like) - start + log_q
    if accept(log_ratio, rng):
        tally[move, 0] += 1
        copy_tree(proposal, tree)
        state.log_like[0] = log_like
    return info, step


@kernel
def root_mean_square(data):
    """Of y."""
    y, total = data.y, 0.0
    for r in range(y.shape[1]):
        total += y[0, r] * y[0, r]
    return math.sqrt(total / data.mass)


@inlined
def begin(state, rng):
    """The first tree of a chain.

    Its noise is no smaller than y is: with little noise the first sweep would grow a large tree,
    and the first update of sigma, from a height that low, could end anywhere.
    """
    draw_small_tree(state.model.prior, state.model.leaf_prior, state.tree, rng)
    if has_noise(state.model.family):
        state.tree.sigma[0] = max(state.tree.sigma[0], root_mean_square(state.model.data))
    if state.model.family == LABELS:
        state.log_like[0] = start_probabilities(state.model, state.tree, state.work, rng)
    else:
        state.log_like[0] = likelihood(state.model, state.tree, state.work)


@inlined
def record_draw(state, plan, block, info, step, rng):
    """Write the tree, a learned h, and what NUTS did."""
    row = record_tree(state.model, state.tree, state.work, block, rng)
    scalars = block.scalars
    if plan.h_prior.learned:
        for f in range(block.h.shape[1]):
            block.h[row, f] = state.model.h[f]
        scalars[row, LOG_POSTERIOR] += log_prior_of_h(state.model, plan.h_prior)
    scalars[row, DIVERGENT] = 1.0 if info.divergent else 0.0
    scalars[row, NUTS_DEPTH] = info.depth
    scalars[row, STEP_SIZE] = step
    scalars[row, ACCEPT_STAT] = info.accept_stat
    scalars[row, N_GRADIENTS] = info.n_gradients


@kernel
def advance(state, plan, calls, block, n, rng):
    """Up to n iterations, fewer when the block is full; returns how many."""
    model = state.model
    if state.iteration[0] == 0 and n > 0:
        begin(state, rng)
    for done in range(n):
        t = state.iteration[0]
        phase = WARMUP if t < plan.n_warmup else SAMPLING
        if phase == SAMPLING and plan.keep and is_full(block, model.prior.max_leaves):
            return done
        if not plan.adapt_each:
            h = plan.h_warmup[t] if phase == WARMUP else plan.h_final
            if not plan.h_prior.learned and set_h(model, h):
                state.log_like[0] = likelihood(model, state.tree, state.work)
            if t == plan.n_warmup:
                freeze(state.tuning)
        info, step = one_iteration(state, plan, calls, phase, rng)
        update_the_rest(state, plan, calls, phase, rng)
        if phase == WARMUP:
            if plan.window_end[t]:
                end_window(state.tuning)
        elif plan.keep:
            record_draw(state, plan, block, info, step, rng)
        state.iteration[0] = t + 1
    return n


unit(advance, State, Plan, Calls, Block, int, RNG, seconds=5)
