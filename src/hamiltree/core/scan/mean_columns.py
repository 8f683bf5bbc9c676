"""Columns of a scan of soft regression: cells of numbers, sets of levels; see ``leaf_means``."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel, never_inline, pointer_kernel, row_kernel
from ..backend.units import unit
from ..tree.nodes import ZERO
from ..tree.routing import sigmoid
from .categories import mirrored, place_level, weigh_candidates
from .leaf_means import MEAN_BINS, PIECES
from .mean_scores import ALL, RIGHT, SQUARES, add_bin, add_to, log_marginal_of_change
from .mean_sums import add_up_terms, first_square, n_terms
from .missing import weigh_with_missing
from .rows import begin_sides, prepare_rows
from .scan import COLUMNS, weigh_column
from .special import sweep_mixed_columns

NARROWEST = 1.0 / MEAN_BINS
"""What is taken for a smaller h."""
MERGED = 1.0 / 6.0
"""Bins whose values are within so many h of each other count as one."""
BAND = 5.0
"""Rows farther from a cut than so many h are taken to be on one side."""
POINTS_PER_H = 0.75
FEWEST_POINTS = 10
"""Intervals of a column between the points at which scores are computed."""
FAR = 20.0
"""Cells whose weight is below exp(-FAR) of the largest need not be small."""
DEEPEST = 1e4
"""Scores are no farther below the best of a column, so that the spline between points is tame."""
STEPS = ((0.3, 1), (2.0, 4))
"""Intervals across which a score changes by less than so much are so many cells, others PIECES."""


@row_kernel
def add_up(before, merged, bins, width):
    """Running sums over bins."""
    never_inline()
    for k in range(width):
        before[k] = np.float32(0.0)
    for b in range(bins):
        at, to = np.uint64(b * width), np.uint64((b + 1) * width)
        for k in range(width):
            before[to + np.uint64(k)] = before[at + np.uint64(k)] + merged[at + np.uint64(k)]


@row_kernel
def begin_moved(moved, before, end, bins, width, square):
    """All, and what lies behind a band that ends before the bin ``end``."""
    never_inline()
    last, stop = np.uint64(bins * width), np.uint64(end * width)
    for k in range(width):
        total = before[last + np.uint64(k)]
        beyond = total - before[stop + np.uint64(k)]
        moved[ALL, k] = total
        moved[RIGHT, k] = beyond
    for k in range(square, width):
        moved[SQUARES, k] = moved[RIGHT, k]


# ------------------------------------------------------------------ a column of numbers


@kernel
def merge_bins(means, first, bins, width, square, span):
    """Join the bins that have rows, those within ``span`` into one; how many there are then."""
    sums, merged, middle, centre = means.sums, means.merged, means.middle, means.centre
    count = 0
    start = -np.inf
    rows = 0.0
    for b in range(bins):
        at = (first + b) * width
        here, x = np.float64(sums[at + square]), centre[first + b]
        if here == 0.0:
            continue
        if x - start > span:
            start = x
            to = count * width
            for k in range(width):
                merged[to + k] = np.float32(0.0)
            middle[count] = x
            rows = 0.0
            count += 1
        rows += here
        middle[count - 1] += (x - middle[count - 1]) * here / rows
        add_to(merged, (count - 1) * width, sums, at, width)
    return count


@kernel
def score_points(scan, f, h):
    """Scores of cuts at equal distances, with missing cells on either side; how many intervals."""
    means = scan.means
    moved, merged, middle, known = means.moved, means.merged, means.middle, means.known
    first, gone = means.first[f], min(scan.data.kinds.missing[f], 1)
    bins = means.first[f + 1] - first - gone
    n_kept, n_others = max(means.n_side[0] + means.n_side[1], 1), means.n_others[0]
    width, square = n_terms(n_kept, n_others), first_square(n_kept, n_others)
    missing = (first + bins) * width
    bins = merge_bins(means, first, bins, width, square, MERGED * h)
    add_up(means.before, merged, bins, width)
    points = np.int64(min(max(math.ceil(POINTS_PER_H / h), FEWEST_POINTS), MEAN_BINS))
    begin, end, was_end = 0, 0, -1
    for g in range(points + 1):
        cut = g / points
        while begin < bins and middle[begin] < cut - BAND * h:
            begin += 1
        while end < bins and middle[end] < cut + BAND * h:
            end += 1
        if begin == end and end == was_end:  # no row is near: as at the point before
            known[0, g], known[1, g] = known[0, g - 1], known[1, g - 1]
            continue
        was_end = end if begin == end else -1
        begin_moved(moved, means.before, end, bins, width, square)
        for b in range(begin, end):
            add_bin(moved, merged, b * width, width, square, sigmoid((middle[b] - cut) / h))
        if gone:
            add_to(moved[ALL], ZERO, means.sums, missing, width)
            known[1, g] = log_marginal_of_change(scan)
            add_bin(moved, means.sums, missing, width, square, 1.0)
        known[0, g] = log_marginal_of_change(scan)
    return points


@inlined
def between(known, side, g, points, x):
    """The score at a share x of an interval, by the cubic of Catmull and Rom."""
    p1, p2 = known[side, g], known[side, g + 1]
    p0 = known[side, g - 1] if g > 0 else 2.0 * p1 - p2
    p3 = known[side, g + 2] if g + 2 <= points else 2.0 * p2 - p1
    slope = p2 - p0
    square = 2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3
    cube = 3.0 * (p1 - p2) + p3 - p0
    return p1 + 0.5 * x * (slope + x * (square + x * cube))


@kernel
def pieces_of(known, side, g, points, top, power):
    """Cells of an interval: more where they may be drawn and the score is steep."""
    nearest = max(known[side, g], known[side, g + 1])
    if power * (nearest - top) < -FAR:
        return 1
    steep = 0.0
    for k in range(max(g - 1, 0), min(g + 2, points)):
        steep = max(steep, power * abs(known[side, k + 1] - known[side, k]))
    for limit, pieces in STEPS:
        if steep < limit:
            return pieces
    return PIECES


@kernel
def put_cells(scan, side, points, cells):
    """Cells from the scores at the points; where they end."""
    known, power = scan.means.known, scan.model.power[0]
    low, high, weight = scan.cells.low, scan.cells.high, scan.cells.weight
    top = -np.inf
    for g in range(points + 1):
        top = max(top, known[side, g])
    for g in range(points + 1):
        known[side, g] = max(known[side, g], top - DEEPEST)
    for g in range(points):
        pieces = pieces_of(known, side, g, points, top, power)
        for k in range(pieces):
            low[cells] = (g + k / pieces) / points
            high[cells] = (g + (k + 1) / pieces) / points
            weight[cells] = between(known, side, g, points, (k + 0.5) / pieces)
            cells += 1
    return cells


# ------------------------------------------------------------------ sets of bins


@kernel
def score_bins(scan, f):
    """The score with each bin on one side, as ``goes_right`` says."""
    means = scan.means
    moved, first, goes_right = means.moved, means.first[f], means.goes_right
    n_kept, n_others = max(means.n_side[0] + means.n_side[1], 1), means.n_others[0]
    width, square = n_terms(n_kept, n_others), first_square(n_kept, n_others)
    for k in range(width):
        moved[ALL, k] = moved[RIGHT, k] = moved[SQUARES, k] = np.float32(0.0)
    for b in range(means.first[f + 1] - first):
        add_to(moved[ALL], ZERO, means.sums, (first + b) * width, width)
        if goes_right[b] == 1.0:
            add_bin(moved, means.sums, (first + b) * width, width, square, 1.0)
    return log_marginal_of_change(scan)


@kernel
def score_missing(scan, f, end):
    """Scores of "is missing", with these on the right, and on the left, behind the cells."""
    goes_right, weight = scan.means.goes_right, scan.cells.weight
    bins = scan.means.first[f + 1] - scan.means.first[f]
    for side in range(2):
        for b in range(bins):
            goes_right[b] = 1.0 if (b == bins - 1) == (side == 0) else 0.0
        weight[end + side] = score_bins(scan, f)


@kernel
def sweep_levels(scan, f, feature, levels):
    """As ``categories.sweep_category``."""
    means, of, goes_right = scan.means, scan.cells, scan.means.goes_right
    n_kept, n_others = max(means.n_side[0] + means.n_side[1], 1), means.n_others[0]
    width, square = n_terms(n_kept, n_others), first_square(n_kept, n_others)
    first = means.first[f]
    n_levels = means.first[f + 1] - first
    present = 0
    for k in range(n_levels):
        at = (first + k) * width
        rows = means.sums[at + square]
        if rows > 0.0:
            place_level(of, present, k, np.float64(means.sums[at] / rows), k, k + 1)
            present += 1
    for backwards in range(2):
        if backwards == 1 and mirrored(scan, present):
            break
        for k in range(n_levels):
            goes_right[k] = 1.0
        if backwards == 0:
            of.weight[0] = score_bins(scan, f)
        for k in range(present - backwards):
            goes_right[of.level[present - 1 - k if backwards == 1 else k]] = 0.0
            of.weight[k + 1 + backwards * present] = score_bins(scan, f)
    return weigh_candidates(scan, f, present, feature, levels)


# ------------------------------------------------------------------ the kernels of a scanner


@pointer_kernel
def sweep_leaf_means(scan, first, stop, feature, threshold, levels, weights):
    """``scan.sweep_columns`` of regression with soft splits."""
    kinds = scan.data.kinds
    if scan.means.is_on[0] == 0:
        return sweep_mixed_columns(scan, first, stop, feature, threshold, levels, weights)
    cells, total, widths = ZERO, 0.0, 0.0
    density = 0.0
    for f in range(first, stop):
        if kinds.levels[f] > 0:
            cells, total, this = sweep_levels(scan, f, feature, levels)
            widths = 1.0
        else:
            points = score_points(scan, f, max(scan.model.h[f], NARROWEST))
            cells = put_cells(scan, ZERO, points, ZERO)
            if kinds.missing[f] == 0:
                total, widths, this = weigh_column(scan, f, cells, feature, threshold)
            else:
                end = put_cells(scan, np.int64(1), points, cells)
                score_missing(scan, f, end)
                cells, total, widths, this = weigh_with_missing(
                    scan, f, cells, end, True, feature, threshold, levels
                )
        density = max(density, this)
    return cells, total, widths, density


@pointer_kernel
def prepare_means(scan, tree, at, left, right):
    """The likelihood itself where splits are soft; rows one by one where they are not, or many."""
    means = scan.means
    means.is_on[0] = 0
    if not add_up_terms(scan, tree, at, left, right):
        prepare_rows(scan, tree, at, left, right)
        return
    means.is_on[0] = 1
    scan.node.n_rows[0] = 0  # nobody asks for them
    begin_sides(scan, tree, left, right)
    means.goes_right[:] = 1.0
    scan.sides.start[0] = score_bins(scan, ZERO)


unit(sweep_leaf_means, COLUMNS, seconds=6)
