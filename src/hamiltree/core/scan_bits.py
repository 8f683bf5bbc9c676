"""Rows as bits: scans of data whose columns have few values, 64 rows at a time.

The rows on one side of a cut are a set that is known beforehand, so the rows of a node are what is
left of a few such sets, and how many rows of a class have some value is a count of bits. Rows that
share a class, and a leaf on either side, move together: such a set has a key.
"""

from __future__ import annotations

import numpy as np

from .bits import WORD
from .jit import count_ones, first_one, inlined
from .scan_data import is_hard
from .scan_scores import put_place


@inlined
def has_bits(data):
    return data.bits.of_value.shape[0] > 0


@inlined
def has_keys(model, work):
    """Whether the node is scanned by its bits."""
    return has_bits(model.data) and work.bits.n_keys[0] >= 0


@inlined
def first_right(data, f, threshold):
    """The lowest level of a column that goes right."""
    level = 0
    while level < data.n_levels[f] and data.value[f, level] <= threshold:
        level += 1
    return level


@inlined
def split_bits(data, tree, node, rows, to_right, out):
    """Of some rows, those that a node's rule sends right, or left, into ``out``."""
    f = tree.feature[node]
    right = data.bits.from_level[f, first_right(data, f, tree.threshold[node])]
    for w in range(right.shape[0]):
        out[w] = rows[w] & (right[w] if to_right else ~right[w])


@inlined
def count_all(rows):
    total = np.int64(0)
    for w in range(rows.shape[0]):
        total += count_ones(rows[w])
    return total


@inlined
def find_bits(model, work, tree, node, length):
    """The rows that reach a node, by the path to it; how many."""
    data, rows = model.data, work.bits.rows
    everything = data.bits.from_level[0, 0]
    for w in range(rows.shape[0]):
        rows[w] = everything[w]
    for d in range(length):
        at = work.path[d]
        child = work.path[d + 1] if d + 1 < length else node
        split_bits(data, tree, at, rows, child != at + 1, rows)
    return count_all(rows)


@inlined
def list_rows(work):
    """The same rows by their numbers."""
    n = 0
    for w in range(work.bits.rows.shape[0]):
        left = work.bits.rows[w]
        while left != 0:
            work.rows[n] = w * WORD + first_one(left)
            n += 1
            left &= left - np.uint64(1)


@inlined
def send_down(data, bits, tree, root):
    """Which rows of the node get to each node of a subtree that is kept."""
    if root < 0:
        return
    for w in range(bits.rows.shape[0]):
        bits.reach[root, w] = bits.rows[w]
    for i in range(root, root + tree.size[root]):
        if tree.size[i] > 1:
            left, right = i + 1, i + 1 + tree.size[i + 1]
            split_bits(data, tree, i, bits.reach[i], True, bits.reach[right])
            split_bits(data, tree, i, bits.reach[i], False, bits.reach[left])


@inlined
def leaf_from(tree, root, i):
    """The first leaf of a subtree from place i on; of a new leaf there is one."""
    if root >= 0:
        while tree.size[i] > 1:
            i += 1
    return i


@inlined
def meet(a, b):
    """Whether two sets have rows in common."""
    for w in range(a.shape[0]):  # noqa: SIM110 (no generators in compiled code)
        if a[w] & b[w] != 0:
            return True
    return False


@inlined
def put_key(bits, key, left, right, label):
    bits.place[key, 0] = left
    bits.place[key, 1] = right
    bits.place[key, 2] = label


@inlined
def in_common(a, b, c, out):
    """What three sets have in common, into ``out``; how many."""
    total = np.int64(0)
    for w in range(out.shape[0]):
        out[w] = a[w] & b[w] & c[w]
        total += count_ones(out[w])
    return total


@inlined
def place_bits(model, work, tree, left, right):
    """Sets of rows that move together, and counts with all on the right.

    ``n_keys`` is -1 where there are more of them than room.
    """
    data, bits = model.data, work.bits
    n_left, n_right = work.n_side[0], work.n_side[1]
    send_down(data, bits, tree, left)
    send_down(data, bits, tree, right)
    keys, placed = 0, 0
    at_left = left
    for a in range(n_left):
        at_left = leaf_from(tree, left, at_left)
        rows_left = bits.rows if left < 0 else bits.reach[at_left]
        at_right = right
        for b in range(n_right):
            at_right = leaf_from(tree, right, at_right)
            rows_right = bits.rows if right < 0 else bits.reach[at_right]
            if placed < work.n_rows[0] and meet(rows_left, rows_right):
                for m in range(bits.members.shape[0]):
                    if keys == bits.key.shape[0]:
                        bits.n_keys[0] = -1
                        return
                    count = in_common(rows_left, rows_right, data.bits.of_class[m], bits.key[keys])
                    if count > 0:
                        put_key(bits, keys, a, n_left + b, m)
                        keys += 1
                        placed += count
                        work.total[1, n_left + b] += count
                        work.members[1, n_left + b, m] += count
            at_right += 1
        at_left += 1
    bits.n_keys[0] = keys


@inlined
def count_values(data, bits):
    """How often each value of each column occurs among the rows of each key."""
    of_value = data.bits.of_value
    for key in range(bits.n_keys[0]):
        count = bits.tally[key]
        for v in range(count.shape[0]):
            count[v] = 0
        for w in range(of_value.shape[0]):
            rows, has_value = bits.key[key, w], of_value[w]
            if rows != 0:
                for v in range(count.shape[0]):
                    count[v] += count_ones(has_value[v] & rows)


@inlined
def add_up(data, bits):
    """Running counts over the values of each column, and how many rows have a value at all."""
    for v in range(bits.rows_at.shape[0]):
        bits.rows_at[v] = 0
    for key in range(bits.n_keys[0]):
        count, up_to = bits.tally[key], bits.up_to[key]
        for v in range(bits.rows_at.shape[0]):
            bits.rows_at[v] += count[v]
        for f in range(data.bits.first_value.shape[0]):
            so_far = np.int64(0)
            for v in range(data.bits.first_value[f], data.bits.first_value[f] + data.n_levels[f]):
                so_far += count[v]
                up_to[v] = so_far


@inlined
def score_values(work, bits):
    """Scores of all hard cuts at once: leaf by leaf, from how many rows of each class it has."""
    table = work.by_rows
    classes, values = bits.members.shape
    of_size = table[table.shape[0] - 1]
    for v in range(values):
        bits.score[v] = 0.0
    for leaf in range(work.n_side[0] + work.n_side[1]):
        for m in range(classes):
            members, all_right = bits.members[m], work.members[1, leaf, m]
            for v in range(values):
                members[v] = all_right
        for key in range(bits.n_keys[0]):
            members, up_to = bits.members[bits.place[key, 2]], bits.up_to[key]
            if bits.place[key, 0] == leaf:
                for v in range(values):
                    members[v] += up_to[v]
            if bits.place[key, 1] == leaf:
                for v in range(values):
                    members[v] -= up_to[v]
        for v in range(values):
            size = np.uint64(0)
            score = 0.0
            for m in range(classes):
                count = np.uint64(bits.members[m, v])
                size += count
                score += table[m, count]
            bits.score[v] += score + of_size[size]


@inlined
def score_bits(model, work):
    """All that sweeps need of the sets that move together."""
    if has_keys(model, work):
        count_values(model.data, work.bits)
        if some_hard(model):
            add_up(model.data, work.bits)
            score_values(work, work.bits)


@inlined
def some_hard(model):
    for f in range(model.h.shape[0]):  # noqa: SIM110 (no generators in compiled code)
        if is_hard(model, f):
            return True
    return False


@inlined
def groups_by_bits(model, work, f):
    """Rows of one value and key move together; how many groups."""
    data, bits = model.data, work.bits
    first = data.bits.first_value[f]
    g = 0
    for level in range(data.n_levels[f]):
        for key in range(bits.n_keys[0]):
            count = bits.tally[key, first + level]
            if count > 0:
                place = bits.place[key]
                put_place(work, g, place[0], place[1], place[2], count)
                work.group_x[g] = data.value[f, level]
                work.group_cut[g] = data.cut[f, level]
                g += 1
    return g
