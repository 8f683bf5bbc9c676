"""Rows of a table, encoded as a model wants them, with their targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..inputs.encoding import encoding_of
from ..inputs.tables import TableError, labels, read_table
from ..posterior import Posterior


def rows_of(posterior: Posterior, path: Path, *, with_target: bool) -> dict[str, Any]:
    """Encoded rows and, with ``with_target`` and where the table has it, the target."""
    frame, encoding = read_table(path), encoding_of(posterior)
    rows: dict[str, Any] = {"X": encoding.encode(frame)}
    if with_target and encoding.target in frame:
        if frame[encoding.target].isna().any():
            raise TableError(
                f"{path.name} has rows without {encoding.target!r}: leave these rows out"
            )
        y = frame[encoding.target]
        known = posterior.preprocessing.classes
        if known is not None and not set(labels(y)) <= set(known):
            raise TableError(
                f"{path.name} has classes in {encoding.target!r} that training did not have"
            )
        rows["y"] = y.to_numpy() if known is None else labels(y)
    return rows
