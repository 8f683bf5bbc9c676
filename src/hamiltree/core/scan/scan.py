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

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, Float1, function_type
from ..backend.units import unit
from ..sampling import draw_by_weight
from ..tree.kinds import NO_LEVELS, is_special
from ..tree.nodes import ZERO
from .by_bins import TIE
from .by_bits import has_keys
from .cells import PRIOR_SHARE, cell_density, draw_cell, find_cell, weigh_cells
from .data import UNIT, Scan, is_binned, softness_matters
from .groups import groups_by_column, groups_by_projection
from .rows import (
    CLOSELY,
    COLUMNS_TASK,
    MARKED,
    NODE,
    UNMARKED,
    mark_rows,
)
from .sweep import ON_THE_RIGHT, sweep_bits, sweep_groups

CLOSE_COLUMNS = 3
"""Columns of large data that a scan looks at closely: those of the highest scores so far."""

NOTHING = np.int64(-2)
PROJECTION = np.int64(-1)

SWEPT = types.Tuple((types.int64, types.float64, types.float64, types.float64))
COLUMNS = function_type(SWEPT, Scan, int, int, int, float, types.uint64, Float1)
"""``sweep_columns``, ``special.sweep_mixed_columns``, or, where data are large,
``binned_columns.sweep_binned_columns``."""
DRAW_SPECIAL = function_type(
    types.Tuple((types.float64, types.uint64, types.float64)), Scan, int, float, RNG
)
"""``special.draw_special``, or ``no_special`` where no column is."""


# ------------------------------------------------------------------ cells of a column


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


@pointer_kernel
def sweep_columns(scan, first, stop, feature, threshold, levels, weights):
    """Weigh the columns from ``first`` to ``stop``, or with first = -1 the projection on weights.

    Returns what is left of the last: (cells, sum of weights, sum of widths), and the density of a
    rule given its column, 0 where that is not among them. All in one kernel: a call
    costs something, and columns can be short. ``special.sweep_mixed_columns`` takes its place where
    some columns are special.
    """
    all_h, n_levels = scan.model.h, scan.data.n_levels
    rows, everywhere = scan.data.mass, scan.model.kind == UNIT
    cells, total, widths = 0, 0.0, 0.0
    density = 0.0
    keys = has_keys(scan)
    for f in range(first, stop):
        h = all_h[max(f, 0)]
        hard = h == 0.0
        if f >= 0:
            hard = not everywhere or not softness_matters(h, n_levels[f], rows)
        if keys and f >= 0 and hard:
            values = scan.data.bits.first_value[f]
            cells = sweep_bits(scan, f, ZERO, values, scan.sides.start[0], ZERO)
        else:
            n = groups_by_projection(scan, weights) if f < 0 else groups_by_column(scan, f)
            cells = sweep_groups(scan, ZERO, n, h, hard, ZERO, ON_THE_RIGHT)
        total, widths, this = weigh_column(scan, f, cells, feature, threshold)
        density = max(density, this)
    return cells, total, widths, density


# ------------------------------------------------------------------ all columns


@inlined
def sweep_marked(columns, scan, first, stop, feature, threshold, levels):
    mark_rows(scan, MARKED)
    result = columns(scan, first, stop, feature, threshold, levels, scan.cells.weights)
    mark_rows(scan, UNMARKED)
    return result


@kernel
def sweep_binned(scan, feature, threshold, levels):
    """All columns, shared out over the threads; then the best so far, closely; the density."""
    p = scan.bins.close.shape[0]
    scan.task[NODE] = feature
    scan.task_threshold[0] = threshold
    scan.task_levels[0] = levels
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
def scan_columns(columns, scan, feature, threshold, levels):
    """Weigh all columns: (log of all weight, log density of the given rule).

    ``feature`` NOTHING gives no rule. Rows and sides have been set. ``share`` is left to draw
    from; minus infinity for all weight means that the node has no rule at all.
    """
    log_total, share = scan.cells.log_total, scan.cells.share
    log_feature = scan.model.prior.log_feature
    p = log_total.shape[0]
    scan.bins.close[:] = 0
    if is_binned(scan.data):
        density = sweep_binned(scan, feature, threshold, levels)
    else:
        _, _, _, density = sweep_marked(columns, scan, 0, p, feature, threshold, levels)
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
def draw_from_scan(scanner, rng):
    """A rule from the last scan: (feature, threshold, levels, log density)."""
    scan = scanner.scan
    feature = draw_by_weight(scan.cells.share, 1.0, rng)
    threshold, levels, log_density = draw_in_column(scanner, feature, rng)
    return feature, threshold, levels, log_density + math.log(scan.cells.share[feature])


@kernel
def draw_in_column(scanner, feature, rng):
    """A rule given its column: threshold, levels, log density, minus infinity if there is none."""
    scan = scanner.scan
    cells, total, widths, _ = sweep_marked(
        scanner.columns, scan, feature, feature + 1, NOTHING, 0.0, NO_LEVELS
    )
    if cells == 0:
        return 0.0, NO_LEVELS, -np.inf
    if is_special(scan.data.kinds, feature):
        draw = scanner.draw_special
        return draw(scan, feature, total, rng)
    threshold, density = draw_cell(scan, cells, total, widths, rng)
    return threshold, NO_LEVELS, math.log(density)


@pointer_kernel
def no_special(scan, f, total, rng):
    """In the place of ``special.draw_special`` where no column is special."""
    return 0.0, NO_LEVELS, -np.inf


@kernel
def log_density_in_column(columns, scan, feature, threshold, levels):
    """Log density with which ``draw_in_column`` gives a rule."""
    _, _, _, density = sweep_marked(columns, scan, feature, feature + 1, feature, threshold, levels)
    return math.log(density) if density > 0.0 else -np.inf


unit(sweep_columns, COLUMNS, seconds=5)
unit(no_special, DRAW_SPECIAL)
