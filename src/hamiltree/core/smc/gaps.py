"""Splits that a node could have, gaps between neighbouring values or sets of levels: their scores.

The prior of a threshold is uniform over the range of the node's values, so a gap has prior mass in
proportion to its width, and all thresholds within a gap make the same children. With missing cells
in the node there are gaps with these on the left, the same with these on the right, and "is
missing"; of a category, all ways to part the levels that rows of the node have.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel
from ..backend.records import Float1, Float2, Int1, Record
from ..hard.leaves import add_row, n_stats
from ..hard.special_rules import probability_of_missing
from ..tree.kinds import Kinds, log_subsets
from .node_pool import Table, log_marginal
from .special import has_missing

MOST_LEVELS = 12
"""Of a category in a node whose ways to part them can be scored: 2,047."""


class GapWork(Record, role="scratch"):
    """For one node and feature at a time; ``n_rows`` and ``sums`` are zero in between."""

    n_rows: Int1
    """[most values of a column]; rows of each rank."""
    sums: Float2
    """[most values of a column, sums of a leaf]"""
    level: Int1
    """[most values of a column]; the ranks that occur, ascending."""
    score: Float1
    """[most splits of a column]; log prior mass times likelihood ratio of each."""
    side: Float2
    """[2, sums of a leaf]; left and right of a split."""


def make_scratch(table: Table, kinds: Kinds) -> GapWork:
    values, sums = np.diff(table.first), n_stats(table.leaf_model)
    longest = int(values.max())
    splits = np.where(kinds.levels > 0, 1 << np.minimum(values - 1, MOST_LEVELS), 2 * values)
    return GapWork(
        n_rows=np.zeros(longest, np.int64),
        sums=np.zeros((longest, sums)),
        level=np.zeros(longest, np.int64),
        score=np.zeros(int(splits.max())),
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


@inlined
def log_gain(table, pool, node, left, right):
    """power (l_L + l_R - l_node), from the sums on the left; writes those on the right."""
    for m in range(left.shape[0]):
        right[m] = pool.stats[node, m] - left[m]
    if table.power == 0.0:
        return 0.0
    gain = log_marginal(table, left) + log_marginal(table, right)
    gain -= pool.log_marginal[node]
    return table.power * gain


@kernel
def log_sum(score, n, top):
    """Log of the sum of the exponentials; the largest score is known."""
    total = 0.0
    for k in range(n):
        total += math.exp(score[k] - top)
    return top + math.log(total)


@kernel
def score_gaps(table, pool, node, f, scratch):
    """Score each gap between numbers of a feature: log P(gap) + power (l_L + l_R - l_node).

    Where cells are missing in the node, gaps come twice, with these on the left and on the right,
    and "is missing" comes last, whichever side is which. Returns how many scores there are and the
    logarithm of the sum of their exponentials.
    """
    found = tabulate(table, pool, node, f, scratch)
    missing = 1 if has_missing(table, pool, node, f) else 0
    gaps = found - 1 - missing
    low = table.value[table.first[f] + scratch.level[missing]]
    high = table.value[table.first[f] + scratch.level[found - 1]]
    by_missing, _ = probability_of_missing(low, high, missing)
    left, right = scratch.side[0], scratch.side[1]
    n, top = 0, -np.inf
    for side in range((1 + missing) * min(gaps, 1)):
        for m in range(left.shape[0]):
            left[m] = scratch.sums[scratch.level[0], m] if side < missing else 0.0
        log_side = math.log((1.0 - by_missing) / (1.0 + missing))
        for k in range(missing, missing + gaps):
            here = table.first[f] + scratch.level[k]
            beyond = table.first[f] + scratch.level[k + 1]
            score = log_side
            score += math.log((table.value[beyond] - table.value[here]) / (high - low))
            for m in range(left.shape[0]):
                left[m] += scratch.sums[scratch.level[k], m]
            score += log_gain(table, pool, node, left, right)
            scratch.score[n] = score
            top = max(top, score)
            n += 1
    if missing > 0:
        for m in range(left.shape[0]):
            left[m] = scratch.sums[scratch.level[0], m]
        scratch.score[n] = math.log(by_missing) + log_gain(table, pool, node, left, right)
        top = max(top, scratch.score[n])
        n += 1
    clear_sums(scratch, found)
    return n, log_sum(scratch.score, n, top)


@kernel
def score_sets(table, pool, node, f, scratch):
    """The same for a category: each way to part the levels in the node, whichever side is which.

    In way k, level number j of those in the node is on the left where bit j of k + 1 is 0; the last
    level always is.
    """
    found = tabulate(table, pool, node, f, scratch)
    ways = (1 << (found - 1)) - 1
    log_way = math.log(2.0) - log_subsets(found)
    left, right = scratch.side[0], scratch.side[1]
    top = -np.inf
    for k in range(ways):
        for m in range(left.shape[0]):
            left[m] = 0.0
        for j in range(found):
            if ((k + 1) >> j) & 1 == 0:
                for m in range(left.shape[0]):
                    left[m] += scratch.sums[scratch.level[j], m]
        scratch.score[k] = log_way + log_gain(table, pool, node, left, right)
        top = max(top, scratch.score[k])
    clear_sums(scratch, found)
    return ways, log_sum(scratch.score, ways, top)
