"""Particles of SMC: trees that grow from the root, leaf by leaf, in step with one another.

A particle lists its nodes in the order in which they were made. That is also the order in which
they are decided on, so that its queue of open leaves is the end of the list, from ``head`` on.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numba import types

from ..backend.jit import kernel
from ..backend.records import RNG, SCRATCH, Float1, Float2, Int1, Int2, Record, Short2, Word2
from ..backend.units import unit
from ..densities import log_add
from ..hard.leaves import draw_leaf
from ..sampling import tempered
from ..tree.priors import TreePrior, split_probability
from ..tree.record import DEPTH, LOG_LIKELIHOOD, LOG_POSTERIOR, N_LEAVES, SIGMA, Block
from .gaps import GapWork
from .node_pool import (
    NODES,
    UNUSED,
    USED,
    WAITING,
    Pool,
    Table,
    children_of,
    compact,
    has_room,
    rows_of,
)
from .proposals import OPTIMAL, log_split_prior, log_splits, propose_rule
from .special import SpecialRules

SYSTEMATIC, MULTINOMIAL = 0, 1
RUNNING, FULL, FINISHED = 0, 1, 2
"""What ``advance`` returns."""
CURSOR, STEPS, RESAMPLED = 0, 1, 2
"""Places in ``Particles.progress``."""


class SMCPlan(Record):
    """How an island runs; shared by all islands."""

    table: Table
    prior: TreePrior
    proposal: int
    """PRIOR, EMPIRICAL or OPTIMAL."""
    resampling: int
    """SYSTEMATIC or MULTINOMIAL."""
    ess_threshold: float
    """Resample once the effective sample size is at most this share of the particles."""


class Particles(Record, role="state"):
    """Trees, as lists of nodes of the pool; entries beyond ``n_nodes`` are garbage."""

    progress: Int1
    """[3]; next particle in this step, steps done, times resampled."""
    n_nodes: Int1
    """[n]"""
    head: Int1
    """[n]; nodes before it are decided."""
    log_weight: Float1
    """[n]; their exponentials add up to the island's estimate of the evidence."""
    log_prior: Float1
    """[n]; of the decisions made so far."""
    founder: Int1
    """[n]; the particle it descends from."""
    node: Int2
    """[n, width]; in the pool."""
    feature: Short2
    """[n, width]; -1 for a leaf."""
    threshold: Float2
    """[n, width]; values up to it go left; infinite for the rule "is missing"."""
    levels: Word2
    """[n, width]; what goes right beside larger numbers, see ``tree.kinds``; [n, 0] where no column
    is special."""
    left: Int2
    """[n, width]; place of the left child in the list, the right one stands next to it."""
    cumulative: Annotated[Float1, SCRATCH]
    """[n]; scratch of ``resample``."""
    offspring: Annotated[Int1, SCRATCH]
    """[n]; scratch of ``resample``."""


class Island(Record, role="state"):
    """Particles that compete with one another, and what they share."""

    particles: Particles
    pool: Pool
    scratch: GapWork


def make_particles(n: int, width: int, log_weight: float, special: bool = False) -> Particles:
    """Roots, all of one weight; ``special``: some columns are."""
    return Particles(
        progress=np.zeros(3, np.int64),
        n_nodes=np.ones(n, np.int64),
        head=np.zeros(n, np.int64),
        log_weight=np.full(n, log_weight),
        log_prior=np.zeros(n),
        founder=np.arange(n),
        node=np.zeros((n, width), np.int64),
        feature=np.full((n, width), -1, np.int32),
        threshold=np.zeros((n, width)),
        levels=np.zeros((n, width if special else 0), np.uint64),
        left=np.zeros((n, width), np.int64),
        cumulative=np.zeros(n),
        offspring=np.zeros(n, np.int64),
    )


def widened(particles: Particles, width: int) -> Particles:
    """A copy with room for larger trees."""
    more = ((0, 0), (0, width - particles.node.shape[1]))
    lists = {name: getattr(particles, name) for name in ("node", "feature", "threshold", "left")}
    if particles.levels.size:
        lists["levels"] = particles.levels
    return particles._replace(**{name: np.pad(own, more) for name, own in lists.items()})


# ------------------------------------------------------------------ one decision


@kernel
def split_prior(prior, depth):
    """A minimum of two leaves, the only one there can be top down, makes the root split."""
    if depth == 0 and prior.min_leaves > 1:
        return 1.0
    return split_probability(prior, depth)


@kernel
def decide(plan, island, special, i, rng):
    """Split or stop the oldest open leaf of a particle, and update its weight."""
    table, particles, pool = plan.table, island.particles, island.pool
    here = particles.head[i]
    node = particles.node[i, here]
    particles.head[i] = here + 1
    p = split_prior(plan.prior, pool.depth[node])
    chance = p
    if plan.proposal == OPTIMAL:
        log_split = math.log(p) + log_splits(table, pool, node, island.scratch, special)
        log_both = log_add(log_split, math.log1p(-p))
        particles.log_weight[i] += log_both
        chance = math.exp(log_split - log_both)
    if rng.random() >= chance:
        particles.log_prior[i] += math.log1p(-p)
        return
    f, t, levels, cut, correction = propose_rule(
        table, pool, node, plan.proposal, island.scratch, special, rng
    )
    left = children_of(table, pool, node, f, cut, t, levels, special)
    if plan.proposal != OPTIMAL:
        gain = pool.log_marginal[left] + pool.log_marginal[left + 1] - pool.log_marginal[node]
        particles.log_weight[i] += table.power * gain + correction
    particles.log_prior[i] += log_split_prior(table, pool, node, p, f, t, levels, special)
    end = particles.n_nodes[i]
    particles.feature[i, here] = f
    particles.threshold[i, here] = t
    if special is not None:
        particles.levels[i, here] = levels
    particles.left[i, here] = end
    for child in range(2):
        particles.node[i, end + child] = left + child
        particles.feature[i, end + child] = -1
    particles.n_nodes[i] = end + 2


# ------------------------------------------------------------------ one step of all


@kernel
def next_growing(plan, island, i):
    """The first particle from i on with a leaf that can split, and that leaf at its head."""
    particles, varying, most = island.particles, island.pool.varying, plan.prior.max_leaves
    all_nodes, heads, node_of = particles.n_nodes, particles.head, particles.node
    while i < heads.shape[0]:
        n_nodes, head = all_nodes[i], heads[i]
        if (n_nodes + 1) // 2 >= most:
            head = n_nodes
        while head < n_nodes and varying[node_of[i, head]] == 0.0:
            head += 1
        heads[i] = head
        if head < n_nodes:
            break
        i += 1
    return i


@kernel
def copy_particle(particles, i, j):
    n = particles.n_nodes[i]
    particles.n_nodes[j] = n
    particles.head[j] = particles.head[i]
    particles.log_prior[j] = particles.log_prior[i]
    particles.founder[j] = particles.founder[i]
    node, feature, left = particles.node, particles.feature, particles.left
    threshold = particles.threshold
    for k in range(n):
        node[j, k] = node[i, k]
        feature[j, k] = feature[i, k]
        threshold[j, k] = threshold[i, k]
        left[j, k] = left[i, k]
    levels = particles.levels
    for k in range(min(n, levels.shape[1])):
        levels[j, k] = levels[i, k]


@kernel
def draw_offspring(particles, resampling, rng):
    """How many copies each particle gets, with mean in proportion to its weight."""
    cumulative, offspring = particles.cumulative, particles.offspring
    n = offspring.shape[0]
    for i in range(n):
        offspring[i] = 0
    i = 0
    shift = rng.random()
    for k in range(n):
        if resampling == SYSTEMATIC:
            u = (k + shift) / n * cumulative[n - 1]
        else:
            u = rng.random() * cumulative[n - 1]
            i = np.searchsorted(cumulative, u, side="right")
        while i < n - 1 and cumulative[i] <= u:
            i += 1
        offspring[min(i, n - 1)] += 1


@kernel
def resample(plan, particles, rng):
    """Replace light particles by copies of heavy ones where the weights have become uneven."""
    n = particles.log_weight.shape[0]
    top = -np.inf
    for i in range(n):
        top = max(top, particles.log_weight[i])
    total, squares = 0.0, 0.0
    for i in range(n):
        w = math.exp(particles.log_weight[i] - top)
        total += w
        squares += w * w
        particles.cumulative[i] = total
    if total * total > plan.ess_threshold * n * squares:
        return
    draw_offspring(particles, plan.resampling, rng)
    free = 0
    for i in range(n):
        for _ in range(particles.offspring[i] - 1):
            while particles.offspring[free] > 0:
                free += 1
            copy_particle(particles, i, free)
            free += 1
    log_mean = top + math.log(total / n)
    for i in range(n):
        particles.log_weight[i] = log_mean
    particles.progress[RESAMPLED] += 1


@kernel
def advance(plan, island, special, n, rng):
    """Up to n decisions, each of the next particle that can grow; FULL: make room and go on.

    ``special`` is None where no column is special.
    """
    particles = island.particles
    count = particles.head.shape[0]
    for _ in range(n):
        i = next_growing(plan, island, particles.progress[CURSOR])
        if i == count:  # the step is over
            if next_growing(plan, island, 0) == count:
                return FINISHED
            particles.progress[STEPS] += 1
            resample(plan, particles, rng)
            i = next_growing(plan, island, 0)
            if i == count:  # those that could grow have died out
                return FINISHED
        particles.progress[CURSOR] = i
        wide_enough = particles.n_nodes[i] + 2 <= particles.node.shape[1]
        if not (wide_enough and has_room(island.pool, particles.node[i, particles.head[i]])):
            return FULL
        decide(plan, island, special, i, rng)
        particles.progress[CURSOR] = i + 1
    return RUNNING


@kernel
def advance_special(plan, island, special, n, rng):
    """The same with special columns: a kernel of its own, which other data need not compile."""
    return advance(plan, island, special, n, rng)


@kernel
def drop_unused(island):
    """Make room in the pool: drop the nodes of dead particles, and rows that were split."""
    particles, pool = island.particles, island.pool
    for node in range(pool.filled[NODES]):
        pool.renamed[node] = UNUSED
    for i in range(particles.head.shape[0]):
        for k in range(particles.n_nodes[i]):
            node = particles.node[i, k]
            waiting = k >= particles.head[i] and pool.varying[node] > 0.0
            pool.renamed[node] = max(pool.renamed[node], WAITING if waiting else USED)
    compact(pool)
    for i in range(particles.head.shape[0]):
        for k in range(particles.n_nodes[i]):
            particles.node[i, k] = pool.renamed[particles.node[i, k]]


# ------------------------------------------------------------------ the result


@kernel
def measure(particles, i, size):
    """Subtree sizes of a particle's nodes; children stand after their parents."""
    for k in range(particles.n_nodes[i] - 1, -1, -1):
        left = particles.left[i, k]
        size[k] = 1 + size[left] + size[left + 1] if particles.feature[i, k] >= 0 else 1


@kernel
def write_particles(plan, island, block, work, nothing, rng):
    """Write the trees in preorder, as many as the block is for, with values of their leaves.

    ``work`` is [2, width] of integers; ``nothing`` are the sums of an empty leaf, which stand for
    the data where the likelihood is switched off.
    """
    table, particles, pool = plan.table, island.particles, island.pool
    size, stack = work[0], work[1]
    n_classes = table.leaf_model.class_prior.shape[0]
    node, split, leaf = 0, 0, 0
    for i in range(block.n_nodes.shape[0]):
        scalars = block.scalars
        block.n_nodes[i] = particles.n_nodes[i]
        scalars[i, N_LEAVES] = (particles.n_nodes[i] + 1) // 2
        scalars[i, DEPTH] = pool.depth[
            particles.node[i, particles.n_nodes[i] - 1]
        ]  # none is deeper
        measure(particles, i, size)
        log_like, variance = 0.0, 0.0
        waiting = 1
        stack[0] = 0
        while waiting > 0:
            waiting -= 1
            k = stack[waiting]
            block.size[node] = size[k]
            node += 1
            if particles.feature[i, k] >= 0:
                block.feature[split] = particles.feature[i, k]
                block.threshold[split] = particles.threshold[i, k]
                if particles.levels.shape[1] > 0:
                    block.levels[split] = particles.levels[i, k]
                split += 1
                stack[waiting] = particles.left[i, k] + 1
                stack[waiting + 1] = particles.left[i, k]
                waiting += 2
                continue
            where = particles.node[i, k]
            log_like += pool.log_marginal[where]
            hidden = table.power == 0.0 and n_classes == 0
            out = block.leaf[leaf]
            draw_leaf(table.leaf_model, nothing if hidden else pool.stats[where], out, rng)
            if n_classes == 0:
                variance += rows_of(table, pool, where) / table.mass * out[1] * out[1]
            leaf += 1
        scalars[i, LOG_LIKELIHOOD] = log_like
        scalars[i, LOG_POSTERIOR] = particles.log_prior[i] + tempered(table.power, log_like)
        scalars[i, SIGMA] = np.nan if n_classes > 0 else math.sqrt(variance)


unit(advance, SMCPlan, Island, types.none, int, RNG, seconds=5)
unit(advance_special, SMCPlan, Island, SpecialRules, int, RNG, seconds=8)
unit(drop_unused, Island)
unit(write_particles, SMCPlan, Island, Block, Int2, Float1, RNG)
