"""One sweep of informed moves over a soft tree, each accepted or refused on its own.

Where leaf means are explicit, the moves see them integrated out, and a draw of all means given the
tree ends the sweep: the pair leaves the joint posterior invariant. Where leaf probabilities are,
each move proposes them, too (``leaf_probabilities``).

Of small trees a proposal is evaluated as a whole, of others by what it changed: then ``work`` keeps
the routing of the tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, Int1, Int2, function_type
from ..backend.units import unit
from ..moves.propose import PROPOSE, move_of
from ..sampling import accept
from ..scan.proposals import MODE_COLUMNS, MODE_PRIOR, Proposals
from ..scan.scores import fill_known_tables
from ..tree.nodes import Tree, changed_node, copy_tree, n_leaves
from .changed_labels import propose_changed
from .changed_means import keep_sums, products_of_change, put_sums_of_change, take_sums
from .collapsed import draw_means
from .data import CLASSES, COLLAPSED, LABELS, MEANS, Work
from .kept_routing import begin_change, can_keep, commit_change, has_room, keep_routing
from .leaf_probabilities import propose_probabilities, take_probabilities, weigh_state
from .noise import marginal_from_sums, update_noise
from .target import Model, likelihood, likelihood_as, log_posterior_as

COLUMNS_SHARE = 0.3
"""HMC-DFI: share of moves that scan all columns, which costs more than a prior draw of weights."""

SWEEP = function_type(
    types.float64, Model, PROPOSE, Proposals, Tree, Tree, Work, Int1, float, Int2, RNG
)
"""The type of both sweeps."""


@kernel
def node_of_change(model, tree, new, work):
    """The node below which all of a proposal's change is, if that is evaluated alone, else -1.

    Of LABELS the two ways propose leaf probabilities differently: the answer is then the same for
    the way back.
    """
    kept = work.kept
    if model.power[0] == 0.0 or not can_keep(kept, tree) or n_leaves(new) < kept.fewest:
        return -1
    node = changed_node(tree, new)
    return node if node >= 0 and has_room(kept, tree, new, node) else -1


@kernel
def likelihood_of_change(model, tree, new, work, node):
    """The log-likelihood of a proposal with the leaf means integrated out, by what it changed."""
    kept, leaves = work.kept, n_leaves(new)
    before, changed = begin_change(model.data, model.h, tree, new, kept, node)
    products_of_change(model.data, kept, leaves, changed)
    put_sums_of_change(kept, work, leaves, before, changed, (tree.size[node] + 1) // 2)
    return marginal_from_sums(model, work, leaves, kept.squares[0], new.sigma[0])


@inlined
def propose_move(propose, proposals, tree, new, entry, tally, rng):
    """Edit ``new``, a copy of ``tree``, by a move: (move, log q(back) - log q(forth))."""
    move = move_of(entry, rng)
    if move < 0:
        return move, -np.inf
    mode = MODE_COLUMNS if rng.random() < COLUMNS_SHARE else MODE_PRIOR
    tally[move, 1] += 1
    copy_tree(tree, new)
    return move, propose(proposals, tree, new, move, mode, rng)


@pointer_kernel
def sweep_integrated(model, propose, proposals, tree, new, work, moves, log_like, tally, rng):
    """The sweep where moves see leaf parameters integrated out; then an update of sigma."""
    family = CLASSES if model.family == CLASSES else COLLAPSED
    kept = work.kept
    kept.is_kept[0] = 0
    if model.family == MEANS:
        log_like = likelihood_as(model, family, tree, work)
    if family == COLLAPSED:
        fill_known_tables(proposals.scan, tree.sigma[0])
    current = log_posterior_as(model, family, tree, log_like)
    for k in range(moves.shape[0]):
        move, log_q = propose_move(propose, proposals, tree, new, moves[k], tally, rng)
        if log_q == -np.inf:
            continue
        node = node_of_change(model, tree, new, work) if family == COLLAPSED else -1
        if node >= 0:
            if kept.is_kept[0] == 0:
                keep_routing(model.data, model.h, tree, kept)
                keep_sums(model.data, tree, work)
            new_like = likelihood_of_change(model, tree, new, work, node)
        else:
            new_like = likelihood_as(model, family, new, work)
        proposed = log_posterior_as(model, family, new, new_like)
        if accept(proposed - current + log_q, rng):
            if node >= 0:
                commit_change(tree, new, kept, node)
                take_sums(work, n_leaves(new))
            else:
                kept.is_kept[0] = 0
            copy_tree(new, tree)
            current, log_like = proposed, new_like
            tally[move, 0] += 1
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
    kept.is_kept[0] = 0
    return log_like


@pointer_kernel
def sweep_labels(model, propose, proposals, tree, new, work, moves, log_like, tally, rng):
    """The sweep where leaf probabilities are a part of the state, which moves propose, too."""
    kept, log_likes = work.kept, model.leaves.log_likes
    kept.is_kept[0] = 0
    is_weighed = False  # the state's w, for all its leaves, is a part of ``current``
    log_likes[0] = log_like
    current = 0.0
    for k in range(moves.shape[0]):
        move, log_q = propose_move(propose, proposals, tree, new, moves[k], tally, rng)
        if log_q == -np.inf:
            continue
        node = node_of_change(model, tree, new, work)
        if node >= 0:
            if kept.is_kept[0] == 0:
                keep_routing(model.data, model.h, tree, kept)
            current = log_posterior_as(model, CLASSES, tree, 0.0)
            weight = propose_changed(model, tree, new, work, node, rng)
            is_weighed = False
        else:
            if not is_weighed:
                weight = weigh_state(model, tree, work, log_likes[0])
                current = log_posterior_as(model, CLASSES, tree, weight)
                is_weighed = True
            weight = propose_probabilities(model, new, work, rng)
        proposed = log_posterior_as(model, CLASSES, new, weight)
        if accept(proposed - current + log_q, rng):
            if node >= 0:
                commit_change(tree, new, kept, node)
            else:
                kept.is_kept[0] = 0
            copy_tree(new, tree)
            current = proposed
            tally[move, 0] += 1
            take_probabilities(model, tree)
    return log_likes[0]


def sweep_of_family(family: int) -> Any:
    """The kernel of these two; of two because either has much that the other has no use for."""
    return sweep_labels if family == LABELS else sweep_integrated


unit(sweep_integrated, SWEEP, seconds=9)
unit(sweep_labels, SWEEP, seconds=12)
