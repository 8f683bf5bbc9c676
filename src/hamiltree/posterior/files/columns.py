"""Descriptions of the columns of the training table, for the file and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...core.tree.kinds import MAX_LEVELS
from ...inputs.columns import Column


def pack_columns(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Plain values for a file."""
    return [asdict(column) for column in columns]


def unpack_columns(stored: Any) -> tuple[Column, ...]:
    """Read what ``pack_columns`` wrote; raises ``ValueError`` on anything else."""
    columns = []
    for part in stored:
        levels, others = part["levels"], tuple(part["others"])
        labels = [*(levels or ()), *others, *part["order"]]
        if not all(isinstance(label, str | int | float | bool) for label in labels):
            raise ValueError("a level is neither text nor number")
        column = Column(
            levels=None if levels is None else tuple(levels),
            missing=bool(part["missing"]),
            others=others,
            whole=bool(part["whole"]),
            order=tuple(part["order"]),
        )
        if column.n_levels > MAX_LEVELS or (levels is not None and column.n_levels < 1):
            raise ValueError("a category has too many levels, or none")
        columns.append(column)
    return tuple(columns)
