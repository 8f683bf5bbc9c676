"""The one prior over trees: topology, rules, leaf means and noise; densities and draws.

Densities are on the constrained scale with every constant; the transforms add Jacobians.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import Float1, Record
from ..densities import log_beta, log_inverse_gamma, log_normal, log_symmetric_dirichlet
from .kinds import (
    NO_LEVELS,
    Kinds,
    draw_special_rule,
    is_special,
    log_special_rule,
    plain_kinds,
)
from .nodes import grow

LARGEST_SPLIT_PROBABILITY = 1.0 - 1e-6


class TreePrior(Record):
    """Hyper-parameters of topology and rules."""

    alpha_split: float
    beta_split: float
    min_leaves: int
    """Trees smaller than this, or larger than max_leaves, have prior 0."""
    max_leaves: int
    tau_a: float
    """Thresholds are Beta(tau_a, tau_b) on the unit interval."""
    tau_b: float
    log_feature: Float1
    """[p]; log prior probability of each feature."""
    cumulative_feature: Float1
    """[p]; running sum of the probabilities, the last exactly 1."""
    weight_prior: float
    """Dirichlet concentration of the weights (HMC-DFI)."""
    kinds: Kinds
    """Of the columns."""


def make_tree_prior(
    n_features: int,
    *,
    alpha_split: float,
    beta_split: float,
    min_leaves: int,
    max_leaves: int,
    tau_prior: tuple[float, float],
    feature_prior: tuple[float, ...] | None,
    weight_prior: float,
    kinds: Kinds | None = None,
) -> TreePrior:
    mass = np.ones(n_features) if feature_prior is None else np.asarray(feature_prior, np.float64)
    if mass.shape != (n_features,):
        raise ValueError(
            f"feature_prior has {mass.size} entries but there are {n_features} usable features"
        )
    probability = mass / mass.sum()
    cumulative = np.cumsum(probability)
    cumulative[-1] = 1.0
    return TreePrior(
        alpha_split=float(alpha_split),
        beta_split=float(beta_split),
        min_leaves=int(min_leaves),
        max_leaves=int(max_leaves),
        tau_a=float(tau_prior[0]),
        tau_b=float(tau_prior[1]),
        log_feature=np.log(probability),
        cumulative_feature=cumulative,
        weight_prior=float(weight_prior),
        kinds=plain_kinds(n_features) if kinds is None else kinds,
    )


@kernel
def split_probability(prior, depth):
    p = prior.alpha_split * (1.0 + depth) ** (-prior.beta_split)
    return min(p, LARGEST_SPLIT_PROBABILITY)


@kernel
def log_topology(prior, tree):
    """Log prior of the shape; minus infinity outside the allowed sizes.

    The size limits truncate the prior; their normalising constant, the same for all trees, is
    left out.
    """
    leaves = (tree.n_nodes[0] + 1) // 2
    if leaves < prior.min_leaves or leaves > prior.max_leaves:
        return -np.inf
    total = 0.0
    for i in range(tree.n_nodes[0]):
        p = split_probability(prior, tree.depth[i])
        total += math.log(p) if tree.size[i] > 1 else math.log1p(-p)
    return total


@kernel
def log_threshold(prior, tau):
    """Log Beta density; its gradient is spelled out in ``target``."""
    return log_beta(tau, prior.tau_a, prior.tau_b)


@kernel
def log_weights(prior, weights):
    return log_symmetric_dirichlet(weights, prior.weight_prior)


@kernel
def log_in_column(prior, f, threshold, levels):
    """Log density of a rule given its column; that of a set of levels does not depend on it."""
    if not is_special(prior.kinds, f):
        return log_threshold(prior, threshold)
    density = 0.0 if math.isinf(threshold) else log_threshold(prior, threshold)
    return log_special_rule(prior.kinds, f, threshold, levels, density)


@kernel
def log_rule(prior, tree, i):
    """Log density of node i's rule: its feature or weights, and the rest of it."""
    if tree.weights.shape[1] > 0:
        return log_threshold(prior, tree.threshold[i]) + log_weights(prior, tree.weights[i])
    f = tree.feature[i]
    return log_in_column(prior, f, tree.threshold[i], tree.levels[i]) + prior.log_feature[f]


@kernel
def log_prior(explicit_means, prior, leaf_prior, tree):
    """Everything a tree carries; leaf means only where they are explicit."""
    total = log_topology(prior, tree)
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1:
            total += log_rule(prior, tree, i)
        elif explicit_means:
            total += log_normal(tree.value[i], leaf_prior.mu_mean, leaf_prior.mu_sd)
    if leaf_prior.class_prior.shape[0] == 0:
        total += log_inverse_gamma(tree.sigma[0], leaf_prior.sigma_shape, leaf_prior.sigma_scale)
    return total


@kernel
def draw_feature(prior, rng):
    u = rng.random()
    f = 0
    while u >= prior.cumulative_feature[f] and f < prior.cumulative_feature.shape[0] - 1:
        f += 1
    return f


@kernel
def draw_rule(prior, tree, i, rng):
    """A rule from the prior for node i."""
    a, b = prior.tau_a, prior.tau_b
    tau = rng.random() if a == 1.0 and b == 1.0 else rng.beta(a, b)
    # The open interval: the transforms need it, and 0 and 1 have no mass to lose.
    tree.threshold[i] = min(max(tau, 1e-15), 1.0 - 1e-15)
    tree.levels[i] = NO_LEVELS
    p = tree.weights.shape[1]
    if p > 0:
        total = 0.0
        for f in range(p):
            w = max(rng.standard_gamma(prior.weight_prior), 1e-300)
            tree.weights[i, f] = w
            total += w
        for f in range(p):
            tree.weights[i, f] /= total
        tree.feature[i] = -1
    else:
        f = draw_feature(prior, rng)
        tree.feature[i] = f
        if is_special(prior.kinds, f):
            tree.threshold[i], tree.levels[i] = draw_special_rule(
                prior.kinds, f, tree.threshold[i], rng
            )


@kernel
def draw_mean(leaf_prior, rng):
    return leaf_prior.mu_mean + leaf_prior.mu_sd * rng.standard_normal()


@kernel
def draw_sigma(leaf_prior, rng):
    return leaf_prior.sigma_scale / rng.standard_gamma(leaf_prior.sigma_shape)


@kernel
def draw_small_tree(prior, leaf_prior, tree, rng):
    """A start for a chain: the smallest allowed tree with rules, means and noise of the prior."""
    tree.n_nodes[0] = 1
    tree.size[0] = 1
    tree.parent[0] = -1
    tree.depth[0] = 0
    tree.feature[0] = -1
    while (tree.n_nodes[0] + 1) // 2 < prior.min_leaves:
        leaf = tree.n_nodes[0] - 1  # the last node in preorder is a leaf
        grow(tree, leaf)
        draw_rule(prior, tree, leaf, rng)
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            tree.value[i] = draw_mean(leaf_prior, rng)
    if leaf_prior.class_prior.shape[0] == 0:
        tree.sigma[0] = draw_sigma(leaf_prior, rng)
