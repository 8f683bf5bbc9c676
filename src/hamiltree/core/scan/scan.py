"""Scores every cut of a node, and draws one in proportion: what the informed moves propose from.

A scan takes the rows of one node and two sides, each a subtree that is kept or a new leaf, and
gives every (feature, threshold) the likelihood that the tree would have there, as if splits were
hard. With soft splits a row counts in fifths: it is on the left of a cut for each of five logistic
quantiles, h apart, that lies beyond it.

These scores only propose. They may be approximate, as long as the density they define is evaluated
by the same arithmetic on the way back: then the acceptance ratio makes the move exact.

Between neighbouring values of a column, cuts send the same rows left: one cell. Its weight is its
width times the likelihood to the power of the model. A share of the draws ignores the likelihood,
so that the density is nowhere negligible. Cells reach out to 0 and 1 where the prior does: cuts
that leave a side empty carry prior mass.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from ..backend.jit import inlined, kernel
from ..backend.records import Float1, function_type
from ..backend.units import unit
from ..sampling import draw_by_weight
from .by_bits import has_keys
from .cells import PRIOR_SHARE, cell_density, draw_cell, find_cell, weigh_cells
from .data import (
    CLASS_COUNTS,
    FIFTHS,
    LOGISTIC,
    OWN_VARIANCE,
    PIECE,
    ROWS,
    UNIT,
    Scan,
    is_binned,
    softness_matters,
)
from .groups import groups_by_column, groups_by_projection
from .rows import (
    CLOSELY,
    COLUMNS_TASK,
    MARKED,
    NODE,
    UNMARKED,
    mark_rows,
)
from .scores import all_right, move_without_tables

TIE = 1e-9
"""Scores that differ by no more are equal, whatever their rounding: the first is the best."""
CLOSE_COLUMNS = 3
"""Columns of large data that a scan looks at closely: those of the highest scores so far."""

NOTHING = np.int64(-2)
PROJECTION = np.int64(-1)

SWEPT = types.Tuple((types.int64, types.float64, types.float64, types.float64))
COLUMNS = function_type(SWEPT, Scan, int, int, int, float, Float1)
"""``sweep_columns``, or ``by_bins.sweep_binned_columns`` where data are large."""


# ------------------------------------------------------------------ cells of a column


@kernel
def sweep_groups(scan, n_groups, h, hard):
    """Move the groups from the right to the left one by one; a cell between neighbouring values.

    Soft: rows count in fifths, one for each quantile, and gaps are cut into pieces, since near a
    row it matters where the cut is.

    This is where samplers spend their time. Where tables say it all nothing is called, so that the
    loop keeps its numbers in registers, and indices are unsigned, because a negative one would
    count from the end.
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
    for j in range(units):
        pointer[j] = 0
    cells = np.uint64(0)
    before = 0.0
    cut = 0.0
    g = 0
    while True:
        x = group_x[g] if g < n_groups else 1.0
        width = x - before
        if width > 0.0 and (everywhere or 0 < g < n_groups):
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
                low[cells] = begin
                high[cells] = end
                weight[cells] = score
                threshold[cells] = cut
                cells += np.uint64(1)
        if g >= n_groups:
            return np.int64(cells)
        while g < n_groups and group_x[g] == x:
            cut = group_cut[g]
            g += 1
        before = x


@kernel
def sweep_bits(scan, f):
    """Cells of a column where the scores of its hard cuts are known already."""
    data, bits, cells_of = scan.data, scan.bits, scan.cells
    low, high = cells_of.low, cells_of.high
    weight, threshold = cells_of.weight, cells_of.threshold
    rows_at, scores, value, cuts = bits.rows_at, bits.score, data.value, data.cut
    first, levels = data.bits.first_value[f], data.n_levels[f]
    score = scan.sides.start[0]
    everywhere = scan.model.kind == UNIT
    before = 0.0
    cut = 0.0
    cells = 0
    some = False
    for level in range(levels + 1):
        last = level == levels
        if not last and rows_at[first + level] == 0:
            continue
        x = 1.0 if last else value[f, level]
        if x > before and (everywhere or (some and not last)):
            low[cells] = before
            high[cells] = x
            weight[cells] = score
            threshold[cells] = cut
            cells += 1
        if not last:
            score = scores[first + level]
            cut = cuts[f, level]
            before = x
            some = True
    return cells


@kernel
def weigh_column(scan, f, cells, feature, threshold):
    """Weigh the cells of a column: (sum of weights, of widths, density of a threshold or 0)."""
    of, model = scan.cells, scan.model
    low, high, power = of.low, of.high, model.power[0]
    top, total, widths = weigh_cells(of.weight, low, high, cells, power, model.kind, model.prior)
    density = 0.0
    if f >= 0:
        # the prior of the rules gives a column mass 1, however its cells are spread
        of.log_total[f] = power * top + math.log(total / widths) if cells > 0 else -np.inf
    if f == feature:
        c = find_cell(low, high, cells, threshold)
        if c >= 0:
            density = cell_density(scan, c, total, widths)
    return total, widths, density


@kernel
def sweep_columns(scan, first, stop, feature, threshold, weights):
    """Weigh the columns from ``first`` to ``stop``, or with first = -1 the projection on weights.

    Returns what is left of the last: (cells, sum of weights, sum of widths), and the density of a
    threshold given its column, 0 where that is not among them. All in one kernel: a call
    costs something, and columns can be short.
    """
    all_h, n_levels = scan.model.h, scan.data.n_levels
    rows, everywhere = scan.data.rows.shape[0], scan.model.kind == UNIT
    cells, total, widths = 0, 0.0, 0.0
    density = 0.0
    keys = has_keys(scan)
    for f in range(first, stop):
        h = all_h[max(f, 0)]
        hard = h == 0.0
        if f >= 0:
            hard = not everywhere or not softness_matters(h, n_levels[f], rows)
        if keys and f >= 0 and hard:
            cells = sweep_bits(scan, f)
        else:
            n = groups_by_projection(scan, weights) if f < 0 else groups_by_column(scan, f)
            cells = sweep_groups(scan, n, h, hard)
        total, widths, this = weigh_column(scan, f, cells, feature, threshold)
        density = max(density, this)
    return cells, total, widths, density


# ------------------------------------------------------------------ all columns


@inlined
def sweep_marked(columns, scan, first, stop, feature, threshold):
    mark_rows(scan, MARKED)
    result = columns(scan, first, stop, feature, threshold, scan.cells.weights)
    mark_rows(scan, UNMARKED)
    return result


@kernel
def sweep_binned(scan, feature, threshold):
    """All columns, by whoever is free, then closely those that are best so far; the density."""
    p = scan.bins.close.shape[0]
    scan.task[NODE] = feature
    scan.task_threshold[0] = threshold
    n = p
    for closely in range(2):
        scan.task[CLOSELY] = closely
        scan.run_parts(COLUMNS_TASK, n)
        n = min(CLOSE_COLUMNS, p)
        if closely == 0:
            choose_closely(scan, n)
    return scan.cells.share[feature] if feature >= 0 else 0.0


@kernel
def choose_closely(scan, n):
    """Mark the columns that are best so far."""
    close, log_total = scan.bins.close, scan.cells.log_total
    for _ in range(n):
        best = -1
        for f in range(close.shape[0]):
            if close[f] == 0 and (best < 0 or log_total[f] > log_total[best] + TIE):
                best = f
        close[best] = 1


@kernel
def scan_columns(columns, scan, feature, threshold):
    """Weigh all columns: (log of all weight, log density of the given rule).

    ``feature`` NOTHING gives no rule. Rows and sides have been set. ``share`` is left to draw
    from; minus infinity for all weight means that the node has no rule at all.
    """
    log_total, share = scan.cells.log_total, scan.cells.share
    log_feature = scan.model.prior.log_feature
    p = log_total.shape[0]
    scan.bins.close[:] = 0
    if is_binned(scan.data):
        density = sweep_binned(scan, feature, threshold)
    else:
        _, _, _, density = sweep_marked(columns, scan, 0, p, feature, threshold)
    top_total = -np.inf
    available = 0.0
    for f in range(p):
        if log_total[f] > -np.inf:
            log_total[f] += log_feature[f]
            available += math.exp(log_feature[f])
            top_total = max(top_total, log_total[f])
    if top_total == -np.inf:
        return -np.inf, -np.inf
    everything = 0.0
    for f in range(p):
        share[f] = math.exp(log_total[f] - top_total)
        everything += share[f]
    for f in range(p):
        if log_total[f] > -np.inf:
            by_prior = math.exp(log_feature[f]) / available
            by_score = share[f] / everything
            share[f] = (1.0 - PRIOR_SHARE) * by_score + PRIOR_SHARE * by_prior
    log_density = -np.inf
    if density > 0.0:
        log_density = math.log(density) + math.log(share[feature])
    return top_total + math.log(everything) - math.log(available), log_density


@kernel
def draw_from_scan(columns, scan, rng):
    """A rule from the last scan: (feature, threshold, log density)."""
    feature = draw_by_weight(scan.cells.share, 1.0, rng)
    threshold, log_density = draw_threshold(columns, scan, feature, rng)
    return feature, threshold, log_density + math.log(scan.cells.share[feature])


@kernel
def draw_threshold(columns, scan, feature, rng):
    """A threshold given the column: (threshold, log density), which is minus infinity if none."""
    cells, total, widths, _ = sweep_marked(columns, scan, feature, feature + 1, NOTHING, 0.0)
    if cells == 0:
        return 0.0, -np.inf
    threshold, density = draw_cell(scan, cells, total, widths, rng)
    return threshold, math.log(density)


@kernel
def log_threshold_density(columns, scan, feature, threshold):
    """Log density with which ``draw_threshold`` gives a threshold."""
    _, _, _, density = sweep_marked(columns, scan, feature, feature + 1, feature, threshold)
    return math.log(density) if density > 0.0 else -np.inf


unit(sweep_columns, COLUMNS)
