"""RJHMC-Tree: HMC-DF and HMC-DFI; what a chain is made of, and a chain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.backend.row_threads import BINNED_ROWS
from ..core.forest import draws_of_rows
from ..core.moves.propose import ENTRIES, NAMES, propose_informed
from ..core.scan.data import (
    CLASS_COUNTS,
    KNOWN_VARIANCE,
    UNIT,
    ScanData,
    ScanModel,
    make_scan,
    make_scan_data,
)
from ..core.scan.parts import PART_KERNELS, connect_parts
from ..core.scan.proposals import Proposals, kernels_of_scans, make_proposals
from ..core.scan.scores import fill_first_tables
from ..core.soft.adaptation import (
    AVERAGER,
    h_schedule,
    make_tuning,
    window_masks,
)
from ..core.soft.data import (
    CLASSES,
    COLLAPSED,
    MEANS,
    Columns,
    Data,
    Work,
    inputs_of,
    make_data,
    make_leaf_prior,
    make_work,
)
from ..core.soft.feature_updates import (
    FEATURE,
    GIBBS,
    LIU,
    MH,
    NUDGE,
    REDRAW,
    keep_rules,
    make_feature_work,
    update_rules,
)
from ..core.soft.hmc_steps import (
    Calls,
    Plan,
    State,
    hmc_steps,
)
from ..core.soft.likelihoods import class_likelihood, number_likelihood
from ..core.soft.loop import advance
from ..core.soft.nuts import make_nuts_work
from ..core.soft.parallel_likelihood import parallel_likelihood, pass_over_parts
from ..core.soft.prior_jumps import GROW, PRUNE, STAY, no_jump, propose_jump
from ..core.soft.sweep import informed_sweep
from ..core.soft.target import Model, make_model, nuts_on_tree
from ..core.tree.nodes import empty_tree
from ..core.tree.record import (
    Block,
    Piece,
    drain,
    make_block,
)
from .common import sweep_of, tree_prior_of
from .softness import first_softness_of, softness_of

if TYPE_CHECKING:
    from ..methods.base import Configuration

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


@dataclass(frozen=True)
class RJHMC:
    """The sampler: configuration shared by its chains."""

    data: Data
    scan_data: ScanData
    settings: Configuration[Any]
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
        settings: Configuration[Any],
        n_warmup: int,
        threads: int = 1,
    ) -> RJHMC:
        data = make_data(columns, y, n_classes)
        scan_data = sorted_columns(data, settings)
        h = softness_of(
            inputs_of(data), settings
        )  # rows that pad the columns are 0, as some row is
        return cls(data, scan_data, settings, n_classes, n_warmup, h, threads)

    def start(self, rng: np.random.Generator) -> RJHMCChain:
        return RJHMCChain(self, rng)

    @property
    def kernels(self) -> list[Any]:
        """What a chain of it calls; see ``core.backend.units``."""
        prior_moves = self.settings.method.moves == "prior"
        large = bool(self.scan_data.code.size) or self.data.n_rows > BINNED_ROWS
        family = class_likelihood if self.n_classes else number_likelihood
        return [
            nuts_on_tree,
            *((parallel_likelihood, pass_over_parts) if large else (family,)),
            propose_informed,
            *kernels_of_scans(self.scan_data),
            *(PART_KERNELS if large else ()),
            informed_sweep,
            hmc_steps,
            update_rules if has_rule_updates(self.settings) else keep_rules,
            propose_jump if prior_moves else no_jump,
            advance,
            draws_of_rows,
        ]

    @property
    def max_nuts_depth(self) -> int:
        """As set; otherwise by the moves, and for large data by the rows.

        Then there are three gradients, or more that together see at most ROWS_A_STEP rows: large
        data are not long in finding the thresholds, and a scan costs what a gradient does.
        """
        settings = self.settings
        if settings.method.max_nuts_depth is not None:
            return settings.method.max_nuts_depth
        most = MAX_NUTS_DEPTH
        if settings.method.moves == "informed":
            most = INFORMED_NUTS_DEPTH[settings.method.name]
        if self.data.n_rows <= BINNED_ROWS:
            return most
        return min(max(int(np.log2(ROWS_A_STEP / self.data.n_rows)), 2), most)


class RJHMCChain:
    """One chain of it: its state, its generator, and room for draws."""

    remembers = ("rng", "state")

    def __init__(self, sampler: RJHMC, rng: np.random.Generator, keep: bool = True) -> None:
        self.rng = rng
        self.plan = make_plan(sampler, keep)
        self.calls = Calls(
            steps=hmc_steps,
            jump=propose_jump if sampler.settings.method.moves == "prior" else no_jump,
        )
        self.state = make_state(sampler)
        n_weights = self.state.tree.weights.shape[1]
        self.block = make_block(sampler.settings.max_leaves, n_weights, max(sampler.n_classes, 1))
        self.sampler = sampler

    @property
    def iteration(self) -> int:
        return int(self.state.iteration[0])

    @contextmanager
    def helped(self) -> Iterator[None]:
        """A context in which other threads help with the rows, where data are large."""
        threads = self.sampler.threads
        rows, scans = self.state.work.run_parts, self.state.proposals.scan.run_parts
        with rows.helped(threads), scans.helped(threads):
            yield

    def advance(self, n: int) -> list[Piece]:
        """Run n iterations; returns the draws made, in one piece or several."""
        with self.helped():
            return in_blocks(
                lambda left: advance(self.state, self.plan, self.calls, self.block, left, self.rng),
                self.block,
                n,
            )

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        with self.helped():
            advance(self.state, self.plan, self.calls, self.block, 0, self.rng)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """phase -> move -> (accepted, proposed), for the moves that were proposed at all."""
        state = self.state
        names = {**{(0, place): name for name, place in MOVES.items()}}
        names |= {(1, place): name for place, name in enumerate(NAMES)}
        tallies = (state.tally, state.informed_tally)
        return {
            phase: {
                name: (int(tallies[which][t, place, 0]), int(tallies[which][t, place, 1]))
                for (which, place), name in names.items()
                if tallies[which][:, place, 1].any()
            }
            for t, phase in enumerate(("warmup", "sampling"))
        }


def in_blocks(advance_by: Callable[[int], int], block: Block, n: int) -> list[Piece]:
    """Advance by n iterations in all; the block is drained whenever it is full, and at the end."""
    pieces: list[Piece] = []
    while n > 0:
        n -= advance_by(n)
        if block.filled[0] > 0:
            pieces.append(drain(block))
    return pieces


def sorted_columns(data: Data, settings: Configuration[Any]) -> ScanData:
    """What the scans need of the data; of one row where nothing is scanned."""
    rows = np.concatenate(
        [np.arange(a, a + n) for a, n in zip(data.block, data.block_rows, strict=False)]
    )
    inputs = inputs_of(data)
    label = np.zeros(inputs.shape[1], np.int64)
    for b, code in enumerate(data.block_class):
        label[data.block[b] : data.block[b + 1]] = code
    if not sweep_of(settings):
        rows = rows[:1]
    y = data.y[0] - settings.method.mu_prior[0]
    return make_scan_data(
        inputs,
        rows,
        label,
        y,
        binned=len(rows) > BINNED_ROWS,
        projected=settings.method.oblique,
    )


def make_plan(sampler: RJHMC, keep: bool) -> Plan:
    settings, n_warmup = sampler.settings, sampler.n_warmup
    first, final = first_softness_of(sampler.h, settings), sampler.h
    if (first == first[0]).all() and (final == final[0]).all():
        first, final = first[:1], final[:1]
    warm_probs = settings.method.warmup_move_probs or settings.method.move_probs
    steps = settings.method.adapt_steps if settings.method.adapt == "transition" else 0
    _, window_end = window_masks(n_warmup)
    adapt_slow, adapt_end = window_masks(steps)
    return Plan(
        index_update={"mh": MH, "liu": LIU, "gibbs": GIBBS}[settings.method.index_update],
        double_sided=settings.method.scheme == "double-sided",
        adapt_each=settings.method.adapt == "transition",
        inner_steps=settings.method.inner_steps,
        probs=np.array([warm_probs, settings.method.move_probs], np.float64),
        biased=np.array(
            [settings.method.warmup_acceptance == "biased", settings.method.acceptance == "biased"]
        ),
        target_accept=settings.method.target_accept,
        max_depth=sampler.max_nuts_depth,
        n_warmup=n_warmup,
        h_warmup=h_schedule(n_warmup, first, final),
        window_end=window_end,
        h_adapt=h_schedule(steps, first, final),
        adapt_slow=adapt_slow,
        adapt_end=adapt_end,
        h_final=final.copy(),
        sweep=np.array([ENTRIES[name] for name in sweep_of(settings)], np.int64),
        keep=keep,
        prior_moves=settings.method.moves == "prior",
    )


def family_of(sampler: RJHMC) -> int:
    if sampler.n_classes:
        return int(CLASSES)
    return int(COLLAPSED if sampler.settings.method.leaf_means == "collapsed" else MEANS)


def model_of(sampler: RJHMC, work: Work) -> Model:
    settings, n_classes = sampler.settings, sampler.n_classes
    inputs = inputs_of(sampler.data)
    class_prior = np.array(settings.method.class_concentration(n_classes), float)
    leaf_prior = make_leaf_prior(class_prior, settings.method.mu_prior, settings.method.sigma_prior)
    centre = np.zeros(0)  # the paper's coordinates
    if settings.method.oblique and settings.method.moves == "informed":
        # rows that pad the columns are 0
        centre = np.clip(inputs.sum(axis=1) / sampler.data.n_rows, 0.001, 0.999)
    return make_model(
        family_of(sampler),
        sampler.data,
        tree_prior_of(len(inputs), settings),
        leaf_prior,
        sampler.h.copy(),  # a chain's own: it moves
        float(settings.method.likelihood_power),
        centre.astype(np.float64),
        work,
    )


def proposals_of(sampler: RJHMC, model: Model, n_weights: int) -> Proposals:
    """What the informed moves scan; they see explicit means integrated out."""
    prior, leaves = model.leaf_prior, sampler.settings.max_leaves
    scan_model = ScanModel(
        prior=model.prior,
        kind=UNIT,
        leaf=CLASS_COUNTS if sampler.n_classes else KNOWN_VARIANCE,
        class_prior=prior.class_prior,
        class_mass=prior.class_mass,
        mean_variance=prior.mu_sd**2,
        prior_rows=1.0,  # these three are of leaves with a variance of their own
        shape=1.0,
        rate=1.0,
        h=model.h,
        power=model.power,
    )
    scan = fill_first_tables(make_scan(sampler.scan_data, scan_model, leaves, n_weights))
    if sampler.scan_data.code.size:
        connect_parts(scan, leaves, sampler.threads)
    return make_proposals(scan)


def has_rule_updates(settings: Configuration[Any]) -> bool:
    """Whether rules need their own kernels: no informed move draws the weights of hard splits."""
    oblique_hard = settings.method.oblique and np.all(np.asarray(settings.h) == 0.0)
    return settings.method.moves == "prior" or bool(oblique_hard)


def make_state(sampler: RJHMC) -> State:
    settings = sampler.settings
    p = len(sampler.h)
    n_weights = p if settings.method.oblique else 0
    capacity = settings.max_leaves
    family = int(CLASSES if sampler.n_classes else COLLAPSED)
    sizes = (capacity, sampler.n_classes, n_weights, family)
    work = make_work(sampler.data, *sizes, sampler.threads)
    model = model_of(sampler, work)
    largest = max(n_weights, 1) * (capacity - 1) + capacity + 1
    return State(
        model=model,
        tree=empty_tree(capacity, n_weights),
        proposal=empty_tree(capacity, n_weights),
        log_like=np.zeros(1),
        iteration=np.zeros(1, np.int64),
        tuning=make_tuning(capacity),
        tally=np.zeros((2, len(MOVES), 2), np.int64),
        informed_tally=np.zeros((2, len(NAMES), 2), np.int64),
        work=work,
        proposals=proposals_of(sampler, model, n_weights),
        propose=propose_informed,
        feature_work=make_feature_work(capacity, p),
        nuts_work=make_nuts_work(largest, sampler.max_nuts_depth),
        vectors=np.zeros((5, largest)),
        places=np.zeros((2, largest), np.int64),
        averager=np.zeros(AVERAGER),
        sweep=informed_sweep,
        nuts=nuts_on_tree,
        update_rules=update_rules if has_rule_updates(settings) else keep_rules,
    )
