"""Columns of large data as bins: what they are made from, and scratch to count in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BINNED_ROWS = 8192
"""Beyond so many rows columns are not sorted but binned, see ``scan_bins``, and work over the rows
is done in parts, see ``crew``."""
PART_ROWS, MAX_PARTS = 4096, 64
"""Parts have so many rows, or more where there would be more parts than these."""
MAX_BINS = 256
"""Of a column: what a byte can tell apart."""
FINE_BINS = 512
"""Where a column is looked at closely."""
WINDOW_CELLS = 96
"""Cells that the close look has."""
QUANTILES = 5
"""Where splits are soft, rows are counted in fifths."""


class BinWork(NamedTuple):
    """Scratch of one chain; all but empty where columns are not binned.

    From ``edge`` to ``share`` there is one for each thread, one behind the other.
    """

    projected: NDArray[np.float64]
    """[rows] for HMC-DFI, else [0]; in the order of the node's rows."""
    code: NDArray[np.uint8]
    """The same; bins of the projection."""
    segment: NDArray[np.int64]
    """[K + 1]; where the rows of each class begin among the node's; [2] for regression."""
    edge: NDArray[np.float64]
    """[FINE_BINS]; where the bins at hand end."""
    counts: NDArray[np.float64]
    """[FINE_BINS * leaves * channels]; for each bin and each leaf of either side, what would go to
    that leaf of the bins up to this one. Channels: rows of each class, or rows and their sum."""
    base: NDArray[np.float64]
    """[leaves * channels]; the same of all rows before the first of these bins."""
    place: NDArray[np.int64]
    """[5]; the bin that a quantile is in."""
    share: NDArray[np.float64]
    """[5]; and what part of it lies before the quantile."""
    close: NDArray[np.int64]
    """[p]; 1 for columns that are looked at closely."""


def n_parts(n_rows: int) -> int:
    """How many parts work over so many rows has; 0 where they are not that many."""
    if n_rows <= BINNED_ROWS:
        return 0
    return -(-n_rows // max(PART_ROWS, -(-n_rows // MAX_PARTS)))


def bin_columns(
    columns: NDArray[np.float64], rows: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Code of each row, values that end the bins, how many bins, and how many distinct values.

    A column of few distinct values has a bin for each. Otherwise bins hold about as many rows each.
    """
    p, n = columns.shape
    chosen = slice(None) if len(rows) == n else rows
    code = np.zeros((p, n), np.uint8)
    grid = np.zeros((p, MAX_BINS))
    n_bins, n_levels = np.zeros(p, np.int64), np.zeros(p, np.int64)
    for f in range(p):
        x = columns[f, chosen]
        ordered = np.sort(x)
        n_levels[f] = 1 + np.count_nonzero(ordered[1:] > ordered[:-1])
        if n_levels[f] > MAX_BINS:
            ordered = ordered[-(-len(x) * np.arange(1, MAX_BINS + 1) // MAX_BINS) - 1]
        values = np.unique(ordered)
        n_bins[f] = len(values)
        grid[f, : len(values)] = values
        code[f, chosen] = np.searchsorted(values, x, side="left")
    return code, grid, n_bins, n_levels


def make_bin_work(
    p: int, rows: int, n_classes: int, max_leaves: int, n_weights: int, threads: int
) -> BinWork:
    """``rows`` 0 where columns are not binned."""
    channels = (max_leaves + 2) * (n_classes or 2) if rows else 0
    return BinWork(
        projected=np.zeros(rows if n_weights else 0),
        code=np.zeros(rows if n_weights else 0, np.uint8),
        segment=np.zeros(max(n_classes, 1) + 1, np.int64),
        edge=np.zeros(threads * FINE_BINS),
        counts=np.zeros(threads * FINE_BINS * channels),
        base=np.zeros(threads * channels),
        place=np.zeros(threads * QUANTILES, np.int64),
        share=np.zeros(threads * QUANTILES),
        close=np.zeros(p, np.int64),
    )
