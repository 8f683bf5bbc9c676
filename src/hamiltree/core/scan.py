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

from .bins import QUANTILES
from .crew import shared
from .hard_rules import UNIFORM, UNIT
from .jit import inlined, kernel, never_inline, opaque, replacing
from .priors import log_threshold
from .references import at_hand
from .routing import exp_clamped, window
from .scan_bins import CLOSE_COLUMNS, TIE, call_bins
from .scan_bits import has_keys
from .scan_data import FIFTHS, LOGISTIC, PIECE, is_binned, is_hard
from .scan_rows import groups_by_column, groups_by_projection, mark_rows
from .scan_scores import all_right, move_group

PRIOR_SHARE = 0.05
"""Of the draws of a feature, and of a cell within it."""


# ------------------------------------------------------------------ cells of a column


@inlined
def put_cell(work, c, low, high, score, threshold):
    at = np.uint64(c)  # as in ``move_group``
    work.low[at] = low
    work.high[at] = high
    work.weight[at] = score
    work.threshold[at] = threshold
    return c + 1


@inlined
def sweep_hard(model, work, n_groups):
    """Move the groups across one by one; a cell between neighbouring values."""
    table = work.by_rows
    score = all_right(model, work, table, 1)
    everywhere = model.kind == UNIT
    before = 0.0
    cut = 0.0
    cells = 0
    for g in range(n_groups):
        x = work.group_x[np.uint64(g)]
        if x > before:
            if everywhere or g > 0:
                cells = put_cell(work, cells, before, x, score, cut)
            before = x
        score += move_group(model, work, table, g, 1)
        cut = work.group_cut[np.uint64(g)]
    if everywhere and before < 1.0:
        cells = put_cell(work, cells, before, 1.0, score, 0.0)
    return cells


@inlined
def sweep_bits(model, work, f):
    """The same where scores are known already."""
    data, bits = model.data, work.bits
    score = work.start[0]
    everywhere = model.kind == UNIT
    before = 0.0
    cut = 0.0
    cells = 0
    some = False
    for level in range(data.n_levels[f]):
        v = data.bits.first_value[f] + level
        if bits.rows_at[v] > 0:
            x = data.value[f, level]
            if x > before and (everywhere or some):
                cells = put_cell(work, cells, before, x, score, cut)
            score = bits.score[v]
            cut = data.cut[f, level]
            before = x
            some = True
    if everywhere and before < 1.0:
        cells = put_cell(work, cells, before, 1.0, score, 0.0)
    return cells


@inlined
def sweep_soft(model, work, n_groups, h):
    """The same with rows in fifths, and gaps in pieces: near a row it matters where the cut is."""
    table = work.by_fifths
    score = all_right(model, work, table, FIFTHS)
    for j in range(FIFTHS):
        work.pointer[j] = 0
    cells = 0
    before = 0.0
    g = 0
    while True:
        x = work.group_x[g] if g < n_groups else 1.0
        width = x - before
        if width > 0.0:
            pieces = min(math.ceil(width / (PIECE * h)), FIFTHS)
            edge = PIECE * h if pieces * PIECE * h < width else width / pieces
            for k in range(pieces):
                low = before + edge * k if k < 3 else x - edge * (pieces - k)
                high = x
                if k < pieces - 1:
                    high = before + edge * (k + 1) if k < 2 else x - edge * (pieces - k - 1)
                middle = 0.5 * (low + high)
                for j in range(FIFTHS):
                    beyond = middle + h * LOGISTIC[j]
                    at = work.pointer[j]
                    while at < n_groups and work.group_x[at] < beyond:
                        score += move_group(model, work, table, at, FIFTHS)
                        at += 1
                    work.pointer[j] = at
                cells = put_cell(work, cells, low, high, score, 0.0)
        if g >= n_groups:
            return cells
        while g < n_groups and work.group_x[g] == x:
            g += 1
        before = x


@inlined
def sweep_groups(model, work, f, weights):
    """Cells of a column, or with f = -1 of a projection."""
    if f < 0:
        h, hard = model.h[0], model.h[0] == 0.0
        groups = groups_by_projection(model, work, weights)
    else:
        h, hard = model.h[f], is_hard(model, f)
        groups = groups_by_column(model, work, f)
    return sweep_hard(model, work, groups) if hard else sweep_soft(model, work, groups, h)


@inlined
def highest(x):
    """The largest of some numbers, four at a time: one would have to wait for the one before."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    whole = x.shape[0] // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = max(a, x[k]), max(b, x[k + 1]), max(c, x[k + 2]), max(d, x[k + 3])
    for k in range(whole, x.shape[0]):
        a = max(a, x[k])
    return max(max(a, b), max(c, d))


@inlined
def sum_of(x):
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = x.shape[0] // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = a + x[k], b + x[k + 1], c + x[k + 2], d + x[k + 3]
    for k in range(whole, x.shape[0]):
        a += x[k]
    return (a + b) + (c + d)


@inlined
def weigh_cells(model, work, cells):
    """Scores to weights, in place; returns (top score, sum of weights, sum of widths)."""
    weight, low, high = work.weight[:cells], work.low[:cells], work.high[:cells]
    top = highest(weight)
    power = model.power[0]
    for c in range(cells):
        weight[c] = exp_clamped(power * (weight[c] - top))
    if model.kind != UNIFORM:
        for c in range(cells):
            weight[c] *= high[c] - low[c]
    if model.kind == UNIT and not (model.prior.tau_a == 1.0 and model.prior.tau_b == 1.0):
        for c in range(cells):
            weight[c] *= math.exp(log_threshold(model.prior, 0.5 * (low[c] + high[c])))
    widths = float(cells)
    if model.kind != UNIFORM and cells > 0:  # each cell begins where the one before it ends
        widths = high[cells - 1] - low[0]
    return top, sum_of(weight), widths


@inlined
def cell_width(model, work, c):
    return 1.0 if model.kind == UNIFORM else work.high[c] - work.low[c]


@inlined
def find_cell(work, cells, threshold):
    """The cell that holds a threshold, or -1."""
    a, b = 0, cells
    while a < b:
        middle = (a + b) // 2
        if work.high[middle] > threshold:
            b = middle
        else:
            a = middle + 1
    if a == cells and cells > 0 and work.high[cells - 1] == threshold:
        a = cells - 1  # the end of the range
    if a == cells or work.low[a] > threshold:
        return -1
    return a


@inlined
def cell_density(model, work, c, total, widths):
    """Density of a draw that falls into a cell, given its column."""
    width = cell_width(model, work, c)
    share = (1.0 - PRIOR_SHARE) * work.weight[c] / total + PRIOR_SHARE * width / widths
    return share / width


@inlined
def draw_cell(model, work, cells, total, widths, rng):
    """A threshold, and its density."""
    by_width = rng.random() < PRIOR_SHARE
    u = rng.random() * (widths if by_width else total)
    c = -1
    for k in range(cells):
        part = cell_width(model, work, k) if by_width else work.weight[k]
        if part > 0.0:
            c = k
            u -= part
            if u < 0.0:
                break
    low, high = work.low[c], work.high[c]
    threshold = work.threshold[c]
    if model.kind != UNIFORM:
        threshold = low + rng.random() * (high - low)
        if not threshold < high:
            threshold = low
        threshold = min(max(threshold, 1e-15), 1.0 - 1e-15)
    return threshold, cell_density(model, work, c, total, widths)


# ------------------------------------------------------------------ columns


@kernel
def sweep_apart(given_model, given_work, first, stop, feature, threshold, weights):
    """Weigh the columns from ``first`` to ``stop``, or with first = -1 the projection on weights.

    Returns what is left of the last: (cells, sum of weights, sum of widths), and the density of a
    threshold given its column, 0 where that is not among them. All in one kernel: a call
    costs something, and columns can be short.
    """
    model, work = at_hand(given_model), at_hand(given_work)
    cells, top, total, widths = 0, 0.0, 0.0, 0.0
    density = 0.0
    for f in range(first, stop):
        if is_binned(model.data):
            cells = call_bins(model.calls.bins, (given_model, given_work, f, weights))
        elif f >= 0 and is_hard(model, f) and has_keys(model, work):
            cells = sweep_bits(model, work, f)
        else:
            cells = sweep_groups(model, work, f, weights)
        top, total, widths = weigh_cells(model, work, cells)
        if f >= 0:
            # the prior of the rules gives a column mass 1, however its cells are spread
            work.log_total[f] = -np.inf
            if cells > 0:
                work.log_total[f] = model.power[0] * top + math.log(total / widths)
        if f == feature:
            c = find_cell(work, cells, threshold)
            if c >= 0:
                density = cell_density(model, work, c, total, widths)
    return cells, total, widths, density


SWEPT = types.Tuple((types.int64, types.float64, types.float64, types.float64))
_sweep, sweep_address = opaque(sweep_apart, returns=SWEPT)
NOTHING = np.int64(-2)
PROJECTION = np.int64(-1)


@inlined
def sweep_columns(model, work, first, stop, feature, threshold):
    mark_rows(model, work, 1)
    arguments = (model, work, first, stop, feature, threshold, work.weights)
    result = _sweep(model.calls.columns, arguments)
    mark_rows(model, work, 0)
    return result


_own_bins = replacing("edge", "counts", "base", "place", "share")
_own_cells = replacing("low", "high", "weight", "threshold", "bins")


@inlined
def share_of(array, who, threads):
    """What a thread has of an array that is there for each."""
    room = array.shape[0] // threads
    return window(array, who * room, room)


@inlined
def with_own_scratch(work, who):
    bins = work.bins
    threads = bins.place.shape[0] // QUANTILES
    own_bins = _own_bins(
        bins,
        (
            share_of(bins.edge, who, threads),
            share_of(bins.counts, who, threads),
            share_of(bins.base, who, threads),
            share_of(bins.place, who, threads),
            share_of(bins.share, who, threads),
        ),
    )
    return _own_cells(
        work,
        (
            share_of(work.low, who, threads),
            share_of(work.high, who, threads),
            share_of(work.weight, who, threads),
            share_of(work.threshold, who, threads),
            own_bins,
        ),
    )


@kernel
def column_apart(model, work, closely, feature, threshold, part, who):
    """Weigh one column of large data: a part of a sweep over all, or over those to look closely at.

    ``share`` gets the density of the rule asked for, where it is of this column.
    """
    f = part
    if closely:
        f = -1
        for _ in range(part + 1):
            f += 1
            while work.bins.close[f] == 0:
                f += 1
    mine = with_own_scratch(work, who)
    arguments = (model, mine, f, f + 1, feature, threshold, work.weights)
    _, _, _, work.share[f] = _sweep(model.calls.columns, arguments)


_sweep_in_parts, column_address = shared(column_apart)


@inlined
def sweep_binned(model, work, feature, threshold):
    """All columns, by whoever is free, then closely those that are best so far; the density."""
    close = work.bins.close
    p = close.shape[0]
    n = p
    for closely in range(2):
        task = (model, work, closely == 1, feature, threshold)
        _sweep_in_parts(work.crew, n, model.calls.column, task)
        n = min(CLOSE_COLUMNS, p)
        if closely == 0:
            choose_closely(work, n)
    return work.share[feature] if feature >= 0 else 0.0


@inlined
def choose_closely(work, n):
    """Mark the columns that are best so far."""
    close = work.bins.close
    for _ in range(n):
        best = -1
        for f in range(close.shape[0]):
            if close[f] == 0 and (best < 0 or work.log_total[f] > work.log_total[best] + TIE):
                best = f
        close[best] = 1


@inlined
def sweep_projection(model, work, weights, threshold):
    """Cells of a projection (HMC-DFI), and the density of a threshold among them."""
    arguments = (model, work, PROJECTION, np.int64(0), PROJECTION, threshold, weights)
    return _sweep(model.calls.columns, arguments)


@kernel
def scan(model, work, feature, threshold):
    """Weigh all columns: (log of all weight, log density of the given rule).

    ``feature`` NOTHING gives no rule. Rows and sides have been set. ``share`` is left to draw
    from; minus infinity for all weight means that the node has no rule at all.
    """
    never_inline()
    p = model.data.columns.shape[0]
    prior = model.prior
    work.bins.close[:] = 0
    if is_binned(model.data):
        density = sweep_binned(model, work, feature, threshold)
    else:
        _, _, _, density = sweep_columns(model, work, np.int64(0), np.int64(p), feature, threshold)
    top_total = -np.inf
    available = 0.0
    for f in range(p):
        if work.log_total[f] > -np.inf:
            work.log_total[f] += prior.log_feature[f]
            available += math.exp(prior.log_feature[f])
            top_total = max(top_total, work.log_total[f])
    if top_total == -np.inf:
        return -np.inf, -np.inf
    everything = 0.0
    for f in range(p):
        work.share[f] = math.exp(work.log_total[f] - top_total)
        everything += work.share[f]
    for f in range(p):
        if work.log_total[f] > -np.inf:
            by_prior = math.exp(prior.log_feature[f]) / available
            by_score = work.share[f] / everything
            work.share[f] = (1.0 - PRIOR_SHARE) * by_score + PRIOR_SHARE * by_prior
    log_density = -np.inf
    if density > 0.0:
        log_density = math.log(density) + math.log(work.share[feature])
    return top_total + math.log(everything) - math.log(available), log_density


@kernel
def draw_from_scan(model, work, rng):
    """A rule from the last scan: (feature, threshold, log density)."""
    never_inline()
    u = rng.random()
    feature = -1
    for f in range(work.share.shape[0]):
        if work.share[f] > 0.0:
            feature = f
            u -= work.share[f]
            if u < 0.0:
                break
    threshold, log_density = draw_threshold(model, work, feature, rng)
    return feature, threshold, log_density + math.log(work.share[feature])


@kernel
def draw_threshold(model, work, feature, rng):
    """A threshold given the column: (threshold, log density), which is minus infinity if none."""
    cells, total, widths, _ = sweep_columns(model, work, feature, feature + 1, NOTHING, 0.0)
    if cells == 0:
        return 0.0, -np.inf
    threshold, density = draw_cell(model, work, cells, total, widths, rng)
    return threshold, math.log(density)


@kernel
def log_threshold_density(model, work, feature, threshold):
    """Log density with which ``draw_threshold`` gives a threshold."""
    _, _, _, density = sweep_columns(model, work, feature, feature + 1, feature, threshold)
    return math.log(density) if density > 0.0 else -np.inf
