"""What the row loops of the likelihoods work on: the data in their order, and scratch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .bins import n_parts
from .crew import make_crew
from .routing import BLOCK

CLASSES = 0
"""Dirichlet-multinomial leaves, leaf probabilities integrated out."""
MEANS = 1
"""Normal noise, leaf means explicit (the paper's)."""
COLLAPSED = 2
"""Normal noise, leaf means integrated out."""

CACHED_FLOATS = 1 << 17
"""Routing of all rows is kept between the two passes while it fits this many floats (1 MB a
buffer); beyond that recomputing it is cheaper than fetching it from memory."""

LANES = 8
"""Rows of a class are padded to a multiple of this: doubles in the widest vector register."""

PAIRS_A_SPLIT = (8, 0, 4)
"""By family: up to so many pairs of leaf and ancestor for each split, sums over the rows are the
faster way to the gradient of an HMC-DF tree than a second pass that routes the rows again. Explicit
means need neither."""

PAIRS_A_SPLIT_KEPT = (4, 0, 3)
"""The same where the routing of the first pass could be kept for the second."""


class Data(NamedTuple):
    """What is observed, in the order the row loops want it; shared by all chains.

    Classification: rows are sorted by class, so that all rows of a block have one class and its
    leaf sums need no look-up. The rows of a class, or all rows, are padded to a multiple of LANES:
    a loop then has no left-over rows, which would go one by one. Padding reaches no leaf.
    """

    n_rows: int
    """Without the padding."""
    columns: NDArray[np.float64]
    """[p, padded rows]; inputs on the unit interval, a feature contiguous."""
    y: NDArray[np.float64]
    """[padded rows] standardised target, 0 for padding; [0] for classification."""
    block: NDArray[np.int64]
    """[n_blocks + 1]; rows of block b are block[b]:block[b + 1], at most BLOCK of them."""
    block_rows: NDArray[np.int64]
    """[n_blocks]; how many of them are real; padding comes last."""
    block_class: NDArray[np.int64]
    """[n_blocks]; the class of its rows; 0 for regression."""


class LeafPrior(NamedTuple):
    """Hyper-parameters of the leaves and the noise."""

    class_prior: NDArray[np.float64]
    """[K] Dirichlet alpha_m; [0] for regression."""
    mu_mean: float
    mu_sd: float
    sigma_shape: float
    sigma_scale: float


class Work(NamedTuple):
    """Scratch of one chain; nothing in it outlives a call of ``log_likelihood``.

    Where data are in parcels, psi, reach, adjoint and slope are there for each thread, and counts,
    sums and the derivatives for all rows and then for each parcel; ``d_sigma`` of a parcel is its
    sum of squares. Those of other threads and parcels come behind what is said here.
    """

    psi: NDArray[np.float64]
    """[capacity * BLOCK or more]; see routing."""
    reach: NDArray[np.float64]
    adjoint: NDArray[np.float64]
    """[PAIRS_A_SPLIT * max_leaves * BLOCK for COLLAPSED, else capacity * BLOCK]; adjoints by node,
    or COLLAPSED's tangents."""
    slope: NDArray[np.float64]
    """[2, BLOCK]"""
    leaf: NDArray[np.int64]
    """[max_leaves]; the nodes that are leaves, preorder."""
    counts: NDArray[np.float64]
    """[max_leaves, K]; classification: soft class counts."""
    table: NDArray[np.float64]
    """[max_leaves, K]; classification: adjoint of a leaf by class. Regression: column 0 is the
    posterior mean m of the leaf means."""
    sums: NDArray[np.float64]
    """Sums over all rows. Classification: of phi x psi by class, for each leaf and each of its
    ancestors. COLLAPSED: see there."""
    gram: NDArray[np.float64]
    """[max_leaves, max_leaves] for COLLAPSED; S, then its Cholesky factor."""
    moment: NDArray[np.float64]
    """[max_leaves, max_leaves] for COLLAPSED; M = S^-1 + m m'."""
    d_threshold: NDArray[np.float64]
    """[capacity]"""
    d_weights: NDArray[np.float64]
    """[capacity, p] or [capacity, 0]"""
    d_value: NDArray[np.float64]
    """[capacity]"""
    d_sigma: NDArray[np.float64]
    """[1]"""
    crew: NDArray[np.int64]
    """[0] where data are not in parcels."""


def aligned_zeros(*shape: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros that start with a cache line: vector loads that straddle two cost a tenth of the time.

    NumPy promises 16 bytes only; lines and the widest registers have LANES doubles.
    """
    size = int(np.prod(shape))
    line = LANES * np.dtype(np.float64).itemsize // np.dtype(dtype).itemsize
    spare = np.zeros(size + line, dtype)
    start = -(spare.ctypes.data // spare.itemsize) % line
    return spare[start : start + size].reshape(shape)


class Columns(Protocol):
    """Inputs on the unit interval, a feature a row: an array, or one made block by block."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def blocks_of(columns: Columns) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Parts of the rows, and their columns; large data are not there as one array beside X."""
    if isinstance(columns, np.ndarray):
        yield slice(0, columns.shape[1]), columns
    else:
        yield from columns.blocks()  # type: ignore[attr-defined]


def make_data(columns: Columns, y: NDArray[np.generic], n_classes: int) -> Data:
    """Sort rows by class (classification), pad them, and cut them into blocks."""
    codes = np.asarray(y, np.int64) if n_classes else np.zeros(columns.shape[1], np.int64)
    runs = [np.flatnonzero(codes == label) for label in range(max(n_classes, 1))]
    padded = [-(-len(run) // LANES) * LANES for run in runs]
    bounds = np.concatenate([[0], np.cumsum(padded)])
    out = aligned_zeros(columns.shape[0], bounds[-1], dtype=columns.dtype)
    target = aligned_zeros(0 if n_classes else bounds[-1])
    blocks = []  # start, real rows, class
    place = np.empty(columns.shape[1], np.int64)
    for label, run in enumerate(runs):
        begin = int(bounds[label])
        place[run] = np.arange(begin, begin + len(run))
        if not n_classes:
            target[: len(run)] = y
        for start in range(0, len(run), BLOCK):
            blocks.append((begin + start, min(BLOCK, len(run) - start), label))
    for part, block in blocks_of(columns):
        out[:, place[part]] = block
    table = np.array(blocks, np.int64).reshape(-1, 3)
    return Data(
        n_rows=columns.shape[1],
        columns=out,
        y=target,
        block=np.append(table[:, 0], bounds[-1]),
        block_rows=np.ascontiguousarray(table[:, 1]),
        block_class=np.ascontiguousarray(table[:, 2]),
    )


def make_work(
    data: Data, max_leaves: int, n_classes: int, n_weights: int, family: int, threads: int = 1
) -> Work:
    capacity = 2 * max_leaves - 1
    n_rows = data.columns.shape[1]  # with the padding
    block = min(BLOCK, n_rows)
    kept = max(capacity * block, min(CACHED_FLOATS, capacity * n_rows))
    square = max_leaves if family == COLLAPSED else 0
    pairs = PAIRS_A_SPLIT[family] * max_leaves
    parcels = n_parts(data.n_rows)
    if parcels:
        kept = max(kept, threads * capacity * block)
    else:
        threads = 1
    sets = 1 + parcels
    return Work(
        psi=aligned_zeros(kept),
        reach=aligned_zeros(kept),
        adjoint=aligned_zeros(threads * max(capacity, pairs if square else 0) * block),
        slope=aligned_zeros(2 * threads, block),
        leaf=np.zeros(max_leaves, np.int64),
        counts=np.zeros((sets * max_leaves, max(n_classes, 1))),
        table=np.zeros((max_leaves, max(n_classes, 1))),
        sums=np.zeros(sets * pairs * (square + 3 if square else n_classes)),
        gram=np.zeros((square, square)),
        moment=np.zeros((square, square)),
        d_threshold=np.zeros(sets * capacity),
        d_weights=np.zeros((sets * capacity, n_weights)),
        d_value=np.zeros(sets * capacity),
        d_sigma=np.zeros(sets),
        crew=make_crew() if parcels else np.zeros(0, np.int64),
    )
