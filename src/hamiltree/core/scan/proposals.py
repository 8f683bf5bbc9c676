"""Rules drawn by scans, and the density of drawing a given one: one interface for the moves.

HMC-DF and hard splits: a column and a threshold from the scan of all columns. HMC-DFI: a corner of
the simplex has no density, so weights are drawn either from their prior (MODE_PRIOR) or from a
mixture of Dirichlets, each leaning towards one column, by the scan's shares (MODE_COLUMNS); then
the threshold from a scan of the projection. The mode is tossed before a move and holds for both of
its directions, so each mode is a move of its own.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numba import types

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, Record, function_type
from ..backend.units import unit
from ..sampling import draw_by_weight
from ..tree.kinds import NO_LEVELS
from ..tree.nodes import Tree
from ..tree.priors import log_weights
from .binned_columns import sweep_binned_columns
from .cells import draw_cell
from .data import Scan, ScanData
from .mean_columns import prepare_means, sweep_leaf_means
from .rows import prepare_bits, prepare_parts, prepare_rows
from .scan import (
    COLUMNS,
    DRAW_SPECIAL,
    NOTHING,
    PROJECTION,
    draw_from_scan,
    draw_in_column,
    log_density_in_column,
    no_special,
    scan_columns,
    sweep_columns,
)
from .special import draw_special, sweep_mixed_columns

# np.int64, as every integer that goes into a large kernel: it would be compiled for each literal
MODE_PRIOR, MODE_COLUMNS = np.int64(0), np.int64(1)
NO_RULE = np.int64(-1)
"""In place of a node."""
LEAN = 10.0
"""Rows that a lean towards a column is worth in the Dirichlet of the weights."""


@kernel
def put_rule(scan, tree, node):
    """Give a node the rule drawn last."""
    tree.feature[node] = scan.cells.feature[0]
    tree.threshold[node] = scan.cells.cutpoint[0]
    tree.levels[node] = scan.cells.levels[0]
    for f in range(tree.weights.shape[1]):
        tree.weights[node, f] = scan.cells.weights[f]


@kernel
def log_leaning(scan, weights):
    """Log density of the mixture over columns, relative to the prior's."""
    p = weights.shape[0]
    a = scan.model.prior.weight_prior
    total = 0.0
    for f in range(p):
        total += scan.cells.share[f] * weights[f] ** LEAN
    constant = math.lgamma(p * a + LEAN) - math.lgamma(p * a) + math.lgamma(a)
    return math.log(max(total, 1e-300)) + constant - math.lgamma(a + LEAN)


@kernel
def draw_weights(scan, mode, rng):
    """Weights of a rule; their log density."""
    weights = scan.cells.weights
    p = weights.shape[0]
    a = scan.model.prior.weight_prior
    lean_to = draw_by_weight(scan.cells.share, 1.0, rng) if mode == MODE_COLUMNS else -1
    total = 0.0
    for f in range(p):
        w = max(rng.standard_gamma(a + LEAN if f == lean_to else a), 1e-300)
        weights[f] = w
        total += w
    for f in range(p):
        weights[f] /= total
    log_density = log_weights(scan.model.prior, weights)
    if mode == MODE_COLUMNS:
        log_density += log_leaning(scan, weights)
    return log_density


PREPARE = function_type(types.none, Scan, Tree, int, int, int)


class Scanner(Record, role="scratch"):
    """What is scanned, and the heavy kernels of it, compiled once and called by pointer."""

    scan: Scan
    prepare: Annotated[Any, PREPARE]
    """``prepare_rows``, ``prepare_bits`` or ``prepare_parts`` of ``rows``."""
    columns: Annotated[Any, COLUMNS]
    draw_special: Annotated[Any, DRAW_SPECIAL]


@kernel
def prepare(scanner, tree, at, left, right):
    call = scanner.prepare
    call(scanner.scan, tree, at, left, right)


@inlined
def sweep_projection(scanner, weights, threshold):
    """Cells of a projection (HMC-DFI), and the density of a threshold among them."""
    columns = scanner.columns
    return columns(scanner.scan, PROJECTION, 0, PROJECTION, threshold, NO_LEVELS, weights)


@pointer_kernel
def weigh_node(scanner, tree, at, rule_of, left, right, mode):
    """Scan the rows of a node: (log of all weight, log density of a node's rule).

    ``rule_of`` NO_RULE asks for no density; ``left`` and ``right`` are the sides, see
    ``rows``. The first is minus infinity where there is no rule to draw.
    """
    scan = scanner.scan
    prepare(scanner, tree, at, left, right)
    if scan.cells.weights.shape[0] == 0:
        feature, threshold, levels = NOTHING, 0.0, NO_LEVELS
        if rule_of >= 0:
            feature, threshold = tree.feature[rule_of], tree.threshold[rule_of]
            levels = tree.levels[rule_of]
        return scan_columns(scanner.columns, scan, feature, threshold, levels)
    everything = 0.0
    if mode == MODE_COLUMNS:
        everything, _ = scan_columns(scanner.columns, scan, NOTHING, 0.0, NO_LEVELS)
    if rule_of < 0:
        return everything, -np.inf
    weights = tree.weights[rule_of]
    log_density = log_weights(scan.model.prior, weights)
    if mode == MODE_COLUMNS:
        log_density += log_leaning(scan, weights)
    _, _, _, density = sweep_projection(scanner, weights, tree.threshold[rule_of])
    return everything, log_density + (math.log(density) if density > 0.0 else -np.inf)


@pointer_kernel
def draw_from_weights(scanner, mode, rng):
    """Draw a rule from what ``weigh_node`` left; its log density."""
    scan = scanner.scan
    cells_of = scan.cells
    if cells_of.weights.shape[0] == 0:
        feature, threshold, levels, log_density = draw_from_scan(scanner, rng)
        cells_of.feature[0], cells_of.cutpoint[0] = feature, threshold
        cells_of.levels[0] = levels
        return log_density
    cells_of.feature[0] = -1
    log_density = draw_weights(scan, mode, rng)
    cells, total, widths, _ = sweep_projection(scanner, cells_of.weights, -1.0)
    threshold, density = draw_cell(scan, cells, total, widths, rng)
    cells_of.cutpoint[0] = threshold
    return log_density + math.log(density)


WEIGH = function_type(types.UniTuple(types.float64, 2), Scanner, Tree, int, int, int, int, int)
DRAW = function_type(float, Scanner, int, RNG)


class Proposals(Record, role="scratch"):
    """What the moves are given."""

    scanner: Scanner
    scan: Scan
    """The scanner's."""
    weigh: Annotated[Any, WEIGH]
    """``weigh_node``"""
    draw: Annotated[Any, DRAW]
    """``draw_from_weights``"""


def _scans_of(data: ScanData, coupled: bool) -> dict[str, Any]:
    """The kernels of a scanner, by how the rows are held and what columns there are."""
    draw = draw_special if data.kinds.special else no_special
    if coupled:
        return {"prepare": prepare_means, "columns": sweep_leaf_means, "draw_special": draw_special}
    if data.code.size:
        return {"prepare": prepare_parts, "columns": sweep_binned_columns, "draw_special": draw}
    prepare = prepare_bits if data.bits.of_value.size else prepare_rows
    columns = sweep_mixed_columns if data.kinds.special else sweep_columns
    return {"prepare": prepare, "columns": columns, "draw_special": draw}


def make_proposals(scan: Scan) -> Proposals:
    return Proposals(
        scanner=Scanner(scan=scan, **_scans_of(scan.data, scan.means.rows.shape[1] > 0)),
        scan=scan,
        weigh=weigh_node,
        draw=draw_from_weights,
    )


@kernel
def weigh(proposals, tree, at, rule_of, left, right, mode):
    """See ``weigh_node``."""
    call = proposals.weigh
    return call(proposals.scanner, tree, at, rule_of, left, right, mode)


@kernel
def draw_weighed(proposals, mode, rng):
    """See ``draw_from_weights``."""
    call = proposals.draw
    return call(proposals.scanner, mode, rng)


@kernel
def draw_rule_by_scan(proposals, tree, at, left, right, mode, rng):
    """Draw a rule for the rows of a node with these sides; its log density, -inf if none."""
    everything, _ = weigh(proposals, tree, at, NO_RULE, left, right, mode)
    return draw_weighed(proposals, mode, rng) if everything > -np.inf else -np.inf


@kernel
def draw_in_column_by_scan(proposals, tree, node, left, right, rng):
    """A new rule for a node, its column kept; log density."""
    scanner = proposals.scanner
    prepare(scanner, tree, node, left, right)
    f = tree.feature[node]
    scanner.scan.bins.close[f] = 1
    threshold, levels, log_density = draw_in_column(scanner, f, rng)
    tree.threshold[node] = threshold
    tree.levels[node] = levels
    return log_density


@kernel
def log_in_column_by_scan(proposals, tree, node, left, right):
    """Log density with which ``draw_in_column_by_scan`` gives the rule that a node has."""
    scanner = proposals.scanner
    prepare(scanner, tree, node, left, right)
    f = tree.feature[node]
    scanner.scan.bins.close[f] = 1
    threshold, levels = tree.threshold[node], tree.levels[node]
    return log_density_in_column(scanner.columns, scanner.scan, f, threshold, levels)


for _kernel in (prepare_rows, prepare_bits, prepare_parts, prepare_means):
    unit(_kernel, PREPARE)
unit(weigh_node, WEIGH)
unit(draw_from_weights, DRAW)


def kernels_of_scans(data: ScanData, coupled: bool = False) -> list[Any]:
    """What informed moves call where these data are scanned; see ``backend.units``."""
    return [*_scans_of(data, coupled).values(), weigh_node, draw_from_weights]
