"""Missing cells and categories in plain NumPy: rules, their prior, and where rows go.

A column is (levels, missing): a category of so many levels, or with levels 0 numbers, some of which
are missing (NaN) if ``missing``. A rule is (column, threshold, set): the set is that of the levels
that go right, or of numbers {0} where missing cells go right. A threshold of +-inf is "is missing".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
Column = tuple[int, bool]
Rule = tuple[int, float, frozenset[int]]

IS_MISSING = 0.2
"""Prior probability of the rule "is missing" in a column that has missing cells."""


def subsets(levels: list[int]) -> list[frozenset[int]]:
    """All sets that are neither empty nor full."""
    return [frozenset(s) for k in range(1, len(levels)) for s in combinations(levels, k)]


def psi_of(rule: Rule, X: Array, columns: list[Column], h: float) -> Array:
    """P(right) of each row of X [rows, columns]."""
    f, threshold, right = rule
    x = X[:, f]
    levels, _ = columns[f]
    if levels:
        return np.array([float(int(v) in right) for v in x])
    gone = np.isnan(x)
    if np.isinf(threshold):
        there = np.full(len(x), float(threshold < 0))
    elif h > 0:
        there = expit((x - threshold) / h)
    else:
        there = (x > threshold).astype(float)
    return np.where(gone, float(0 in right), there)


def rules_of(
    X: Array, columns: list[Column], thresholds: tuple[Array, Array] | None
) -> Iterator[tuple[Rule, float]]:
    """Every rule of the prior on the unit interval with its mass; columns alike.

    ``thresholds``: nodes and weights of a quadrature; None for the gaps between values, which hard
    splits cannot tell apart.
    """
    share = 1 / len(columns)
    for f, (levels, missing) in enumerate(columns):
        if levels:
            sets = subsets(list(range(levels)))
            yield from (((f, 0.5, s), share / len(sets)) for s in sets)
            continue
        x = X[:, f]
        if thresholds is None:
            edge = np.unique(np.concatenate([[0.0, 1.0], x[~np.isnan(x)]]))
            cuts = [((low + high) / 2, high - low) for low, high in pairwise(edge)]
        else:
            cuts = list(zip(*thresholds, strict=True))
        if not missing:
            yield from (((f, float(t), frozenset()), share * w) for t, w in cuts)
            continue
        for side in (frozenset(), frozenset({0})):
            part = share / 2
            yield from (((f, float(t), side), part * (1 - IS_MISSING) * w) for t, w in cuts)
            yield (f, np.inf if side else -np.inf, side), part * IS_MISSING


def bits(levels: frozenset[int]) -> int:
    return sum(1 << level for level in levels)
