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
from ..core.smc.gaps import EMPIRICAL, OPTIMAL, PRIOR, make_scratch
from ..core.smc.node_pool import NODES, ROWS, add_root, enlarged, make_pool, make_table
from ..core.smc.particles import (
    FINISHED,
    FULL,
    MULTINOMIAL,
    SYSTEMATIC,
    Island,
    SMCPlan,
    advance,
    drop_unused,
    make_particles,
    widened,
    write_particles,
)
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
        prior = tree_prior_of(len(columns), configuration)
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
        return cls(plan, n_particles)

    @property
    def kernels(self) -> list[Any]:
        return [advance, drop_unused, write_particles, add_root, draws_of_rows]

    def start(self, rng: np.random.Generator) -> SMCChain:
        return SMCChain(self, rng)

    @property
    def h(self) -> NDArray[np.float64]:
        return np.zeros(len(self.plan.table.rank))


class SMCChain:
    """One island: its particles, the nodes they share, and its generator."""

    remembers = ("rng", "island", "finished")

    def __init__(self, sampler: SMC, rng: np.random.Generator) -> None:
        self.rng = rng
        self.plan = sampler.plan
        table, n = self.plan.table, sampler.n_particles
        room = FIRST_ROWS * table.rank.shape[1]
        pool = make_pool(table, FIRST_NODES, room, self.plan.proposal == OPTIMAL)
        add_root(table, pool)
        log_root = 0.0 if table.power == 0.0 else table.power * float(pool.log_marginal[0])
        particles = make_particles(n, FIRST_WIDTH, log_root - math.log(n))
        self.island = Island(particles=particles, pool=pool, scratch=make_scratch(table))
        self.finished = False

    def advance(self, n: int) -> list[Piece]:
        """Make n decisions or so; returns all particles once none can grow any more."""
        if self.finished:
            return []
        while (status := advance(self.plan, self.island, n, self.rng)) == FULL:
            self._make_room()
        self.finished = status == FINISHED
        return [self._write(len(self.island.particles.head))] if self.finished else []

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the particles."""
        advance(self.plan, self.island, 0, self.rng)
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
