"""Scans of large data: every column by counts in its bins, the best columns closely.

What ``scan`` does row by row costs a look-up of log Gamma for each row and column. Here one pass
over the node's rows counts, for each bin of a column, what would go to which leaf; scores are then
of cells between the ends of bins. Rows count as spread evenly over their bin, unless it holds one
value. Around the cell of the highest score a close look counts again, in narrower bins. Which bins
there are depends on the training data alone, and where the close look is on the node's rows and
sides alone, so a rule has the same density forth and back.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from .bins import FINE_BINS, QUANTILES, WINDOW_CELLS
from .buffers import CLASSES
from .crew import shared
from .jit import inlined, kernel, never_inline, opaque
from .scan_data import FIFTHS, LOGISTIC, PIECE, is_soft
from .scan_rows import FIRST_PART, count_parts, part_bounds

TIE = 1e-9
"""Scores that differ by no more are equal, whatever their rounding: the first is the best."""
CLOSE_COLUMNS = 3
"""Columns that a scan looks at closely: those of the highest scores so far."""


@kernel
def project_part(model, work, weights, part, who):
    """Projections of a part of the rows, and the smallest and the largest."""
    low, high = np.inf, -np.inf
    first, stop = part_bounds(work, work.n_rows[0], part)
    for k in range(first, stop):
        x = 0.0
        for f in range(weights.shape[0]):
            x += weights[f] * model.data.columns[f, work.rows[k]]
        x = min(max(x, 0.0), 1.0)
        work.bins.projected[k] = x
        low = min(low, x)
        high = max(high, x)
    work.sums[FIRST_PART + part, 0, 0] = low
    work.sums[FIRST_PART + part, 0, 1] = high


_project_in_parts, project_address = shared(project_part)


@inlined
def project_rows(model, work, weights, bins):
    """Projections, and their bins: of equal width between the smallest and the largest."""
    n = work.n_rows[0]
    parts = count_parts(work, n)
    _project_in_parts(work.crew, parts, model.calls.project, (model, work, weights))
    low, high = np.inf, -np.inf
    for part in range(parts):
        low = min(low, work.sums[FIRST_PART + part, 0, 0])
        high = max(high, work.sums[FIRST_PART + part, 0, 1])
    if not high > low:
        low, high = 0.0, 1.0
    scale = bins / (high - low)
    for b in range(bins):
        work.bins.edge[b] = low + (b + 1) / scale
    work.bins.edge[bins - 1] = high
    for k in range(n):
        work.bins.code[k] = min(int((work.bins.projected[k] - low) * scale), bins - 1)
    return low


@inlined
def count_values(code, rows, key, y, n, counts, width, shift, offset, both):
    """Rows and sums of y by bin and leaf; loops without questions, for they take most of a scan."""
    if both:
        for k in range(n):
            row = rows[k]
            at = code[row] * width + offset + (key[k] & 0xFFFF) * 2
            other = code[row] * width + (key[k] >> 16) * 2
            counts[at] += 1.0
            counts[at + 1] += y[row]
            counts[other] += 1.0
            counts[other + 1] += y[row]
    else:
        for k in range(n):
            row = rows[k]
            at = code[row] * width + offset + ((key[k] >> shift) & 0xFFFF) * 2
            counts[at] += 1.0
            counts[at + 1] += y[row]


@inlined
def count_bins(model, work, f, close, first, last, low, scale, bins):
    """What would go to each leaf of the rows of each bin and those before it.

    From ``code``, or ``close``: those of the bins from ``first`` to ``last`` in finer ones. Where a
    side is a single leaf, its counts are the sum of the other side's.
    """
    n_left, n_right = work.n_side[0], work.n_side[1]
    classes = model.leaf == CLASSES
    channels = work.members.shape[2] if classes else 2
    width = (n_left + n_right) * channels
    counts = work.bins.counts
    for k in range(bins * width):
        counts[k] = 0.0
    both = n_left > 1 and n_right > 1
    # one side, or the other as well
    shift, offset = (16, 0) if n_right == 1 else (0, n_left * channels)
    plain = not classes and not close and f >= 0
    if plain:
        data, n = model.data, work.n_rows[0]
        count_values(
            data.code[f], work.rows, work.key, data.y, n, counts, width, shift, offset, both
        )
    for m in range(0 if plain else work.bins.segment.shape[0] - 1):
        for k in range(work.bins.segment[m], work.bins.segment[m + 1]):
            row = work.rows[k]
            b = int(work.bins.code[k] if f < 0 else model.data.code[f, row])
            if close:
                if b < first or b > last:
                    continue
                x = work.bins.projected[k] if f < 0 else model.data.columns[f, row]
                b = min(max(int((x - low) * scale), 0), bins - 1)
            key = work.key[k]
            at = b * width + offset + ((key >> shift) & 0xFFFF) * channels
            other = b * width + (key >> 16) * channels
            if classes:
                counts[at + m] += 1.0
                if both:
                    counts[other + m] += 1.0
            else:
                y = model.data.y[row]
                counts[at] += 1.0
                counts[at + 1] += y
                if both:
                    counts[other] += 1.0
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


@inlined
def find_quantiles(work, cut, h, n_quantiles, low, bins, single_values):
    """Where each quantile of a cut is among the bins; cuts come in ascending order.

    Returns how many to average over: those of one bin count as one, at their mean.
    """
    edge = work.bins.edge
    for j in range(n_quantiles):
        at = cut + h * LOGISTIC[j] if n_quantiles > 1 else cut
        b = work.bins.place[j]
        while b < bins and edge[b] < at:
            b += 1
        work.bins.place[j] = b
        begin = edge[b - 1] if b > 0 else low
        inside = not single_values and b < bins and at > begin
        work.bins.share[j] = (at - begin) / (edge[b] - begin) if inside else 0.0
    if n_quantiles == 1 or work.bins.place[0] != work.bins.place[n_quantiles - 1]:
        return n_quantiles
    total = 0.0
    for j in range(n_quantiles):
        total += work.bins.share[j]
    work.bins.share[0] = total / n_quantiles
    return 1


@inlined
def moved(work, at, width, n_quantiles):
    """What of a leaf's channel lies before the cut, averaged over its quantiles."""
    counts = work.bins.counts
    total = 0.0
    for j in range(n_quantiles):
        b = work.bins.place[j]
        before = counts[(b - 1) * width + at] if b > 0 else 0.0
        if work.bins.share[j] > 0.0:
            before += work.bins.share[j] * (counts[b * width + at] - before)
        total += before
    return work.bins.base[at] + total / n_quantiles


@inlined
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


@inlined
def score_cut(model, work, width, n_quantiles, constant):
    """The score of a cut whose quantiles have been found."""
    n_left = work.n_side[0]
    leaves = n_left + work.n_side[1]
    score = constant
    if model.leaf == CLASSES:
        channels = work.members.shape[2]
        for s in range(leaves):
            size = 0.0
            for m in range(channels):
                count = moved(work, s * channels + m, width, n_quantiles)
                if s >= n_left:
                    count = work.members[1, s, m] - count
                count = max(count, 0.0)
                size += count
                score += log_gamma(count + model.class_prior[m])
            score -= log_gamma(size + model.worth)
        return score
    precision = 1.0 / (work.sigma[0] * work.sigma[0])
    ratio = model.mean_variance * precision
    for s in range(leaves):
        count = moved(work, 2 * s, width, n_quantiles)
        total = moved(work, 2 * s + 1, width, n_quantiles)
        if s >= n_left:
            count = work.total[1, s] - count
            total = work.sums[1, s, 0] - total
        grown = 1.0 + ratio * max(count, 0.0)
        score += 0.5 * (ratio / grown * total * total * precision - math.log(grown))
    return score


@inlined
def score_constant(model, work):
    """So that a leaf without rows has score 0."""
    constant = 0.0
    if model.leaf == CLASSES:
        constant = log_gamma(model.worth)
        for m in range(work.members.shape[2]):
            constant -= log_gamma(model.class_prior[m])
    return constant * (work.n_side[0] + work.n_side[1])


@inlined
def open_window(work, cells):
    """Make room for a close look around the best cell: (first cell, low end, high end, cells)."""
    best = 0
    for c in range(cells):
        if work.weight[c] > work.weight[best] + TIE:
            best = c
    first, last = max(best - 1, 0), min(best + 1, cells - 1)
    low, high = work.low[first], work.high[last]
    shift = WINDOW_CELLS - (last + 1 - first)
    for c in range(cells - 1, last, -1):
        work.low[c + shift] = work.low[c]
        work.high[c + shift] = work.high[c]
        work.weight[c + shift] = work.weight[c]
    return first, low, high, cells + shift


@kernel
def bins_apart(model, work, f, weights):
    """Cells of a column, or with f = -1 of the projection on weights, and their scores: how many.

    Rows and sides have been set. ``close`` says whether to look closely; a projection is.
    """
    never_inline()
    data, bins_work = model.data, work.bins
    bins = np.int64(data.grid.shape[1])
    start = 0.0
    if f < 0:
        start = project_rows(model, work, weights, bins)
        single_values, h, soft, close = False, model.h[0], model.h[0] > 0.0, True
    else:
        bins = data.n_bins[f]
        for b in range(bins):
            bins_work.edge[b] = data.grid[f, b]
        single_values, h, soft = bins == data.n_levels[f], model.h[f], is_soft(model, f)
        close = bins_work.close[f] != 0 and not single_values
    n_quantiles = FIFTHS if soft else 1
    reach = -LOGISTIC[0] * h if soft else 0.0
    constant = score_constant(model, work)
    for k in range(bins_work.base.shape[0]):
        bins_work.base[k] = 0.0
    cells, at = np.int64(0), np.int64(0)
    first, last = np.int64(0), np.int64(0)
    low, scale = start, 0.0
    window_low, window_high = 0.0, 1.0
    for look in range(2 if close else 1):
        if look == 1:
            at, window_low, window_high, cells = open_window(work, cells)
            # counts of the bins that the window and its quantiles are in, in finer ones
            first, last = np.int64(0), np.int64(0)
            while first < bins - 1 and bins_work.edge[first] <= window_low - reach:
                first += 1
            while last < bins - 1 and bins_work.edge[last] < window_high + reach:
                last += 1
            low = bins_work.edge[first - 1] if first > 0 else start
            high = bins_work.edge[last]
            width = (work.n_side[0] + work.n_side[1]) * (
                work.members.shape[2] if model.leaf == CLASSES else 2
            )
            if first > 0:
                for k in range(width):
                    bins_work.base[k] = bins_work.counts[(first - 1) * width + k]
            bins = np.int64(FINE_BINS)
            scale = bins / (high - low) if high > low else 0.0
            for b in range(bins):
                bins_work.edge[b] = low + (b + 1) * (high - low) / bins
            bins_work.edge[bins - 1] = high
        width = count_bins(model, work, f, look == 1, first, last, low, scale, bins)
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
                apart = find_quantiles(work, cut, h, n_quantiles, low, bins, single_values)
                work.low[at] = cell_low
                work.high[at] = cell_high
                work.weight[at] = score_cut(model, work, width, apart, constant)
                at += 1
                cell_low = cell_high
            before = end
        if look == 0:
            cells = at
    return cells


call_bins, bins_address = opaque(bins_apart, returns=types.int64)
