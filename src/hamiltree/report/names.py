"""Display names and units: what a reader sees in the place of a table's own names and codes."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..inputs.encoding import (
    Column,
    Encoding,
    TrainingTable,
    encoding_of,
    names_with_hints,
)
from ..inputs.tables import TableError, listed
from ..posterior import Posterior

TARGET = "target"
"""Stands for the target's column, whose name a model fitted in Python does not know."""
FIELDS = ("column", "label", "unit", "value")


@dataclass(frozen=True)
class Display:
    """How one column is shown."""

    label: str
    unit: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """Labels of categories, or of the target's classes, by how the table writes them."""


Names = Mapping[str, Any] | str | os.PathLike[str]
"""By column a label, or a mapping with ``label``, ``unit`` and ``values``; or a file with these."""


def displays_of(names: Names | None) -> dict[str, Display]:
    """What is given as a mapping or in a CSV or JSON file; errors say where.

    Raises
    ------
    TableError
        If it cannot be read as names.
    """
    if names is None:
        return {}
    if isinstance(names, Mapping):
        return _of_mapping(names, "names")
    path = Path(names)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path.name} is not text in UTF-8") from None
    if path.suffix.lower() == ".json":
        try:
            stored = json.loads(text)
        except json.JSONDecodeError as error:
            raise TableError(f"{path.name} is not readable JSON: {error}") from None
        if not isinstance(stored, dict):
            raise TableError(f'{path.name} must hold an object, such as {{"age": "Age"}}')
        return _of_mapping(stored, path.name)
    if path.suffix.lower() == ".csv":
        return _of_csv(text, path.name)
    raise TableError(f"{path.name}: expected names in a file that ends in .csv or .json")


def _of_csv(text: str, where: str) -> dict[str, Display]:
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    rows = list(csv.reader(text.splitlines(), delimiter=separator))
    fields = [cell.strip() for cell in rows[0]] if rows else []
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or not {"column", "label"} <= set(fields):
        raise TableError(
            f"{where} needs a header with column and label, and may have unit and value; it has "
            f"{listed([repr(name) for name in fields]) or 'none'}"
        )
    found: dict[str, dict[str, Any]] = {}
    for number, cells in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(fields):
            raise TableError(f"{where}: line {number} has {len(cells)} cells, not {len(fields)}")
        row = dict.fromkeys(FIELDS, "")
        row |= {name: cell.strip() for name, cell in zip(fields, cells, strict=True)}
        own = found.setdefault(row["column"], {"values": {}})
        if row["value"]:
            if row["value"] in own["values"]:
                raise TableError(f"{where}: line {number} names {row['value']!r} a second time")
            own["values"][row["value"]] = row["label"]
            continue
        if "label" in own:
            raise TableError(f"{where}: line {number} names {row['column']!r} a second time")
        own |= {"label": row["label"], "unit": row["unit"]}
    return _of_mapping(found, where)


def _of_mapping(given: Mapping[str, Any], where: str) -> dict[str, Display]:
    found = {}
    for column, about in given.items():
        own = {"label": about} if isinstance(about, str) else about
        if not isinstance(own, Mapping) or not set(own) <= {"label", "unit", "values"}:
            raise TableError(
                f"{where}: {column!r} needs a text, or label, unit and values, got {about!r}"
            )
        label, unit, values = own.get("label", ""), own.get("unit", ""), own.get("values", {})
        pairs = list(values.items()) if isinstance(values, Mapping) else None
        if not (isinstance(label, str) and isinstance(unit, str)) or pairs is None:
            raise TableError(f"{where}: label and unit of {column!r} must be texts")
        if not all(isinstance(text, str) and text.strip() for _, text in pairs):
            raise TableError(f"{where}: a value of {column!r} has no label")
        found[str(column)] = Display(
            label.strip() or str(column), unit.strip(), {str(k): text for k, text in pairs}
        )
    return found


def with_names(posterior: Posterior, displays: Mapping[str, Display]) -> Posterior:
    """The same posterior under its display names.

    Raises
    ------
    TableError
        If a name belongs to no column or category, or two columns would share a label.
    """
    if not displays:
        return posterior
    encoding, scale = encoding_of(posterior), posterior.preprocessing
    target = target_of(encoding, displays)
    known = [*(column.name for column in encoding.columns), encoding.target or TARGET]
    unknown = [name for name in displays if name not in known and name != target]
    if unknown:
        raise TableError(
            f"the names have no column {listed(names_with_hints(unknown, known))}; the columns are "
            f"{listed([repr(name) for name in known], 20)}"
        )
    columns = tuple(_renamed(column, displays.get(column.name)) for column in encoding.columns)
    labels = [column.name for column in columns]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise TableError(f"several columns would be shown as {listed(twice)}: name them apart")
    goal = displays.get(target) if target else None
    shown = Encoding(columns, goal.label if goal else encoding.target)
    about = tuple(
        replace(
            own,
            levels=None if own.levels is None else tuple(_labels(own.levels, column, displays)),
            order=tuple(_labels(own.order, column, displays)),
        )
        for own, column in zip(scale.columns, encoding.columns, strict=False)
    )
    classes = scale.classes
    if goal and goal.values:
        if classes is None:
            raise TableError(f"the target {target!r} is a number: it has no values to name")
        texts = [str(label) for label in classes]
        _check_values(target or TARGET, goal.values, texts)
        classes = np.array([goal.values.get(text, text) for text in texts])
        if len(set(classes)) < len(classes):
            raise TableError("two classes would be shown under one label: name them apart")
    renamed = replace(scale, feature_names=shown.outputs, columns=about, classes=classes)
    table = posterior.table
    if table is not None or goal:
        old = table or TrainingTable(encoding)
        table = replace(old, encoding=shown)
    return posterior._with(preprocessing=renamed, table=table)


def target_of(encoding: Encoding, displays: Mapping[str, Display]) -> str | None:
    """Under which name the displays have the target, if they do."""
    if encoding.target and encoding.target in displays:
        return encoding.target
    is_column = any(column.name == TARGET for column in encoding.columns)
    return TARGET if TARGET in displays and not is_column else None


def units_of(posterior: Posterior, displays: Mapping[str, Display]) -> tuple[list[str], str]:
    """Units of the columns of the user's table, in their order, and of the target."""
    encoding = encoding_of(posterior)
    target = target_of(encoding, displays)
    units = [
        displays[column.name].unit if column.name in displays else "" for column in encoding.columns
    ]
    return units, displays[target].unit if target else ""


def _renamed(column: Column, display: Display | None) -> Column:
    if display is None:
        return column
    _check_values(column.name, display.values, column.categories)
    labels = tuple(display.values.get(category, category) for category in column.categories)
    if len(set(labels)) < len(labels):
        raise TableError(f"two categories of {column.name!r} would be shown under one label")
    return Column(display.label, column.kind, labels)


def _check_values(name: str, values: Mapping[str, str], known: Any) -> None:
    unknown = [value for value in values if value not in known]
    if unknown:
        raise TableError(
            f"{name!r} has no value {listed(names_with_hints(unknown, known))}; it has "
            f"{listed([repr(text) for text in known], 20) or 'numbers'}"
        )


def _labels(levels: Any, column: Column, displays: Mapping[str, Display]) -> Any:
    """Levels of a category as they are shown."""
    values = displays[column.name].values if column.name in displays else {}
    return [values.get(str(level), level) for level in levels]
