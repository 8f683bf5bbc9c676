"""Classification with a likelihood that is normalised over labels, leaf probabilities explicit.

A row goes to leaf k with probability phi_k and gets label m there with probability p_k[m], so that
p(y_i) = sum_k phi_ik p_k[y_i]: unlike the Dirichlet-multinomial of soft counts (``classes``) this
is a distribution over labels whatever h is. The adjoint of leaf k is p_k[y_i] / p(y_i), which needs
no sums over rows: one pass gives value and gradient. Where the leaf probabilities come from is
said in ``leaf_probabilities``.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel, never_inline, pointer_kernel, row_kernel
from ..backend.units import unit
from ..tree.nodes import ONE
from ..tree.routing import (
    add_four,
    add_scaled,
    dot,
    dot_two_by_three,
    fill,
    scale_into,
    total_of,
)
from .collapsed import width_of_sums
from .data import DRAWN, EXPECTED, GRADIENT, INFORMATION, LABELS, REACHED, SLOPE, VALUE
from .likelihoods import LIKELIHOOD, back_through_block, clear_sums, goes_back, start_block, way_of

SMALLEST_PROBABILITY = 1e-300
SMALLEST_VARIANCE = 1e-24


# ------------------------------------------------------------------ loops over the rows of a block


@inlined
def log_of_normal(x):
    """The logarithm of a positive number that is not denormal, branch free (relative error 1e-15).

    With x = 2^k m and m between sqrt(1/2) and sqrt(2): log m = 2 artanh((m - 1) / (m + 1)).
    """
    bits = np.float64(x).view(np.int64)
    shifted = bits - np.int64(0x3FE6A09E667F3BCD)  # of sqrt(1/2): then k is rounded, not cut off
    k = np.float64(np.int32(shifted >> 52))
    m = np.int64((shifted & np.int64(0xFFFFFFFFFFFFF)) + np.int64(0x3FE6A09E667F3BCD)).view(
        np.float64
    )
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    t = 1.0 / 21.0
    t = t * z + 1.0 / 19.0
    t = t * z + 1.0 / 17.0
    t = t * z + 1.0 / 15.0
    t = t * z + 1.0 / 13.0
    t = t * z + 1.0 / 11.0
    t = t * z + 1.0 / 9.0
    t = t * z + 1.0 / 7.0
    t = t * z + 1.0 / 5.0
    t = t * z + 1.0 / 3.0
    return k * 0.6931471805599453 + 2.0 * s * (t * z + 1.0)


@row_kernel
def sum_of_logs(rows, a, n):
    never_inline()
    total = 0.0
    for r in range((n >> 3) << 3):
        total += log_of_normal(max(rows[a, r], SMALLEST_PROBABILITY))
    return total


@row_kernel
def sum_of_weighted_logs(rows, a, weights, start, n):
    never_inline()
    first = np.uint64(start)
    total = 0.0
    for r in range((n >> 3) << 3):
        log_of = log_of_normal(max(rows[a, r], SMALLEST_PROBABILITY))
        total += weights[0, first + np.uint64(r)] * log_of
    return total


@row_kernel
def divide_by(rows, a, weights, start, real):
    never_inline()
    first = np.uint64(start)
    for r in range(real):
        rows[a, r] /= weights[0, first + np.uint64(r)]


@row_kernel
def weight_below(rows, a, b, weights, start, n):
    never_inline()
    first = np.uint64(start)
    total = 0.0
    for r in range((n >> 3) << 3):
        total += weights[0, first + np.uint64(r)] if rows[a, r] < rows[b, r] else 0.0
    return total


@row_kernel
def invert(rows, a, n):
    never_inline()
    for r in range((n >> 3) << 3):
        rows[a, r] = 1.0 / max(rows[a, r], SMALLEST_PROBABILITY)


@row_kernel
def multiply_by(rows, out, a, factor, start, n):
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        rows[out, r] = rows[a, r] * factor[first + np.uint64(r)]


@row_kernel
def divide_by_root(rows, a, weights, start, real):
    never_inline()
    first = np.uint64(start)
    for r in range(real):
        rows[a, r] /= math.sqrt(weights[0, first + np.uint64(r)])


@row_kernel
def multiply_scaled(out, to, factor, rows, a, b, n):
    never_inline()
    for r in range((n >> 3) << 3):
        out[to, r] = factor * rows[a, r] * rows[b, r]


@row_kernel
def count_below(rows, a, b, n):
    never_inline()
    count = 0.0
    for r in range((n >> 3) << 3):
        count += 1.0 if rows[a, r] < rows[b, r] else 0.0
    return count


# ------------------------------------------------------------------ a block through a tree


@kernel
def put_probabilities(family, p, work, n_leaf):
    """Where all threads find them."""
    if family != LABELS:
        return
    table = work.table
    for k in range(n_leaf):
        for m in range(p.shape[1]):
            table[k, m] = p[k, m]


@kernel
def add_shares(rows, target, p, label, first, leaf, reach, start, stop, n):
    """Add the shares of some leaves in p(y_i); ``first``: the row of ``p`` of leaf ``start``."""
    k, q = start, first
    while k + 4 <= stop:
        add_four(
            rows,
            target,
            p[q, label],
            reach + leaf[k],
            p[q + 1, label],
            reach + leaf[k + 1],
            p[q + 2, label],
            reach + leaf[k + 2],
            p[q + 3, label],
            reach + leaf[k + 3],
            n,
        )
        k += 4
        q += 4
    while k < stop:
        add_scaled(rows, target, p[q, label], reach + leaf[k], n)
        k += 1
        q += 1


@kernel
def mix_leaves(work, n_leaf, label, reach, target, real, n):
    """p(y_i) of the rows of a block; 1 of its padding."""
    rows, leaf, p = work.rows, work.leaf, work.table
    scale_into(rows, target, p[0, label], reach + leaf[0], n)
    add_shares(rows, target, p, label, ONE, leaf, reach, ONE, n_leaf, n)
    for r in range(real, n):
        rows[target, r] = 1.0


@kernel
def draw_leaves(data, work, way, start, label, reach, target, slope, real, n):
    """Count rows by leaf, each drawn: the first up to which the shares exceed its part of all.

    A row with a weight goes to one leaf with all of it.
    """
    rows, leaf, p, counts = work.rows, work.leaf, work.table, work.counts
    weights, weighted = data.root, data.root.shape[1] > 0
    multiply_by(rows, slope, target, work.uniform, start, n)
    fill(rows, target, 0.0, n)
    before = 0.0
    for k in range(way.n_leaf - 1):
        add_scaled(rows, target, p[k, label], reach + leaf[k], n)
        if weighted:
            upto = weight_below(rows, slope, target, weights, start, n)
        else:
            upto = count_below(rows, slope, target, n)
        counts[way.part, k, label] += upto - before
        before = upto
    everything = total_of(rows, reach, n) if weighted else float(real)
    counts[way.part, way.n_leaf - 1, label] += everything - before


@kernel
def spread_of(p, classes):
    """Standard deviation of a class probability p, but for the rows; see ``leaf_proposal``."""
    return math.sqrt(max(p * (1.0 - p), SMALLEST_VARIANCE) / (classes - 1))


@kernel
def count_expected(work, way, label, reach, target, n):
    """Rows of this block's class that each leaf is expected to have; ``target`` is 1 / p(y_i)."""
    rows, leaf, p, counts = work.rows, work.leaf, work.table, work.counts
    for k in range(way.n_leaf):
        share = dot(rows, reach + leaf[k], target, n)
        counts[way.part, k, label] += p[k, label] * share


@kernel
def add_information(data, work, way, start, label, reach, adjoint, target, real, n):
    """Sums over rows of spread_k phi_k spread_l phi_l / p(y_i)^2, the lower triangle.

    ``target`` is 1 / p(y_i). Where rows have weights, so do two phi, of which one is taken back.
    """
    rows, leaf, p, sums, part = work.rows, work.leaf, work.table, work.sums, way.part
    n_leaf, classes = way.n_leaf, p.shape[1]
    if data.root.shape[1] > 0:
        divide_by_root(rows, target, data.root, start, real)
    for k in range(n_leaf):
        spread = spread_of(p[k, label], classes)
        multiply_scaled(rows, adjoint + k, spread, rows, reach + leaf[k], target, n)
    add_products(rows, adjoint, n_leaf, sums, part, n)


@kernel
def add_products(rows, first, count, sums, part, n):
    """Add the products of so many vectors with one another, the lower triangle."""
    width, last = width_of_sums(count), first + count - 1
    for a in range(0, count, 2):
        a0, a1 = first + a, min(first + a + 1, last)
        for c in range(0, min(a + 2, count), 3):
            t00, t01, t02, t10, t11, t12 = dot_two_by_three(
                rows, a0, a1, first + c, min(first + c + 1, last), min(first + c + 2, last), n
            )
            at = a * width + c
            sums[part, at] += t00
            sums[part, at + 1] += t01
            sums[part, at + 2] += t02
            at += width
            sums[part, at] += t10
            sums[part, at + 1] += t11
            sums[part, at + 2] += t12


@kernel
def labels_through_block(data, h, tree, work, way, b, what, first):
    """Route a block unless its routing is kept; returns its part of the log-likelihood.

    That is 0 where rows are counted instead; ``what`` says how.
    """
    start, n, reach, psi, adjoint, target = start_block(data, h, tree, work, way, b, first)
    rows, leaf, p, counts = work.rows, work.leaf, work.table, work.counts
    label, real = data.block_class[b], data.block_rows[b]
    asks_rows = what in (EXPECTED, INFORMATION)
    if what == REACHED:
        for k in range(way.n_leaf):
            counts[way.part, k, label] += total_of(rows, reach + leaf[k], n)
        return 0.0
    mix_leaves(work, way.n_leaf, label, reach, target, real, n)
    if what == DRAWN:
        slope = way.who * work.stride + SLOPE
        draw_leaves(data, work, way, start, label, reach, target, slope, real, n)
        return 0.0
    total = 0.0
    # Rows reach the leaves as often as their weights say: p(y_i) is a share of that. The adjoint
    # below is by what reaches a leaf, in which the weight cancels.
    if data.root.shape[1] > 0:
        divide_by(rows, target, data.root, start, real)
        if not asks_rows:
            total = sum_of_weighted_logs(rows, target, data.root, start, n)
    elif not asks_rows:
        total = sum_of_logs(rows, target, n)
    if what == VALUE or (what == GRADIENT and not goes_back(way, True)):
        return total
    invert(rows, target, n)
    if asks_rows:
        count_expected(work, way, label, reach, target, n)
        if what == INFORMATION:
            add_information(data, work, way, start, label, reach, adjoint, target, real, n)
        return 0.0
    for k in range(way.n_leaf):
        scale_into(rows, adjoint + leaf[k], p[k, label], target, n)
    back_through_block(data, h, tree, work, way, start, n, reach, psi, adjoint)
    return total


@pointer_kernel
def label_likelihood(family, data, leaf_prior, h, p, tree, work, what, routed):
    """log prod_i sum_k phi_ik p_k[y_i]; a gradient also fills the d_ arrays of ``work``.

    Where rows are asked for instead, they are in ``work.counts[0]``.
    """
    way = way_of(family, data, h, tree, work, what == GRADIENT, True)
    clear_sums(family, tree, work, way)
    put_probabilities(family, p, work, way.n_leaf)
    total = 0.0
    for b in range(data.block_class.shape[0]):
        total += labels_through_block(data, h, tree, work, way, b, what, not routed)
    return total


unit(label_likelihood, LIKELIHOOD, seconds=4)
