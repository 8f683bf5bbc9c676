"""Soft and hard routing of a block of rows through a tree, and the way back for gradients.

psi = P(right) = sigmoid((x_feature - threshold) / h), or with x . weights for HMC-DFI. A row
reaches a node with the product of these along the path; at a leaf that is the paper's phi. Hard
splits (h = 0) are the same with psi 0 or 1: right when x > threshold.

Rows go through in blocks that stay in the cache. A block of ``n`` rows keeps, from ``base`` on,
node i's row r at ``base + i * n + r``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import float_from_bits, inlined

BLOCK = 256
"""Rows a block: three buffers of 9 nodes then fit the second-level cache with room to spare."""


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
    return p * float_from_bits((np.int64(np.int32(k)) + 1023) << 52)


@inlined
def sigmoid(z):
    return 1.0 / (1.0 + exp_clamped(-z))


# Row loops take views that start at zero: an index with an unknown offset could be negative for all
# the compiler knows, and the loop would not vectorise.


@inlined
def split_soft(x, threshold, scale, reach, psi, reach_left, reach_right):
    """Send the rows of one node on to its children."""
    for r in range(x.shape[0]):
        go_right = sigmoid((x[r] - threshold) * scale)
        to_right = reach[r] * go_right
        psi[r] = go_right
        reach_left[r] = reach[r] - to_right
        reach_right[r] = to_right


@inlined
def split_hard(x, threshold, reach, psi, reach_left, reach_right):
    for r in range(x.shape[0]):
        go_right = 1.0 if x[r] > threshold else 0.0
        to_right = reach[r] * go_right
        psi[r] = go_right
        reach_left[r] = reach[r] - to_right
        reach_right[r] = to_right


@inlined
def add_scaled(out, factor, a):
    for r in range(out.shape[0]):
        out[r] += factor * a[r]


@inlined
def dot(a, b):
    total = 0.0
    for r in range(a.shape[0]):
        total += a[r] * b[r]
    return total


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


@inlined
def scale_into_two(out0, f0, out1, f1, a):
    for r in range(a.shape[0]):
        x = a[r]
        out0[r] = f0 * x
        out1[r] = f1 * x


@inlined
def multiply_shifted(out, a, b, shift):
    for r in range(out.shape[0]):
        out[r] = a[r] * (b[r] - shift)


# Several at a time: sums over pairs of vectors are bound by loads and stores, and this saves most.


@inlined
def add_four(out, f0, a0, f1, a1, f2, a2, f3, a3):
    for r in range(out.shape[0]):
        out[r] += f0 * a0[r] + f1 * a1[r] + f2 * a2[r] + f3 * a3[r]


@inlined
def total_and_two_dots(a, b0, b1):
    total = t0 = t1 = 0.0
    for r in range(a.shape[0]):
        total += a[r]
        t0 += a[r] * b0[r]
        t1 += a[r] * b1[r]
    return total, t0, t1


@inlined
def three_dots(a, b0, b1, b2):
    t0 = t1 = t2 = 0.0
    for r in range(a.shape[0]):
        t0 += a[r] * b0[r]
        t1 += a[r] * b1[r]
        t2 += a[r] * b2[r]
    return t0, t1, t2


@inlined
def dot_two_by_three(a0, a1, b0, b1, b2):
    t00 = t01 = t02 = t10 = t11 = t12 = 0.0
    for r in range(a0.shape[0]):
        t00 += a0[r] * b0[r]
        t01 += a0[r] * b1[r]
        t02 += a0[r] * b2[r]
        t10 += a1[r] * b0[r]
        t11 += a1[r] * b1[r]
        t12 += a1[r] * b2[r]
    return t00, t01, t02, t10, t11, t12


@intrinsic
def window(typingctx: Any, buffer: Any, start: Any, n: Any) -> Any:
    """buffer[start : start + n] of a one-dimensional array, which must be within its bounds.

    A slice takes care of negative and of too large indices; there are so many here that this was an
    eighth of the time it takes to compile the likelihood.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        whole = context.make_array(kind)(context, builder, args[0])
        view = context.make_array(kind)(context, builder)
        # An empty instruction hides where ``start`` came from: LLVM would else compare the whole
        # range over all nodes before a loop over one node's rows, see that nodes share a buffer,
        # and not vectorise.
        word = args[1].type
        hidden = builder.asm(
            ir.FunctionType(word, [word]), "", "=r,0", [args[1]], side_effect=False
        )
        context.populate_array(
            view,
            data=builder.gep(whole.data, [hidden]),
            shape=[args[2]],
            strides=[whole.itemsize],
            itemsize=whole.itemsize,
            meminfo=whole.meminfo,
            parent=whole.parent,
        )
        return view._getvalue()

    return buffer(buffer, types.intp, types.intp), codegen


@inlined
def rows_of(buffer, base, i, n):
    """Node i's rows of a block of n rows whose first node stands at ``base``."""
    return window(buffer, base + i * n, n)


@inlined
def fill(out, value):
    for r in range(out.shape[0]):
        out[r] = value


@inlined
def reach_root(reach, base, real, n):
    """All real rows of a block reach the root; the padding behind them does not."""
    fill(rows_of(reach, base, 0, n), 1.0)
    for r in range(base + real, base + n):
        reach[r] = 0.0


@intrinsic
def column_block(typingctx: Any, columns: Any, f: Any, start: Any, stop: Any, spare: Any) -> Any:
    """columns[f, start:stop], by way of ``spare`` where columns are stored as float32."""
    stored = columns.dtype

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = context.make_array(signature.args[0])(context, builder, args[0])
        kind = signature.args[4]
        room = context.make_array(kind)(context, builder, args[4])
        _, n = cgutils.unpack_tuple(builder, whole.shape)
        begin = builder.add(builder.mul(args[1], n), args[2])
        source = builder.gep(whole.data, [begin])
        length = builder.sub(args[3], args[2])
        if stored != types.float64:
            with cgutils.for_range(builder, length) as loop:
                x = builder.load(builder.gep(source, [loop.index]))
                wide = context.cast(builder, x, stored, types.float64)
                builder.store(wide, builder.gep(room.data, [loop.index]))
            source = room.data
        view = context.make_array(kind)(context, builder)
        context.populate_array(
            view,
            data=source,
            shape=[length],
            strides=[room.itemsize],
            itemsize=room.itemsize,
            meminfo=room.meminfo,
            parent=room.parent,
        )
        return view._getvalue()

    return spare(columns, types.intp, types.intp, types.intp, spare), codegen


@inlined
def route_block(columns, h, tree, start, stop, base, psi, reach, projection):
    """Route rows start:stop from the root, where ``reach_root`` put them, to the leaves."""
    n = stop - start
    oblique = tree.weights.shape[1] > 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            continue
        if oblique:
            softness = h[0]
            x = projection[:n]
            fill(x, 0.0)
            for f in range(columns.shape[0]):
                add_scaled(x, tree.weights[i, f], columns[f, start:stop])
        else:
            softness = h[tree.feature[i]]
            x = column_block(columns, tree.feature[i], start, stop, projection)
        here = rows_of(reach, base, i, n)
        go_right = rows_of(psi, base, i, n)
        left = rows_of(reach, base, i + 1, n)
        right = rows_of(reach, base, i + 1 + tree.size[i + 1], n)
        if softness > 0.0:
            split_soft(x, tree.threshold[i], 1.0 / softness, here, go_right, left, right)
        else:
            split_hard(x, tree.threshold[i], here, go_right, left, right)


@inlined
def merge_adjoint(psi, reach, left, right, adjoint, slope):
    """One node of the way back; returns the sum of its slopes.

    ``adjoint`` of a node is the derivative of the log-likelihood by the mass that reaches it;
    ``left`` and ``right`` are its children's. ``slope`` gets, row by row, the derivative by the
    argument of the node's sigmoid.
    """
    total = 0.0
    for r in range(psi.shape[0]):
        difference = right[r] - left[r]
        adjoint[r] = left[r] + psi[r] * difference
        s = reach[r] * psi[r] * (1.0 - psi[r]) * difference
        slope[r] = s
        total += s
    return total


@inlined
def backpropagate_block(
    columns, h, tree, start, stop, base, psi, reach, adjoint, slope, d_threshold, d_weights
):
    """Add this block's derivatives by thresholds and weights, from the adjoints of the leaves.

    ``adjoint`` holds one block only, so it has no ``base``.
    """
    n = stop - start
    oblique = tree.weights.shape[1] > 0
    for i in range(tree.n_nodes[0] - 1, -1, -1):
        if tree.size[i] == 1:
            continue
        total = merge_adjoint(
            rows_of(psi, base, i, n),
            rows_of(reach, base, i, n),
            rows_of(adjoint, 0, i + 1, n),
            rows_of(adjoint, 0, i + 1 + tree.size[i + 1], n),
            rows_of(adjoint, 0, i, n),
            slope[:n],
        )
        scale = 1.0 / h[0] if oblique else 1.0 / h[tree.feature[i]]
        d_threshold[i] -= total * scale
        if oblique:
            for f in range(columns.shape[0]):
                d_weights[i, f] += scale * dot(columns[f, start:stop], slope[:n])
