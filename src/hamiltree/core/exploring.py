"""One sweep of informed moves at a time, each accepted or refused on its own.

Where leaf means are explicit, the moves see them integrated out, and a draw of all means given the
tree ends the sweep: the pair leaves the joint posterior invariant.
"""

from __future__ import annotations

import numpy as np

from .buffers import CLASSES, COLLAPSED, MEANS
from .collapsed import solve_upper
from .informed import move_of, propose_informed
from .jit import inlined, kernel, never_inline, replacing
from .nodes import copy_tree, n_leaves
from .noise import update_noise
from .priors import draw_mean, log_prior
from .proposed_rules import MODE_COLUMNS, MODE_PRIOR
from .references import refer
from .rules import accept
from .scan_scores import fill_known_tables
from .target import evaluate, likelihood, tempered

COLUMNS_SHARE = 0.3
"""HMC-DFI: share of moves that scan all columns, which costs more than a prior draw of weights."""


_of_family = replacing("family")


@inlined
def collapse(model):
    """The same posterior with the leaf means integrated out."""
    family = CLASSES if model.family == CLASSES else COLLAPSED
    return refer(_of_family(model, (family,)))


@kernel
def draw_means(model, tree, work, draws, rng):
    """Leaf means given the rest, into ``draws``; ``work`` holds an evaluation of COLLAPSED."""
    leaves = n_leaves(tree)
    for k in range(leaves):
        if model.power[0] == 0.0:
            draws[k] = draw_mean(model.leaf_prior, rng)
        else:
            draws[k] = rng.standard_normal()
    if model.power[0] != 0.0:
        solve_upper(work.gram, leaves, draws)
        for k in range(leaves):
            draws[k] += work.table[k, 0]


@inlined
def log_posterior(model, tree, log_like):
    return log_prior(model.family, model.prior, model.leaf_prior, tree) + tempered(model, log_like)


@kernel
def informed_sweep(given, scan_model, scan_work, tree, new, work, sweep, log_like, tally, rng):
    """Attempt the moves of ``sweep`` one by one, then update sigma; returns the log-likelihood."""
    never_inline()
    model = collapse(given)
    if given.family == MEANS:
        log_like = likelihood(model, tree, work)
    if model.family != CLASSES:
        fill_known_tables(scan_model, scan_work, tree.sigma[0])
    current = log_posterior(model, tree, log_like)
    for k in range(sweep.shape[0]):
        move = move_of(sweep[k], rng)
        if move < 0:
            continue
        mode = MODE_COLUMNS if rng.random() < COLUMNS_SHARE else MODE_PRIOR
        tally[move, 1] += 1
        copy_tree(tree, new)
        log_q = propose_informed(scan_model, scan_work, tree, new, move, mode, rng)
        if log_q == -np.inf:
            continue
        new_like = likelihood(model, new, work)
        proposed = log_posterior(model, new, new_like)
        if accept(proposed - current + log_q, rng):
            copy_tree(new, tree)
            current, log_like = proposed, new_like
            tally[move, 0] += 1
    if model.family != CLASSES:
        log_like = update_noise(model, tree, work, rng)
    if given.family == MEANS:
        evaluate(model, tree, work, np.bool_(False))
        draws = work.counts[:, 0]
        draw_means(model, tree, work, draws, rng)
        k = 0
        for i in range(tree.n_nodes[0]):
            if tree.size[i] == 1:
                tree.value[i] = draws[k]
                k += 1
        log_like = likelihood(given, tree, work)
    return log_like
