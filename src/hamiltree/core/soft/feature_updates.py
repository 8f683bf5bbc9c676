"""Updates of the rules that NUTS cannot reach: feature indices, and hard splits altogether.

Every sweep visits the internal nodes in a random order and updates each by a reversible kernel,
so the sweep is itself reversible, which the double-sided acceptance of the paper needs.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, Float1, Int1, Int2, Record, function_type
from ..backend.units import unit
from ..sampling import accept, pick, tempered
from ..tree.kinds import (
    MISSING_RIGHT,
    NO_LEVELS,
    WITH_IMPUTED,
    all_levels,
    draw_side,
    is_special,
)
from ..tree.nodes import INTERNAL, Tree, n_leaves, nth_kind
from ..tree.priors import draw_feature, draw_rule, log_threshold
from .data import Work
from .target import Model, likelihood
from .transforms import logistic, logit

MH, LIU, GIBBS = 0, 1, 2
FEATURE, REDRAW, NUDGE = 3, 4, 5
"""Places in the tally, after the jumps'."""


class FeatureWork(Record, role="scratch"):
    order: Int1
    """[max_leaves]; internal nodes in the order of a sweep."""
    scores: Float1
    """[p]; log posterior by feature, then probabilities."""
    log_likes: Float1
    """[p]; log-likelihood by feature."""
    weights: Float1
    """[p]; a node's weights before a proposal."""


def make_feature_work(max_leaves: int, n_features: int) -> FeatureWork:
    return FeatureWork(
        order=np.zeros(max_leaves, np.int64),
        scores=np.zeros(n_features),
        log_likes=np.zeros(n_features),
        weights=np.zeros(n_features),
    )


@kernel
def shuffle_internal(tree, order, rng):
    """Internal nodes in random order; returns how many."""
    splits = n_leaves(tree) - 1
    for k in range(splits):
        order[k] = nth_kind(tree, INTERNAL, k)
    for k in range(splits - 1, 0, -1):
        j = int(rng.random() * (k + 1))
        order[k], order[j] = order[j], order[k]
    return splits


# ------------------------------------------------------------------ feature indices


@inlined
def score_features(model, tree, i, work, rule_work, log_like):
    """Conditional probability of each feature at node i, into ``scores``."""
    current = tree.feature[i]
    top = -np.inf
    for f in range(model.h.shape[0]):
        tree.feature[i] = f
        rule_work.log_likes[f] = log_like if f == current else likelihood(model, tree, work)
        score = model.prior.log_feature[f] + tempered(model.power[0], rule_work.log_likes[f])
        rule_work.scores[f] = score
        top = max(top, score)
    tree.feature[i] = current
    total = 0.0
    for f in range(model.h.shape[0]):
        rule_work.scores[f] = math.exp(rule_work.scores[f] - top)
        total += rule_work.scores[f]
    for f in range(model.h.shape[0]):
        rule_work.scores[f] /= total


@kernel
def draw_scored(scores, skip, mass, rng):
    """A feature in proportion to its score, never ``skip``; -1 skips none."""
    u = rng.random() * mass
    last = -1
    for f in range(scores.shape[0]):
        if f == skip or scores[f] <= 0.0:
            continue
        last = f
        u -= scores[f]
        if u < 0.0:
            break
    return last


@kernel
def update_features(model, tree, work, rule_work, mode, log_like, tally, rng):
    """One sweep over the feature indices (HMC-DF); returns the log-likelihood."""
    if model.h.shape[0] == 1:
        return log_like
    power = model.power[0]
    splits = shuffle_internal(tree, rule_work.order, rng)
    for k in range(splits):
        i = rule_work.order[k]
        current = tree.feature[i]
        tally[FEATURE, 1] += 1
        if mode == MH:
            tree.feature[i] = draw_feature(model.prior, rng)  # the prior cancels
            if tree.feature[i] == current:
                continue
            proposed = likelihood(model, tree, work)
            if accept(tempered(power, proposed) - tempered(power, log_like), rng):
                log_like = proposed
                tally[FEATURE, 0] += 1
            else:
                tree.feature[i] = current
            continue
        score_features(model, tree, i, work, rule_work, log_like)
        scores = rule_work.scores
        if mode == GIBBS:
            f = draw_scored(scores, -1, 1.0, rng)
        else:  # Liu's modified Gibbs: always propose another value
            elsewhere = 1.0 - scores[current]
            f = draw_scored(scores, current, elsewhere, rng)
            if f < 0 or not accept(math.log(elsewhere) - math.log1p(-scores[f]), rng):
                continue
        if f != current:
            tree.feature[i] = f
            log_like = rule_work.log_likes[f]
            tally[FEATURE, 0] += 1
    return log_like


# ------------------------------------------------------------------ hard splits


@kernel
def nudge_width(rng):
    """From a thousandth to a third of the range: edges are found at every scale."""
    return 10.0 ** (-3.0 + 2.5 * rng.random())


@inlined
def nudge_threshold(model, tree, i, rng):
    """A normal step reflected at 0 and 1; returns the log prior ratio."""
    before = tree.threshold[i]
    tau = before + nudge_width(rng) * rng.standard_normal()
    tau = abs(tau) % 2.0
    tau = 2.0 - tau if tau > 1.0 else tau
    tree.threshold[i] = min(max(tau, 1e-15), 1.0 - 1e-15)
    return log_threshold(model.prior, tree.threshold[i]) - log_threshold(model.prior, before)


@kernel
def nudge_special(model, tree, i, rng):
    """A small step of a rule on a special column; returns the log prior ratio.

    A level changes sides; or the missing do, or the threshold takes a step. Each is its own
    reverse, or a draw from the prior.
    """
    kinds, f = model.prior.kinds, tree.feature[i]
    n_levels = kinds.levels[f]
    if n_levels > 0:
        levels = tree.levels[i] ^ (np.uint64(1) << np.uint64(pick(n_levels, rng)))
        if levels == NO_LEVELS or levels == all_levels(n_levels):
            return -np.inf
        tree.levels[i] = levels
        return 0.0
    if math.isinf(tree.threshold[i]):
        return -np.inf
    if rng.random() < 0.5:
        if kinds.missing[f] == WITH_IMPUTED:
            tree.levels[i] = draw_side(kinds, f, rng)  # by its prior, which cancels
        else:
            tree.levels[i] ^= MISSING_RIGHT
        return 0.0
    return nudge_threshold(model, tree, i, rng)


@inlined
def nudge_weights(model, tree, i, rng):
    """Move mass between two weights by a walk in the log of their ratio."""
    weights = tree.weights[i]
    p = weights.shape[0]
    a = int(rng.random() * p)
    b = (a + 1 + int(rng.random() * (p - 1))) % p
    both = weights[a] + weights[b]
    before = weights[a] / both
    if not 0.0 < before < 1.0:
        return -np.inf
    after = logistic(logit(before) + 3.0 * nudge_width(rng) * rng.standard_normal())
    after = min(max(after, 1e-300), 1.0 - 1.2e-16)
    weights[a] = both * after
    weights[b] = both * (1.0 - after)
    # Dirichlet prior, and d(share)/d(log ratio) = share (1 - share) on both sides
    slope = math.log(after) + math.log1p(-after) - math.log(before) - math.log1p(-before)
    return model.prior.weight_prior * slope


@kernel
def update_hard_rules(model, tree, work, rule_work, log_like, tally, rng):
    """One sweep over hard splits, or all where columns are special; returns the log-likelihood.

    A fair coin at each node: draw the rule anew from the prior, or nudge its threshold (or,
    another coin, its weights).
    """
    power = model.power[0]
    splits = shuffle_internal(tree, rule_work.order, rng)
    p = tree.weights.shape[1]
    for k in range(splits):
        i = rule_work.order[k]
        feature, threshold, levels = tree.feature[i], tree.threshold[i], tree.levels[i]
        for f in range(p):
            rule_work.weights[f] = tree.weights[i, f]
        if rng.random() < 0.5:
            move = REDRAW
            draw_rule(model.prior, tree, i, rng)
            log_ratio = 0.0
        else:
            move = NUDGE
            if p > 1 and rng.random() < 0.5:
                log_ratio = nudge_weights(model, tree, i, rng)
            elif p == 0 and is_special(model.prior.kinds, feature):
                log_ratio = nudge_special(model, tree, i, rng)
            else:
                log_ratio = nudge_threshold(model, tree, i, rng)
        tally[move, 1] += 1
        proposed = likelihood(model, tree, work)
        log_ratio += tempered(power, proposed) - tempered(power, log_like)
        if accept(log_ratio, rng):
            log_like = proposed
            tally[move, 0] += 1
        else:
            tree.feature[i], tree.threshold[i], tree.levels[i] = feature, threshold, levels
            for f in range(p):
                tree.weights[i, f] = rule_work.weights[f]
    return log_like


# ------------------------------------------------------------------ either


@pointer_kernel
def update_rules(model, tree, work, rule_work, mode, log_like, tally, rng):
    """One sweep over the rules that NUTS cannot reach; returns the log-likelihood."""
    if model.h[0] == 0.0 or model.prior.kinds.special:
        return update_hard_rules(model, tree, work, rule_work, log_like, tally, rng)
    if tree.weights.shape[1] == 0:
        return update_features(model, tree, work, rule_work, mode, log_like, tally, rng)
    return log_like


@pointer_kernel
def keep_rules(model, tree, work, rule_work, mode, log_like, tally, rng):
    """In the place of ``update_rules`` where informed moves draw the rules."""
    return log_like


UPDATE_RULES = function_type(float, Model, Tree, Work, FeatureWork, int, float, Int2, RNG)
"""The type of these two."""

unit(update_rules, UPDATE_RULES, seconds=3)
unit(keep_rules, UPDATE_RULES)
