"""The columns of the page's trees, and the form in which a reader types a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs.encoding import Column, Encoding
from ..posterior import Posterior
from ..utils.arrays import FloatArray, IntArray

STEPS = 100
"""Of a slider at least, and ten times as many at most."""


def columns_of(
    posterior: Posterior, encoding: Encoding, units: dict[str, str]
) -> list[dict[str, Any]]:
    """What the trees split on, one entry per used column; ``units`` by the column's name."""
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
                "fill": None if scale.fill is None else scale.fill[j],
                "whole": scale.column(j).whole,
                "unit": units.get(column.name, ""),
                # Effects are those of the input's columns, as in ``explain``.
                "place": scale.used[j],
                "feature": scale.feature_names[scale.used[j]],
            }
        )
    return found


def labels_of(posterior: Posterior, place: int) -> list[str] | None:
    """Levels of a category by code; None for numbers."""
    column = posterior.preprocessing.column(place)
    if posterior.preprocessing.indicator is not None:
        return None
    return [column.label(code) for code in range(column.n_levels)] if column.n_levels else None


def inputs_of(
    posterior: Posterior,
    encoding: Encoding,
    own: Encoding,
    units: dict[str, str],
    split_on: IntArray,
) -> list[dict[str, Any]]:
    """The form, one entry per column of the user's table that is not constant.

    ``own`` has the table's own names, for files that the page writes. ``split_on`` are the used
    columns that the page's trees split on; -1 stands for all (HMC-DFI).
    """
    scale = posterior.preprocessing
    place = {name: j for j, name in enumerate(scale.used_names)}
    start = _typical(posterior)
    found = []
    for column, raw in zip(encoding.columns, own.columns, strict=True):
        encoded = zip(column.outputs, _categories(column), strict=True)
        parts = [(place[output], category) for output, category in encoded if output in place]
        if not parts:
            continue
        numbers = [number for number, _ in parts]
        about = scale.column(numbers[0])
        labels = labels_of(posterior, numbers[0])
        known = dict(zip(column.categories, raw.categories, strict=True))
        categories = column.categories if labels is None else tuple(labels)
        entry = {
            "name": column.name,
            "unit": units.get(column.name, ""),
            "column": raw.name,
            "kind": column.kind,
            "categories": categories,
            "values": [known.get(category, category) for category in categories],
            # Without it an empty cell has no place: weighted sums need every number.
            "required": -1 in split_on and scale.fill is None,
            "missing": about.missing,
            "columns": [{"column": number, "category": category} for number, category in parts],
            "asked": bool(-1 in split_on or np.isin(numbers, split_on).any()),
            "start": _start(column, start[numbers], labels, about.whole),
        }
        if column.kind == "number":
            low = scale.minimum[numbers[0]]
            high = low + scale.span[numbers[0]]
            entry |= {"low": low, "high": high, "lowText": f"{low:.6g}", "highText": f"{high:.6g}"}
            entry |= _slider(float(low), float(high), about.whole)
        found.append(entry)
    return found


def _slider(low: float, high: float, whole: bool) -> dict[str, float]:
    """Round numbers between the ends, a hundred steps or more; whole ones for whole numbers."""
    step = 1.0 if whole else 10.0 ** np.floor(np.log10((high - low) / STEPS))
    first, last = np.ceil(low / step - 1e-9) * step, np.floor(high / step + 1e-9) * step
    return {
        "step": float(f"{step:.6g}"),
        "from": float(f"{first:.12g}"),
        "to": float(f"{last:.12g}"),
    }


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


def _start(
    column: Column, typical: FloatArray, labels: list[str] | None, whole: bool
) -> float | str:
    """Where the form starts."""
    if labels is not None:
        return labels[int(typical[0])]
    if column.kind == "number":
        return float(np.floor(typical[0]) if whole else f"{typical[0]:.6g}")
    if column.kind == "ordinal":
        return column.categories[int(np.round(typical[0]))]
    if len(typical) == 1:  # the other category has no column
        return column.categories[int(typical[0] > 0.5)]
    return column.categories[int(typical.argmax())]
