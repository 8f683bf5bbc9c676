"""Columns of a file's table as the estimators take them, learned in fit and repeated in predict.

Numbers stay numbers, texts are categories, texts with an order have ranks; cells may be missing.
What became of each column goes into the model's file, so that new rows, with their columns in any
order, are read alike. Files of version 0.1 have a column of 0 and 1 for each category ("one-hot").
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from .suspects import holds_dates
from .tables import (
    TableError,
    as_text,
    listed,
    raise_all,
    read_table,
    refuse_infinite,
    told_apart,
)

if TYPE_CHECKING:
    from ..posterior import Posterior

KINDS = ("number", "one-hot", "ordinal", "category")
MANY = 20
"""So many different numbers with commas in them are no categories."""
FEW = 3
"""So many different texts among numbers may well mean missing."""
MAX_CATEGORIES = 64
"""More categories than this in a column look like identifiers or free text."""


@dataclass(frozen=True)
class Column:
    """One column of the user's table."""

    name: str
    kind: str
    """One of ``KINDS``."""
    categories: tuple[str, ...] = ()
    """Category and one-hot: sorted. Ordinal: from low to high. Number: none."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        if self.kind != "one-hot":
            return (self.name,)
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        return tuple(f"{self.name}={category}" for category in shown)

    def encode(self, cells: pandas.Series) -> dict[str, Any]:
        """Columns for the estimators by name."""
        if self.kind == "number":
            numbers = pandas.to_numeric(cells, errors="coerce").astype(np.float64)
            if (numbers.isna() & cells.notna()).any():
                raise TableError(f"the column {self.name!r} should hold numbers, not {_odd(cells)}")
            return {self.name: numbers.to_numpy()}
        texts = cells.map(as_text, na_action="ignore").astype(object).where(cells.notna(), None)
        if self.kind == "ordinal":
            return {self.name: pandas.Categorical(texts, categories=self.categories, ordered=True)}
        if self.kind == "category":
            return {self.name: texts.to_numpy(dtype=object)}
        known = texts.isin(self.categories).to_numpy()
        first = len(self.categories) - len(self.outputs)
        return {  # of a category that it never saw, and of none, an old model knows nothing
            output: np.where(known, (texts == category).to_numpy(dtype=np.float64), np.nan)
            for output, category in zip(self.outputs, self.categories[first:], strict=True)
        }

    def describe(self) -> str:
        """What became of it, for the table that ``fit`` prints."""
        if self.kind == "number":
            return "as it is"
        if self.kind == "category":
            return f"category: {listed(self.categories, 20)}"
        if self.kind == "ordinal":
            ranks = [f"{category} = {place}" for place, category in enumerate(self.categories)]
            return f"ordinal: {listed(ranks, 20)}"
        if len(self.categories) == 2:
            return f"two categories: {self.categories[1]} = 1, {self.categories[0]} = 0"
        return f"one-hot, one column each: {listed(self.categories, 20)}"


@dataclass(frozen=True)
class Encoding:
    """What became of every column of the training table."""

    columns: tuple[Column, ...]
    target: str = ""
    """Name of the target's column; empty where the model was not fitted to a table."""

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(output for column in self.columns for output in column.outputs)

    def encode(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """Pick the columns by name, whatever their order, and encode them."""
        absent = [column.name for column in self.columns if column.name not in frame]
        if absent:
            raise TableError(
                f"the table lacks {listed(names_with_hints(absent, frame.columns), 20)}"
            )
        chosen = frame[[column.name for column in self.columns]]
        refuse_infinite(chosen)
        encoded: dict[str, Any] = {}
        for column in self.columns:
            encoded.update(column.encode(chosen[column.name]))
        return pandas.DataFrame(encoded, columns=list(self.outputs))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the model's file."""
        return {"target": self.target, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, stored: Any) -> Encoding:
        """Read what ``to_dict`` wrote; raises ``TableError`` on anything else."""
        try:
            columns = tuple(
                Column(
                    name=_text(part["name"]),
                    kind=KINDS[KINDS.index(part["kind"])],
                    categories=tuple(_text(category) for category in part["categories"]),
                )
                for part in stored["columns"]
            )
            return cls(columns, _text(stored["target"]))
        except (KeyError, TypeError, ValueError):
            raise TableError("the model's file says nothing readable about its table") from None

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> Encoding:
        """For a model that was fitted to numbers, without a table."""
        return cls(tuple(Column(name, "number") for name in names))


@dataclass(frozen=True)
class TrainingTable:
    """The table that a model was fitted to."""

    encoding: Encoding
    name: str = ""
    """Of its file; empty where it is not known."""
    n_rows: int | None = None
    missing: tuple[str, ...] = ()
    """Texts that were said to mean missing."""
    decimal: str = "."
    """Decimal mark of its numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the model's file."""
        return {**vars(self), "encoding": self.encoding.to_dict(), "missing": list(self.missing)}

    @classmethod
    def from_dict(cls, stored: Any) -> TrainingTable:
        """Read what ``to_dict`` wrote; raises ``TableError`` on anything else."""
        unreadable = TableError("the model's file says nothing readable about its table")
        if not isinstance(stored, dict):
            raise unreadable
        stored = {"missing": [], "decimal": ".", **stored}  # which older files do not have
        if stored.keys() != {f.name for f in fields(cls)}:
            raise unreadable
        name, n_rows, missing = stored["name"], stored["n_rows"], stored["missing"]
        if not isinstance(name, str) or not isinstance(n_rows, int | None):
            raise unreadable
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise unreadable
        if not isinstance(stored["decimal"], str):
            raise unreadable
        encoding = Encoding.from_dict(stored["encoding"])
        return cls(encoding, name, n_rows, tuple(missing), stored["decimal"])


def read_like_training(
    path: Path, posterior: Posterior, decimal: str | None = None
) -> pandas.DataFrame:
    """A table with new rows, read as the training table was; ``decimal`` where it has another."""
    table = posterior.table
    missing = () if table is None else table.missing
    usual = "." if table is None else table.decimal
    return read_table(path, missing=missing, decimal=usual if decimal is None else decimal)


def encoding_of(posterior: Posterior) -> Encoding:
    """How tables are read for this model; all numbers where it was not fitted to a table."""
    names = posterior.preprocessing.feature_names
    if posterior.table is None:
        return _of_columns(posterior)
    encoding = posterior.table.encoding
    if encoding.outputs != names or not _ranges_fit(encoding, posterior):
        raise TableError("the table of the model's file does not fit its trees")
    return encoding


def encoding_of_trees(posterior: Posterior) -> Encoding:
    """The same as the trees see it: levels as columns of 0 and 1 where the method has these."""
    encoding, scale = encoding_of(posterior), posterior.preprocessing
    if scale.indicator is None:
        return encoding
    columns = []
    for column, about in zip(encoding.columns, scale.columns, strict=True):
        if about.n_levels:
            labels = tuple(about.label(code) for code in range(about.n_levels))
            column = Column(column.name, "one-hot", labels)
        columns.append(column)
    return Encoding(tuple(columns), encoding.target)


def _of_columns(posterior: Posterior) -> Encoding:
    """Of a model that was fitted in Python."""
    scale = posterior.preprocessing
    if not scale.columns:
        return Encoding.of_numbers(scale.feature_names)
    columns = []
    for name, column in zip(scale.feature_names, scale.columns, strict=True):
        kind, labels = "number", tuple[Any, ...]()
        if column.order:
            kind, labels = "ordinal", column.order
        elif column.levels is not None:
            kind, labels = "category", (*column.levels, *column.others)
        columns.append(Column(name, kind, tuple(str(label) for label in labels)))
    return Encoding(tuple(columns))


def _ranges_fit(encoding: Encoding, posterior: Posterior) -> bool:
    """Whether categories have the numbers that they are encoded as."""
    scale = posterior.preprocessing
    most = {
        output: max(1, len(column.categories) - 1)
        for column in encoding.columns
        for output in column.outputs
        if column.kind in ("one-hot", "ordinal")
    }
    return all(
        low >= 0 and low + span <= most[name]
        for name, low, span in zip(scale.used_names, scale.minimum, scale.span, strict=True)
        if name in most
    )


def learn_encoding(
    frame: pandas.DataFrame,
    target: str,
    *,
    ordinal: Mapping[str, Sequence[str]] | None = None,
    categorical: Sequence[str] = (),
    max_categories: int = MAX_CATEGORIES,
) -> Encoding:
    """Decide what becomes of each column but the target.

    Parameters
    ----------
    frame : table of ``read_table``
    target : name of the target's column
    ordinal : categories from low to high, by column
    categorical : columns of numbers, such as codes, that are to be categories
    max_categories : a column with more is refused

    Raises
    ------
    SeveralTableError
        With all problems of all columns.
    """
    ordinal = dict(ordinal or {})
    for name in [*ordinal, *categorical]:
        if name == target:
            raise TableError(f"{name!r} is the target: it is not a column to split on")
        if name not in frame:
            raise TableError(
                f"there is no column {listed(names_with_hints([name], frame.columns))}",
                instead=meant([name], frame.columns),
            )
    columns, problems = [], []
    for name, cells in frame.items():
        name = str(name)
        if name == target:
            continue
        order, codes = ordinal.get(name), name in categorical
        try:
            columns.append(_learn_column(name, cells, order, codes, max_categories))
        except TableError as problem:
            problems.append(problem)
    raise_all(problems)
    if not columns:
        raise TableError("the table has no column except the target")
    encoding = Encoding(tuple(columns), target)
    names = encoding.outputs
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"encoded columns would have the same names, rename: {listed(twice)}")
    return encoding


def _learn_column(
    name: str, cells: pandas.Series, order: Sequence[str] | None, codes: bool, max_categories: int
) -> Column:
    if order is None and isinstance(cells.dtype, pandas.CategoricalDtype):
        order = tuple(cells.cat.categories)
    if order is not None:
        texts = cells.dropna().map(as_text).astype(object)
        left_out = texts[~texts.isin(order)]
        if len(left_out):
            raise TableError(f"the order of {name!r} leaves out {_counted(left_out)}")
        return Column(name, "ordinal", tuple(order))
    cells = cells.dropna()
    if told_apart(cells) is not None and not codes:
        return Column(name, "number")
    texts = cells.map(as_text).astype(object)
    if not codes and holds_dates(texts):
        raise TableError(
            f"the column {name!r} holds dates or times, such as {texts.iloc[0]!r}. Leave it out: "
            f"--drop {name!r}; or turn it into a number first, such as days since a date; if a "
            f"few dates are categories: --categorical {name!r}",
            ["--drop", name],
        )
    numbers = pandas.to_numeric(texts, errors="coerce").notna()
    if numbers.any() and not numbers.all() and not codes:
        odd = texts[~numbers].unique()
        missing = [part for text in odd for part in ("--missing", text)]
        raise TableError(
            f"the column {name!r} holds numbers, but also {_odd(cells)}. If that means missing: "
            f"--missing TEXT; if the column holds categories: --categorical {name!r}",
            missing if len(odd) <= FEW else ["--categorical", name],
        )
    if numbers.all() and not codes:
        raise TableError(
            f"the column {name!r} holds whole numbers that floating point cannot tell apart, such "
            f"as {listed(texts, 2)}. If it is an identifier, leave it out: --drop {name!r}; if the "
            f"numbers are codes: --categorical {name!r}; if not, subtract the smallest from them",
            ["--drop", name],
        )
    categories = sorted(texts.unique())
    decimals = all(re.fullmatch(r"[+-]?\d*,\d+|[+-]?\d+", text) for text in categories)
    if len(categories) > MANY and decimals:
        raise TableError(
            f"{name!r} seems to use decimal commas; if so: --decimal ,", ["--decimal", ","]
        )
    if len(categories) > max_categories:
        raise TableError(
            f"the column {name!r} has {len(categories)} different texts in {len(texts)} rows, "
            f"such as {listed(categories, 3)}. If it is an identifier or free text, leave it out: "
            f"--drop {name!r}; if not: --max-categories {len(categories)}",
            ["--drop", name],
        )
    return Column(name, "category", tuple(categories))


def _odd(cells: pandas.Series) -> str:
    """The cells that are no numbers, counted."""
    return _counted(cells[pandas.to_numeric(cells, errors="coerce").isna()])


def _counted(cells: pandas.Series) -> str:
    """Different texts with their numbers of rows, the most frequent first."""
    counts = cells.astype(str).value_counts()
    return listed(
        [f"{text!r} ({count} row{'s' if count > 1 else ''})" for text, count in counts.items()]
    )


def meant(names: Sequence[str], known: Any) -> dict[str, str]:
    """By a name that is not known, the most similar of those that are, where there is one."""
    found: dict[str, str] = {}
    for name in names:
        close = difflib.get_close_matches(name, [str(column) for column in known], n=1)
        found |= {name: close[0]} if close else {}
    return found


def names_with_hints(names: Sequence[str], known: Any) -> list[str]:
    """The names, each with the most similar of the known ones."""
    close = meant(names, known)
    return [
        f"{name!r} (did you mean {close[name]!r}?)" if name in close else f"{name!r}"
        for name in names
    ]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
