"""RJHMC-Tree: HMC-DF and HMC-DFI; the sampler, and a chain of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.backend.records import Record
from ..core.backend.row_threads import BINNED_ROWS
from ..core.forest import draws_of_rows
from ..core.moves.propose import NAMES, propose_informed
from ..core.scan.data import (
    ScanData,
)
from ..core.scan.parts import PART_KERNELS
from ..core.scan.proposals import kernels_of_scans
from ..core.soft.data import (
    LABELS,
    VALUE,
    Data,
    inputs_of,
    make_data,
)
from ..core.soft.feature_updates import (
    keep_rules,
    update_rules,
)
from ..core.soft.hmc_steps import (
    Calls,
    hmc_steps,
)
from ..core.soft.label_jumps import jump_with_probabilities, no_label_jump
from ..core.soft.learned_h import keep_h, update_h
from ..core.soft.loop import advance
from ..core.soft.parallel_likelihood import parallel_likelihood, pass_over_parts
from ..core.soft.prior_jumps import no_jump, propose_jump
from ..core.soft.sweep import sweep_of_family
from ..core.soft.target import evaluate, likelihood_of, nuts_on_tree
from ..core.tree.record import (
    Block,
    Piece,
    drain,
    make_block,
)
from .common import Problem
from .rjhmc_state import (
    MOVES,
    family_of,
    has_rule_updates,
    make_plan,
    make_state,
    scores_leaf_means,
    sorted_columns,
)
from .softness import first_softness_of, softness_of

if TYPE_CHECKING:
    from ..methods.base import Configuration

MAX_NUTS_DEPTH = 10
INFORMED_NUTS_DEPTH = {"hmc-df": 5, "hmc-dfi": 6}
"""Beside informed moves, which draw rules too, longer trajectories cost more than they bring
(``python -m benchmarks trajectories``); weights take longer than thresholds."""
ROWS_PER_STEP = 2**19
LEAF_ROWS = {"hmc-df": 2.0**17, "hmc-dfi": 2.0**19}
"""Beside informed moves: rows times leaves that the gradients of a trajectory see together, unless
these are three. A gradient of a large tree costs more than the scans of a sweep, which find
thresholds, too. NUTS does not change the number of leaves, so that this leaves it exact."""


@dataclass(frozen=True)
class RJHMC:
    """The sampler: configuration shared by its chains."""

    data: Data
    scan_data: ScanData
    configuration: Configuration[Any]
    n_classes: int
    n_warmup: int
    h: NDArray[np.float64]
    """[p]; softness of each column after warm-up, or where learning it starts."""
    threads: int = 1
    """Of each chain, where the data are large."""

    @classmethod
    def build(
        cls, problem: Problem, configuration: Configuration[Any], n_warmup: int, threads: int = 1
    ) -> RJHMC:
        columns, n_classes = problem.columns, problem.n_classes
        data = make_data(columns, problem.y, n_classes, problem.weights, problem.kinds)
        scan_data = sorted_columns(data, configuration)
        # rows that pad the columns are 0, as some row is
        h = softness_of(inputs_of(data), configuration, data.kinds)
        return cls(data, scan_data, configuration, n_classes, n_warmup, h, threads)

    def with_warmup(self, n_warmup: int) -> RJHMC:
        return replace(self, n_warmup=n_warmup)

    def start(self, rng: np.random.Generator, keep: bool = True) -> RJHMCChain:
        return RJHMCChain(self, rng, keep)

    @property
    def kernels(self) -> list[Any]:
        """What a chain of it calls; see ``core.backend.units``."""
        small = likelihood_of(family_of(self))
        large = bool(self.scan_data.code.size) or self.data.n_rows > BINNED_ROWS
        return [
            propose_informed,
            sweep_of_family(family_of(self)),
            *kernels_of_scans(self.scan_data, scores_leaf_means(self)),
            *(PART_KERNELS if large else ()),
            draws_of_rows,
            update_rules if has_rule_updates(self.configuration) else keep_rules,
            *self.jumps,
            update_h if self.learns_h else keep_h,
            hmc_steps,
            nuts_on_tree,
            advance,
            *((pass_over_parts, parallel_likelihood) if large else (small,)),
        ]

    @property
    def jumps(self) -> tuple[Any, Any]:
        """Of a tree alone, and with leaf probabilities: from the prior, where that is asked for."""
        if self.configuration.method.moves != "prior":
            return no_jump, no_label_jump
        samples_them = family_of(self) == LABELS
        return propose_jump, jump_with_probabilities if samples_them else no_label_jump

    @property
    def learns_h(self) -> bool:
        return isinstance(self.configuration.h, str) and self.configuration.h == "learn"

    @property
    def max_nuts_depth(self) -> int:
        """As set; otherwise by the moves, and for large data by the rows.

        Then there are three gradients, or more that together see at most ROWS_PER_STEP rows: large
        data are not long in finding the thresholds, and a scan costs what a gradient does.
        """
        method = self.configuration.method
        if method.max_nuts_depth is not None:
            depth: int = method.max_nuts_depth
            return depth
        most = MAX_NUTS_DEPTH
        if method.moves == "informed":
            most = INFORMED_NUTS_DEPTH[method.name]
        if self.data.n_rows <= BINNED_ROWS:
            return most
        return min(max(int(np.log2(ROWS_PER_STEP / self.data.n_rows)), 2), most)

    @property
    def leaf_rows(self) -> float:
        """See LEAF_ROWS; infinite where the length of trajectories was set, or moves are not."""
        method = self.configuration.method
        if method.max_nuts_depth is not None or method.moves == "prior":
            return np.inf
        return LEAF_ROWS[method.name]


class RJHMCChain:
    """One chain of it: its state, its generator, and room for draws."""

    remembers = ("rng", "state")

    def __init__(self, sampler: RJHMC, rng: np.random.Generator, keep: bool = True) -> None:
        self.rng = rng
        self.plan = make_plan(sampler, keep)
        self.calls = Calls(
            steps=hmc_steps,
            jump=sampler.jumps[0],
            label_jump=sampler.jumps[1],
            update_h=update_h if sampler.learns_h else keep_h,
        )
        self.state = make_state(sampler)
        softnesses = 0
        if sampler.learns_h:
            self.state.model.h[:] = first_softness_of(sampler.h, sampler.configuration)
            softnesses = len(sampler.h) if sampler.configuration.method.h_by_feature else 1
        self.block = make_block(
            sampler.configuration.max_leaves,
            self.state.tree.weights.shape[1],
            max(sampler.n_classes, 1),
            softnesses,
        )
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

    @property
    def power(self) -> NDArray[np.float64]:
        return self.state.model.power

    def log_likelihood(self) -> float:
        """Where its power is 0, the chain has not computed it: then it is, for an exchange."""
        state, model = self.state, self.state.model
        if model.power[0] == 0.0:
            state.log_like[0] = evaluate(model, model.family, state.tree, state.work, VALUE)
        return float(state.log_like[0])

    def exchanged(self) -> list[Record | NDArray[Any]]:
        model = self.state.model
        return [self.state.tree, self.state.log_like, model.h, model.leaves.p]

    def after_exchange(self) -> None:
        self.state.proposals.scan.tables.sigma[0] = np.nan  # its tables may be for another h

    def n_leaves(self) -> int:
        return (int(self.state.tree.n_nodes[0]) + 1) // 2

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
