"""RJHMC-Tree with h="learn": its kernels, and steps of h and of the leaf probabilities.

Regression: the sweep and NUTS as they are, then h by slice sampling. Classification: each informed
move, and NUTS, is corrected on its own for the likelihood that is normalised over labels
(``core/learning.py`` says how); each is reversible, which the sweep as a whole is not. Then h, and
then the leaf probabilities by way of a leaf drawn for each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..core import informed
from ..core.adaptation import end_window, freeze
from ..core.buffers import CLASSES
from ..core.jit import inlined, kernel
from ..core.labels import labels_address
from ..core.learning import (
    Learning,
    correct,
    log_dirichlet,
    log_prior_of_h,
    refresh,
    update_h,
)
from ..core.nodes import copy_tree, empty_tree, n_leaves
from ..core.priors import log_prior
from ..core.record import LEAVES, Block, is_full, make_block
from ..core.sides import SAMPLING, WARMUP, call_side, sweep_moves
from ..core.target import likelihood, tempered
from ..settings import H_RANGE
from .rjhmc import RJHMC, RJHMCChain, begin, compile_ahead, in_blocks, record_draw
from .softness import first_softness_of


@inlined
def remember(state, learning, phase):
    """Where a step starts, and goes back to when it is refused."""
    copy_tree(state.tree, learning.before)
    learning.like_before[0] = state.log_like[0]
    for move in range(learning.accepted_before.shape[0]):
        learning.accepted_before[move] = state.informed_tally[phase, move, 0]


@inlined
def corrected_moves(state, plan, learning, phase, rng):
    """The sweep, each accepted move corrected for what the target has beside the moves' own."""
    tally = state.informed_tally[phase]
    for k in range(plan.sweep.shape[0]):
        remember(state, learning, phase)
        sweep_moves(state, plan.sweep[k : k + 1], phase, rng)
        for move in range(tally.shape[0]):
            if tally[move, 0] > learning.accepted_before[move]:  # one at most
                state.log_like[0], kept = correct(
                    state.model, state.tree, state.work, learning, state.log_like[0], rng
                )
                if not kept:
                    tally[move, 0] -= 1


@inlined
def nuts_step(state, plan, phase, rng):
    info, state.log_like[0], step = call_side(
        state.calls.side,
        (state, plan, state.tree, state.log_like[0], phase, np.bool_(True), rng),
    )
    return info, step


@inlined
def classification_iteration(state, plan, learning, phase, rng):
    model = state.model
    corrected_moves(state, plan, learning, phase, rng)
    remember(state, learning, phase)
    info, step = nuts_step(state, plan, phase, rng)
    if n_leaves(state.tree) > 1:
        state.log_like[0], kept = correct(
            model, state.tree, state.work, learning, state.log_like[0], rng
        )
        learning.nuts_tally[phase, 0] += 1 if kept else 0
        learning.nuts_tally[phase, 1] += 1
    update_h(model, state.tree, state.work, learning, learning.log_like[0], rng)
    state.log_like[0] = likelihood(model, state.tree, state.work)
    refresh(model, state.tree, state.work, learning, state.log_like[0], rng)
    return info, step


@inlined
def regression_iteration(state, plan, learning, phase, rng):
    sweep_moves(state, plan.sweep, phase, rng)
    info, step = nuts_step(state, plan, phase, rng)
    if 4 * state.iteration[0] >= plan.n_warmup:
        # before there is a tree, large h fits best, and what then grows takes long to undo
        state.log_like[0] = update_h(
            state.model, state.tree, state.work, learning, state.log_like[0], rng
        )
        state.scan_work.sigma[0] = np.nan  # its tables were for another h
    return info, step


@inlined
def record_learned(state, learning, block, row):
    """h, and the density of all that is learned; for classification the rows of each leaf.

    Given the rows of its leaf, the probabilities of a leaf are Dirichlet: so counts of rows mean to
    predictions and intervals what they mean where probabilities are integrated out.
    """
    model, tree, scalars = state.model, state.tree, block.scalars[row]
    for f in range(block.h.shape[1]):
        block.h[row, f] = model.h[f]
    if model.family == CLASSES:
        leaves = n_leaves(tree)
        first = block.filled[LEAVES] - leaves
        for k in range(leaves):
            for m in range(block.leaf.shape[1]):
                block.leaf[first + k, m] = learning.rows[k, m]
        scalars[2] = learning.log_like[0]
        scalars[3] = log_prior(model.family, model.prior, model.leaf_prior, tree)
        scalars[3] += log_dirichlet(learning.prior, learning.p, leaves)
        scalars[3] += tempered(model, learning.log_like[0])
    scalars[3] += log_prior_of_h(model, learning)


@kernel
def advance_learning(state, plan, learning, block, n, rng):
    """Up to n iterations, fewer when the block is full; returns how many."""
    model = state.model
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
            info, step = classification_iteration(state, plan, learning, phase, rng)
        else:
            info, step = regression_iteration(state, plan, learning, phase, rng)
        if phase == SAMPLING:
            row = record_draw(state, block, info, step, rng)
            record_learned(state, learning, block, row)
        elif plan.window_end[t]:
            end_window(state.tuning)
        state.iteration[0] = t + 1
    return n


# ------------------------------------------------------------------ assembly


@dataclass(frozen=True)
class LearningRJHMC:
    """The sampler whose chains also move h."""

    sampler: RJHMC

    @property
    def h(self) -> NDArray[np.float64]:
        """Where it starts; each draw has its own."""
        return self.sampler.h

    def start(self, rng: np.random.Generator) -> LearningChain:
        compile_ahead(
            self.sampler, lambda: LearningChain(self.sampler, np.random.default_rng()).compile()
        )
        return LearningChain(self.sampler, rng)


class LearningChain:
    """A chain like any other, with what it learns beside its state."""

    def __init__(self, sampler: RJHMC, rng: np.random.Generator) -> None:
        settings = sampler.settings
        if sampler.n_classes and settings.likelihood_power not in (0.0, 1.0):
            raise ValueError('h="learn" needs likelihood_power 0 or 1 for classification')
        self.chain = RJHMCChain(sampler, rng)
        self.state, self.plan, self.rng = self.chain.state, self.chain.plan, rng
        self.state.model.h[:] = first_softness_of(sampler.h, settings)
        self.learning = make_learning(sampler, self.chain)
        self.block = make_block(
            settings.max_leaves,
            self.state.tree.weights.shape[1],
            max(sampler.n_classes, 1),
            len(sampler.h) if settings.h_by_feature else 1,
        )

    def advance(self, n: int) -> list[Block]:
        """Run n iterations; returns the draws made, in one piece or several."""
        with self.chain.helped():
            return in_blocks(self._advance, self.block, n)

    def _advance(self, n: int) -> int:
        done: int = advance_learning(self.state, self.plan, self.learning, self.block, n, self.rng)
        return done

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        with self.chain.helped():
            self._advance(0)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The chain's moves, and the steps of NUTS where those can be refused."""
        moves = self.chain.tally()
        for phase, (accepted, proposed) in zip(moves, self.learning.nuts_tally, strict=True):
            if proposed:
                moves[phase]["nuts"] = (int(accepted), int(proposed))
        return moves


def make_learning(sampler: RJHMC, chain: RJHMCChain) -> Learning:
    settings, state = sampler.settings, chain.state
    leaves, classes = settings.max_leaves, max(sampler.n_classes, 1)
    median, sd = settings.h_prior
    low, high = (math.log(end) for end in H_RANGE)
    below = [float(ndtr((end - math.log(median)) / sd)) for end in (low, high)]
    tables = [np.zeros((leaves, classes)) for _ in range(5)]
    data, tree, work, empty = sampler.data, state.tree, state.work, np.zeros(0)
    address = labels_address(data, state.model.h, tree, work, tables[0], empty, tables[0], False)
    return Learning(
        log_median=math.log(median),
        log_sd=float(sd),
        log_mass=math.log(below[1] - below[0]),
        log_range=(low, high),
        by_feature=settings.h_by_feature,
        p=tables[0],
        new_p=tables[1],
        concentration=tables[2],
        rows=tables[3],
        spare=tables[4],
        prior=state.model.leaf_prior.class_prior.reshape(1, -1),
        uniform=np.zeros(data.columns.shape[1] if sampler.n_classes else 0),
        empty=empty,
        log_weight=np.zeros(1),
        log_like=np.zeros(1),
        before=empty_tree(leaves, tree.weights.shape[1]),
        like_before=np.zeros(1),
        accepted_before=np.zeros(len(informed.NAMES), np.int64),
        nuts_tally=np.zeros((2, 2), np.int64),
        labels_address=address,
    )
