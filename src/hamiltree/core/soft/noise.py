"""The noise sd of a regression tree by slice sampling, leaf means integrated out.

Given the routing, the likelihood depends on sigma through sums that do not change with it: a value
costs a Cholesky factor of leaves x leaves and no pass over the rows, so sigma can be updated well,
whatever NUTS does with it. Inside NUTS alone it can stall.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..densities import log_inverse_gamma, log_power_of_normal
from ..sampling import tempered
from ..tree.nodes import n_leaves
from .changed_means import put_kept_sums
from .collapsed import log_marginal
from .data import COLLAPSED, MEANS, VALUE
from .target import evaluate

WIDTH = 1.0
"""First width of the slice, in log sigma; doubled in steps to either side where it is too small."""
STEPS = 100


@kernel
def marginal_from_sums(model, work, leaves, yy, sigma):
    """What ``target.likelihood_as`` COLLAPSED gives at this sigma, from the sums in ``work``."""
    n, power = model.data.mass, model.power[0]
    inside = model.family == MEANS and power > 0.0  # see ``target.integrate_means``
    noise = sigma / math.sqrt(power) if inside else sigma
    log_like, _ = log_marginal(model.leaf_prior, work, n, leaves, yy, noise)
    return log_like + log_power_of_normal(n, sigma, power) if inside else log_like


@kernel
def log_density_of_noise(model, work, leaves, yy, log_sigma):
    """Log posterior density of log sigma given the routing, and the log-likelihood there."""
    prior = model.leaf_prior
    sigma, power = math.exp(log_sigma), model.power[0]
    inside = model.family == MEANS and power > 0.0
    log_like = marginal_from_sums(model, work, leaves, yy, sigma)
    if log_like == -np.inf:
        return -np.inf, -np.inf
    log_density = log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale) + log_sigma
    return log_density + (log_like if inside else tempered(power, log_like)), log_like


@kernel
def update_noise(model, tree, work, rng):
    """One slice-sampling update of sigma; returns the log-likelihood, leaf means integrated out."""
    leaves = n_leaves(tree)
    if work.kept.is_kept[0] == 1:
        put_kept_sums(work, leaves)
        current_like = marginal_from_sums(model, work, leaves, work.kept.squares[0], tree.sigma[0])
    else:
        current_like = evaluate(model, COLLAPSED, tree, work, VALUE)
    if current_like == -np.inf:
        return current_like
    yy = 0.0
    y = model.data.y
    for r in range(y.shape[1]):
        yy += y[0, r] * y[0, r]
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
