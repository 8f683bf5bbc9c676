"""Columns of a user's table: what each is, and its cells as numbers.

Numbers stay numbers, with NaN where a cell is missing. A category becomes the code of its level;
its missing cells are a level of their own where training had some. A level that training never saw
is NaN, as is a missing cell of a category that had none: the trees send such rows both ways.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas
from numpy.typing import NDArray

from ..core.tree.kinds import MAX_LEVELS, NOT_IMPUTED, WITH_IMPUTED, Kinds, make_kinds
from ..utils.arrays import FloatArray
from .refusals import are_others, finite, refuse, refuse_names, refuse_texts

FROM_DTYPE = "from_dtype"
OTHER = "(other)"
"""The level of the rarest ones, where there are more than fit."""
LARGEST_WHOLE = 1e15
"""Whole numbers beyond are not shown as such."""
MISSING_LABEL = "(missing)"
"""The label of the level of missing cells."""


class CodedRows(np.ndarray[Any, np.dtype[np.float64]]):
    """Rows that have been read already: [n, all columns], categories as codes, NaN as above."""


def coded(rows: NDArray[Any]) -> CodedRows:
    return np.ascontiguousarray(rows, np.float64).view(CodedRows)


@dataclass(frozen=True)
class Column:
    """What one column of the training table was."""

    levels: tuple[Any, ...] | None = None
    """Labels of a category by code: texts, numbers or truth values; None for numbers."""
    missing: bool = False
    """Whether training had missing cells."""
    others: tuple[Any, ...] = ()
    """Labels of the rarest levels, which the last of ``levels``, OTHER, stands for."""
    whole: bool = False
    """Numbers that are all whole."""
    order: tuple[Any, ...] = ()
    """Labels from low to high of categories that have an order: their ranks are the numbers."""

    @property
    def n_levels(self) -> int:
        """Codes of a category, that of missing cells included; 0 for numbers."""
        return 0 if self.levels is None else len(self.levels) + self.missing

    def label(self, code: int) -> str:
        """The label of a level."""
        assert self.levels is not None
        return MISSING_LABEL if code == len(self.levels) else str(self.levels[code])

    def read(self, cells: Sequence[Any]) -> FloatArray:
        """Codes of cells of a category."""
        assert self.levels is not None
        gone = float(len(self.levels)) if self.missing else np.nan
        return _coded(cells, self.levels, self.others, gone)


def _coded(
    cells: Sequence[Any], levels: Sequence[Any], others: Sequence[Any], gone: float
) -> FloatArray:
    """Places of the cells among the levels; NaN where they are not among them.

    A level that was a number or a truth value is also known by its text, as files have it.
    """
    last = len(levels) - 1
    places = [*enumerate(levels), *((last, label) for label in others)]
    codes = {str(label): float(code) for code, label in places}
    codes |= {label: float(code) for code, label in places}

    def code_of(cell: Any) -> float:
        label = _label(cell)
        return codes.get(label, codes.get(str(label), np.nan))

    return np.array([gone if _is_missing(cell) else code_of(cell) for cell in cells])


def kinds_of(columns: Sequence[Column], used: NDArray[np.int64], imputed: bool) -> Kinds | None:
    """Of the used columns, for the samplers; None where all are numbers without missing cells."""
    chosen = [columns[f] for f in used] if columns else []
    if not any(column.n_levels or column.missing for column in chosen):
        return None
    missing = WITH_IMPUTED if imputed else NOT_IMPUTED
    holes = [missing if column.missing else 0 for column in chosen]
    return make_kinds([column.n_levels for column in chosen], holes)


# ------------------------------------------------------------------ tables


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """A pandas, polars or pyarrow table as narwhals has it; None for anything else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if isinstance(X, pandas.DataFrame):
        refuse_names(list(X.columns))
    found = nw.from_native(X, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        raise ValueError("X is a lazy table, without rows in memory: give X.collect()")
    return found if isinstance(found, nw.DataFrame) else None


def learn_table(X: Any, categorical_features: Any = FROM_DTYPE) -> tuple[Any, tuple[Column, ...]]:
    """Training rows as numbers, under the names that they have, and what each column is.

    ``categorical_features``: "from_dtype" (texts, categories and truth values of a table), None for
    none, or names, numbers or a mask of columns. An array without any comes back as it is, with no
    columns: what it holds is numbers.
    """
    frame = as_frame(X)
    if frame is None:
        if categorical_features is None or (
            isinstance(categorical_features, str) and categorical_features == FROM_DTYPE
        ):
            refuse_texts(X)
            return without_na(X), ()
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            return X, ()
        names: list[Any] = [f"x{j}" for j in range(cells.shape[1])]
        read = {name: cells[:, j].tolist() for j, name in enumerate(names)}
        chosen = _chosen(categorical_features, names)
        return _learned(read, chosen, {}, names=False)
    names = names_of(frame)
    if not names:
        raise ValueError("X has no columns")
    from_dtype, problems, orders = {}, [], {}
    read = {}
    for place, name in enumerate(names):
        series = _series(frame, place)
        kind, problem = _kind(series)
        if problem:
            problems.append(f"{name!r} {problem}")
            continue
        from_dtype[name] = kind == "category"
        if isinstance(series.dtype, nw.Enum):
            orders[name] = tuple(_label(category) for category in series.dtype.categories)
        read[name] = _cells(series, kind)
    if isinstance(categorical_features, str) and categorical_features == FROM_DTYPE:
        chosen = [name for name in read if from_dtype[name]]
    elif categorical_features is None:
        texts = [name for name in read if from_dtype[name] and not _are_numbers(read[name])]
        problems += [f"{name!r} holds text, but categorical_features=None" for name in texts]
        read = {name: cells for name, cells in read.items() if name not in set(texts)}
        chosen = []
    else:
        chosen = _chosen(categorical_features, names)
    return _learned(read, chosen, problems, names=True, original=X, orders=orders)


def read_table(X: Any, columns: Sequence[Column], names: Sequence[str]) -> Any:
    """New rows as numbers; never refuses a missing cell or a level that training did not see."""
    frame = as_frame(X)
    if frame is None:
        if not any(column.levels is not None for column in columns):
            return without_na(X)
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2 or cells.shape[1] != len(columns):
            return X
        read = [cells[:, j].tolist() for j in range(cells.shape[1])]
        return np.column_stack(
            [
                _read(column, part, f"x{j}")
                for j, (column, part) in enumerate(zip(columns, read, strict=True))
            ]
        ).reshape(len(cells), len(columns))
    found = names_of(frame)
    if are_others(found, names):
        # refused by their names, not by what their cells would mean under others
        return _numeric_frame({name: np.zeros(len(frame)) for name in found}, X)
    if len(found) != len(names) or not columns:
        columns = [Column()] * len(found)
    out, problems = {}, []
    for place, (name, column) in enumerate(zip(found, columns, strict=True)):
        series = _series(frame, place)
        if column.levels is not None or column.order:
            out[name] = _read(column, series.to_list(), str(name))
            continue
        kind, problem = _kind(series)
        if problem:
            problems.append(f"{name!r} {problem}")
            continue
        try:
            out[name] = _read(column, _cells(series, kind), str(name))
        except ValueError as error:
            problems.append(str(error))
    refuse(problems)
    return _numeric_frame(out, X)


def _learned(
    read: dict[Any, Any],
    chosen: Sequence[Any],
    problems: Any,
    *,
    names: bool,
    original: Any = None,
    orders: dict[Any, tuple[Any, ...]] | None = None,
) -> tuple[Any, tuple[Column, ...]]:
    complaints, orders = list(problems), orders or {}
    columns, out = [], {}
    for name, cells in read.items():
        try:
            order = orders.get(name, ())
            if order and name in set(chosen):
                column = Column(missing=any(map(_is_missing, cells)), order=order)
            else:
                column = learn_column(cells, name in set(chosen), name)
            columns.append(column)
            out[name] = _read(column, cells, str(name))
        except ValueError as error:
            complaints.append(str(error))
    refuse(complaints)
    rows = _numeric_frame(out, original) if names else np.column_stack(list(out.values()))
    return rows, tuple(columns)


def number_column(numbers: FloatArray) -> Column:
    """What a training column of numbers is."""
    there = numbers[~np.isnan(numbers)]
    finite = there[np.isfinite(there)]
    whole = bool(len(finite) and np.abs(finite).max() < LARGEST_WHOLE and (finite % 1 == 0).all())
    return Column(missing=bool(len(there) < len(numbers)), whole=whole)


def learn_column(cells: Sequence[Any] | NDArray[Any], category: bool, name: Any) -> Column:
    """What a training column is, from its cells."""
    if not category:
        return number_column(_numbers(cells, name))
    known = [_label(cell) for cell in cells if not _is_missing(cell)]
    missing = len(known) < len(cells)
    counts = Counter(known)
    levels = _in_order(counts)
    most = MAX_LEVELS - missing
    others: tuple[Any, ...] = ()
    if len(levels) > most:
        rank = {label: place for place, label in enumerate(levels)}
        frequent = sorted(levels, key=lambda label: (-counts[label], rank[label]))[: most - 1]
        others = tuple(label for label in levels if label not in set(frequent))
        levels = [*sorted(frequent, key=rank.__getitem__), OTHER]
        warnings.warn(
            f"the column {name!r} has {len(counts)} levels, more than the {most} allowed: the "
            f"{len(others)} rarest are merged into one, {OTHER!r}",
            UserWarning,
            stacklevel=6,
        )
    return Column(levels=tuple(levels), missing=missing, others=others)


def _in_order(counts: Counter[Any]) -> list[Any]:
    """Levels that occur, sorted; numbers before texts, should a column hold both."""
    return sorted(counts, key=lambda label: (isinstance(label, str), label))


def without_na(X: Any) -> Any:
    """An array of objects with NaN in the place of pandas' NA, which has no float; others as is."""
    if isinstance(X, np.ndarray) and X.dtype == object:
        return np.where(pandas.isna(X), np.nan, X)
    return X


def names_of(frame: nw.DataFrame[Any]) -> list[Any]:
    """Names of the columns, as the table has them: pandas' may be integers."""
    return list(frame.columns)


def _series(frame: nw.DataFrame[Any], place: int) -> nw.Series[Any]:
    return frame[:, place]


def _kind(series: nw.Series[Any]) -> tuple[str, str]:
    """One of "number", "category" and "object"; and what is wrong with the column, if anything."""
    dtype = series.dtype
    if dtype.is_numeric():
        return "number", ""
    if dtype in (nw.String, nw.Categorical, nw.Boolean) or isinstance(dtype, nw.Enum):
        return "category", ""
    if dtype.is_temporal():
        return "number", "holds dates or times: turn them into numbers, such as days since a date"
    if dtype == nw.Object or dtype == nw.Unknown:
        cells = series.to_list()
        if _are_numbers(cells):
            return "object", ""
        simple = all(
            isinstance(_plain(c), str | bool | int | float) for c in cells if not _is_missing(c)
        )
        return (
            ("category", "")
            if simple
            else ("object", "holds objects that are neither numbers nor text")
        )
    return "object", f"has a type that cannot be used, {dtype}"


def _cells(series: nw.Series[Any], kind: str) -> Any:
    if kind == "number" and series.dtype.is_numeric():
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    return series.to_list()


def _are_numbers(cells: Any) -> bool:
    if isinstance(cells, np.ndarray):
        return True
    return all(
        isinstance(cell, int | float | np.number | Decimal)
        and not isinstance(cell, bool | np.bool_)
        for cell in cells
        if not _is_missing(cell)
    )


def _read(column: Column, cells: Any, name: str) -> FloatArray:
    if column.order:
        return _coded(_listed(cells), column.order, (), np.nan)
    return _numbers(cells, name) if column.levels is None else column.read(_listed(cells))


def _listed(cells: Any) -> Sequence[Any]:
    listed: Sequence[Any] = cells.tolist() if isinstance(cells, np.ndarray) else cells
    return listed


def _numbers(cells: Any, name: Any) -> FloatArray:
    if isinstance(cells, np.ndarray):
        out = np.asarray(cells, np.float64)
        return finite(out, name)
    out = np.empty(len(cells))
    for place, cell in enumerate(cells):
        if _is_missing(cell):
            out[place] = np.nan
            continue
        try:
            out[place] = float(cell)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name!r} should hold numbers, not {cell!r}") from None
    return finite(out, name)


def _numeric_frame(out: dict[Any, FloatArray], X: Any) -> pandas.DataFrame:
    return pandas.DataFrame(out, index=getattr(X, "index", None) if hasattr(X, "iloc") else None)


def _chosen(features: Any, names: list[Any]) -> list[Any]:
    """Names of the columns that ``categorical_features`` chooses."""
    listed = np.asarray(features)
    if listed.ndim != 1:
        raise ValueError("categorical_features must be names, numbers or a mask of columns")
    if listed.dtype == bool:
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features has {len(listed)} entries, but X has {len(names)} columns"
            )
        return [name for name, own in zip(names, listed, strict=True) if own]
    found = []
    for feature in listed.tolist():
        if feature in names:
            found.append(feature)
        elif isinstance(feature, int) and 0 <= feature < len(names):
            found.append(names[feature])
        else:
            raise ValueError(f"categorical_features: there is no column {feature!r}")
    return found


def _is_missing(cell: Any) -> bool:
    if cell is None or cell is pandas.NA or cell is pandas.NaT:
        return True
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def _label(cell: Any) -> Any:
    """A level as models and files keep it: a truth value, a number, or a text of anything else."""
    label = _plain(cell)
    return label if isinstance(label, str | bool | int | float) else str(label)


def _plain(cell: Any) -> Any:
    """A cell as Python has it; whole numbers as integers, so that 1 and 1.0 are one level."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell
