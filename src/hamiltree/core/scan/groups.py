"""Rows of a node that move together across a cut, in the order of a column."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from .by_bits import groups_by_bits, has_keys
from .data import BINS, CLASS_COUNTS, UNIFORM


@kernel
def groups_by_row(scan, f):
    """Every row its own group, picked from the sorted column."""
    data, groups = scan.data, scan.groups
    order, chosen, member = data.order, groups.histogram, scan.node.member
    cut, level, columns, y = data.cut, data.level, data.columns, data.y
    source, target = scan.node.place, groups.place
    x, cuts, sums = groups.x, groups.cut, groups.sums
    by_value, counted = scan.model.kind == UNIFORM, scan.model.leaf == CLASS_COUNTS
    weights, weighted = data.weight, data.weight.shape[0] > 0
    n = 0
    for k in range(order.shape[1]):  # without a branch, which nothing could predict
        row = order[f, k]
        chosen[np.uint64(n)] = row
        n += member[np.uint32(row)]
    for g in range(n):
        row = np.uint32(chosen[g])
        # all four are read before any is written: then they are copied as one
        left, right, label, count = source[row, 0], source[row, 1], source[row, 2], source[row, 3]
        at = np.uint64(g)
        target[at, 0] = left
        target[at, 1] = right
        target[at, 2] = label
        target[at, 3] = count
        x[g] = columns[f, row]
        cuts[g] = cut[f, level[f, row]] if by_value else 0.0
        if not counted:
            weight = weights[row] if weighted else 1.0
            sums[g, 0] = weight * y[row]
            sums[g, 1] = weight * (y[row] * y[row])
    return n


@kernel
def groups_by_bin(scan, f, keys):
    """Rows of one value, class and pair of leaves move together."""
    data, groups, node = scan.data, scan.groups, scan.node
    counted = scan.model.leaf == CLASS_COUNTS
    histogram, sums_at, rows, key_of = groups.histogram, groups.histogram_sums, node.rows, node.key
    level, y, value, cuts = data.level, data.y, data.value, data.cut
    place, x, cut, sums = groups.place, groups.x, groups.cut, groups.sums
    amounts, weights, weighted = data.amount, data.weight, data.amount.shape[0] > 0
    bins = data.n_levels[f]
    for at in range(bins * keys):
        histogram[at] = 0
        if not counted:
            sums_at[at, 0] = 0.0
            sums_at[at, 1] = 0.0
    for k in range(node.n_rows[0]):
        row = rows[k]
        at = level[f, row] * keys + key_of[row]
        histogram[at] += amounts[row] if weighted else np.int32(1)
        if not counted:
            weight = weights[row] if weighted else 1.0
            sums_at[at, 0] += weight * y[row]
            sums_at[at, 1] += weight * (y[row] * y[row])
    n_left, n_right = scan.sides.n_side[0], scan.sides.n_side[1]
    classes = scan.sides.members.shape[2]
    g = 0
    for b in range(bins):
        for key in range(keys):
            count = histogram[b * keys + key]
            if count == 0:
                continue
            pair = key // classes
            place[g, 0] = pair // n_right
            place[g, 1] = n_left + pair % n_right
            place[g, 2] = key % classes
            place[g, 3] = count
            x[g] = value[f, b]
            cut[g] = cuts[f, b]
            if not counted:
                sums[g, 0] = sums_at[b * keys + key, 0]
                sums[g, 1] = sums_at[b * keys + key, 1]
            g += 1
    return g


@kernel
def groups_by_column(scan, f):
    """Groups of a column; how many."""
    if has_keys(scan):
        return groups_by_bits(scan, f)
    keys = scan.sides.n_side[0] * scan.sides.n_side[1] * scan.sides.members.shape[2]
    if scan.data.n_levels[f] * keys <= scan.node.n_rows[0]:
        return groups_by_bin(scan, f, keys)
    return groups_by_row(scan, f)


@kernel
def groups_by_projection(scan, weights):
    """Rows in the order of their projection, to the precision of a bin."""
    data, groups, rows = scan.data, scan.groups, scan.node.rows
    columns, projected, histogram, y = data.columns, groups.cut, groups.histogram, data.y
    source, target, group_x, sums = scan.node.place, groups.place, groups.x, groups.sums
    counted = scan.model.leaf == CLASS_COUNTS
    row_weights, weighted = data.weight, data.weight.shape[0] > 0
    n = scan.node.n_rows[0]
    low, high = np.inf, -np.inf
    for k in range(n):
        row = rows[k]
        x = 0.0
        for f in range(weights.shape[0]):
            x += weights[f] * columns[f, row]
        projected[k] = x
        low = min(low, x)
        high = max(high, x)
    scale = BINS / (high - low) if high > low else 0.0
    for b in range(BINS + 1):
        histogram[b] = 0
    for k in range(n):
        histogram[min(int((projected[k] - low) * scale), BINS - 1) + 1] += 1
    for b in range(BINS):
        histogram[b + 1] += histogram[b]
    for k in range(n):
        row = rows[k]
        b = min(int((projected[k] - low) * scale), BINS - 1)
        g = histogram[b]
        histogram[b] = g + 1
        for part in range(4):
            target[g, part] = source[row, part]
        group_x[g] = min(max(low + (b + 0.5) * (high - low) / BINS, 0.0), 1.0)
        if not counted:
            weight = row_weights[row] if weighted else 1.0
            sums[g, 0] = weight * y[row]
            sums[g, 1] = weight * (y[row] * y[row])
    return n
