"""Regression with the leaf means integrated out.

Given routing and sigma, y = Phi mu + noise with a normal prior on mu is linear and Gaussian. With
S = Phi'Phi / sigma^2 + I / mu_sd^2 the marginal of y needs one Cholesky factor, leaves x leaves.
m, the posterior mean of mu, and M = S^-1 + m m', its second moment, give the gradient:
d log p / d phi_ik = (y_i m_k - (Phi M)_ik) / sigma^2.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inlined, kernel
from .means import LOG_2PI, combine_leaves
from .routing import (
    dot,
    dot_two_by_three,
    multiply_shifted,
    rows_of,
    window,
)

# All sums over the rows are products of two vectors that have one value a row. On the right stand y
# and the leaves' phi. On the left stand the leaves' phi, which gives Phi'y and Phi'Phi, and behind
# them, for a gradient without a second pass, the tangents. The product of left vector a and right
# vector c is ``sums[a * width + c]``. Two by three at a time they take one load each, not two; what
# is left over at the edges repeats a vector, and its sums are not read.
#
# Tangents: the log-likelihood knows the rows only through Phi'y and Phi'Phi, so its derivative by a
# threshold knows them only through the products of y and Phi with d phi_k / d threshold, k a leaf
# below the split. Times h these are phi psi left of the split and phi (psi - 1) right of it. Those
# of a split add up to zero, so that of its last leaf is left out.


@inlined
def width_of_sums(n_leaf):
    """Right vectors, rounded up to a multiple of three."""
    return (n_leaf + 3) // 3 * 3


@inlined
def n_left_vectors(n_leaf, n_pairs):
    """Leaves, and one tangent less than there are leaves below a split: n_pairs - (n_leaf - 1)."""
    return max(n_leaf, n_pairs + 1)


@inlined
def fill_tangents(tree, work, base, n):
    """Tangents of a block, times h, into the rows of ``adjoint``."""
    row = 0
    first = 0  # of the leaves below i
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            first += 1
            continue
        psi = rows_of(work.psi, base, i, n)
        first_right = first + (tree.size[i + 1] + 1) // 2
        for k in range(first, first + (tree.size[i] + 1) // 2 - 1):
            phi = rows_of(work.reach, base, work.leaf[k], n)
            shift = 0.0 if k < first_right else 1.0
            multiply_shifted(rows_of(work.adjoint, 0, row, n), phi, psi, shift)
            row += 1


@inlined
def left_vector(work, n_leaf, a, base, n):
    if a < n_leaf:
        return rows_of(work.reach, base, work.leaf[a], n)
    return rows_of(work.adjoint, 0, a - n_leaf, n)


@inlined
def right_vector(data, work, n_leaf, c, start, base, n):
    if c == 0:
        return window(data.y, start, n)
    return rows_of(work.reach, base, work.leaf[min(c, n_leaf) - 1], n)


@inlined
def accumulate_collapsed(data, work, n_leaf, n_pairs, start, base, n):
    """Add this block's sums; returns y'y."""
    width = width_of_sums(n_leaf)
    last = n_left_vectors(n_leaf, n_pairs) - 1
    for a in range(0, last + 1, 2):
        a0 = left_vector(work, n_leaf, a, base, n)
        a1 = left_vector(work, n_leaf, min(a + 1, last), base, n)
        for c in range(0, min(a + 3, n_leaf + 1), 3):  # of Phi'Phi only the lower triangle
            t00, t01, t02, t10, t11, t12 = dot_two_by_three(
                a0,
                a1,
                right_vector(data, work, n_leaf, c, start, base, n),
                right_vector(data, work, n_leaf, c + 1, start, base, n),
                right_vector(data, work, n_leaf, c + 2, start, base, n),
            )
            at = a * width + c
            work.sums[at] += t00
            work.sums[at + 1] += t01
            work.sums[at + 2] += t02
            at += width
            work.sums[at] += t10
            work.sums[at + 1] += t11
            work.sums[at + 2] += t12
    y = window(data.y, start, n)
    return dot(y, y)


# The factor keeps the reciprocals of its diagonal: solving then needs no division. Kernels of their
# own, because fast-math would vectorise their loops, which are too short for that to pay.


@kernel
def cholesky(a, n):
    """Lower factor in place of the lower triangle; False where the matrix is not positive."""
    for j in range(n):
        pivot = a[j, j]
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        if not pivot > 0.0:
            return False
        a[j, j] = 1.0 / math.sqrt(pivot)
        for i in range(j + 1, n):
            entry = a[i, j]
            for k in range(j):
                entry -= a[i, k] * a[j, k]
            a[i, j] = entry * a[j, j]
    return True


@kernel
def solve_lower(a, n, b):
    for i in range(n):
        entry = b[i]
        for k in range(i):
            entry -= a[i, k] * b[k]
        b[i] = entry * a[i, i]


@kernel
def solve_upper(a, n, b):
    """Solve with the transpose of the lower factor."""
    for i in range(n - 1, -1, -1):
        entry = b[i]
        for k in range(i + 1, n):
            entry -= a[k, i] * b[k]
        b[i] = entry * a[i, i]


@kernel
def invert(a, n, out):
    """S^-1 from the factor L of S; row j of ``out`` first holds column j of L^-1."""
    for j in range(n):
        out[j, j] = a[j, j]
        for i in range(j + 1, n):
            entry = 0.0
            for k in range(j, i):
                entry -= a[i, k] * out[j, k]
            out[j, i] = entry * a[i, i]
    for j in range(n):
        for i in range(j + 1):
            entry = 0.0
            for k in range(j, n):
                entry += out[i, k] * out[j, k]
            out[j, i] = entry
        for i in range(j):
            out[i, j] = out[j, i]


@inlined
def finish_collapsed(data, leaf_prior, tree, work, n_leaf, yy, with_gradient):
    """y = Phi mu + noise with a normal prior on mu: the marginal of y, by S = L L'.

    S = Phi'Phi / sigma^2 + I / mu_sd^2; ``table[:, 0]`` ends as m, the posterior mean of mu.
    """
    n = data.n_rows
    sigma = tree.sigma[0]
    precision = 1.0 / (sigma * sigma)
    prior_precision = 1.0 / (leaf_prior.mu_sd * leaf_prior.mu_sd)
    mean = work.table[:, 0]
    width = width_of_sums(n_leaf)
    for a in range(n_leaf):
        at = a * width
        mean[a] = work.sums[at] * precision + leaf_prior.mu_mean * prior_precision
        for b in range(a + 1):
            work.gram[a, b] = work.sums[at + 1 + b] * precision
        work.gram[a, a] += prior_precision
    if not cholesky(work.gram, n_leaf):
        return -np.inf
    log_det = 0.0
    explained = 0.0
    solve_lower(work.gram, n_leaf, mean)
    for a in range(n_leaf):
        log_det -= math.log(work.gram[a, a])
        explained += mean[a] * mean[a]
    solve_upper(work.gram, n_leaf, mean)
    squares = yy * precision - explained
    squares += n_leaf * leaf_prior.mu_mean * leaf_prior.mu_mean * prior_precision
    if with_gradient:
        # e'e of design.md without a pass over the rows: |y - Phi m|^2 / sigma^2 is the marginal
        # quadratic form less the prior's share of it.
        invert(work.gram, n_leaf, work.moment)
        shrinkage = 0.0
        trace = 0.0  # of S^-1 Phi'Phi / sigma^2
        for a in range(n_leaf):
            trace += 1.0 - prior_precision * work.moment[a, a]
            shift = mean[a] - leaf_prior.mu_mean
            shrinkage += shift * shift * prior_precision
            for b in range(n_leaf):
                work.moment[a, b] += mean[a] * mean[b]
        work.d_sigma[0] = (squares - shrinkage - (n - trace)) / sigma
    return -0.5 * (
        n * (LOG_2PI + 2.0 * math.log(sigma))
        + 2.0 * log_det
        - n_leaf * math.log(prior_precision)
        + squares
    )


@inlined
def gradient_from_tangents(h, tree, work, n_leaf):
    """d log p / d threshold from the finished sums, m and M."""
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
            total += (work.table[k, 0] - work.table[last, 0]) * work.sums[at]
            for j in range(n_leaf):
                total -= (work.moment[k, j] - work.moment[last, j]) * work.sums[at + 1 + j]
            at += width
        work.d_threshold[i] = total * precision / h[tree.feature[i]]


@inlined
def adjoint_collapsed(data, tree, work, n_leaf, start, base, n):
    precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
    y = window(data.y, start, n)
    for k in range(n_leaf):
        adjoint = rows_of(work.adjoint, 0, work.leaf[k], n)
        scale = precision * work.table[k, 0]
        combine_leaves(adjoint, scale, y, -precision, work.moment[k], work, n_leaf, base, n)
