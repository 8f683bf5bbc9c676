"""The three likelihoods, with closed-form gradients in every continuous parameter.

Each needs three things of a routed block: to accumulate sums over its rows, to finish the sums
into a log-likelihood, and to give the adjoint of each leaf, d log-likelihood / d phi. Routing and
back-propagation are shared, so HMC-DF, HMC-DFI and hard splits come with each.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import inlined, kernel, row_kernel
from .routing import (
    BLOCK,
    add_four,
    add_scaled,
    backpropagate_block,
    dot,
    dot_four,
    fill,
    reach_root,
    route_block,
    rows_of,
)

CLASSES = 0
"""Dirichlet-multinomial leaves, leaf probabilities integrated out."""
MEANS = 1
"""Normal noise, leaf means explicit (the paper's)."""
COLLAPSED = 2
"""Normal noise, leaf means integrated out."""

CACHED_FLOATS = 1 << 17
"""Routing of all rows is kept between the two passes while it fits this many floats (1 MB a
buffer); beyond that recomputing it is cheaper than fetching it from memory."""

LANES = 8
"""Rows of a class are padded to a multiple of this: doubles in the widest vector register."""

PAIRS_A_SPLIT = 8
"""Up to so many pairs of leaf and ancestor for each split, sums over pairs are the faster way to
the gradient of a classification tree than a second pass that routes the rows again; up to half as
many where their routing was kept."""

LOG_2PI = math.log(2.0 * math.pi)


class Data(NamedTuple):
    """What is observed, in the order the row loops want it; shared by all chains.

    Classification: rows are sorted by class, so that all rows of a block have one class and its
    leaf sums need no look-up. The rows of a class, or all rows, are padded to a multiple of LANES:
    a loop then has no left-over rows, which would go one by one. Padding reaches no leaf.
    """

    n_rows: int
    """Without the padding."""
    columns: NDArray[np.float64]
    """[p, padded rows]; inputs on the unit interval, a feature contiguous."""
    y: NDArray[np.float64]
    """[padded rows] standardised target, 0 for padding; [0] for classification."""
    block: NDArray[np.int64]
    """[n_blocks + 1]; rows of block b are block[b]:block[b + 1], at most BLOCK of them."""
    block_rows: NDArray[np.int64]
    """[n_blocks]; how many of them are real; padding comes last."""
    block_class: NDArray[np.int64]
    """[n_blocks]; the class of its rows; 0 for regression."""


class LeafPrior(NamedTuple):
    """Hyper-parameters of the leaves and the noise."""

    class_prior: NDArray[np.float64]
    """[K] Dirichlet alpha_m; [0] for regression."""
    mu_mean: float
    mu_sd: float
    sigma_shape: float
    sigma_scale: float


class Work(NamedTuple):
    """Scratch of one chain; nothing in it outlives a call of ``log_likelihood``."""

    psi: NDArray[np.float64]
    """[capacity * BLOCK or more]; see routing."""
    reach: NDArray[np.float64]
    adjoint: NDArray[np.float64]
    """[capacity * BLOCK]"""
    slope: NDArray[np.float64]
    """[2, BLOCK]"""
    leaf: NDArray[np.int64]
    """[max_leaves]; the nodes that are leaves, preorder."""
    counts: NDArray[np.float64]
    """[max_leaves, K]; classification: soft class counts. Regression: column 0 is Phi'y, or
    d log-likelihood / d mu where the means are explicit."""
    table: NDArray[np.float64]
    """[max_leaves, K]; classification: adjoint of a leaf by class. Regression: column 0 is the
    posterior mean m of the leaf means."""
    pairs: NDArray[np.float64]
    """[PAIRS_A_SPLIT * max_leaves, K]; classification: sum of phi x psi over the rows of a class,
    for each leaf and each of its ancestors."""
    gram: NDArray[np.float64]
    """[max_leaves, max_leaves] for COLLAPSED; Phi'Phi, then the Cholesky factor of S."""
    inverse: NDArray[np.float64]
    """[max_leaves, max_leaves] for COLLAPSED; S^-1."""
    d_threshold: NDArray[np.float64]
    """[capacity]"""
    d_weights: NDArray[np.float64]
    """[capacity, p] or [capacity, 0]"""
    d_value: NDArray[np.float64]
    """[capacity]"""
    d_sigma: NDArray[np.float64]
    """[1]"""


def make_data(columns: NDArray[np.float64], y: NDArray[np.generic], n_classes: int) -> Data:
    """Sort rows by class (classification), pad them, and cut them into blocks."""
    codes = np.asarray(y, np.int64) if n_classes else np.zeros(columns.shape[1], np.int64)
    runs = [np.flatnonzero(codes == label) for label in range(max(n_classes, 1))]
    padded = [-(-len(run) // LANES) * LANES for run in runs]
    bounds = np.concatenate([[0], np.cumsum(padded)])
    out = np.zeros((columns.shape[0], bounds[-1]))
    target = np.zeros(0 if n_classes else bounds[-1])
    blocks = []  # start, real rows, class
    for label, run in enumerate(runs):
        begin = int(bounds[label])
        out[:, begin : begin + len(run)] = columns[:, run]
        if not n_classes:
            target[: len(run)] = y
        for start in range(0, len(run), BLOCK):
            blocks.append((begin + start, min(BLOCK, len(run) - start), label))
    table = np.array(blocks, np.int64).reshape(-1, 3)
    return Data(
        n_rows=columns.shape[1],
        columns=out,
        y=target,
        block=np.append(table[:, 0], bounds[-1]),
        block_rows=np.ascontiguousarray(table[:, 1]),
        block_class=np.ascontiguousarray(table[:, 2]),
    )


def make_work(data: Data, max_leaves: int, n_classes: int, n_weights: int, family: int) -> Work:
    capacity = 2 * max_leaves - 1
    n_rows = data.columns.shape[1]  # with the padding
    block = min(BLOCK, n_rows)
    kept = max(capacity * block, min(CACHED_FLOATS, capacity * n_rows))
    square = max_leaves if family == COLLAPSED else 0
    return Work(
        psi=np.zeros(kept),
        reach=np.zeros(kept),
        adjoint=np.zeros(capacity * block),
        slope=np.zeros((2, block)),
        leaf=np.zeros(max_leaves, np.int64),
        counts=np.zeros((max_leaves, max(n_classes, 1))),
        table=np.zeros((max_leaves, max(n_classes, 1))),
        pairs=np.zeros((PAIRS_A_SPLIT * max_leaves, max(n_classes, 1))),
        gram=np.zeros((square, square)),
        inverse=np.zeros((square, square)),
        d_threshold=np.zeros(capacity),
        d_weights=np.zeros((capacity, n_weights)),
        d_value=np.zeros(capacity),
        d_sigma=np.zeros(1),
    )


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
def total_of(a):
    total = 0.0
    for r in range(a.shape[0]):
        total += a[r]
    return total


@inlined
def scale_into(out, factor, a):
    for r in range(out.shape[0]):
        out[r] = factor * a[r]


# ------------------------------------------------------------------ classification


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
def count_pairs(tree, work, n_leaf):
    total = 0
    for k in range(n_leaf):
        total += tree.depth[work.leaf[k]]
    return total


@inlined
def accumulate_pairs(tree, work, n_leaf, label, base, n):
    pair = 0
    for k in range(n_leaf):
        phi = rows_of(work.reach, base, work.leaf[k], n)
        i = tree.parent[work.leaf[k]]
        while i >= 0:
            work.pairs[pair, label] += dot(phi, rows_of(work.psi, base, i, n))
            pair += 1
            i = tree.parent[i]


@inlined
def gradient_from_pairs(h, tree, work, n_leaf):
    pair = 0
    for k in range(n_leaf):
        child = work.leaf[k]
        i = tree.parent[child]
        while i >= 0:
            scale = 1.0 / h[tree.feature[i]]
            on_the_right = child != i + 1
            for m in range(work.table.shape[1]):
                mass = work.pairs[pair, m]
                if on_the_right:
                    mass -= work.counts[k, m]
                work.d_threshold[i] += scale * work.table[k, m] * mass
                work.pairs[pair, m] = 0.0
            pair += 1
            child = i
            i = tree.parent[i]


# ------------------------------------------------------------------ regression, explicit means


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


# ------------------------------------------------------------------ regression, means integrated


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


# The factor keeps the reciprocals of its diagonal: solving then needs no division.


@inlined
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


@inlined
def solve_lower(a, n, b):
    for i in range(n):
        entry = b[i]
        for k in range(i):
            entry -= a[i, k] * b[k]
        b[i] = entry * a[i, i]


@inlined
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
def add_leaves(out, factor, weights, work, n_leaf, base, n):
    """out += factor x sum over leaves of weight x phi."""
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
def adjoint_collapsed(data, tree, work, n_leaf, start, base, n):
    """d log p / d phi_ik = e_i m_k - (Phi S^-1)_ik / sigma^2, with e = (y - Phi m) / sigma^2."""
    precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
    error = work.slope[1, :n]
    scale_into(error, precision, data.y[start : start + n])
    add_leaves(error, -precision, work.table[:, 0], work, n_leaf, base, n)
    for k in range(n_leaf):
        adjoint = rows_of(work.adjoint, 0, work.leaf[k], n)
        scale_into(adjoint, work.table[k, 0], error)
        add_leaves(adjoint, -precision, work.inverse[k], work, n_leaf, base, n)


# ------------------------------------------------------------------ all three


@inlined
def adjoint_leaves(family, data, tree, work, n_leaf, b, start, base, n):
    if family == CLASSES:
        for k in range(n_leaf):
            value = work.table[k, data.block_class[b]]
            fill(rows_of(work.adjoint, 0, work.leaf[k], n), value)
    elif family == MEANS:
        precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
        for k in range(n_leaf):
            node = work.leaf[k]
            factor = tree.value[node] * precision
            scale_into(rows_of(work.adjoint, 0, node, n), factor, work.slope[1, :n])
    else:
        adjoint_collapsed(data, tree, work, n_leaf, start, base, n)


@inlined
def list_leaves(tree, leaf):
    count = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            leaf[count] = i
            count += 1
    return count


@inlined
def clear_sums(family, tree, work, n_leaf, with_gradient):
    for k in range(n_leaf):
        for m in range(work.counts.shape[1]):
            work.counts[k, m] = 0.0
        if family == COLLAPSED:
            for j in range(k + 1):
                work.gram[k, j] = 0.0
    if with_gradient:
        work.d_sigma[0] = 0.0
        for i in range(tree.n_nodes[0]):
            work.d_threshold[i] = 0.0
            work.d_value[i] = 0.0
            for f in range(work.d_weights.shape[1]):
                work.d_weights[i, f] = 0.0


@inlined
def back_through_block(family, data, h, tree, work, n_leaf, b, base):
    start, stop = data.block[b], data.block[b + 1]
    n = stop - start
    adjoint_leaves(family, data, tree, work, n_leaf, b, start, base, n)
    backpropagate_block(
        data.columns,
        h,
        tree,
        start,
        stop,
        base,
        work.psi,
        work.reach,
        work.adjoint,
        work.slope[0],
        work.d_threshold,
        work.d_weights,
    )


@row_kernel
def log_likelihood(family, data, leaf_prior, h, tree, work, with_gradient):
    """The log-likelihood; with_gradient also fills the d_ arrays of ``work``.

    Derivatives are by thresholds, weights, leaf means and sigma on their own (constrained) scale.
    With hard splits (h = 0) those by thresholds and weights are zero.

    One pass over the rows gives the value, and the gradient where the adjoints need no more
    (explicit means) or sums over pairs of leaf and ancestor are few (classification, HMC-DF).
    Otherwise the adjoints need the finished sums, and a second pass, which routes the rows again
    unless the routing of all rows fits the cache.
    """
    n_leaf = list_leaves(tree, work.leaf)
    clear_sums(family, tree, work, n_leaf, with_gradient)
    n_nodes = tree.n_nodes[0]
    keep = n_nodes * data.columns.shape[1] <= work.psi.shape[0]
    through_splits = with_gradient and h[0] > 0.0 and n_nodes > 1
    by_pairs = (
        through_splits
        and family == CLASSES
        and tree.weights.shape[1] == 0
        and count_pairs(tree, work, n_leaf) <= PAIRS_A_SPLIT // (2 if keep else 1) * (n_leaf - 1)
    )
    passes = 2 if through_splits and family != MEANS and not by_pairs else 1
    total = 0.0
    squares = 0.0
    for this in range(passes):
        for b in range(data.block_class.shape[0]):
            start, stop = data.block[b], data.block[b + 1]
            n = stop - start
            base = start * n_nodes if keep else 0
            if this == 0 or not keep:
                reach_root(work.reach, base, data.block_rows[b], n)
                route_block(
                    data.columns, h, tree, start, stop, base, work.psi, work.reach, work.slope[0]
                )
            if this == 0:
                if family == CLASSES:
                    accumulate_classes(work, n_leaf, data.block_class[b], base, n)
                    if by_pairs:
                        accumulate_pairs(tree, work, n_leaf, data.block_class[b], base, n)
                elif family == MEANS:
                    squares += residual_means(
                        data, tree, work, n_leaf, start, base, n, with_gradient
                    )
                else:
                    squares += accumulate_collapsed(data, work, n_leaf, start, base, n)
            if through_splits and not by_pairs and this == passes - 1:
                back_through_block(family, data, h, tree, work, n_leaf, b, base)
        if this == 0:
            if family == CLASSES:
                total = finish_classes(leaf_prior, work, n_leaf, with_gradient)
                if by_pairs:
                    gradient_from_pairs(h, tree, work, n_leaf)
            elif family == MEANS:
                total = finish_means(data, tree, work, n_leaf, squares, with_gradient)
            else:
                total = finish_collapsed(
                    data, leaf_prior, tree, work, n_leaf, squares, with_gradient
                )
    return total
