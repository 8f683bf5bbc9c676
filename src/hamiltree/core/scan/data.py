"""What the scans work on: sorted columns, what scores are made of, and scratch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import inlined, kernel
from ..backend.records import (
    Byte2,
    Float1,
    Float2,
    Int1,
    Record,
    Short1,
    Short2,
    Single2,
    Word1,
)
from ..backend.row_threads import PartsRunner, RunParts, n_parts
from ..tree.kinds import MAX_LEVELS, MISSING, MISSING_BELOW, Kinds, plain_kinds
from ..tree.nodes import Tree, empty_tree
from ..tree.priors import TreePrior
from .bins import MAX_BINS, QUANTILES, WINDOW_CELLS, BinWork, bin_columns, make_bin_work
from .bits import BitWork, RowBits, fits_bits, make_bit_work, make_row_bits, no_row_bits
from .columns import TABLE_ROWS, amounts_of, sorted_columns
from .leaf_means import MEAN_BINS, PIECES, LeafMeans, make_leaf_means
from .scratch import Groups, NodeRows, Sides

FIFTHS = np.int64(QUANTILES)
"""Where splits are soft, rows are counted in fifths, see ``scan``."""
ROWS = np.int64(1)
"""Units per row where they are hard."""
LOGISTIC = tuple(math.log(q / (1 - q)) for q in (0.1, 0.3, 0.5, 0.7, 0.9))
"""The quantiles that these fifths stand for."""
PIECE = 1.5
"""Soft splits: a gap between values is cut into pieces of about so many h near its ends."""
BINS = 512
"""Cells of a projection (HMC-DFI), between the smallest and the largest value in the node."""
SOFT_GAP = 20.0
"""Softness matters to a column whose values are nearer to each other than so many h."""
SHARED = 3
SPANNED = 2.0
"""And which has so many rows per value, or so many values within h."""

CLASS_COUNTS, KNOWN_VARIANCE, OWN_VARIANCE = 10, 11, 12
"""Leaves as scores see them: class probabilities integrated out; a mean integrated out, with the
noise known; mean and variance of each leaf integrated out."""

UNIFORM, GAP, UNIT, FULL = 0, 1, 2, 3
"""Priors over rules, see ``hard.rules``."""


class ScanData(Record):
    """The columns, sorted; shared by all chains."""

    columns: Float2
    """[p, n]; [p, 0] where they are stored in single precision."""
    singles: Single2
    """[p, n] where they are; else [p, 0]. Then columns are binned."""
    rows: Short1
    """[rows]; those that are not padding."""
    order: Short2
    """[p, rows]; the same sorted by each column."""
    level: Short2
    """[p, n]; rank of a row's value among the distinct values of its column."""
    n_levels: Int1
    """[p]"""
    value: Float2
    """[p, levels]"""
    cut: Float2
    """[p, levels]; midway to the next value: the threshold where the prior is over values."""
    label: Short1
    """[n]; class, 0 for regression."""
    y: Float1
    """[n]; target less the prior mean of a leaf; [0] for classification."""
    bits: RowBits
    """Classification: sets of rows where every column has few values."""
    code: Byte2
    """[p, n] where columns are binned, with ``order``, ``level``, ``value`` and ``cut`` empty; else
    [p, 0]. A row's bin: how many values of ``grid`` are smaller."""
    grid: Float2
    """[p, MAX_BINS] or [p, 0]; bin b ends with value b."""
    n_bins: Int1
    """[p]; as many as there are distinct values, where they are at most MAX_BINS. Missing cells
    are in one more."""
    amount: Short1
    """[n]; units that a row counts for, its weight as scans see it; [0] where each is one."""
    weight: Float1
    """[n] or [0]; the same in rows: amount / units."""
    units: float
    """Units per row: 1, unless there are weights that are not whole."""
    n_units: int
    """Of all rows."""
    mass: float
    """The same in rows."""
    kinds: Kinds
    """Of the columns."""


class ScanModel(Record):
    """What scores are made of."""

    prior: TreePrior
    kind: int
    """Prior of the rules: UNIT, GAP or UNIFORM."""
    leaf: int
    """CLASS_COUNTS, KNOWN_VARIANCE or OWN_VARIANCE."""
    class_prior: Float1
    """[K]; [0] for regression."""
    class_mass: float
    """Its sum."""
    mean_variance: float
    """KNOWN_VARIANCE: prior variance of a leaf's mean."""
    prior_rows: float
    """OWN_VARIANCE: rows that the prior of a leaf's mean counts for."""
    shape: float
    rate: float
    h: Float1
    """[p]; the model's own array."""
    power: Float1
    """[1]; the model's own array."""


class Cells(Record, role="scratch"):
    """Cuts between neighbouring values, and their weights; and the rule drawn from them last."""

    low: Float1
    """[cells]; a cell is [low, high)."""
    high: Float1
    weight: Float1
    threshold: Float1
    """[cells]; where the prior is over values."""
    log_total: Float1
    """[p]; log of the weight of a column."""
    share: Float1
    """[p]; then the probability of drawing it. Binned, before that: the density of the rule asked
    for in its column."""
    feature: Int1
    """[1]; the rule drawn last, as are the next three."""
    cutpoint: Float1
    """[1]"""
    levels: Word1
    """[1]"""
    weights: Float1
    """[p] for HMC-DFI, [0] else."""
    bounds: Int1
    """[2]; a special column: where the cells with the missing on the right end, and all with a
    width, see ``missing``; or how many levels are there, see ``categories``, as the next four."""
    mass: Float1
    """[2]; probability of the rule "is missing", and the sum of widths of a side."""
    level: Int1
    """[MAX_LEVELS]; codes of the levels that are there, by their response."""
    begin: Int1
    """[MAX_LEVELS]; where the groups of a level begin, and stop."""
    stop: Int1
    response: Float1
    """[MAX_LEVELS]"""


class Tables(Record, role="scratch"):
    """Parts of a score by counts, see ``scores``."""

    by_rows: Float2
    """[K + 1, rows + 1]; the last by size."""
    by_fifths: Float2
    """[K + 1, 5 rows + 1]; the same for soft columns."""
    sigma: Float1
    """[1]; that regression's tables are for."""


class Scan(Record, role="scratch"):
    """All that a chain needs to scan nodes: data, model and scratch by concern."""

    data: ScanData
    model: ScanModel
    node: NodeRows
    sides: Sides
    groups: Groups
    cells: Cells
    tables: Tables
    bits: BitWork
    """Where the data have them: the rows of the node. ``node`` is then filled only if there are too
    many sets of them."""
    bins: BinWork
    run_parts: RunParts
    task: Int1
    """[5]; what the parts of a task are told, with the next three, see ``parts``."""
    task_threshold: Float1
    """[1]"""
    task_levels: Word1
    """[1]"""
    task_tree: Tree
    means: LeafMeans


def make_scan_data(
    columns: NDArray[Any],
    rows: NDArray[np.int64],
    label: NDArray[np.int64],
    y: NDArray[np.float64],
    *,
    binned: bool = False,
    projected: bool = False,
    weights: NDArray[np.float64] | None = None,
    kinds: Kinds | None = None,
) -> ScanData:
    """``binned`` needs rows in the order of their labels, and the prior UNIT.

    ``weights`` [n] as the rows of ``columns``; None: all are 1.

    ``projected``: rules are not of one column (HMC-DFI), so that its values do not say who goes
    right.
    """
    p = columns.shape[0]
    empty = np.zeros((p, 0))
    if not binned:
        columns = np.asarray(columns, np.float64)
    single = columns.dtype == np.float32
    fields: dict[str, Any] = {
        "columns": empty if single else columns,
        "singles": columns if single else empty.astype(np.float32),
        "rows": rows.astype(np.int32),
        "order": empty.astype(np.int32),
        "level": empty.astype(np.int32),
        "n_levels": np.zeros(p, np.int64),
        "value": empty,
        "cut": empty,
        "label": label.astype(np.int32),
        "y": y,
        "bits": no_row_bits(),
        "code": empty.astype(np.uint8),
        "grid": empty,
        "n_bins": np.zeros(p, np.int64),
        **amounts_of(rows, weights),
        "kinds": plain_kinds(p) if kinds is None else kinds,
    }
    if binned:
        code, grid, n_bins, n_levels = bin_columns(columns, fields["rows"], fields["kinds"])
        fields |= {"code": code, "grid": grid, "n_bins": n_bins, "n_levels": n_levels}
        return ScanData(**fields)
    # imputed or not, the missing cells of a column are one value
    alike = np.where(columns < MISSING_BELOW, MISSING, columns)
    fields |= sorted_columns(alike, fields["rows"])
    # their scores are looked up, and sets are as long as the columns
    by_bits = len(rows) <= TABLE_ROWS and fits_bits(fields["n_levels"], columns.shape[1])
    if by_bits and weights is None and not projected and len(y) == 0:
        fields["bits"] = make_row_bits(
            fields["level"],
            fields["n_levels"],
            fields["rows"],
            fields["label"],
            (fields["kinds"].levels > 0) | (fields["value"][:, 0] < MISSING_BELOW),
        )
    return ScanData(**fields)


def make_scan(
    data: ScanData, model: ScanModel, max_leaves: int, n_weights: int, *, coupled: bool = False
) -> Scan:
    """Scratch for trees of up to so many leaves; tables are still to be filled, see ``scores``.

    ``coupled``: rules are scored by the likelihood itself where splits are soft (``leaf_means``).
    """
    p, n = len(data.n_levels), len(data.label)
    binned = data.code.shape[1] > 0
    rows = len(data.rows)
    moved = 1 if binned else rows  # rows that move one by one, or in groups
    classes = len(model.class_prior)
    tabled = data.n_units if data.n_units <= TABLE_ROWS and not binned else 0
    sets = 2 + (n_parts(rows) if binned else 0)
    sums = moved if classes == 0 else 0
    place = np.ones((1 if binned else n, 4), np.int32)
    scanned = data.columns if coupled else np.zeros((p, 0))
    if len(data.amount) and not binned:
        place[:, 3] = data.amount
    return Scan(
        data=data,
        model=model,
        node=NodeRows(
            rows=np.zeros(rows, np.int32),
            n_rows=np.zeros(1, np.int64),
            member=np.zeros(0 if binned else n, np.int32),
            place=place,
            key=np.zeros(n, np.int32),
            leaf_id=np.zeros(2 * max_leaves + 1, np.int64),
            path=np.zeros(max_leaves + 1, np.int64),
        ),
        sides=Sides(
            n_side=np.zeros(2, np.int64),
            members=np.zeros((sets, max_leaves + 2, max(classes, 1)), np.int64),
            total=np.zeros((sets, max_leaves + 2), np.int64),
            sums=np.zeros((sets, max_leaves + 2, 2)),
            score=np.zeros(max_leaves + 2),
            start=np.zeros(1),
        ),
        groups=Groups(
            x=np.zeros(moved),
            cut=np.zeros(moved),
            place=np.zeros((moved, 4), np.uint32),
            sums=np.zeros((sums, 2)),
            histogram=np.zeros(max(moved, BINS + 1), np.int32),
            histogram_sums=np.zeros((sums, 2)),
            pointer=np.zeros(FIFTHS, np.int64),
        ),
        cells=make_cells(data, model, n_weights, coupled),
        tables=Tables(
            by_rows=np.zeros((max(classes, 1) + 1, tabled + 1)),
            by_fifths=np.zeros((max(classes, 1) + 1, FIFTHS * tabled + 1)),
            sigma=np.full(1, np.nan),
        ),
        bits=make_bit_work(data.bits, data.n_levels, max_leaves),
        bins=make_bin_work(p, rows if binned else 0, classes, max_leaves, n_weights),
        run_parts=PartsRunner(),
        task=np.zeros(5, np.int64),
        task_threshold=np.zeros(1),
        task_levels=np.zeros(1, np.uint64),
        task_tree=empty_tree(max_leaves if binned else 1, n_weights),
        means=make_leaf_means(
            scanned,
            data.rows if coupled else data.rows[:0],
            data.y,
            data.weight,
            data.kinds,
            max_leaves,
        ),
    )


def make_cells(data: ScanData, model: ScanModel, n_weights: int, coupled: bool) -> Cells:
    p, rows = len(data.n_levels), len(data.rows)
    cells = FIFTHS * (rows + 1) if model.kind == UNIT else rows + 1
    if data.code.shape[1] > 0:
        cells = FIFTHS * (MAX_BINS + 1) + WINDOW_CELLS
    if coupled:
        cells = max(cells, PIECES * MEAN_BINS)
    if data.kinds.special:
        cells = max(2 * cells + 2, 2 * MAX_LEVELS)
    return Cells(
        low=np.zeros(cells),
        high=np.zeros(cells),
        weight=np.zeros(cells),
        threshold=np.zeros(cells),
        log_total=np.zeros(p),
        share=np.zeros(p),
        feature=np.zeros(1, np.int64),
        cutpoint=np.zeros(1),
        weights=np.zeros(n_weights),
        levels=np.zeros(1, np.uint64),
        bounds=np.zeros(2, np.int64),
        mass=np.zeros(2),
        level=np.zeros(MAX_LEVELS, np.int64),
        begin=np.zeros(MAX_LEVELS, np.int64),
        stop=np.zeros(MAX_LEVELS, np.int64),
        response=np.zeros(MAX_LEVELS),
    )


@kernel
def is_binned(data):
    return data.code.shape[1] > 0


@inlined
def softness_matters(h, levels, rows):
    """Whether softness matters to a column of so many distinct values.

    Its values are close to each other compared to h, and either many rows share a value or h
    spans several values: else few rows are near a cut, and hard counts say as much.
    """
    spans = h * levels
    return spans > 1.0 / SOFT_GAP and (rows >= SHARED * levels or spans > SPANNED)


@kernel
def is_soft(scan, f):
    """Whether softness matters to a column."""
    levels = scan.data.n_levels[f]
    return softness_matters(scan.model.h[f], levels, scan.data.mass)


@kernel
def value_at(data, f, row):
    """The cell of a row, of either precision."""
    if data.columns.shape[1] > 0:
        return data.columns[f, row]
    return np.float64(data.singles[f, row])


@kernel
def is_hard(scan, f):
    """Whether the cuts of a column are scanned as hard ones."""
    return scan.model.kind != UNIT or not is_soft(scan, f)
