"""The columns of the page's trees, and the form in which a reader types a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs.encoding import Column, Encoding
from ..posterior import Posterior
from ..utils.arrays import FloatArray, IntArray


def columns_of(posterior: Posterior, encoding: Encoding) -> list[dict[str, Any]]:
    """What the trees split on, one entry a used column."""
    scale = posterior.preprocessing
    origin = {
        output: (column, category)
        for column in encoding.columns
        for output, category in zip(column.outputs, _categories(column), strict=True)
    }
    found, kinds = [], posterior.draws.kinds
    for j, name in enumerate(scale.used_names):
        column, category = origin[name]
        found.append(
            {
                "name": name,
                "source": column.name,
                "kind": column.kind,
                "category": category,
                "categories": column.categories,
                "minimum": scale.minimum[j],
                "span": scale.span[j],
                "labels": labels_of(posterior, j),
                "missing": bool(kinds is not None and kinds[j] < 0),
            }
        )
    return found


def labels_of(posterior: Posterior, place: int) -> list[str] | None:
    """Levels of a category by code; None for numbers."""
    column = posterior.preprocessing.column(place)
    if posterior.preprocessing.indicator is not None:
        return None
    return [column.label(code) for code in range(column.n_levels)] if column.n_levels else None


def inputs_of(posterior: Posterior, encoding: Encoding, split_on: IntArray) -> list[dict[str, Any]]:
    """The form, one entry a column of the user's table that is not constant.

    ``split_on`` are the used columns that the page's trees split on; -1 stands for all (HMC-DFI).
    """
    scale = posterior.preprocessing
    place = {name: j for j, name in enumerate(scale.used_names)}
    start = _typical(posterior)
    found = []
    for column in encoding.columns:
        encoded = zip(column.outputs, _categories(column), strict=True)
        parts = [(place[output], category) for output, category in encoded if output in place]
        if not parts:
            continue
        numbers = [number for number, _ in parts]
        about = scale.column(numbers[0])
        labels = labels_of(posterior, numbers[0])
        entry = {
            "name": column.name,
            "kind": column.kind,
            "categories": column.categories if labels is None else labels,
            "missing": about.missing,
            "columns": [{"column": number, "category": category} for number, category in parts],
            "asked": bool(-1 in split_on or np.isin(numbers, split_on).any()),
            "start": _start(column, start[numbers], labels),
        }
        if column.kind == "number":
            low = scale.minimum[numbers[0]]
            high = low + scale.span[numbers[0]]
            entry |= {"low": low, "high": high, "lowText": f"{low:.6g}", "highText": f"{high:.6g}"}
        found.append(entry)
    return found


def _categories(column: Column) -> tuple[str, ...]:
    """The category that each encoded column stands for; empty texts where it stands for none."""
    n = len(column.outputs)
    return column.categories[-n:] if column.kind == "one-hot" else ("",) * n


def _typical(posterior: Posterior) -> FloatArray:
    """[used columns]; means of 0/1 columns tell the commonest category, medians the rest.

    Of categories the commonest code.
    """
    scale = posterior.preprocessing
    if posterior.training is None:
        return scale.minimum + scale.span / 2
    rows = np.asarray(posterior.training.X)[:, scale.used]
    if scale.indicator is not None:
        rows = (scale.to_unit(posterior.training.X) * scale.span[:, None]).T + scale.minimum
    binary = np.isin(rows, (0.0, 1.0)).all(axis=0)
    typical: FloatArray = np.where(binary, rows.mean(axis=0), np.nanmedian(rows, axis=0))
    for j in range(len(typical)):
        if scale.column(j).n_levels and scale.indicator is None:
            typical[j] = np.bincount(rows[:, j].astype(np.int64)).argmax()
    return typical


def _start(column: Column, typical: FloatArray, labels: list[str] | None) -> float | str:
    """Where the form starts."""
    if labels is not None:
        return labels[int(typical[0])]
    if column.kind == "number":
        return float(f"{typical[0]:.6g}")
    if column.kind == "ordinal":
        return column.categories[int(np.round(typical[0]))]
    if len(typical) == 1:  # the other category has no column
        return column.categories[int(typical[0] > 0.5)]
    return column.categories[int(typical.argmax())]
