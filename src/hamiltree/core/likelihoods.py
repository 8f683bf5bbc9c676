"""The log-likelihood of a tree and its closed-form gradient in every continuous parameter.

Each family (``classes``, ``means``, ``collapsed``) gives three things: sums over the rows of a
routed block, the log-likelihood from the finished sums, and the adjoint of each leaf, that is
d log-likelihood / d phi. Routing and back-propagation are shared, so HMC-DF, HMC-DFI and hard
splits come with each. ``classes`` and ``collapsed`` also have a shorter way to the gradient of
small HMC-DF trees, from the sums alone.
"""

from __future__ import annotations

from .buffers import CLASSES, COLLAPSED, LANES, MEANS, PAIRS_A_SPLIT, PAIRS_A_SPLIT_KEPT
from .classes import accumulate_classes, accumulate_pairs, finish_classes, gradient_from_pairs
from .collapsed import (
    accumulate_collapsed,
    adjoint_collapsed,
    fill_tangents,
    finish_collapsed,
    gradient_from_tangents,
    n_left_vectors,
    width_of_sums,
)
from .jit import inlined, row_kernel
from .means import finish_means, put_means, residual_means
from .routing import (
    backpropagate_block,
    fill,
    reach_root,
    route_block,
    rows_of,
    scale_into,
    scale_into_two,
    window,
)


@inlined
def adjoint_leaves(family, data, tree, work, n_leaf, b, start, base, n):
    if family == CLASSES:
        for k in range(n_leaf):
            value = work.table[k, data.block_class[b]]
            fill(rows_of(work.adjoint, 0, work.leaf[k], n), value)
    elif family == MEANS:
        precision = 1.0 / (tree.sigma[0] * tree.sigma[0])
        residual = work.slope[1, :n]
        for k in range(0, n_leaf - 1, 2):
            first, second = work.leaf[k], work.leaf[k + 1]
            scale_into_two(
                rows_of(work.adjoint, 0, first, n),
                tree.value[first] * precision,
                rows_of(work.adjoint, 0, second, n),
                tree.value[second] * precision,
                residual,
            )
        if n_leaf % 2 == 1:
            last = work.leaf[n_leaf - 1]
            scale_into(rows_of(work.adjoint, 0, last, n), tree.value[last] * precision, residual)
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
def count_pairs(tree, work, n_leaf):
    """Pairs of a leaf and one of its ancestors."""
    total = 0
    for k in range(n_leaf):
        total += tree.depth[work.leaf[k]]
    return total


@inlined
def count_sums(family, work, n_leaf, n_pairs):
    """How many of ``work.sums`` are in use."""
    n_sums = n_pairs * work.counts.shape[1]
    if family == COLLAPSED:
        n_sums = (n_left_vectors(n_leaf, n_pairs) + 1) * width_of_sums(n_leaf)
    return n_sums


@inlined
def clear_sums(family, tree, work, n_leaf, n_pairs, with_gradient):
    fill(window(work.sums, 0, count_sums(family, work, n_leaf, n_pairs)), 0.0)
    for k in range(n_leaf):
        for m in range(work.counts.shape[1]):
            work.counts[k, m] = 0.0
    if with_gradient:
        work.d_sigma[0] = 0.0
        for i in range(tree.n_nodes[0]):
            work.d_threshold[i] = 0.0
            work.d_value[i] = 0.0
            for f in range(work.d_weights.shape[1]):
                work.d_weights[i, f] = 0.0


@inlined
def rows_of_block(data, b):
    """Where its rows start and stop, and how many they are.

    Blocks are padded to whole LANES. Said so that the compiler sees it: what is left over from
    whole vectors then needs no code.
    """
    start = data.block[b]
    n = (data.block[b + 1] - start) // LANES * LANES
    return start, start + n, n


@inlined
def back_through_block(family, data, h, tree, work, n_leaf, b, base):
    start, stop, n = rows_of_block(data, b)
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


@inlined
def ways(family, data, h, tree, work, n_leaf, with_gradient, may_keep):
    """How to the gradient: (through splits, pairs to sum over or 0, passes, routing is kept)."""
    n_nodes = tree.n_nodes[0]
    fits = may_keep and n_nodes * data.columns.shape[1] <= work.psi.shape[0]
    through_splits = with_gradient and h[0] > 0.0 and n_nodes > 1
    n_pairs = 0
    if through_splits and tree.weights.shape[1] == 0:
        n_pairs = count_pairs(tree, work, n_leaf)
        most = PAIRS_A_SPLIT_KEPT[family] if fits else PAIRS_A_SPLIT[family]
        if n_pairs > most * (n_leaf - 1):
            n_pairs = 0
    passes = 2 if through_splits and family != MEANS and n_pairs == 0 else 1
    return through_splits, n_pairs, passes, passes == 2 and fits


@inlined
def through_block(
    family, data, h, tree, work, n_leaf, n_pairs, with_gradient, b, base, routes, sums, back
):
    """Route a block, add its sums, go back through it: what is asked for. Returns its squares."""
    start, stop, n = rows_of_block(data, b)
    squares = 0.0
    if routes:
        reach_root(work.reach, base, data.block_rows[b], n)
        route_block(data.columns, h, tree, start, stop, base, work.psi, work.reach, work.slope[0])
    if sums:
        if family == CLASSES:
            if n_pairs > 0:
                accumulate_pairs(tree, work, n_leaf, data.block_class[b], base, n)
            else:
                accumulate_classes(work, n_leaf, data.block_class[b], base, n)
        elif family == MEANS:
            squares = residual_means(data, work, n_leaf, start, base, n, with_gradient)
        else:
            if n_pairs > 0:
                fill_tangents(tree, work, base, n)
            squares = accumulate_collapsed(data, work, n_leaf, n_pairs, start, base, n)
    if back:
        back_through_block(family, data, h, tree, work, n_leaf, b, base)
    return squares


@inlined
def finish(family, data, leaf_prior, h, tree, work, n_leaf, n_pairs, squares, with_gradient):
    """The log-likelihood from the finished sums, and the gradient where they give it."""
    if family == CLASSES:
        total = finish_classes(leaf_prior, work, n_leaf, with_gradient)
        if n_pairs > 0:
            gradient_from_pairs(h, tree, work, n_leaf)
    elif family == MEANS:
        total = finish_means(data, tree, work, n_leaf, squares, with_gradient)
    else:
        total = finish_collapsed(data, leaf_prior, tree, work, n_leaf, squares, with_gradient)
        if n_pairs > 0:
            gradient_from_tangents(h, tree, work, n_leaf)
    return total


@row_kernel
def log_likelihood(family, data, leaf_prior, h, tree, work, with_gradient):
    """The log-likelihood; with_gradient also fills the d_ arrays of ``work``.

    Derivatives are by thresholds, weights, leaf means and sigma on their own (constrained) scale.
    With hard splits (h = 0) those by thresholds and weights are zero.

    One pass over the rows gives the value, and the gradient where the adjoints need no more
    (explicit means) or where it takes few sums over pairs of leaf and ancestor (HMC-DF). Otherwise
    the adjoints need the finished sums, and a second pass, which routes the rows again unless the
    routing of all rows fits the cache.
    """
    n_leaf = list_leaves(tree, work.leaf)
    n_nodes = tree.n_nodes[0]
    through_splits, n_pairs, passes, keep = ways(
        family, data, h, tree, work, n_leaf, with_gradient, True
    )
    clear_sums(family, tree, work, n_leaf, n_pairs, with_gradient)
    put_means(family, tree, work, n_leaf)
    total = 0.0
    squares = 0.0
    for this in range(passes):
        back = through_splits and n_pairs == 0 and this == passes - 1
        for b in range(data.block_class.shape[0]):
            squares += through_block(
                family,
                data,
                h,
                tree,
                work,
                n_leaf,
                n_pairs,
                with_gradient,
                b,
                data.block[b] * n_nodes if keep else 0,
                this == 0 or not keep,
                this == 0,
                back,
            )
        if this == 0:
            total = finish(
                family, data, leaf_prior, h, tree, work, n_leaf, n_pairs, squares, with_gradient
            )
    return total
