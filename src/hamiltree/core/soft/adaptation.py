"""Step sizes and masses: dual averaging, Stan's warm-up windows, and where they are kept.

Two ways, one mechanism. Within one intermediate run of the paper's algorithm the dimension is
fixed and a mass is kept a coordinate. Across jumps it is not: then step sizes are kept by number
of splits and masses by kind of parameter and depth in the tree. Both are constants of the
topology, which NUTS does not change, so that freezing them leaves every NUTS step exact.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..backend.jit import kernel
from ..backend.records import Float1, Float2, Record
from .data import MEANS, has_noise
from .target import moves_in

# Dual averaging after Hoffman and Gelman, with their constants.
GAMMA, T0, KAPPA = 0.05, 10.0, 0.75
LOG_STEP, LOG_STEP_BAR, ERROR_BAR, ANCHOR, COUNT = 0, 1, 2, 3, 4
AVERAGER = 5
"""Floats a dual averager keeps."""

THRESHOLD, WEIGHT, MEAN, SIGMA = 0, 1, 2, 3
DEPTHS = 16
"""Deeper nodes share the last mass."""
FEW, ANY = 5.0, -1.0
"""A size visited less often than this since the last window takes its neighbour's step."""


@kernel
def restart_averager(averager, step):
    averager[LOG_STEP] = math.log(step)
    averager[LOG_STEP_BAR] = math.log(step)
    averager[ERROR_BAR] = 0.0
    averager[ANCHOR] = math.log(10.0 * step)
    averager[COUNT] = 0.0


@kernel
def update_averager(averager, accept_stat, target_accept):
    averager[COUNT] += 1.0
    t = averager[COUNT]
    weight = 1.0 / (t + T0)
    averager[ERROR_BAR] += weight * (target_accept - accept_stat - averager[ERROR_BAR])
    averager[LOG_STEP] = averager[ANCHOR] - math.sqrt(t) / GAMMA * averager[ERROR_BAR]
    # a flat density accepts every step: keep the step in range so that it stays a number
    averager[LOG_STEP] = min(max(averager[LOG_STEP], -50.0), 10.0)
    share = t ** (-KAPPA)
    averager[LOG_STEP_BAR] += share * (averager[LOG_STEP] - averager[LOG_STEP_BAR])


def windows(n: int) -> NDArray[np.int64]:
    """Boundaries of Stan's warm-up windows over n iterations: [slow start, ends of slow windows].

    Iterations before the first entry and from the last on adapt the step only; at each end in
    between the mass is renewed. Fewer than 20 iterations have no slow phase: two equal entries.
    """
    if n < 20:
        return np.array([n, n], np.int64)
    first, last, width = 75, 50, 25
    if first + width + last > n:
        first, last = int(0.15 * n), int(0.1 * n)
        return np.array([first, n - last], np.int64)
    bounds = [first]
    while bounds[-1] < n - last:
        end = bounds[-1] + width
        width *= 2
        if end + width > n - last:
            end = n - last
        bounds.append(end)
    return np.array(bounds, np.int64)


def window_masks(n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each of n iterations: is it in a slow window, and does one end with it."""
    bounds = windows(n)
    place = np.arange(n)
    slow = (place >= bounds[0]) & (place < bounds[-1])
    return slow, slow & np.isin(place + 1, bounds[1:])


def h_schedule(n: int, h_init: ArrayLike, h_final: ArrayLike) -> NDArray[np.float64]:
    """Softness at each of n warm-up iterations, [n]; or, of several features, [n, features].

    h_init through the first fast window, then a straight line that reaches h_final exactly, 100
    iterations before the last slow window ends. Where that leaves no room the line ends with the
    slow phase, and without a slow phase it takes the whole warm-up.
    """
    bounds = windows(n)
    start, end = int(bounds[0]), int(bounds[-1]) - 1 - 100
    if n < 20:
        start, end = 0, n - 1
    elif end <= start:
        end = int(bounds[-1]) - 1
    steps = np.arange(n)
    share = np.clip((steps - start) / max(end - start, 1), 0.0, 1.0)
    first, final = np.asarray(h_init, np.float64), np.asarray(h_final, np.float64)
    share = share.reshape(n, *[1] * first.ndim)
    ramp = first + share * (final - first)
    return np.where(share == 1.0, final, ramp)


# ------------------------------------------------------------------ across topologies


class Tuning(Record, role="state"):
    """What warm-up learns and sampling keeps."""

    averager: Float2
    """[max_leaves, AVERAGER]; row s for trees with s splits. COUNT -1: never adapted."""
    frozen: Float1
    """[max_leaves]; step by number of splits once warm-up is over, 0 before."""
    scale: Float2
    """[4, DEPTHS]; inverse mass by kind of parameter and depth."""
    squares: Float2
    """[4, DEPTHS]; squared moves of NUTS in this window."""
    moves: Float2
    """[4, DEPTHS]; how many."""
    h_moves: Float1
    """[p]; mean move of log h; infinite before the first, see ``learned_h``."""


def make_tuning(max_leaves: int, n_columns: int) -> Tuning:
    averager = np.zeros((max_leaves, AVERAGER))
    averager[:, COUNT] = -1.0
    return Tuning(
        averager=averager,
        frozen=np.zeros(max_leaves),
        scale=np.ones((4, DEPTHS)),
        squares=np.zeros((4, DEPTHS)),
        moves=np.zeros((4, DEPTHS)),
        h_moves=np.full(n_columns, np.inf),
    )


@kernel
def place_of(model, tree, kinds, depths):
    """Kind and depth of each unconstrained coordinate, in the order of ``target``."""
    at = 0
    if model.h[0] > 0.0:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] > 1 and moves_in(model, tree, i):
                for j in range(max(tree.weights.shape[1], 1)):
                    kinds[at] = THRESHOLD if j == 0 else WEIGHT
                    depths[at] = min(tree.depth[i], DEPTHS - 1)
                    at += 1
    if model.family == MEANS:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] == 1:
                kinds[at] = MEAN
                depths[at] = min(tree.depth[i], DEPTHS - 1)
                at += 1
    if has_noise(model.family):
        kinds[at] = SIGMA
        depths[at] = 0


@kernel
def nearest_step(averager, splits, few):
    """The step of the nearest number of splits with more than ``few`` updates; 0 if none."""
    n = averager.shape[0]
    for distance in range(n):
        for s in (splits - distance, splits + distance):
            if 0 <= s < n and averager[s, COUNT] > few:
                return math.exp(averager[s, LOG_STEP_BAR])
    return 0.0


@kernel
def record_moves(tuning, kinds, depths, before, after):
    """Half the squared move of a NUTS step estimates a variance within one topology."""
    for j in range(after.shape[0]):
        move = after[j] - before[j]
        tuning.squares[kinds[j], depths[j]] += 0.5 * move * move
        tuning.moves[kinds[j], depths[j]] += 1.0


@kernel
def end_window(tuning):
    """New masses from the window's moves, shrunk as in Stan; step sizes start over."""
    for kind in range(4):
        for d in range(DEPTHS):
            n = tuning.moves[kind, d]
            if n > 0.0:
                variance = tuning.squares[kind, d] / n
                tuning.scale[kind, d] = (n * variance + 5e-3) / (n + 5.0)
            tuning.squares[kind, d] = 0.0
            tuning.moves[kind, d] = 0.0
    for s in range(tuning.averager.shape[0]):
        if tuning.averager[s, COUNT] >= 0.0:
            restart_averager(tuning.averager[s], math.exp(tuning.averager[s, LOG_STEP_BAR]))


@kernel
def freeze(tuning):
    """Fix the step of every size: its own average, or its nearest well-visited neighbour's."""
    for s in range(tuning.averager.shape[0]):
        step = nearest_step(tuning.averager, s, FEW)
        if step == 0.0:
            step = nearest_step(tuning.averager, s, ANY)
        tuning.frozen[s] = step if step > 0.0 else 0.1
