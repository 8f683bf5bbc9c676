"""The score of one rule, from what ``mean_sums`` has added up.

``LeafMeans.moved`` has the terms of all rows; the same times psi, what of a row goes right; and
times its square. From these follow the products of the changed columns, which are 1 - psi or psi
times what would reach a leaf of their side.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel, never_inline, row_kernel
from ..matrices import cholesky
from .mean_sums import first_square

ALL, RIGHT, SQUARES = 0, 1, 2
"""In ``LeafMeans.moved``."""
IMPOSSIBLE = -1e300
"""The score of a rule that rounding leaves without one; finite, as weights are differences."""


@row_kernel
def add_to(out, to, sums, at, width):
    """Add the terms of a bin to a row of sums."""
    never_inline()
    for k in range(width):
        out[np.uint64(to + k)] += sums[np.uint64(at + k)]


@row_kernel
def add_bin(moved, sums, at, width, square, share):
    """The terms of a bin, of which a share goes right."""
    never_inline()
    first, psi = np.uint64(at), np.float32(share)
    for k in range(width):
        moved[RIGHT, k] += psi * sums[first + np.uint64(k)]
    twice = psi * psi
    for k in range(square, width):
        moved[SQUARES, k] += twice * sums[first + np.uint64(k)]


@row_kernel
def take_side(moved, linear, at, first, last, n_others, side):
    """Products of a changed column with r and Q: of the sum of the kept leaves first:last."""
    never_inline()
    stride = 1 + n_others
    for j in range(stride):
        linear[at, j] = 0.0
    for k in range(first, last):
        of_k = 1 + k * stride
        for j in range(stride):
            right = np.float64(moved[RIGHT, of_k + j])
            linear[at, j] += right if side == 1 else np.float64(moved[ALL, of_k + j]) - right


@kernel
def pair_of(moved, square, k, m):
    """Place of the product of two kept leaves."""
    high, low = max(k, m), min(k, m)
    return square + 1 + high * (high + 1) // 2 + low


@inlined
def product(moved, at, a, b):
    """Sum of a term over the rows, times what of each goes to side a, and to side b."""
    right, squares = np.float64(moved[RIGHT, at]), np.float64(moved[SQUARES, at])
    if a != b:
        return right - squares
    return squares if a == 1 else np.float64(moved[ALL, at]) - 2.0 * right + squares


@row_kernel
def subtract_products(gram, linear, changed, n_others):
    never_inline()
    for k in range(changed):
        for m in range(k + 1):
            total = 0.0
            for j in range(1, 1 + n_others):
                total += linear[k, j] * linear[m, j]
            gram[k, m] -= total


@kernel
def fill_gram(scan, n_left, n_right, n_kept, square):
    """c'c of the changed columns c."""
    moved, gram = scan.means.moved, scan.means.gram
    new_left, new_right = n_left == 0, n_right == 0
    lefts = max(n_left, 1)
    for k in range(lefts + max(n_right, 1)):
        a = 0 if k < lefts else 1
        k_new = new_left if a == 0 else new_right
        k_at = k if a == 0 else k - lefts + n_left
        for m in range(k + 1):
            b = 0 if m < lefts else 1
            m_new = new_left if b == 0 else new_right
            m_at = m if b == 0 else m - lefts + n_left
            if k_new and m_new:
                gram[k, m] = product(moved, square, a, b)
            elif k_new or m_new:
                total = 0.0
                one = m_at if k_new else k_at
                for other in range(n_kept):
                    total += product(moved, pair_of(moved, square, one, other), a, b)
                gram[k, m] = total
            else:
                gram[k, m] = product(moved, pair_of(moved, square, k_at, m_at), a, b)


@kernel
def log_marginal_of_change(scan):
    """The log-likelihood of the rule whose terms are in ``moved``, up to what all rules share.

    With c the changed columns, B = c'c + sigma^2 / mu_sd^2 - (c'Q)(c'Q)' and l = c'r:
    l' B^-1 l / (2 sigma^2) - log det(B mu_sd^2 / sigma^2) / 2.
    """
    means, model, sigma = scan.means, scan.model, scan.tables.sigma[0]
    moved, gram, linear, solved = means.moved, means.gram, means.linear, means.solved
    n_left, n_right = means.n_side[0], means.n_side[1]
    n_kept, n_others = max(n_left + n_right, 1), means.n_others[0]
    lefts = max(n_left, 1)
    changed = lefts + max(n_right, 1)
    for k in range(changed):
        side, own = (0, k) if k < lefts else (1, k - lefts + n_left)
        is_new = n_left == 0 if side == 0 else n_right == 0
        first, last = (0, n_kept) if is_new else (own, own + 1)
        take_side(moved, linear, k, first, last, n_others, side)
    fill_gram(scan, n_left, n_right, n_kept, first_square(n_kept, n_others))
    subtract_products(gram, linear, changed, n_others)
    noise = sigma * sigma / model.mean_variance
    for k in range(changed):
        gram[k, k] += noise
    if not cholesky(gram, changed):
        return IMPOSSIBLE
    total = 0.0
    log_det = 0.0
    for k in range(changed):
        entry = linear[k, 0]
        for m in range(k):
            entry -= gram[k, m] * solved[m]
        solved[k] = entry * gram[k, k]
        total += solved[k] * solved[k]
        log_det -= math.log(gram[k, k])
    return 0.5 * total / (sigma * sigma) - log_det + 0.5 * changed * math.log(noise)
