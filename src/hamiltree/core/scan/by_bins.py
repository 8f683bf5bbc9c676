"""Scans of large data: cells of a column by counts in its bins, of the best columns closely.

What ``scan`` does row by row costs a look-up of log Gamma for each row and column. Here one pass
over the node's rows counts, for each bin of a column, what would go to which leaf; scores are then
of cells between the ends of bins. Rows count as spread evenly over their bin, unless it holds one
value. Around the cell of the highest score a close look counts again, in narrower bins. Which bins
there are depends on the training data alone, and where the close look is on the node's rows and
sides alone, so a rule has the same density forth and back.

Missing cells are a bin of their own, behind all others. Each cut is scored with them on the right
and then on the left, so that cells come in pairs.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel
from .bins import FINE_BINS, QUANTILES, WINDOW_CELLS
from .data import CLASS_COUNTS, FIFTHS, LOGISTIC, PIECE, is_soft, value_at
from .rows import FIRST_PART, PROJECT_TASK, count_parts

TIE = 1e-9
"""Scores that differ by no more are equal, whatever their rounding: the first is the best."""


@inlined
def project_rows(scan, weights, bins):
    """Projections, and their bins: of equal width between the smallest and the largest."""
    n, sums, work = scan.node.n_rows[0], scan.sides.sums, scan.bins
    parts = count_parts(scan, n)
    for f in range(weights.shape[0]):
        work.weights[f] = weights[f]
    scan.run_parts(PROJECT_TASK, parts)
    low, high = np.inf, -np.inf
    for part in range(parts):
        low = min(low, sums[FIRST_PART + part, 0, 0])
        high = max(high, sums[FIRST_PART + part, 0, 1])
    if not high > low:
        low, high = 0.0, 1.0
    scale = bins / (high - low)
    for b in range(bins):
        work.edge[b] = low + (b + 1) / scale
    work.edge[bins - 1] = high
    projected, code = work.projected, work.code
    for k in range(n):
        code[k] = min(int((projected[k] - low) * scale), bins - 1)
    return low


@inlined
def count_values(code, f, rows, key, y, weights, n, counts, width, shift, offset, both):
    """Rows and sums of y by bin and leaf; loops without questions, for they take most of a scan."""
    weighted = weights.shape[0] > 0
    if both:
        for k in range(n):
            row = rows[k]
            at = code[f, row] * width + offset + (key[k] & 0xFFFF) * 2
            other = code[f, row] * width + (key[k] >> 16) * 2
            weight = weights[row] if weighted else 1.0
            counts[at] += weight
            counts[at + 1] += weight * y[row]
            counts[other] += weight
            counts[other + 1] += weight * y[row]
    else:
        for k in range(n):
            row = rows[k]
            at = code[f, row] * width + offset + ((key[k] >> shift) & 0xFFFF) * 2
            weight = weights[row] if weighted else 1.0
            counts[at] += weight
            counts[at + 1] += weight * y[row]


@kernel
def count_bins(scan, f, close, first, last, low, scale, bins):
    """What would go to each leaf of the rows of each bin and those before it.

    From ``code``, or ``close``: those of the bins from ``first`` to ``last`` in finer ones. Where a
    side is a single leaf, its counts are the sum of the other side's.
    """
    data, work, rows, keys = scan.data, scan.bins, scan.node.rows, scan.node.key
    counts, segment, projected, own_code = work.counts, work.segment, work.projected, work.code
    code, all_y, weights = data.code, data.y, data.weight
    weighted = weights.shape[0] > 0
    n_left, n_right = scan.sides.n_side[0], scan.sides.n_side[1]
    classes = scan.model.leaf == CLASS_COUNTS
    channels = scan.sides.members.shape[2] if classes else 2
    width = (n_left + n_right) * channels
    for k in range(bins * width):
        counts[k] = 0.0
    both = n_left > 1 and n_right > 1
    # one side, or the other as well
    shift, offset = (16, 0) if n_right == 1 else (0, n_left * channels)
    plain = not classes and not close and f >= 0
    if plain:
        n = scan.node.n_rows[0]
        count_values(code, f, rows, keys, all_y, weights, n, counts, width, shift, offset, both)
    for m in range(0 if plain else segment.shape[0] - 1):
        for k in range(segment[m], segment[m + 1]):
            row = rows[k]
            b = int(own_code[k] if f < 0 else code[f, row])
            if close:
                if b < first or b > last:
                    continue
                x = projected[k] if f < 0 else value_at(data, f, row)
                b = min(max(int((x - low) * scale), 0), bins - 1)
            key = keys[k]
            at = b * width + offset + ((key >> shift) & 0xFFFF) * channels
            other = b * width + (key >> 16) * channels
            weight = weights[row] if weighted else 1.0
            if classes:
                counts[at + m] += weight
                if both:
                    counts[other + m] += weight
            else:
                y = weight * all_y[row]
                counts[at] += weight
                counts[at + 1] += y
                if both:
                    counts[other] += weight
                    counts[other + 1] += y
    single, begin, end = (n_left, 0, n_left) if n_right == 1 else (0, n_left, n_left + n_right)
    for b in range(bins):
        at = b * width
        if not both:
            for c in range(channels):
                total = 0.0
                for s in range(begin, end):
                    total += counts[at + s * channels + c]
                counts[at + single * channels + c] = total
        if b > 0:
            for k in range(at, at + width):
                counts[k] += counts[k - width]
    return width


@kernel
def find_quantiles(work, cut, h, n_quantiles, low, bins, single_values):
    """Where each quantile of a cut is among the bins; cuts come in ascending order.

    Returns how many to average over: those of one bin count as one, at their mean.
    """
    edge, place, share = work.edge, work.place, work.share
    for j in range(n_quantiles):
        at = cut + h * LOGISTIC[j] if n_quantiles > 1 else cut
        b = place[j]
        while b < bins and edge[b] < at:
            b += 1
        place[j] = b
        begin = edge[b - 1] if b > 0 else low
        inside = not single_values and b < bins and at > begin
        share[j] = (at - begin) / (edge[b] - begin) if inside else 0.0
    if n_quantiles == 1 or place[0] != place[n_quantiles - 1]:
        return n_quantiles
    total = 0.0
    for j in range(n_quantiles):
        total += share[j]
    share[0] = total / n_quantiles
    return 1


@kernel
def moved(work, width, n_quantiles):
    """What lies before the cut of each leaf and channel, averaged over its quantiles."""
    counts, base, place, share, out = work.counts, work.base, work.place, work.share, work.moved
    for at in range(width):
        total = 0.0
        for j in range(n_quantiles):
            b = place[j]
            before = counts[(b - 1) * width + at] if b > 0 else 0.0
            if share[j] > 0.0:
                before += share[j] * (counts[b * width + at] - before)
            total += before
        out[at] = base[at] + total / n_quantiles


@kernel
def log_gamma(x):
    """For x > 0: the recurrence up to 8, then Stirling's series (relative error 1e-13)."""
    shift = 1.0
    while x < 8.0:
        shift *= x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = 1.0 / 12.0 - square * (
        1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))
    )
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + inverse * series - math.log(shift)


@kernel
def score_moved(scan, constant):
    """The score with the rows of ``moved`` on the left.

    The sum over leaves of ``log_dirichlet_multinomial`` or ``log_known_noise_leaf``, up to what
    does not depend on the cut.
    """
    model, sides, before = scan.model, scan.sides, scan.bins.moved
    n_left, units = sides.n_side[0], scan.data.units
    leaves = n_left + sides.n_side[1]
    score = constant
    if model.leaf == CLASS_COUNTS:
        members, alpha = sides.members, model.class_prior
        channels = members.shape[2]
        for s in range(leaves):
            size = 0.0
            for m in range(channels):
                count = before[s * channels + m]
                if s >= n_left:
                    count = members[1, s, m] / units - count
                count = max(count, 0.0)
                size += count
                score += log_gamma(count + alpha[m])
            score -= log_gamma(size + model.class_mass)
        return score
    totals, sums, sigma = sides.total, sides.sums, scan.tables.sigma[0]
    precision = 1.0 / (sigma * sigma)
    ratio = model.mean_variance * precision
    for s in range(leaves):
        count, total = before[2 * s], before[2 * s + 1]
        if s >= n_left:
            count = totals[1, s] / units - count
            total = sums[1, s, 0] - total
        grown = 1.0 + ratio * max(count, 0.0)
        score += 0.5 * (ratio / grown * total * total * precision - math.log(grown))
    return score


@kernel
def score_constant(scan):
    """So that a leaf without rows has score 0."""
    model, sides = scan.model, scan.sides
    constant = 0.0
    if model.leaf == CLASS_COUNTS:
        constant = log_gamma(model.class_mass)
        for m in range(sides.members.shape[2]):
            constant -= log_gamma(model.class_prior[m])
    return constant * (sides.n_side[0] + sides.n_side[1])


@kernel
def find_missing(work, width, bins):
    """What would go to each leaf of the rows whose cell is missing: those of the last bin."""
    counts, missing = work.counts, work.missing
    for at in range(width):
        before = counts[(bins - 1) * width + at] if bins > 0 else 0.0
        missing[at] = counts[bins * width + at] - before


@kernel
def score_is_missing(scan, width, bins, constant):
    """Scores of "is missing", with these on the right, and on the left."""
    work = scan.bins
    moved, counts = work.moved, work.counts
    for at in range(width):
        moved[at] = counts[(bins - 1) * width + at] if bins > 0 else 0.0
    right = score_moved(scan, constant)
    for at in range(width):
        moved[at] = work.missing[at]
    return right, score_moved(scan, constant)


@kernel
def open_window(work, cells, pairs):
    """Make room for a close look around the best cell: (first cell, low end, high end, cells).

    ``pairs``: how far behind the score of a cell is that with the missing on the left; 0 for none.
    """
    best, most = 0, -np.inf
    for c in range(cells):
        score = max(work.weight[c], work.weight[pairs + c])
        if c == 0 or score > most + TIE:
            best, most = c, score
    first, last = max(best - 1, 0), min(best + 1, cells - 1)
    low, high = work.low[first], work.high[last]
    shift = WINDOW_CELLS - (last + 1 - first)
    for c in range(cells - 1, last, -1):
        work.low[c + shift] = work.low[c]
        work.high[c + shift] = work.high[c]
        work.weight[c + shift] = work.weight[c]
        work.weight[pairs + c + shift] = work.weight[pairs + c]
    return first, low, high, cells + shift


@kernel
def binned_cells(scan, f, weights):
    """Cells of a column, or with f = -1 of the projection on weights, and their scores.

    Rows and sides have been set. ``close`` says whether to look closely; a projection is. Returns
    how many; where there are missing cells, how far behind a score is that with these on the left,
    else 0; and then the scores of "is missing".
    """
    data, model, sides, bins_work, work = scan.data, scan.model, scan.sides, scan.bins, scan.cells
    bins, pairs = np.int64(data.grid.shape[1]), np.int64(0)
    alone_right, alone_left = 0.0, 0.0
    start = 0.0
    if f < 0:
        start = project_rows(scan, weights, bins)
        single_values, h, soft, close = False, model.h[0], model.h[0] > 0.0, True
    else:
        bins = data.n_bins[f]
        for b in range(bins):
            bins_work.edge[b] = data.grid[f, b]
        single_values, h, soft = bins == data.n_levels[f], model.h[f], is_soft(scan, f)
        close = bins_work.close[f] != 0 and not single_values
        if data.kinds.special and data.kinds.missing[f] > 0:
            pairs = work.weight.shape[0] // 2
    n_quantiles = FIFTHS if soft else 1
    reach = -LOGISTIC[0] * h if soft else 0.0
    constant = score_constant(scan)
    for k in range(bins_work.base.shape[0]):
        bins_work.base[k] = 0.0
    cells, at = np.int64(0), np.int64(0)
    first, last = np.int64(0), np.int64(0)
    low, scale = start, 0.0
    window_low, window_high = 0.0, 1.0
    for look in range(2 if close else 1):
        if look == 1:
            at, window_low, window_high, cells = open_window(work, cells, pairs)
            # counts of the bins that the window and its quantiles are in, in finer ones
            first, last = np.int64(0), np.int64(0)
            while first < bins - 1 and bins_work.edge[first] <= window_low - reach:
                first += 1
            while last < bins - 1 and bins_work.edge[last] < window_high + reach:
                last += 1
            low = bins_work.edge[first - 1] if first > 0 else start
            high = bins_work.edge[last]
            width = (sides.n_side[0] + sides.n_side[1]) * (
                sides.members.shape[2] if model.leaf == CLASS_COUNTS else 2
            )
            if first > 0:
                for k in range(width):
                    bins_work.base[k] = bins_work.counts[(first - 1) * width + k]
            bins = np.int64(FINE_BINS)
            scale = bins / (high - low) if high > low else 0.0
            for b in range(bins):
                bins_work.edge[b] = low + (b + 1) * (high - low) / bins
            bins_work.edge[bins - 1] = high
        # the missing are counted with the others once
        counted = bins + 1 if pairs > 0 and look == 0 else bins
        width = count_bins(scan, f, look == 1, first, last, low, scale, counted)
        if pairs > 0 and look == 0:
            find_missing(bins_work, width, bins)
            alone_right, alone_left = score_is_missing(scan, width, bins, constant)
        for j in range(QUANTILES):
            bins_work.place[j] = 0
        before = window_low
        for gap in range(bins + 1 if look == 0 else 1):
            end = window_high
            if look == 0:
                end = bins_work.edge[gap] if gap < bins else 1.0
            size = end - before
            if not size > 0.0:
                continue
            pieces, edge = np.int64(1), size
            if look == 1:
                pieces = np.int64(WINDOW_CELLS)
                edge = size / pieces
            elif soft:
                pieces = np.int64(min(math.ceil(size / (PIECE * h)), FIFTHS))
                edge = PIECE * h if pieces * PIECE * h < size else size / pieces
            cell_low = before
            for k in range(pieces):
                cell_high = end
                if k < pieces - 1:
                    cell_high = before + edge * (k + 1) if k < 2 else end - edge * (pieces - k - 1)
                cut = 0.5 * (cell_low + cell_high)
                apart = find_quantiles(bins_work, cut, h, n_quantiles, low, bins, single_values)
                work.low[at] = cell_low
                work.high[at] = cell_high
                moved(bins_work, width, apart)
                work.weight[at] = score_moved(scan, constant)
                if pairs > 0:
                    for k_moved in range(width):
                        bins_work.moved[k_moved] += bins_work.missing[k_moved]
                    work.weight[pairs + at] = score_moved(scan, constant)
                at += 1
                cell_low = cell_high
            before = end
        if look == 0:
            cells = at
    return cells, pairs, alone_right, alone_left
