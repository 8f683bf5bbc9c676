"""Regression with the leaf means integrated out, of a proposal: from sums that are kept, and new.

The likelihood needs y'y, Phi'y and Phi'Phi. A proposal changes the columns of Phi of the leaves
below one node: the products of these with y and with all columns are new, the others are kept. With
m leaves of L changed that takes m L products of columns instead of L L / 2.
"""

from __future__ import annotations

from ..backend.jit import kernel
from ..tree.nodes import ZERO
from ..tree.routing import dot, dot_two_by_three
from .collapsed import width_of_sums
from .kept_routing import Y, list_leaves_of_change


@kernel
def products_of_change(data, kept, leaves, changed):
    """Fill ``products``: of the changed leaves with y and the leaves, as ``vectors`` lists them."""
    rows, vectors, products = kept.rows, kept.vectors, kept.products
    width = width_of_sums(leaves)
    others = leaves - changed
    for k in range((changed + 1) * width):
        products[k] = 0.0
    for b in range(data.block_class.shape[0]):
        n = data.block[b + 1] - data.block[b]
        first = b * kept.n_places
        for a in range(0, changed, 2):
            a0 = first + vectors[1 + others + a]
            a1 = first + vectors[1 + others + min(a + 1, changed - 1)]
            # of the changed leaves with each other the lower triangle
            for c in range(0, 1 + others + min(a + 2, changed), 3):
                t00, t01, t02, t10, t11, t12 = dot_two_by_three(
                    rows,
                    a0,
                    a1,
                    first + vectors[c],
                    first + vectors[c + 1],
                    first + vectors[c + 2],
                    n,
                )
                at = a * width + c
                products[at] += t00
                products[at + 1] += t01
                products[at + 2] += t02
                at += width
                products[at] += t10
                products[at + 1] += t11
                products[at + 2] += t12


@kernel
def put_sums_of_change(kept, work, leaves, before, changed, were):
    """The sums of the proposal where ``collapsed.log_marginal`` looks for them.

    ``were``: the leaves that the changed ones take the place of.
    """
    gram, products, sums = kept.gram, kept.products, work.sums
    width = width_of_sums(leaves)
    others = leaves - changed
    for j in range(others):
        to, was = (j, j) if j < before else (j + changed, j + were)
        sums[0, to * width] = gram[was, 0]
        for k in range(j + 1):
            to_k, was_k = (k, k) if k < before else (k + changed, k + were)
            sums[0, to * width + 1 + to_k] = gram[was, 1 + was_k]
    for a in range(changed):
        of, to = a * width, before + a
        sums[0, to * width] = products[of]
        for j in range(others):
            other = j if j < before else j + changed
            sums[0, max(to, other) * width + 1 + min(to, other)] = products[of + 1 + j]
        for c in range(a + 1):
            sums[0, to * width + 1 + before + c] = products[of + 1 + others + c]


@kernel
def take_sums(work, leaves):
    """The sums in ``work`` are those of the chain's tree."""
    gram, sums = work.kept.gram, work.sums
    width = width_of_sums(leaves)
    for a in range(leaves):
        for c in range(a + 2):
            gram[a, c] = sums[0, a * width + c]


@kernel
def put_kept_sums(work, leaves):
    """The kept sums where ``collapsed.log_marginal`` looks for them."""
    gram, sums = work.kept.gram, work.sums
    width = width_of_sums(leaves)
    for a in range(leaves):
        for c in range(a + 2):
            sums[0, a * width + c] = gram[a, c]


@kernel
def keep_sums(data, tree, work):
    """Those of the chain's tree, whose routing is kept."""
    kept = work.kept
    leaves = (tree.n_nodes[0] + 1) // 2
    for i in range(tree.n_nodes[0]):
        kept.new_place[i] = kept.place[i]
    list_leaves_of_change(tree, tree, kept, ZERO)
    products_of_change(data, kept, leaves, leaves)
    put_sums_of_change(kept, work, leaves, ZERO, leaves, leaves)
    take_sums(work, leaves)
    squares = 0.0
    for b in range(data.block_class.shape[0]):
        first = b * kept.n_places + Y
        squares += dot(kept.rows, first, first, data.block[b + 1] - data.block[b])
    kept.squares[0] = squares
