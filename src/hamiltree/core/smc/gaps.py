"""Splits that a node could have: gaps between neighbouring values, their scores, and proposals.

The prior of a threshold is uniform over the range of the node's values, so a gap has prior mass in
proportion to its width, and all thresholds within a gap make the same children.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import Float1, Float2, Int1, Record
from ..hard.leaves import add_row, n_stats
from ..sampling import draw_between, pick
from .node_pool import Table, log_marginal, range_of

PRIOR, EMPIRICAL, OPTIMAL = 0, 1, 2
"""Proposals of a rule. OPTIMAL is the one-step optimal one, "posterior" to the user."""


class GapWork(Record, role="scratch"):
    """For one node and feature at a time; ``n_rows`` and ``sums`` are zero in between."""

    n_rows: Int1
    """[most values of a column]; rows of each rank."""
    sums: Float2
    """[most values of a column, sums of a leaf]"""
    level: Int1
    """[most values of a column]; the ranks that occur, ascending."""
    score: Float1
    """[most values of a column]; log prior mass times likelihood ratio of each gap."""
    side: Float2
    """[2, sums of a leaf]; left and right of a gap."""


def make_scratch(table: Table) -> GapWork:
    longest, sums = int(np.diff(table.first).max()), n_stats(table.leaf_model)
    return GapWork(
        n_rows=np.zeros(longest, np.int64),
        sums=np.zeros((longest, sums)),
        level=np.zeros(longest, np.int64),
        score=np.zeros(longest),
        side=np.zeros((2, sums)),
    )


@kernel
def tabulate(table, pool, node, f, scratch):
    """List the ranks of a feature that occur in a node, with their sums; returns how many."""
    ranks, rows, y, codes = table.rank, pool.rows, table.y, table.codes
    weights = table.row_weight
    counts, sums, level = scratch.n_rows, scratch.sums, scratch.level
    start = pool.start[node]
    for place in range(start, start + pool.n_rows[node]):
        row = rows[place]
        rank = ranks[f, row]
        counts[rank] += 1
        add_row(sums, rank, y, codes, weights, row)
    found = 0
    for r in range(pool.lowest[node, f], pool.highest[node, f] + 1):
        if counts[r] > 0:
            level[found] = r
            counts[r] = 0
            found += 1
    return found


@kernel
def clear_sums(scratch, found):
    sums, level = scratch.sums, scratch.level
    for k in range(found):
        for m in range(sums.shape[1]):
            sums[level[k], m] = 0.0


@kernel
def score_gaps(table, pool, node, f, scratch):
    """Score each gap between values of a feature: log P(gap) + power (l_L + l_R - l_node).

    Returns the number of gaps and the logarithm of the sum of their exponentials.
    """
    found = tabulate(table, pool, node, f, scratch)
    low, high = range_of(table, pool, node, f)
    left, right = scratch.side[0], scratch.side[1]
    for m in range(left.shape[0]):
        left[m] = 0.0
    top = -np.inf
    for k in range(found - 1):
        here = table.first[f] + scratch.level[k]
        beyond = table.first[f] + scratch.level[k + 1]
        score = math.log((table.value[beyond] - table.value[here]) / (high - low))
        for m in range(left.shape[0]):
            left[m] += scratch.sums[scratch.level[k], m]
            right[m] = pool.stats[node, m] - left[m]
        if table.power != 0.0:
            gain = log_marginal(table, left) + log_marginal(table, right)
            gain -= pool.log_marginal[node]
            score += table.power * gain
        scratch.score[k] = score
        top = max(top, score)
    clear_sums(scratch, found)
    total = 0.0
    for k in range(found - 1):
        total += math.exp(scratch.score[k] - top)
    return found - 1, top + math.log(total)


@kernel
def log_splits(table, pool, node, scratch):
    """Log of the mean over the prior of the rules of exp(power (l_L + l_R - l_node)); kept."""
    if not math.isnan(pool.log_splits[node]):
        return pool.log_splits[node]
    top = -np.inf
    for f in range(table.rank.shape[0]):
        score = -np.inf
        if pool.lowest[node, f] < pool.highest[node, f]:
            _, score = score_gaps(table, pool, node, f, scratch)
            score += math.log(table.weight[f] / pool.varying[node])
        pool.log_by_feature[node, f] = score
        top = max(top, score)
    total = 0.0
    for f in range(table.rank.shape[0]):
        total += math.exp(pool.log_by_feature[node, f] - top)
    pool.log_splits[node] = top + math.log(total)
    return pool.log_splits[node]


# ------------------------------------------------------------------ proposals


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
def propose_rule(table, pool, node, proposal, scratch, rng):
    """A rule for a node that splits: feature, threshold, rank that goes left, log correction.

    The correction is log(prior / proposal) of the rule for EMPIRICAL and 0 otherwise; that of
    OPTIMAL is a matter of the whole node.
    """
    if proposal == OPTIMAL:
        total = log_splits(table, pool, node, scratch)
        by_feature = pool.log_by_feature[node]
        f = draw_from_logs(by_feature, by_feature.shape[0], total, rng)
    else:
        f = draw_varying(table, pool, node, rng)
    low, high = range_of(table, pool, node, f)
    if proposal == PRIOR:
        t = draw_between(low, high, rng)
        return f, t, rank_at(table, f, t), 0.0
    if proposal == OPTIMAL:
        gaps, total = score_gaps(table, pool, node, f, scratch)
        k = draw_from_logs(scratch.score, gaps, total, rng)
    else:
        gaps = tabulate(table, pool, node, f, scratch) - 1
        clear_sums(scratch, gaps + 1)
        k = pick(gaps, rng)
    left, right = scratch.level[k], scratch.level[k + 1]
    near, far = table.value[table.first[f] + left], table.value[table.first[f] + right]
    correction = 0.0
    if proposal == EMPIRICAL:
        correction = math.log((far - near) / (high - low)) + math.log(gaps)
    return f, draw_between(near, far, rng), left, correction
