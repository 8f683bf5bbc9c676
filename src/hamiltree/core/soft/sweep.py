"""One sweep of informed moves over a soft tree, each accepted or refused on its own.

Where leaf means are explicit, the moves see them integrated out, and a draw of all means given the
tree ends the sweep: the pair leaves the joint posterior invariant. Where leaf probabilities are,
each move proposes them, too (``leaf_probabilities``).
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..backend.jit import kernel
from ..backend.records import RNG, Int1, Int2, function_type
from ..backend.units import unit
from ..moves.propose import PROPOSE, move_of
from ..sampling import accept
from ..scan.proposals import MODE_COLUMNS, MODE_PRIOR, Proposals
from ..scan.scores import fill_known_tables
from ..tree.nodes import Tree, copy_tree, n_leaves
from .collapsed import draw_means
from .data import CLASSES, COLLAPSED, LABELS, MEANS, Work
from .leaf_probabilities import propose_probabilities, take_probabilities, weigh_state
from .noise import update_noise
from .target import Model, likelihood, likelihood_as, log_posterior_as

COLUMNS_SHARE = 0.3
"""HMC-DFI: share of moves that scan all columns, which costs more than a prior draw of weights."""

SWEEP = function_type(
    types.float64, Model, PROPOSE, Proposals, Tree, Tree, Work, Int1, float, Int2, RNG
)
"""The type of ``informed_sweep``."""


@kernel
def informed_sweep(model, propose, proposals, tree, new, work, moves, log_like, tally, rng):
    """Attempt these moves one by one, then update sigma; returns the log-likelihood."""
    labelled = model.family == LABELS
    family = CLASSES if model.family == CLASSES or labelled else COLLAPSED
    if labelled:
        log_like = weigh_state(model, tree, work, log_like)
    if model.family == MEANS:
        log_like = likelihood_as(model, family, tree, work)
    if family == COLLAPSED:
        fill_known_tables(proposals.scan, tree.sigma[0])
    current = log_posterior_as(model, family, tree, log_like)
    for k in range(moves.shape[0]):
        move = move_of(moves[k], rng)
        if move < 0:
            continue
        mode = MODE_COLUMNS if rng.random() < COLUMNS_SHARE else MODE_PRIOR
        tally[move, 1] += 1
        copy_tree(tree, new)
        log_q = propose(proposals, tree, new, move, mode, rng)
        if log_q == -np.inf:
            continue
        if labelled:
            new_like = propose_probabilities(model, new, work, rng)
        else:
            new_like = likelihood_as(model, family, new, work)
        proposed = log_posterior_as(model, family, new, new_like)
        if accept(proposed - current + log_q, rng):
            copy_tree(new, tree)
            current, log_like = proposed, new_like
            tally[move, 0] += 1
            if labelled:
                take_probabilities(model, tree)
    if labelled:
        return model.leaves.log_likes[0]
    if family == COLLAPSED:
        log_like = update_noise(model, tree, work, rng)
    if model.family == MEANS:
        likelihood_as(model, family, tree, work)  # leaves the law of the means in ``work``
        draw_means(model.leaf_prior, work, n_leaves(tree), model.power[0], work.draws, rng)
        k = 0
        for i in range(tree.n_nodes[0]):
            if tree.size[i] == 1:
                tree.value[i] = work.draws[k]
                k += 1
        log_like = likelihood(model, tree, work)
    return log_like


unit(informed_sweep, SWEEP)
