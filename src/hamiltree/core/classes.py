"""Classification: Dirichlet-multinomial leaves, with the leaf probabilities integrated out."""

from __future__ import annotations

import math

from .jit import inlined, kernel
from .routing import rows_of, total_and_two_dots, total_of


@kernel
def digamma(x):
    """Derivative of lgamma for x > 0: recurrence up to 8, then the asymptotic series."""
    result = 0.0
    while x < 8.0:
        result -= 1.0 / x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = square * (
        1.0 / 12.0
        - square
        * (
            1.0 / 120.0
            - square
            * (
                1.0 / 252.0
                - square * (1.0 / 240.0 - square * (1.0 / 132.0 - square * 691.0 / 32760.0))
            )
        )
    )
    return result + math.log(x) - 0.5 * inverse - series


@inlined
def accumulate_classes(work, n_leaf, label, base, n):
    for k in range(n_leaf):
        work.counts[k, label] += total_of(rows_of(work.reach, base, work.leaf[k], n))


@inlined
def finish_classes(leaf_prior, work, n_leaf, with_gradient):
    """Dirichlet-multinomial log-likelihood, every constant kept."""
    alpha = leaf_prior.class_prior
    n_classes = alpha.shape[0]
    mass = 0.0
    constant = 0.0
    for m in range(n_classes):
        mass += alpha[m]
        constant -= math.lgamma(alpha[m])
    constant += math.lgamma(mass)
    total = n_leaf * constant
    for k in range(n_leaf):
        rows = 0.0
        for m in range(n_classes):
            rows += work.counts[k, m]
            total += math.lgamma(work.counts[k, m] + alpha[m])
        total -= math.lgamma(rows + mass)
        if with_gradient:
            shared = digamma(rows + mass)
            for m in range(n_classes):
                work.table[k, m] = digamma(work.counts[k, m] + alpha[m]) - shared
    return total


# The adjoint of a leaf is the same for all rows of a class, so the derivative by a threshold needs
# the rows only through sums of phi psi, which the first pass can make: for a leaf right of the
# split phi (1 - psi) counts for it, for a leaf left of it phi psi counts against it.


@inlined
def accumulate_pairs(tree, work, n_leaf, label, base, n):
    """Counts and these sums; two ancestors at a time, as that saves loads of phi."""
    n_classes = work.counts.shape[1]
    at = label
    for k in range(n_leaf):
        phi = rows_of(work.reach, base, work.leaf[k], n)
        i = tree.parent[work.leaf[k]]
        while i >= 0:
            above = tree.parent[i]
            total, first, second = total_and_two_dots(
                phi, rows_of(work.psi, base, i, n), rows_of(work.psi, base, max(above, 0), n)
            )
            if i == tree.parent[work.leaf[k]]:
                work.counts[k, label] += total
            work.sums[at] += first
            at += n_classes
            i = above
            if i >= 0:
                work.sums[at] += second
                at += n_classes
                i = tree.parent[i]


@inlined
def gradient_from_pairs(h, tree, work, n_leaf):
    at = 0
    for k in range(n_leaf):
        child = work.leaf[k]
        i = tree.parent[child]
        while i >= 0:
            scale = 1.0 / h[tree.feature[i]]
            on_the_right = child != i + 1
            for m in range(work.table.shape[1]):
                mass = work.sums[at]
                if on_the_right:
                    mass -= work.counts[k, m]
                work.d_threshold[i] += scale * work.table[k, m] * mass
                at += 1
            child = i
            i = tree.parent[i]
