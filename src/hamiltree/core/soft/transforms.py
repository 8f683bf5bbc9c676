"""Maps between the constrained parameters and the real line, with their log Jacobians.

Each ``_gradient`` turns a derivative by the constrained parameter into one by the unconstrained,
the derivative of the log Jacobian included.
"""

from __future__ import annotations

import math

from ..backend.jit import kernel


@kernel
def logistic(u):
    """For single parameters, accurate in both tails."""
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    e = math.exp(u)
    return e / (1.0 + e)


@kernel
def logit(x):
    return math.log(x) - math.log1p(-x)


@kernel
def unit_interval(u):
    """(x, log dx/du) with x strictly inside (0, 1) however large u is."""
    x = min(max(logistic(u), 1e-300), 1.0 - 1.2e-16)
    log_jacobian = -abs(u) - 2.0 * math.log1p(math.exp(-abs(u)))
    return x, log_jacobian


@kernel
def simplex(u, weights):
    """Stick breaking: fill ``weights`` [p] from ``u`` [p - 1]; returns the log Jacobian.

    z_k = logistic(u_k - log(p - 1 - k)), weight k = z_k x what is left of the stick.
    """
    p = weights.shape[0]
    left = 1.0
    log_jacobian = 0.0
    for k in range(p - 1):
        shifted = u[k] - math.log(p - 1 - k)
        z, log_slope = unit_interval(shifted)
        log_jacobian += log_slope + math.log(left)
        weights[k] = max(left * z, 1e-300)
        # 1 - z from the other tail, so that the rest never cancels to zero
        left = max(left * logistic(-shifted), 1e-300)
    weights[p - 1] = left
    return log_jacobian


@kernel
def simplex_inverse(weights, u):
    p = weights.shape[0]
    rest = 0.0
    for k in range(p - 1, 0, -1):
        rest += weights[k]
        u[k - 1] = math.log(weights[k - 1]) - math.log(rest) + math.log(p - k)


@kernel
def simplex_gradient(u, weights, d_weights, out):
    """d/du of f(weights(u)) + log Jacobian, from d_weights = df/dweights.

    Backwards along the stick: with ``carry`` = d(f + log Jacobian)/d(what is left after k).
    """
    p = weights.shape[0]
    carry = d_weights[p - 1]
    left_after = weights[p - 1]
    for k in range(p - 2, -1, -1):
        left = left_after + weights[k]
        z = logistic(u[k] - math.log(p - 1 - k))
        slope = z * (1.0 - z)
        # weights[k] = left z; left_after = left (1 - z); log Jacobian: log z (1 - z) + log left
        out[k] = slope * left * (d_weights[k] - carry) + 1.0 - 2.0 * z
        carry = z * d_weights[k] + (1.0 - z) * carry + 1.0 / left
        left_after = left


@kernel
def balances(u, weights):
    """Log ratios: fill ``weights`` [p] from ``u`` [p - 1]; returns the log Jacobian.

    Isometric: u are coordinates of the centred logarithms of the weights in an orthonormal basis,
    whose vector k compares the first k + 1 weights with the next one.
    """
    p = weights.shape[0]
    rest = 0.0
    top = -math.inf
    for f in range(p - 1, -1, -1):
        own = 0.0
        if f > 0:
            own = -f * u[f - 1] / math.sqrt(f * (f + 1.0))
        weights[f] = own + rest
        top = max(top, weights[f])
        if f > 0:
            rest += u[f - 1] / math.sqrt(f * (f + 1.0))
    total = 0.0
    for f in range(p):
        weights[f] = math.exp(weights[f] - top)
        total += weights[f]
    log_jacobian = 0.5 * math.log(p)
    for f in range(p):
        weights[f] = max(weights[f] / total, 1e-300)
        log_jacobian += math.log(weights[f])
    return log_jacobian


@kernel
def balances_inverse(weights, u):
    before = 0.0  # sum of the logarithms so far
    for f in range(weights.shape[0]):
        log_weight = math.log(weights[f])
        if f > 0:
            u[f - 1] = (before - f * log_weight) / math.sqrt(f * (f + 1.0))
        before += log_weight


@kernel
def balances_gradient(weights, d_weights, out):
    """d/du of f(weights(u)) + log Jacobian, from d_weights = df/dweights."""
    p = weights.shape[0]
    mean = 0.0
    for f in range(p):
        mean += weights[f] * d_weights[f]
    before = 0.0
    for f in range(p):
        by_log = weights[f] * (d_weights[f] - mean) + 1.0 - p * weights[f]
        if f > 0:
            out[f - 1] = (before - f * by_log) / math.sqrt(f * (f + 1.0))
        before += by_log
