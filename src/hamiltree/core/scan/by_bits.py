"""Rows as bits: scans of data whose columns have few values, 64 rows at a time.

The rows on one side of a cut, or of one level, are a set that is known beforehand, so the rows of a
node are what is left of a few such sets, and how many rows of a class have some value is a count of
bits. Rows that share a class, and a leaf on either side, move together: such a set has a key.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import inlined, kernel
from ..tree.kinds import IMPUTED, NO_LEVELS, has_level, imputed_number
from .bits import WORD, count_ones, first_one
from .data import is_hard, value_at
from .scores import frequent_class


@kernel
def has_bits(data):
    return data.bits.of_value.shape[0] > 0


@kernel
def has_keys(scan):
    """Whether the node is scanned by its bits."""
    return has_bits(scan.data) and scan.bits.n_keys[0] >= 0


@inlined
def first_right(value, levels, f, threshold):
    """The lowest level of a column that goes right."""
    level = 0
    while level < levels and value[f, level] <= threshold:
        level += 1
    return level


@kernel
def find_right(data, right, f, threshold, levels):
    """The rows that a rule sends right, all rows of the data."""
    from_level, value, n = data.bits.from_level, data.value, data.n_levels[f]
    if data.kinds.levels[f] > 0:
        of_value, first = data.bits.of_value, data.bits.first_value[f]
        for w in range(right.shape[0]):
            right[w] = 0
        for v in range(n):
            if has_level(levels, value[f, v]):
                for w in range(right.shape[0]):
                    right[w] |= of_value[w, first + v]
        return
    level = first_right(value, n, f, threshold)
    holes = data.bits.second[f] != data.bits.first_value[f]
    if holes and level == 0:
        level = 1  # behind the missing cells
    for w in range(right.shape[0]):
        right[w] = from_level[f, level, w]
    if holes and levels == IMPUTED:
        add_imputed(data, right, f, threshold)
    elif holes and levels != NO_LEVELS:
        for w in range(right.shape[0]):
            right[w] |= from_level[f, 0, w] & ~from_level[f, 1, w]


@kernel
def add_imputed(data, right, f, threshold):
    """Missing cells whose imputed numbers are beyond a threshold go right."""
    from_level = data.bits.from_level
    for w in range(right.shape[0]):
        left = from_level[f, 0, w] & ~from_level[f, 1, w]
        while left != NO_LEVELS:
            place = first_one(left)
            bit = np.uint64(1) << np.uint64(place)
            left ^= bit
            if imputed_number(value_at(data, f, w * WORD + place)) > threshold:
                right[w] |= bit


@kernel
def find_bits(scan, tree, node, length):
    """The rows that reach a node, by the path to it; how many."""
    data, rows, path, right = scan.data, scan.bits.rows, scan.node.path, scan.bits.right
    from_level = data.bits.from_level
    for w in range(rows.shape[0]):
        rows[w] = from_level[0, 0, w]
    for d in range(length):
        at = path[d]
        child = path[d + 1] if d + 1 < length else node
        find_right(data, right, tree.feature[at], tree.threshold[at], tree.levels[at])
        for w in range(rows.shape[0]):
            rows[w] &= right[w] if child != at + 1 else ~right[w]
    total = np.int64(0)
    for w in range(rows.shape[0]):
        total += np.int64(count_ones(rows[w]))
    return total


@kernel
def list_rows(scan):
    """The same rows by their numbers."""
    sets, rows = scan.bits.rows, scan.node.rows
    n = 0
    for w in range(sets.shape[0]):
        left = sets[w]
        while left != 0:
            rows[n] = w * WORD + first_one(left)
            n += 1
            left &= left - np.uint64(1)


@kernel
def send_down(data, bits, tree, root):
    """Which rows of the node get to each node of a subtree that is kept."""
    if root < 0:
        return
    rows, reach, goes_right = bits.rows, bits.reach, bits.right
    size = tree.size
    for w in range(rows.shape[0]):
        reach[root, w] = rows[w]
    for i in range(root, root + size[root]):
        if size[i] > 1:
            left, right = i + 1, i + 1 + size[i + 1]
            find_right(data, goes_right, tree.feature[i], tree.threshold[i], tree.levels[i])
            for w in range(rows.shape[0]):
                reach[right, w] = reach[i, w] & goes_right[w]
                reach[left, w] = reach[i, w] & ~goes_right[w]


@kernel
def place_bits(scan, tree, left, right):
    """Sets of rows that move together, and counts with all on the right.

    ``n_keys`` is -1 where there are more of them than room.
    """
    data, bits, sides = scan.data, scan.bits, scan.sides
    send_down(data, bits, tree, left)
    send_down(data, bits, tree, right)
    rows, reach, sets, place = bits.rows, bits.reach, bits.key, bits.place
    of_class, total, members = data.bits.of_class, sides.total, sides.members
    size, n_rows = tree.size, scan.node.n_rows[0]
    n_left, n_right = sides.n_side[0], sides.n_side[1]
    words = rows.shape[0]
    keys, placed = 0, np.int64(0)
    at_left = left
    for a in range(n_left):
        while left >= 0 and size[at_left] > 1:  # the next leaf of the subtree
            at_left += 1
        at_right = right
        for b in range(n_right):
            while right >= 0 and size[at_right] > 1:
                at_right += 1
            some = np.uint64(0)
            if placed < n_rows:
                for w in range(words):
                    here = rows[w] if left < 0 else reach[at_left, w]
                    some |= here & (rows[w] if right < 0 else reach[at_right, w])
            if some != 0:
                for m in range(of_class.shape[0]):
                    if keys == sets.shape[0]:
                        bits.n_keys[0] = -1
                        return
                    count = np.int64(0)
                    for w in range(words):
                        here = rows[w] if left < 0 else reach[at_left, w]
                        here &= rows[w] if right < 0 else reach[at_right, w]
                        here &= of_class[m, w]
                        sets[keys, w] = here
                        count += np.int64(count_ones(here))
                    if count > 0:
                        place[keys, 0] = a
                        place[keys, 1] = n_left + b
                        place[keys, 2] = m
                        keys += 1
                        placed += count
                        total[1, n_left + b] += count
                        members[1, n_left + b, m] += count
            at_right += 1
        at_left += 1
    bits.n_keys[0] = keys


@kernel
def count_values(data, bits):
    """How often each value of each column occurs among the rows of each key."""
    of_value, tally, sets = data.bits.of_value, bits.tally, bits.key
    values = tally.shape[1]
    for key in range(bits.n_keys[0]):
        for v in range(values):
            tally[key, v] = 0
        for w in range(of_value.shape[0]):
            rows = sets[key, w]
            if rows != 0:
                for v in range(values):
                    tally[key, v] += np.int64(count_ones(of_value[w, v] & rows))


@kernel
def order_values(data, bits, f, frequent):
    """Put the levels that rows of the node have in the order of their response; how many."""
    tally, place, order, response = bits.tally, bits.place, bits.order, bits.response
    first = data.bits.first_value[f]
    end = first
    for v in range(data.n_levels[f]):
        rows = bits.rows_at[first + v]
        if rows == 0:
            continue
        some = 0
        for key in range(bits.n_keys[0]):
            if place[key, 2] == frequent:
                some += tally[key, first + v]
        share = some / rows
        at = end
        while at > first and response[at - 1] > share:
            response[at] = response[at - 1]
            order[at] = order[at - 1]
            at -= 1
        response[at] = share
        order[at] = v
        end += 1
    return end - first


@kernel
def add_up_levels(data, bits, f):
    """What is left of each cut of the levels in their order, from either end."""
    tally, up_to, order = bits.tally, bits.up_to, bits.order
    first, second, present = data.bits.first_value[f], data.bits.second[f], bits.present[f]
    for key in range(bits.n_keys[0]):
        so_far, from_end = np.int64(0), np.int64(0)
        for k in range(data.n_levels[f]):
            if k < present:
                so_far += tally[key, first + order[first + k]]
                from_end += tally[key, first + order[first + present - 1 - k]]
            up_to[key, first + k] = so_far
            up_to[key, second + k] = from_end


@kernel
def add_up(scan):
    """What is left of each cut, and how many rows have a value at all."""
    data, bits = scan.data, scan.bits
    tally, up_to, rows_at = bits.tally, bits.up_to, bits.rows_at
    first_value, n_levels = data.bits.first_value, data.n_levels
    second, levels = data.bits.second, data.kinds.levels
    some_second = up_to.shape[1] > rows_at.shape[0]
    for v in range(rows_at.shape[0]):
        rows_at[v] = 0
    for key in range(bits.n_keys[0]):
        for v in range(rows_at.shape[0]):
            rows_at[v] += tally[key, v]
        for f in range(first_value.shape[0]):
            so_far = np.int64(0)
            for v in range(first_value[f], first_value[f] + n_levels[f]):
                so_far += tally[key, v]
                up_to[key, v] = so_far
            shift = second[f] - first_value[f] if some_second else 0
            if shift > 0 and levels[f] == 0:
                missing = tally[key, first_value[f]]
                for v in range(first_value[f], first_value[f] + n_levels[f]):
                    up_to[key, shift + v] = up_to[key, v] - missing
    if some_second:
        frequent = frequent_class(scan.sides)
        for f in range(first_value.shape[0]):
            if levels[f] > 0:
                bits.present[f] = order_values(data, bits, f, frequent)
                add_up_levels(data, bits, f)


@kernel
def score_values(scan):
    """Scores of all hard cuts at once: leaf by leaf, from how many rows of each class it has.

    Each is the sum over leaves of ``log_dirichlet_multinomial``, up to constants, by its tables.
    """
    bits, table, all_members = scan.bits, scan.tables.by_rows, scan.sides.members
    members, scores, up_to, place = bits.members, bits.score, bits.up_to, bits.place
    classes, cuts = members.shape
    size_row = np.uint64(table.shape[0] - 1)
    for v in range(cuts):
        scores[v] = 0.0
    for leaf in range(scan.sides.n_side[0] + scan.sides.n_side[1]):
        for m in range(classes):
            right = all_members[1, leaf, m]
            for v in range(cuts):
                members[m, v] = right
        for key in range(bits.n_keys[0]):
            m = place[key, 2]
            if place[key, 0] == leaf:
                for v in range(cuts):
                    members[m, v] += up_to[key, v]
            if place[key, 1] == leaf:
                for v in range(cuts):
                    members[m, v] -= up_to[key, v]
        for v in range(cuts):
            size = np.uint64(0)
            score = 0.0
            for m in range(classes):
                count = np.uint64(members[m, v])
                size += count
                score += table[m, count]
            scores[v] += score + table[size_row, size]


@kernel
def score_bits(scan):
    """All that sweeps need of the sets that move together."""
    if has_keys(scan):
        count_values(scan.data, scan.bits)
        if some_scored(scan):
            add_up(scan)
            score_values(scan)


@kernel
def some_scored(scan):
    """Whether the cuts of some column are hard, or those of levels."""
    for f in range(scan.model.h.shape[0]):
        if is_hard(scan, f) or scan.data.kinds.levels[f] > 0:
            return True
    return False


@kernel
def groups_by_bits(scan, f):
    """Rows of one value and key move together; how many groups."""
    data, bits, groups = scan.data, scan.bits, scan.groups
    key_place, place, tally = bits.place, groups.place, bits.tally
    x, cut, value, cuts = groups.x, groups.cut, data.value, data.cut
    first, n_keys = data.bits.first_value[f], bits.n_keys[0]
    g = 0
    for level in range(data.n_levels[f]):
        for key in range(n_keys):
            count = tally[key, first + level]
            if count > 0:
                for part in range(3):
                    place[g, part] = key_place[key, part]
                place[g, 3] = count
                x[g] = value[f, level]
                cut[g] = cuts[f, level]
                g += 1
    return g
