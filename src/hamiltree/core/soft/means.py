"""Regression with explicit leaf means: the paper's likelihood."""

from __future__ import annotations

import math

from ..backend.jit import kernel
from ..densities import LOG_2PI
from ..tree.routing import add_four, add_scaled, dot, scale_into, three_dots
from .data import MEANS


@kernel
def add_leaves(rows, out, factor, weights, leaf, n_leaf, reach, n):
    """Add factor x the sum over leaves of weight x phi to a vector; ``weights`` [leaves]."""
    j = 0
    while j + 4 <= n_leaf:
        add_four(
            rows,
            out,
            factor * weights[j],
            reach + leaf[j],
            factor * weights[j + 1],
            reach + leaf[j + 1],
            factor * weights[j + 2],
            reach + leaf[j + 2],
            factor * weights[j + 3],
            reach + leaf[j + 3],
            n,
        )
        j += 4
    while j < n_leaf:
        add_scaled(rows, out, factor * weights[j], reach + leaf[j], n)
        j += 1


@kernel
def put_means(family, tree, work, n_leaf):
    """The leaves' means as a list, as ``residual_means`` wants them."""
    if family == MEANS:
        for k in range(n_leaf):
            work.mean[k] = tree.value[work.leaf[k]]


@kernel
def residual_means(work, part, n_leaf, y, reach, n, with_gradient):
    """Make the vector y of a block the residual; returns its sum of squares."""
    rows, leaf, d_value = work.rows, work.leaf, work.d_value
    add_leaves(rows, y, -1.0, work.mean, leaf, n_leaf, reach, n)
    if not with_gradient:
        return dot(rows, y, y, n)
    squares = 0.0
    for k in range(0, n_leaf + 1, 3):  # its products with the leaves' phi, and with itself
        dots = three_dots(
            rows,
            y,
            reach + leaf[k] if k < n_leaf else y,
            reach + leaf[k + 1] if k + 1 < n_leaf else y,
            reach + leaf[k + 2] if k + 2 < n_leaf else y,
            n,
        )
        for j, product in enumerate(dots):
            if k + j < n_leaf:
                d_value[part, leaf[k + j]] += product
            elif k + j == n_leaf:
                squares = product
    return squares


@kernel
def adjoint_means(tree, work, n_leaf, residual, adjoint, n):
    precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
    rows, leaf = work.rows, work.leaf
    for k in range(n_leaf):
        scale_into(rows, adjoint + leaf[k], tree.value[leaf[k]] * precision, residual, n)


@kernel
def finish_means(data, tree, work, n_leaf, squares, with_gradient):
    n = data.mass
    sigma = tree.sigma[0]
    precision = 1.0 / (sigma * sigma)
    if with_gradient:
        for k in range(n_leaf):
            work.d_value[0, work.leaf[k]] *= precision
        work.d_sigma[0] = (squares * precision - n) / sigma
    return -0.5 * (n * (LOG_2PI + 2.0 * math.log(sigma)) + squares * precision)
