"""Regression with explicit leaf means: the paper's likelihood."""

from __future__ import annotations

import math

from .buffers import MEANS
from .jit import inlined
from .routing import add_four, add_scaled, dot, rows_of, scale_into, three_dots

LOG_2PI = math.log(2.0 * math.pi)


@inlined
def combine_leaves(out, scale, a, factor, weights, work, n_leaf, base, n):
    """out = scale x a + factor x sum over leaves of weight x phi."""
    scale_into(out, scale, a)
    j = 0
    while j + 4 <= n_leaf:
        add_four(
            out,
            factor * weights[j],
            rows_of(work.reach, base, work.leaf[j], n),
            factor * weights[j + 1],
            rows_of(work.reach, base, work.leaf[j + 1], n),
            factor * weights[j + 2],
            rows_of(work.reach, base, work.leaf[j + 2], n),
            factor * weights[j + 3],
            rows_of(work.reach, base, work.leaf[j + 3], n),
        )
        j += 4
    while j < n_leaf:
        add_scaled(out, factor * weights[j], rows_of(work.reach, base, work.leaf[j], n))
        j += 1


@inlined
def phi_or(other, work, n_leaf, k, base, n):
    """phi of leaf k, or ``other`` behind the last."""
    return rows_of(work.reach, base, work.leaf[k], n) if k < n_leaf else other


@inlined
def put_means(family, tree, work, n_leaf):
    """The leaves' means into the table, where ``residual_means`` wants them."""
    if family == MEANS:
        for k in range(n_leaf):
            work.table[k, 0] = tree.value[work.leaf[k]]


@inlined
def residual_means(data, work, n_leaf, start, base, n, with_gradient):
    """y - fit of a block into ``slope[1]``; returns its sum of squares."""
    residual = work.slope[1, :n]
    y, means = data.y[start : start + n], work.table[:, 0]
    combine_leaves(residual, 1.0, y, -1.0, means, work, n_leaf, base, n)
    if not with_gradient:
        return dot(residual, residual)
    squares = 0.0
    for k in range(0, n_leaf + 1, 3):  # its products with the leaves' phi, and with itself
        dots = three_dots(
            residual,
            phi_or(residual, work, n_leaf, k, base, n),
            phi_or(residual, work, n_leaf, k + 1, base, n),
            phi_or(residual, work, n_leaf, k + 2, base, n),
        )
        for j, product in enumerate(dots):
            if k + j < n_leaf:
                work.d_value[work.leaf[k + j]] += product
            elif k + j == n_leaf:
                squares = product
    return squares


@inlined
def finish_means(data, tree, work, n_leaf, squares, with_gradient):
    n = data.n_rows
    sigma = tree.sigma[0]
    precision = 1.0 / (sigma * sigma)
    if with_gradient:
        for k in range(n_leaf):
            work.d_value[work.leaf[k]] *= precision
        work.d_sigma[0] = (squares * precision - n) / sigma
    return -0.5 * (n * (LOG_2PI + 2.0 * math.log(sigma)) + squares * precision)
