"""The log-likelihood of large data: the rows in parcels, which several threads may take on.

The sums of a parcel go into a slot of its own. Slots are added in order, whoever filled them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .buffers import Data, Work
from .crew import PARCEL, shared
from .jit import inlined, kernel, never_inline, replacing, row_kernel
from .likelihoods import clear_sums, count_sums, finish, list_leaves, through_block, ways
from .means import put_means
from .nodes import Tree
from .routing import window

_in_the_slot = replacing(
    "adjoint", "slope", "counts", "sums", "d_threshold", "d_weights", "d_value", "d_sigma"
)


@inlined
def slot_of(work, slot, n_sums):
    """Counts, sums and derivatives of a slot: 0 for all rows, then the parcels.

    Sums stand close together: there is room for trees of any size, and memory that nobody touches
    costs nothing.
    """
    sets = work.d_sigma.shape[0]
    leaves = work.counts.shape[0] // sets
    nodes = work.d_threshold.shape[0] // sets
    return (
        work.counts[slot * leaves : (slot + 1) * leaves],
        window(work.sums, slot * n_sums, n_sums),
        window(work.d_threshold, slot * nodes, nodes),
        work.d_weights[slot * nodes : (slot + 1) * nodes],
        window(work.d_value, slot * nodes, nodes),
        window(work.d_sigma, slot, 1),
    )


@row_kernel
def pass_over_parcel(
    family, data, h, tree, work, n_leaf, n_pairs, with_gradient, sums, back, part, who
):
    """One pass over the rows of a parcel, into its slot."""
    threads = work.slope.shape[0] // 2
    room = work.adjoint.shape[0] // threads
    n_sums = count_sums(family, work, n_leaf, n_pairs)
    own = (window(work.adjoint, who * room, room), work.slope[2 * who : 2 * who + 2])
    mine = _in_the_slot(work, own + slot_of(work, part + 1, n_sums))
    if sums:
        clear_sums(family, tree, mine, n_leaf, n_pairs, with_gradient)
    base = who * (work.psi.shape[0] // threads)
    n_blocks = data.block_class.shape[0]
    parcels = work.d_sigma.shape[0] - 1
    squares = 0.0
    for b in range(part * n_blocks // parcels, (part + 1) * n_blocks // parcels):
        squares += through_block(
            family,
            data,
            h,
            tree,
            mine,
            n_leaf,
            n_pairs,
            with_gradient,
            b,
            base,
            True,
            sums,
            back,
        )
    if sums:
        mine.d_sigma[0] = squares


_pass, _pass_address = shared(pass_over_parcel)


@inlined
def add_sums(family, tree, work, n_leaf, n_pairs, with_gradient):
    """Of all parcels, in order; returns the sum of squares."""
    n_sums = count_sums(family, work, n_leaf, n_pairs)
    squares = 0.0
    for slot in range(1, work.d_sigma.shape[0]):
        counts, sums, _, _, d_value, parcel_squares = slot_of(work, slot, n_sums)
        squares += parcel_squares[0]
        for k in range(n_leaf):
            for m in range(work.counts.shape[1]):
                work.counts[k, m] += counts[k, m]
        for k in range(n_sums):
            work.sums[k] += sums[k]
        if with_gradient:
            for i in range(tree.n_nodes[0]):
                work.d_value[i] += d_value[i]
    return squares


@inlined
def add_derivatives(tree, work):
    for slot in range(1, work.d_sigma.shape[0]):
        _, _, d_threshold, d_weights, _, _ = slot_of(work, slot, 0)
        for i in range(tree.n_nodes[0]):
            work.d_threshold[i] += d_threshold[i]
            for f in range(work.d_weights.shape[1]):
                work.d_weights[i, f] += d_weights[i, f]


@kernel
def parcelled_likelihood(family, data, leaf_prior, h, tree, work, with_gradient):
    """``log_likelihood``, parcel by parcel."""
    never_inline()
    n_leaf = list_leaves(tree, work.leaf)
    through_splits, n_pairs, passes, _ = ways(
        family, data, h, tree, work, n_leaf, with_gradient, False
    )
    clear_sums(family, tree, work, n_leaf, n_pairs, with_gradient)
    put_means(family, tree, work, n_leaf)
    total = 0.0
    for this in range(passes):
        sums = this == 0
        back = through_splits and n_pairs == 0 and this == passes - 1
        task = (family, data, h, tree, work, n_leaf, n_pairs, with_gradient, sums, back)
        _pass(work.crew, work.d_sigma.shape[0] - 1, work.crew[PARCEL], task)
        if sums:
            squares = add_sums(family, tree, work, n_leaf, n_pairs, with_gradient)
            total = finish(
                family, data, leaf_prior, h, tree, work, n_leaf, n_pairs, squares, with_gradient
            )
        if back:
            add_derivatives(tree, work)
    return total


def connect_parcels(
    family: int, data: Data, h: NDArray[np.float64], tree: Tree, work: Work
) -> None:
    """Compile the task for such arguments, or load it; the crew of ``work`` then knows it."""
    example = (family, data, h, tree, work, 0, 0, False, False, False, 0, 0)
    work.crew[PARCEL] = _pass_address(*example)
