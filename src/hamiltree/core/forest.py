"""Rows through flat draws: the kernels of ``predict``."""

from __future__ import annotations

import math

import numpy as np

from .backend.jit import inlined, kernel, never_inline, row_kernel
from .backend.records import Float1, Float2, Float3, Int1, Record, Short1, Word1
from .backend.units import unit
from .tree.kinds import IMPUTED, MISSING_BELOW, NO_LEVELS, imputed_number
from .tree.nodes import ZERO
from .tree.routing import BLOCK, sigmoid


class Forest(Record):
    """The arrays of ``Draws`` that routing needs, under the same names."""

    node_offset: Int1
    """[T + 1]"""
    size: Short1
    """[nodes]"""
    feature: Short1
    """[splits]"""
    threshold: Float1
    """[splits]"""
    weights: Float2
    """[splits, p or 0]"""
    h: Float2
    """[1 or T, 1 or p]; one row for all trees, or one per tree; one entry for all columns, or one
    per column."""
    levels: Word1
    """[splits]; what goes right beside larger numbers, see ``tree.kinds``."""
    kind: Int1
    """[p]; levels of a category, less than 0 for numbers that had missing cells in training, 0 for
    others, see ``coded_kinds``; [0] where no column is special."""
    doubts: Int1
    """[p]; 1 for columns of the rows to predict that have MISSING; [0] where none has."""


class Workspace(Record):
    """One thread's buffers; a block of rows goes through all trees inside them."""

    stack: Float2
    """[leaves of the largest tree * K, BLOCK]; predictions of subtrees that wait for a parent."""
    rows: Float2
    """[2 + nodes of the largest tree, BLOCK]; the next two, then the probability with which a row
    reaches each node."""


PROJECTION, PSI, REACH = 0, 1, 2
"""Vectors of ``Workspace.rows``: x . weights of a split; probability of going right; the first
node's."""
PROJECTED = np.int64(PROJECTION)
"""The same as a column: kernels would be compiled once more for a literal."""


# Loops over rows are compiled on their own, as in ``tree.routing``.


@row_kernel
def _choose(x, f, start, threshold, stack, left, right, n):
    """Hard split: keep the prediction of each row's own side in ``right``."""
    never_inline()
    first = np.uint64(start)
    for r in range(n):
        if x[f, first + np.uint64(r)] <= threshold:
            stack[right, r] = stack[left, r]


@row_kernel
def _go_right(x, f, start, threshold, scale, rows, n):
    never_inline()
    first = np.uint64(start)
    for r in range(n):
        rows[PSI, r] = sigmoid((x[f, first + np.uint64(r)] - threshold) * scale)


@row_kernel
def _go_special(x, f, start, kind, threshold, scale, levels, rows, n):
    """Special columns, and cells that training could say nothing about: these go both ways."""
    never_inline()
    first = np.uint64(start)
    side = 0.5
    if kind < 0:
        side = 0.0 if levels == NO_LEVELS else 1.0
    imputed = kind < 0 and levels == IMPUTED
    for r in range(n):
        value = x[f, first + np.uint64(r)]
        gone = value < MISSING_BELOW
        if gone and imputed:
            value = imputed_number(value)
        if gone and not imputed:
            rows[PSI, r] = side
        elif kind > 0:
            rows[PSI, r] = np.float64((levels >> np.uint64(value)) & np.uint64(1))
        elif scale > 0.0:
            rows[PSI, r] = sigmoid((value - threshold) * scale)
        else:
            rows[PSI, r] = 1.0 if value > threshold else 0.0


@row_kernel
def _mix(rows, stack, left, right, n):
    """Soft split: leave the mean of the two sides in ``right``."""
    never_inline()
    for r in range(n):
        if_left = stack[left, r]
        stack[right, r] = if_left + rows[PSI, r] * (stack[right, r] - if_left)


@row_kernel
def _fill(stack, out, value, n):
    never_inline()
    for r in range(n):
        stack[out, r] = value


@row_kernel
def _project(columns, weights, split, start, rows, n):
    never_inline()
    first = np.uint64(start)
    for r in range(n):
        rows[PROJECTION, r] = 0.0
    for f in range(columns.shape[0]):
        factor = weights[split, f]
        for r in range(n):
            rows[PROJECTION, r] += factor * columns[f, first + np.uint64(r)]


@row_kernel
def _split_rows(rows, here, left, right, n):
    """Send the rows of a node on to its children, by the probabilities of going right."""
    never_inline()
    for r in range(n):
        to_right = rows[here, r] * rows[PSI, r]
        rows[left, r] = rows[here, r] - to_right
        rows[right, r] = to_right


@row_kernel
def _hard_right(x, f, start, threshold, rows, n):
    never_inline()
    first = np.uint64(start)
    for r in range(n):
        rows[PSI, r] = 1.0 if x[f, first + np.uint64(r)] > threshold else 0.0


@inlined
def _is_careful(forest, f):
    """Whether a split on a column is more than a comparison of numbers."""
    special = forest.kind.shape[0] > 0 and forest.kind[f] != 0
    return special or (forest.doubts.shape[0] > 0 and forest.doubts[f] != 0)


@kernel
def _split_carefully(columns, forest, split, softness, start, rows, n):
    f = np.int64(forest.feature[split])
    kind = forest.kind[f] if forest.kind.shape[0] > 0 else np.int64(0)
    scale = 1.0 / softness if softness > 0.0 else 0.0
    threshold, levels = forest.threshold[split], forest.levels[split]
    _go_special(columns, f, start, kind, threshold, scale, levels, rows, n)


@inlined
def _softness(forest, t, feature):
    """Of a split of tree t."""
    row = t if forest.h.shape[0] > 1 else 0
    return forest.h[row, feature if forest.h.shape[1] > 1 else 0]


@kernel
def _predict_block(columns, forest, values, t, start, n, work):
    """Tree t's prediction for a block, sum_k phi_ik values_k, into the first K of the stack.

    From the last node to the root: in this order the prediction of a left subtree comes right
    after that of its sibling, so a stack holds what is waiting, and it stays in the cache.
    """
    size, feature, threshold = forest.size, forest.feature, forest.threshold
    stack, rows = work.stack, work.rows
    oblique = forest.weights.shape[1] > 0
    width = values.shape[1]
    first = forest.node_offset[t]
    last = forest.node_offset[t + 1]
    split = (last - t - 1) // 2
    leaf = (last + t + 1) // 2
    top = -width
    for i in range(last - 1, first - 1, -1):
        if size[i] == 1:
            leaf -= 1
            top += width
            for k in range(width):
                _fill(stack, top + k, values[leaf, k], n)
            continue
        split -= 1
        f = np.int64(feature[split])
        softness = _softness(forest, t, 0 if oblique else f)
        if not oblique and _is_careful(forest, f):
            _split_carefully(columns, forest, split, softness, start, rows, n)
            for k in range(width):
                _mix(rows, stack, top + k, top - width + k, n)
            top -= width
            continue
        if oblique:
            _project(columns, forest.weights, split, start, rows, n)
        if softness > 0.0:
            if oblique:
                _go_right(rows, PROJECTED, ZERO, threshold[split], 1.0 / softness, rows, n)
            else:
                _go_right(columns, f, start, threshold[split], 1.0 / softness, rows, n)
            for k in range(width):
                _mix(rows, stack, top + k, top - width + k, n)
        else:
            for k in range(width):
                left, right = top + k, top - width + k
                if oblique:
                    _choose(rows, PROJECTED, ZERO, threshold[split], stack, left, right, n)
                else:
                    _choose(columns, f, start, threshold[split], stack, left, right, n)
        top -= width


@kernel
def _route(columns, forest, t, start, n, work):
    """Fill the reach of the nodes of tree t for a block of rows."""
    size, threshold, rows = forest.size, forest.threshold, work.rows
    oblique = forest.weights.shape[1] > 0
    offset = forest.node_offset[t]
    split = (offset - t) // 2
    _fill(rows, REACH, 1.0, n)
    for i in range(forest.node_offset[t + 1] - offset):
        if size[offset + i] == 1:
            continue
        f = np.int64(0 if oblique else forest.feature[split])
        softness = _softness(forest, t, f)
        if oblique:
            _project(columns, forest.weights, split, start, rows, n)
            if softness > 0.0:
                _go_right(rows, PROJECTED, ZERO, threshold[split], 1.0 / softness, rows, n)
            else:
                _hard_right(rows, PROJECTED, ZERO, threshold[split], rows, n)
        elif _is_careful(forest, f):
            _split_carefully(columns, forest, split, softness, start, rows, n)
        elif softness > 0.0:
            _go_right(columns, f, start, threshold[split], 1.0 / softness, rows, n)
        else:
            _hard_right(columns, f, start, threshold[split], rows, n)
        split += 1
        left = REACH + i + 1
        _split_rows(rows, REACH + i, left, left + size[offset + i + 1], n)


@kernel
def draws_of_rows(columns, forest, values, first, last, work, out):
    """out[tree, row, k] for the rows first:last."""
    for start in range(first, last, BLOCK):
        n = min(BLOCK, last - start)
        for t in range(forest.node_offset.shape[0] - 1):
            _predict_block(columns, forest, values, t, start, n, work)
            for k in range(values.shape[1]):
                for r in range(n):
                    out[t, start + r, k] = work.stack[k, r]


@row_kernel
def _add_moments(stack, k, weight, start, n, mean, square):
    never_inline()
    first = np.uint64(start)
    for r in range(n):
        mean[k, first + np.uint64(r)] += weight * stack[k, r]
    if square.shape[0] > 0:
        for r in range(n):
            square[k, first + np.uint64(r)] += weight * stack[k, r] * stack[k, r]


@kernel
def moments_of_rows(columns, forest, values, weight, first, last, work, mean, square):
    """mean[k, row] and, unless it is empty, square[k, row]: weighted sums over the trees."""
    for start in range(first, last, BLOCK):
        n = min(BLOCK, last - start)
        for t in range(forest.node_offset.shape[0] - 1):
            _predict_block(columns, forest, values, t, start, n, work)
            for k in range(values.shape[1]):
                _add_moments(work.stack, k, weight[t], start, n, mean, square)


@kernel
def likely_leaf_of_rows(columns, forest, first, last, work, out):
    """out[tree, row]: number, within its tree, of the leaf that the row reaches most likely."""
    rows = work.rows
    for start in range(first, last, BLOCK):
        n = min(BLOCK, last - start)
        for t in range(forest.node_offset.shape[0] - 1):
            _route(columns, forest, t, start, n, work)
            offset = forest.node_offset[t]
            for r in range(n):
                rows[PROJECTION, r] = -1.0  # free again once a tree is routed
            leaf = 0
            for i in range(forest.node_offset[t + 1] - offset):
                if forest.size[offset + i] == 1:
                    for r in range(n):
                        if rows[REACH + i, r] > rows[PROJECTION, r]:
                            rows[PROJECTION, r] = rows[REACH + i, r]
                            out[t, start + r] = leaf
                    leaf += 1


@inlined
def mixture_quantile(probability, z, means, sds, weight):
    """Solve sum_t weight_t Phi((q - mean_t) / sd_t) = probability by Newton inside a bracket.

    ``z`` is the standard normal quantile of the same probability: the mixture's quantile lies
    between the smallest and the largest of its parts' quantiles.
    """
    low = np.inf
    high = -np.inf
    widest = 0.0
    for t in range(means.shape[0]):
        low = min(low, means[t] + z * sds[t])
        high = max(high, means[t] + z * sds[t])
        widest = max(widest, sds[t])
    q = 0.5 * (low + high)
    for _ in range(200):  # bisection alone would need 60
        below = 0.0
        density = 0.0
        for t in range(means.shape[0]):
            u = (q - means[t]) / sds[t]
            below += weight[t] * 0.5 * math.erfc(-u * math.sqrt(0.5))
            density += weight[t] * math.exp(-0.5 * u * u) / (sds[t] * math.sqrt(2.0 * math.pi))
        if below < probability:
            low = q
        else:
            high = q
        before = q
        q = q - (below - probability) / density if density > 0.0 else np.inf
        if not (low < q < high):
            q = 0.5 * (low + high)
        if abs(q - before) <= 1e-10 * widest:
            break
    return q


@kernel
def quantiles_of_rows(probabilities, z, means, sds, weight, first, last, out):
    for row in range(first, last):
        for j in range(probabilities.shape[0]):
            sd = sds[row if sds.shape[0] > 1 else 0]
            out[j, row] = mixture_quantile(probabilities[j], z[j], means[row], sd, weight)


unit(draws_of_rows, Float2, Forest, Float2, int, int, Workspace, Float3, seconds=2)
unit(moments_of_rows, Float2, Forest, Float2, Float1, int, int, Workspace, Float2, Float2)
