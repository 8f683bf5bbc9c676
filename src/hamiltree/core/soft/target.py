"""The posterior of a tree of fixed shape as a density on the real line, for NUTS.

The unconstrained vector: with soft splits, for each internal node in preorder its threshold, if its
rule has one, and, for HMC-DFI, p - 1 coordinates of its weights; then, where means are explicit,
the mean of each leaf in preorder; then log sigma for regression. Hard splits have no gradient in
their rules: those are left to other kernels, and the vector starts with the means.

Weights have the paper's stick-breaking coordinates, or, where the model has a ``centre``, log
ratios, with the threshold counted from the projection of the centre: turning a split around the
middle of the data then moves the weights alone.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, STATE, Float1, Record, function_type
from ..backend.units import unit
from ..densities import log_inverse_gamma, log_normal, log_power_of_normal
from ..sampling import tempered
from ..tree.kinds import has_threshold
from ..tree.nodes import Tree
from ..tree.priors import TreePrior, log_prior, log_threshold, log_weights
from .data import (
    CLASSES,
    COLLAPSED,
    GRADIENT,
    LABELS,
    MEANS,
    VALUE,
    Data,
    LeafPrior,
    LeafProbabilities,
    Work,
    has_noise,
    make_leaf_probabilities,
)
from .labels import label_likelihood
from .likelihoods import LIKELIHOOD, class_likelihood, number_likelihood
from .nuts import INFO_TYPES, NutsInfo, NutsWork, first_step_size, nuts_transition
from .parallel_likelihood import connect_parts, parallel_likelihood
from .transforms import (
    balances,
    balances_gradient,
    balances_inverse,
    logit,
    simplex,
    simplex_gradient,
    simplex_inverse,
    unit_interval,
)

LARGEST_LOG_SIGMA = 300.0
"""Noise of e^-300 or e^300 is 0 or infinite to any likelihood; its prior has next to no mass
beyond."""


class Model(Record):
    """All that defines the posterior. One per chain, because ``h`` moves during warm-up."""

    family: int
    """CLASSES, LABELS, MEANS or COLLAPSED."""
    data: Data
    prior: TreePrior
    leaf_prior: LeafPrior
    leaves: LeafProbabilities
    h: Annotated[Float1, STATE]
    """[p]; softness of a split on each feature; all 0, or none."""
    power: Annotated[Float1, STATE]
    """[1]; the likelihood enters to this power; 0 leaves the prior."""
    centre: Float1
    """[p] for HMC-DFI in log ratios, inside (0, 1); else [0]."""
    likelihood: Annotated[Any, LIKELIHOOD]
    """``class_likelihood``, ``label_likelihood``, ``number_likelihood`` or, for large data,
    ``parallel_likelihood``."""


def make_model(
    family: int,
    data: Data,
    prior: TreePrior,
    leaf_prior: LeafPrior,
    h: NDArray[np.float64],
    power: float,
    centre: NDArray[np.float64],
    work: Work,
) -> Model:
    large = len(work.d_sigma) > 1
    if large:
        connect_parts(data, h, work)
    return Model(
        family=family,
        data=data,
        prior=prior,
        leaf_prior=leaf_prior,
        leaves=make_leaf_probabilities(leaf_prior, len(work.leaf)),
        h=h,
        power=np.array([power]),
        centre=centre,
        likelihood=parallel_likelihood if large else likelihood_of(family),
    )


def likelihood_of(family: int) -> Any:
    """The kernel of a family, for data that are not large."""
    if family == CLASSES:
        return class_likelihood
    return label_likelihood if family == LABELS else number_likelihood


@kernel
def evaluate(model, family, tree, work, what):
    """The log-likelihood as that of a family: the model's, or COLLAPSED in the place of MEANS."""
    likelihood, p = model.likelihood, model.leaves.p
    return likelihood(family, model.data, model.leaf_prior, model.h, p, tree, work, what, False)


@kernel
def evaluate_at(model, p, tree, work, what, routed):
    """The log-likelihood of LABELS, or rows instead, with other leaf probabilities."""
    likelihood, family = model.likelihood, model.family
    return likelihood(family, model.data, model.leaf_prior, model.h, p, tree, work, what, routed)


@kernel
def integrate_means(model, tree, work):
    """Log of the integral over explicit leaf means of their prior times likelihood^power.

    That is not the integral of prior times likelihood, to the power: a density of normal noise to a
    power is one of less or more noise, times a constant.
    """
    sigma, power = tree.sigma[0], model.power[0]
    tree.sigma[0] = sigma / math.sqrt(power)
    log_like = evaluate(model, COLLAPSED, tree, work, VALUE)
    tree.sigma[0] = sigma
    return log_like + log_power_of_normal(model.data.mass, sigma, power)


@kernel
def likelihood_as(model, family, tree, work):
    """The same without a gradient; 0, and the data not touched, where its power is 0.

    As COLLAPSED in the place of MEANS it is the integral that has the power inside.
    """
    if model.power[0] == 0.0:
        return 0.0
    if family != model.family:
        return integrate_means(model, tree, work)
    return evaluate(model, family, tree, work, VALUE)


@kernel
def likelihood(model, tree, work):
    """Log-likelihood of the data."""
    return likelihood_as(model, model.family, tree, work)


@kernel
def log_posterior_as(model, family, tree, log_like):
    """Unnormalised, with leaf means only where the family has them explicitly.

    As another family than the model's ``log_like`` has the power inside: with leaf means integrated
    out, or the w of ``leaf_probabilities``. As LABELS it is that given the leaf probabilities.
    """
    total = log_prior(family == MEANS, model.prior, model.leaf_prior, tree)
    if family != model.family:
        return total + log_like
    return total + tempered(model.power[0], log_like)


@kernel
def log_posterior(model, tree, log_like):
    return log_posterior_as(model, model.family, tree, log_like)


@kernel
def rule_width(model, tree):
    """Unconstrained coordinates an internal node takes."""
    if model.h[0] == 0.0:
        return 0
    return max(tree.weights.shape[1], 1)


@kernel
def moves_in(model, tree, i):
    """Whether an internal node has coordinates; sets of levels and "is missing" have none."""
    return tree.weights.shape[1] > 0 or has_threshold(
        model.prior.kinds, tree.feature[i], tree.threshold[i]
    )


@kernel
def projected_centre(model, tree, i):
    total = 0.0
    for f in range(model.centre.shape[0]):
        total += model.centre[f] * tree.weights[i, f]
    return total


@kernel
def dimension(model, tree):
    leaves = (tree.n_nodes[0] + 1) // 2
    splits = leaves - 1
    if model.prior.kinds.special:
        splits = 0
        for i in range(tree.n_nodes[0]):
            splits += 1 if tree.size[i] > 1 and moves_in(model, tree, i) else 0
    total = rule_width(model, tree) * splits
    if model.family == MEANS:
        total += leaves
    if has_noise(model.family):
        total += 1
    return total


@kernel
def unconstrain(model, tree, u):
    """Write the tree's parameters into ``u``; returns how many there are."""
    at = 0
    if model.h[0] > 0.0:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] > 1 and moves_in(model, tree, i):
                u[at] = logit(tree.threshold[i])
                at += 1
                p = tree.weights.shape[1]
                if p > 1:
                    if model.centre.shape[0] > 0:
                        u[at - 1] -= logit(projected_centre(model, tree, i))
                        balances_inverse(tree.weights[i], u[at : at + p - 1])
                    else:
                        simplex_inverse(tree.weights[i], u[at : at + p - 1])
                    at += p - 1
    if model.family == MEANS:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] == 1:
                u[at] = tree.value[i]
                at += 1
    if has_noise(model.family):
        u[at] = math.log(tree.sigma[0])
        at += 1
    return at


@kernel
def constrain(model, u, tree):
    """Set the tree's parameters from ``u``; returns log prior of these plus log Jacobians."""
    at = 0
    total = 0.0
    if model.h[0] > 0.0:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] > 1 and moves_in(model, tree, i):
                place = u[at]
                at += 1
                p = tree.weights.shape[1]
                if p == 1:
                    tree.weights[i, 0] = 1.0
                elif p > 1:
                    if model.centre.shape[0] > 0:
                        total += balances(u[at : at + p - 1], tree.weights[i])
                        place += logit(projected_centre(model, tree, i))
                    else:
                        total += simplex(u[at : at + p - 1], tree.weights[i])
                    total += log_weights(model.prior, tree.weights[i])
                    at += p - 1
                tree.threshold[i], log_jacobian = unit_interval(place)
                total += log_jacobian + log_threshold(model.prior, tree.threshold[i])
    if model.family == MEANS:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] == 1:
                tree.value[i] = u[at]
                total += log_normal(u[at], model.leaf_prior.mu_mean, model.leaf_prior.mu_sd)
                at += 1
    if has_noise(model.family):
        # cut off where the noise is 0 or infinite to the likelihood: a trajectory that gets there
        # diverges, and sigma stays finite
        tree.sigma[0] = math.exp(min(max(u[at], -LARGEST_LOG_SIGMA), LARGEST_LOG_SIGMA))
        total += u[at] if abs(u[at]) <= LARGEST_LOG_SIGMA else -np.inf
        total += log_inverse_gamma(
            tree.sigma[0], model.leaf_prior.sigma_shape, model.leaf_prior.sigma_scale
        )
    return total


@inlined
def gradient_to_unconstrained(model, u, tree, work, grad):
    """Chain rule from the d_ arrays of ``work`` to ``u``, priors and Jacobians included."""
    prior, leaf_prior = model.prior, model.leaf_prior
    power = model.power[0]
    at = 0
    if model.h[0] > 0.0:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] > 1 and moves_in(model, tree, i):
                tau = tree.threshold[i]
                slope = tau * (1.0 - tau)
                grad[at] = (
                    slope * power * work.d_threshold[0, i]
                    + (prior.tau_a - 1.0) * (1.0 - tau)
                    - (prior.tau_b - 1.0) * tau
                    + 1.0
                    - 2.0 * tau
                )
                at += 1
                p = tree.weights.shape[1]
                if p > 1:
                    for f in range(p):
                        work.d_weights[0, i, f] *= power
                        work.d_weights[0, i, f] += (prior.weight_prior - 1.0) / tree.weights[i, f]
                    out = grad[at : at + p - 1]
                    if model.centre.shape[0] > 0:
                        c = projected_centre(model, tree, i)
                        for f in range(p):
                            work.d_weights[0, i, f] += (
                                grad[at - 1] * model.centre[f] / (c * (1.0 - c))
                            )
                        balances_gradient(tree.weights[i], work.d_weights[0, i], out)
                    else:
                        weights = tree.weights[i]
                        simplex_gradient(u[at : at + p - 1], weights, work.d_weights[0, i], out)
                    at += p - 1
    if model.family == MEANS:
        for i in range(tree.n_nodes[0]):
            if tree.size[i] == 1:
                shift = (tree.value[i] - leaf_prior.mu_mean) / (leaf_prior.mu_sd**2)
                grad[at] = power * work.d_value[0, i] - shift
                at += 1
    if has_noise(model.family):
        sigma = tree.sigma[0]
        grad[at] = (
            power * work.d_sigma[0] * sigma
            + leaf_prior.sigma_scale / sigma
            - leaf_prior.sigma_shape
        )


@kernel
def log_density_and_gradient(u, grad, args):
    """What NUTS climbs; ``args`` is (model, tree, work), and the tree follows ``u``."""
    model, tree, work = args
    total = constrain(model, u, tree)
    if not math.isfinite(total):
        return -np.inf
    if model.power[0] == 0.0:
        n_nodes = tree.n_nodes[0]
        work.d_threshold[0, :n_nodes] = 0.0
        work.d_weights[0, :n_nodes] = 0.0
        work.d_value[0, :n_nodes] = 0.0
        work.d_sigma[0] = 0.0
    else:
        total += model.power[0] * evaluate(model, model.family, tree, work, GRADIENT)
    gradient_to_unconstrained(model, u, tree, work, grad)
    return total


# NUTS is written for any target; numba caches only what is compiled for a named one.


@pointer_kernel
def nuts_on_tree(model, tree, work, u, step, inverse_mass, max_depth, nuts_work, rng):
    """One NUTS transition of the tree's unconstrained parameters; (what it did, its step).

    With ``step`` 0 a step size is looked for first.
    """
    args = (model, tree, work)
    if step == 0.0:
        step = first_step_size(log_density_and_gradient, args, u, inverse_mass, nuts_work, rng)
    info = nuts_transition(
        log_density_and_gradient, args, u, step, inverse_mass, max_depth, nuts_work, rng
    )
    return info, step


NUTS = function_type(
    types.Tuple((types.NamedTuple(INFO_TYPES, NutsInfo), types.float64)),
    Model,
    Tree,
    Work,
    Float1,
    float,
    Float1,
    int,
    NutsWork,
    RNG,
)
"""The type of ``nuts_on_tree``."""

unit(nuts_on_tree, NUTS, seconds=3)
