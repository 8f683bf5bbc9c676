"""Soft and hard routing of a block of rows through a tree, and the way back for gradients.

psi = P(right) = sigmoid((x_feature - threshold) / h), or with x . weights for HMC-DFI. A row
reaches a node with the product of these along the path; at a leaf that is the paper's phi. Hard
splits (h = 0) are the same with psi 0 or 1: right when x > threshold.

Rows go through in blocks that stay in the cache. All that a block has one number per row for (psi
and reach of a node, its adjoint, ...) is a vector: a line of one two-dimensional buffer, ``rows``
below, named by its number. Blocks are padded to whole LANES.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import inlined, kernel, never_inline, row_kernel
from .kinds import IMPUTED, MISSING_BELOW, NO_LEVELS, imputed_number, is_special
from .nodes import ZERO

BLOCK = 256
"""Most rows of a block: the vectors of 9 nodes then fit the second-level cache easily."""

LANES = 8
"""Blocks are padded to a multiple of this: doubles in the widest vector register."""


def aligned_zeros(*shape: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros that start with a cache line: vector loads that straddle two cost a tenth of the time.

    NumPy promises 16 bytes only; lines and the widest registers have LANES doubles.
    """
    size = int(np.prod(shape))
    line = LANES * np.dtype(np.float64).itemsize // np.dtype(dtype).itemsize
    spare = np.zeros(size + line, dtype)
    start = -(spare.ctypes.data // spare.itemsize) % line
    return spare[start : start + size].reshape(shape)


@inlined
def exp_clamped(z):
    """exp for |z| <= 40, branch free so that row loops vectorise (relative error 1e-14).

    Beyond 40 a sigmoid is 0 or 1 to double precision; the clamp also keeps denormals, which cost
    several times as much, out of the products of path probabilities.
    """
    z = min(max(z, -40.0), 40.0)
    k = np.floor(z * 1.4426950408889634 + 0.5)
    r = z - k * 0.693147180369123816490
    r = r - k * 1.90821492927058770002e-10
    p = 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.int64(np.int32(k)) + 1023) << 52).view(np.float64)  # 2**k


@inlined
def sigmoid(z):
    return 1.0 / (1.0 + exp_clamped(-z))


# ------------------------------------------------------------------ loops over the rows of a block
# Each is compiled on its own, where nothing is known of the loop around it: LLVM would else check
# once, for all nodes, whether the vectors overlap, see that they share a buffer, and not vectorise.
# Columns are read from ``start`` on; unsigned, because a negative index would count from the end.
# (n >> 3) << 3 is n, in a way that tells the compiler that it is a multiple of LANES: what is left
# over from whole vectors then needs no code.


@row_kernel
def split_soft(x, f, start, threshold, scale, rows, here, psi, left, right, n):
    """Send the rows of one node on to its children."""
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        go_right = sigmoid((x[f, first + np.uint64(r)] - threshold) * scale)
        to_right = rows[here, r] * go_right
        rows[psi, r] = go_right
        rows[left, r] = rows[here, r] - to_right
        rows[right, r] = to_right


@row_kernel
def split_hard(x, f, start, threshold, rows, here, psi, left, right, n):
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        go_right = 1.0 if x[f, first + np.uint64(r)] > threshold else 0.0
        to_right = rows[here, r] * go_right
        rows[psi, r] = go_right
        rows[left, r] = rows[here, r] - to_right
        rows[right, r] = to_right


@row_kernel
def split_levels(x, f, start, levels, rows, here, psi, left, right, n):
    """A category: the levels of a set go right."""
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        level = np.uint64(x[f, first + np.uint64(r)])
        go_right = np.float64((levels >> level) & np.uint64(1))
        to_right = rows[here, r] * go_right
        rows[psi, r] = go_right
        rows[left, r] = rows[here, r] - to_right
        rows[right, r] = to_right


@row_kernel
def split_with_missing(x, f, start, threshold, scale, side, rows, here, psi, left, right, n):
    """Numbers by a threshold, hard where the scale is 0, and missing cells to one side.

    With a negative side missing cells count as what they were imputed as.
    """
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        value = x[f, first + np.uint64(r)]
        gone = value < MISSING_BELOW
        value = imputed_number(value) if gone else value
        if scale > 0.0:
            go_right = sigmoid((value - threshold) * scale)
        else:
            go_right = 1.0 if value > threshold else 0.0
        go_right = side if gone and side >= 0.0 else go_right
        to_right = rows[here, r] * go_right
        rows[psi, r] = go_right
        rows[left, r] = rows[here, r] - to_right
        rows[right, r] = to_right


@row_kernel
def fill(rows, out, value, n):
    never_inline()
    for r in range((n >> 3) << 3):
        rows[out, r] = value


@row_kernel
def fill_from(rows, out, x, f, start, n):
    """A part of a column, of either precision, as a vector."""
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        rows[out, r] = x[f, first + np.uint64(r)]


@row_kernel
def add_column(rows, out, factor, x, f, start, n):
    never_inline()
    first = np.uint64(start)
    for r in range((n >> 3) << 3):
        rows[out, r] += factor * x[f, first + np.uint64(r)]


@row_kernel
def dot_column(rows, a, x, f, start, n):
    never_inline()
    first = np.uint64(start)
    total = 0.0
    for r in range((n >> 3) << 3):
        total += x[f, first + np.uint64(r)] * rows[a, r]
    return total


@row_kernel
def add_scaled(rows, out, factor, a, n):
    never_inline()
    for r in range((n >> 3) << 3):
        rows[out, r] += factor * rows[a, r]


@row_kernel
def dot(rows, a, b, n):
    never_inline()
    total = 0.0
    for r in range((n >> 3) << 3):
        total += rows[a, r] * rows[b, r]
    return total


@row_kernel
def total_of(rows, a, n):
    never_inline()
    total = 0.0
    for r in range((n >> 3) << 3):
        total += rows[a, r]
    return total


@row_kernel
def scale_into(rows, out, factor, a, n):
    never_inline()
    for r in range((n >> 3) << 3):
        rows[out, r] = factor * rows[a, r]


@row_kernel
def multiply_shifted(rows, out, a, b, shift, n):
    never_inline()
    for r in range((n >> 3) << 3):
        rows[out, r] = rows[a, r] * (rows[b, r] - shift)


# Several at a time: sums over pairs of vectors are bound by loads and stores, and this saves most.


@row_kernel
def add_four(rows, out, f0, a0, f1, a1, f2, a2, f3, a3, n):
    never_inline()
    for r in range((n >> 3) << 3):
        rows[out, r] += f0 * rows[a0, r] + f1 * rows[a1, r] + f2 * rows[a2, r] + f3 * rows[a3, r]


@row_kernel
def total_and_two_dots(rows, a, b0, b1, n):
    never_inline()
    total = t0 = t1 = 0.0
    for r in range((n >> 3) << 3):
        total += rows[a, r]
        t0 += rows[a, r] * rows[b0, r]
        t1 += rows[a, r] * rows[b1, r]
    return total, t0, t1


@row_kernel
def three_dots(rows, a, b0, b1, b2, n):
    never_inline()
    t0 = t1 = t2 = 0.0
    for r in range((n >> 3) << 3):
        t0 += rows[a, r] * rows[b0, r]
        t1 += rows[a, r] * rows[b1, r]
        t2 += rows[a, r] * rows[b2, r]
    return t0, t1, t2


@row_kernel
def dot_two_by_three(rows, a0, a1, b0, b1, b2, n):
    never_inline()
    t00 = t01 = t02 = t10 = t11 = t12 = 0.0
    for r in range((n >> 3) << 3):
        t00 += rows[a0, r] * rows[b0, r]
        t01 += rows[a0, r] * rows[b1, r]
        t02 += rows[a0, r] * rows[b2, r]
        t10 += rows[a1, r] * rows[b0, r]
        t11 += rows[a1, r] * rows[b1, r]
        t12 += rows[a1, r] * rows[b2, r]
    return t00, t01, t02, t10, t11, t12


@row_kernel
def merge_adjoint(rows, psi, reach, left, right, adjoint, slope, n):
    """One node of the way back; returns the sum of its slopes.

    ``adjoint`` of a node is the derivative of the log-likelihood by the mass that reaches it;
    ``left`` and ``right`` are its children's. ``slope`` gets, row by row, the derivative by the
    argument of the node's sigmoid.
    """
    never_inline()
    total = 0.0
    for r in range((n >> 3) << 3):
        p, if_left = rows[psi, r], rows[left, r]
        difference = rows[right, r] - if_left
        rows[adjoint, r] = if_left + p * difference
        s = rows[reach, r] * p * (1.0 - p) * difference
        rows[slope, r] = s
        total += s
    return total


# ------------------------------------------------------------------ a block through a tree


@kernel
def reach_root(data, rows, root, start, real, n):
    """All real rows of a block reach the root, as often as their weights say; padding does not."""
    if data.root.shape[1] > 0:
        fill_from(rows, root, data.root, 0, start, n)
        return
    fill(rows, root, 1.0, n)
    for r in range(real, n):
        rows[root, r] = 0.0


@kernel
def split_special(kinds, x, f, column, start, h, tree, i, rows, here, psi, left, right, n):
    """Send the rows of a node on whose column is special; ``column`` of ``x`` has its cells."""
    if kinds.levels[f] > 0:
        split_levels(x, column, start, tree.levels[i], rows, here, psi, left, right, n)
        return
    scale = 1.0 / h[f] if h[f] > 0.0 else 0.0
    levels, threshold = tree.levels[i], tree.threshold[i]
    side = 0.0 if levels == NO_LEVELS else 1.0
    side = -1.0 if levels == IMPUTED else side
    split_with_missing(x, column, start, threshold, scale, side, rows, here, psi, left, right, n)


@kernel
def split_node(data, h, tree, i, start, n, rows, here, psi, left, right, projection):
    """Send the rows of an internal node on; all but the tree's node are numbers of vectors.

    ``projection`` is scratch.
    """
    columns, singles, kinds = data.columns, data.singles, data.kinds
    oblique, single = tree.weights.shape[1] > 0, data.columns.shape[1] == 0
    threshold = tree.threshold[i]
    f = tree.feature[i]
    if not oblique and is_special(kinds, f):
        if single:
            fill_from(rows, projection, singles, f, start, n)
            split_special(
                kinds, rows, f, projection, ZERO, h, tree, i, rows, here, psi, left, right, n
            )
        else:
            split_special(kinds, columns, f, f, start, h, tree, i, rows, here, psi, left, right, n)
        return
    if not oblique and not single:
        if h[f] > 0.0:
            scale = 1.0 / h[f]
            split_soft(columns, f, start, threshold, scale, rows, here, psi, left, right, n)
        else:
            split_hard(columns, f, start, threshold, rows, here, psi, left, right, n)
        return
    softness = h[0] if oblique else h[f]
    if oblique:
        fill(rows, projection, 0.0, n)
        for column in range(h.shape[0]):
            if single:
                add_column(rows, projection, tree.weights[i, column], singles, column, start, n)
            else:
                add_column(rows, projection, tree.weights[i, column], columns, column, start, n)
    else:
        fill_from(rows, projection, singles, f, start, n)
    if softness > 0.0:
        scale = 1.0 / softness
        split_soft(rows, projection, ZERO, threshold, scale, rows, here, psi, left, right, n)
    else:
        split_hard(rows, projection, ZERO, threshold, rows, here, psi, left, right, n)


@kernel
def route_block(data, h, tree, start, n, rows, reach, psi, projection):
    """Route the rows from ``start`` on from the root, where ``reach_root`` put them, to the leaves.

    Node i's vectors are ``reach + i`` and ``psi + i``; ``projection`` is scratch.
    """
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1:
            left, right = reach + i + 1, reach + i + 1 + tree.size[i + 1]
            split_node(
                data, h, tree, i, start, n, rows, reach + i, psi + i, left, right, projection
            )


@kernel
def backpropagate_block(
    data, h, tree, start, n, rows, reach, psi, adjoint, slope, d_threshold, d_weights
):
    """Add this block's derivatives by thresholds and weights, from the adjoints of the leaves."""
    columns, singles = data.columns, data.singles
    oblique, single = tree.weights.shape[1] > 0, data.columns.shape[1] == 0
    for i in range(tree.n_nodes[0] - 1, -1, -1):
        if tree.size[i] == 1:
            continue
        total = merge_adjoint(
            rows,
            psi + i,
            reach + i,
            adjoint + i + 1,
            adjoint + i + 1 + tree.size[i + 1],
            adjoint + i,
            slope,
            n,
        )
        scale = 1.0 / h[0] if oblique else 1.0 / h[tree.feature[i]]
        d_threshold[i] -= total * scale
        if oblique:
            for f in range(h.shape[0]):
                if single:
                    d_weights[i, f] += scale * dot_column(rows, slope, singles, f, start, n)
                else:
                    d_weights[i, f] += scale * dot_column(rows, slope, columns, f, start, n)
