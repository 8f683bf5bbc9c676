"""The noise sd of a regression tree by slice sampling, leaf means integrated out.

Given the routing, the likelihood depends on sigma through sums that do not change with it: a value
costs a Cholesky factor of leaves x leaves and no pass over the rows, so sigma can be updated well,
whatever NUTS does with it. Inside NUTS alone it can stall.
"""

from __future__ import annotations

import math

import numpy as np

from .collapsed import cholesky, solve_lower, width_of_sums
from .jit import kernel, never_inline
from .means import LOG_2PI
from .nodes import n_leaves
from .priors import log_inverse_gamma
from .target import evaluate

WIDTH = 1.0
"""First width of the slice, in log sigma; doubled in steps to either side where it is too small."""
STEPS = 100


@kernel
def log_density_of_noise(model, work, leaves, yy, log_sigma):
    """Log posterior density of log sigma given the routing, and the log-likelihood there."""
    prior = model.leaf_prior
    sigma = math.exp(log_sigma)
    precision = 1.0 / (sigma * sigma)
    prior_precision = 1.0 / (prior.mu_sd * prior.mu_sd)
    mean = work.table[:, 0]
    width = width_of_sums(leaves)
    for a in range(leaves):
        at = a * width
        mean[a] = work.sums[at] * precision + prior.mu_mean * prior_precision
        for b in range(a + 1):
            work.gram[a, b] = work.sums[at + 1 + b] * precision
        work.gram[a, a] += prior_precision
    if not cholesky(work.gram, leaves):
        return -np.inf, -np.inf
    solve_lower(work.gram, leaves, mean)
    log_det = 0.0
    squares = yy * precision + leaves * prior.mu_mean * prior.mu_mean * prior_precision
    for a in range(leaves):
        log_det -= math.log(work.gram[a, a])
        squares -= mean[a] * mean[a]
    log_like = -0.5 * (
        model.data.n_rows * (LOG_2PI + 2.0 * log_sigma)
        + 2.0 * log_det
        - leaves * math.log(prior_precision)
        + squares
    )
    log_density = log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale) + log_sigma
    if model.power[0] != 0.0:
        log_density += model.power[0] * log_like
    return log_density, log_like


@kernel
def update_noise(model, tree, work, rng):
    """One slice-sampling update of sigma; returns the log-likelihood. ``model`` is COLLAPSED."""
    never_inline()
    leaves = n_leaves(tree)
    current_like = evaluate(model, tree, work, np.bool_(False))
    if current_like == -np.inf:
        return current_like
    yy = 0.0
    for r in range(model.data.y.shape[0]):
        yy += model.data.y[r] * model.data.y[r]
    u = math.log(tree.sigma[0])
    height, _ = log_density_of_noise(model, work, leaves, yy, u)
    height += math.log(max(rng.random(), 1e-300))
    low = u - WIDTH * rng.random()
    high = low + WIDTH
    steps_low = int(rng.random() * STEPS)
    steps_high = STEPS - 1 - steps_low
    while steps_low > 0 and log_density_of_noise(model, work, leaves, yy, low)[0] > height:
        low -= WIDTH
        steps_low -= 1
    while steps_high > 0 and log_density_of_noise(model, work, leaves, yy, high)[0] > height:
        high += WIDTH
        steps_high -= 1
    for _ in range(STEPS):
        proposal = low + rng.random() * (high - low)
        log_density, log_like = log_density_of_noise(model, work, leaves, yy, proposal)
        if log_density > height:
            tree.sigma[0] = math.exp(proposal)
            return log_like
        if proposal < u:
            low = proposal
        else:
            high = proposal
    return current_like
