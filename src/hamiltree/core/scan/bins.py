"""Columns of large data as bins: what they are made from, and scratch to count in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backend.records import Byte1, Float1, Int1, Record
from ..tree.kinds import MISSING_BELOW, Kinds

MAX_BINS = 256
"""Of a column, that of its missing cells included: what a byte can tell apart."""
FINE_BINS = 512
"""Where a column is looked at closely."""
WINDOW_CELLS = 96
"""Cells that the close look has."""
QUANTILES = 5
"""Where splits are soft, rows are counted in fifths."""


class BinWork(Record, role="scratch"):
    """Scratch of one thread; all but empty where columns are not binned."""

    projected: Float1
    """[rows] for HMC-DFI, else [0]; in the order of the node's rows."""
    code: Byte1
    """The same; bins of the projection."""
    segment: Int1
    """[K + 1]; where the rows of each class begin among the node's; [2] for regression."""
    edge: Float1
    """[FINE_BINS]; where the bins at hand end."""
    counts: Float1
    """[FINE_BINS * leaves * channels]; for each bin and each leaf of either side, what would go to
    that leaf of the bins up to this one. Channels: rows of each class, or rows and their sum."""
    base: Float1
    """[leaves * channels]; the same of all rows before the first of these bins."""
    moved: Float1
    """[leaves * channels]; the same of all rows before a cut."""
    missing: Float1
    """[leaves * channels]; the same of the rows whose cell is missing."""
    place: Int1
    """[5]; the bin that a quantile is in."""
    share: Float1
    """[5]; and what part of it lies before the quantile."""
    close: Int1
    """[p]; 1 for columns that are looked at closely."""
    weights: Float1
    """[p] for HMC-DFI, else [0]; that rows are projected on."""


def bin_columns(
    columns: NDArray[np.float64], rows: NDArray[np.int32], kinds: Kinds
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Code of each row, values that end the bins, how many bins, and how many distinct values.

    A column of few distinct values has a bin for each. Otherwise bins hold about as many rows each.
    Missing cells have the bin behind the last, and are not counted. A category has its levels.
    """
    p, n = columns.shape
    chosen = slice(None) if len(rows) == n else rows
    code = np.zeros((p, n), np.uint8)
    grid = np.zeros((p, MAX_BINS))
    n_bins, n_levels = np.zeros(p, np.int64), np.zeros(p, np.int64)
    for f in range(p):
        x = columns[f, chosen]
        if kinds.levels[f] > 0:
            code[f, chosen] = x
            n_bins[f] = n_levels[f] = kinds.levels[f]
            continue
        there = x >= MISSING_BELOW
        ordered = np.sort(x[there])
        n_levels[f] = len(ordered[:1]) + np.count_nonzero(ordered[1:] > ordered[:-1])
        most = MAX_BINS - int(kinds.missing[f] > 0)
        if n_levels[f] > most:
            ordered = ordered[-(-len(ordered) * np.arange(1, most + 1) // most) - 1]
        values = np.unique(ordered)
        n_bins[f] = len(values)
        grid[f, : len(values)] = values
        code[f, chosen] = np.where(there, np.searchsorted(values, x, side="left"), len(values))
    return code, grid, n_bins, n_levels


def make_bin_work(p: int, rows: int, n_classes: int, max_leaves: int, n_weights: int) -> BinWork:
    """``rows`` 0 where columns are not binned."""
    channels = (max_leaves + 2) * (n_classes or 2) if rows else 0
    return BinWork(
        projected=np.zeros(rows if n_weights else 0),
        code=np.zeros(rows if n_weights else 0, np.uint8),
        segment=np.zeros(max(n_classes, 1) + 1, np.int64),
        edge=np.zeros(FINE_BINS),
        counts=np.zeros(FINE_BINS * channels),
        base=np.zeros(channels),
        moved=np.zeros(channels),
        missing=np.zeros(channels),
        place=np.zeros(QUANTILES, np.int64),
        share=np.zeros(QUANTILES),
        close=np.zeros(p, np.int64),
        weights=np.zeros(n_weights),
    )
