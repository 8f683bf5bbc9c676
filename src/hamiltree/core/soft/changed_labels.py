"""Leaf probabilities of a proposal of LABELS where trees are large: those of the changed leaves.

In ``leaf_probabilities`` a move proposes the probabilities of all leaves anew. Here only the leaves
below the node that changed get new ones, p_c', and those of the others, p_u, stay. The density
q(. | T', p_u) that they are drawn from depends on p_u, too, but not on p_c, and

    w(T, p) = log [Dir(p_c) L(T, p)^power / q(p_c | T, p_u)]

takes the place of the other w. Both directions of a move change the same leaves, so that the ratio
is exact. A proposal then takes work in proportion to the leaves that it changes; and fewer
probabilities are drawn, so that w varies less with them.

q is that of ``leaf_proposal`` for these leaves, with p(y_i) of all.
"""

from __future__ import annotations

from ..backend.jit import kernel
from ..sampling import tempered
from ..tree.nodes import ONE, ZERO, n_leaves
from ..tree.routing import dot, fill, scale_into, total_of
from .collapsed import width_of_sums
from .data import ADJOINT, EXPECTED, INFORMATION, REACHED
from .kept_routing import MIXTURE, OTHERS, begin_change
from .labels import (
    add_products,
    add_shares,
    divide_by,
    divide_by_root,
    invert,
    multiply_scaled,
    spread_of,
    sum_of_logs,
    sum_of_weighted_logs,
)
from .leaf_probabilities import log_prior_of_probabilities
from .leaf_proposal import (
    NEWTON_STEPS,
    SMALL_STEP,
    centre_by_rows,
    draw_fitted,
    log_fitted,
    step_to_mean,
    sum_precision,
)


@kernel
def mix_others(data, kept, p, others, before, were):
    """What the leaves that stay give p(y_i); ``were``: the leaves that go, after ``before``."""
    rows, vectors = kept.rows, kept.vectors
    for b in range(data.block_class.shape[0]):
        n, label, first = data.block[b + 1] - data.block[b], data.block_class[b], b * kept.n_places
        to = first + OTHERS
        fill(rows, to, 0.0, n)
        add_shares(rows, to, p, label, ZERO, vectors, first, ONE, 1 + before, n)
        add_shares(rows, to, p, label, before + were, vectors, first, 1 + before, 1 + others, n)


@kernel
def mix_changed(data, kept, p, b, leaf, at, count):
    """p(y_i) of a block, the changed leaves' share by ``p``; 1 of its padding.

    ``leaf``: their places, from ``at`` on.
    """
    rows = kept.rows
    start, real = data.block[b], data.block_rows[b]
    n, first = data.block[b + 1] - start, b * kept.n_places
    to = first + MIXTURE
    scale_into(rows, to, 1.0, first + OTHERS, n)
    add_shares(rows, to, p, data.block_class[b], ZERO, leaf, first, at, at + count, n)
    for r in range(real, n):
        rows[to, r] = 1.0
    if data.root.shape[1] > 0:
        divide_by(rows, to, data.root, start, real)


@kernel
def pass_over_changed(model, work, leaf, at, count, what):
    """Rows of the changed leaves, by the probabilities of the centre; and what the rows tell."""
    data, kept, p = model.data, work.kept, model.leaves.centre
    rows, counts, sums = kept.rows, work.counts, work.sums
    for k in range(count):
        for m in range(p.shape[1]):
            counts[0, k, m] = 0.0
    for k in range((count + 1) * width_of_sums(count)):
        sums[0, k] = 0.0
    for b in range(data.block_class.shape[0]):
        n, first = data.block[b + 1] - data.block[b], b * kept.n_places
        label, to = data.block_class[b], first + MIXTURE
        if what == REACHED:
            for k in range(count):
                counts[0, k, label] += total_of(rows, first + leaf[at + k], n)
            continue
        mix_changed(data, kept, p, b, leaf, at, count)
        invert(rows, to, n)
        for k in range(count):
            share = dot(rows, first + leaf[at + k], to, n)
            counts[0, k, label] += p[k, label] * share
        if what == INFORMATION:
            if data.root.shape[1] > 0:
                divide_by_root(rows, to, data.root, data.block[b], data.block_rows[b])
            for k in range(count):
                spread = spread_of(p[k, label], p.shape[1])
                multiply_scaled(work.rows, ADJOINT + k, spread, rows, first + leaf[at + k], to, n)
            add_products(work.rows, ADJOINT, count, sums, ZERO, n)


@kernel
def fit_changed(model, work, leaf, at, count):
    """Find q of the changed leaves, whose places are ``leaf`` from ``at`` on."""
    for what in (REACHED, EXPECTED):
        pass_over_changed(model, work, leaf, at, count, what)
        centre_by_rows(model, work, count)
    for _ in range(NEWTON_STEPS):
        pass_over_changed(model, work, leaf, at, count, INFORMATION)
        sum_precision(model, work, count)
        if step_to_mean(model, work, count) < SMALL_STEP:
            break


@kernel
def likelihood_of_changed(data, kept, p, leaf, at, count):
    """The log-likelihood with these probabilities of the changed leaves."""
    total = 0.0
    for b in range(data.block_class.shape[0]):
        start = data.block[b]
        n, to = data.block[b + 1] - start, b * kept.n_places + MIXTURE
        mix_changed(data, kept, p, b, leaf, at, count)
        if data.root.shape[1] > 0:
            total += sum_of_weighted_logs(kept.rows, to, data.root, start, n)
        else:
            total += sum_of_logs(kept.rows, to, n)
    return total


@kernel
def propose_changed(model, tree, new, work, node, rng):
    """Draw ``new_p`` for a proposal that changed what is below a node; its w less the state's.

    The routing of ``tree`` is kept, and there is room for what changed.
    """
    leaves, kept, power = model.leaves, work.kept, model.power[0]
    old_p, new_p, drawn = leaves.p, leaves.new_p, work.table
    before, changed = begin_change(model.data, model.h, tree, new, kept, node)
    were, others = (tree.size[node] + 1) // 2, n_leaves(new) - changed
    mix_others(model.data, kept, old_p, others, before, were)
    fit_changed(model, work, kept.old, ZERO, were)
    was = old_p[before : before + were]
    weight = log_prior_of_probabilities(leaves, was, were)
    weight -= log_fitted(leaves, were, was)
    weight += tempered(power, leaves.log_likes[0])
    fit_changed(model, work, kept.vectors, 1 + others, changed)
    draw_fitted(leaves, changed, drawn, rng)
    log_like = likelihood_of_changed(model.data, kept, drawn, kept.vectors, 1 + others, changed)
    leaves.log_likes[1] = log_like
    for k in range(n_leaves(new)):
        for m in range(new_p.shape[1]):
            if k < before:
                new_p[k, m] = old_p[k, m]
            elif k < before + changed:
                new_p[k, m] = drawn[k - before, m]
            else:
                new_p[k, m] = old_p[k - changed + were, m]
    new_weight = log_prior_of_probabilities(leaves, drawn, changed)
    new_weight -= log_fitted(leaves, changed, drawn)
    return new_weight + tempered(power, log_like) - weight
