"""Densities and marginal likelihoods, each written once, with every constant.

Versions that look parts of these up in tables, or count in bits and bins, are where they are used;
each says there which of these it equals, and a test compares the two.
"""

from __future__ import annotations

import math

import numpy as np

from .backend.jit import kernel

LOG_2PI = math.log(2.0 * math.pi)


@kernel
def log_add(a, b):
    """Log of the sum of two exponentials."""
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + math.log1p(math.exp(min(a, b) - top))


@kernel
def log_gamma_ratio(x, a):
    """Log of Gamma(x + a) / Gamma(a)."""
    return math.lgamma(x + a) - math.lgamma(a)


@kernel
def digamma(x):
    """Derivative of lgamma for x > 0: recurrence up to 8, then the asymptotic series."""
    result = 0.0
    while x < 8.0:
        result -= 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = square * (
        1.0 / 12.0
        - square
        * (
            1.0 / 120.0
            - square
            * (
                1.0 / 252.0
                - square * (1.0 / 240.0 - square * (1.0 / 132.0 - square * 691.0 / 32760.0))
            )
        )
    )
    return result + math.log(x) - 0.5 * inverse - series


# ------------------------------------------------------------------ parameters


@kernel
def log_normal(x, mean, sd):
    z = (x - mean) / sd
    return -0.5 * z * z - math.log(sd) - 0.5 * LOG_2PI


@kernel
def log_power_of_normal(n, sigma, power):
    """Log of n normal densities to a power over as many of sd sigma / sqrt(power), a constant."""
    return 0.5 * n * ((1.0 - power) * (LOG_2PI + 2.0 * math.log(sigma)) - math.log(power))


@kernel
def log_inverse_gamma(x, shape, scale):
    return shape * math.log(scale) - math.lgamma(shape) - (shape + 1.0) * math.log(x) - scale / x


@kernel
def log_beta(x, a, b):
    if a == 1.0 and b == 1.0:
        return 0.0
    constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return constant + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x)


@kernel
def log_symmetric_dirichlet(weights, a):
    """By the first p - 1 weights."""
    p = weights.shape[0]
    total = math.lgamma(p * a) - p * math.lgamma(a)
    if a != 1.0:
        for f in range(p):
            total += (a - 1.0) * math.log(weights[f])
    return total


# ------------------------------------------------------------------ leaves
# A leaf's parameters integrated out, given sums over its rows.


def dirichlet_constant(alpha):
    """What ``log_dirichlet_multinomial`` has whatever the counts are."""
    return math.lgamma(alpha.sum()) - sum(math.lgamma(a) for a in alpha) if len(alpha) else 0.0


@kernel
def log_dirichlet_multinomial(counts, alpha, mass, constant):
    """Class counts of a leaf whose class probabilities are Dirichlet(alpha).

    ``mass`` is the sum of alpha, and ``constant`` its ``dirichlet_constant``.
    """
    total = constant
    rows = mass
    for m in range(alpha.shape[0]):
        total += math.lgamma(counts[m] + alpha[m])
        rows += counts[m]
    return total - math.lgamma(rows)


@kernel
def half_spread(rows, total, squares, prior_mean, prior_rows):
    """Half the squares of y about the leaf's mean, and of that mean about its prior's."""
    if rows == 0.0:
        return 0.0
    mean = total / rows
    about = max(squares - total * mean, 0.0)
    shift = mean - prior_mean
    return 0.5 * (about + rows * prior_rows / (rows + prior_rows) * shift * shift)


@kernel
def log_normal_leaf(rows, spread, shape, rate, prior_rows, constant):
    """y of a leaf whose variance is inverse gamma(shape, rate), its mean normal given that.

    ``spread`` is its ``half_spread``; ``constant`` is what does not depend on the rows,
    log of sqrt(prior_rows) rate^shape / Gamma(shape).
    """
    grown = shape + 0.5 * rows
    total = constant + (math.lgamma(grown) - grown * math.log(rate + spread))
    return total - 0.5 * (rows * LOG_2PI + math.log(prior_rows + rows))


@kernel
def log_known_noise_leaf(rows, total, mean_variance, sigma):
    """y of a leaf with noise sd sigma and mean N(0, mean_variance), over y with mean 0.

    What does not depend on the leaf is left out: it cancels between trees.
    """
    ratio = mean_variance / (sigma * sigma)
    grown = 1.0 + ratio * rows
    return 0.5 * (ratio / grown * total * total / (sigma * sigma) - math.log(grown))
