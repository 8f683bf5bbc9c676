"""Classification with a likelihood that is normalised over labels, leaf probabilities explicit.

A row goes to leaf k with probability phi_k and gets label m there with probability p_k[m], so that
p(y_i) = sum_k phi_ik p_k[y_i]: unlike the Dirichlet-multinomial of soft counts (``classes``) this
is a distribution over labels whatever h is, so that h can be learned with it.
"""

from __future__ import annotations

import math

from .jit import inlined, opaque, row_kernel
from .likelihoods import list_leaves
from .routing import add_scaled, dot, fill, reach_root, route_block, rows_of

SMALLEST_PROBABILITY = 1e-300


@inlined
def sum_of_logs(a, real):
    total = 0.0
    for r in range(real):
        total += math.log(max(a[r], SMALLEST_PROBABILITY))
    return total


@inlined
def invert(a, real):
    """1 / a of the real rows, and 0 of the padding."""
    for r in range(a.shape[0]):
        a[r] = 1.0 / max(a[r], SMALLEST_PROBABILITY)
    for r in range(real, a.shape[0]):
        a[r] = 0.0


@inlined
def multiply_into(out, a, b):
    for r in range(out.shape[0]):
        out[r] = a[r] * b[r]


@inlined
def count_below(a, b):
    count = 0.0
    for r in range(a.shape[0]):
        count += 1.0 if a[r] < b[r] else 0.0
    return count


@row_kernel
def label_likelihood(data, h, tree, work, probabilities, uniform, counts, routed):
    """log prod_i sum_k phi_ik p_k[y_i], and how many rows of each class belong to each leaf.

    ``counts`` [leaves, K]: expected given the probabilities; or, with ``uniform`` numbers for all
    rows (else it is empty), drawn. ``routed``: the same tree with the same h was the last to go
    through ``work``, so that its routing is used again where it was kept.
    """
    n_leaf = list_leaves(tree, work.leaf)
    n_nodes = tree.n_nodes[0]
    fits = n_nodes * data.columns.shape[1] <= work.psi.shape[0]
    for k in range(n_leaf):
        for m in range(counts.shape[1]):
            counts[k, m] = 0.0
    total = 0.0
    for b in range(data.block_class.shape[0]):
        start, stop, real = data.block[b], data.block[b + 1], data.block_rows[b]
        n = stop - start
        base = start * n_nodes if fits else 0
        if not (fits and routed):
            reach_root(work.reach, base, real, n)
            route_block(
                data.columns, h, tree, start, stop, base, work.psi, work.reach, work.slope[0]
            )
        label = data.block_class[b]
        mixed = work.slope[1, :n]
        fill(mixed, 0.0)
        for k in range(n_leaf):
            add_scaled(mixed, probabilities[k, label], rows_of(work.reach, base, work.leaf[k], n))
        total += sum_of_logs(mixed, real)
        if uniform.shape[0] == 0:
            invert(mixed, real)
            for k in range(n_leaf):
                share = dot(rows_of(work.reach, base, work.leaf[k], n), mixed)
                counts[k, label] += probabilities[k, label] * share
            continue
        # a row belongs to the first leaf up to which the shares exceed its part of the whole
        part = work.slope[0, :n]
        multiply_into(part, mixed, uniform[start:stop])
        fill(mixed, 0.0)
        before = 0.0
        for k in range(n_leaf - 1):
            add_scaled(mixed, probabilities[k, label], rows_of(work.reach, base, work.leaf[k], n))
            upto = count_below(part, mixed)
            counts[k, label] += upto - before
            before = upto
        counts[n_leaf - 1, label] += real - before
    return total


call_labels, labels_address = opaque(label_likelihood)
