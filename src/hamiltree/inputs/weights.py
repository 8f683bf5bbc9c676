"""Weights of rows: from ``sample_weight`` and ``class_weight`` to positive numbers, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..utils.arrays import FloatArray

LARGEST = 1e15
"""Sums of larger weights would lose whole rows."""


def weights_of(sample_weight: Any, n_rows: int) -> FloatArray:
    """[n_rows], from what the user gave: None, a number for all rows, or one per row."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
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
        factors = np.array([float(class_weight.get(label, 1.0)) for label in labels.tolist()])
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise ValueError("class_weight must have finite numbers that are not negative")
    weighed = weights.copy()
    weighed[present] *= factors[codes]
    if not (weighed > 0).any():
        raise ValueError("class_weight leaves no row with a positive weight")
    return weighed
