"""What the scans work on: sorted columns, what scores are made of, and scratch."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bins import (
    MAX_BINS,
    QUANTILES,
    WINDOW_CELLS,
    BinWork,
    bin_columns,
    make_bin_work,
    n_parts,
)
from .bits import (
    BitWork,
    RowBits,
    fits_bits,
    make_bit_work,
    make_row_bits,
    no_row_bits,
)
from .hard_rules import UNIT
from .jit import inlined
from .priors import TreePrior

FIFTHS = QUANTILES
"""Where splits are soft, rows are counted in fifths, see ``scan``."""
LOGISTIC = tuple(math.log(q / (1 - q)) for q in (0.1, 0.3, 0.5, 0.7, 0.9))
"""The quantiles that these fifths stand for."""
PIECE = 1.5
"""Soft splits: a gap between values is cut into pieces of about so many h near its ends."""
TABLE_ROWS = 20_000
"""Up to so many rows, functions of counts are looked up in tables."""
BINS = 512
"""Cells of a projection (HMC-DFI), between the smallest and the largest value in the node."""
SOFT_GAP = 20.0
"""Softness matters to a column whose values are nearer to each other than so many h."""
SHARED = 3
SPANNED = 2.0
"""And which has so many rows a value, or so many values within h."""

NOBODY = np.zeros(0, np.int64)
"""In place of a crew."""
KNOWN, OWN = 1, 2
"""Regression leaves: noise sd known, or a variance of each leaf integrated out."""


class ScanData(NamedTuple):
    """The columns, sorted; shared by all chains."""

    columns: NDArray[np.float64]
    """[p, n]"""
    rows: NDArray[np.int32]
    """[rows]; those that are not padding."""
    order: NDArray[np.int32]
    """[p, rows]; the same sorted by each column."""
    level: NDArray[np.int32]
    """[p, n]; rank of a row's value among the distinct values of its column."""
    n_levels: NDArray[np.int64]
    """[p]"""
    value: NDArray[np.float64]
    """[p, levels]"""
    cut: NDArray[np.float64]
    """[p, levels]; midway to the next value: the threshold where the prior is over values."""
    label: NDArray[np.int32]
    """[n]; class, 0 for regression."""
    y: NDArray[np.float64]
    """[n]; target less the prior mean of a leaf; [0] for classification."""
    bits: RowBits
    """Classification: sets of rows where every column has few values."""
    code: NDArray[np.uint8]
    """[p, n] where columns are binned, with ``order``, ``level``, ``value`` and ``cut`` empty; else
    [p, 0]. A row's bin: how many values of ``grid`` are smaller."""
    grid: NDArray[np.float64]
    """[p, MAX_BINS] or [p, 0]; bin b ends with value b."""
    n_bins: NDArray[np.int64]
    """[p]; as many as there are distinct values, where they are at most MAX_BINS."""


class ScanCalls(NamedTuple):
    """Where this process keeps what is compiled apart; see ``jit.opaque``."""

    columns: int
    weigh: int
    draw: int
    bins: int
    """0 where columns are not binned: then it is not compiled, nor are those below."""
    column: int
    find: int
    sides: int
    project: int


class ScanModel(NamedTuple):
    """What scores are made of."""

    data: ScanData
    prior: TreePrior
    kind: int
    """Prior of the rules: UNIT, GAP or UNIFORM."""
    leaf: int
    """CLASSES, KNOWN or OWN."""
    class_prior: NDArray[np.float64]
    """[K]; [0] for regression."""
    mean_variance: float
    """KNOWN: prior variance of a leaf's mean."""
    worth: float
    """OWN: rows that the prior of a leaf's mean counts for; CLASSES: the sum of class_prior."""
    shape: float
    rate: float
    h: NDArray[np.float64]
    """[p]; the model's own array."""
    power: NDArray[np.float64]
    """[1]; the model's own array."""
    calls: ScanCalls = ScanCalls(0, 0, 0, 0, 0, 0, 0, 0)
    """Filled by ``proposed_rules.connect``."""


class ScanWork(NamedTuple):
    """Scratch of one chain."""

    rows: NDArray[np.int32]
    """[rows]; of the node."""
    n_rows: NDArray[np.int64]
    """[1]"""
    member: NDArray[np.int32]
    """[n]; 1 for rows of the node, while it is scanned; all 0 else."""
    place: NDArray[np.int32]
    """[n, 4]; the leaf a row goes to when it goes left, and right (leaves of the left side are
    numbered first), its class, and 1."""
    key: NDArray[np.int32]
    """[n]; one number for the first three. Binned: of the k-th row of the node, the leaf it goes to
    on the left, times 65,536, plus the one on the right."""
    leaf_id: NDArray[np.int64]
    """[capacity]"""
    path: NDArray[np.int64]
    """[max_leaves]"""
    n_side: NDArray[np.int64]
    """[2]; leaves of the left and the right side."""
    members: NDArray[np.int64]
    """[2, max_leaves + 1, K]; units, rows or fifths, as the sweep goes; rows, all on the right.
    Binned: then, as in the next two, those of each part of the rows."""
    total: NDArray[np.int64]
    """[2, max_leaves + 1]"""
    sums: NDArray[np.float64]
    """[2, max_leaves + 1, 2]; regression: sums of y and of its squares."""
    score: NDArray[np.float64]
    """[max_leaves + 1]; regression: of each leaf."""
    start: NDArray[np.float64]
    """[1]; score with all rows on the right."""
    group_x: NDArray[np.float64]
    """[rows]; rows that move together, in the order of the column."""
    group_cut: NDArray[np.float64]
    group_place: NDArray[np.uint32]
    """[rows, 4]; left leaf, right leaf, class, rows"""
    group_sums: NDArray[np.float64]
    """[rows, 2]"""
    histogram: NDArray[np.int32]
    """[rows or more]"""
    histogram_sums: NDArray[np.float64]
    """[rows, 2] for regression"""
    low: NDArray[np.float64]
    """[cells]; a cell is [low, high). Binned: for each thread, as are the next three."""
    high: NDArray[np.float64]
    weight: NDArray[np.float64]
    threshold: NDArray[np.float64]
    """[cells]; where the prior is over values."""
    pointer: NDArray[np.int64]
    """[5]"""
    log_total: NDArray[np.float64]
    """[p]; log of the weight of a column."""
    share: NDArray[np.float64]
    """[p]; then the probability of drawing it. Binned, before that: the density of the rule asked
    for in its column."""
    by_rows: NDArray[np.float64]
    """[K + 1, rows + 1]; parts of a score by counts, see ``scan_scores``; the last by size."""
    by_fifths: NDArray[np.float64]
    """[K + 1, 5 rows + 1]; the same for soft columns."""
    sigma: NDArray[np.float64]
    """[1]; that regression's tables are for."""
    feature: NDArray[np.int64]
    """[1]; the rule drawn last, as are the next two."""
    cutpoint: NDArray[np.float64]
    """[1]"""
    weights: NDArray[np.float64]
    """[p] for HMC-DFI, [0] else."""
    bits: BitWork
    """Where the data have them: the rows of the node. ``rows``, ``member``, ``place`` and ``key``
    are then filled only if there are too many sets of them."""
    bins: BinWork
    crew: NDArray[np.int64]
    """[0] where columns are not binned; see ``crew``."""


def make_scan_data(
    columns: NDArray[np.float64],
    rows: NDArray[np.int64],
    label: NDArray[np.int64],
    y: NDArray[np.float64],
    *,
    binned: bool = False,
    projected: bool = False,
) -> ScanData:
    """``binned`` needs rows in the order of their labels, and the prior UNIT.

    ``projected``: rules are not of one column (HMC-DFI), so that its values do not say who goes
    right.
    """
    p = columns.shape[0]
    empty = np.zeros((p, 0))
    data = ScanData(
        columns=columns,
        rows=rows.astype(np.int32),
        order=empty.astype(np.int32),
        level=empty.astype(np.int32),
        n_levels=np.zeros(p, np.int64),
        value=empty,
        cut=empty,
        label=label.astype(np.int32),
        y=y,
        bits=no_row_bits(),
        code=empty.astype(np.uint8),
        grid=empty,
        n_bins=np.zeros(p, np.int64),
    )
    if not binned:
        data = _with_sorted_columns(data)
        # their scores are looked up, and sets are as long as the columns
        by_bits = len(rows) <= TABLE_ROWS and fits_bits(data.n_levels, columns.shape[1])
        if by_bits and not projected and len(y) == 0:
            bits = make_row_bits(data.level, data.n_levels, data.rows, data.label)
            data = data._replace(bits=bits)
        return data
    code, grid, n_bins, n_levels = bin_columns(columns, data.rows)
    return data._replace(code=code, grid=grid, n_bins=n_bins, n_levels=n_levels)


def _with_sorted_columns(data: ScanData) -> ScanData:
    p, n = data.columns.shape
    columns, rows = data.columns, data.rows
    order = np.empty((p, len(rows)), np.int32)
    level = np.zeros((p, n), np.int32)
    values = []
    for f in range(p):
        order[f] = rows[np.argsort(columns[f, rows], kind="stable")]
        distinct, inverse = np.unique(columns[f, rows], return_inverse=True)
        level[f, rows] = inverse
        values.append(distinct)
    n_levels = np.array([len(v) for v in values], np.int64)
    value = np.zeros((p, n_levels.max()))
    cut = np.zeros_like(value)
    for f, distinct in enumerate(values):
        above = np.append(distinct[1:], np.inf)
        middle = distinct + 0.5 * (above - distinct)
        value[f, : len(distinct)] = distinct
        cut[f, : len(distinct)] = np.where(middle < above, middle, distinct)
    return data._replace(order=order, level=level, n_levels=n_levels, value=value, cut=cut)


def make_scan_work(
    model: ScanModel,
    max_leaves: int,
    n_weights: int,
    crew: NDArray[np.int64] = NOBODY,
    threads: int = 1,
) -> ScanWork:
    data = model.data
    p, n = data.columns.shape
    binned = data.code.shape[1] > 0
    rows = len(data.rows)
    moved = 1 if binned else rows  # rows that move one by one, or in groups
    classes = len(model.class_prior)
    tabled = rows if rows <= TABLE_ROWS and not binned else 0
    cells = FIFTHS * (moved + 1) if model.kind == UNIT else moved + 1
    if binned:
        cells = (FIFTHS * (MAX_BINS + 1) + WINDOW_CELLS) * threads
    sets = 2 + (n_parts(rows) if binned else 0)
    work = ScanWork(
        rows=np.zeros(rows, np.int32),
        n_rows=np.zeros(1, np.int64),
        member=np.zeros(0 if binned else n, np.int32),
        place=np.ones((1 if binned else n, 4), np.int32),
        key=np.zeros(n, np.int32),
        leaf_id=np.zeros(2 * max_leaves + 1, np.int64),
        path=np.zeros(max_leaves + 1, np.int64),
        n_side=np.zeros(2, np.int64),
        members=np.zeros((sets, max_leaves + 2, max(classes, 1)), np.int64),
        total=np.zeros((sets, max_leaves + 2), np.int64),
        sums=np.zeros((sets, max_leaves + 2, 2)),
        score=np.zeros(max_leaves + 2),
        start=np.zeros(1),
        group_x=np.zeros(moved),
        group_cut=np.zeros(moved),
        group_place=np.zeros((moved, 4), np.uint32),
        group_sums=np.zeros((moved if classes == 0 else 0, 2)),
        histogram=np.zeros(max(moved, BINS + 1), np.int32),
        histogram_sums=np.zeros((moved if classes == 0 else 0, 2)),
        low=np.zeros(cells),
        high=np.zeros(cells),
        weight=np.zeros(cells),
        threshold=np.zeros(cells),
        pointer=np.zeros(FIFTHS, np.int64),
        log_total=np.zeros(p),
        share=np.zeros(p),
        by_rows=np.zeros((max(classes, 1) + 1, tabled + 1)),
        by_fifths=np.zeros((max(classes, 1) + 1, FIFTHS * tabled + 1)),
        sigma=np.full(1, np.nan),
        feature=np.zeros(1, np.int64),
        cutpoint=np.zeros(1),
        weights=np.zeros(n_weights),
        bits=make_bit_work(data.bits, max_leaves),
        bins=make_bin_work(p, rows if binned else 0, classes, max_leaves, n_weights, threads),
        crew=crew,
    )
    return work


@inlined
def is_binned(data):
    return data.code.shape[1] > 0


@inlined
def is_soft(model, f):
    """Whether softness matters to a column.

    Its values are close to each other compared to h, and either many rows share a value or h
    spans several values: else few rows are near a cut, and hard counts say as much.
    """
    levels = model.data.n_levels[f]
    spans = model.h[f] * levels
    shared = model.data.rows.shape[0] >= SHARED * levels
    return spans > 1.0 / SOFT_GAP and (shared or spans > SPANNED)


@inlined
def is_hard(model, f):
    """Whether the cuts of a column are scanned as hard ones."""
    return model.kind != UNIT or not is_soft(model, f)
