"""The steps of RJHMC-Tree between two jumps: rules and NUTS at one topology, and their adaptation.

``one_side`` runs k of them. Step sizes and masses are those kept for trees of this size (learnt in
warm-up, frozen after it), or those of the paper's intermediate burn-in, learnt here from scratch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .adaptation import (
    COUNT,
    LOG_STEP,
    LOG_STEP_BAR,
    Tuning,
    nearest_step,
    place_of,
    record_moves,
    restart_averager,
    update_averager,
)
from .buffers import Work
from .exploring import informed_sweep
from .jit import inlined, kernel, opaque
from .nodes import Tree, n_leaves
from .nuts import NutsInfo, NutsWork
from .rules import RuleWork, update_features, update_hard_rules
from .scan_data import ScanModel, ScanWork
from .target import (
    Model,
    constrain,
    dimension,
    first_step_on_tree,
    likelihood,
    nuts_on_tree,
    unconstrain,
)

WARMUP, SAMPLING = 0, 1


class Plan(NamedTuple):
    """Frozen configuration of the compiled loop."""

    index_update: int
    double_sided: bool
    adapt_each: bool
    """Adapt NUTS inside every transition, as the paper does; otherwise in warm-up only."""
    inner_steps: int
    probs: NDArray[np.float64]
    """[2, 3]; grow, prune, stay in warm-up and sampling."""
    biased: NDArray[np.bool_]
    """[2]; the paper's burn-in acceptance, in warm-up and sampling."""
    target_accept: float
    max_depth: int
    n_warmup: int
    h_warmup: NDArray[np.float64]
    """[n_warmup, p], or [n_warmup, 1] for all columns alike; softness in warm-up (exact
    adaptation), as are the next two."""
    window_end: NDArray[np.bool_]
    """[n_warmup]; renew the masses after this iteration."""
    h_adapt: NDArray[np.float64]
    """[adapt_steps, p or 1]; within a transition (the paper's adaptation)."""
    adapt_slow: NDArray[np.bool_]
    """[adapt_steps]; inside the slow windows, where the mass is learnt."""
    adapt_end: NDArray[np.bool_]
    """[adapt_steps]; a slow window ends after this step."""
    h_final: NDArray[np.float64]
    """[p or 1]; after it."""
    sweep: NDArray[np.int64]
    """Informed moves an iteration, see ``exploring``."""
    keep: bool
    """Draws are recorded; not those of hot rungs."""
    prior_moves: bool
    """Jumps drawn from the prior, and rules by their own kernels, beside or instead of them."""


class Calls(NamedTuple):
    """Where this process keeps what is compiled apart; see ``jit.opaque``."""

    nuts: int
    first_step: int
    side: int
    sweep: int


class State(NamedTuple):
    """One chain: what the next step needs, and scratch."""

    model: Model
    tree: Tree
    proposal: Tree
    log_like: NDArray[np.float64]
    """[1]; of ``tree``."""
    iteration: NDArray[np.int64]
    """[1]; iterations done."""
    tuning: Tuning
    tally: NDArray[np.int64]
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""
    informed_tally: NDArray[np.int64]
    """[2, informed moves, 2]"""
    work: Work
    scan_model: ScanModel
    scan_work: ScanWork
    rule_work: RuleWork
    nuts_work: NutsWork
    vectors: NDArray[np.float64]
    """[5, dimension]; u, u before, inverse mass, running mean and squares of an adaptation."""
    places: NDArray[np.int64]
    """[2, dimension]; kind and depth of each coordinate."""
    averager: NDArray[np.float64]
    """[AVERAGER]; of an adaptation within a transition."""
    calls: Calls


_nuts, _nuts_address = opaque(nuts_on_tree)
_first_step, _first_step_address = opaque(first_step_on_tree)

U, BEFORE, INVERSE_MASS, RUNNING_MEAN, RUNNING_SQUARES = 0, 1, 2, 3, 4


@inlined
def set_h(model, h):
    """Change the softness, to one a column or to one for all; True where that changed it."""
    changed = False
    for f in range(model.h.shape[0]):
        wanted = h[f if h.shape[0] > 1 else 0]
        if model.h[f] != wanted:
            model.h[f] = wanted
            changed = True
    return changed


@inlined
def sweep_rules(state, plan, tree, log_like, tally, rng):
    """Rules by their own kernels, where no informed move draws them."""
    model = state.model
    n_weights = tree.weights.shape[1]
    if not plan.prior_moves and (n_weights == 0 or model.h[0] > 0.0):
        return log_like
    if model.h[0] == 0.0:
        return update_hard_rules(model, tree, state.work, state.rule_work, log_like, tally, rng)
    if n_weights == 0:
        return update_features(
            model, tree, state.work, state.rule_work, plan.index_update, log_like, tally, rng
        )
    return log_like


@inlined
def masses_and_step_of_size(state, tree, n, adapting):
    """Fill the masses of these depths; the step of this number of splits, 0 where unknown."""
    model, tuning = state.model, state.tuning
    place_of(model, tree, state.places[0], state.places[1])
    for j in range(n):
        state.vectors[INVERSE_MASS, j] = tuning.scale[state.places[0, j], state.places[1, j]]
    splits = n_leaves(tree) - 1
    if not adapting:
        return tuning.frozen[splits]
    averager = tuning.averager[splits]
    if averager[COUNT] < 0.0:
        step = nearest_step(tuning.averager, splits, -1.0)
        if step > 0.0:
            restart_averager(averager, step)
        return step
    return math.exp(averager[LOG_STEP])


@inlined
def nuts(state, plan, tree, log_like, adapting, averager, by_size, rng):
    """A NUTS step of the tree's continuous parameters.

    ``by_size``: step and masses are those kept for trees of this size. Otherwise they are those of
    an adaptation within this transition, with the masses in place.
    """
    model, tuning = state.model, state.tuning
    n = unconstrain(model, tree, state.vectors[U])
    if n == 0 or (not plan.prior_moves and model.h[0] == 0.0):
        return NutsInfo(np.nan, 0, 0, False, 0.0), log_like, 0.0
    u, before, inverse_mass = (
        state.vectors[U, :n],
        state.vectors[BEFORE, :n],
        state.vectors[INVERSE_MASS, :n],
    )
    for j in range(n):
        before[j] = u[j]
    if by_size:
        step = masses_and_step_of_size(state, tree, n, adapting)
    elif averager[COUNT] < 0.0:
        step = 0.0
    else:
        step = math.exp(averager[LOG_STEP] if adapting else averager[LOG_STEP_BAR])
    if step == 0.0:
        step = _first_step(
            state.calls.first_step,
            (model, tree, state.work, u, inverse_mass, state.nuts_work, rng),
        )
        restart_averager(averager, step)
    info = _nuts(
        state.calls.nuts,
        (model, tree, state.work, u, step, inverse_mass, plan.max_depth, state.nuts_work, rng),
    )
    rest = constrain(model, u, tree)
    log_like = 0.0 if model.power[0] == 0.0 else (info.log_density - rest) / model.power[0]
    if adapting:
        update_averager(averager, info.accept_stat, plan.target_accept)
        if by_size:
            record_moves(tuning, state.places[0], state.places[1], before, u)
    return info, log_like, step


@inlined
def learn_mass(state, plan, t, n, count):
    """Running variance of each coordinate over the slow windows of an adaptation."""
    u, inverse_mass = state.vectors[U], state.vectors[INVERSE_MASS]
    mean, squares = state.vectors[RUNNING_MEAN], state.vectors[RUNNING_SQUARES]
    if plan.adapt_slow[t]:
        count += 1.0
        for j in range(n):
            shift = u[j] - mean[j]
            mean[j] += shift / count
            squares[j] += shift * (u[j] - mean[j])
    if plan.adapt_end[t]:
        for j in range(n):
            variance = squares[j] / max(count - 1.0, 1.0)
            inverse_mass[j] = (count * variance + 5e-3) / (count + 5.0)
            mean[j] = 0.0
            squares[j] = 0.0
        count = 0.0
        restart_averager(state.averager, math.exp(state.averager[LOG_STEP_BAR]))
    return count


@kernel
def one_side(state, plan, tree, log_like, phase, rules_first, rng):
    """k retained steps of [rules, NUTS] or [NUTS, rules]; log-likelihood and step of the last.

    With the paper's adaptation they follow its intermediate burn-in: NUTS warmed up from scratch
    at this topology, through the schedule of h.
    """
    model, averager = state.model, state.averager
    tally = state.tally[phase]
    n_adapt = plan.h_adapt.shape[0]
    n = dimension(model, tree)
    if plan.adapt_each:
        for row in (RUNNING_MEAN, RUNNING_SQUARES):
            state.vectors[row, :n] = 0.0
        state.vectors[INVERSE_MASS, :n] = 1.0
        averager[COUNT] = -1.0
    else:
        averager = state.tuning.averager[n_leaves(tree) - 1]
    count = 0.0
    info = NutsInfo(np.nan, 0, 0, False, 0.0)
    step = 0.0
    for t in range(n_adapt + plan.inner_steps):
        in_adaptation = t < n_adapt
        if plan.adapt_each and set_h(model, plan.h_adapt[t] if in_adaptation else plan.h_final):
            log_like = likelihood(model, tree, state.work)
        adapting = in_adaptation if plan.adapt_each else phase == WARMUP
        for half in range(2):
            if (half == 0) == (rules_first or in_adaptation):
                log_like = sweep_rules(state, plan, tree, log_like, tally, rng)
            else:
                info, log_like, step = nuts(
                    state, plan, tree, log_like, adapting, averager, not plan.adapt_each, rng
                )
        if in_adaptation:
            count = learn_mass(state, plan, t, n, count)
    return info, log_like, step


call_side, _side_address = opaque(one_side)
_sweep, _sweep_address = opaque(informed_sweep)


@inlined
def sweep_moves(state, sweep, phase, rng):
    """These informed moves from the state; it moves."""
    state.log_like[0] = _sweep(
        state.calls.sweep,
        (
            state.model,
            state.scan_model,
            state.scan_work,
            state.tree,
            state.proposal,
            state.work,
            sweep,
            state.log_like[0],
            state.informed_tally[phase],
            rng,
        ),
    )


def with_calls(state: State, plan: Plan, rng: np.random.Generator) -> State:
    """The state with the addresses of its kernels, compiled now or loaded from the cache."""
    model, tree, work, u = state.model, state.tree, state.work, state.vectors[U]
    first_step = _first_step_address(model, tree, work, u, u, state.nuts_work, rng)
    nuts_step = _nuts_address(model, tree, work, u, 1.0, u, plan.max_depth, state.nuts_work, rng)
    side = _side_address(state, plan, tree, 0.0, WARMUP, True, rng)
    sweep = _sweep_address(
        model,
        state.scan_model,
        state.scan_work,
        tree,
        state.proposal,
        work,
        plan.sweep,
        0.0,
        state.informed_tally[0],
        rng,
    )
    return state._replace(calls=Calls(nuts_step, first_step, side, sweep))
