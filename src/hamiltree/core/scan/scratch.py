"""Scratch of scans: the rows of a node, sums over them, and groups of them."""

from __future__ import annotations

from ..backend.records import (
    Float1,
    Float2,
    Float3,
    Int1,
    Int2,
    Int3,
    Record,
    Short1,
    Short2,
    Unsigned2,
)


class NodeRows(Record, role="scratch"):
    """The rows of the node that is scanned, and where they go on either side."""

    rows: Short1
    """[rows]; of the node."""
    n_rows: Int1
    """[1]"""
    member: Short1
    """[n]; 1 for rows of the node, while it is scanned; all 0 else."""
    place: Short2
    """[n, 4]; the leaf a row goes to when it goes left, and right (leaves of the left side are
    numbered first), its class, and units that it counts for."""
    key: Short1
    """[n]; one number for the first three. Binned: of the k-th row of the node, the leaf it goes to
    on the left, times 65,536, plus the one on the right."""
    leaf_id: Int1
    """[capacity]"""
    path: Int1
    """[max_leaves]"""


class Sides(Record, role="scratch"):
    """Sums over the rows in each leaf of either side of a cut."""

    n_side: Int1
    """[2]; leaves of the left and the right side."""
    members: Int3
    """[2, max_leaves + 1, K]; units, or fifths of them, as the sweep goes; units, all on the right.
    Binned: then, as in the next two, those of each part of the rows."""
    total: Int2
    """[2, max_leaves + 1]"""
    sums: Float3
    """[2, max_leaves + 1, 2]; regression: sums of y and of its squares."""
    score: Float1
    """[max_leaves + 1]; regression: of each leaf."""
    start: Float1
    """[1]; score with all rows on the right."""


class Groups(Record, role="scratch"):
    """Rows that move together, in the order of the column."""

    x: Float1
    """[rows]"""
    cut: Float1
    place: Unsigned2
    """[rows, 4]; left leaf, right leaf, class, units"""
    sums: Float2
    """[rows, 2]"""
    histogram: Short1
    """[rows or more]"""
    histogram_sums: Float2
    """[rows, 2] for regression"""
    pointer: Int1
    """[5]"""
