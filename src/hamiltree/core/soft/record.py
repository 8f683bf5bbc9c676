"""Kept draws of a chain of soft trees."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..tree.nodes import n_leaves
from ..tree.record import LOG_LIKELIHOOD, LOG_POSTERIOR, SIGMA, write_shape
from .collapsed import draw_means
from .data import CLASSES, COLLAPSED
from .target import VALUE, evaluate, log_posterior


@kernel
def record_tree(model, tree, work, block, rng):
    """Write the tree, its leaves' values and its densities; returns the row of its scalars.

    Leaf values: class counts, explicit means, or means drawn given the rest where those are
    integrated out (from their prior where the likelihood is switched off).
    """
    family = model.family
    log_like = evaluate(model, family, tree, work, VALUE)
    leaves = n_leaves(tree)
    if family == COLLAPSED:
        draw_means(model.leaf_prior, work, leaves, model.power[0], work.draws, rng)
    row, first = write_shape(tree, block)
    k = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            if family == CLASSES:
                for m in range(block.leaf.shape[1]):
                    block.leaf[first + k, m] = work.counts[0, k, m]
            else:
                block.leaf[first + k, 0] = work.draws[k] if family == COLLAPSED else tree.value[i]
            k += 1
    block.scalars[row, LOG_LIKELIHOOD] = log_like
    block.scalars[row, LOG_POSTERIOR] = log_posterior(model, tree, log_like)
    block.scalars[row, SIGMA] = np.nan if family == CLASSES else tree.sigma[0]
    return row
