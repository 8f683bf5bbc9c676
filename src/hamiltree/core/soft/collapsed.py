"""Regression with the leaf means integrated out.

Given routing and sigma, y = Phi mu + noise with a normal prior on mu is linear and Gaussian. With
S = Phi'Phi / sigma^2 + I / mu_sd^2 the marginal of y needs one Cholesky factor, leaves x leaves.
m, the posterior mean of mu, and M = S^-1 + m m', its second moment, give the gradient:
d log p / d phi_ik = (y_i m_k - (Phi M)_ik) / sigma^2.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel, never_inline, row_kernel
from ..densities import LOG_2PI
from ..matrices import cholesky, invert, solve_lower, solve_upper
from ..tree.routing import add_scaled, dot, dot_two_by_three, multiply_shifted, scale_into
from .means import add_leaves

# All sums over the rows are products of two vectors that have one value per row. On the right
# stand y and the leaves' phi. On the left stand the leaves' phi, which gives Phi'y and Phi'Phi, and
# behind them, for a gradient without a second pass, the tangents. The product of left vector a and
# right vector c is ``sums[a * width + c]``. Two by three at a time they take one load each, not
# two; what is left over at the edges repeats a vector, and its sums are not read.
#
# Tangents: the log-likelihood knows the rows only through Phi'y and Phi'Phi, so its derivative by a
# threshold knows them only through the products of y and Phi with d phi_k / d threshold, k a leaf
# below the split. Times h these are phi psi left of the split and phi (psi - 1) right of it. Those
# of a split add up to zero, so that of its last leaf is left out.


@kernel
def width_of_sums(n_leaf):
    """Right vectors, rounded up to a multiple of three."""
    return (n_leaf + 3) // 3 * 3


@kernel
def n_left_vectors(n_leaf, n_pairs):
    """Leaves, and one tangent less than there are leaves below a split: n_pairs - (n_leaf - 1)."""
    return max(n_leaf, n_pairs + 1)


@kernel
def fill_tangents(tree, work, adjoint, reach, psi, n):
    """Tangents of a block, times h, in the place of adjoints."""
    rows, leaf = work.rows, work.leaf
    at = adjoint
    first = 0  # of the leaves below i
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            first += 1
            continue
        first_right = first + (tree.size[i + 1] + 1) // 2
        for k in range(first, first + (tree.size[i] + 1) // 2 - 1):
            shift = 0.0 if k < first_right else 1.0
            multiply_shifted(rows, at, reach + leaf[k], psi + i, shift, n)
            at += 1


@kernel
def left_vector(leaf, n_leaf, a, reach, adjoint):
    return reach + leaf[a] if a < n_leaf else adjoint + a - n_leaf


@kernel
def right_vector(leaf, n_leaf, c, y, reach):
    return y if c == 0 else reach + leaf[min(c, n_leaf) - 1]


@kernel
def accumulate_collapsed(work, part, n_leaf, n_pairs, y, adjoint, reach, n):
    """Add this block's sums; returns y'y."""
    rows, leaf, sums = work.rows, work.leaf, work.sums
    width = width_of_sums(n_leaf)
    last = n_left_vectors(n_leaf, n_pairs) - 1
    for a in range(0, last + 1, 2):
        a0 = left_vector(leaf, n_leaf, a, reach, adjoint)
        a1 = left_vector(leaf, n_leaf, min(a + 1, last), reach, adjoint)
        for c in range(0, min(a + 3, n_leaf + 1), 3):  # of Phi'Phi only the lower triangle
            t00, t01, t02, t10, t11, t12 = dot_two_by_three(
                rows,
                a0,
                a1,
                right_vector(leaf, n_leaf, c, y, reach),
                right_vector(leaf, n_leaf, c + 1, y, reach),
                right_vector(leaf, n_leaf, c + 2, y, reach),
                n,
            )
            at = a * width + c
            sums[part, at] += t00
            sums[part, at + 1] += t01
            sums[part, at + 2] += t02
            at += width
            sums[part, at] += t10
            sums[part, at + 1] += t11
            sums[part, at + 2] += t12
    return dot(rows, y, y, n)


@kernel
def log_marginal(leaf_prior, work, n, n_leaf, yy, sigma):
    """(log marginal likelihood of y, its quadratic form) from the finished sums, by S = L L'.

    ``gram`` ends as L, and ``mean`` as L^-1 S m. Minus infinity where S is not positive.
    """
    gram, mean, sums = work.gram, work.mean, work.sums
    precision = 1.0 / (sigma * sigma)
    prior_precision = 1.0 / (leaf_prior.mu_sd * leaf_prior.mu_sd)
    width = width_of_sums(n_leaf)
    for a in range(n_leaf):
        at = a * width
        mean[a] = sums[0, at] * precision + leaf_prior.mu_mean * prior_precision
        for b in range(a + 1):
            gram[a, b] = sums[0, at + 1 + b] * precision
        gram[a, a] += prior_precision
    if not cholesky(gram, n_leaf):
        return -np.inf, 0.0
    solve_lower(gram, n_leaf, mean)
    log_det = 0.0
    squares = yy * precision + n_leaf * leaf_prior.mu_mean * leaf_prior.mu_mean * prior_precision
    for a in range(n_leaf):
        log_det -= math.log(gram[a, a])
        squares -= mean[a] * mean[a]
    total = -0.5 * (
        n * (LOG_2PI + 2.0 * math.log(sigma))
        + 2.0 * log_det
        - n_leaf * math.log(prior_precision)
        + squares
    )
    return total, squares


@kernel
def finish_collapsed(data, leaf_prior, tree, work, n_leaf, yy, with_gradient):
    """The log marginal likelihood; ``mean`` ends as m, and ``moment`` as M with a gradient."""
    n, sigma = data.mass, tree.sigma[0]
    total, squares = log_marginal(leaf_prior, work, n, n_leaf, yy, sigma)
    if total == -np.inf:
        return total
    mean, moment = work.mean, work.moment
    solve_upper(work.gram, n_leaf, mean)
    if with_gradient:
        # Without a pass over the rows: |y - Phi m|^2 / sigma^2 is the marginal
        # quadratic form less the prior's share of it.
        prior_precision = 1.0 / (leaf_prior.mu_sd * leaf_prior.mu_sd)
        invert(work.gram, n_leaf, moment)
        shrinkage = 0.0
        trace = 0.0  # of S^-1 Phi'Phi / sigma^2
        for a in range(n_leaf):
            trace += 1.0 - prior_precision * moment[a, a]
            shift = mean[a] - leaf_prior.mu_mean
            shrinkage += shift * shift * prior_precision
            for b in range(n_leaf):
                moment[a, b] += mean[a] * mean[b]
        work.d_sigma[0] = (squares - shrinkage - (n - trace)) / sigma
    return total


@kernel
def gradient_from_tangents(h, tree, work, n_leaf):
    """d log p / d threshold from the finished sums, m and M."""
    mean, moment, sums, d_threshold = work.mean, work.moment, work.sums, work.d_threshold
    precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
    width = width_of_sums(n_leaf)
    at = n_leaf * width
    first = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            first += 1
            continue
        last = first + (tree.size[i] + 1) // 2 - 1
        total = 0.0
        for k in range(first, last):
            total += (mean[k] - mean[last]) * sums[0, at]
            for j in range(n_leaf):
                total -= (moment[k, j] - moment[last, j]) * sums[0, at + 1 + j]
            at += width
        d_threshold[0, i] = total * precision / h[tree.feature[i]]


@row_kernel
def add_four_to_four(rows, o0, o1, o2, o3, factor, m, k, j, a0, a1, a2, a3, n):
    """Add to four vectors four others times a block of the matrix ``m``, times ``factor``.

    Each load, and each store, then serves four products.
    """
    never_inline()
    m00, m01 = factor * m[k, j], factor * m[k, j + 1]
    m02, m03 = factor * m[k, j + 2], factor * m[k, j + 3]
    m10, m11 = factor * m[k + 1, j], factor * m[k + 1, j + 1]
    m12, m13 = factor * m[k + 1, j + 2], factor * m[k + 1, j + 3]
    m20, m21 = factor * m[k + 2, j], factor * m[k + 2, j + 1]
    m22, m23 = factor * m[k + 2, j + 2], factor * m[k + 2, j + 3]
    m30, m31 = factor * m[k + 3, j], factor * m[k + 3, j + 1]
    m32, m33 = factor * m[k + 3, j + 2], factor * m[k + 3, j + 3]
    for r in range((n >> 3) << 3):
        x0, x1, x2, x3 = rows[a0, r], rows[a1, r], rows[a2, r], rows[a3, r]
        rows[o0, r] += m00 * x0 + m01 * x1 + m02 * x2 + m03 * x3
        rows[o1, r] += m10 * x0 + m11 * x1 + m12 * x2 + m13 * x3
        rows[o2, r] += m20 * x0 + m21 * x1 + m22 * x2 + m23 * x3
        rows[o3, r] += m30 * x0 + m31 * x1 + m32 * x2 + m33 * x3


@kernel
def adjoint_collapsed(tree, work, n_leaf, y, adjoint, reach, n):
    """precision (y_i m_k - (Phi M)_ik); of Phi M four columns at a time."""
    rows, leaf, mean, moment = work.rows, work.leaf, work.mean, work.moment
    precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
    for k in range(n_leaf):
        scale_into(rows, adjoint + leaf[k], precision * mean[k], y, n)
    whole = n_leaf // 4 * 4
    for k in range(0, whole, 4):
        o0, o1 = adjoint + leaf[k], adjoint + leaf[k + 1]
        o2, o3 = adjoint + leaf[k + 2], adjoint + leaf[k + 3]
        for j in range(0, whole, 4):
            a0, a1 = reach + leaf[j], reach + leaf[j + 1]
            a2, a3 = reach + leaf[j + 2], reach + leaf[j + 3]
            add_four_to_four(rows, o0, o1, o2, o3, -precision, moment, k, j, a0, a1, a2, a3, n)
        for j in range(whole, n_leaf):
            for i in range(k, k + 4):
                add_scaled(rows, adjoint + leaf[i], -precision * moment[i, j], reach + leaf[j], n)
    for k in range(whole, n_leaf):
        out = adjoint + leaf[k]
        add_leaves(rows, out, -precision, moment[k], leaf, n_leaf, reach, n)


@kernel
def draw_means(leaf_prior, work, leaves, power, draws, rng):
    """Leaf means given the rest, into ``draws``; ``work`` holds an evaluation of COLLAPSED.

    From their prior where the likelihood is switched off.
    """
    for k in range(leaves):
        draws[k] = rng.standard_normal()
    if power == 0.0:
        for k in range(leaves):
            draws[k] = leaf_prior.mu_mean + leaf_prior.mu_sd * draws[k]
        return
    solve_upper(work.gram, leaves, draws)
    for k in range(leaves):
        draws[k] += work.mean[k]
