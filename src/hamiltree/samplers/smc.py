"""SMC (Lakshminarayanan, Roy and Teh 2013): trees grown top down by weighted particles.

An island is a chain to the rest of the library, and a particle a draw. In each step every particle
splits or stops its oldest open leaf and has its weight updated; uneven weights are resampled.
Weights are exact for the prior over trees and add up to an unbiased estimate of the evidence.
Islands never interact. There is no warm-up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.forest import draws_of_rows
from ..core.hard.leaves import make_leaf_model, n_stats, n_values
from ..core.smc.gaps import MOST_LEVELS, make_scratch
from ..core.smc.node_pool import NODES, ROWS, Table, add_root, enlarged, make_pool, make_table
from ..core.smc.particles import (
    FINISHED,
    FULL,
    MULTINOMIAL,
    SYSTEMATIC,
    Island,
    SMCPlan,
    advance,
    advance_special,
    drop_unused,
    make_particles,
    widened,
    write_particles,
)
from ..core.smc.proposals import EMPIRICAL, OPTIMAL, PRIOR
from ..core.smc.special import SpecialRules, make_special_rules
from ..core.tree.kinds import Kinds
from ..core.tree.record import FOUNDER, LOG_WEIGHT, SCALARS, Block, Piece
from .common import Problem, tree_prior_of

if TYPE_CHECKING:
    from ..methods.base import Configuration

PROPOSALS = {"prior": PRIOR, "empirical": EMPIRICAL, "posterior": OPTIMAL}
RESAMPLINGS = {"systematic": SYSTEMATIC, "multinomial": MULTINOMIAL}
FIRST_NODES, FIRST_ROWS, FIRST_WIDTH = 256, 8, 31
"""Room at first, doubled when needed: for nodes of all trees, for rows (in times the data) and for
nodes of one tree."""


@dataclass(frozen=True)
class SMC:
    """The sampler: configuration shared by its islands."""

    plan: SMCPlan
    special: SpecialRules | None
    """None where no column is special."""
    n_particles: int
    """Of each island."""

    @classmethod
    def build(cls, problem: Problem, configuration: Configuration[Any], n_particles: int) -> SMC:
        columns, weights = np.asarray(problem.columns, np.float64), problem.weights
        method = configuration.method
        leaf_model, target, codes = make_leaf_model(
            problem.y,
            problem.n_classes,
            class_prior=method.class_concentration(problem.n_classes),
            variance_prior=method.variance_prior,
            mean_prior=method.mean_prior,
            weights=weights,
        )
        prior = tree_prior_of(len(columns), configuration, problem.kinds)
        table = make_table(
            columns,
            leaf_model,
            target,
            codes,
            weight=np.exp(prior.log_feature),
            power=method.likelihood_power,
            min_size=method.min_size,
            row_weight=weights,
        )
        plan = SMCPlan(
            table=table,
            prior=prior,
            proposal=PROPOSALS[method.split_proposal],
            resampling=RESAMPLINGS[method.resampling],
            ess_threshold=float(method.ess_threshold),
        )
        if plan.proposal == OPTIMAL:
            _refuse_many_levels(table, prior.kinds, problem.names)
        return cls(plan, make_special_rules(columns, prior), n_particles)

    @property
    def kernels(self) -> list[Any]:
        first = advance if self.special is None else advance_special
        return [first, drop_unused, write_particles, add_root, draws_of_rows]

    def start(self, rng: np.random.Generator) -> SMCChain:
        return SMCChain(self, rng)

    @property
    def h(self) -> NDArray[np.float64]:
        return np.zeros(len(self.plan.table.rank))


def _refuse_many_levels(table: Table, kinds: Kinds, names: tuple[str, ...]) -> None:
    counts = np.where(kinds.levels > 0, np.diff(table.first), 0)
    if (counts <= MOST_LEVELS).all():
        return
    told = ", ".join(
        f"{names[f] if names else f'column {f}'} has {counts[f]}"
        for f in np.flatnonzero(counts > MOST_LEVELS)
    )
    raise ValueError(
        'split_proposal="posterior" weighs every set of levels, which it can for categories of up '
        f'to {MOST_LEVELS} levels: {told}. Set split_proposal="empirical", which draws sets from '
        "their prior, or make fewer levels of them"
    )


class SMCChain:
    """One island: its particles, the nodes they share, and its generator."""

    remembers = ("rng", "island", "finished")

    def __init__(self, sampler: SMC, rng: np.random.Generator) -> None:
        self.rng = rng
        self.plan, self.special = sampler.plan, sampler.special
        table, n = self.plan.table, sampler.n_particles
        room = FIRST_ROWS * table.rank.shape[1]
        pool = make_pool(table, FIRST_NODES, room, self.plan.proposal == OPTIMAL)
        add_root(table, pool)
        log_root = 0.0 if table.power == 0.0 else table.power * float(pool.log_marginal[0])
        scratch = make_scratch(table, self.plan.prior.kinds)
        some = self.special is not None
        particles = make_particles(n, FIRST_WIDTH, log_root - math.log(n), some)
        self.island = Island(particles=particles, pool=pool, scratch=scratch)
        self.finished = False

    def advance(self, n: int) -> list[Piece]:
        """Make n decisions or so; returns all particles once none can grow any more."""
        if self.finished:
            return []
        while (status := self._advance(n)) == FULL:
            self._make_room()
        self.finished = status == FINISHED
        return [self._write(len(self.island.particles.head))] if self.finished else []

    def _advance(self, n: int) -> int:
        first = advance if self.special is None else advance_special
        status: int = first(self.plan, self.island, self.special, n, self.rng)
        return status

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the particles."""
        self._advance(0)
        drop_unused(self.island)
        self._write(0)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Nothing is accepted or rejected here."""
        return {"warmup": {}, "sampling": {}}

    def _make_room(self) -> None:
        """Drop what nobody needs; double what is then still half full."""
        particles, pool = self.island.particles, self.island.pool
        if particles.n_nodes.max() + 2 > particles.node.shape[1]:
            wider = widened(particles, 2 * particles.node.shape[1])
            self.island = self.island._replace(particles=wider)
        drop_unused(self.island)
        table, capacity, room = self.plan.table, len(pool.start), len(pool.rows)
        crowded = bool(pool.filled[NODES] > capacity // 2)
        # A node that is split next needs room for all of its rows.
        tight = bool(pool.filled[ROWS] + table.rank.shape[1] > room // 2)
        if crowded or tight:
            larger = enlarged(pool, table, capacity * (1 + crowded), room * (1 + tight))
            self.island = self.island._replace(pool=larger)
            drop_unused(self.island)

    def _write(self, n: int) -> Piece:
        """The first n particles as a block of draws."""
        particles, table = self.island.particles, self.plan.table
        nodes = int(particles.n_nodes[:n].sum())
        splits, leaves = (nodes - n) // 2, (nodes + n) // 2
        block = Block(
            filled=np.array([n, nodes, splits, leaves]),
            n_nodes=np.zeros(n, np.int64),
            size=np.zeros(nodes, np.int32),
            feature=np.zeros(splits, np.int32),
            threshold=np.zeros(splits),
            levels=np.zeros(splits, np.uint64),
            weights=np.zeros((splits, 0)),
            leaf=np.zeros((leaves, n_values(table.leaf_model))),
            scalars=np.zeros((n, len(SCALARS))),
            h=np.zeros((n, 0)),
        )
        work = np.zeros((2, particles.node.shape[1]), np.int64)
        nothing = np.zeros(n_stats(table.leaf_model))
        write_particles(self.plan, self.island, block, work, nothing, self.rng)
        block.scalars[:, LOG_WEIGHT] = particles.log_weight[:n]
        block.scalars[:, FOUNDER] = particles.founder[:n]
        return Piece(**block._asdict(), rungs=np.zeros((n, 0)))
