"""Columns of few values as sets of rows, one bit per row: what ``by_bits`` works on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import kernel
from ..backend.records import Float1, Int1, Int2, Record, Unsigned2, Word1, Word2, Word3

WORD = 64
MAX_ROWS = 2048
"""Sets of more rows would take longer to go through than the few rows of a small node."""
MAX_LEVELS, MAX_VALUES = 64, 4096
"""Values of a column, and columns times the most values of any."""
MAX_KEYS = 64
"""Sets of rows that move together; a node that has more is scanned row by row."""


class RowBits(Record):
    """Sets of rows; shared by all chains, and empty where columns have too many values."""

    of_value: Word2
    """[words, values]; rows that have a value, for all values of all columns."""
    first_value: Int1
    """[p]; where the values of a column begin."""
    second: Int1
    """[p]; where second scores begin, behind those of all values: of cuts that leave missing cells
    on the right, and of a category from its other end. For other columns the same place."""
    from_level: Word3
    """[p, levels + 1, words]; rows that have this value of a column or a larger one."""
    of_class: Word2
    """[K, words]; up to the last class that has rows. Rows that pad are in here, too."""


class BitWork(Record, role="scratch"):
    """Scratch of one chain."""

    rows: Word1
    """[words]; of the node."""
    reach: Word2
    """[capacity, words]; of these, the ones that get to a node of either side."""
    n_keys: Int1
    """[1]; -1 where the rows of the node are to be looked at one by one."""
    key: Word2
    """[MAX_KEYS, words]; rows that move together."""
    place: Unsigned2
    """[MAX_KEYS, 3]; where: left leaf, right leaf, class."""
    tally: Int2
    """[MAX_KEYS, values]; how many of them have a value."""
    up_to: Int2
    """[MAX_KEYS, cuts]; how many are left of a cut behind a value. Cuts: behind each value, missing
    cells the smallest, levels in the order of their response; and then, see ``second``, with
    missing cells on the right, and of levels in the opposite order."""
    members: Int2
    """[K, cuts]; rows of each class in one leaf."""
    score: Float1
    """[cuts]"""
    order: Int1
    """[values]; of categories: levels that the node's rows have, in the order of their response."""
    present: Int1
    """[p]; how many."""
    response: Float1
    """[values]"""
    right: Word1
    """[words]; rows that a rule sends right."""
    rows_at: Int1
    """[values]; rows of the node that have it."""


def make_row_bits(
    level: NDArray[np.int32],
    n_levels: NDArray[np.int64],
    rows: NDArray[np.int32],
    label: NDArray[np.int32],
    twice: NDArray[np.bool_],
) -> RowBits:
    """``level`` [p, n] of all rows, ``rows`` those that count, ``label`` [n] their classes.

    ``twice`` [p]: whether a column has second scores; its smallest value may be a missing cell.
    """
    p, n = level.shape
    most = n_levels.max()
    of_level = np.zeros((p, most, n), bool)
    of_level[np.arange(p)[:, None], level[:, rows], rows] = True
    from_level = np.zeros((p, most + 1, n), bool)
    from_level[:, :-1] = np.logical_or.accumulate(of_level[:, ::-1], axis=1)[:, ::-1]
    of_value = of_level[np.arange(most) < n_levels[:, None]]
    of_class = np.arange(label[rows].max() + 1)[:, None] == label
    first_value = np.cumsum(n_levels) - n_levels
    again = np.where(twice, n_levels, 0)
    behind = n_levels.sum() + np.cumsum(again) - again
    return RowBits(
        of_value=np.ascontiguousarray(pack(of_value).T),
        first_value=first_value,
        second=np.where(twice, behind, first_value),
        from_level=pack(from_level),
        of_class=pack(of_class),
    )


def fits_bits(n_levels: NDArray[np.int64], n_rows: int) -> bool:
    most = int(n_levels.max())
    return most <= MAX_LEVELS and most * len(n_levels) <= MAX_VALUES and n_rows <= MAX_ROWS


def no_row_bits() -> RowBits:
    nothing = np.zeros((0, 0), np.uint64)
    return RowBits(
        of_value=nothing,
        first_value=np.zeros(0, np.int64),
        second=np.zeros(0, np.int64),
        from_level=np.zeros((0, 0, 0), np.uint64),
        of_class=nothing.copy(),
    )


def pack(rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Of the shape [..., n], to [..., words]."""
    fill = -rows.shape[-1] % WORD
    padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, fill)])
    in_bytes = np.packbits(padded, axis=-1, bitorder="little")
    return np.ascontiguousarray(in_bytes).view("<u8").astype(np.uint64)


def make_bit_work(bits: RowBits, n_levels: NDArray[np.int64], max_leaves: int) -> BitWork:
    words, values = bits.of_value.shape
    again = n_levels[bits.second > bits.first_value] if words else n_levels[:0]
    cuts = values + int(again.sum())
    keys = MAX_KEYS if words else 0
    return BitWork(
        rows=np.zeros(words, np.uint64),
        reach=np.zeros((2 * max_leaves + 1 if words else 0, words), np.uint64),
        n_keys=np.zeros(1, np.int64),
        key=np.zeros((keys, words), np.uint64),
        place=np.zeros((keys, 3), np.uint32),
        tally=np.zeros((keys, values), np.int64),
        up_to=np.zeros((keys, cuts), np.int64),
        members=np.zeros((len(bits.of_class), cuts), np.int64),
        score=np.zeros(cuts),
        order=np.zeros(values, np.int64),
        present=np.zeros(len(bits.first_value), np.int64),
        response=np.zeros(values),
        right=np.zeros(words, np.uint64),
        rows_at=np.zeros(values, np.int64),
    )


@kernel
def count_ones(x):
    """How many bits of a uint64 are set; LLVM makes one instruction of it."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def first_one(x):
    """Place of the lowest bit of a uint64 that is set; there must be one."""
    return np.int64(count_ones((x & (~x + np.uint64(1))) - np.uint64(1)))
