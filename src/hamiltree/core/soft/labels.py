"""Classification with a likelihood that is normalised over labels, leaf probabilities explicit.

A row goes to leaf k with probability phi_k and gets label m there with probability p_k[m], so that
p(y_i) = sum_k phi_ik p_k[y_i]: unlike the Dirichlet-multinomial of soft counts (``classes``) this
is a distribution over labels whatever h is, so that h can be learned with it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from ..backend.jit import kernel, never_inline, row_kernel
from ..backend.records import Float1, Float2, function_type
from ..backend.units import unit
from ..tree.nodes import Tree
from ..tree.routing import add_scaled, dot, fill, reach_root, route_block
from .data import ADJOINT, SLOPE, TARGET, Data, Work
from .likelihoods import list_leaves

SMALLEST_PROBABILITY = 1e-300

LABELS = function_type(
    types.float64, Data, Float1, Tree, Work, Float2, Float1, Float2, types.boolean
)
"""The type of ``label_likelihood``."""


@row_kernel
def sum_of_logs(rows, a, real):
    never_inline()
    total = 0.0
    for r in range(real):
        total += math.log(max(rows[a, r], SMALLEST_PROBABILITY))
    return total


@row_kernel
def invert(rows, a, real, n):
    """1 / a of the real rows, and 0 of the padding."""
    never_inline()
    for r in range((n >> 3) << 3):
        rows[a, r] = 1.0 / max(rows[a, r], SMALLEST_PROBABILITY)
    for r in range(real, n):
        rows[a, r] = 0.0


@row_kernel
def multiply_by(rows, out, a, factor, start, n):
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        rows[out, r] = rows[a, r] * factor[first + np.uint64(r)]


@row_kernel
def count_below(rows, a, b, n):
    never_inline()
    count = 0.0
    for r in range((n >> 3) << 3):
        count += 1.0 if rows[a, r] < rows[b, r] else 0.0
    return count


@kernel
def label_likelihood(data, h, tree, work, probabilities, uniform, counts, routed):
    """log prod_i sum_k phi_ik p_k[y_i], and how many rows of each class belong to each leaf.

    ``counts`` [leaves, K]: expected given the probabilities; or, with ``uniform`` numbers for all
    rows (else it is empty), drawn. ``routed``: the same tree with the same h was the last to go
    through ``work``, so that its routing is used again where it was kept.
    """
    rows, leaf = work.rows, work.leaf
    n_leaf = list_leaves(tree, leaf)
    n_nodes = tree.n_nodes[0]
    fits = n_nodes * data.block_class.shape[0] <= work.n_routed
    for k in range(n_leaf):
        for m in range(counts.shape[1]):
            counts[k, m] = 0.0
    total = 0.0
    for b in range(data.block_class.shape[0]):
        start, real = data.block[b], data.block_rows[b]
        n = data.block[b + 1] - start
        reach = ADJOINT + work.n_adjoints
        if fits:
            reach += b * n_nodes
        if not (fits and routed):
            reach_root(rows, reach, real, n)
            route_block(data, h, tree, start, n, rows, reach, reach + work.n_routed, SLOPE)
        label = data.block_class[b]
        fill(rows, TARGET, 0.0, n)
        for k in range(n_leaf):
            add_scaled(rows, TARGET, probabilities[k, label], reach + leaf[k], n)
        total += sum_of_logs(rows, TARGET, real)
        if uniform.shape[0] == 0:
            invert(rows, TARGET, real, n)
            for k in range(n_leaf):
                share = dot(rows, reach + leaf[k], TARGET, n)
                counts[k, label] += probabilities[k, label] * share
            continue
        # a row belongs to the first leaf up to which the shares exceed its part of the whole
        multiply_by(rows, SLOPE, TARGET, uniform, start, n)
        fill(rows, TARGET, 0.0, n)
        before = 0.0
        for k in range(n_leaf - 1):
            add_scaled(rows, TARGET, probabilities[k, label], reach + leaf[k], n)
            upto = count_below(rows, SLOPE, TARGET, n)
            counts[k, label] += upto - before
            before = upto
        counts[n_leaf - 1, label] += real - before
    return total


unit(label_likelihood, LABELS)
