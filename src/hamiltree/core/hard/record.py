"""The start of a chain of hard trees, and its kept draws."""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import tempered
from ..tree.nodes import ZERO, copy_tree, n_leaves
from ..tree.record import LOG_LIKELIHOOD, LOG_POSTERIOR, SIGMA, write_shape
from .leaves import draw_leaf, draw_leaf_given, draw_variance
from .moves import log_marginal, propose_grow, settle
from .partition import copy_cells
from .shapes import log_tree_prior

TRIES = 1000
"""Starts tried for a tree of the smallest size: the first one succeeds, unless rows are few."""


@kernel
def settle_new(model, state, at, log_rule):
    return settle(
        model, state.new_tree, state.new_cells, at, log_rule, state.spare, state.rule_work
    )


@kernel
def start_tree(model, state, rng):
    """The smallest allowed tree, with drawn rules; False where none was found."""
    tree, cells = state.new_tree, state.new_cells
    for _ in range(TRIES):
        tree.n_nodes[0] = 1
        tree.size[0] = 1
        tree.parent[0] = -1
        tree.depth[0] = 0
        tree.feature[0] = -1
        cells.start[0] = 0
        cells.stop[0] = cells.rows.shape[0]
        for k in range(cells.rows.shape[0]):
            cells.rows[k] = k
        possible = settle_new(model, state, 0, np.nan)
        while possible and n_leaves(tree) < model.shape.min_leaves:
            # draws its rule by the rows of ``state.cells``
            for k in range(cells.rows.shape[0]):
                state.cells.rows[k] = cells.rows[k]
            log_ratio, at, log_rule = propose_grow(model, state, rng)
            possible = log_ratio > -np.inf and settle_new(model, state, at, log_rule)
        if possible:
            for k in range(cells.rows.shape[0]):
                state.cells.rows[k] = cells.rows[k]
            copy_tree(tree, state.tree)
            copy_cells(cells, ZERO, state.cells, ZERO, tree.n_nodes[0])
            state.log_prior[0] = log_tree_prior(model.shape, tree, cells)
            state.log_like[0] = log_marginal(model, tree, cells)
            return True
    return False


@kernel
def draw_common_sd(model, state):
    """Shape and rate of the variance that all leaves share, given the tree."""
    shape, rate = model.leaf.shape, model.leaf.rate
    if model.power[0] != 0.0:
        shape += 0.5 * model.data.mass
        for i in range(state.tree.n_nodes[0]):
            if state.tree.size[i] == 1:
                rate += state.cells.spread[i]
    return shape, rate


@kernel
def record_hard_tree(model, state, block, rng):
    """Write the tree, its leaves' values and its densities.

    Leaf values: class counts, or mean and sd drawn from the leaf's posterior (from the prior where
    the likelihood is switched off). ``sigma`` is the root mean square of the sds over the rows.
    """
    tree, cells = state.tree, state.cells
    regression = model.leaf.class_prior.shape[0] == 0
    shared = 0.0
    if model.leaf.common:
        shape, rate = draw_common_sd(model, state)
        shared = math.sqrt(draw_variance(shape, rate, rng))
    row, leaf = write_shape(tree, block)
    squares = 0.0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1:
            continue
        stats = state.no_rows if regression and model.power[0] == 0.0 else cells.stats[i]
        out = block.leaf[leaf]
        if model.leaf.common:
            draw_leaf_given(model.leaf, stats, shared, out, rng)
        else:
            draw_leaf(model.leaf, stats, out, rng)
        if regression:
            squares += cells.stats[i, 0] * out[1] * out[1]
        leaf += 1
    scalars = block.scalars
    log_like = state.log_like[0]
    scalars[row, LOG_LIKELIHOOD] = log_like
    scalars[row, LOG_POSTERIOR] = state.log_prior[0] + tempered(model.power[0], log_like)
    scalars[row, SIGMA] = math.sqrt(squares / model.data.mass) if regression else np.nan
    for j in range(SIGMA + 1, scalars.shape[1]):  # other samplers' statistics
        scalars[row, j] = 0.0
