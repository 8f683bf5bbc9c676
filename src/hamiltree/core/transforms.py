"""Maps between the constrained parameters and the real line, with their log Jacobians.

Each ``_gradient`` turns a derivative by the constrained parameter into one by the unconstrained,
the derivative of the log Jacobian included.
"""

from __future__ import annotations

import math

from .jit import inlined, kernel


@inlined
def logistic(u):
    """For single parameters, accurate in both tails."""
    if u >= 0.0:
        return 1.0 / (1.0 + math.exp(-u))
    e = math.exp(u)
    return e / (1.0 + e)


@inlined
def logit(x):
    return math.log(x) - math.log1p(-x)


@inlined
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
