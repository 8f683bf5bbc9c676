"""Rules drawn by scans, and the density of drawing a given one: one interface for the moves.

HMC-DF and hard splits: a column and a threshold from the scan of all columns. HMC-DFI: a corner of
the simplex has no density, so weights are drawn either from their prior (MODE_PRIOR) or from a
mixture of Dirichlets, each leaning towards one column, by the scan's shares (MODE_COLUMNS); then
the threshold from a scan of the projection. The mode is tossed before a move and holds for both of
its directions, so each mode is a move of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from .jit import inlined, kernel, never_inline, opaque
from .nodes import Tree
from .priors import log_weights
from .scan import (
    NOTHING,
    column_address,
    draw_cell,
    draw_from_scan,
    draw_threshold,
    log_threshold_density,
    scan,
    sweep_address,
    sweep_projection,
)
from .scan_bins import bins_address, project_address
from .scan_bits import score_bits
from .scan_data import ScanCalls, ScanModel, ScanWork
from .scan_rows import find_address, set_sides, sides_address

# np.int64, as every integer that goes into a large kernel: it would be compiled for each literal
MODE_PRIOR, MODE_COLUMNS = np.int64(0), np.int64(1)
NO_RULE = np.int64(-1)
"""In place of a node."""
LEAN = 10.0
"""Rows that a lean towards a column is worth in the Dirichlet of the weights."""


@inlined
def put_rule(work, tree, node):
    """Give a node the rule drawn last."""
    tree.feature[node] = work.feature[0]
    tree.threshold[node] = work.cutpoint[0]
    for f in range(tree.weights.shape[1]):
        tree.weights[node, f] = work.weights[f]


@inlined
def log_leaning(model, work, weights):
    """Log density of the mixture over columns, relative to the prior's."""
    p = weights.shape[0]
    a = model.prior.weight_prior
    total = 0.0
    for f in range(p):
        total += work.share[f] * weights[f] ** LEAN
    constant = math.lgamma(p * a + LEAN) - math.lgamma(p * a) + math.lgamma(a)
    return math.log(max(total, 1e-300)) + constant - math.lgamma(a + LEAN)


@inlined
def draw_weights(model, work, mode, rng):
    """Weights into ``work.weights``; their log density."""
    p = work.weights.shape[0]
    a = model.prior.weight_prior
    lean_to = -1
    if mode == MODE_COLUMNS:
        u = rng.random()
        for f in range(p):
            if work.share[f] > 0.0:
                lean_to = f
                u -= work.share[f]
                if u < 0.0:
                    break
    total = 0.0
    for f in range(p):
        w = max(rng.standard_gamma(a + LEAN if f == lean_to else a), 1e-300)
        work.weights[f] = w
        total += w
    for f in range(p):
        work.weights[f] /= total
    log_density = log_weights(model.prior, work.weights)
    if mode == MODE_COLUMNS:
        log_density += log_leaning(model, work, work.weights)
    return log_density


@inlined
def log_projected(model, work, weights, threshold):
    _, _, _, density = sweep_projection(model, work, weights, threshold)
    return math.log(density) if density > 0.0 else -np.inf


@kernel
def weigh_apart(model, work, tree, node, left, right, mode):
    """Scan the rows found last: (log of all weight, log density of the rule of a node).

    ``node`` -1 asks for no density; ``left`` and ``right`` are the sides, see ``set_sides``. The
    first is minus infinity where there is no rule to draw.
    """
    never_inline()
    set_sides(model, work, tree, left, right)
    score_bits(model, work)
    if work.weights.shape[0] == 0:
        if node < 0:
            return scan(model, work, NOTHING, 0.0)
        return scan(model, work, tree.feature[node], tree.threshold[node])
    everything = 0.0
    if mode == MODE_COLUMNS:
        everything, _ = scan(model, work, NOTHING, 0.0)
    if node < 0:
        return everything, -np.inf
    log_density = log_weights(model.prior, tree.weights[node])
    if mode == MODE_COLUMNS:
        log_density += log_leaning(model, work, tree.weights[node])
    log_density += log_projected(model, work, tree.weights[node], tree.threshold[node])
    return everything, log_density


@kernel
def draw_apart(model, work, mode, rng):
    """Draw a rule from what ``weigh`` left; its log density."""
    never_inline()
    if work.weights.shape[0] == 0:
        work.feature[0], work.cutpoint[0], log_density = draw_from_scan(model, work, rng)
        return log_density
    work.feature[0] = -1
    log_density = draw_weights(model, work, mode, rng)
    cells, total, widths, _ = sweep_projection(model, work, work.weights, -1.0)
    work.cutpoint[0], density = draw_cell(model, work, cells, total, widths, rng)
    return log_density + math.log(density)


_weigh, _weigh_address = opaque(weigh_apart, returns=types.UniTuple(types.float64, 2))
_draw, _draw_address = opaque(draw_apart, returns=types.float64)


@inlined
def weigh(model, work, tree, node, left, right, mode):
    """See ``weigh_apart``."""
    return _weigh(model.calls.weigh, (model, work, tree, node, left, right, mode))


@inlined
def draw_weighed(model, work, mode, rng):
    """See ``draw_apart``."""
    return _draw(model.calls.draw, (model, work, mode, rng))


def connect(model: ScanModel, work: ScanWork, tree: Tree, rng: np.random.Generator) -> ScanModel:
    """The model with the addresses of its kernels, compiled now or loaded from the cache."""
    calls = ScanCalls(
        columns=sweep_address(model, work, 0, 0, 0, 0.0, work.weights),
        weigh=_weigh_address(model, work, tree, 0, 0, 0, 0),
        draw=_draw_address(model, work, 0, rng),
        bins=0,
        column=0,
        find=0,
        sides=0,
        project=0,
    )
    if model.data.code.size:
        calls = calls._replace(
            bins=bins_address(model, work, 0, work.weights),
            column=column_address(model, work, False, 0, 0.0, 0, 0),
            find=find_address(model, work, tree, 0, 0, 0, 0),
            sides=sides_address(model, work, tree, 0, 0, 0, 0),
            project=project_address(model, work, work.weights, 0, 0),
        )
    return model._replace(calls=calls)


@inlined
def draw_rule_by_scan(model, work, tree, left, right, mode, rng):
    """Draw a rule for the rows found last with these sides; its log density, -inf if none."""
    everything, _ = weigh(model, work, tree, NO_RULE, left, right, mode)
    return draw_weighed(model, work, mode, rng) if everything > -np.inf else -np.inf


@kernel
def draw_threshold_by_scan(model, work, tree, node, left, right, rng):
    """A new threshold for a node, its column kept; log density."""
    set_sides(model, work, tree, left, right)
    score_bits(model, work)
    work.bins.close[tree.feature[node]] = 1
    threshold, log_density = draw_threshold(model, work, tree.feature[node], rng)
    tree.threshold[node] = threshold
    return log_density


@kernel
def log_threshold_by_scan(model, work, tree, node, left, right):
    set_sides(model, work, tree, left, right)
    score_bits(model, work)
    work.bins.close[tree.feature[node]] = 1
    return log_threshold_density(model, work, tree.feature[node], tree.threshold[node])
