"""Class probabilities of the leaves as a part of a chain's state, for the likelihood of ``labels``.

The target is prior(T) Dir(p) L(T, p)^power. A move between trees proposes T' and, whatever p was,
probabilities p' from a density q(. | T') that depends on the tree (and on h and the power) alone.
With

    w(T, p) = log [Dir(p) L(T, p)^power / q(p | T)],

w' - w takes the place of the difference of log-likelihoods in the acceptance. exp(w) averaged over
q is the likelihood with p integrated out, so the closer q is to the law of p given the tree, the
closer the moves are to those over trees alone. ``leaf_proposal`` has it.

Within a tree, p is drawn by way of a leaf for each row, which is exact at power 1; at other powers,
and where rows have weights, by a Metropolis step with q as the proposal.
"""

from __future__ import annotations

from ..backend.jit import inlined, kernel
from ..sampling import accept, tempered
from ..tree.nodes import n_leaves
from .data import DRAWN, VALUE
from .leaf_proposal import (
    draw_dirichlet,
    draw_fitted,
    fit_probabilities,
    log_dirichlet,
    log_fitted,
)
from .target import evaluate_at, likelihood


@kernel
def draw_probabilities(concentration, leaves, out, rng):
    """``concentration`` is [leaves, K], or [1, K] for all leaves alike."""
    for k in range(leaves):
        draw_dirichlet(concentration[k if concentration.shape[0] > 1 else 0], out[k], rng)


@kernel
def log_prior_of_probabilities(leaves, p, n_leaf):
    total = 0.0
    for k in range(n_leaf):
        total += log_dirichlet(leaves.prior[0], p[k])
    return total


@inlined
def log_weight_of(model, tree, p, log_like):
    """w of the tree with these probabilities; ``fit_probabilities`` of this tree came before."""
    log_prior = log_prior_of_probabilities(model.leaves, p, n_leaves(tree))
    log_q = log_fitted(model.leaves, n_leaves(tree), p)
    return log_prior + tempered(model.power[0], log_like) - log_q


@kernel
def weigh_state(model, tree, work, log_like):
    """w of the state, whose log-likelihood is given."""
    model.leaves.log_likes[0] = log_like
    fit_probabilities(model, tree, work)
    return log_weight_of(model, tree, model.leaves.p, log_like)


@kernel
def propose_probabilities(model, tree, work, rng):
    """Draw ``new_p`` for the tree from q; returns its w."""
    leaves = model.leaves
    fit_probabilities(model, tree, work)
    draw_fitted(leaves, n_leaves(tree), leaves.new_p, rng)
    leaves.log_likes[1] = 0.0
    if model.power[0] != 0.0:
        routed = True
        leaves.log_likes[1] = evaluate_at(model, leaves.new_p, tree, work, VALUE, routed)
    return log_weight_of(model, tree, leaves.new_p, leaves.log_likes[1])


@kernel
def take_probabilities(model, tree):
    """The proposed ones, for the tree that they were proposed for; returns the log-likelihood."""
    leaves = model.leaves
    for k in range(n_leaves(tree)):
        for m in range(leaves.p.shape[1]):
            leaves.p[k, m] = leaves.new_p[k, m]
    leaves.log_likes[0] = leaves.log_likes[1]
    return leaves.log_likes[0]


@kernel
def draw_rows(model, tree, work, rng):
    """Draw each row's leaf given its label, and count rows by leaf and class into ``rows``.

    Times the power, so that Dir(prior + rows) is the law of p given these rows at power 1, and
    near that of p given the tree at others.
    """
    out, counts, power = model.leaves.rows, work.counts, model.power[0]
    if power != 0.0:
        for r in range(work.uniform.shape[0]):
            work.uniform[r] = rng.random()
        routed = False
        evaluate_at(model, model.leaves.p, tree, work, DRAWN, routed)
    for k in range(n_leaves(tree)):
        for m in range(out.shape[1]):
            out[k, m] = 0.0 if power == 0.0 else power * counts[0, k, m]


@kernel
def refresh_probabilities(model, tree, work, log_like, rng):
    """A step of p given the tree; returns the log-likelihood after it."""
    leaves = model.leaves
    if model.power[0] == 1.0 and model.data.weight.shape[0] == 0:
        draw_rows(model, tree, work, rng)
        for k in range(n_leaves(tree)):
            for m in range(leaves.rows.shape[1]):
                leaves.concentration[k, m] = leaves.rows[k, m] + leaves.prior[0, m]
        draw_probabilities(leaves.concentration, n_leaves(tree), leaves.p, rng)
        routed = True
        return evaluate_at(model, leaves.p, tree, work, VALUE, routed)
    weight = weigh_state(model, tree, work, log_like)
    if accept(propose_probabilities(model, tree, work, rng) - weight, rng):
        return take_probabilities(model, tree)
    return log_like


@kernel
def start_probabilities(model, tree, work, rng):
    """From their prior; returns the log-likelihood."""
    draw_probabilities(model.leaves.prior, n_leaves(tree), model.leaves.p, rng)
    return likelihood(model, tree, work)
