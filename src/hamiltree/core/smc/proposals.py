"""Proposals of rules: from the prior, from the gaps between values, or optimal for one step."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import draw_between, pick
from ..tree.kinds import (
    CATEGORY_THRESHOLD,
    MISSING_RIGHT,
    NO_LEVELS,
    has_level,
    has_threshold,
    is_special,
)
from .gaps import clear_sums, log_sum, score_gaps, score_sets, tabulate
from .node_pool import range_of
from .special import draw_special, has_missing, levels_in, log_special

PRIOR, EMPIRICAL, OPTIMAL = 0, 1, 2
"""Proposals of a rule. OPTIMAL is the one-step optimal one, "posterior" to the user."""
BY_RULE = -1
"""In the place of the last rank that goes left, where the column is special."""


@kernel
def score_splits(table, pool, node, f, scratch, special):
    """Score all splits on a feature that varies in the node, see ``gaps``."""
    if special is not None and special.data.kinds.levels[f] > 0:
        return score_sets(table, pool, node, f, scratch)
    return score_gaps(table, pool, node, f, scratch)


@kernel
def log_splits(table, pool, node, scratch, special):
    """Log of the mean over the prior of the rules of exp(power (l_L + l_R - l_node)); kept."""
    if not math.isnan(pool.log_splits[node]):
        return pool.log_splits[node]
    by_feature, top = pool.log_by_feature[node], -np.inf
    for f in range(table.rank.shape[0]):
        by_feature[f] = -np.inf
        if pool.lowest[node, f] < pool.highest[node, f]:
            _, score = score_splits(table, pool, node, f, scratch, special)
            by_feature[f] = score + math.log(table.weight[f] / pool.varying[node])
            top = max(top, by_feature[f])
    pool.log_splits[node] = log_sum(by_feature, by_feature.shape[0], top)
    return pool.log_splits[node]


@kernel
def log_split_prior(table, pool, node, p, f, threshold, levels, special):
    """Log prior of a split by a rule, where a node splits with probability p."""
    p_feature = p * table.weight[f] / pool.varying[node]
    if special is not None and is_special(special.data.kinds, f):
        return math.log(p_feature) + log_special(special, pool, node, f, threshold, levels)
    low, high = range_of(table, pool, node, f)
    return math.log(p_feature / (high - low))


# ------------------------------------------------------------------ draws


@kernel
def draw_from_logs(score, n, log_total, rng):
    """An index in proportion to the exponentials of ``score``."""
    u = rng.random()
    last = 0
    for k in range(n):
        if score[k] == -np.inf:
            continue
        last = k
        u -= math.exp(score[k] - log_total)
        if u < 0.0:
            break
    return last


@kernel
def draw_varying(table, pool, node, rng):
    """A feature of the prior, among those that vary in the node."""
    u = rng.random() * pool.varying[node]
    last = -1
    for f in range(table.weight.shape[0]):
        if pool.lowest[node, f] < pool.highest[node, f]:
            last = f
            u -= table.weight[f]
            if u < 0.0:
                break
    return last


@kernel
def rank_at(table, f, t):
    """The largest rank whose value is at most t."""
    low, high = table.first[f], table.first[f + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if table.value[middle] <= t:
            low = middle
        else:
            high = middle
    return low - table.first[f]


@kernel
def draw_in_gap(table, f, scratch, k, rng):
    """A threshold between the k-th value of the node and the next."""
    near = table.value[table.first[f] + scratch.level[k]]
    far = table.value[table.first[f] + scratch.level[k + 1]]
    return draw_between(near, far, rng)


@kernel
def empirical_cut(table, pool, node, f, scratch, rng):
    """Uniform over the gaps between numbers: threshold, last rank below it, log correction."""
    missing = 1 if has_missing(table, pool, node, f) else 0
    found = tabulate(table, pool, node, f, scratch)
    clear_sums(scratch, found)
    gaps = found - 1 - missing
    k = missing + pick(gaps, rng)
    near = table.value[table.first[f] + scratch.level[k]]
    far = table.value[table.first[f] + scratch.level[k + 1]]
    low = table.value[table.first[f] + scratch.level[missing]]
    high = table.value[table.first[f] + scratch.level[found - 1]]
    correction = math.log((far - near) / (high - low)) + math.log(gaps)
    return draw_between(near, far, rng), scratch.level[k], correction


# ------------------------------------------------------------------ rules on special columns


@kernel
def optimal_set(table, pool, node, f, scratch, special, rng):
    """Levels that go right, in proportion to prior x likelihood ratio."""
    ways, total = score_sets(table, pool, node, f, scratch)
    way = draw_from_logs(scratch.score, ways, total, rng) + 1
    here, _ = levels_in(special, pool, node, f)
    mirrored = rng.random() < 0.5
    levels, j = NO_LEVELS, 0
    for level in range(special.data.kinds.levels[f]):
        if has_level(here, level):
            right = ((way >> j) & 1 == 1) != mirrored
            j += 1
        else:
            right = rng.random() < 0.5
        if right:
            levels |= np.uint64(1) << np.uint64(level)
    return levels


@kernel
def optimal_cut(table, pool, node, f, scratch, rng):
    """A threshold, or "is missing", in proportion to the same, and the side of missing cells."""
    n, total = score_gaps(table, pool, node, f, scratch)
    k = draw_from_logs(scratch.score, n, total, rng)
    levels = MISSING_RIGHT if rng.random() < 0.5 else NO_LEVELS
    if has_missing(table, pool, node, f):
        if k == n - 1:
            return (np.inf if levels == MISSING_RIGHT else -np.inf), levels
        gaps = n // 2
        levels = MISSING_RIGHT if k >= gaps else NO_LEVELS
        k = 1 + k % gaps
    return draw_in_gap(table, f, scratch, k, rng), levels


@kernel
def propose_special(table, pool, node, f, proposal, scratch, special, rng):
    """A rule on a special column: threshold, levels, log correction as of ``propose_rule``.

    EMPIRICAL is uniform over the gaps of the node's numbers, and the prior in all else.
    """
    kinds = special.data.kinds
    if proposal == OPTIMAL:
        if kinds.levels[f] > 0:
            levels = optimal_set(table, pool, node, f, scratch, special, rng)
            return CATEGORY_THRESHOLD, levels, 0.0
        threshold, levels = optimal_cut(table, pool, node, f, scratch, rng)
        return threshold, levels, 0.0
    threshold, levels = draw_special(special, pool, node, f, rng)
    if proposal == PRIOR or not has_threshold(kinds, f, threshold):
        return threshold, levels, 0.0
    threshold, _, correction = empirical_cut(table, pool, node, f, scratch, rng)
    return threshold, levels, correction


@kernel
def propose_rule(table, pool, node, proposal, scratch, special, rng):
    """A rule for a node that splits: feature, threshold, levels, cut, log correction.

    The cut is the last rank that goes left. The correction is log(prior / proposal) of the
    rule for EMPIRICAL and 0 otherwise; that of OPTIMAL is a matter of the whole node.
    """
    if proposal == OPTIMAL:
        total = log_splits(table, pool, node, scratch, special)
        by_feature = pool.log_by_feature[node]
        f = draw_from_logs(by_feature, by_feature.shape[0], total, rng)
    else:
        f = draw_varying(table, pool, node, rng)
    if special is not None and is_special(special.data.kinds, f):
        t, levels, correction = propose_special(
            table, pool, node, f, proposal, scratch, special, rng
        )
        return f, t, levels, BY_RULE, correction
    if proposal == PRIOR:
        low, high = range_of(table, pool, node, f)
        t = draw_between(low, high, rng)
        return f, t, NO_LEVELS, rank_at(table, f, t), 0.0
    if proposal == EMPIRICAL:
        t, cut, correction = empirical_cut(table, pool, node, f, scratch, rng)
        return f, t, NO_LEVELS, cut, correction
    gaps, total = score_gaps(table, pool, node, f, scratch)
    k = draw_from_logs(scratch.score, gaps, total, rng)
    t = draw_in_gap(table, f, scratch, k, rng)
    return f, t, NO_LEVELS, scratch.level[k], 0.0
