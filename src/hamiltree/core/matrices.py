"""Small dense matrices: Cholesky factors, and what is solved by them.

The factor keeps the reciprocals of its diagonal: solving then needs no division. Kernels of their
own, because fast-math would vectorise their loops, which are too short for that to pay.
"""

from __future__ import annotations

import math

from .backend.jit import kernel


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
