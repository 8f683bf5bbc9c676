"""The no-U-turn sampler: multinomial weights, diagonal mass, no recursion, no allocation.

``target(q, grad, args)`` returns a log density and fills its gradient. Trajectories double in a
random direction; a new half is sampled in proportion to its weights as it is built, and replaces
the old half's choice with probability min(1, new / old).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from ..backend.jit import inlined, kernel
from ..backend.records import Float2, Record
from ..densities import log_add

MAX_ENERGY_ERROR = 1000.0
"""A trajectory whose energy is off by more than this has diverged."""


class NutsWork(Record, role="scratch"):
    """Scratch of one chain, for up to ``dimension`` coordinates."""

    q: Float2
    """[5, dimension]: left end, right end, moving, proposal of the tree, of the new half."""
    p: Float2
    """[5, dimension]: left end, right end, moving, sum of the tree, sum of the new half."""
    g: Float2
    """[3, dimension]: gradient at left end, right end, moving."""
    corner_p: Float2
    """[max_depth, dimension]: momentum where a sub-tree of each size began."""
    corner_sum: Float2
    """[max_depth, dimension]: the new half's momentum sum up to and including that point."""


class NutsInfo(NamedTuple):
    """What a person reads of a transition."""

    accept_stat: float
    depth: int
    n_gradients: int
    divergent: bool
    log_density: float


INFO_TYPES = (types.float64, types.int64, types.int64, types.boolean, types.float64)
"""Of the fields of ``NutsInfo``."""

LEFT, RIGHT, MOVING, WHOLE, HALF = 0, 1, 2, 3, 4


def make_nuts_work(dimension: int, max_depth: int) -> NutsWork:
    return NutsWork(
        q=np.zeros((5, dimension)),
        p=np.zeros((5, dimension)),
        g=np.zeros((3, dimension)),
        corner_p=np.zeros((max(max_depth, 1), dimension)),
        corner_sum=np.zeros((max(max_depth, 1), dimension)),
    )


@kernel
def kinetic(p, inverse_mass):
    total = 0.0
    for j in range(inverse_mass.shape[0]):
        total += inverse_mass[j] * p[j] * p[j]
    return 0.5 * total


@inlined
def leapfrog(target, args, q, p, g, step, inverse_mass):
    for j in range(q.shape[0]):
        p[j] += 0.5 * step * g[j]
        q[j] += step * inverse_mass[j] * p[j]
    log_density = target(q, g, args)
    for j in range(q.shape[0]):
        p[j] += 0.5 * step * g[j]
    return log_density


@kernel
def is_turning(first, last, total, inverse_mass):
    """Whether either end's velocity points against the summed momentum."""
    along_first = 0.0
    along_last = 0.0
    for j in range(inverse_mass.shape[0]):
        along_first += inverse_mass[j] * first[j] * total[j]
        along_last += inverse_mass[j] * last[j] * total[j]
    return along_first <= 0.0 or along_last <= 0.0


@kernel
def count_ones(bits):
    ones = 0
    while bits:
        ones += bits & 1
        bits >>= 1
    return ones


@kernel
def closes_a_turn(work, n, point, inverse_mass):
    """Whether a sub-tree that ends at this odd-numbered point of the new half turns back.

    The sub-trees that end here are as many as ``point`` has trailing ones; each began where a
    corner was kept, at the place given by the ones of ``point // 2``.
    """
    ones = count_ones(point >> 1)
    ending = count_ones(point ^ (point + 1)) - 1  # the trailing ones of ``point``
    for k in range(ones, ones - ending, -1):
        along_first = 0.0
        along_last = 0.0
        for j in range(n):
            total = work.p[HALF, j] - work.corner_sum[k, j] + work.corner_p[k, j]
            along_first += inverse_mass[j] * work.corner_p[k, j] * total
            along_last += inverse_mass[j] * work.p[MOVING, j] * total
        if along_first <= 0.0 or along_last <= 0.0:
            return True
    return False


@kernel
def keep_corner(work, n, point):
    place = count_ones(point >> 1)
    for j in range(n):
        work.corner_p[place, j] = work.p[MOVING, j]
        work.corner_sum[place, j] = work.p[HALF, j]


@inlined
def nuts_transition(target, args, q, step, inverse_mass, max_depth, work, rng):
    """One transition from ``q``, which ends as the new position."""
    n = q.shape[0]
    moving_q, moving_p, moving_g = work.q[MOVING, :n], work.p[MOVING, :n], work.g[MOVING, :n]
    start_density = target(q, moving_g, args)
    for j in range(n):
        moving_q[j] = q[j]
        moving_p[j] = rng.standard_normal() / math.sqrt(inverse_mass[j])
        work.q[WHOLE, j] = q[j]
        work.p[WHOLE, j] = moving_p[j]
        for end in (LEFT, RIGHT):
            work.q[end, j] = q[j]
            work.p[end, j] = moving_p[j]
            work.g[end, j] = moving_g[j]
    start_energy = kinetic(moving_p, inverse_mass) - start_density
    chosen_density = start_density
    log_weight = 0.0
    accept_sum = 0.0
    n_gradients = 0
    depth = 0
    divergent = False
    while depth < max_depth:
        end = RIGHT if rng.random() < 0.5 else LEFT
        signed_step = step if end == RIGHT else -step
        for j in range(n):
            moving_q[j] = work.q[end, j]
            moving_p[j] = work.p[end, j]
            moving_g[j] = work.g[end, j]
            work.p[HALF, j] = 0.0
        half_weight = -np.inf
        half_density = -np.inf
        turned = False
        for point in range(1 << depth):
            density = leapfrog(
                target, args, moving_q, moving_p, moving_g, signed_step, inverse_mass
            )
            n_gradients += 1
            gain = start_energy - (kinetic(moving_p, inverse_mass) - density)
            if math.isnan(gain):
                gain = -np.inf
            accept_sum += min(1.0, math.exp(min(gain, 0.0)))
            if gain < -MAX_ENERGY_ERROR:
                divergent = True
                break
            half_weight = log_add(half_weight, gain)
            if math.log(rng.random()) < gain - half_weight:
                half_density = density
                for j in range(n):
                    work.q[HALF, j] = moving_q[j]
            for j in range(n):
                work.p[HALF, j] += moving_p[j]
            if point % 2 == 0:
                keep_corner(work, n, point)
            elif closes_a_turn(work, n, point, inverse_mass):
                turned = True
                break
        if divergent or turned:
            break
        depth += 1
        if math.log(rng.random()) < half_weight - log_weight:
            chosen_density = half_density
            for j in range(n):
                work.q[WHOLE, j] = work.q[HALF, j]
        log_weight = log_add(log_weight, half_weight)
        for j in range(n):
            work.q[end, j] = moving_q[j]
            work.p[end, j] = moving_p[j]
            work.g[end, j] = moving_g[j]
            work.p[WHOLE, j] += work.p[HALF, j]
        if is_turning(work.p[LEFT], work.p[RIGHT], work.p[WHOLE], inverse_mass):
            break
    for j in range(n):
        q[j] = work.q[WHOLE, j]
    accept_stat = accept_sum / max(n_gradients, 1)
    return NutsInfo(accept_stat, depth, n_gradients, divergent, chosen_density)


@inlined
def first_step_size(target, args, q, inverse_mass, work, rng):
    """Double or halve from 1 until one leapfrog step is accepted about 80 % of the time."""
    n = q.shape[0]
    moving_q, moving_p, moving_g = work.q[MOVING, :n], work.p[MOVING, :n], work.g[MOVING, :n]
    step = 1.0
    direction = 0
    for _ in range(60):
        density = target(q, moving_g, args)
        for j in range(n):
            moving_q[j] = q[j]
            moving_p[j] = rng.standard_normal() / math.sqrt(inverse_mass[j])
        energy = kinetic(moving_p, inverse_mass) - density
        density = leapfrog(target, args, moving_q, moving_p, moving_g, step, inverse_mass)
        gain = energy - (kinetic(moving_p, inverse_mass) - density)
        good = gain > math.log(0.8)  # False for NaN
        if direction == 0:
            direction = 1 if good else -1
        elif good != (direction == 1):
            break
        step *= 2.0 if direction == 1 else 0.5
    return step
