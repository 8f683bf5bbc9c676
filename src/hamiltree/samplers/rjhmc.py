"""RJHMC-Tree: HMC-DF and HMC-DFI, as in the paper or as a composition of exact kernels.

``composed`` (the default): rule sweep, NUTS, jump, each leaving the posterior invariant.
``double-sided`` (algorithm 1 of the paper): k steps, a jump, k steps, one acceptance. Side one runs
[rules, NUTS] and side two [NUTS, rules], the reverse of one another, so that the ratio's
derivation holds although neither composition is reversible by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..core import bins, informed
from ..core.adaptation import AVERAGER, end_window, freeze, h_schedule, make_tuning, window_masks
from ..core.buffers import (
    CLASSES,
    COLLAPSED,
    MEANS,
    Columns,
    Data,
    LeafPrior,
    Work,
    make_data,
    make_work,
)
from ..core.crew import helpers
from ..core.hard_rules import UNIT
from ..core.jit import compile_side_by_side, inlined, kernel, leaving_out
from ..core.jumps import GROW, PRUNE, STAY, propose_jump
from ..core.nodes import Tree, copy_tree, empty_tree
from ..core.nuts import make_nuts_work
from ..core.priors import draw_small_tree, log_prior
from ..core.proposed_rules import connect
from ..core.record import FIRST_STAT, Block, drain, is_full, make_block, record_tree
from ..core.rules import (
    FEATURE,
    GIBBS,
    LIU,
    MH,
    NUDGE,
    REDRAW,
    accept,
    make_rule_work,
)
from ..core.scan_data import KNOWN, ScanData, ScanModel, make_scan_data
from ..core.scan_scores import make_scorer
from ..core.sides import (
    SAMPLING,
    WARMUP,
    Calls,
    Plan,
    State,
    call_side,
    set_h,
    sweep_moves,
    with_calls,
)
from ..core.target import Model, likelihood, make_model, tempered
from ..settings import Settings
from .common import sweep_of, tree_prior_of
from .softness import first_softness_of, softness_of

MAX_NUTS_DEPTH = 10
INFORMED_NUTS_DEPTH = {"hmc-df": 5, "hmc-dfi": 6}
"""Beside informed moves, which draw rules too, longer trajectories cost more than they bring
(``python -m benchmarks trajectories``); weights take longer than thresholds."""
ROWS_A_STEP = 2**19
MOVES = {
    "grow": GROW,
    "prune": PRUNE,
    "stay": STAY,
    "feature": FEATURE,
    "redraw": REDRAW,
    "nudge": NUDGE,
}


@inlined
def log_posterior(model, tree, log_like):
    return log_prior(model.family, model.prior, model.leaf_prior, tree) + tempered(model, log_like)


@inlined
def one_iteration(state, plan, phase, rng):
    """x -> x' (k steps), x' -> x'' (jump) and, double-sided, x'' -> x* (k steps); accept or not.

    Composed, x' is kept whatever becomes of the jump. Double-sided, one decision is made at the
    end, and x is kept where it is negative (algorithm 1).
    """
    model, tree, proposal, tally = state.model, state.tree, state.proposal, state.tally[phase]
    if plan.sweep.shape[0] > 0:
        sweep_moves(state, plan.sweep, phase, rng)
    start = log_posterior(model, tree, state.log_like[0])
    copy_tree(tree, proposal)
    log_like = state.log_like[0]
    info, log_like, step = call_side(
        state.calls.side, (state, plan, proposal, log_like, phase, np.bool_(True), rng)
    )
    if not plan.double_sided:
        copy_tree(proposal, tree)
        state.log_like[0] = log_like
    if not plan.prior_moves:
        return info, step
    before = log_posterior(model, proposal, log_like)
    move, log_q = propose_jump(model, proposal, plan.probs[phase], rng)
    tally[move, 1] += 1
    if log_q == -np.inf:
        return info, step
    if move != STAY:
        log_like = likelihood(model, proposal, state.work)
    after = log_posterior(model, proposal, log_like)
    if plan.double_sided:
        info, log_like, step = call_side(
            state.calls.side, (state, plan, proposal, log_like, phase, np.bool_(False), rng)
        )
    log_ratio = after - before + log_q
    if plan.biased[phase]:
        log_ratio = log_posterior(model, proposal, log_like) - start + log_q
    if accept(log_ratio, rng):
        tally[move, 0] += 1
        copy_tree(proposal, tree)
        state.log_like[0] = log_like
    return info, step


@inlined
def begin(state, rng):
    """The first tree of a chain."""
    draw_small_tree(state.model.prior, state.model.leaf_prior, state.tree, rng)
    state.log_like[0] = likelihood(state.model, state.tree, state.work)


@inlined
def record_draw(state, block, info, step, rng):
    """Write the tree and what NUTS did; returns the row of its scalars."""
    row = record_tree(state.model, state.tree, state.work, block, rng)
    stats = block.scalars[row, FIRST_STAT:]
    stats[0] = 1.0 if info.divergent else 0.0
    stats[1] = info.depth
    stats[2] = step
    stats[3] = info.accept_stat
    stats[4] = info.n_gradients
    return row


@kernel
def advance(state, plan, block, n, rng):
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
            if set_h(model, plan.h_warmup[t] if phase == WARMUP else plan.h_final):
                state.log_like[0] = likelihood(model, state.tree, state.work)
            if t == plan.n_warmup:
                freeze(state.tuning)
        info, step = one_iteration(state, plan, phase, rng)
        if phase == WARMUP:
            if plan.window_end[t]:
                end_window(state.tuning)
        elif plan.keep:
            record_draw(state, block, info, step, rng)
        state.iteration[0] = t + 1
    return n


# ------------------------------------------------------------------ assembly


@dataclass(frozen=True)
class RJHMC:
    """The sampler: configuration shared by its chains."""

    data: Data
    scan_data: ScanData
    settings: Settings
    n_classes: int
    n_warmup: int
    h: NDArray[np.float64]
    """[p]; softness of each column after warm-up, or where learning it starts."""
    threads: int = 1
    """Of each chain, where the data are large."""

    @classmethod
    def build(
        cls,
        columns: Columns,
        y: NDArray[np.generic],
        n_classes: int,
        settings: Settings,
        n_warmup: int,
        threads: int = 1,
    ) -> RJHMC:
        data = make_data(columns, y, n_classes)
        scan_data = sorted_columns(data, settings)
        h = softness_of(data.columns, settings)  # rows that pad the columns are 0, as some row is
        return cls(data, scan_data, settings, n_classes, n_warmup, h, threads)

    def start(self, rng: np.random.Generator) -> RJHMCChain:
        compile_ahead(self, lambda: RJHMCChain(self, np.random.default_rng()).compile())
        return RJHMCChain(self, rng)

    @property
    def max_nuts_depth(self) -> int:
        """As set; otherwise by the moves, and for large data by the rows.

        Then there are three gradients, or more that together see at most ROWS_A_STEP rows: large
        data are not long in finding the thresholds, and a scan costs what a gradient does.
        """
        settings = self.settings
        if settings.max_nuts_depth is not None:
            return settings.max_nuts_depth
        most = MAX_NUTS_DEPTH
        if settings.moves == "informed":
            most = INFORMED_NUTS_DEPTH[settings.method]
        if self.data.n_rows <= bins.BINNED_ROWS:
            return most
        return min(max(int(np.log2(ROWS_A_STEP / self.data.n_rows)), 2), most)


class RJHMCChain:
    """One chain of it: its state, its generator, and room for draws."""

    def __init__(self, sampler: RJHMC, rng: np.random.Generator, keep: bool = True) -> None:
        self.rng = rng
        self.plan = make_plan(sampler)._replace(keep=keep)
        state = make_state(sampler)
        scans = connect(state.scan_model, state.scan_work, state.tree, rng)
        self.state = with_calls(state._replace(scan_model=scans), self.plan, rng)
        n_weights = self.state.tree.weights.shape[1]
        self.block = make_block(sampler.settings.max_leaves, n_weights, max(sampler.n_classes, 1))
        n_helpers = sampler.threads - 1 if state.work.crew.size else 0
        self.helped: Callable[[], AbstractContextManager[None]] = nullcontext
        if n_helpers:
            self.helped = partial(helpers, state.work.crew, n_helpers)
        """A context in which other threads help with the rows."""

    @property
    def iteration(self) -> int:
        return int(self.state.iteration[0])

    def advance(self, n: int) -> list[Block]:
        """Run n iterations; returns the draws made, in one piece or several."""
        with self.helped():
            return in_blocks(
                lambda left: advance(self.state, self.plan, self.block, left, self.rng),
                self.block,
                n,
            )

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        with self.helped():
            advance(self.state, self.plan, self.block, 0, self.rng)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """phase -> move -> (accepted, proposed), for the moves that were proposed at all."""
        state = self.state
        names = {**{(0, place): name for name, place in MOVES.items()}}
        names |= {(1, place): name for place, name in enumerate(informed.NAMES)}
        tallies = (state.tally, state.informed_tally)
        return {
            phase: {
                name: (int(tallies[which][t, place, 0]), int(tallies[which][t, place, 1]))
                for (which, place), name in names.items()
                if tallies[which][:, place, 1].any()
            }
            for t, phase in enumerate(("warmup", "sampling"))
        }


OURS = {"log_likelihood", "nuts_on_tree", "first_step_on_tree", "one_side"}
THEIRS = {"sweep_apart", "informed_sweep", "weigh_apart", "draw_apart"}
"""Kernels that are cut loose. Ours take about as long, with what runs a chain that learns h."""


def compile_ahead(sampler: RJHMC, chain: Callable[[], object]) -> None:
    """The first time on a machine: compile what ``chain`` does with two processes."""
    if sampler.data.columns.dtype == np.float64:
        compile_side_by_side(
            chain, f"from {__name__} import compile_theirs; compile_theirs()", THEIRS
        )


def compile_theirs() -> None:
    """What the second process does; kernels are compiled for types, which all data share."""
    columns, labels = np.array([[0.0, 0.4, 0.6, 1.0]]), np.array([0, 0, 1, 1])
    with leaving_out(OURS):
        RJHMCChain(RJHMC.build(columns, labels, 2, Settings(), 10), np.random.default_rng())


def in_blocks(advance_by: Callable[[int], int], block: Block, n: int) -> list[Block]:
    """Advance by n iterations in all; the block is drained whenever it is full, and at the end."""
    pieces: list[Block] = []
    while n > 0:
        n -= advance_by(n)
        if block.filled[0] > 0:
            pieces.append(drain(block))
    return pieces


def sorted_columns(data: Data, settings: Settings) -> ScanData:
    """What the scans need of the data; of one row where nothing is scanned."""
    rows = np.concatenate(
        [np.arange(a, a + n) for a, n in zip(data.block, data.block_rows, strict=False)]
    )
    label = np.zeros(data.columns.shape[1], np.int64)
    for b, code in enumerate(data.block_class):
        label[data.block[b] : data.block[b + 1]] = code
    if not sweep_of(settings):
        rows = rows[:1]
    y = data.y - settings.mu_prior[0]
    return make_scan_data(
        data.columns,
        rows,
        label,
        y,
        binned=len(rows) > bins.BINNED_ROWS,
        projected=settings.method == "hmc-dfi",
    )


def make_plan(sampler: RJHMC) -> Plan:
    settings, n_warmup = sampler.settings, sampler.n_warmup
    first, final = first_softness_of(sampler.h, settings), sampler.h
    if (first == first[0]).all() and (final == final[0]).all():
        first, final = first[:1], final[:1]
    warm_probs = settings.warmup_move_probs or settings.move_probs
    steps = settings.adapt_steps if settings.adapt == "transition" else 0
    _, window_end = window_masks(n_warmup)
    adapt_slow, adapt_end = window_masks(steps)
    return Plan(
        index_update={"mh": MH, "liu": LIU, "gibbs": GIBBS}[settings.index_update],
        double_sided=settings.scheme == "double-sided",
        adapt_each=settings.adapt == "transition",
        inner_steps=settings.inner_steps,
        probs=np.array([warm_probs, settings.move_probs], np.float64),
        biased=np.array([settings.warmup_acceptance == "biased", settings.acceptance == "biased"]),
        target_accept=settings.target_accept,
        max_depth=sampler.max_nuts_depth,
        n_warmup=n_warmup,
        h_warmup=h_schedule(n_warmup, first, final),
        window_end=window_end,
        h_adapt=h_schedule(steps, first, final),
        adapt_slow=adapt_slow,
        adapt_end=adapt_end,
        h_final=final.copy(),
        sweep=np.array([informed.ENTRIES[name] for name in sweep_of(settings)], np.int64),
        keep=True,
        prior_moves=settings.moves == "prior",
    )


def family_of(sampler: RJHMC) -> int:
    if sampler.n_classes:
        return CLASSES
    return COLLAPSED if sampler.settings.leaf_means == "collapsed" else MEANS


def model_of(sampler: RJHMC, tree: Tree, work: Work) -> Model:
    settings, n_classes = sampler.settings, sampler.n_classes
    p = sampler.data.columns.shape[0]
    leaf_prior = LeafPrior(
        class_prior=np.broadcast_to(np.asarray(settings.class_prior, float), (n_classes,)).copy(),
        mu_mean=float(settings.mu_prior[0]),
        mu_sd=float(settings.mu_prior[1]),
        sigma_shape=float(settings.sigma_prior[0]),
        sigma_scale=float(settings.sigma_prior[1]),
    )
    prior = tree_prior_of(p, settings)
    h = sampler.h.copy()  # a chain's own: it moves
    power = float(settings.likelihood_power)
    centre = np.zeros(0)  # the paper's coordinates
    if settings.method == "hmc-dfi" and settings.moves == "informed":
        # rows that pad the columns are 0
        centre = np.clip(sampler.data.columns.sum(axis=1) / sampler.data.n_rows, 0.001, 0.999)
    family = family_of(sampler)
    return make_model(family, sampler.data, prior, leaf_prior, h, power, centre, tree, work)


def make_state(sampler: RJHMC) -> State:
    settings = sampler.settings
    p = sampler.data.columns.shape[0]
    n_weights = p if settings.method == "hmc-dfi" else 0
    capacity = settings.max_leaves
    tree = empty_tree(capacity, n_weights)
    # informed moves see explicit means integrated out
    family = CLASSES if sampler.n_classes else COLLAPSED
    sizes = (capacity, sampler.n_classes, n_weights, family)
    work = make_work(sampler.data, *sizes, sampler.threads)
    model = model_of(sampler, tree, work)
    scan_model = ScanModel(
        data=sampler.scan_data,
        prior=model.prior,
        kind=UNIT,
        leaf=CLASSES if sampler.n_classes else KNOWN,
        class_prior=model.leaf_prior.class_prior,
        mean_variance=model.leaf_prior.mu_sd**2,
        worth=float(model.leaf_prior.class_prior.sum()),
        shape=1.0,
        rate=1.0,
        h=model.h,
        power=model.power,
    )
    largest = max(n_weights, 1) * (capacity - 1) + capacity + 1
    return State(
        model=model,
        tree=tree,
        proposal=empty_tree(capacity, n_weights),
        log_like=np.zeros(1),
        iteration=np.zeros(1, np.int64),
        tuning=make_tuning(capacity),
        tally=np.zeros((2, len(MOVES), 2), np.int64),
        informed_tally=np.zeros((2, len(informed.NAMES), 2), np.int64),
        work=work,
        scan_model=scan_model,
        scan_work=make_scorer(scan_model, capacity, n_weights, work.crew, sampler.threads),
        rule_work=make_rule_work(capacity, p),
        nuts_work=make_nuts_work(largest, sampler.max_nuts_depth),
        vectors=np.zeros((5, largest)),
        places=np.zeros((2, largest), np.int64),
        averager=np.zeros(AVERAGER),
        calls=Calls(0, 0, 0, 0),
    )
