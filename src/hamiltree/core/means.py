"""Regression with explicit leaf means: the paper's likelihood."""

from __future__ import annotations

import math

from .jit import inlined
from .routing import add_scaled, dot, rows_of, scale_into

LOG_2PI = math.log(2.0 * math.pi)


@inlined
def residual_means(data, tree, work, n_leaf, start, base, n, with_gradient):
    """y - fit of a block into ``slope[1]``; returns its sum of squares."""
    residual = work.slope[1, :n]
    scale_into(residual, 1.0, data.y[start : start + n])
    for k in range(n_leaf):
        node = work.leaf[k]
        add_scaled(residual, -tree.value[node], rows_of(work.reach, base, node, n))
    if with_gradient:
        for k in range(n_leaf):
            node = work.leaf[k]
            work.d_value[node] += dot(rows_of(work.reach, base, node, n), residual)
    return dot(residual, residual)


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
