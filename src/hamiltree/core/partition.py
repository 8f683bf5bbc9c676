"""Rows of a hard tree: a permutation in leaf order, in which every subtree is one range.

Right iff x > threshold, as in ``routing``. A proposal re-partitions the range of the subtree it
touches and nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import inlined


class HardData(NamedTuple):
    """What is observed; shared by all chains."""

    columns: NDArray[np.float64]
    """[p, n]; inputs on the unit interval, a feature contiguous."""
    codes: NDArray[np.int64]
    """[p, n]; rank of a value among the distinct values of its column; [p, 0] if not needed."""
    cuts: NDArray[np.float64]
    """[p, n]; midway from a value to the next larger one of its column; [p, 0] if not needed. A
    threshold at a value itself would be at the mercy of rounding to the user's units and back."""
    y: NDArray[np.float64]
    """[n] centred target; [0] for classification."""
    classes: NDArray[np.int64]
    """[n] class codes; [0] for regression."""


class Cells(NamedTuple):
    """What the nodes of a tree hold, beside the ``Tree`` of the same capacity."""

    rows: NDArray[np.int64]
    """[n]; a permutation: node i's rows are rows[start[i]:stop[i]]."""
    start: NDArray[np.int64]
    """[capacity]"""
    stop: NDArray[np.int64]
    stats: NDArray[np.float64]
    """[capacity, n_stats]; sums over a node's rows, see ``leaves``."""
    part: NDArray[np.float64]
    """[capacity]; a leaf's share of the log marginal likelihood, see ``leaves.leaf_parts``."""
    spread: NDArray[np.float64]
    """[capacity]; the same where all leaves share a variance."""
    log_rule: NDArray[np.float64]
    """[capacity]; log prior of an internal node's rule given its rows."""
    can_split: NDArray[np.bool_]
    """[capacity]; some rule is available in the node."""


def make_hard_data(
    columns: NDArray[np.float64],
    y: NDArray[np.float64],
    classes: NDArray[np.int64],
    *,
    coded: bool,
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
    return HardData(np.ascontiguousarray(columns, np.float64), codes, cuts, y, classes)


def make_cells(max_leaves: int, n_rows: int, n_stats: int) -> Cells:
    capacity = 2 * max_leaves - 1
    return Cells(
        rows=np.arange(n_rows),
        start=np.zeros(capacity, np.int64),
        stop=np.full(capacity, n_rows, np.int64),
        stats=np.zeros((capacity, n_stats)),
        part=np.zeros(capacity),
        spread=np.zeros(capacity),
        log_rule=np.zeros(capacity),
        can_split=np.zeros(capacity, np.bool_),
    )


@inlined
def copy_cell(source, i, target, j):
    """All of node i but its rows."""
    target.start[j] = source.start[i]
    target.stop[j] = source.stop[i]
    target.part[j] = source.part[i]
    target.spread[j] = source.spread[i]
    target.log_rule[j] = source.log_rule[i]
    target.can_split[j] = source.can_split[i]
    for s in range(source.stats.shape[1]):
        target.stats[j, s] = source.stats[i, s]


@inlined
def copy_rows(source, target, start, stop):
    for k in range(start, stop):
        target[k] = source[k]


@inlined
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


@inlined
def sum_rows(data, rows, start, stop, stats):
    """Sums of a node from its rows; see ``leaves``."""
    if data.classes.shape[0] > 0:
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


@inlined
def range_of(x, rows, start, stop):
    """Smallest and largest value of a column in a node that has rows."""
    low = x[rows[start]]
    high = low
    for k in range(start + 1, stop):
        value = x[rows[k]]
        low = min(low, value)
        high = max(high, value)
    return low, high


@inlined
def varies(x, rows, start, stop):
    """Whether a column takes more than one value in a node."""
    for k in range(start + 1, stop):  # noqa: SIM110 (no generators in compiled code)
        if x[rows[k]] != x[rows[start]]:
            return True
    return False
