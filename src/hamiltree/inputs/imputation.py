"""Missing numbers imputed from the other cells of a row, by a normal distribution of the columns.

Only rules that say so use these numbers, see ``core.tree.kinds``: the other rules, and the model's
prior, know a missing cell as missing. The target has no part in it.

The distribution is fitted by EM, a fixed number of steps of it, to the columns on the unit interval
and to an indicator of each frequent level of a category. Its covariance is shrunk towards the
diagonal, as by as many more rows as there are columns, so that few rows are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..utils.arrays import FloatArray, IntArray

STEPS = 10
"""Of EM, always as many: the result does not depend on a tolerance."""
MOST_ROWS = 5_000
"""Rows that it is fitted to, evenly spread over the table where that has more."""
FREQUENT = 0.05
"""Share of the rows that a level needs to have an indicator."""
RESOLUTION = 2.0**20
"""Imputed numbers are rounded to so many parts of a column's range: the order of rows, if all are
used, changes the last digits of sums, but then next to none of these numbers."""


@dataclass(frozen=True)
class Imputation:
    """A normal distribution of columns, some of which are indicators of levels."""

    place: IntArray
    """[q]; the used column that each comes from."""
    code: IntArray
    """[q]; the level that an indicator is 1 for; -1 for numbers."""
    mean: FloatArray
    """[q]"""
    covariance: FloatArray
    """[q, q]; positive definite."""

    def fill(self, columns: FloatArray) -> FloatArray:
        """Numbers [p, n] on the unit interval, with NaN where cells are missing, without the NaN.

        Categories are codes, and stay what they are.
        """
        rows = _rows_of(columns, self.place, self.code)
        known = np.where(np.isnan(rows), 0.0, rows - self.mean)
        precision = np.linalg.inv(self.covariance)
        weighed = known @ precision
        for members, gone in _patterns(rows):
            left = np.linalg.inv(precision[np.ix_(gone, gone)])
            rows[np.ix_(members, gone)] = self.mean[gone] - weighed[np.ix_(members, gone)] @ left
        out = columns.copy()
        numbers = self.code < 0
        imputed = np.round(np.clip(rows[:, numbers].T, 0.0, 1.0) * RESOLUTION) / RESOLUTION
        place = self.place[numbers]
        out[place] = np.where(np.isnan(columns[place]), imputed, columns[place])
        return out


def learn_imputation(
    columns: FloatArray, n_levels: IntArray, weights: FloatArray | None = None
) -> Imputation:
    """From training columns [p, n], with NaN where cells are missing and categories as codes.

    ``n_levels`` [p]: 0 for numbers; ``weights`` [n] of the rows, all 1 where None.
    """
    weight = np.ones(columns.shape[1]) if weights is None else weights
    chosen = np.flatnonzero(weight > 0)
    chosen = chosen[:: -(-len(chosen) // MOST_ROWS)]
    columns, weight = columns[:, chosen], weight[chosen]
    place, code = _variables(columns, n_levels, weight)
    rows = _rows_of(columns, place, code)
    there = ~np.isnan(rows)
    mass = np.maximum(weight @ there, np.finfo(float).tiny)
    mean = weight @ np.where(there, rows, 0.0) / mass
    variance = weight @ np.where(there, rows - mean, 0.0) ** 2 / mass
    variance[variance < 1e-12] = 1.0  # numbers that are all equal tell nothing about others
    covariance = np.diag(variance)
    prior_rows = len(mean)
    for _ in range(STEPS):
        known = np.where(there, rows - mean, 0.0)
        precision = np.linalg.inv(covariance)
        weighed = known @ precision
        spread = prior_rows * np.diag(variance)
        for members, gone in _patterns(rows):
            left = np.linalg.inv(precision[np.ix_(gone, gone)])
            known[np.ix_(members, gone)] = -weighed[np.ix_(members, gone)] @ left
            spread[np.ix_(gone, gone)] += weight[members].sum() * left
        change = weight @ known / weight.sum()
        mean = mean + change
        centred = known - change
        spread += centred.T @ (weight[:, None] * centred)
        covariance = spread / (weight.sum() + prior_rows)
    return Imputation(place, code, mean, covariance)


def _variables(
    columns: FloatArray, n_levels: IntArray, weight: FloatArray
) -> tuple[IntArray, IntArray]:
    """Numbers, and all frequent levels of each category."""
    place, code = [], []
    for f, levels in enumerate(n_levels):
        own = [-1]
        if levels:
            shares = [weight @ (columns[f] == level) for level in range(levels)]
            own = np.flatnonzero(np.array(shares) >= FREQUENT * weight.sum()).tolist()
        place += [f] * len(own)
        code += own
    return np.array(place, np.int64), np.array(code, np.int64)


def _rows_of(columns: FloatArray, place: IntArray, code: IntArray) -> FloatArray:
    """[n, q]; NaN where a cell is missing, or is a level that training did not see."""
    values = columns[place]
    indicators = np.where(np.isnan(values), np.nan, values == code[:, None])
    return np.ascontiguousarray(np.where(code[:, None] < 0, values, indicators).T)


def _patterns(rows: FloatArray) -> Iterator[tuple[IntArray, NDArray[np.bool_]]]:
    """Rows that miss the same cells, and those cells.

    Given the others, these are normal: with precision Q their covariance is the inverse of their
    own block of Q, which is small, and their mean follows from Q times the others.
    """
    missing = np.isnan(rows)
    some = np.flatnonzero(missing.any(axis=1))
    if not some.size:
        return
    patterns, which = np.unique(missing[some], axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(patterns)))
    for gone, members in zip(patterns, np.split(some[order], ends[:-1]), strict=True):
        yield members, gone
