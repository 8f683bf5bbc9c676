"""Regression with the leaf means integrated out.

Given routing and sigma, y = Phi mu + noise with a normal prior on mu is linear and Gaussian. With
S = Phi'Phi / sigma^2 + I / mu_sd^2 the marginal of y needs one Cholesky factor, leaves x leaves.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inlined, kernel
from .means import LOG_2PI, combine_leaves
from .routing import dot, dot_four, rows_of


@inlined
def accumulate_collapsed(data, work, n_leaf, start, base, n):
    y = data.y[start : start + n]
    for a in range(n_leaf):
        phi = rows_of(work.reach, base, work.leaf[a], n)
        work.counts[a, 0] += dot(phi, y)
        b = 0
        while b + 4 <= a + 1:
            t0, t1, t2, t3 = dot_four(
                phi,
                rows_of(work.reach, base, work.leaf[b], n),
                rows_of(work.reach, base, work.leaf[b + 1], n),
                rows_of(work.reach, base, work.leaf[b + 2], n),
                rows_of(work.reach, base, work.leaf[b + 3], n),
            )
            work.gram[a, b] += t0
            work.gram[a, b + 1] += t1
            work.gram[a, b + 2] += t2
            work.gram[a, b + 3] += t3
            b += 4
        while b <= a:
            work.gram[a, b] += dot(phi, rows_of(work.reach, base, work.leaf[b], n))
            b += 1
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
    trace = 0.0  # of S^-1 Phi'Phi / sigma^2
    for a in range(n_leaf):
        mean[a] = work.counts[a, 0] * precision + leaf_prior.mu_mean * prior_precision
        for b in range(a + 1):
            work.gram[a, b] *= precision
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
        shrinkage = 0.0
        for a in range(n_leaf):
            column = work.inverse[a]
            for b in range(n_leaf):
                column[b] = 0.0
            column[a] = 1.0
            solve_lower(work.gram, n_leaf, column)
            solve_upper(work.gram, n_leaf, column)
            trace += 1.0 - prior_precision * column[a]
            shift = mean[a] - leaf_prior.mu_mean
            shrinkage += shift * shift * prior_precision
        work.d_sigma[0] = (squares - shrinkage - (n - trace)) / sigma
    return -0.5 * (
        n * (LOG_2PI + 2.0 * math.log(sigma))
        + 2.0 * log_det
        - n_leaf * math.log(prior_precision)
        + squares
    )


@inlined
def adjoint_collapsed(data, tree, work, n_leaf, start, base, n):
    """d log p / d phi_ik = e_i m_k - (Phi S^-1)_ik / sigma^2, with e = (y - Phi m) / sigma^2."""
    precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
    error = work.slope[1, :n]
    y, mean = data.y[start : start + n], work.table[:, 0]
    combine_leaves(error, precision, y, -precision, mean, work, n_leaf, base, n)
    for k in range(n_leaf):
        adjoint = rows_of(work.adjoint, 0, work.leaf[k], n)
        weights = work.inverse[k]
        combine_leaves(adjoint, mean[k], error, -precision, weights, work, n_leaf, base, n)
