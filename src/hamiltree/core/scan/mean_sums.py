"""What a scan of soft regression adds up, bin by bin: see ``leaf_means``."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel, never_inline, row_kernel
from ..matrices import cholesky, solve_lower, solve_upper
from ..tree.nodes import ZERO
from ..tree.routing import LANES, add_scaled, dot, dot_two_by_three, scale_into, split_node
from .leaf_means import ASIDE, HERE, OUTSIDE_NODE, PROJECTED, PSI, REACH, REST, ROWS_AT_ONCE

HARDLY = 1e-3
"""Rows of which less reaches the node are left out."""
NOTHING_LEFT = 1e-3
"""Squares of a column of Q at the other rows, up to which it is left out: they bound what it takes
from the squares of a changed column."""
MOST_WORK = 1 << 22
"""Rows times columns times sums of a scan; larger ones are made as if splits were hard."""

# ------------------------------------------------------------------ what is added up
# Of a row, for w = what reaches the node, and a_k = what would reach leaf k of a kept subtree if
# all of w went to its side:
#
#   w r;  a_k r, a_k Q_j for each k;  w^2;  a_k a_l for l <= k
#
# A side that is a new leaf has w in the place of a_k, which is the sum over the leaves of the other
# side, where that is kept. Where both are new, w is the only a_k.


@kernel
def first_square(n_kept, n_others):
    """The place of w^2."""
    return 1 + n_kept * (1 + n_others)


@kernel
def n_terms(n_kept, n_others):
    return first_square(n_kept, n_others) + 1 + n_kept * (n_kept + 1) // 2


@row_kernel
def put_product(terms, at, rows, a, b, start, n):
    never_inline()
    first = np.uint64(start)
    for k in range(n):
        r = first + np.uint64(k)
        terms[np.uint64(k), at] = np.float32(rows[a, r] * rows[b, r])


@row_kernel
def add_terms(sums, terms, code, f, first, width, near, start, n):
    """Add the terms of rows to their bins."""
    never_inline()
    for r in range(n):
        at = np.uint64((first + code[f, np.uint64(near[start + r])]) * width)
        for k in range(width):
            sums[at + np.uint64(k)] += terms[np.uint64(r), np.uint64(k)]


@kernel
def sum_by_bin(means, n_near, n_kept, n_others):
    rows, terms, sums, near = means.rows, means.terms, means.sums, means.near
    kept, others, code, first = means.kept, means.others, means.code, means.first
    width, p = n_terms(n_kept, n_others), code.shape[0]
    for k in range(first[p] * width):
        sums[k] = 0.0
    for start in range(0, n_near, ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, n_near - start)
        put_product(terms, ZERO, rows, HERE, REST, start, n)
        at = 1
        for k in range(n_kept):
            put_product(terms, at, rows, kept[k], REST, start, n)
            for j in range(n_others):
                put_product(terms, at + 1 + j, rows, kept[k], others[j], start, n)
            at += 1 + n_others
        put_product(terms, at, rows, HERE, HERE, start, n)
        at += 1
        for k in range(n_kept):
            for other in range(k + 1):
                put_product(terms, at, rows, kept[k], kept[other], start, n)
                at += 1
        for f in range(p):
            add_terms(sums, terms, code, f, first[f], width, near, start, n)


# ------------------------------------------------------------------ what reaches the leaves
#
# The node that is scanned, or a frame around it, and all that is below count as one leaf. Nodes up
# to it have the vectors from REACH on, in their order; those behind it follow without a gap. How
# many vectors a scan needs is therefore the same forth and back.


@kernel
def vector_of(tree, around, i):
    """Of a node that is not below ``around``."""
    return REACH + i if i <= around else REACH + i + 1 - tree.size[around]


@kernel
def route_node(scan, tree, i, here, left, right):
    """Send on what reaches an internal node; vectors of the node and of its children."""
    rows = scan.means.rows
    split_node(
        scan.data,
        scan.model.h,
        tree,
        i,
        ZERO,
        rows.shape[1],
        rows,
        here,
        PSI,
        left,
        right,
        PROJECTED,
    )


@kernel
def route_outside(scan, tree, around):
    """What reaches each node that is not below ``around``."""
    rows, root = scan.means.rows, scan.means.root
    for r in range(rows.shape[1]):
        rows[REACH, r] = root[r]
    i = 0
    while i < tree.n_nodes[0]:
        if i == around:
            i += tree.size[i]
            continue
        if tree.size[i] > 1:
            here, left = vector_of(tree, around, i), vector_of(tree, around, i + 1)
            right = vector_of(tree, around, i + 1 + tree.size[i + 1])
            route_node(scan, tree, i, here, left, right)
        i += 1


@kernel
def route_down(scan, tree, around, at):
    """What reaches a node at or below ``around``, into HERE."""
    rows = scan.means.rows
    scale_into(rows, HERE, 1.0, REACH + around, rows.shape[1])
    i = around
    while i != at:
        right = i + 1 + tree.size[i + 1]
        route_node(scan, tree, i, HERE, ASIDE, REST)
        scale_into(rows, HERE, 1.0, ASIDE if at < right else REST, rows.shape[1])
        i = i + 1 if at < right else right


@kernel
def route_side(scan, tree, side, first, count):
    """What reaches the leaves of a side, if all rows of the node went there; counts them on.

    ``first``: the vector of its root.
    """
    rows, kept = scan.means.rows, scan.means.kept
    if side < 0:
        return count
    scale_into(rows, first, 1.0, HERE, rows.shape[1])
    for i in range(side, side + tree.size[side]):
        here = first + i - side
        if tree.size[i] > 1:
            route_node(scan, tree, i, here, here + 1, here + 1 + tree.size[i + 1])
        else:
            kept[count] = here
            count += 1
    return count


@kernel
def fill_gram(rows, others, gram, count, n):
    """Products of the other leaves' columns: six at a time, as in ``soft.collapsed``."""
    last = count - 1
    for j in range(0, count, 2):
        a0, a1 = others[j], others[min(j + 1, last)]
        for k in range(0, min(j + 2, count), 3):
            k1, k2 = min(k + 1, last), min(k + 2, last)
            t00, t01, t02, t10, t11, t12 = dot_two_by_three(
                rows, a0, a1, others[k], others[k1], others[k2], n
            )
            gram[j, k], gram[j, k1], gram[j, k2] = t00, t01, t02
            if j < last:
                gram[j + 1, k], gram[j + 1, k1], gram[j + 1, k2] = t10, t11, t12


@kernel
def find_means(scan, n_others):
    """Means of the other leaves given all rows, into ``solved``; False by rounding.

    ``gram`` is left with the Cholesky factor.
    """
    means, sigma = scan.means, scan.tables.sigma[0]
    rows, others, gram, y, solved = means.rows, means.others, means.gram, means.y, means.solved
    n = rows.shape[1]
    for r in range(n):
        rows[REST, r] = y[r]
    fill_gram(rows, others, gram, n_others, n)
    for j in range(n_others):
        gram[j, j] += sigma * sigma / scan.model.mean_variance
        solved[j] = dot(rows, REST, others[j], n)
    if not cholesky(gram, n_others):
        return False
    solve_lower(gram, n_others, solved)
    solve_upper(gram, n_others, solved)
    return True


@row_kernel
def compact(rows, a, near, count, n):
    """Leave of a vector what it has for the rows that are near; 0 up to n."""
    never_inline()
    for k in range(count):
        rows[a, np.uint64(k)] = rows[a, np.uint64(near[k])]
    for k in range(count, n):
        rows[a, np.uint64(k)] = 0.0


@kernel
def make_orthogonal(means, n_kept, n_others, n_near):
    """r, and Q in the place of the other leaves' columns, of the rows that are near.

    Columns of Q that have next to nothing there are dropped; returns how many are left.
    """
    rows, others, gram, near, solved = (
        means.rows,
        means.others,
        means.gram,
        means.near,
        means.solved,
    )
    n = -(-n_near // LANES) * LANES
    compact(rows, HERE, near, n_near, n)
    compact(rows, REST, near, n_near, n)
    if means.kept[0] != HERE:
        for k in range(n_kept):
            compact(rows, means.kept[k], near, n_near, n)
    for j in range(n_others):
        compact(rows, others[j], near, n_near, n)
        add_scaled(rows, REST, -solved[j], others[j], n)
    for j in range(n_others):
        for k in range(j):
            add_scaled(rows, others[j], -gram[j, k], others[k], n)
        scale_into(rows, others[j], gram[j, j], others[j], n)
    count = 0
    for j in range(n_others):
        if dot(rows, others[j], others[j], n) > NOTHING_LEFT:
            others[count] = others[j]
            count += 1
    return count


@kernel
def list_others(tree, around, others):
    """Vectors of the leaves outside; how many."""
    count = 0
    i = 0
    while i < tree.n_nodes[0]:
        if i == around:
            i += tree.size[i]
            continue
        if tree.size[i] == 1:
            others[count] = vector_of(tree, around, i)
            count += 1
        i += 1
    return count


@kernel
def list_near(means):
    """Rows that reach the node; how many."""
    rows, near, root = means.rows, means.near, means.root
    count = 0
    for r in range(rows.shape[1]):
        near[np.uint64(count)] = r
        count += 1 if rows[HERE, r] > HARDLY * root[r] else 0
    return count


@kernel
def nodes_of_side(tree, side):
    return 0 if side < 0 else tree.size[side]


@kernel
def is_wide(scan):
    """Whether splits are soft enough for it to matter."""
    h, levels = scan.model.h, scan.data.kinds.levels
    for f in range(h.shape[0]):  # noqa: SIM110 (no generators in compiled code)
        if levels[f] == 0 and h[f] >= scan.means.narrow:
            return True
    return False


@kernel
def add_up_terms(scan, tree, at, left, right):
    """Add up what the scores of a node's rules need; False where a hard scan has to do."""
    means = scan.means
    n, p = means.rows.shape[1], means.code.shape[0]
    if n == 0 or not is_wide(scan):
        return False
    around = at if means.frame[0] == OUTSIDE_NODE else means.frame[0]
    nodes_left, nodes_right = nodes_of_side(tree, left), nodes_of_side(tree, right)
    n_left, n_right = (nodes_left + 1) // 2, (nodes_right + 1) // 2
    n_kept = max(n_left + n_right, 1)
    first = REACH + tree.n_nodes[0] + 1 - tree.size[around]
    if first + nodes_left + nodes_right > means.rows.shape[0]:
        return False
    route_outside(scan, tree, around)
    route_down(scan, tree, around, at)
    n_others = list_others(tree, around, means.others)
    if not find_means(scan, n_others):
        return False
    means.kept[0] = HERE
    count = route_side(scan, tree, left, first, ZERO)
    route_side(scan, tree, right, first + nodes_left, count)
    n_near = list_near(means)
    n_others = make_orthogonal(means, n_kept, n_others, n_near)
    width = n_terms(n_kept, n_others)
    if width > means.moved.shape[1] or n_near * p * width > MOST_WORK:
        return False
    means.n_others[0] = n_others
    means.n_side[0], means.n_side[1] = n_left, n_right
    sum_by_bin(means, n_near, n_kept, n_others)
    return True
