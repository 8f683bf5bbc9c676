"""The routing of a sweep's tree, kept for all rows: a proposal then routes what it changed.

A move changes a tree below one node. Rows reach all leaves elsewhere as before, so that what a
proposal needs of the rows are the leaves below that node, whose numbers ``kept`` does not have yet.
They are computed as for a whole tree, by the same products in the same order: nothing is added to
or subtracted from what is kept, and no rounding piles up.

A vector has one number per row of a block. Nodes have theirs in places that they take from a list
of free ones: a proposal takes some, and either gives them back or keeps them instead of those of
the nodes that are gone. What is kept lasts for one sweep, and within it as long as h.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..backend.records import Float1, Float2, Int1, Record
from ..tree.nodes import ZERO, n_leaves
from ..tree.routing import aligned_zeros, fill_from, reach_root, split_node

FEWEST_LEAVES = 8
"""Trees of fewer are evaluated as a whole: nearly all of their leaves are below what changes."""

KEPT_FLOATS = 1 << 20
"""Room for the routing of all rows: 8 MB. Larger trees are evaluated as a whole."""

Y, PSI, PROJECTION, OTHERS, MIXTURE = range(5)
"""Vectors of a block that are not of nodes: y; scratch of the routing, twice; of LABELS, what all
other leaves than the changed ones give p(y_i), and p(y_i)."""
RESERVED = 5


class Kept(Record, role="scratch"):
    """The routing of a tree, and of a proposal what it changed.

    The changed leaves are those below the node that ``nodes.changed_node`` finds.
    """

    rows: Float2
    """[blocks * places, largest block]; see ``routing``."""
    n_places: int
    """Of each block; 0 where nothing is kept."""
    fewest: int
    """Leaves; see FEWEST_LEAVES."""
    is_kept: Int1
    """[1]; whether the rest is that of the chain's tree."""
    place: Int1
    """[capacity]; of the nodes of the tree."""
    new_place: Int1
    """[capacity]; of those of the proposal."""
    free: Int1
    """[places]; a stack of places that no node has."""
    n_free: Int1
    """[1]"""
    vectors: Int1
    """[max_leaves + 3]; Y and the places of the proposal's leaves, the changed ones last."""
    old: Int1
    """[max_leaves]; places of the changed leaves of the tree."""
    gram: Float2
    """[max_leaves, max_leaves + 1] for COLLAPSED; Phi'y, then the lower triangle of Phi'Phi."""
    products: Float1
    """[(max_leaves + 1) * (max_leaves + 3)]; of the changed leaves with y and all leaves."""
    squares: Float1
    """[1]; y'y"""


def make_kept(max_leaves: int, n_blocks: int, width: int, has_means: bool) -> Kept:
    """``n_blocks`` 0: nothing is kept."""
    capacity = 2 * max_leaves - 1
    n_places = min(RESERVED + 2 * capacity, KEPT_FLOATS // (n_blocks * width)) if n_blocks else 0
    square = max_leaves if has_means and n_places else 0
    return Kept(
        rows=aligned_zeros(n_blocks * n_places, width),
        n_places=n_places,
        fewest=FEWEST_LEAVES,
        is_kept=np.zeros(1, np.int64),
        place=np.zeros(capacity, np.int64),
        new_place=np.zeros(capacity, np.int64),
        free=np.zeros(n_places, np.int64),
        n_free=np.zeros(1, np.int64),
        vectors=np.zeros(max_leaves + 3, np.int64),
        old=np.zeros(max_leaves, np.int64),
        gram=np.zeros((square, square + 1)),
        products=np.zeros((square + 1) * (square + 3)),
        squares=np.zeros(1),
    )


@kernel
def can_keep(kept, tree):
    """Whether this tree's routing has room, and is worth it."""
    return n_leaves(tree) >= kept.fewest and kept.n_places >= RESERVED + tree.n_nodes[0]


@kernel
def keep_routing(data, h, tree, kept):
    """Route all rows through the tree; ``can_keep`` said yes."""
    n_nodes, n_places = tree.n_nodes[0], kept.n_places
    kept.is_kept[0] = 1
    for i in range(n_nodes):
        kept.place[i] = RESERVED + i
    kept.n_free[0] = n_places - RESERVED - n_nodes
    for k in range(kept.n_free[0]):
        kept.free[k] = n_places - 1 - k
    for b in range(data.block_class.shape[0]):
        start = data.block[b]
        n = data.block[b + 1] - start
        first = b * n_places
        reach_root(data, kept.rows, first + kept.place[0], start, data.block_rows[b], n)
        if data.y.shape[1] > 0:
            fill_from(kept.rows, first + Y, data.y, 0, start, n)
    route_below(data, h, tree, kept, kept.place, ZERO)


@kernel
def route_below(data, h, tree, kept, place, node):
    """Route the rows that reach a node through the subtree below it."""
    rows, size = kept.rows, tree.size
    for b in range(data.block_class.shape[0]):
        start = data.block[b]
        n = data.block[b + 1] - start
        first = b * kept.n_places
        for i in range(node, node + size[node]):
            if size[i] > 1:
                here = first + place[i]
                left, right = first + place[i + 1], first + place[i + 1 + size[i + 1]]
                psi, projection = first + PSI, first + PROJECTION
                split_node(data, h, tree, i, start, n, rows, here, psi, left, right, projection)


@kernel
def has_room(kept, tree, new, node):
    """Whether what changed below a node can be evaluated, and by the same rule the way back."""
    return kept.n_places >= RESERVED + tree.n_nodes[0] + new.size[node] - 1


@kernel
def begin_change(data, h, tree, new, kept, node):
    """Route the rows through what changed below a node: (leaves before it, changed ones)."""
    place, new_place, free = kept.place, kept.new_place, kept.free
    stop, grown = node + new.size[node], new.size[node] - tree.size[node]
    for i in range(node + 1):
        new_place[i] = place[i]
    for i in range(node + 1, stop):
        new_place[i] = free[kept.n_free[0] - (i - node)]
    for i in range(stop, new.n_nodes[0]):
        new_place[i] = place[i - grown]
    route_below(data, h, new, kept, new_place, node)
    return list_leaves_of_change(tree, new, kept, node)


@kernel
def list_leaves_of_change(tree, new, kept, node):
    """Fill ``vectors`` and ``old``; (leaves before the node, changed ones of the proposal)."""
    vectors, old = kept.vectors, kept.old
    stop = node + new.size[node]
    changed = (new.size[node] + 1) // 2
    others = n_leaves(new) - changed
    before, at, last = 0, 1, 1 + others
    vectors[0] = Y
    for i in range(new.n_nodes[0]):
        if new.size[i] > 1:
            continue
        if node <= i < stop:
            vectors[last] = kept.new_place[i]
            last += 1
        else:
            before += 1 if i < node else 0
            vectors[at] = kept.new_place[i]
            at += 1
    for k in range(2):  # products come three at a time; these are not read
        vectors[last + k] = vectors[last - 1]
    k = 0
    for i in range(node, node + tree.size[node]):
        if tree.size[i] == 1:
            old[k] = kept.place[i]
            k += 1
    return before, changed


@kernel
def commit_change(tree, new, kept, node):
    """The proposal becomes the tree; before it is copied."""
    kept.n_free[0] -= new.size[node] - 1
    for i in range(node + 1, node + tree.size[node]):
        kept.free[kept.n_free[0]] = kept.place[i]
        kept.n_free[0] += 1
    for i in range(new.n_nodes[0]):
        kept.place[i] = kept.new_place[i]
