"""The log-likelihood of a tree and its closed-form gradient in every continuous parameter.

Each family (``classes``, ``means``, ``collapsed``; ``labels`` is in a file of its own) gives three
things: sums over the rows of a routed block, the log-likelihood from the finished sums, and the
adjoint of each leaf, that is d log-likelihood / d phi. Routing and back-propagation are shared, so
HMC-DF, HMC-DFI and hard splits come with each. ``classes`` and ``collapsed`` also have a shorter
way to the gradient of small HMC-DF trees, from the sums alone.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import types

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import Float1, Float2, function_type
from ..backend.units import unit
from ..tree.nodes import Tree
from ..tree.routing import backpropagate_block, fill, fill_from, reach_root, route_block
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
from .data import (
    ADJOINT,
    COLLAPSED,
    GRADIENT,
    LABELS,
    MEANS,
    PAIRS_PER_SPLIT,
    PAIRS_PER_SPLIT_KEPT,
    SLOPE,
    TARGET,
    Data,
    LeafPrior,
    Work,
)
from .means import adjoint_means, finish_means, put_means, residual_means

LIKELIHOOD = function_type(
    types.float64,
    types.int64,
    Data,
    LeafPrior,
    Float1,
    Float2,
    Tree,
    Work,
    types.int64,
    types.boolean,
)
"""(family, data, leaf_prior, h, p, tree, work, what, routed) -> log-likelihood.

``p``: class probabilities of the leaves, and ``what`` beyond VALUE and GRADIENT: for LABELS alone.
``routed``: the same tree with the same h was the last to go through ``work``, so that LABELS uses
its routing again where that was kept."""


class Way(NamedTuple):
    """How to the gradient of a tree, and where sums go."""

    n_leaf: int
    n_pairs: int
    """Pairs of leaf and ancestor to sum over; 0 where the gradient is propagated back."""
    passes: int
    """Over the rows."""
    keep: bool
    """The routing of all rows, for the second pass or the next call."""
    through_splits: bool
    """Derivatives by thresholds and weights are asked for, and there are some."""
    with_gradient: bool
    part: int
    """The set of sums to add to."""
    who: int
    """The number of the thread."""


@kernel
def list_leaves(tree, leaf):
    count = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            leaf[count] = i
            count += 1
    return count


@kernel
def count_pairs(tree, leaf, n_leaf):
    """Pairs of a leaf and one of its ancestors."""
    total = 0
    for k in range(n_leaf):
        total += tree.depth[leaf[k]]
    return total


@kernel
def way_of(family, data, h, tree, work, with_gradient, may_keep):
    """List the leaves, and choose how to get to the gradient."""
    n_nodes = tree.n_nodes[0]
    n_leaf = list_leaves(tree, work.leaf)
    fits = may_keep and n_nodes * data.block_class.shape[0] <= work.n_routed
    through_splits = with_gradient and h[0] > 0.0 and n_nodes > 1
    n_pairs = 0
    if through_splits and tree.weights.shape[1] == 0:
        n_pairs = count_pairs(tree, work.leaf, n_leaf)
        most = PAIRS_PER_SPLIT_KEPT[family] if fits else PAIRS_PER_SPLIT[family]
        if n_pairs > most * (n_leaf - 1):
            n_pairs = 0
    one_pass = family in (MEANS, LABELS) or n_pairs > 0
    passes = 1 if one_pass or not through_splits else 2
    keep = fits and (passes == 2 or family == LABELS)
    return Way(n_leaf, n_pairs, passes, keep, through_splits, with_gradient, 0, 0)


@kernel
def count_sums(family, work, way):
    """How many of ``work.sums`` are in use."""
    if family in (COLLAPSED, LABELS):  # of LABELS, without pairs, one left vector per leaf
        return (n_left_vectors(way.n_leaf, way.n_pairs) + 1) * width_of_sums(way.n_leaf)
    return way.n_pairs * work.counts.shape[2]


@kernel
def clear_sums(family, tree, work, way):
    sums, counts, part = work.sums, work.counts, way.part
    for k in range(count_sums(family, work, way)):
        sums[part, k] = 0.0
    for k in range(way.n_leaf):
        for m in range(counts.shape[2]):
            counts[part, k, m] = 0.0
    if way.with_gradient:
        d_threshold, d_value, d_weights = work.d_threshold, work.d_value, work.d_weights
        work.d_sigma[part] = 0.0
        for i in range(tree.n_nodes[0]):
            d_threshold[part, i] = 0.0
            d_value[part, i] = 0.0
            for f in range(d_weights.shape[2]):
                d_weights[part, i, f] = 0.0


@kernel
def start_block(data, h, tree, work, way, b, first):
    """Route a block, unless its routing is kept: (start, n, reach, psi, adjoint, target)."""
    start = data.block[b]
    n = data.block[b + 1] - start
    room = way.who * work.stride
    adjoint, target = room + ADJOINT, room + TARGET
    reach = adjoint + work.n_adjoints
    if way.keep:
        reach += b * tree.n_nodes[0]
    psi = reach + work.n_routed
    if first or not way.keep:
        reach_root(data, work.rows, reach, start, data.block_rows[b], n)
        route_block(data, h, tree, start, n, work.rows, reach, psi, room + SLOPE)
    return start, n, reach, psi, adjoint, target


@kernel
def back_through_block(data, h, tree, work, way, start, n, reach, psi, adjoint):
    """From the adjoints of the leaves to the derivatives by thresholds and weights."""
    backpropagate_block(
        data,
        h,
        tree,
        start,
        n,
        work.rows,
        reach,
        psi,
        adjoint,
        way.who * work.stride + SLOPE,
        work.d_threshold[way.part],
        work.d_weights[way.part],
    )


@inlined
def goes_back(way, first):
    """Whether this pass propagates the gradient back through the splits."""
    return way.through_splits and way.n_pairs == 0 and (way.passes == 1 or not first)


@kernel
def classes_through_block(data, h, tree, work, way, b, first):
    """Route a block, add its sums, go back through it: what is asked for.

    ``first``: the first pass, which makes the sums; the last goes back.
    """
    start, n, reach, psi, adjoint, _ = start_block(data, h, tree, work, way, b, first)
    label = data.block_class[b]
    if first:
        if way.n_pairs > 0:
            accumulate_pairs(tree, work, way.part, way.n_leaf, label, reach, psi, n)
        else:
            accumulate_classes(work, way.part, way.n_leaf, label, reach, n)
    if goes_back(way, first):
        for k in range(way.n_leaf):
            fill(work.rows, adjoint + work.leaf[k], work.table[k, label], n)
        back_through_block(data, h, tree, work, way, start, n, reach, psi, adjoint)


@kernel
def numbers_through_block(family, data, h, tree, work, way, b, first):
    """The same for regression; returns the squares of a block's y, or of its residuals."""
    start, n, reach, psi, adjoint, target = start_block(data, h, tree, work, way, b, first)
    fill_from(work.rows, target, data.y, 0, start, n)
    squares = 0.0
    if first:
        if family == MEANS:
            squares = residual_means(
                work, way.part, way.n_leaf, target, reach, n, way.with_gradient
            )
        else:
            if way.n_pairs > 0:
                fill_tangents(tree, work, adjoint, reach, psi, n)
            squares = accumulate_collapsed(
                work, way.part, way.n_leaf, way.n_pairs, target, adjoint, reach, n
            )
    if goes_back(way, first):
        if family == MEANS:
            adjoint_means(tree, work, way.n_leaf, target, adjoint, n)
        else:
            adjoint_collapsed(tree, work, way.n_leaf, target, adjoint, reach, n)
        back_through_block(data, h, tree, work, way, start, n, reach, psi, adjoint)
    return squares


@kernel
def finish_numbers(family, data, leaf_prior, h, tree, work, way, squares):
    """The log-likelihood of regression from the finished sums, and the gradient from them alone."""
    if family == MEANS:
        return finish_means(data, tree, work, way.n_leaf, squares, way.with_gradient)
    total = finish_collapsed(data, leaf_prior, tree, work, way.n_leaf, squares, way.with_gradient)
    if way.n_pairs > 0:
        gradient_from_tangents(h, tree, work, way.n_leaf)
    return total


# One pass over the rows gives the value, and the gradient where the adjoints need no more (explicit
# means) or where it takes few sums over pairs of leaf and ancestor (HMC-DF). Otherwise the adjoints
# need the finished sums, and a second pass, which routes the rows again unless the routing of all
# rows fits the cache.
#
# Derivatives are by thresholds, weights, leaf means and sigma on their own (constrained) scale.
# With hard splits (h = 0) those by thresholds and weights are zero.


@pointer_kernel
def class_likelihood(family, data, leaf_prior, h, p, tree, work, what, routed):
    """Log-likelihood of classification; a gradient also fills the d_ arrays of ``work``."""
    with_gradient = what == GRADIENT
    way = way_of(family, data, h, tree, work, with_gradient, True)
    clear_sums(family, tree, work, way)
    total = 0.0
    for this in range(way.passes):
        for b in range(data.block_class.shape[0]):
            classes_through_block(data, h, tree, work, way, b, this == 0)
        if this == 0:
            total = finish_classes(leaf_prior, work, way.n_leaf, with_gradient)
            if way.n_pairs > 0:
                gradient_from_pairs(h, tree, work, way.n_leaf)
    return total


@pointer_kernel
def number_likelihood(family, data, leaf_prior, h, p, tree, work, what, routed):
    """Log-likelihood of regression; a gradient also fills the d_ arrays of ``work``."""
    with_gradient = what == GRADIENT
    way = way_of(family, data, h, tree, work, with_gradient, True)
    clear_sums(family, tree, work, way)
    put_means(family, tree, work, way.n_leaf)
    total = 0.0
    squares = 0.0
    for this in range(way.passes):
        for b in range(data.block_class.shape[0]):
            squares += numbers_through_block(family, data, h, tree, work, way, b, this == 0)
        if this == 0:
            total = finish_numbers(family, data, leaf_prior, h, tree, work, way, squares)
    return total


unit(class_likelihood, LIKELIHOOD, seconds=4)
unit(number_likelihood, LIKELIHOOD, seconds=6)
