"""Nodes that many particles share: their rows, sums and possible splits, worked out once.

Two particles that split the same node on the same feature between the same values get the same
children, so a pair of children is kept under (parent, feature, key). The key is the number of rows
going left, or what ``special.key_of`` says. Nodes are never changed after they are made; what no
particle needs any more is dropped by ``compact``.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ..backend.jit import kernel
from ..backend.records import SCRATCH, Float1, Float2, Int1, Record, Short1, Short2, Word1
from ..backend.units import unit
from ..densities import LOG_2PI
from ..hard.leaves import LeafModel, add_row, leaf_log_marginal, n_stats, spread_of
from .special import goes_left, key_of

NODES, ROWS = 0, 1
"""Places in ``Pool.filled``."""
NOWHERE = -1
MOST_TERMS = 1 << 20
"""Rows, by their weights, up to which parts of a log marginal are looked up in a table."""
UNUSED, USED, WAITING = 0, 1, 2
"""Marks for ``compact``."""


class Table(Record):
    """The data with every column as ranks of its values; shared by all islands."""

    rank: Short2
    """[p, n]; 0 for a column's smallest value, equal values share a rank."""
    value: Float1
    """[values of all columns]; those of column f, ascending, from ``first[f]`` on."""
    first: Int1
    """[p + 1]"""
    y: Float1
    """[n] target as made by ``make_leaf_model``; [0] for classification."""
    codes: Int1
    """[n] class codes; [0] for regression."""
    weight: Float1
    """[p]; prior weight of each feature, to be normalised over those that vary in a node."""
    row_weight: Float1
    """[n]; rows that a row counts for; [0] where all count as one."""
    mass: float
    """Sum of these, or the number of rows."""
    leaf_model: LeafModel
    terms: Float2
    """[terms, n + 1]; parts of a leaf's log marginal that depend on whole numbers of rows alone:
    lnG(k + alpha_m) of each class and -lnG(k + mass), or all of a regression's but its spread.
    [terms, 0] where weights are not whole."""
    power: float
    """Of the likelihood."""
    min_size: int
    """A node of this many rows or fewer does not split."""


class Pool(Record, role="state"):
    """Nodes, children in pairs (left, left + 1); those beyond ``filled[NODES]`` are garbage."""

    filled: Int1
    """[2]; nodes and rows written so far."""
    start: Int1
    """[capacity]; where its rows begin; NOWHERE once dropped."""
    n_rows: Int1
    depth: Int1
    parent: Int1
    """-1 for the root."""
    feature: Int1
    """The column its parent was split on."""
    key: Word1
    """Of left children: how, see ``special.key_of``."""
    log_marginal: Float1
    varying: Float1
    """Sum of ``Table.weight`` over the features that vary in it; 0 where it cannot split."""
    log_splits: Float1
    """Log of the prior mean, over its rules, of the likelihood ratio of splitting; NaN until it
    is asked for. Only the one-step optimal proposal asks."""
    stats: Float2
    """[capacity, sums of a leaf]"""
    lowest: Short2
    """[capacity, p]; rank of the smallest value."""
    highest: Short2
    log_by_feature: Float2
    """[capacity, p]; the terms of ``log_splits`` by feature; [capacity, 0] if never asked for."""
    rows: Short1
    """[room for rows]; those of a node stand together, in the order of the data."""
    slot: Int1
    """[power of two, 4 capacity or more]; hash table of left children, NOWHERE where empty."""
    renamed: Annotated[Int1, SCRATCH]
    """[capacity]; scratch of ``compact``."""


def make_table(
    columns: NDArray[np.float64],
    leaf_model: LeafModel,
    y: NDArray[np.float64],
    codes: NDArray[np.int64],
    *,
    weight: NDArray[np.float64],
    power: float,
    min_size: int,
    row_weight: NDArray[np.float64] | None = None,
) -> Table:
    """``y`` and ``codes`` as made by ``make_leaf_model``."""
    n = columns.shape[1]
    rows = np.ones(n) if row_weight is None else row_weight
    whole = bool((rows % 1 == 0).all()) and rows.sum() <= MOST_TERMS
    unique = [np.unique(column, return_inverse=True) for column in columns]
    return Table(
        rank=np.array([rank for _, rank in unique], np.int32),
        value=np.concatenate([value for value, _ in unique]),
        first=np.cumsum([0, *(len(value) for value, _ in unique)]),
        y=y,
        codes=codes,
        weight=weight,
        leaf_model=leaf_model,
        row_weight=np.zeros(0) if row_weight is None else row_weight,
        mass=float(rows.sum()),
        terms=_make_terms(leaf_model, int(rows.sum()) if whole or row_weight is None else -1),
        power=float(power),
        min_size=int(min_size),
    )


def _make_terms(leaf_model: LeafModel, n_rows: int) -> NDArray[np.float64]:
    k = np.arange(n_rows + 1.0)
    if len(leaf_model.class_prior):
        by_class = gammaln(k + leaf_model.class_prior[:, None])
        return np.vstack([by_class, -gammaln(k + leaf_model.mass)])
    rest = k * LOG_2PI + np.log(leaf_model.prior_rows + k)
    terms: NDArray[np.float64] = gammaln(leaf_model.shape + 0.5 * k) - 0.5 * rest
    return terms[None, :]


def make_pool(table: Table, capacity: int, room: int, optimal: bool) -> Pool:
    """Room for ``capacity`` nodes with ``room`` rows in all; ``optimal``: scores are kept."""
    p = len(table.rank)
    slots = 1 << (4 * capacity - 1).bit_length()
    return Pool(
        filled=np.zeros(2, np.int64),
        start=np.zeros(capacity, np.int64),
        n_rows=np.zeros(capacity, np.int64),
        depth=np.zeros(capacity, np.int64),
        parent=np.zeros(capacity, np.int64),
        feature=np.zeros(capacity, np.int64),
        key=np.zeros(capacity, np.uint64),
        log_marginal=np.zeros(capacity),
        varying=np.zeros(capacity),
        log_splits=np.zeros(capacity),
        stats=np.zeros((capacity, n_stats(table.leaf_model))),
        lowest=np.zeros((capacity, p), np.int32),
        highest=np.zeros((capacity, p), np.int32),
        log_by_feature=np.zeros((capacity, p if optimal else 0)),
        rows=np.zeros(room, np.int32),
        slot=np.full(slots, NOWHERE),
        renamed=np.zeros(capacity, np.int64),
    )


def enlarged(pool: Pool, table: Table, capacity: int, room: int) -> Pool:
    """A copy with more room; ``compact`` must follow, to fill its hash table."""
    larger = make_pool(table, capacity, room, pool.log_by_feature.shape[1] > 0)
    nodes, rows = pool.filled
    larger.filled[:] = pool.filled
    larger.rows[:rows] = pool.rows[:rows]
    for name in set(Pool._fields) - {"filled", "rows", "slot", "renamed"}:
        getattr(larger, name)[:nodes] = getattr(pool, name)[:nodes]
    return larger


# ------------------------------------------------------------------ making nodes


@kernel
def has_room(pool, node):
    """For both children of a node."""
    return (
        pool.filled[NODES] + 2 <= pool.start.shape[0]
        and pool.filled[ROWS] + pool.n_rows[node] <= pool.rows.shape[0]
    )


@kernel
def range_of(table, pool, node, f):
    """Smallest and largest value of a feature in a node."""
    base = table.first[f]
    return (
        table.value[base + pool.lowest[node, f]],
        table.value[base + pool.highest[node, f]],
    )


@kernel
def log_marginal(table, stats):
    """``leaf_log_marginal`` with its gamma functions looked up, which scans of a node need."""
    model = table.leaf_model
    if table.terms.shape[1] == 0:
        return leaf_log_marginal(model, stats)
    n_classes = model.class_prior.shape[0]
    total = model.constant
    if n_classes > 0:
        rows = 0
        for m in range(n_classes):
            total += table.terms[m, int(stats[m])]
            rows += int(stats[m])
        return total + table.terms[n_classes, rows]
    shape = model.shape + 0.5 * stats[0]
    total += table.terms[0, int(stats[0])]
    return total - shape * math.log(model.rate + spread_of(model, stats))


@kernel
def rows_of(table, pool, node):
    """How many rows a node has, by their weights."""
    if table.row_weight.shape[0] == 0:
        return float(pool.n_rows[node])
    n_classes = table.leaf_model.class_prior.shape[0]
    total = 0.0
    for s in range(max(n_classes, 1)):  # class counts, or the first of a regression's sums
        total += pool.stats[node, s]
    return total


@kernel
def finish_node(table, pool, node, parent, feature):
    """Everything about a node that follows from its rows."""
    rows, all_stats, y, codes = pool.rows, pool.stats, table.y, table.codes
    weights = table.row_weight
    begin = pool.start[node]
    end = begin + pool.n_rows[node]
    for m in range(all_stats.shape[1]):
        all_stats[node, m] = 0.0
    for place in range(begin, end):
        add_row(all_stats, node, y, codes, weights, rows[place])
    pool.log_marginal[node] = log_marginal(table, all_stats[node])
    pool.parent[node] = parent
    pool.feature[node] = feature
    pool.depth[node] = pool.depth[parent] + 1 if parent >= 0 else 0
    pool.log_splits[node] = np.nan
    pool.varying[node] = 0.0
    if rows_of(table, pool, node) <= table.min_size:
        return
    ranks = table.rank
    for f in range(ranks.shape[0]):
        low = high = ranks[f, rows[begin]]
        for place in range(begin + 1, end):
            low = min(low, ranks[f, rows[place]])
            high = max(high, ranks[f, rows[place]])
        pool.lowest[node, f] = low
        pool.highest[node, f] = high
        if low < high:
            pool.varying[node] += table.weight[f]


@kernel
def add_root(table, pool):
    n = table.rank.shape[1]
    for row in range(n):
        pool.rows[row] = row
    pool.start[0] = 0
    pool.n_rows[0] = n
    pool.filled[NODES], pool.filled[ROWS] = 1, n
    finish_node(table, pool, 0, -1, -1)


@kernel
def find_slot(pool, parent, feature, key):
    """The place of a pair in the hash table, or the empty one where it belongs."""
    mixed = np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ np.uint64(feature)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ key) * np.uint64(0x94D049BB133111EB)
    last = pool.slot.shape[0] - 1
    place = np.int64(mixed >> np.uint64(20)) & last
    while True:
        left = pool.slot[place]
        if left == NOWHERE or (
            pool.parent[left] == parent and pool.feature[left] == feature and pool.key[left] == key
        ):
            return place
        place = (place + 1) & last


@kernel
def is_whole(pool, node):
    """It has its rows, or will never need them."""
    return pool.start[node] != NOWHERE or pool.varying[node] == 0.0


@kernel
def children_of(table, pool, node, f, cut, threshold, levels, special):
    """The left of the two children by a rule, see ``goes_left``; made if they are new."""
    ranks, rows, filled = table.rank, pool.rows, pool.filled
    begin = pool.start[node]
    end = begin + pool.n_rows[node]
    n_left = 0
    for place in range(begin, end):
        n_left += 1 if goes_left(special, ranks, f, rows[place], cut, threshold, levels) else 0
    key = key_of(special, table, pool, node, f, n_left, levels)
    place = find_slot(pool, node, f, key)
    if pool.slot[place] != NOWHERE:
        return pool.slot[place]
    left = filled[NODES]
    to_left = filled[ROWS]
    to_right = to_left + n_left
    pool.slot[place] = left
    pool.key[left] = key
    pool.start[left], pool.start[left + 1] = to_left, to_right
    pool.n_rows[left], pool.n_rows[left + 1] = n_left, end - begin - n_left
    for place in range(begin, end):
        row = rows[place]
        if goes_left(special, ranks, f, row, cut, threshold, levels):
            rows[to_left] = row
            to_left += 1
        else:
            rows[to_right] = row
            to_right += 1
    filled[NODES] += 2
    filled[ROWS] += end - begin
    finish_node(table, pool, left, node, f)
    finish_node(table, pool, left + 1, node, f)
    return left


# ------------------------------------------------------------------ dropping nodes


@kernel
def move_node(pool, node, target, with_rows):
    """Copy a node, and its rows if wanted, to a place no later than its own."""
    pool.n_rows[target] = pool.n_rows[node]
    pool.depth[target] = pool.depth[node]
    pool.feature[target] = pool.feature[node]
    pool.key[target] = pool.key[node]
    pool.log_marginal[target] = pool.log_marginal[node]
    pool.varying[target] = pool.varying[node]
    pool.log_splits[target] = pool.log_splits[node]
    for m in range(pool.stats.shape[1]):
        pool.stats[target, m] = pool.stats[node, m]
    for f in range(pool.lowest.shape[1]):
        pool.lowest[target, f] = pool.lowest[node, f]
        pool.highest[target, f] = pool.highest[node, f]
    for f in range(pool.log_by_feature.shape[1]):
        pool.log_by_feature[target, f] = pool.log_by_feature[node, f]
    begin = pool.start[node]
    pool.start[target] = NOWHERE
    if with_rows:
        pool.start[target] = pool.filled[ROWS]
        for place in range(begin, begin + pool.n_rows[node]):
            pool.rows[pool.filled[ROWS]] = pool.rows[place]
            pool.filled[ROWS] += 1


@kernel
def compact(pool):
    """Keep the nodes that are marked in ``renamed``, which then says where each went.

    Marks: UNUSED, USED in a tree, or WAITING to be split, which alone needs its rows. A parent of
    a used node is used, and so is its sibling.
    """
    nodes = pool.filled[NODES]
    pool.filled[NODES], pool.filled[ROWS] = 0, 0
    for place in range(pool.slot.shape[0]):
        pool.slot[place] = NOWHERE
    for node in range(nodes):
        if pool.renamed[node] == UNUSED:
            continue
        target = pool.filled[NODES]
        parent = pool.parent[node]
        move_node(pool, node, target, pool.renamed[node] == WAITING)
        pool.parent[target] = pool.renamed[parent] if parent >= 0 else -1
        pool.renamed[node] = target
        pool.filled[NODES] += 1
    for left in range(1, pool.filled[NODES], 2):
        # Others may still ask for a pair, but only while it could be handed out whole.
        if is_whole(pool, left) and is_whole(pool, left + 1):
            place = find_slot(pool, pool.parent[left], pool.feature[left], pool.key[left])
            pool.slot[place] = left


unit(add_root, Table, Pool)
