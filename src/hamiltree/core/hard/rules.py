"""Priors over the rules of hard trees: which are available in a node, how likely, and draws.

UNIFORM: the features that still vary in the node, then the values there but the largest (written
as a threshold midway to the next value of the column, which sends the same rows to the same side).
GAP: the same features, then uniform between the smallest and the largest value there, so that a
gap between neighbouring values is as likely as it is wide.
UNIT: every feature, thresholds on the whole unit interval, empty sides allowed (HMC-DF's prior).
FULL: UNIT without the rules that leave a side empty, not renormalised (WU's prior). Proposals are
drawn from it given that neither side is empty.

With unequal prior weights of the features, "uniform over features" reads "by their weights".
``special_rules`` says the same of categories and of numbers with missing cells.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import Float1, Int1, Record
from ..sampling import draw_between, draw_by_weight
from ..scan.data import FULL, GAP, UNIFORM, UNIT
from ..tree.kinds import NO_LEVELS, draw_special_rule, is_special, log_special_rule
from ..tree.priors import TreePrior, draw_feature, log_in_column, log_threshold
from .partition import HardData, range_of, varies
from .special_rules import (
    draw_special_at,
    log_special_at,
    parting_mass,
)

RULE_PRIORS = {"uniform": UNIFORM, "gap": GAP, "uniform01": UNIT}


class RuleModel(Record):
    """A prior over rules."""

    kind: int
    """UNIFORM, GAP, UNIT or FULL."""
    prior: TreePrior
    feature_weight: Float1
    """[p]; prior probability of each feature."""


class RuleWork(Record, role="scratch"):
    """Scratch of a chain."""

    stamp: Int1
    """[levels]; the pass that last saw a value of this code."""
    clock: Int1
    """[1]; passes so far."""
    seen: Int1
    """[n]; a row for each distinct value of a pass."""
    weight: Float1
    """[p]; of the features in a draw."""


def make_rule_work(data: HardData) -> RuleWork:
    p, n = data.columns.shape
    levels = int(data.codes.max(initial=0)) + 1
    return RuleWork(
        stamp=np.zeros(levels, np.int64),
        clock=np.zeros(1, np.int64),
        seen=np.zeros(n, np.int64),
        weight=np.zeros(p),
    )


@kernel
def some_rule(rules, data, rows, start, stop):
    """Whether a node with these rows has an available rule."""
    if rules.kind == UNIT:
        return True
    for f in range(data.columns.shape[0]):  # noqa: SIM110 (no generators in compiled code)
        if varies(data.columns[f], rows, start, stop):
            return True
    return False


@kernel
def varying_mass(rules, data, rows, start, stop):
    """Prior probability of the features that vary in the node."""
    mass = 0.0
    for f in range(data.columns.shape[0]):
        if varies(data.columns[f], rows, start, stop):
            mass += rules.feature_weight[f]
    return mass


@kernel
def distinct_values(data, f, work, rows, start, stop):
    """Put one row for each distinct value into ``seen``: how many, and the place of the largest."""
    work.clock[0] += 1
    clock = work.clock[0]
    count = 0
    top = -1
    place = -1
    for k in range(start, stop):
        code = data.codes[f, rows[k]]
        if work.stamp[code] != clock:
            work.stamp[code] = clock
            work.seen[count] = rows[k]
            if code > top:
                top = code
                place = count
            count += 1
    return count, place


@kernel
def log_rule_at(rules, data, work, rows, start, stop, tree, i):
    """Log prior of node i's rule, with these rows; minus infinity where it is not available."""
    f, threshold = tree.feature[i], tree.threshold[i]
    log_feature = rules.prior.log_feature[f]
    if rules.kind == UNIT:
        return log_feature + log_in_column(rules.prior, f, threshold, tree.levels[i])
    if stop - start < 2:
        return -np.inf
    if is_special(data.kinds, f):
        log_special = log_special_at(
            rules, data, work, rows, start, stop, f, threshold, tree.levels[i]
        )
        if rules.kind == FULL or log_special == -np.inf:
            return log_feature + log_special
        mass = varying_mass(rules, data, rows, start, stop)
        return log_feature - math.log(mass) + log_special
    x = data.columns[f]
    low, high = range_of(x, rows, start, stop)
    if not low <= threshold < high:
        return -np.inf
    if rules.kind == FULL:
        return log_feature + log_threshold(rules.prior, threshold)
    mass = varying_mass(rules, data, rows, start, stop)
    if rules.kind == GAP:
        return log_feature - math.log(mass) - math.log(high - low)
    observed = False
    for k in range(start, stop):
        observed = observed or data.cuts[f, rows[k]] == threshold
    if not observed:
        return -np.inf
    count, _ = distinct_values(data, f, work, rows, start, stop)
    return log_feature - math.log(mass) - math.log(count - 1.0)


@kernel
def draw_rule_at(rules, data, work, rows, start, stop, rng):
    """A rule for a node in which one is available.

    (feature, threshold, levels, log density, log prior)

    The density is that of the draw. It is the prior but for FULL, where it is the prior given that
    neither side is empty.
    """
    if rules.kind == UNIT:
        f = draw_feature(rules.prior, rng)
        a, b = rules.prior.tau_a, rules.prior.tau_b
        u = rng.random() if a == 1.0 and b == 1.0 else rng.beta(a, b)
        threshold = min(max(u, 1e-15), 1.0 - 1e-15)
        levels = NO_LEVELS
        if is_special(data.kinds, f):
            threshold, levels = draw_special_rule(data.kinds, f, threshold, rng)
        log_prior = rules.prior.log_feature[f] + log_in_column(rules.prior, f, threshold, levels)
        return f, threshold, levels, log_prior, log_prior
    mass = 0.0
    for f in range(data.columns.shape[0]):
        x = data.columns[f]
        work.weight[f] = 0.0
        if rules.kind == FULL:
            share = parting_share(data, rows, start, stop, f)
            work.weight[f] = rules.feature_weight[f] * share
        elif varies(x, rows, start, stop):
            work.weight[f] = rules.feature_weight[f]
        mass += work.weight[f]
    f = draw_by_weight(work.weight, mass, rng)
    x = data.columns[f]
    log_feature = rules.prior.log_feature[f]
    if is_special(data.kinds, f):
        threshold, levels, log_special = draw_special_at(
            rules, data, work, rows, start, stop, f, rng
        )
        if rules.kind == FULL:
            log_uniform = log_special_rule(data.kinds, f, threshold, levels, 0.0)
            log_density = log_feature - math.log(mass) + log_uniform
            return f, threshold, levels, log_density, log_feature + log_special
        log_density = log_feature - math.log(mass) + log_special
        return f, threshold, levels, log_density, log_density
    if rules.kind == UNIFORM:
        count, top = distinct_values(data, f, work, rows, start, stop)
        k = int(rng.random() * (count - 1))
        threshold = data.cuts[f, work.seen[k if k < top else k + 1]]
        log_density = log_feature - math.log(mass) - math.log(count - 1.0)
        return f, threshold, NO_LEVELS, log_density, log_density
    low, high = range_of(x, rows, start, stop)
    threshold = draw_between(low, high, rng)
    if rules.kind == GAP:
        log_density = log_feature - math.log(mass) - math.log(high - low)
        return f, threshold, NO_LEVELS, log_density, log_density
    # weight * (range) / mass for the feature, 1 / range for the threshold
    log_prior = log_feature + log_threshold(rules.prior, threshold)
    return f, threshold, NO_LEVELS, log_feature - math.log(mass), log_prior


@kernel
def parting_share(data, rows, start, stop, f):
    """Probability that a rule of the prior FULL on this column leaves no side empty."""
    if is_special(data.kinds, f):
        return parting_mass(data, rows, start, stop, f)
    low, high = range_of(data.columns[f], rows, start, stop)
    return high - low


@kernel
def log_draw_at(rules, data, rows, start, stop, tree, i, log_rule):
    """Log density with which ``draw_rule_at`` gives node i's rule, whose log prior is known."""
    if rules.kind != FULL:
        return log_rule
    mass = 0.0
    for g in range(data.columns.shape[0]):
        mass += rules.feature_weight[g] * parting_share(data, rows, start, stop, g)
    f = tree.feature[i]
    if is_special(data.kinds, f):
        threshold, levels = tree.threshold[i], tree.levels[i]
        log_uniform = log_special_rule(data.kinds, f, threshold, levels, 0.0)
        return rules.prior.log_feature[f] - math.log(mass) + log_uniform
    return rules.prior.log_feature[f] - math.log(mass)
