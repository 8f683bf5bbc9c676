"""q(. | T): the law by which leaf probabilities are proposed for a tree, whatever they were.

It is made for the law of p given the tree (and h and the power), from which it should differ as
little as can be had in a few passes over the rows. Where a row has one leaf, that law is a
Dirichlet for each leaf. Where rows reach several, leaves share what the rows tell, and are less
certain than the rows that they are expected to have would make them: Dirichlets by these rows alone
are far too narrow, and a few of the weights of what they propose outweigh all others.

The ``centre`` is found by expectation and maximisation, and Newton steps. There the
log-likelihood is taken as quadratic in p. With

    away_km = (p_km - centre_km) / spread_km,  spread^2 = centre (1 - centre) / (K - 1),

the precision of ``away``, averaged over the classes, is the sum over the rows of
spread_k phi_k spread_l phi_l / p(y_i)^2 at the row's class (INFORMATION), and what the prior adds
as so many rows. Leaves are drawn from the last to the first. Given those drawn, a leaf has the mean
and the precision of this normal, and is drawn from the Dirichlet that has them, which keeps to the
simplex and has the right tails where a leaf has no row of a class.
"""

from __future__ import annotations

import math

from ..backend.jit import kernel
from ..matrices import cholesky, solve_lower, solve_upper
from ..tree.nodes import n_leaves
from .collapsed import width_of_sums
from .data import EXPECTED, INFORMATION, REACHED
from .labels import SMALLEST_PROBABILITY, spread_of
from .target import evaluate_at

NEWTON_STEPS = 4
"""At most."""
SMALL_STEP = 0.2
"""Of a leaf, in standard deviations of its probabilities: then the centre is good enough."""
MOST_LOST = 0.1
"""A step leaves at least this share of a probability."""


@kernel
def fit_probabilities(model, tree, work):
    """Find q of a tree; ``concentration`` becomes the prior and the rows by the last fit."""
    leaves, power, n_leaf = model.leaves, model.power[0], n_leaves(tree)
    centre = leaves.centre
    if power == 0.0:
        centre_by_rows(model, work, n_leaf)
        sum_precision(model, work, n_leaf)
        return
    for this in range(2):
        evaluate_at(model, centre, tree, work, REACHED if this == 0 else EXPECTED, this > 0)
        centre_by_rows(model, work, n_leaf)
    for _ in range(NEWTON_STEPS):
        evaluate_at(model, centre, tree, work, INFORMATION, True)
        sum_precision(model, work, n_leaf)
        if step_to_mean(model, work, n_leaf) < SMALL_STEP:
            break


@kernel
def centre_by_rows(model, work, n_leaf):
    """Maximisation: the centre is where prior and rows of each leaf have their mean."""
    leaves, power, counts = model.leaves, model.power[0], work.counts
    for k in range(n_leaf):
        mass = 0.0
        for m in range(leaves.centre.shape[1]):
            rows = 0.0 if power == 0.0 else power * counts[0, k, m]
            leaves.concentration[k, m] = leaves.prior[0, m] + rows
            mass += leaves.concentration[k, m]
        for m in range(leaves.centre.shape[1]):
            leaves.centre[k, m] = leaves.concentration[k, m] / mass


@kernel
def sum_precision(model, work, n_leaf):
    """``factor`` of the precision, ``spread`` and ``concentration``, at the centre."""
    leaves, power, counts, sums = model.leaves, model.power[0], work.counts, work.sums
    centre, spread, factor, prior = leaves.centre, leaves.spread, leaves.factor, leaves.prior
    classes, width = centre.shape[1], width_of_sums(n_leaf)
    for k in range(n_leaf):
        for j in range(k + 1):
            factor[k, j] = 0.0 if power == 0.0 else power * sums[0, k * width + j]
        for m in range(classes):
            spread[k, m] = spread_of(centre[k, m], classes)
            factor[k, k] += prior[0, m] * (spread[k, m] / centre[k, m]) ** 2
            rows = 0.0 if power == 0.0 else power * counts[0, k, m]
            leaves.concentration[k, m] = prior[0, m] + rows
    if not cholesky(factor, n_leaf):  # rounding alone: it is a sum of squares
        for k in range(n_leaf):
            for j in range(k):
                factor[k, j] = 0.0
            factor[k, k] = 1.0


@kernel
def step_to_mean(model, work, n_leaf):
    """A Newton step of the centre; the largest of a leaf, in standard deviations."""
    leaves, right = model.leaves, work.mean
    centre, spread, factor = leaves.centre, leaves.spread, leaves.factor
    rows, largest = leaves.concentration, 0.0
    for m in range(centre.shape[1]):
        for k in range(n_leaf):
            mass = 0.0
            for j in range(centre.shape[1]):
                mass += rows[k, j]
            right[k] = (rows[k, m] - centre[k, m] * mass) / spread[k, m]
        solve_lower(factor, n_leaf, right)
        solve_upper(factor, n_leaf, right)
        for k in range(n_leaf):
            largest = max(largest, abs(right[k]) / factor[k, k])
            leaves.away[k, m] = right[k]
    for k in range(n_leaf):
        mass = 0.0
        for m in range(centre.shape[1]):
            moved = centre[k, m] + spread[k, m] * leaves.away[k, m]
            centre[k, m] = max(moved, MOST_LOST * centre[k, m])
            mass += centre[k, m]
        for m in range(centre.shape[1]):
            centre[k, m] /= mass
    return largest


@kernel
def concentrate(leaves, k, n_leaf):
    """Concentration of a leaf, given the leaves after it, whose ``away`` is known."""
    out = leaves.of_leaf[0]
    factor, centre, spread, away = leaves.factor, leaves.centre, leaves.spread, leaves.away
    reciprocal = factor[k, k]  # ``cholesky`` keeps those of the diagonal
    for m in range(out.shape[0]):
        shift = 0.0
        for j in range(k + 1, n_leaf):
            shift -= factor[j, k] * away[j, m]
        mean = centre[k, m] + shift * reciprocal * spread[k, m]
        out[m] = max(mean / (reciprocal * reciprocal), leaves.prior[0, m])
    return out


@kernel
def note_away(leaves, k, p):
    for m in range(p.shape[1]):
        leaves.away[k, m] = (p[k, m] - leaves.centre[k, m]) / leaves.spread[k, m]


@kernel
def draw_dirichlet(concentration, out, rng):
    total = 0.0
    for m in range(out.shape[0]):
        out[m] = max(rng.standard_gamma(concentration[m]), SMALLEST_PROBABILITY)
        total += out[m]
    for m in range(out.shape[0]):
        out[m] = max(out[m] / total, SMALLEST_PROBABILITY)


@kernel
def log_dirichlet(concentration, p):
    total = mass = 0.0
    for m in range(p.shape[0]):
        mass += concentration[m]
        total += (concentration[m] - 1.0) * math.log(p[m]) - math.lgamma(concentration[m])
    return total + math.lgamma(mass)


@kernel
def draw_fitted(leaves, n_leaf, out, rng):
    """Draw the probabilities of all leaves from q."""
    for k in range(n_leaf - 1, -1, -1):
        draw_dirichlet(concentrate(leaves, k, n_leaf), out[k], rng)
        note_away(leaves, k, out)


@kernel
def log_fitted(leaves, n_leaf, p):
    """Log density of q at these probabilities."""
    total = 0.0
    for k in range(n_leaf - 1, -1, -1):
        total += log_dirichlet(concentrate(leaves, k, n_leaf), p[k])
        note_away(leaves, k, p)
    return total
