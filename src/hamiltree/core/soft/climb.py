"""A search for the tree of highest log posterior, soft or hard, of HMC-DF.

Leaf probabilities, of the likelihood that is normalised over labels, are integrated out: their
density has no limit where its prior is below 1, and says nothing about the tree.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..backend.records import RNG, Float1, Int1
from ..backend.units import unit
from ..moves.propose import move_of
from ..sampling import LEAST_GAIN, accept_gain
from ..scan.proposals import MODE_COLUMNS
from ..scan.scores import fill_known_tables
from ..tree.nodes import Tree, copy_tree, n_leaves
from .data import CLASSES, LABELS, VALUE, Work, has_noise
from .hmc_steps import State
from .leaf_probabilities import log_weight_of, propose_probabilities
from .leaf_proposal import fit_probabilities
from .learned_h import HPrior, log_prior_of_h, set_columns
from .target import Model, evaluate, evaluate_at, log_posterior, log_posterior_as, moves_in
from .transforms import logit

SMALLEST_STEP = 1e-3
"""Steps of thresholds (as log odds), of log sigma and log h are of sizes from this to 1."""


@kernel
def log_posterior_of(model, h_prior, tree, work):
    """Log posterior of a tree; that of LABELS with the leaf probabilities integrated out.

    Where rows reach several leaves that is to second order, at the centre of ``leaf_proposal``,
    which becomes ``leaves.p``; ``log_integral`` is close.
    """
    leaves = model.leaves
    if model.family == LABELS:
        fit_probabilities(model, tree, work)
        for k in range(n_leaves(tree)):
            for m in range(leaves.p.shape[1]):
                leaves.p[k, m] = leaves.centre[k, m]
        log_like = evaluate_at(model, leaves.p, tree, work, VALUE, True)
        weight = log_weight_of(model, tree, leaves.p, log_like)
        total = log_posterior_as(model, CLASSES, tree, weight)
    else:
        total = log_posterior(model, tree, evaluate(model, model.family, tree, work, VALUE))
    return total + log_prior_of_h(model, h_prior) if h_prior.learned else total


@kernel
def log_integral(model, h_prior, tree, work, n, rng):
    """Log posterior of a tree of LABELS, leaf probabilities integrated out by n draws of them."""
    highest, total = -np.inf, 0.0
    for _ in range(n):
        weight = propose_probabilities(model, tree, work, rng)
        if weight > highest:
            total *= math.exp(highest - weight)
            highest = weight
        total += math.exp(weight - highest)
    value = log_posterior_as(model, CLASSES, tree, highest + math.log(total / n))
    return value + log_prior_of_h(model, h_prior) if h_prior.learned else value


@kernel
def nudge(value, rng):
    """A step of any size, small ones as likely as large ones."""
    return value + SMALLEST_STEP ** rng.random() * rng.standard_normal()


@kernel
def nudge_thresholds(state, h_prior, value, cold, rng):
    """A step of each threshold of a soft split; the log posterior after."""
    model, tree, work = state.model, state.tree, state.work
    for i in range(tree.n_nodes[0]):
        if model.h[0] == 0.0 or tree.size[i] == 1 or not moves_in(model, tree, i):
            continue
        before = tree.threshold[i]
        tree.threshold[i] = 1.0 / (1.0 + math.exp(-nudge(logit(before), rng)))
        proposed = log_posterior_of(model, h_prior, tree, work)
        if accept_gain(proposed - value, 0.0, cold, rng):
            value = proposed
        else:
            tree.threshold[i] = before
    return value


@kernel
def nudge_the_rest(state, h_prior, value, cold, rng):
    """The same of sigma, and of a learned h."""
    model, tree, work = state.model, state.tree, state.work
    if has_noise(model.family):
        before = tree.sigma[0]
        tree.sigma[0] = math.exp(nudge(math.log(before), rng))
        proposed = log_posterior_of(model, h_prior, tree, work)
        if accept_gain(proposed - value, 0.0, cold, rng):
            value = proposed
        else:
            tree.sigma[0] = before
    if not h_prior.learned:
        return value
    p = model.h.shape[0]
    width = 1 if h_prior.by_feature else p
    for first in range(0, p, width):
        log_h = math.log(model.h[first])
        wanted = nudge(log_h, rng)
        if not h_prior.log_low <= wanted <= h_prior.log_high:
            continue
        set_columns(model, first, first + width, wanted)
        proposed = log_posterior_of(model, h_prior, tree, work)
        if accept_gain(proposed - value, 0.0, cold, rng):
            value = proposed
        else:
            set_columns(model, first, first + width, log_h)
    state.proposals.scan.tables.sigma[0] = np.nan  # its tables may be for another h
    return value


@kernel
def climb_soft(state, sweep, h_prior, coldness, best, best_h, found, rng):
    """Sweeps from the state, one for each ``coldness``, whose target is the posterior to it.

    At infinity only what improves is accepted. ``best`` and ``best_h`` [p] become the best tree
    that was met and its h, if its log posterior is above ``found`` [1], which becomes it.
    """
    model, tree, new, work = state.model, state.tree, state.proposal, state.work
    propose, proposals = state.propose, state.proposals
    value = log_posterior_of(model, h_prior, tree, work)
    for t in range(coldness.shape[0]):
        cold = coldness[t]
        if has_noise(model.family):
            fill_known_tables(proposals.scan, tree.sigma[0])
        for k in range(sweep.shape[0]):
            move = move_of(sweep[k], rng)
            if move < 0:
                continue
            copy_tree(tree, new)
            log_q = propose(proposals, tree, new, move, MODE_COLUMNS, rng)
            if log_q == -np.inf:
                continue
            proposed = log_posterior_of(model, h_prior, new, work)
            if accept_gain(proposed - value, log_q, cold, rng):
                copy_tree(new, tree)
                value = proposed
        value = nudge_thresholds(state, h_prior, value, cold, rng)
        value = nudge_the_rest(state, h_prior, value, cold, rng)
        if value > found[0] + LEAST_GAIN:
            found[0] = value
            copy_tree(tree, best)
            for f in range(model.h.shape[0]):
                best_h[f] = model.h[f]


unit(log_posterior_of, Model, HPrior, Tree, Work)
unit(log_integral, Model, HPrior, Tree, Work, int, RNG)
unit(climb_soft, State, Int1, HPrior, Float1, Tree, Float1, Float1, RNG, seconds=2)
