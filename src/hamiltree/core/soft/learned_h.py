"""What h="learn" adds to a chain: steps of h, which is then a part of the state.

log h is normal, cut off at ``H_RANGE``; one for all columns, or one per column. One slice-sampling
step per iteration, or one for each column that the tree splits on; the others have their prior.

The interval that a step begins with is not stepped out: its length is a constant, drawn with a coin
from two, and its place around the present value is uniform, which is all that slice sampling needs
(Neal, 2003). The shorter length is learnt in warm-up, and frozen with the step sizes.
Needs a likelihood that is normalised over y, which the Dirichlet-multinomial of soft counts is not.
"""

from __future__ import annotations

import math

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, Float1, Record, function_type
from ..backend.units import unit
from ..sampling import tempered
from ..tree.nodes import Tree
from .data import Work
from .target import Model, likelihood

WHOLE_RANGE = 0.125
"""Share of steps that begin with the whole range of the prior, as all do at first."""
MOVES_LONG = 4.0
"""The others begin with so many times the mean move: some three and a half standard deviations."""
MEMORY = 0.1
"""Of the mean, that a step of warm-up renews."""

MOST_TRIES = 200
"""Of a slice, which shrinks by a third or so each: a guard against a likelihood that is NaN."""


class HPrior(Record):
    """The prior of a learned h."""

    learned: bool
    """Otherwise h is fixed, and nothing else here counts."""
    by_feature: bool
    log_median: float
    log_sd: float
    log_mass: float
    """Log of the mass of the normal inside the range."""
    log_low: float
    """Ends of the range of log h."""
    log_high: float


@kernel
def log_prior_of_log_h(h_prior, log_h):
    z = (log_h - h_prior.log_median) / h_prior.log_sd
    constant = math.log(h_prior.log_sd) + 0.5 * math.log(2.0 * math.pi) + h_prior.log_mass
    return -0.5 * z * z - constant


@kernel
def log_prior_of_h(model, h_prior):
    """Density by h itself, of all that are learned."""
    total = 0.0
    for f in range(model.h.shape[0] if h_prior.by_feature else 1):
        log_h = math.log(model.h[f])
        total += log_prior_of_log_h(h_prior, log_h) - log_h
    return total


@kernel
def draw_log_h(h_prior, rng):
    """From the prior."""
    low, high = h_prior.log_low, h_prior.log_high
    while True:
        log_h = h_prior.log_median + h_prior.log_sd * rng.standard_normal()
        if low <= log_h <= high:
            return log_h


@kernel
def set_columns(model, first, last, log_h):
    for f in range(first, last):
        model.h[f] = math.exp(log_h)


@kernel
def splits_on(tree, first, last):
    """Whether the tree's likelihood depends on the h of these columns."""
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1 and (tree.weights.shape[1] > 0 or first <= tree.feature[i] < last):
            return True
    return False


@inlined
def first_interval(h_prior, now, length, rng):
    """Where a slice begins, inside the range: beyond it the density is 0."""
    if math.isinf(length) or rng.random() < WHOLE_RANGE:
        return h_prior.log_low, h_prior.log_high
    low = now - rng.random() * length
    return max(low, h_prior.log_low), min(low + length, h_prior.log_high)


@inlined
def slice_h(model, tree, work, h_prior, first, last, length, log_like, rng):
    """A slice-sampling step of the h that the columns first:last share; the log-likelihood after.

    ``length``: of the first interval, where that is not the whole range.
    """
    now = math.log(model.h[first])
    height = log_prior_of_log_h(h_prior, now) + tempered(model.power[0], log_like)
    height += math.log(max(rng.random(), 1e-300))
    low, high = first_interval(h_prior, now, length, rng)
    for _ in range(MOST_TRIES):
        log_h = low + rng.random() * (high - low)
        set_columns(model, first, last, log_h)
        new_like = likelihood(model, tree, work)
        if log_prior_of_log_h(h_prior, log_h) + tempered(model.power[0], new_like) > height:
            return new_like
        if log_h < now:
            low = log_h
        else:
            high = log_h
    set_columns(model, first, last, now)
    return log_like


@pointer_kernel
def update_h(model, tree, work, h_prior, moves, adapting, log_like, rng):
    """Each learned h given the rest; returns the log-likelihood.

    ``moves`` [p]: mean move of log h, infinite at first; learnt while ``adapting``.
    """
    p = model.h.shape[0]
    width = 1 if h_prior.by_feature else p
    for first in range(0, p, width):
        if splits_on(tree, first, first + width):
            length, before = MOVES_LONG * moves[first], math.log(model.h[first])
            log_like = slice_h(
                model, tree, work, h_prior, first, first + width, length, log_like, rng
            )
            if adapting:
                move = abs(math.log(model.h[first]) - before)
                known = move if math.isinf(moves[first]) else moves[first]
                moves[first] = known + MEMORY * (move - known)
        else:
            set_columns(model, first, first + width, draw_log_h(h_prior, rng))
    return log_like


@pointer_kernel
def keep_h(model, tree, work, h_prior, moves, adapting, log_like, rng):
    """In the place of ``update_h`` where h is fixed."""
    return log_like


UPDATE_H = function_type(float, Model, Tree, Work, HPrior, Float1, bool, float, RNG)
"""The type of these two."""

unit(update_h, UPDATE_H)
unit(keep_h, UPDATE_H)
