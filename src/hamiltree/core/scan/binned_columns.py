"""Scans of large data: columns weighed by what ``by_bins`` counts; categories by their levels."""

from __future__ import annotations

from ..backend.jit import kernel, pointer_kernel
from ..backend.units import unit
from ..tree.kinds import is_special
from .by_bins import binned_cells, count_bins, score_constant, score_moved
from .categories import mirrored, place_level, weigh_candidates
from .data import CLASS_COUNTS
from .missing import weigh_with_missing
from .scan import COLUMNS, weigh_column
from .scores import frequent_class


@kernel
def order_binned_levels(scan, width, n_levels):
    """As ``categories.order_levels``, from the running counts of a column's levels."""
    counts, of = scan.bins.counts, scan.cells
    n_left, counted = scan.sides.n_side[0], scan.model.leaf == CLASS_COUNTS
    channels = width // (n_left + scan.sides.n_side[1])
    frequent = frequent_class(scan.sides) if counted else 0
    present = 0
    for level in range(n_levels):
        rows, total = 0.0, 0.0
        for leaf in range(n_left):  # each row goes to one of them, if it goes left
            for channel in range(channels):
                at = level * width + leaf * channels + channel
                amount = counts[at] - (counts[at - width] if level > 0 else 0.0)
                if counted or channel == 0:
                    rows += amount
                if channel == (frequent if counted else 1):
                    total += amount
        if rows > 0.0:
            place_level(of, present, level, total / rows, level, level + 1)
            present += 1
    return present


@kernel
def score_binned_candidates(scan, width, present):
    """As ``categories.score_candidates``, from the same counts."""
    of, counts, moved = scan.cells, scan.bins.counts, scan.bins.moved
    constant = score_constant(scan)
    for backwards in range(2):
        if backwards == 1 and mirrored(scan, present):
            return
        for at in range(width):
            moved[at] = 0.0
        if backwards == 0:
            of.weight[0] = score_moved(scan, constant)
        for k in range(present - backwards):
            level = of.level[present - 1 - k if backwards == 1 else k]
            for at in range(width):
                before = counts[(level - 1) * width + at] if level > 0 else 0.0
                moved[at] += counts[level * width + at] - before
            of.weight[k + 1 + backwards * present] = score_moved(scan, constant)


@kernel
def sweep_binned_category(scan, f, feature, levels):
    """As ``categories.sweep_category``."""
    n_levels = scan.data.kinds.levels[f]
    width = count_bins(scan, f, False, 0, 0, 0.0, 0.0, n_levels)
    present = order_binned_levels(scan, width, n_levels)
    score_binned_candidates(scan, width, present)
    return weigh_candidates(scan, f, present, feature, levels)


@kernel
def weigh_pairs(scan, f, cells, pairs, right, left, feature, threshold, levels):
    """Weigh cells with the missing on the right, and behind them the same with these on the left.

    ``right`` and ``left`` are the scores of "is missing".
    """
    of = scan.cells
    for c in range(cells):
        of.low[cells + c], of.high[cells + c] = of.low[c], of.high[c]
        of.weight[cells + c] = of.weight[pairs + c]
    of.weight[2 * cells], of.weight[2 * cells + 1] = right, left
    return weigh_with_missing(scan, f, cells, 2 * cells, True, feature, threshold, levels)


@pointer_kernel
def sweep_binned_columns(scan, first, stop, feature, threshold, levels, weights):
    """``scan.sweep_columns`` of large data."""
    kinds = scan.data.kinds
    cells, total, widths = 0, 0.0, 0.0
    density = 0.0
    for f in range(first, stop):
        if f >= 0 and is_special(kinds, f) and kinds.levels[f] > 0:
            cells, total, this = sweep_binned_category(scan, f, feature, levels)
            widths = 1.0
        else:
            cells, pairs, right, left = binned_cells(scan, f, weights)
            if pairs > 0:
                cells, total, widths, this = weigh_pairs(
                    scan, f, cells, pairs, right, left, feature, threshold, levels
                )
            else:
                total, widths, this = weigh_column(scan, f, cells, feature, threshold)
        density = max(density, this)
    return cells, total, widths, density


unit(sweep_binned_columns, COLUMNS, seconds=7)
