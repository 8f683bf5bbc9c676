"""The rows of a scanned node: which reach it, where they go, and their order by a column."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel, pointer_kernel
from ..tree.kinds import is_special, sends_right
from ..tree.nodes import copy_tree, path_to
from .by_bits import find_bits, has_keys, list_rows, place_bits, score_bits
from .data import CLASS_COUNTS, ROWS, is_binned, value_at
from .scores import all_right

ALL = np.int64(1)
"""Among the sums of ``Sides``, those of all rows."""
FIRST_PART = np.int64(2)
"""Among the sums of ``Sides``, those of the first part."""
NEW_LEAF = np.int64(-1)
"""A side that is a new leaf. An np.int64: kernels would be compiled again for a literal."""

NONE = np.int64(0)
UNMARKED, MARKED = np.int64(0), np.int64(1)

FIND_TASK, SIDES_TASK, PROJECT_TASK, COLUMNS_TASK = 0, 1, 2, 3
"""Tasks of ``row_threads``; see ``parts``."""
NODE, LENGTH, LEFT, RIGHT, CLOSELY = range(5)
"""Places in ``Scan.task``."""


@kernel
def goes_right(data, tree, node, row):
    p = tree.weights.shape[1]
    if p == 0:
        f = tree.feature[node]
        if is_special(data.kinds, f):
            x, threshold, levels = value_at(data, f, row), tree.threshold[node], tree.levels[node]
            return sends_right(data.kinds, f, x, threshold, levels)
        return value_at(data, f, row) > tree.threshold[node]
    x = 0.0
    for f in range(p):
        x += tree.weights[node, f] * value_at(data, f, row)
    return x > tree.threshold[node]


# ------------------------------------------------------------------ parts of large data


@kernel
def rows_per_part(scan):
    return -(-scan.node.rows.shape[0] // (scan.sides.total.shape[0] - FIRST_PART))


@kernel
def part_bounds(scan, n, part):
    """Where a part of n rows begins and ends."""
    rows = rows_per_part(scan)
    return part * rows, min((part + 1) * rows, n)


@kernel
def count_parts(scan, n):
    return -(-n // rows_per_part(scan))


# ------------------------------------------------------------------ rows that reach a node


@kernel
def keep_rows(scan, tree, node, length, first, stop):
    """Of the rows from ``first`` to ``stop``, leave those that reach a node; where they end."""
    data, rows, path, everyone = scan.data, scan.node.rows, scan.node.path, scan.data.rows
    columns = data.columns
    plain = tree.weights.shape[1] == 0 and columns.shape[1] > 0
    for k in range(first, stop):
        rows[k] = everyone[k]
    for d in range(length):
        at = path[d]
        child = path[d + 1] if d + 1 < length else node
        to_right = child != at + 1
        kept = first
        if plain and not is_special(data.kinds, tree.feature[at]):
            f, threshold = tree.feature[at], tree.threshold[at]
            for k in range(first, stop):
                row = rows[k]
                rows[kept] = row
                kept += 1 if (columns[f, row] > threshold) == to_right else 0
        else:
            for k in range(first, stop):
                row = rows[k]
                rows[kept] = row
                kept += 1 if goes_right(data, tree, at, row) == to_right else 0
        stop = kept
    return stop


@kernel
def join_parts(scan, parts):
    """The rows that each part has found, one behind the other; how many."""
    rows, total = scan.node.rows, scan.sides.total
    n = scan.data.rows.shape[0]
    kept = 0
    for part in range(parts):
        first, _ = part_bounds(scan, n, part)
        for k in range(first, first + total[FIRST_PART + part, 0]):
            rows[kept] = rows[k]
            kept += 1
    return kept


# ------------------------------------------------------------------ where they go


@kernel
def number_leaves(node, tree, root):
    """Number the leaves of a subtree; returns how many. A new leaf (-1) is one."""
    if root < 0:
        return 1
    count = 0
    for i in range(root, root + tree.size[root]):
        if tree.size[i] == 1:
            node.leaf_id[i] = count
            count += 1
    return count


@kernel
def clear_leaves(sides, leaves, which):
    total, members, sums = sides.total, sides.members, sides.sums
    for leaf in range(leaves):
        total[which, leaf] = 0
        for m in range(members.shape[2]):
            members[which, leaf, m] = 0
        sums[which, leaf, 0] = 0.0
        sums[which, leaf, 1] = 0.0


@kernel
def place_rows(scan, tree, left, right, which, first, stop):
    """Where rows go on either side, and sums over them with all on the right."""
    data, node, sides = scan.data, scan.node, scan.sides
    total, members, sums = sides.total, sides.members, sides.sums
    rows, place, keys, labels, y = node.rows, node.place, node.key, data.label, data.y
    columns, leaf_id = data.columns, node.leaf_id
    size, feature, threshold, weights = tree.size, tree.feature, tree.threshold, tree.weights
    n_left, n_right = sides.n_side[0], sides.n_side[1]
    classes = members.shape[2]
    amounts, weights_of, weighted = data.amount, data.weight, data.amount.shape[0] > 0
    binned, counted = is_binned(data), scan.model.leaf == CLASS_COUNTS
    oblique, single = weights.shape[1] > 0, columns.shape[1] == 0
    special = data.kinds.special
    clear_leaves(sides, n_left + n_right, which)
    for k in range(first, stop):
        row = rows[k]
        label = labels[row]
        to_left, to_right = 0, 0  # leaves of either side, by their numbers
        for side in range(2):
            i = left if side == 0 else right
            if i < 0:
                continue
            while size[i] > 1:
                if single or special:
                    goes_on = goes_right(data, tree, i, row)
                elif oblique:
                    x = 0.0
                    for f in range(weights.shape[1]):
                        x += weights[i, f] * columns[f, row]
                    goes_on = x > threshold[i]
                else:
                    goes_on = columns[feature[i], row] > threshold[i]
                i = i + 1 + size[i + 1] if goes_on else i + 1
            if side == 0:
                to_left = leaf_id[i]
            else:
                to_right = leaf_id[i]
        to = n_left + to_right
        if binned:
            keys[k] = (to_left << 16) + to_right
        else:
            place[row, 0] = to_left
            place[row, 1] = to
            place[row, 2] = label
            keys[row] = (to_left * n_right + to_right) * classes + label
        amount = np.int64(amounts[row]) if weighted else np.int64(1)
        total[which, to] += amount
        if counted:
            members[which, to, label] += amount
        else:
            weight = weights_of[row] if weighted else 1.0
            sums[which, to, 0] += weight * y[row]
            sums[which, to, 1] += weight * (y[row] * y[row])


@kernel
def add_parts(scan, parts):
    """Sums over all parts, in order, and how many rows each class has: not by their weights."""
    sides, segment = scan.sides, scan.bins.segment
    total, members, sums = sides.total, sides.members, sides.sums
    leaves = sides.n_side[0] + sides.n_side[1]
    classes = members.shape[2]
    segment[:] = 0
    clear_leaves(sides, leaves, ALL)
    for which in range(FIRST_PART, FIRST_PART + parts):
        for leaf in range(leaves):
            total[1, leaf] += total[which, leaf]
            for m in range(classes):
                members[1, leaf, m] += members[which, leaf, m]
            sums[1, leaf, 0] += sums[which, leaf, 0]
            sums[1, leaf, 1] += sums[which, leaf, 1]
    counted = scan.model.leaf == CLASS_COUNTS
    if scan.data.amount.shape[0] > 0:
        rows, label = scan.node.rows, scan.data.label
        for k in range(scan.node.n_rows[0]):
            segment[(label[rows[k]] if counted else 0) + 1] += 1
    else:
        for leaf in range(leaves):
            for m in range(classes):
                segment[m + 1] += members[1, leaf, m] if counted else total[1, leaf]
    for m in range(classes):
        segment[m + 1] += segment[m]


# ------------------------------------------------------------------ all of that for a node
# One of these for each way to hold the rows: the rows that reach a node as if splits were hard,
# where each goes on either side, and sums with all of them on the right. ``left`` and ``right`` are
# roots of subtrees of ``tree``, or NEW_LEAF.


@kernel
def begin_sides(scan, tree, left, right):
    scan.sides.n_side[0] = number_leaves(scan.node, tree, left)
    scan.sides.n_side[1] = number_leaves(scan.node, tree, right)


@pointer_kernel
def prepare_rows(scan, tree, at, left, right):
    """Rows one by one."""
    node = scan.node
    length = path_to(tree, at, node.path)
    node.n_rows[0] = keep_rows(scan, tree, at, length, NONE, scan.data.rows.shape[0])
    begin_sides(scan, tree, left, right)
    place_rows(scan, tree, left, right, ALL, NONE, node.n_rows[0])
    scan.sides.start[0] = all_right(scan, scan.tables.by_rows, ROWS)


@pointer_kernel
def prepare_bits(scan, tree, at, left, right):
    """Rows as bits."""
    node, sides = scan.node, scan.sides
    length = path_to(tree, at, node.path)
    node.n_rows[0] = find_bits(scan, tree, at, length)
    begin_sides(scan, tree, left, right)
    clear_leaves(sides, sides.n_side[0] + sides.n_side[1], ALL)
    place_bits(scan, tree, left, right)
    if scan.bits.n_keys[0] < 0:
        list_rows(scan)
        place_rows(scan, tree, left, right, ALL, NONE, node.n_rows[0])
    sides.start[0] = all_right(scan, scan.tables.by_rows, ROWS)
    score_bits(scan)


@pointer_kernel
def prepare_parts(scan, tree, at, left, right):
    """Rows of large data, part by part."""
    node, task = scan.node, scan.task
    copy_tree(tree, scan.task_tree)
    task[NODE], task[LENGTH] = at, path_to(tree, at, node.path)
    parts = count_parts(scan, scan.data.rows.shape[0])
    scan.run_parts(FIND_TASK, parts)
    node.n_rows[0] = join_parts(scan, parts)
    begin_sides(scan, tree, left, right)
    task[LEFT], task[RIGHT] = left, right
    parts = count_parts(scan, node.n_rows[0])
    scan.run_parts(SIDES_TASK, parts)
    add_parts(scan, parts)
    scan.sides.start[0] = all_right(scan, scan.tables.by_rows, ROWS)


@kernel
def mark_rows(scan, mark):
    """For ``groups_by_row``, where there may be such groups."""
    if is_binned(scan.data) or has_keys(scan):
        return
    rows, member = scan.node.rows, scan.node.member
    for k in range(scan.node.n_rows[0]):
        member[rows[k]] = mark
