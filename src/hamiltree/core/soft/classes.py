"""Classification: Dirichlet-multinomial leaves, with the leaf probabilities integrated out."""

from __future__ import annotations

from ..backend.jit import kernel
from ..densities import digamma, log_dirichlet_multinomial
from ..tree.routing import total_and_two_dots, total_of


@kernel
def accumulate_classes(work, part, n_leaf, label, reach, n):
    """Add this block's soft counts of its class."""
    rows, leaf, counts = work.rows, work.leaf, work.counts
    for k in range(n_leaf):
        counts[part, k, label] += total_of(rows, reach + leaf[k], n)


@kernel
def finish_classes(leaf_prior, work, n_leaf, with_gradient):
    """Log-likelihood from the counts, every constant kept; and the adjoint of a leaf by class."""
    alpha, counts, table = leaf_prior.class_prior, work.counts, work.table
    n_classes, mass = alpha.shape[0], leaf_prior.class_mass
    total = 0.0
    for k in range(n_leaf):
        total += log_dirichlet_multinomial(counts[0, k], alpha, mass, leaf_prior.class_constant)
        if with_gradient:
            rows = 0.0
            for m in range(n_classes):
                rows += counts[0, k, m]
            shared = digamma(rows + mass)
            for m in range(n_classes):
                table[k, m] = digamma(counts[0, k, m] + alpha[m]) - shared
    return total


# The adjoint of a leaf is the same for all rows of a class, so the derivative by a threshold needs
# the rows only through sums of phi psi, which the first pass can make: for a leaf right of the
# split phi (1 - psi) counts for it, for a leaf left of it phi psi counts against it.


@kernel
def accumulate_pairs(tree, work, part, n_leaf, label, reach, psi, n):
    """Counts and these sums; two ancestors at a time, as that saves loads of phi."""
    rows, leaf, counts, sums = work.rows, work.leaf, work.counts, work.sums
    n_classes = counts.shape[2]
    at = label
    for k in range(n_leaf):
        phi = reach + leaf[k]
        i = tree.parent[leaf[k]]
        while i >= 0:
            above = tree.parent[i]
            total, first, second = total_and_two_dots(rows, phi, psi + i, psi + max(above, 0), n)
            if i == tree.parent[leaf[k]]:
                counts[part, k, label] += total
            sums[part, at] += first
            at += n_classes
            i = above
            if i >= 0:
                sums[part, at] += second
                at += n_classes
                i = tree.parent[i]


@kernel
def gradient_from_pairs(h, tree, work, n_leaf):
    leaf, counts, sums, table = work.leaf, work.counts, work.sums, work.table
    d_threshold = work.d_threshold
    at = 0
    for k in range(n_leaf):
        child = leaf[k]
        i = tree.parent[child]
        while i >= 0:
            scale = 1.0 / h[tree.feature[i]]
            on_the_right = child != i + 1
            for m in range(table.shape[1]):
                mass = sums[0, at]
                if on_the_right:
                    mass -= counts[0, k, m]
                d_threshold[0, i] += scale * table[k, m] * mass
                at += 1
            child = i
            i = tree.parent[i]
