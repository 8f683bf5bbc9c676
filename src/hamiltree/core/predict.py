"""Rows through flat draws: predictions of each tree, their moments and quantiles, likely leaves.

Work is shared out by rows, in chunks that depend on the number of rows alone, and one thread does
all trees of a row in order: the results are the same to the last bit whatever ``n_jobs`` is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .jit import inlined, kernel, row_kernel
from .routing import BLOCK, add_scaled, fill, sigmoid, split_hard, split_soft

if TYPE_CHECKING:
    from ..draws import Draws

FloatArray = NDArray[np.float64]

MAX_CHUNKS = 64
"""Chunks of rows a call: enough for every core, too few for the cost of a task to show."""


class Forest(NamedTuple):
    """The arrays of ``Draws`` that routing needs, under the same names."""

    node_offset: NDArray[np.int64]
    size: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: FloatArray
    weights: FloatArray
    h: FloatArray
    """[1 or T, 1 or p]; one row for all trees, or one a tree; one entry for all columns, or one a
    column."""


def forest_of(draws: Draws) -> Forest:
    """The trees of ``draws`` as routing takes them."""
    h = draws.h if draws.h_learned else draws.h[None]
    return Forest(
        draws.node_offset, draws.size, draws.feature, draws.threshold, draws.weights, h
    )  # fmt: skip


class Workspace(NamedTuple):
    """One thread's buffers; a block of rows goes through all trees inside them."""

    stack: FloatArray
    """[leaves of the largest tree, K, BLOCK]; predictions of subtrees that wait for a parent."""
    reach: FloatArray
    """[nodes of the largest tree, BLOCK]; probability with which a row reaches a node."""
    psi: FloatArray
    """[BLOCK]; probability of going right."""
    projection: FloatArray
    """[BLOCK]; x . weights of a split."""


# Only Python calls the row kernels below, and they call nothing but what is inlined: one copy of
# each, so the same bits however it was loaded.


@inlined
def _split_values(columns, forest, t, split, start, stop, work):
    """What a split of tree t compares with its threshold, for a block of rows, and its softness."""
    h = forest.h[t if forest.h.shape[0] > 1 else 0]
    if forest.weights.shape[1] > 0:
        x = work.projection[: stop - start]
        x[:] = 0.0
        for f in range(columns.shape[0]):
            add_scaled(x, forest.weights[split, f], columns[f, start:stop])
        return x, h[0]
    feature = forest.feature[split]
    return columns[feature, start:stop], h[feature if h.shape[0] > 1 else 0]


@inlined
def _choose(x, threshold, left, right):
    """Hard split: keep the prediction of each row's own side in ``right``."""
    for r in range(x.shape[0]):
        if_left, if_right = left[r], right[r]
        right[r] = if_right if x[r] > threshold else if_left


@inlined
def _mix(x, threshold, scale, left, right):
    """Soft split: leave the mean of the two sides in ``right``."""
    for r in range(x.shape[0]):
        if_left = left[r]
        right[r] = if_left + sigmoid((x[r] - threshold) * scale) * (right[r] - if_left)


@inlined
def _mix_first(x, threshold, scale, left, right, psi):
    """The same, and keep the probability of going right for the other outputs."""
    for r in range(x.shape[0]):
        go_right = sigmoid((x[r] - threshold) * scale)
        if_left = left[r]
        right[r] = if_left + go_right * (right[r] - if_left)
        psi[r] = go_right


@inlined
def _mix_given(psi, left, right):
    for r in range(psi.shape[0]):
        if_left = left[r]
        right[r] = if_left + psi[r] * (right[r] - if_left)


@inlined
def _predict_block(columns, forest, values, t, start, stop, work):
    """Tree t's prediction for a block, sum_k phi_ik values_k, into ``work.stack[0]``.

    From the last node to the root: in this order the prediction of a left subtree comes right
    after that of its sibling, so a stack holds what is waiting, and it stays in the cache.
    """
    n = stop - start
    first = forest.node_offset[t]
    last = forest.node_offset[t + 1]
    split = (last - t - 1) // 2
    leaf = (last + t + 1) // 2
    top = -1
    for i in range(last - 1, first - 1, -1):
        if forest.size[i] == 1:
            leaf -= 1
            top += 1
            for k in range(values.shape[1]):
                fill(work.stack[top, k, :n], values[leaf, k])
            continue
        split -= 1
        x, softness = _split_values(columns, forest, t, split, start, stop, work)
        threshold = forest.threshold[split]
        left, right = work.stack[top], work.stack[top - 1]
        if softness > 0.0:
            scale = 1.0 / softness
            if values.shape[1] == 1:
                _mix(x, threshold, scale, left[0], right[0])
            else:
                _mix_first(x, threshold, scale, left[0], right[0], work.psi)
                for k in range(1, values.shape[1]):
                    _mix_given(work.psi[:n], left[k], right[k])
        else:
            for k in range(values.shape[1]):
                _choose(x, threshold, left[k], right[k])
        top -= 1


@inlined
def _route(columns, forest, t, start, stop, work):
    """Fill ``work.reach`` with the rows start:stop for the nodes of tree t."""
    n = stop - start
    offset = forest.node_offset[t]
    split = (offset - t) // 2
    work.reach[0, :n] = 1.0
    for i in range(forest.node_offset[t + 1] - offset):
        if forest.size[offset + i] == 1:
            continue
        x, softness = _split_values(columns, forest, t, split, start, stop, work)
        threshold = forest.threshold[split]
        split += 1
        here = work.reach[i]
        left = work.reach[i + 1]
        right = work.reach[i + 1 + forest.size[offset + i + 1]]
        if softness > 0.0:
            split_soft(x, threshold, 1.0 / softness, here, work.psi, left, right)
        else:
            split_hard(x, threshold, here, work.psi, left, right)


@row_kernel
def _draws_of_rows(columns, forest, values, first, last, work, out):
    """out[tree, row, k] for the rows first:last."""
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        for t in range(forest.node_offset.shape[0] - 1):
            _predict_block(columns, forest, values, t, start, stop, work)
            for k in range(values.shape[1]):
                for r in range(stop - start):
                    out[t, start + r, k] = work.stack[0, k, r]


@inlined
def _add_square(out, factor, a):
    for r in range(out.shape[0]):
        out[r] += factor * a[r] * a[r]


@row_kernel
def _moments_of_rows(columns, forest, values, weight, first, last, work, mean, square):
    """mean[k, row] and, unless it is empty, square[k, row]: weighted sums over the trees."""
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        for t in range(forest.node_offset.shape[0] - 1):
            _predict_block(columns, forest, values, t, start, stop, work)
            for k in range(values.shape[1]):
                add_scaled(mean[k, start:stop], weight[t], work.stack[0, k])
                if square.shape[0] > 0:
                    _add_square(square[k, start:stop], weight[t], work.stack[0, k])


@row_kernel
def _likely_leaf_of_rows(columns, forest, first, last, work, out):
    """out[tree, row]: number, within its tree, of the leaf that the row reaches most likely."""
    best = work.projection  # free again once a tree is routed
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        for t in range(forest.node_offset.shape[0] - 1):
            _route(columns, forest, t, start, stop, work)
            offset = forest.node_offset[t]
            best[:] = -1.0
            leaf = 0
            for i in range(forest.node_offset[t + 1] - offset):
                if forest.size[offset + i] == 1:
                    for r in range(stop - start):
                        if work.reach[i, r] > best[r]:
                            best[r] = work.reach[i, r]
                            out[t, start + r] = leaf
                    leaf += 1


@inlined
def _mixture_quantile(probability, z, means, sds, weight):
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
def _quantiles_of_rows(probabilities, z, means, sds, weight, first, last, out):
    for row in range(first, last):
        for j in range(probabilities.shape[0]):
            sd = sds[row if sds.shape[0] > 1 else 0]
            out[j, row] = _mixture_quantile(probabilities[j], z[j], means[row], sd, weight)


def tree_predictions(
    forest: Forest, values: FloatArray, columns: FloatArray, n_jobs: int | None = None
) -> FloatArray:
    """Predict with each tree on its own.

    Parameters
    ----------
    forest : Forest
        T trees.
    values : ndarray of shape (leaves, K)
        What a row gets from a leaf that it reaches surely.
    columns : ndarray of shape (p, n)
        Rows on the unit-interval scale, C-contiguous.
    n_jobs : int, optional
        Threads, counted as scikit-learn does; None uses all cores.

    Returns
    -------
    ndarray of shape (T, n, K)
    """
    out = np.empty((len(forest.node_offset) - 1, columns.shape[1], values.shape[1]))
    _over_rows(
        lambda first, last, work: _draws_of_rows(columns, forest, values, first, last, work, out),
        forest,
        values.shape[1],
        columns.shape[1],
        n_jobs,
    )
    return out


def prediction_moments(
    forest: Forest,
    values: FloatArray,
    weight: FloatArray,
    columns: FloatArray,
    *,
    second: bool = False,
    n_jobs: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums over the trees of the predictions and, with ``second``, of their squares.

    ``weight`` has one entry a tree; the other arguments are those of ``tree_predictions``. Both
    results have shape (n, K); the second has no rows unless it was asked for. No array over the
    trees is made.
    """
    shape = (values.shape[1], columns.shape[1])
    mean = np.zeros(shape)
    square = np.zeros(shape if second else (0, 0))
    _over_rows(
        lambda first, last, work: _moments_of_rows(
            columns, forest, values, weight, first, last, work, mean, square
        ),
        forest,
        shape[0],
        shape[1],
        n_jobs,
    )
    return mean.T, square.T


def most_likely_leaf(
    forest: Forest, columns: FloatArray, n_jobs: int | None = None
) -> NDArray[np.int32]:
    """Number, in its own tree's preorder of leaves, of each row's most likely leaf; [T, n].

    Of equally likely leaves the first counts.
    """
    out = np.zeros((len(forest.node_offset) - 1, columns.shape[1]), np.int32)
    _over_rows(
        lambda first, last, work: _likely_leaf_of_rows(columns, forest, first, last, work, out),
        forest,
        1,
        columns.shape[1],
        n_jobs,
    )
    return out


def mixture_quantiles(
    probabilities: FloatArray,
    means: FloatArray,
    sds: FloatArray,
    weight: FloatArray,
    n_jobs: int | None = None,
) -> FloatArray:
    """Quantiles of a mixture of normals for each row, to 1e-10 of the widest part's sd.

    ``means`` is [n, T], ``sds`` [n, T] or [1, T] for all rows, both C-contiguous; ``weight`` is
    [T]; the result is [probabilities, n].
    """
    z = ndtri(probabilities)
    out = np.empty((len(probabilities), len(means)))
    _in_threads(
        lambda first, last: _quantiles_of_rows(
            probabilities, z, means, sds, weight, first, last, out
        ),
        len(means),
        n_jobs,
    )
    return out


def _over_rows(
    task: Callable[[int, int, Workspace], Any],
    forest: Forest,
    n_outputs: int,
    n_rows: int,
    n_jobs: int | None,
) -> None:
    """Run ``task(first, last, workspace)`` over the rows, in threads with a workspace each."""
    largest = int(np.diff(forest.node_offset).max(initial=1))

    def run(first: int, last: int) -> None:
        stack = np.empty(((largest + 1) // 2, n_outputs, BLOCK))
        reach = np.empty((largest, BLOCK))
        task(first, last, Workspace(stack, reach, np.empty(BLOCK), np.empty(BLOCK)))

    _in_threads(run, n_rows, n_jobs)


def _in_threads(task: Callable[[int, int], Any], n_rows: int, n_jobs: int | None) -> None:
    """Run ``task(first, last)`` over chunks of whole blocks of rows."""
    n_blocks = -(-n_rows // BLOCK)
    chunk = BLOCK * max(1, -(-n_blocks // MAX_CHUNKS))
    bounds = [(first, min(first + chunk, n_rows)) for first in range(0, n_rows, chunk)]
    threads = min(joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs), len(bounds))
    if threads <= 1:
        for first, last in bounds:
            task(first, last)
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(task, first, last) for first, last in bounds]:
            future.result()
