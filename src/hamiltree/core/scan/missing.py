"""Scans of numbers with missing cells: cuts with these on either side, and "is missing".

Cells of cuts with the missing on the right come first, then the same with them on the left, then
one for "is missing" with them on the right, and one with them on the left, which have no width.

Where missing cells are imputed, a cut drawn with them on either side becomes IMPUTED with
probability IMPUTED_SHARE, so that the density of an IMPUTED cut is a sum over both sides.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel
from ..tree.kinds import (
    IMPUTED,
    MISSING_BELOW,
    MISSING_RIGHT,
    MISSING_RULE,
    NO_LEVELS,
    WITH_IMPUTED,
)
from ..tree.nodes import ZERO
from ..tree.priors import log_threshold
from ..tree.routing import exp_clamped
from .by_bits import has_keys
from .cells import PRIOR_SHARE, find_cell, highest, sum_of
from .data import ROWS, UNIFORM, UNIT
from .groups import groups_by_column
from .scores import all_right, move_groups, score_of_sides
from .sweep import ON_THE_LEFT, ON_THE_RIGHT, bits_with_missing, sweep_groups

NO_CELL = -1
IMPUTED_SHARE = 0.5
"""Of the cuts that are proposed where missing cells are imputed."""


@kernel
def score_moved(scan, begin, end):
    """The score with the groups from ``begin`` to ``end`` on the left, as of hard splits."""
    table = scan.tables.by_rows
    all_right(scan, table, ROWS)
    move_groups(scan, begin, end, ROWS)
    return score_of_sides(scan, table, ROWS)


@inlined
def width_of(scan, c):
    return 1.0 if scan.model.kind == UNIFORM else scan.cells.high[c] - scan.cells.low[c]


@kernel
def prior_of_cell(scan, c):
    """Probability of a cell by the prior of the rules, thresholds counted as uniform."""
    cells = scan.cells
    by_missing, widths = cells.mass[0], cells.mass[1]
    if c >= cells.bounds[1]:
        return 0.5 * by_missing
    return 0.5 * (1.0 - by_missing) * width_of(scan, c) / widths


@kernel
def cell_of_rule(cells, threshold, levels):
    """The cell of a rule, or NO_CELL."""
    middle, end = cells.bounds[0], cells.bounds[1]
    if math.isinf(threshold):
        return end if levels != NO_LEVELS else end + 1
    begin, stop = (0, middle) if levels != NO_LEVELS else (middle, end)
    c = find_cell(cells.low[begin:stop], cells.high[begin:stop], stop - begin, threshold)
    return NO_CELL if c < 0 else begin + c


@kernel
def density_with_missing(scan, c, total):
    """Density of a rule that falls into a cell, given its column."""
    share = (1.0 - PRIOR_SHARE) * scan.cells.weight[c] / total
    share += PRIOR_SHARE * prior_of_cell(scan, c)
    return share if c >= scan.cells.bounds[1] else share / width_of(scan, c)


@kernel
def density_on_side(scan, threshold, levels, total):
    """Density of a rule that is not IMPUTED, given its column, as if none were."""
    c = cell_of_rule(scan.cells, threshold, levels)
    return 0.0 if c == NO_CELL else density_with_missing(scan, c, total)


@kernel
def density_of_rule(scan, f, threshold, levels, total):
    """Density of a rule given its column."""
    if levels == IMPUTED:
        right = density_on_side(scan, threshold, MISSING_RIGHT, total)
        return IMPUTED_SHARE * (right + density_on_side(scan, threshold, NO_LEVELS, total))
    density = density_on_side(scan, threshold, levels, total)
    if scan.data.kinds.missing[f] == WITH_IMPUTED and not math.isinf(threshold):
        density *= 1.0 - IMPUTED_SHARE
    return density


@kernel
def sweep_with_missing(scan, f, h, hard, feature, threshold, levels):
    """Weigh a column: (cells, sum of weights, sum of widths, density of a rule or 0)."""
    if hard and has_keys(scan):
        middle, end, parts = bits_with_missing(scan, f)
    else:
        weight, x = scan.cells.weight, scan.groups.x
        n = groups_by_column(scan, f)
        first = 0
        while first < n and x[first] < MISSING_BELOW:
            first += 1
        middle = sweep_groups(scan, first, n, h, hard, ZERO, ON_THE_RIGHT)
        end = sweep_groups(scan, first, n, h, hard, middle, ON_THE_LEFT)
        parts = 0 < first < n
        weight[end] = score_moved(scan, first, n)
        weight[end + 1] = score_moved(scan, ZERO, first)
    # priors over what parts the rows of the node know only rules that do
    parts = parts or scan.model.kind == UNIT
    return weigh_with_missing(scan, f, middle, end, parts, feature, threshold, levels)


@kernel
def weigh_with_missing(scan, f, middle, end, parts, feature, threshold, levels):
    """Weigh the cells of a column, whose scores are there; see ``sweep_with_missing``.

    ``parts``: "is missing" parts the rows, or is a rule whether it does or not.
    """
    of, model, prior = scan.cells, scan.model, scan.model.prior
    weight, low, high = of.weight, of.low, of.high
    by_missing = MISSING_RULE
    if not parts:
        by_missing = 0.0
    elif middle == 0:
        by_missing = 1.0
    if middle == 0 and not parts:
        of.log_total[f] = -np.inf
        return 0, 0.0, 0.0, 0.0
    widths = 1.0
    if middle > 0:
        widths = float(middle) if model.kind == UNIFORM else high[middle - 1] - low[0]
    of.bounds[0], of.bounds[1] = middle, end
    of.mass[0], of.mass[1] = by_missing, widths
    power = model.power[0]
    top = highest(weight, end if by_missing == 0.0 else end + 2)
    # loops without questions, which vectorise: what ``prior_of_cell`` says of each cell
    for c in range(end + 2):
        weight[c] = exp_clamped(power * (weight[c] - top))
    by_width = 0.5 * (1.0 - by_missing) / widths
    if model.kind == UNIFORM:
        for c in range(end):
            weight[c] *= by_width
    else:
        for c in range(end):
            weight[c] *= by_width * (high[c] - low[c])
    if model.kind == UNIT and not (prior.tau_a == 1.0 and prior.tau_b == 1.0):
        for c in range(end):
            weight[c] *= math.exp(log_threshold(prior, 0.5 * (low[c] + high[c])))
    for c in range(end, end + 2):
        weight[c] *= 0.5 * by_missing
    total = sum_of(weight, end + 2)
    of.log_total[f] = power * top + math.log(total)
    density = density_of_rule(scan, f, threshold, levels, total) if f == feature else 0.0
    return end + 2, total, widths, density


@kernel
def draw_with_missing(scan, f, total, rng):
    """A rule from the cells of a column: (threshold, levels, log density)."""
    cells = scan.cells
    middle, end = cells.bounds[0], cells.bounds[1]
    by_prior = rng.random() < PRIOR_SHARE
    u = rng.random() * (1.0 if by_prior else total)
    c = NO_CELL
    for k in range(end + 2):
        part = prior_of_cell(scan, k) if by_prior else cells.weight[k]
        if part > 0.0:
            c = k
            u -= part
            if u < 0.0:
                break
    right = c < middle or c == end
    levels = MISSING_RIGHT if right else NO_LEVELS
    if c >= end:
        threshold = np.inf if right else -np.inf
        return threshold, levels, math.log(density_with_missing(scan, c, total))
    threshold = cells.threshold[c]
    if scan.model.kind != UNIFORM:
        low, high = cells.low[c], cells.high[c]
        threshold = low + rng.random() * (high - low)
        if not threshold < high:
            threshold = low
        threshold = min(max(threshold, 1e-15), 1.0 - 1e-15)
    if scan.data.kinds.missing[f] != WITH_IMPUTED:
        return threshold, levels, math.log(density_with_missing(scan, c, total))
    if rng.random() < IMPUTED_SHARE:
        levels = IMPUTED
    return threshold, levels, math.log(density_of_rule(scan, f, threshold, levels, total))
