"""The steps of RJHMC-Tree between two jumps: rules and NUTS at one topology, and their adaptation.

``hmc_steps`` runs k of them. Step sizes and masses are those kept for trees of this size (learnt in
warm-up, frozen after it), or those of the paper's intermediate burn-in, learnt here from scratch.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numba import types

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import (
    RNG,
    SCRATCH,
    Bool1,
    Float1,
    Float2,
    Int1,
    Int2,
    Int3,
    Record,
    function_type,
)
from ..backend.units import unit
from ..moves.propose import PROPOSE
from ..scan.proposals import Proposals
from ..tree.nodes import Tree, n_leaves
from .adaptation import (
    ANY,
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
from .data import Work
from .feature_updates import UPDATE_RULES, FeatureWork
from .learned_h import UPDATE_H, HPrior
from .nuts import INFO_TYPES, NutsInfo, NutsWork
from .prior_jumps import JUMP
from .sweep import SWEEP
from .target import (
    NUTS,
    Model,
    constrain,
    dimension,
    likelihood,
    unconstrain,
)

WARMUP, SAMPLING = 0, 1


class Plan(Record):
    """Frozen configuration of the compiled loop."""

    index_update: int
    double_sided: bool
    adapt_each: bool
    """Adapt NUTS inside every transition, as the paper does; otherwise in warm-up only."""
    inner_steps: int
    probs: Float2
    """[2, 3]; grow, prune, stay in warm-up and sampling."""
    biased: Bool1
    """[2]; the paper's burn-in acceptance, in warm-up and sampling."""
    target_accept: float
    max_depth: int
    leaf_rows: float
    """Rows times leaves that the gradients of a trajectory may see together, if more than three."""
    n_warmup: int
    h_warmup: Float2
    """[n_warmup, p], or [n_warmup, 1] for all columns alike; softness in warm-up (exact
    adaptation), as are the next two."""
    window_end: Bool1
    """[n_warmup]; renew the masses after this iteration."""
    h_adapt: Float2
    """[adapt_steps, p or 1]; within a transition (the paper's adaptation)."""
    adapt_slow: Bool1
    """[adapt_steps]; inside the slow windows, where the mass is learnt."""
    adapt_end: Bool1
    """[adapt_steps]; a slow window ends after this step."""
    h_final: Float1
    """[p or 1]; after it."""
    sweep: Int1
    """Informed moves of an iteration, numbered as in ``moves.propose``."""
    keep: bool
    """Draws are recorded; not those of hot rungs."""
    h_prior: HPrior
    prior_moves: bool
    """Jumps drawn from the prior, and rules by their own kernels, beside or instead of them."""


class State(Record, role="state"):
    """One chain: what the next step needs, and scratch."""

    model: Model
    tree: Tree
    proposal: Tree
    log_like: Float1
    """[1]; of ``tree``, with the h and the leaf probabilities of ``model`` where it has some. With
    the tree, these are what chains at different powers exchange (``exchange``)."""
    iteration: Int1
    """[1]; iterations done."""
    tuning: Tuning
    tally: Int3
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""
    informed_tally: Int3
    """[2, informed moves, 2]"""
    work: Work
    proposals: Proposals
    propose: Annotated[Any, PROPOSE]
    """``moves.propose.propose_informed``."""
    feature_work: FeatureWork
    nuts_work: NutsWork
    vectors: Annotated[Float2, SCRATCH]
    """[5, dimension]; u, u before, inverse mass, running mean and squares of an adaptation."""
    places: Annotated[Int2, SCRATCH]
    """[2, dimension]; kind and depth of each coordinate."""
    averager: Float1
    """[AVERAGER]; of an adaptation within a transition."""
    sweep: Annotated[Any, SWEEP]
    """``soft.sweep.sweep_of_family``"""
    nuts: Annotated[Any, NUTS]
    """``target.nuts_on_tree``."""
    update_rules: Annotated[Any, UPDATE_RULES]
    """``feature_updates.update_rules``, or ``keep_rules`` where informed moves draw the rules."""


U, BEFORE, INVERSE_MASS, RUNNING_MEAN, RUNNING_SQUARES = 0, 1, 2, 3, 4


@kernel
def set_h(model, h):
    """Change the softness, to one per column or to one for all; True where that changed it."""
    changed = False
    for f in range(model.h.shape[0]):
        wanted = h[f if h.shape[0] > 1 else 0]
        if model.h[f] != wanted:
            model.h[f] = wanted
            changed = True
    return changed


@kernel
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
        step = nearest_step(tuning.averager, splits, ANY)
        if step > 0.0:
            restart_averager(averager, step)
        return step
    return math.exp(averager[LOG_STEP])


SHORTEST = 2
"""Doublings of a trajectory that are allowed however large a tree is: three gradients."""


@kernel
def longest_trajectory(plan, rows, leaves):
    """Most doublings of a trajectory for a tree of so many leaves."""
    depth = plan.max_depth
    while depth > SHORTEST and ((1 << depth) - 1) * float(rows * leaves) > plan.leaf_rows:
        depth -= 1
    return depth


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
    unknown = step == 0.0
    nuts_call = state.nuts
    depth = longest_trajectory(plan, model.data.n_rows, n_leaves(tree))
    info, step = nuts_call(
        model, tree, state.work, u, step, inverse_mass, depth, state.nuts_work, rng
    )
    if unknown:
        restart_averager(averager, step)
    rest = constrain(model, u, tree)
    log_like = 0.0 if model.power[0] == 0.0 else (info.log_density - rest) / model.power[0]
    if adapting:
        update_averager(averager, info.accept_stat, plan.target_accept)
        if by_size:
            record_moves(tuning, state.places[0], state.places[1], before, u)
    return info, log_like, step


@kernel
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


@pointer_kernel
def hmc_steps(state, plan, tree, log_like, phase, rules_first, rng):
    """k retained steps of [rules, NUTS] or [NUTS, rules]; log-likelihood and step of the last.

    With the paper's adaptation they follow its intermediate burn-in: NUTS warmed up from scratch
    at this topology, through the schedule of h.
    """
    model, averager, update_rules = state.model, state.averager, state.update_rules
    tally = state.tally[phase]
    n_adapt = plan.h_adapt.shape[0]
    if plan.adapt_each:  # all of them: updates of rules may add coordinates
        for row in (RUNNING_MEAN, RUNNING_SQUARES):
            state.vectors[row] = 0.0
        state.vectors[INVERSE_MASS] = 1.0
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
                log_like = update_rules(
                    model,
                    tree,
                    state.work,
                    state.feature_work,
                    plan.index_update,
                    log_like,
                    tally,
                    rng,
                )
            else:
                info, log_like, step = nuts(
                    state, plan, tree, log_like, adapting, averager, not plan.adapt_each, rng
                )
        if in_adaptation:
            n = dimension(model, tree)
            count = learn_mass(state, plan, t, n, count)
    return info, log_like, step


@kernel
def sweep_moves(state, moves, phase, rng):
    """These informed moves from the state; it moves."""
    sweep = state.sweep
    state.log_like[0] = sweep(
        state.model,
        state.propose,
        state.proposals,
        state.tree,
        state.proposal,
        state.work,
        moves,
        state.log_like[0],
        state.informed_tally[phase],
        rng,
    )


STEPS = function_type(
    types.Tuple((types.NamedTuple(INFO_TYPES, NutsInfo), types.float64, types.float64)),
    State,
    Plan,
    Tree,
    float,
    int,
    bool,
    RNG,
)
"""The type of ``hmc_steps``."""


LABEL_JUMP = function_type(types.none, State, Plan, JUMP, int, RNG)


class Calls(Record):
    """Kernels of a chain that take its state, compiled once and called by pointer."""

    steps: Annotated[Any, STEPS]
    """``hmc_steps``"""
    jump: Annotated[Any, JUMP]
    """``prior_jumps.propose_jump``, or ``no_jump`` where there are only informed moves."""
    label_jump: Annotated[Any, LABEL_JUMP]
    """``label_jumps.jump_with_probabilities`` where these are sampled, else ``no_label_jump``."""
    update_h: Annotated[Any, UPDATE_H]
    """``learned_h.update_h``, or ``keep_h`` where h is fixed."""


unit(hmc_steps, STEPS, seconds=3)
