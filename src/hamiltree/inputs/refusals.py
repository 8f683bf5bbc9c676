"""What a table or a target is refused for; the messages name the columns."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

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


@contextmanager
def only_numbers(**data: Any) -> Iterator[None]:
    """Refuse, by name, what NumPy would silently turn into numbers that mean something else.

    Times count from 1970 and a missing one is -9.2e18; complex numbers lose a part; masked cells
    come back from under their mask; of columns that share a name nobody knows which is meant.
    """
    for name, values in data.items():
        if isinstance(values, pandas.DataFrame) and not values.columns.is_unique:
            columns = values.columns
            twice = ", ".join(repr(column) for column in columns[columns.duplicated()].unique())
            raise ValueError(f"several columns of {name} have the same name, rename them: {twice}")
        kinds = {getattr(dtype, "kind", "O") for dtype in _dtypes(values)}
        if kinds & set("mM"):
            raise ValueError(
                f"{name} holds dates or times: turn them into numbers, such as days since a date"
            )
        if "c" in kinds:
            raise ValueError(f"Complex data not supported: {name} holds complex numbers")
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has masked cells: fill them in, or leave these rows out")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge numbers, to find NaN
            yield
    except OverflowError:  # integers of Python know no limit
        raise ValueError(
            f"{' or '.join(data)} holds whole numbers beyond the range of floating point: "
            "rescale them"
        ) from None
    except TypeError as error:
        if "NA is ambiguous" not in str(error):  # pandas' word for a missing value, compared
            raise
        name = "y" if "y" in data else "X"
        raise ValueError(f"{name} has missing or infinite values: leave these rows out") from None


def refuse_missing(y: NDArray[Any]) -> None:
    """Refuse a target with None or NaN, which may come of None only when it becomes numbers."""
    kind = y.dtype.kind
    known = pandas.notna(y) if kind == "O" else np.isfinite(y) if kind == "f" else True
    if not np.all(known):
        raise ValueError("y has missing or infinite values: leave these rows out")


def _dtypes(values: Any) -> Sequence[Any]:
    """The types of a table's columns, or of an array; of categories, that of their values."""
    if isinstance(values, pandas.DataFrame):
        kinds = list(values.dtypes)
    elif isinstance(values, list) and values and isinstance(values[0], datetime.date):
        return [np.dtype("M8")]
    else:
        kinds = [getattr(values, "dtype", None)]
        if not hasattr(kinds[0], "kind") and hasattr(values, "__array__"):  # polars, pyarrow
            kinds = [np.asarray(values).dtype]
    return [getattr(getattr(kind, "categories", None), "dtype", kind) for kind in kinds]
