"""What a table is refused for; the messages name the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..utils.arrays import FloatArray


def refuse(problems: Sequence[str]) -> None:
    if problems:
        listed = "; ".join(problems)
        raise ValueError(f"columns that cannot be used as they are: {listed}")


def refuse_names(names: list[Any]) -> None:
    if any(isinstance(name, tuple) for name in names):
        raise ValueError("the columns of X have multi-level names: give each column a single name")
    twice = sorted({repr(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"several columns of X have the same name, rename them: {', '.join(twice)}"
        )


def refuse_texts(X: Any) -> None:
    """Of an array: it has no types to say which columns are categories."""
    cells = X if isinstance(X, np.ndarray | list | tuple) else None
    if isinstance(cells, list | tuple):
        try:
            cells = np.asarray(X, dtype=object)
        except ValueError:  # rows of several lengths
            return
    if cells is None or cells.ndim != 2 or cells.dtype.kind not in "OUS":
        return
    texts = {}
    for place, column in enumerate(cells.T.tolist()):
        found = next((c for c in column if isinstance(c, str) and not _is_number(c)), None)
        if found is not None:
            texts[place] = found
    if texts:
        listed = ", ".join(f"column {place} ({text!r})" for place, text in texts.items())
        raise ValueError(
            f"X holds text in {listed}: say which columns are categories, categorical_features="
            f"{list(texts)}, or give a table of pandas, polars or pyarrow"
        )


def refuse_text_target(y: Any) -> None:
    """Of a regression."""
    if hasattr(y, "__array__"):
        cells = np.asarray(y)
        y = cells.ravel().tolist() if cells.dtype.kind in "OUS" else []
    if not isinstance(y, list | tuple):
        return
    text = next((cell for cell in y if isinstance(cell, str) and not _is_number(cell)), None)
    if text is not None:
        raise ValueError(
            f"y holds text, such as {text!r}, but regression predicts numbers: for classes there "
            "is BayesianTreeClassifier"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def are_others(found: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether a table's names are not those of training, where training had names."""
    numbered = [f"x{place}" for place in range(len(names))]
    named = all(isinstance(name, str) for name in found) and list(names) != numbered
    return named and list(found) != list(names)


def finite(numbers: FloatArray, name: Any) -> FloatArray:
    infinite = int(np.isinf(numbers).sum())
    if infinite:
        rows = f"{infinite} row" + "s" * (infinite > 1)
        raise ValueError(f"{name!r} holds infinity ({rows}); None or NaN is a missing cell")
    return numbers
