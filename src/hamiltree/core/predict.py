"""Rows through flat draws: predictions of each tree, their moments and quantiles, likely leaves.

Work is shared out by rows, in chunks that depend on the number of rows alone, and one thread does
all trees of a row in order: the results are the same to the last bit whatever ``n_jobs`` is.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .forest import (
    REACH,
    Forest,
    Workspace,
    draws_of_rows,
    likely_leaf_of_rows,
    moments_of_rows,
    quantiles_of_rows,
)
from .tree.kinds import MISSING_BELOW
from .tree.routing import BLOCK

FloatArray = NDArray[np.float64]

MAX_CHUNKS = 64
"""Chunks of rows a call: enough for every core, too few for the cost of a task to show."""


def _for_rows(forest: Forest, columns: FloatArray) -> Forest:
    """The trees as these rows need them: whether any cell is missing decides once, not by row."""
    doubts = (columns < MISSING_BELOW).any(axis=1)
    return forest._replace(doubts=doubts.astype(np.int64)) if doubts.any() else forest


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
        Threads, as scikit-learn counts them: None is 1, or what joblib.parallel_config says.

    Returns
    -------
    ndarray of shape (T, n, K)
    """
    forest = _for_rows(forest, columns)
    out = np.empty((len(forest.node_offset) - 1, columns.shape[1], values.shape[1]))
    _over_rows(
        lambda first, last, work: draws_of_rows(columns, forest, values, first, last, work, out),
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

    ``weight`` has one entry per tree; the other arguments are those of ``tree_predictions``. Both
    results have shape (n, K); the second has no rows unless it was asked for. No array over the
    trees is made.
    """
    forest = _for_rows(forest, columns)
    shape = (values.shape[1], columns.shape[1])
    mean = np.zeros(shape)
    square = np.zeros(shape if second else (0, 0))
    _over_rows(
        lambda first, last, work: moments_of_rows(
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
    forest = _for_rows(forest, columns)
    out = np.zeros((len(forest.node_offset) - 1, columns.shape[1]), np.int32)
    _over_rows(
        lambda first, last, work: likely_leaf_of_rows(columns, forest, first, last, work, out),
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
        lambda first, last: quantiles_of_rows(
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
        stack = np.empty(((largest + 1) // 2 * n_outputs, BLOCK))
        task(first, last, Workspace(stack=stack, rows=np.empty((REACH + largest, BLOCK))))

    _in_threads(run, n_rows, n_jobs)


def _in_threads(task: Callable[[int, int], Any], n_rows: int, n_jobs: int | None) -> None:
    """Run ``task(first, last)`` over chunks of whole blocks of rows."""
    n_blocks = -(-n_rows // BLOCK)
    chunk = BLOCK * max(1, -(-n_blocks // MAX_CHUNKS))
    bounds = [(first, min(first + chunk, n_rows)) for first in range(0, n_rows, chunk)]
    threads = min(joblib.effective_n_jobs(n_jobs), len(bounds))
    if threads <= 1:
        for first, last in bounds:
            task(first, last)
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(task, first, last) for first, last in bounds]:
            future.result()
