"""WU's radical restructure: another tree over the same leaves, with its exact proposal density.

From the root on, every interval of thresholds that keeps each leaf's rows together is listed; one
is picked, all alike, and the threshold is drawn uniformly in it. A dead end refuses the move, and
so does a tree that splits on a special column: only numbers without holes have intervals.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import Float2, Int1, Int2, Record
from ..sampling import draw_between, pick
from ..tree.kinds import NO_LEVELS, is_special
from ..tree.nodes import n_leaves, relink
from .partition import range_of


class PartitionWork(Record, role="scratch"):
    """Leaves are numbered in the preorder of the current tree."""

    low: Float2
    """[max_leaves, p]; smallest value of each feature in a leaf."""
    high: Float2
    order: Int2
    """[p, max_leaves]; leaves by their smallest value."""
    leaf: Int1
    """[max_leaves]; a permutation: the leaves below a node of the new tree are one range."""
    place: Int1
    """[max_leaves]; its inverse."""
    first: Int1
    """[capacity]; where a node's range starts."""


def make_partition_work(max_leaves: int, n_features: int) -> PartitionWork:
    return PartitionWork(
        low=np.zeros((max_leaves, n_features)),
        high=np.zeros((max_leaves, n_features)),
        order=np.zeros((n_features, max_leaves), np.int64),
        leaf=np.zeros(max_leaves, np.int64),
        place=np.zeros(max_leaves, np.int64),
        first=np.zeros(2 * max_leaves - 1, np.int64),
    )


@kernel
def describe_leaves(data, tree, cells, work):
    """Ranges and orders of the leaves; ``leaf`` in the order of the tree."""
    k = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            for f in range(data.columns.shape[0]):
                work.low[k, f], work.high[k, f] = range_of(
                    data.columns[f], cells.rows, cells.start[i], cells.stop[i]
                )
                at = k
                while at > 0 and work.low[work.order[f, at - 1], f] > work.low[k, f]:
                    work.order[f, at] = work.order[f, at - 1]
                    at -= 1
                work.order[f, at] = k
            work.leaf[k] = k
            work.place[k] = k
            k += 1


@kernel
def visit_intervals(data, work, n_leaf, a, b, wanted):
    """Intervals that keep the leaves at places a:b together: how many, and the ``wanted``-th.

    Returns (count, feature, low, high); a threshold in [low, high) sends the leaves whose
    largest value is at most low to the left.
    """
    count = 0
    feature, low, high = -1, 0.0, 0.0
    for f in range(work.order.shape[0]):
        if is_special(data.kinds, f):
            continue
        reach = -np.inf  # largest value of the leaves so far
        for j in range(n_leaf):
            k = work.order[f, j]
            if not a <= work.place[k] < b:
                continue
            if reach != -np.inf and reach < work.low[k, f]:
                if count == wanted:
                    feature, low, high = f, reach, work.low[k, f]
                count += 1
            reach = max(reach, work.high[k, f])
    return count, feature, low, high


@kernel
def send_leaves(work, a, b, f, low):
    """Reorder the leaves at places a:b, those to the left of a cut first; where the others start.

    The order among those of one side does not matter: they are looked at as a set.
    """
    middle = a
    for at in range(a, b):
        k = work.leaf[at]
        if work.high[k, f] <= low:
            work.leaf[at] = work.leaf[middle]
            work.leaf[middle] = k
            middle += 1
    for at in range(a, b):
        work.place[work.leaf[at]] = at
    return middle


@kernel
def log_density_of(data, tree, work, n_leaf):
    """Log density of arriving at the current tree from its leaves."""
    total = 0.0
    a = 0  # leaves that stand before node i in preorder are those before its range
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            a += 1
            continue
        f = tree.feature[i]
        if is_special(data.kinds, f):
            return -np.inf
        middle = a + (tree.size[i + 1] + 1) // 2
        b = a + (tree.size[i] + 1) // 2
        low, high = -np.inf, np.inf
        for k in range(a, middle):
            low = max(low, work.high[k, f])
        for k in range(middle, b):
            high = min(high, work.low[k, f])
        count, _, _, _ = visit_intervals(data, work, n_leaf, a, b, -1)
        total -= math.log(count) + math.log(high - low)
    return total


@kernel
def restructure(data, tree, cells, new_tree, work, rng):
    """Write the new tree; returns the log ratio of the densities back and forth."""
    n_leaf = n_leaves(tree)
    if n_leaf == 1:
        return -np.inf
    describe_leaves(data, tree, cells, work)
    log_back = log_density_of(data, tree, work, n_leaf)
    if log_back == -np.inf:
        return -np.inf
    log_forth = 0.0
    new_tree.n_nodes[0] = tree.n_nodes[0]
    new_tree.size[0] = tree.n_nodes[0]
    work.first[0] = 0
    for i in range(tree.n_nodes[0]):
        if new_tree.size[i] == 1:
            new_tree.feature[i] = -1
            continue
        a = work.first[i]
        b = a + (new_tree.size[i] + 1) // 2
        count, f, low, high = visit_intervals(data, work, n_leaf, a, b, -1)
        if count == 0:
            return -np.inf
        chosen = pick(count, rng)
        count, f, low, high = visit_intervals(data, work, n_leaf, a, b, chosen)
        log_forth -= math.log(count) + math.log(high - low)
        new_tree.feature[i] = f
        new_tree.threshold[i] = draw_between(low, high, rng)
        new_tree.levels[i] = NO_LEVELS
        middle = send_leaves(work, a, b, f, low)
        left = i + 1
        new_tree.size[left] = 2 * (middle - a) - 1
        right = left + new_tree.size[left]
        new_tree.size[right] = 2 * (b - middle) - 1
        work.first[left] = a
        work.first[right] = middle
    relink(new_tree)
    return log_back - log_forth
