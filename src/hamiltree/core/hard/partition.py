"""Rows of a hard tree: a permutation in leaf order, in which every subtree is one range.

Right iff x > threshold, as in ``routing``. A proposal re-partitions the range of the subtree it
touches and nothing else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import kernel
from ..backend.records import Bool1, Float1, Float2, Int1, Int2, Record
from ..tree.kinds import MISSING_BELOW, Kinds, has_level, is_special, plain_kinds, sends_right


class HardData(Record):
    """What is observed; shared by all chains."""

    columns: Float2
    """[p, n]; inputs on the unit interval, a feature contiguous."""
    codes: Int2
    """[p, n]; rank of a value among the distinct values of its column; [p, 0] if not needed."""
    cuts: Float2
    """[p, n]; midway from a value to the next larger one of its column; [p, 0] if not needed. A
    threshold at a value itself would be at the mercy of rounding to the user's units and back."""
    y: Float1
    """[n] centred target; [0] for classification."""
    classes: Int1
    """[n] class codes; [0] for regression."""
    weight: Float1
    """[n]; rows that a row counts for; [0] where all count as one."""
    mass: float
    """Sum of the weights, or the number of rows."""
    kinds: Kinds
    """Of the columns."""


class NodeCells(Record, role="state"):
    """What the nodes of a tree hold, beside the ``Tree`` of the same capacity."""

    rows: Int1
    """[n]; a permutation: node i's rows are rows[start[i]:stop[i]]."""
    start: Int1
    """[capacity]"""
    stop: Int1
    stats: Float2
    """[capacity, n_stats]; sums over a node's rows, see ``leaves``."""
    part: Float1
    """[capacity]; a leaf's share of the log marginal likelihood, see ``leaves.leaf_parts``."""
    spread: Float1
    """[capacity]; the same where all leaves share a variance."""
    log_rule: Float1
    """[capacity]; log prior of an internal node's rule given its rows."""
    can_split: Bool1
    """[capacity]; some rule is available in the node."""


def make_hard_data(
    columns: NDArray[np.float64],
    y: NDArray[np.float64],
    classes: NDArray[np.int64],
    *,
    coded: bool,
    weights: NDArray[np.float64] | None = None,
    kinds: Kinds | None = None,
) -> HardData:
    """``coded``: for thresholds at observed values."""
    p, n = columns.shape
    codes = np.zeros((p, n if coded else 0), np.int64)
    cuts = np.zeros((p, n if coded else 0))
    if coded:
        for f in range(p):
            levels, codes[f] = np.unique(columns[f], return_inverse=True)
            above = np.append(levels[1:], np.inf)
            middle = levels + 0.5 * (above - levels)
            cuts[f] = np.where(middle < above, middle, levels)[codes[f]]
    columns = np.ascontiguousarray(columns, np.float64)
    return HardData(
        columns=columns,
        codes=codes,
        cuts=cuts,
        y=y,
        classes=classes,
        weight=np.zeros(0) if weights is None else weights,
        mass=float(n if weights is None else weights.sum()),
        kinds=plain_kinds(p) if kinds is None else kinds,
    )


def make_cells(max_leaves: int, n_rows: int, n_stats: int) -> NodeCells:
    capacity = 2 * max_leaves - 1
    return NodeCells(
        rows=np.arange(n_rows),
        start=np.zeros(capacity, np.int64),
        stop=np.full(capacity, n_rows, np.int64),
        stats=np.zeros((capacity, n_stats)),
        part=np.zeros(capacity),
        spread=np.zeros(capacity),
        log_rule=np.zeros(capacity),
        can_split=np.zeros(capacity, np.bool_),
    )


@kernel
def copy_cells(source, start, target, at, count):
    """All of some nodes but their rows, in an order that lets them overlap."""
    begin, new_begin, end, new_end = source.start, target.start, source.stop, target.stop
    part, new_part, spread, new_spread = source.part, target.part, source.spread, target.spread
    log_rule, new_log_rule = source.log_rule, target.log_rule
    can_split, new_can_split = source.can_split, target.can_split
    stats, new_stats = source.stats, target.stats
    for k in range(count):
        i, j = start + k, at + k
        if at > start:
            i, j = start + count - 1 - k, at + count - 1 - k
        new_begin[j] = begin[i]
        new_end[j] = end[i]
        new_part[j] = part[i]
        new_spread[j] = spread[i]
        new_log_rule[j] = log_rule[i]
        new_can_split[j] = can_split[i]
        for s in range(stats.shape[1]):
            new_stats[j, s] = stats[i, s]


@kernel
def copy_rows(source, target, start, stop):
    for k in range(start, stop):
        target[k] = source[k]


@kernel
def split_rows(x, threshold, rows, spare, start, stop):
    """Bring the rows that go left before those that go right; returns where the latter start.

    Stable, and without a branch on the data, which would be mispredicted every other row.
    """
    left = start
    right = 0
    for k in range(start, stop):
        row = rows[k]
        go_right = 1 if x[row] > threshold else 0
        rows[left] = row
        spare[right] = row
        right += go_right
        left += 1 - go_right
    for k in range(right):
        rows[left + k] = spare[k]
    return left


@kernel
def split_special_rows(data, f, threshold, levels, rows, spare, start, stop):
    """The same for a column that is special."""
    x, kinds = data.columns[f], data.kinds
    left = start
    right = 0
    for k in range(start, stop):
        row = rows[k]
        go_right = 1 if sends_right(kinds, f, x[row], threshold, levels) else 0
        rows[left] = row
        spare[right] = row
        right += go_right
        left += 1 - go_right
    for k in range(right):
        rows[left + k] = spare[k]
    return left


@kernel
def split_by_rule(data, tree, i, rows, spare, start, stop):
    """Bring the rows that go left by the rule of node i before those that go right."""
    f, threshold = tree.feature[i], tree.threshold[i]
    if is_special(data.kinds, f):
        return split_special_rows(data, f, threshold, tree.levels[i], rows, spare, start, stop)
    return split_rows(data.columns[f], threshold, rows, spare, start, stop)


@kernel
def present_levels(x, rows, start, stop):
    """The levels of a category that rows of a node have: a set, and how many."""
    found = np.uint64(0)
    count = 0
    for k in range(start, stop):
        if not has_level(found, x[rows[k]]):
            found |= np.uint64(1) << np.uint64(x[rows[k]])
            count += 1
    return found, count


@kernel
def range_of_present(x, rows, start, stop):
    """Smallest and largest number of a column in a node, and how many are missing there.

    (inf, -inf) where all are.
    """
    low, high = np.inf, -np.inf
    missing = 0
    for k in range(start, stop):
        value = x[rows[k]]
        if value < MISSING_BELOW:
            missing += 1
        else:
            low = min(low, value)
            high = max(high, value)
    return low, high, missing


@kernel
def sum_rows(data, rows, start, stop, stats):
    """Sums of a node from its rows; see ``leaves``."""
    if data.weight.shape[0] > 0:
        sum_weighted_rows(data, rows, start, stop, stats)
    elif data.classes.shape[0] > 0:
        for s in range(stats.shape[0]):
            stats[s] = 0.0
        for k in range(start, stop):
            stats[data.classes[rows[k]]] += 1.0
    else:
        total = 0.0
        squares = 0.0
        for k in range(start, stop):
            y = data.y[rows[k]]
            total += y
            squares += y * y
        stats[0] = stop - start
        stats[1] = total
        stats[2] = squares


@kernel
def sum_weighted_rows(data, rows, start, stop, stats):
    """The same where rows have weights."""
    weight, regression = data.weight, data.classes.shape[0] == 0
    for s in range(stats.shape[0]):
        stats[s] = 0.0
    for k in range(start, stop):
        row = rows[k]
        if regression:
            y = data.y[row]
            stats[0] += weight[row]
            stats[1] += weight[row] * y
            stats[2] += weight[row] * y * y
        else:
            stats[data.classes[row]] += weight[row]


@kernel
def range_of(x, rows, start, stop):
    """Smallest and largest value of a column in a node that has rows."""
    low = x[rows[start]]
    high = low
    for k in range(start + 1, stop):
        value = x[rows[k]]
        low = min(low, value)
        high = max(high, value)
    return low, high


@kernel
def varies(x, rows, start, stop):
    """Whether a column takes more than one value in a node."""
    for k in range(start + 1, stop):  # noqa: SIM110 (no generators in compiled code)
        if x[rows[k]] != x[rows[start]]:
            return True
    return False
