"""Columns as scans want them: sorted, with the ranks of their values; and weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TABLE_ROWS = 20_000
"""Up to so many rows, functions of counts are looked up in tables."""
UNITS_PER_ROW = 8
"""Of weights that are not whole, scans see so many parts of the mean weight, or fewer where there
would be too many for tables."""


def amounts_of(rows: NDArray[np.int64], weights: NDArray[np.float64] | None) -> dict[str, Any]:
    """Weights in units.

    Scans only propose: weights that are not whole, or so large that tables would be, are rounded,
    such that sums over rows in a sequence are right to a unit.
    """
    n = len(rows)
    if weights is None:
        nothing = {"amount": np.zeros(0, np.int32), "weight": np.zeros(0)}
        return {**nothing, "units": 1.0, "n_units": n, "mass": float(n)}
    own = weights[rows]
    total = own.sum()
    most = max(TABLE_ROWS, n)
    units = 1.0
    if (own % 1 != 0).any() or total > most:
        units = min(UNITS_PER_ROW * n, most) / total
    sums = np.concatenate([[0], np.rint(np.cumsum(own * units))]).astype(np.int64)
    amount = np.zeros(len(weights), np.int32)
    amount[rows] = np.diff(sums)
    n_units = int(sums[-1])
    return {
        "amount": amount,
        "weight": amount / units,
        "units": units,
        "n_units": n_units,
        "mass": n_units / units,
    }


def sorted_columns(columns: NDArray[np.float64], rows: NDArray[np.int32]) -> dict[str, Any]:
    p, n = columns.shape
    order = np.empty((p, len(rows)), np.int32)
    level = np.zeros((p, n), np.int32)
    values = []
    for f in range(p):
        order[f] = rows[np.argsort(columns[f, rows], kind="stable")]
        distinct, inverse = np.unique(columns[f, rows], return_inverse=True)
        level[f, rows] = inverse
        values.append(distinct)
    n_levels = np.array([len(v) for v in values], np.int64)
    value = np.zeros((p, n_levels.max()))
    cut = np.zeros_like(value)
    for f, distinct in enumerate(values):
        above = np.append(distinct[1:], np.inf)
        middle = distinct + 0.5 * (above - distinct)
        value[f, : len(distinct)] = distinct
        cut[f, : len(distinct)] = np.where(middle < above, middle, distinct)
    return {"order": order, "level": level, "n_levels": n_levels, "value": value, "cut": cut}
