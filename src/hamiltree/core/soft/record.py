"""Kept draws of a chain of soft trees."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..tree.nodes import n_leaves
from ..tree.record import LOG_LIKELIHOOD, LOG_POSTERIOR, SIGMA, write_shape
from .collapsed import draw_means
from .data import CLASSES, COLLAPSED, LABELS, VALUE, has_noise
from .leaf_probabilities import draw_rows, log_prior_of_probabilities
from .target import evaluate, log_posterior


@kernel
def record_tree(model, tree, work, block, rng):
    """Write the tree, its leaves' values and its densities; returns the row of its scalars.

    Leaf values: class counts, explicit means, or means drawn given the rest where those are
    integrated out (from their prior where the likelihood is switched off). Of LABELS, the rows that
    were drawn to each leaf: given these its probabilities are Dirichlet, so that counts mean to
    predictions and intervals what they mean where probabilities are integrated out.
    """
    family = model.family
    log_like = evaluate(model, family, tree, work, VALUE)
    leaves = n_leaves(tree)
    drawn_with_p = model.power[0] == 1.0 and model.data.weight.shape[0] == 0
    if family == LABELS and not drawn_with_p:
        draw_rows(model, tree, work, rng)
    if family == COLLAPSED:
        draw_means(model.leaf_prior, work, leaves, model.power[0], work.draws, rng)
    row, first = write_shape(tree, block)
    k = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            if family == LABELS:
                for m in range(block.leaf.shape[1]):
                    block.leaf[first + k, m] = model.leaves.rows[k, m]
            elif family == CLASSES:
                for m in range(block.leaf.shape[1]):
                    block.leaf[first + k, m] = work.counts[0, k, m]
            else:
                block.leaf[first + k, 0] = work.draws[k] if family == COLLAPSED else tree.value[i]
            k += 1
    block.scalars[row, LOG_LIKELIHOOD] = log_like
    block.scalars[row, LOG_POSTERIOR] = log_posterior(model, tree, log_like)
    if family == LABELS:
        of_leaves = log_prior_of_probabilities(model.leaves, model.leaves.p, leaves)
        block.scalars[row, LOG_POSTERIOR] += of_leaves
    block.scalars[row, SIGMA] = tree.sigma[0] if has_noise(family) else np.nan
    return row
