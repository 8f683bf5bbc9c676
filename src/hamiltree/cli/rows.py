"""Rows of a table, encoded as a model wants them, with their targets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..inputs.encoding import encoding_of, read_like_training
from ..inputs.tables import TableError, labels
from ..posterior import Posterior

Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="NAME",
        help="Column of the target; for models that were fitted in Python.",
        show_default=False,
    ),
]


def rows_of(
    posterior: Posterior, path: Path, *, with_target: bool, target: str | None = None
) -> dict[str, Any]:
    """Encoded rows and, with ``with_target`` and where the table has it, the target."""
    frame, encoding = read_like_training(path, posterior), encoding_of(posterior)
    target = encoding.target if target is None else target
    rows: dict[str, Any] = {"X": encoding.encode(frame)}
    if with_target and target in frame:
        if frame[target].isna().any():
            raise TableError(f"{path.name} has rows without {target!r}: leave these rows out")
        y = frame[target]
        known = posterior.preprocessing.classes
        if known is None:
            rows["y"] = y.to_numpy()
            return rows
        by_text = {str(label): label for label in known.tolist()}
        found = [by_text.get(str(label)) for label in labels(y).tolist()]
        if None in found:
            raise TableError(f"{path.name} has classes in {target!r} that training did not have")
        rows["y"] = np.array(found, known.dtype)
    return rows
