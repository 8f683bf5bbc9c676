"""What h="learn" adds to a chain: h, and for classification the leaf probabilities, as state.

h: log h is normal, cut off at ``H_RANGE``; one for all columns, or one a column. One slice-sampling
step an iteration, or one for each column that the tree splits on; the others have their prior.

Classification: the kernels between trees know the Dirichlet-multinomial D(T, h) of soft counts, but
the target is Dir(p) L(T, p, h) with the likelihood L of ``labels``. With any density q(p | T, h),

    Dir(p) L(T, p, h) = D(T, h) q(p | T, h) exp(w),  w = log [Dir(p) L / (D q)].

So a step T -> T' that is reversible for D becomes a proposal of (T', p') with p' from q(. | T'),
and min(1, exp(w' - w)) makes it reversible for the target. q is a Dirichlet a leaf whose counts are
those of a few rounds of expectation and maximisation.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from ..backend.jit import inlined, kernel
from ..backend.records import CONSTANT, SCRATCH, Float1, Float2, Int1, Int2, Record
from ..sampling import accept, tempered
from ..tree.nodes import Tree, copy_tree, n_leaves
from .data import CLASSES
from .labels import LABELS, SMALLEST_PROBABILITY
from .target import likelihood

ROUNDS = 4
"""Of expectation and maximisation, from leaves that all predict alike."""
MOST_TRIES = 200
"""Of a slice, which shrinks by a third or so each: a guard against a likelihood that is NaN."""


class LearnedH(Record, role="state"):
    """State and scratch of one chain beside its ``State``."""

    log_median: float
    """Of the prior of h, as are the next two."""
    log_sd: float
    log_mass: float
    """Log of the mass of the normal inside the range."""
    log_low: float
    """Ends of the range of log h."""
    log_high: float
    by_feature: bool
    p: Float2
    """[max_leaves, K]; class probabilities of the leaves in preorder; [.., 1] for regression."""
    new_p: Annotated[Float2, SCRATCH]
    concentration: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; of q(. | T, h) for the tree that was fitted last."""
    rows: Float2
    """[max_leaves, K]; rows of each class that were drawn to each leaf."""
    spare: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; counts that nobody asks for."""
    prior: Annotated[Float2, CONSTANT]
    """[1, K]; class_prior."""
    uniform: Annotated[Float1, SCRATCH]
    """[padded rows]"""
    empty: Annotated[Float1, CONSTANT]
    """[0]"""
    log_weight: Float1
    """[1]; w of the state."""
    log_like: Float1
    """[1]; log L of the state, which is D's log-likelihood in ``State``."""
    before: Tree
    """Where a refused step goes back to."""
    like_before: Float1
    """[1]; D's log-likelihood there."""
    accepted_before: Int1
    """[informed moves]; how many of each had been accepted there."""
    nuts_tally: Int2
    """[2, 2]; steps of NUTS accepted and proposed, in warm-up and sampling."""
    labels: Annotated[Any, LABELS]
    """``label_likelihood``."""


@kernel
def labels(model, tree, work, learning, p, uniform, counts, routed):
    likelihood_of = learning.labels
    return likelihood_of(model.data, model.h, tree, work, p, uniform, counts, routed)


# ------------------------------------------------------------------ h


@kernel
def log_prior_of_log_h(learning, log_h):
    z = (log_h - learning.log_median) / learning.log_sd
    constant = math.log(learning.log_sd) + 0.5 * math.log(2.0 * math.pi) + learning.log_mass
    return -0.5 * z * z - constant


@kernel
def log_prior_of_h(model, learning):
    """Density by h itself, of all that are learned."""
    total = 0.0
    for f in range(model.h.shape[0] if learning.by_feature else 1):
        log_h = math.log(model.h[f])
        total += log_prior_of_log_h(learning, log_h) - log_h
    return total


@kernel
def draw_log_h(learning, rng):
    """From the prior."""
    low, high = learning.log_low, learning.log_high
    while True:
        log_h = learning.log_median + learning.log_sd * rng.standard_normal()
        if low <= log_h <= high:
            return log_h


@kernel
def set_columns(model, first, last, log_h):
    for f in range(first, last):
        model.h[f] = math.exp(log_h)


@kernel
def learned_likelihood(model, tree, work, learning):
    """The log-likelihood that h is learned by, with the h of the model."""
    if model.power[0] == 0.0:
        return 0.0
    if model.family != CLASSES:
        return likelihood(model, tree, work)
    return labels(model, tree, work, learning, learning.p, learning.empty, learning.spare, False)


@kernel
def splits_on(tree, first, last):
    """Whether the tree's likelihood depends on the h of these columns."""
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1 and (tree.weights.shape[1] > 0 or first <= tree.feature[i] < last):
            return True
    return False


@inlined
def slice_h(model, tree, work, learning, first, last, log_like, rng):
    """A slice-sampling step of the h that the columns first:last share; the log-likelihood after.

    The first interval is the whole range of the prior, so that nothing need be stepped out.
    """
    now = math.log(model.h[first])
    height = log_prior_of_log_h(learning, now) + tempered(model.power[0], log_like)
    height += math.log(max(rng.random(), 1e-300))
    low, high = learning.log_low, learning.log_high
    for _ in range(MOST_TRIES):
        log_h = low + rng.random() * (high - low)
        set_columns(model, first, last, log_h)
        new_like = learned_likelihood(model, tree, work, learning)
        if log_prior_of_log_h(learning, log_h) + tempered(model.power[0], new_like) > height:
            return new_like
        if log_h < now:
            low = log_h
        else:
            high = log_h
    set_columns(model, first, last, now)
    return log_like


@kernel
def update_h(model, tree, work, learning, log_like, rng):
    """Each learned h given the rest; returns the log-likelihood that it is learned by."""
    p = model.h.shape[0]
    width = 1 if learning.by_feature else p
    for first in range(0, p, width):
        if splits_on(tree, first, first + width):
            log_like = slice_h(model, tree, work, learning, first, first + width, log_like, rng)
        else:
            set_columns(model, first, first + width, draw_log_h(learning, rng))
    return log_like


# ------------------------------------------------------------------ leaf probabilities


@kernel
def draw_probabilities(concentration, leaves, out, rng):
    for k in range(leaves):
        total = 0.0
        for m in range(out.shape[1]):
            out[k, m] = max(rng.standard_gamma(concentration[k, m]), SMALLEST_PROBABILITY)
            total += out[k, m]
        for m in range(out.shape[1]):
            out[k, m] = max(out[k, m] / total, SMALLEST_PROBABILITY)


@kernel
def log_dirichlet(concentration, probabilities, leaves):
    """``concentration`` is [leaves, K], or [1, K] for all leaves alike."""
    total = 0.0
    for k in range(leaves):
        row = concentration[k if concentration.shape[0] > 1 else 0]
        mass = 0.0
        for m in range(row.shape[0]):
            mass += row[m]
            total += (row[m] - 1.0) * math.log(probabilities[k, m]) - math.lgamma(row[m])
        total += math.lgamma(mass)
    return total


@kernel
def fit_probabilities(model, tree, work, learning, guess):
    """Fill ``concentration``, that of q(. | T, h); ``guess`` is scratch, [max_leaves, K]."""
    prior, out = model.leaf_prior.class_prior, learning.concentration
    leaves, classes = n_leaves(tree), model.leaf_prior.class_prior.shape[0]
    for k in range(leaves):
        for m in range(classes):
            guess[k, m] = 1.0
            out[k, m] = 0.0
    if model.power[0] != 0.0:
        for this in range(ROUNDS):
            routed = this > 0
            labels(model, tree, work, learning, guess, learning.empty, out, routed)
            for k in range(leaves):
                mass = 0.0
                for m in range(classes):
                    mass += out[k, m] + prior[m]
                for m in range(classes):
                    guess[k, m] = (out[k, m] + prior[m]) / mass
    for k in range(leaves):
        for m in range(classes):
            out[k, m] += prior[m]


@inlined
def log_weight_of(model, tree, work, learning, p, log_d):
    """(w, log L) of the tree with these probabilities; ``fit_probabilities`` came before."""
    if model.power[0] == 0.0:
        return 0.0, 0.0
    routed = True
    log_like = labels(model, tree, work, learning, p, learning.empty, learning.spare, routed)
    log_prior = log_dirichlet(learning.prior, p, n_leaves(tree))
    log_q = log_dirichlet(learning.concentration, p, n_leaves(tree))
    return log_prior + log_like - log_d - log_q, log_like


@kernel
def correct(model, tree, work, learning, log_like, rng):
    """Accept the step from ``learning.before`` to ``tree``, or undo it.

    ``log_like`` is D's, of ``tree``; returned are D's after it, and whether it was accepted.
    """
    fit_probabilities(model, tree, work, learning, learning.new_p)
    draw_probabilities(learning.concentration, n_leaves(tree), learning.new_p, rng)
    log_weight, new_like = log_weight_of(model, tree, work, learning, learning.new_p, log_like)
    if accept(log_weight - learning.log_weight[0], rng):
        for k in range(n_leaves(tree)):
            for m in range(learning.p.shape[1]):
                learning.p[k, m] = learning.new_p[k, m]
        learning.log_weight[0] = log_weight
        learning.log_like[0] = new_like
        return log_like, True
    copy_tree(learning.before, tree)
    return learning.like_before[0], False


@kernel
def refresh(model, tree, work, learning, log_like, rng):
    """Draw each row's leaf, then the probabilities given these, and weigh the result.

    ``log_like`` is D's, of the tree with the h of now.
    """
    leaves = n_leaves(tree)
    for k in range(leaves):
        for m in range(learning.prior.shape[1]):
            learning.rows[k, m] = 0.0
    if model.power[0] != 0.0:
        for r in range(learning.uniform.shape[0]):
            learning.uniform[r] = rng.random()
        uniform, rows, routed = learning.uniform, learning.rows, False
        labels(model, tree, work, learning, learning.p, uniform, rows, routed)
    for k in range(leaves):
        for m in range(learning.prior.shape[1]):
            learning.concentration[k, m] = learning.rows[k, m] + learning.prior[0, m]
    draw_probabilities(learning.concentration, leaves, learning.p, rng)
    fit_probabilities(model, tree, work, learning, learning.new_p)
    learning.log_weight[0], learning.log_like[0] = log_weight_of(
        model, tree, work, learning, learning.p, log_like
    )
