"""Grow and prune with variables drawn from the prior: the paper's jump, with its exact ratio.

Decided here, and tested:

- The fair coin. A grown leaf's mean goes to one child, chosen by a fair coin, and the other child
  draws its mean from the prior. Pruning keeps the mean of a child chosen by a fair coin and drops
  the other's. The coins cancel in the ratio.
- A tree of the smallest allowed size cannot be pruned: prune's share of the moves goes to grow,
  stay keeps its own. A root-only tree is the smallest when min_leaves is 1.
- A tree of the largest allowed size can propose to grow; the prior of the result is 0 and it is
  refused, so that no share has to be moved.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, Float1, function_type
from ..backend.units import unit
from ..densities import log_normal
from ..sampling import pick
from ..tree.nodes import LEAF, PRUNABLE, Tree, count_kind, grow, n_leaves, nth_kind, prune
from ..tree.priors import draw_mean, draw_rule, log_rule
from .data import MEANS
from .target import Model

GROW, PRUNE, STAY = 0, 1, 2


@kernel
def grow_probability(probs, prior, leaves):
    return probs[GROW] + probs[PRUNE] if leaves <= prior.min_leaves else probs[GROW]


@kernel
def prune_probability(probs, prior, leaves):
    return 0.0 if leaves <= prior.min_leaves else probs[PRUNE]


@pointer_kernel
def propose_jump(model, tree, probs, rng):
    """Edit ``tree`` by a random move; returns (move, log q(back) - log q(forth)).

    q includes the choice of move and node and the prior density of the variables drawn (grow) or
    that the way back would draw (prune).
    """
    leaves = n_leaves(tree)
    u = rng.random()
    grow_share = grow_probability(probs, model.prior, leaves)
    if u < grow_share:
        if leaves >= model.prior.max_leaves:
            return GROW, -np.inf
        return GROW, grow_at_random(model, tree, probs, grow_share, rng)
    if u < grow_share + prune_probability(probs, model.prior, leaves):
        return PRUNE, prune_at_random(model, tree, probs, rng)
    return STAY, 0.0


@inlined
def grow_at_random(model, tree, probs, grow_share, rng):
    leaves = n_leaves(tree)
    node = nth_kind(tree, LEAF, pick(leaves, rng))
    mean = tree.value[node]
    grow(tree, node)
    draw_rule(model.prior, tree, node, rng)
    log_forth = math.log(grow_share / leaves) + log_rule(model.prior, tree, node)
    if model.family == MEANS:
        heir, other = (node + 1, node + 2) if rng.random() < 0.5 else (node + 2, node + 1)
        tree.value[heir] = mean
        tree.value[other] = draw_mean(model.leaf_prior, rng)
        log_forth += log_normal(tree.value[other], model.leaf_prior.mu_mean, model.leaf_prior.mu_sd)
    prune_share = prune_probability(probs, model.prior, leaves + 1)
    return math.log(prune_share / count_kind(tree, PRUNABLE)) - log_forth


@inlined
def prune_at_random(model, tree, probs, rng):
    leaves = n_leaves(tree)
    candidates = count_kind(tree, PRUNABLE)
    node = nth_kind(tree, PRUNABLE, pick(candidates, rng))
    log_forth = math.log(prune_probability(probs, model.prior, leaves) / candidates)
    log_back = math.log(grow_probability(probs, model.prior, leaves - 1) / (leaves - 1))
    log_back += log_rule(model.prior, tree, node)
    kept, dropped = (node + 1, node + 2) if rng.random() < 0.5 else (node + 2, node + 1)
    if model.family == MEANS:
        log_back += log_normal(
            tree.value[dropped], model.leaf_prior.mu_mean, model.leaf_prior.mu_sd
        )
    mean = tree.value[kept]
    prune(tree, node)
    tree.value[node] = mean
    return log_back - log_forth


@pointer_kernel
def no_jump(model, tree, probs, rng):
    """In the place of ``propose_jump`` where there are only informed moves."""
    return STAY, 0.0


JUMP = function_type(types.Tuple((types.int64, types.float64)), Model, Tree, Float1, RNG)
"""The type of these two."""

unit(propose_jump, JUMP)
unit(no_jump, JUMP)
