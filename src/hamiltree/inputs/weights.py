"""Weights of rows: from ``sample_weight`` and ``class_weight`` to positive numbers, or none.

And the order in which samplers see rows that are repeated, by whole weights or in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.arrays import FloatArray, IntArray
from .columns import Column, number_column

LARGEST = 1e15
"""Sums of larger weights would lose whole rows."""
MOST_REPEATED = 100_000
"""Rows, repetitions included, beyond which order and weights stay what they are: sorting copies."""
MOST_COPIES = 4
"""Of a row, on average; larger whole weights stay weights, since copies take time."""


def weights_of(sample_weight: Any, n_rows: int) -> FloatArray:
    """[n_rows], from what the user gave: None, a number for all rows, or one per row."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.array(sample_weight)
        if weights.dtype.kind == "c":
            raise TypeError
        weights = weights.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one per row") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be 1D, one number per row, got {weights.ndim}D")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight has {len(weights)} entries, but X has {n_rows} rows")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight has missing (NaN) or infinite entries")
    if (weights < 0).any():
        raise ValueError("Negative values in sample_weight: a row cannot count less than nothing")
    if not (weights > 0).any():
        raise ValueError("all entries of sample_weight are zero: no row is left")
    if weights.max() > LARGEST:
        raise ValueError(f"sample_weight must be at most {LARGEST:g}: scale the weights down")
    return weights


def with_class_weights(
    weights: FloatArray, y: NDArray[Any], class_weight: Mapping[Any, float] | str | None
) -> FloatArray:
    """The weights times those of the rows' classes; ``y`` are the labels of the rows.

    "balanced": every class counts for as many rows, and all together for as many as before. A dict
    has weights by label; classes that it leaves out have 1.
    """
    if class_weight is None:
        return weights
    present = weights > 0
    labels, codes = np.unique(y[present], return_inverse=True)
    mass = np.bincount(codes, weights[present])
    if isinstance(class_weight, str):
        factors = mass.sum() / (len(labels) * mass)
    else:
        known = set(np.unique(y).tolist())
        unknown = [label for label in class_weight if label not in known]
        if unknown:
            raise ValueError(f"class_weight has labels that y does not have: {unknown}")
        try:
            factors = np.array([float(class_weight.get(label, 1.0)) for label in labels.tolist()])
        except (TypeError, ValueError):
            factors = np.array([np.nan])
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise ValueError("class_weight must have finite numbers that are not negative")
    weighed = weights.copy()
    weighed[present] *= factors[codes]
    if not (weighed > 0).any():
        raise ValueError("class_weight leaves no row with a positive weight")
    return weighed


def counted(
    X: FloatArray, y: NDArray[Any], weights: FloatArray, columns: tuple[Column, ...]
) -> tuple[FloatArray, NDArray[Any], FloatArray | None, tuple[Column, ...]]:
    """Rows that count, their targets and weights (None where all are 1), and what columns are."""
    present = weights > 0
    if not present.all():
        X, y, weights = X[present], y[present], weights[present]
        X, columns = _without_absent_levels(X, columns)
    if len(X) < 2:
        raise ValueError("fewer than 2 rows have a positive weight")
    return X, y, None if (weights == 1).all() else weights, columns


def _without_absent_levels(
    X: FloatArray, columns: Sequence[Column]
) -> tuple[FloatArray, tuple[Column, ...]]:
    """What columns are by these rows alone, and the rows with the codes of their own levels.

    A level that only rows of weight 0 have would take a part of the prior of the splits.
    """
    X, found = np.array(X), []
    for place, column in enumerate(columns):
        cells = X[:, place]
        if column.levels is None:
            there = number_column(cells)
            whole = there.whole and not column.order
            found.append(replace(column, missing=there.missing, whole=whole))
            continue
        n = len(column.levels)
        codes = np.unique(cells).astype(int)
        kept, missing = [code for code in codes.tolist() if code < n], bool(codes[-1] == n)
        levels = tuple(column.levels[code] for code in kept)
        others = column.others if n - 1 in kept else ()
        found.append(replace(column, levels=levels, missing=missing, others=others))
        X[:, place] = np.searchsorted(codes, cells)
    return X, tuple(found)


def sampled_order(X: FloatArray, y: NDArray[Any], weights: FloatArray | None) -> IntArray | None:
    """Numbers of the rows as samplers are to see them, with repetitions; None: as they are.

    A seed is to give the same draws for a row of weight 2 and for the row twice, wherever the rows
    stand. So whole weights become copies of rows, and rows of which some are equal come in an
    order that only their contents decide. Rows that all differ keep the order of the table, and
    with it the draws that they had before there were weights.
    """
    index = np.arange(len(X))
    if weights is not None:
        most = min(MOST_REPEATED, MOST_COPIES * len(X))
        if (weights % 1 != 0).any() or weights.sum() > most:
            return None
        index = np.repeat(index, weights.astype(np.int64))
    if len(index) > MOST_REPEATED:
        return None
    digests = _digests(X, y)
    if len(np.unique(digests)) == len(index):
        return None
    order: IntArray = index[np.argsort(digests[index], kind="stable")]
    return order


def _digests(X: FloatArray, y: NDArray[Any]) -> NDArray[np.uint64]:
    """[n]; a number for each row with its target, equal for equal ones.

    Those of different rows are equal with a probability of 2**-64 a pair; such rows would keep the
    order of the table.
    """
    if y.dtype.kind not in "iufb":
        texts = y if y.dtype.kind == "S" else y.astype(str)  # not all bytes are text
        y = np.unique(texts, return_inverse=True)[1]
    digest = np.zeros(len(X), np.uint64)
    for column in (*X.T, y):
        cells = np.asarray(column, np.float64) + 0.0  # -0.0 and 0.0 are the same number
        cells = np.where(np.isnan(cells), np.nan, cells)  # and so are all missing cells
        digest = _mixed(digest ^ cells.view(np.uint64))
    return digest


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64, by which every bit of a word changes every other."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
