"""The rows of a scanned node: which reach it, where they go, and their order by a column."""

from __future__ import annotations

import numpy as np

from .buffers import CLASSES
from .crew import shared
from .hard_rules import UNIFORM
from .jit import inlined, kernel, never_inline
from .nodes import path_to
from .scan_bits import find_bits, groups_by_bits, has_bits, has_keys, list_rows, place_bits
from .scan_data import BINS, is_binned
from .scan_scores import all_right, put_place

FIRST_PART = 2
"""Among the sums of ``ScanWork``, those of the first part."""
NEW_LEAF = np.int64(-1)
"""A side that is a new leaf. An np.int64: kernels would be compiled again for a literal."""


@inlined
def goes_right(data, tree, node, row):
    p = tree.weights.shape[1]
    if p == 0:
        return data.columns[tree.feature[node], row] > tree.threshold[node]
    x = 0.0
    for f in range(p):
        x += tree.weights[node, f] * data.columns[f, row]
    return x > tree.threshold[node]


@inlined
def rows_a_part(work):
    return -(-work.rows.shape[0] // (work.total.shape[0] - FIRST_PART))


@inlined
def part_bounds(work, n, part):
    """Where a part of n rows begins and ends."""
    rows = rows_a_part(work)
    return part * rows, min((part + 1) * rows, n)


@inlined
def count_parts(work, n):
    return -(-n // rows_a_part(work))


@inlined
def keep_rows(model, work, tree, node, length, first, stop):
    """Of the rows from ``first`` to ``stop``, leave those that reach a node; where they end."""
    data, rows = model.data, work.rows
    for k in range(first, stop):
        rows[k] = data.rows[k]
    for d in range(length):
        at = work.path[d]
        child = work.path[d + 1] if d + 1 < length else node
        to_right = child != at + 1
        kept = first
        for k in range(first, stop):
            row = rows[k]
            rows[kept] = row
            kept += 1 if goes_right(data, tree, at, row) == to_right else 0
        stop = kept
    return stop


@kernel
def find_part(model, work, tree, node, length, part, who):
    first, stop = part_bounds(work, work.rows.shape[0], part)
    stop = keep_rows(model, work, tree, node, length, first, stop)
    work.total[FIRST_PART + part, 0] = stop - first


_find_in_parts, find_address = shared(find_part)


@kernel
def find_rows(model, work, tree, node):
    """The rows that reach a node, as if splits were hard."""
    never_inline()
    n = np.int64(model.data.rows.shape[0])
    length = path_to(tree, node, work.path)
    if has_bits(model.data):
        work.n_rows[0] = find_bits(model, work, tree, node, length)
    elif is_binned(model.data):
        task = (model, work, tree, node, length)
        parts = count_parts(work, n)
        _find_in_parts(work.crew, parts, model.calls.find, task)
        n = np.int64(0)
        for part in range(parts):
            first, _ = part_bounds(work, n, part)
            for k in range(first, first + work.total[FIRST_PART + part, 0]):
                work.rows[n] = work.rows[k]
                n += 1
        work.n_rows[0] = n
    else:
        work.n_rows[0] = keep_rows(model, work, tree, node, length, 0, n)


@inlined
def number_leaves(work, tree, root):
    """Number the leaves of a subtree; returns how many. A new leaf (-1) is one."""
    if root < 0:
        return 1
    count = 0
    for i in range(root, root + tree.size[root]):
        if tree.size[i] == 1:
            work.leaf_id[i] = count
            count += 1
    return count


@inlined
def leaf_of(model, work, tree, root, row):
    if root < 0:
        return 0
    i = root
    while tree.size[i] > 1:
        i = i + 1 + tree.size[i + 1] if goes_right(model.data, tree, i, row) else i + 1
    return work.leaf_id[i]


@inlined
def clear_leaves(work, leaves, which):
    for leaf in range(leaves):
        work.total[which, leaf] = 0
        for m in range(work.members.shape[2]):
            work.members[which, leaf, m] = 0
        work.sums[which, leaf, 0] = 0.0
        work.sums[which, leaf, 1] = 0.0


@inlined
def place_rows(model, work, tree, left, right, which, first, stop):
    """Where rows go on either side, and sums over them with all on the right."""
    data = model.data
    n_left, n_right = work.n_side[0], work.n_side[1]
    classes = work.members.shape[2]
    binned = is_binned(data)
    clear_leaves(work, n_left + n_right, which)
    for k in range(first, stop):
        row = work.rows[k]
        label = data.label[row]
        to_left = leaf_of(model, work, tree, left, row)
        to_right = leaf_of(model, work, tree, right, row)
        to = n_left + to_right
        if binned:
            work.key[k] = (to_left << 16) + to_right
        else:
            place = work.place[row]
            place[0] = to_left
            place[1] = to
            place[2] = label
            work.key[row] = (to_left * n_right + to_right) * classes + label
        work.total[which, to] += 1
        if model.leaf == CLASSES:
            work.members[which, to, label] += 1
        else:
            work.sums[which, to, 0] += data.y[row]
            work.sums[which, to, 1] += data.y[row] * data.y[row]


@kernel
def sides_part(model, work, tree, left, right, part, who):
    first, stop = part_bounds(work, work.n_rows[0], part)
    place_rows(model, work, tree, left, right, FIRST_PART + part, first, stop)


_place_in_parts, sides_address = shared(sides_part)


@inlined
def add_parts(model, work, parts):
    """Sums over all parts, in order, and how many rows each class has."""
    leaves = work.n_side[0] + work.n_side[1]
    classes = work.members.shape[2]
    segment = work.bins.segment
    segment[:] = 0
    clear_leaves(work, leaves, 1)
    for which in range(FIRST_PART, FIRST_PART + parts):
        for leaf in range(leaves):
            work.total[1, leaf] += work.total[which, leaf]
            for m in range(classes):
                work.members[1, leaf, m] += work.members[which, leaf, m]
            work.sums[1, leaf, 0] += work.sums[which, leaf, 0]
            work.sums[1, leaf, 1] += work.sums[which, leaf, 1]
    for leaf in range(leaves):
        for m in range(classes):
            rows = work.members[1, leaf, m] if model.leaf == CLASSES else work.total[1, leaf]
            segment[m + 1] += rows
    for m in range(classes):
        segment[m + 1] += segment[m]


@kernel
def set_sides(model, work, tree, left, right):
    """Where each row of the node goes on either side, and sums with all rows on the right.

    ``left`` and ``right`` are roots of subtrees of ``tree``, or -1 for a new leaf.
    """
    never_inline()
    work.n_side[0] = number_leaves(work, tree, left)
    work.n_side[1] = number_leaves(work, tree, right)
    n = work.n_rows[0]
    if has_bits(model.data):
        clear_leaves(work, work.n_side[0] + work.n_side[1], 1)
        place_bits(model, work, tree, left, right)
        if work.bits.n_keys[0] < 0:
            list_rows(work)
            place_rows(model, work, tree, left, right, 1, 0, n)
    elif is_binned(model.data):
        parts = count_parts(work, n)
        task = (model, work, tree, left, right)
        _place_in_parts(work.crew, parts, model.calls.sides, task)
        add_parts(model, work, parts)
    else:
        place_rows(model, work, tree, left, right, 1, 0, n)
    work.start[0] = all_right(model, work, work.by_rows, 1)


@inlined
def mark_rows(model, work, mark):
    """For ``groups_by_row``, where there may be such groups."""
    if is_binned(model.data) or has_keys(model, work):
        return
    for k in range(work.n_rows[0]):
        work.member[work.rows[k]] = mark


# ------------------------------------------------------------------ groups that move together


@inlined
def copy_place(work, row, g):
    """All four are read before any is written: then they are copied as one."""
    place, group = work.place[np.uint64(row)], work.group_place[np.uint64(g)]
    left, right, label, rows = place[0], place[1], place[2], place[3]
    group[0] = left
    group[1] = right
    group[2] = label
    group[3] = rows


@inlined
def groups_by_row(model, work, f):
    """Every row its own group, picked from the sorted column."""
    data = model.data
    order, chosen = data.order[f], work.histogram
    n = 0
    for k in range(order.shape[0]):  # without a branch, which nothing could predict
        row = order[k]
        chosen[np.uint64(n)] = row
        n += work.member[np.uint32(row)]
    for g in range(n):
        row = np.uint32(chosen[g])
        cut = data.cut[f, data.level[f, row]] if model.kind == UNIFORM else 0.0
        copy_place(work, row, g)
        work.group_x[g] = data.columns[f, row]
        work.group_cut[g] = cut
        if model.leaf != CLASSES:
            work.group_sums[g, 0] = data.y[row]
            work.group_sums[g, 1] = data.y[row] * data.y[row]
    return n


@inlined
def count_into_bins(model, work, level, keys):
    """Histogram of (level, left leaf, right leaf, class) over the rows of the node."""
    data = model.data
    for k in range(work.n_rows[0]):
        row = work.rows[k]
        key = level[row] * keys + work.key[row]
        work.histogram[key] += 1
        if model.leaf != CLASSES:
            work.histogram_sums[key, 0] += data.y[row]
            work.histogram_sums[key, 1] += data.y[row] * data.y[row]


@inlined
def groups_by_bin(model, work, f, keys):
    """Rows of one value, class and pair of leaves move together."""
    data = model.data
    bins = data.n_levels[f]
    for key in range(bins * keys):
        work.histogram[key] = 0
        if model.leaf != CLASSES:
            work.histogram_sums[key, 0] = 0.0
            work.histogram_sums[key, 1] = 0.0
    count_into_bins(model, work, data.level[f], keys)
    n_left, n_right = work.n_side[0], work.n_side[1]
    classes = work.members.shape[2]
    g = 0
    for b in range(bins):
        for key in range(keys):
            rows = work.histogram[b * keys + key]
            if rows == 0:
                continue
            pair = key // classes
            left, right = pair // n_right, n_left + pair % n_right
            label = key % classes
            put_place(work, g, left, right, label, rows)
            work.group_x[g] = data.value[f, b]
            work.group_cut[g] = data.cut[f, b]
            if model.leaf != CLASSES:
                work.group_sums[g, 0] = work.histogram_sums[b * keys + key, 0]
                work.group_sums[g, 1] = work.histogram_sums[b * keys + key, 1]
            g += 1
    return g


@inlined
def groups_by_column(model, work, f):
    """Groups of a column into ``work``; how many."""
    if has_keys(model, work):
        return groups_by_bits(model, work, f)
    keys = work.n_side[0] * work.n_side[1] * work.members.shape[2]
    if model.data.n_levels[f] * keys <= work.n_rows[0]:
        return groups_by_bin(model, work, f, keys)
    return groups_by_row(model, work, f)


@inlined
def groups_by_projection(model, work, weights):
    """Rows in the order of their projection, to the precision of a bin."""
    data = model.data
    n = work.n_rows[0]
    low, high = np.inf, -np.inf
    for k in range(n):
        row = work.rows[k]
        x = 0.0
        for f in range(weights.shape[0]):
            x += weights[f] * data.columns[f, row]
        work.group_cut[k] = x
        low = min(low, x)
        high = max(high, x)
    scale = BINS / (high - low) if high > low else 0.0
    for b in range(BINS + 1):
        work.histogram[b] = 0
    for k in range(n):
        work.histogram[min(int((work.group_cut[k] - low) * scale), BINS - 1) + 1] += 1
    for b in range(BINS):
        work.histogram[b + 1] += work.histogram[b]
    for k in range(n):
        row = work.rows[k]
        b = min(int((work.group_cut[k] - low) * scale), BINS - 1)
        g = work.histogram[b]
        work.histogram[b] = g + 1
        x = min(max(low + (b + 0.5) * (high - low) / BINS, 0.0), 1.0)
        copy_place(work, row, g)
        work.group_x[g] = x
        if model.leaf != CLASSES:
            work.group_sums[g, 0] = data.y[row]
            work.group_sums[g, 1] = data.y[row] * data.y[row]
    return n
