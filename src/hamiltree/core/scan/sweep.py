"""Cells of a column and their scores: rows go from the right to the left, group by group."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..tree.kinds import MISSING_BELOW
from ..tree.nodes import ZERO
from .data import CLASS_COUNTS, FIFTHS, LOGISTIC, OWN_VARIANCE, PIECE, ROWS, UNIT
from .scores import all_right, move_groups, move_without_tables, score_of_sides

# not literals: the kernel would be compiled for each
ON_THE_RIGHT, ON_THE_LEFT = np.bool_(False), np.bool_(True)
"""Where missing cells are."""


@kernel
def sweep_groups(scan, first, n_groups, h, hard, cells, missing_left):
    """Move the groups from the right to the left one by one; a cell between neighbouring values.

    Soft: rows count in fifths, one for each quantile, and gaps are cut into pieces, since near a
    row it matters where the cut is.

    Groups before ``first`` have missing cells: they stay on one side. Cells go to the places from
    ``cells`` on; returns where they end.
    """
    table = scan.tables.by_rows
    if hard and table.shape[1] > 1 and scan.model.leaf != OWN_VARIANCE:
        return sweep_hard_groups(scan, first, n_groups, cells, missing_left)
    return sweep_any_groups(scan, first, n_groups, h, hard, cells, missing_left)


@kernel
def sweep_hard_groups(scan, first, n_groups, cells, missing_left):
    """The same for hard cuts where tables say it all.

    Here and in the next kernel samplers spend much of their time. Indices are unsigned, because a
    negative one would count from the end.
    """
    groups, sides, cells_of = scan.groups, scan.sides, scan.cells
    low, high = cells_of.low, cells_of.high
    weight, threshold = cells_of.weight, cells_of.threshold
    group_x, group_cut, place, group_sums = groups.x, groups.cut, groups.place, groups.sums
    total, members, sums, scores = sides.total, sides.members, sides.sums, sides.score
    table, counted = scan.tables.by_rows, scan.model.leaf == CLASS_COUNTS
    size = np.uint64(table.shape[0] - 1)
    everywhere = scan.model.kind == UNIT
    score = all_right(scan, table, ROWS)
    if missing_left:
        move_groups(scan, 0, first, ROWS)
        score = score_of_sides(scan, table, ROWS)
    cell = np.uint64(cells)
    before = 0.0
    cut = 0.0
    for g in range(first, n_groups):
        group = np.uint64(g)
        x = group_x[group]
        if x > before:
            if everywhere or g > first:
                low[cell] = before
                high[cell] = x
                weight[cell] = score
                threshold[cell] = cut
                cell += np.uint64(1)
            before = x
        cut = group_cut[group]
        left, right = place[group, 0], place[group, 1]
        m, amount = place[group, 2], place[group, 3]
        p, q = np.uint64(total[0, left]), np.uint64(total[0, right])
        grown, shrunk = np.uint64(p + amount), np.uint64(q - amount)
        total[0, left] = grown
        total[0, right] = shrunk
        if counted:
            a, b = np.uint64(members[0, left, m]), np.uint64(members[0, right, m])
            more, less = np.uint64(a + amount), np.uint64(b - amount)
            members[0, left, m] = more
            members[0, right, m] = less
            change = table[m, more] + table[m, less] - table[m, a] - table[m, b]
            score += change + (
                table[size, grown] + table[size, shrunk] - table[size, p] - table[size, q]
            )
        else:
            y = group_sums[group, 0]
            y_left, y_right = sums[0, left, 0] + y, sums[0, right, 0] - y
            sums[0, left, 0] = y_left
            sums[0, right, 0] = y_right
            was = scores[left] + scores[right]
            scores[left] = table[size, grown] + table[0, grown] * y_left * y_left
            scores[right] = table[size, shrunk] + table[0, shrunk] * y_right * y_right
            score += scores[left] + scores[right] - was
    if before < 1.0 and everywhere:
        low[cell] = before
        high[cell] = 1.0
        weight[cell] = score
        threshold[cell] = cut
        cell += np.uint64(1)
    return np.int64(cell)


@kernel
def sweep_any_groups(scan, first, n_groups, h, hard, cells, missing_left):
    """The same for all cuts, soft ones too, whether there are tables or not.

    Where tables say it all nothing is called, so that the loop keeps its numbers in registers.
    """
    groups, sides, cells_of = scan.groups, scan.sides, scan.cells
    low, high = cells_of.low, cells_of.high
    weight, threshold = cells_of.weight, cells_of.threshold
    group_x, group_cut, place, group_sums = groups.x, groups.cut, groups.place, groups.sums
    total, members, sums, scores = sides.total, sides.members, sides.sums, sides.score
    pointer, leaf = groups.pointer, scan.model.leaf
    table = scan.tables.by_rows if hard else scan.tables.by_fifths
    units = ROWS if hard else FIFTHS
    size = np.uint64(table.shape[0] - 1)
    tabled = table.shape[1] > 1 and leaf != OWN_VARIANCE
    everywhere = scan.model.kind == UNIT
    score = all_right(scan, table, units)
    if missing_left:
        move_groups(scan, ZERO, first, units)
        score = score_of_sides(scan, table, units)
    for j in range(units):
        pointer[j] = first
    cell = np.uint64(cells)
    before = 0.0
    cut = 0.0
    g = first
    while True:
        x = group_x[g] if g < n_groups else 1.0
        width = x - before
        if width > 0.0 and (everywhere or first < g < n_groups):
            pieces, edge = 1, width
            if not hard:
                pieces = min(math.ceil(width / (PIECE * h)), FIFTHS)
                edge = PIECE * h if pieces * PIECE * h < width else width / pieces
            for k in range(pieces):
                begin = before + edge * k if k < 3 else x - edge * (pieces - k)
                end = x
                if k < pieces - 1:
                    end = before + edge * (k + 1) if k < 2 else x - edge * (pieces - k - 1)
                middle = 0.5 * (begin + end)
                for j in range(units):
                    # hard: all groups before this gap; soft: those before the quantile
                    stop = g if hard else n_groups
                    beyond = np.inf if hard else middle + h * LOGISTIC[j]
                    at = pointer[j]
                    while at < stop and group_x[at] < beyond:
                        group = np.uint64(at)
                        at += 1
                        if not tabled:
                            score += move_without_tables(scan, table, at - 1, units)
                            continue
                        left, right = place[group, 0], place[group, 1]
                        m, amount = place[group, 2], place[group, 3]
                        p, q = np.uint64(total[0, left]), np.uint64(total[0, right])
                        grown, shrunk = np.uint64(p + amount), np.uint64(q - amount)
                        total[0, left] = grown
                        total[0, right] = shrunk
                        if leaf == CLASS_COUNTS:
                            a, b = np.uint64(members[0, left, m]), np.uint64(members[0, right, m])
                            more, less = np.uint64(a + amount), np.uint64(b - amount)
                            members[0, left, m] = more
                            members[0, right, m] = less
                            change = table[m, more] + table[m, less] - table[m, a] - table[m, b]
                            score += change + (
                                table[size, grown]
                                + table[size, shrunk]
                                - table[size, p]
                                - table[size, q]
                            )
                        else:
                            part = group_sums[group, 0] / units
                            y_left, y_right = sums[0, left, 0] + part, sums[0, right, 0] - part
                            sums[0, left, 0] = y_left
                            sums[0, right, 0] = y_right
                            was = scores[left] + scores[right]
                            scores[left] = table[size, grown] + table[0, grown] * y_left * y_left
                            scores[right] = (
                                table[size, shrunk] + table[0, shrunk] * y_right * y_right
                            )
                            score += scores[left] + scores[right] - was
                    pointer[j] = at
                low[cell] = begin
                high[cell] = end
                weight[cell] = score
                threshold[cell] = cut
                cell += np.uint64(1)
        if g >= n_groups:
            return np.int64(cell)
        while g < n_groups and group_x[g] == x:
            cut = group_cut[g]
            g += 1
        before = x


@kernel
def sweep_bits(scan, f, level, scores_at, score, cells):
    """Cells of a column where the scores of its hard cuts are known already.

    From a ``level`` on, whose score is at ``scores_at``; ``score``: of a cut before it. Cells go to
    the places from ``cells`` on; returns where they end.
    """
    data, bits, cells_of = scan.data, scan.bits, scan.cells
    low, high = cells_of.low, cells_of.high
    weight, threshold = cells_of.weight, cells_of.threshold
    rows_at, scores, value, cuts = bits.rows_at, bits.score, data.value, data.cut
    first, levels = data.bits.first_value[f], data.n_levels[f]
    everywhere = scan.model.kind == UNIT
    before = 0.0
    cut = 0.0
    some = False
    shift = scores_at - level
    for k in range(level, levels + 1):
        last = k == levels
        if not last and rows_at[first + k] == 0:
            continue
        x = 1.0 if last else value[f, k]
        if x > before and (everywhere or (some and not last)):
            low[cells] = before
            high[cells] = x
            weight[cells] = score
            threshold[cells] = cut
            cells += 1
        if not last:
            score = scores[shift + k]
            cut = cuts[f, k]
            before = x
            some = True
    return cells


@kernel
def bits_with_missing(scan, f):
    """The same of a column with missing cells, and scores of "is missing" behind them.

    Returns where the cells with the missing on the right end, where those with the missing on the
    left end, and whether "is missing" parts the rows. The missing, if there are any, are the first
    value.
    """
    data, bits, weight = scan.data, scan.bits, scan.cells.weight
    scores, levels = bits.score, data.n_levels[f]
    first, others = data.bits.first_value[f], data.bits.second[f]
    start, gone = scan.sides.start[0], 0
    alone = start  # the score with the missing alone on the left
    if data.value[f, 0] < MISSING_BELOW:
        gone = 1
        alone = scores[first]
    missing = bits.rows_at[first] if gone == 1 else np.int64(0)
    middle = sweep_bits(scan, f, gone, others + gone, start, ZERO)
    end = sweep_bits(scan, f, gone, first + gone, alone, middle)
    weight[end] = scores[others + levels - 1]
    weight[end + 1] = alone
    return middle, end, 0 < missing < scan.node.n_rows[0]
