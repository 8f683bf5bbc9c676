"""Scans of data some of whose columns are special: categories, or numbers with missing cells.

Kernels of their own, so that data without such columns need not have them compiled.
"""

from __future__ import annotations

from ..backend.jit import pointer_kernel
from ..backend.units import unit
from ..tree.kinds import is_special
from .categories import draw_category, sweep_category
from .data import UNIT, softness_matters
from .missing import draw_with_missing, sweep_with_missing
from .scan import COLUMNS, DRAW_SPECIAL, sweep_columns


@pointer_kernel
def sweep_mixed_columns(scan, first, stop, feature, threshold, levels, weights):
    """``scan.sweep_columns`` where some columns are special."""
    kinds, h, n_levels = scan.data.kinds, scan.model.h, scan.data.n_levels
    rows, everywhere = scan.data.mass, scan.model.kind == UNIT
    cells, total, widths = 0, 0.0, 0.0
    density = 0.0
    for f in range(first, stop):
        if f < 0 or not is_special(kinds, f):
            cells, total, widths, this = sweep_columns(
                scan, f, f + 1, feature, threshold, levels, weights
            )
        elif kinds.levels[f] > 0:
            cells, total, this = sweep_category(scan, f, feature, levels)
            widths = 1.0
        else:
            hard = not everywhere or not softness_matters(h[f], n_levels[f], rows)
            cells, total, widths, this = sweep_with_missing(
                scan, f, h[f], hard, feature, threshold, levels
            )
        density = max(density, this)
    return cells, total, widths, density


@pointer_kernel
def draw_special(scan, f, total, rng):
    """A rule from what was weighed of a special column: (threshold, levels, log density)."""
    if scan.data.kinds.levels[f] > 0:
        return draw_category(scan, f, total, rng)
    return draw_with_missing(scan, f, total, rng)


unit(sweep_mixed_columns, COLUMNS, seconds=3)
unit(draw_special, DRAW_SPECIAL)
