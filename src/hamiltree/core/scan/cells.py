"""Cells of a column: their weights, the cell of a threshold, and draws."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel
from ..tree.priors import log_threshold
from ..tree.routing import exp_clamped
from .data import UNIFORM, UNIT

PRIOR_SHARE = 0.05
"""Of the draws of a feature, and of a cell within it, those that ignore the likelihood."""


@inlined
def highest(x, n):
    """The largest of some numbers, four at a time: one would have to wait for the one before."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    whole = n // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = max(a, x[k]), max(b, x[k + 1]), max(c, x[k + 2]), max(d, x[k + 3])
    for k in range(whole, n):
        a = max(a, x[k])
    return max(max(a, b), max(c, d))


@inlined
def sum_of(x, n):
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = n // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = a + x[k], b + x[k + 1], c + x[k + 2], d + x[k + 3]
    for k in range(whole, n):
        a += x[k]
    return (a + b) + (c + d)


@kernel
def weigh_cells(weight, low, high, cells, power, kind, prior):
    """Scores to weights, in place; returns (top score, sum of weights, sum of widths)."""
    top = highest(weight, cells)
    for c in range(cells):
        weight[c] = exp_clamped(power * (weight[c] - top))
    if kind != UNIFORM:
        for c in range(cells):
            weight[c] *= high[c] - low[c]
    if kind == UNIT and not (prior.tau_a == 1.0 and prior.tau_b == 1.0):
        for c in range(cells):
            weight[c] *= math.exp(log_threshold(prior, 0.5 * (low[c] + high[c])))
    widths = float(cells)
    if kind != UNIFORM and cells > 0:  # each cell begins where the one before it ends
        widths = high[cells - 1] - low[0]
    return top, sum_of(weight, cells), widths


@kernel
def find_cell(low, high, cells, threshold):
    """The cell that holds a threshold, or -1."""
    a, b = 0, cells
    while a < b:
        middle = (a + b) // 2
        if high[middle] > threshold:
            b = middle
        else:
            a = middle + 1
    if a == cells and cells > 0 and high[cells - 1] == threshold:
        a = cells - 1  # the end of the range
    if a == cells or low[a] > threshold:
        return -1
    return a


@kernel
def cell_density(scan, c, total, widths):
    """Density of a draw that falls into a cell, given its column."""
    of = scan.cells
    width = 1.0 if scan.model.kind == UNIFORM else of.high[c] - of.low[c]
    share = (1.0 - PRIOR_SHARE) * of.weight[c] / total + PRIOR_SHARE * width / widths
    return share / width


@kernel
def draw_cell(scan, cells, total, widths, rng):
    """A threshold, and its density."""
    low, high, weight = scan.cells.low, scan.cells.high, scan.cells.weight
    by_values = scan.model.kind == UNIFORM
    by_width = rng.random() < PRIOR_SHARE
    u = rng.random() * (widths if by_width else total)
    c = -1
    for k in range(cells):
        part = weight[k]
        if by_width:
            part = 1.0 if by_values else high[k] - low[k]
        if part > 0.0:
            c = k
            u -= part
            if u < 0.0:
                break
    threshold = scan.cells.threshold[c]
    if not by_values:
        threshold = low[c] + rng.random() * (high[c] - low[c])
        if not threshold < high[c]:
            threshold = low[c]
        threshold = min(max(threshold, 1e-15), 1.0 - 1e-15)
    return threshold, cell_density(scan, c, total, widths)
