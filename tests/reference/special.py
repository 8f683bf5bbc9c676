"""Missing cells and categories in plain NumPy: rules, their prior, and where rows go.

A column is (levels, missing): a category of so many levels, or with levels 0 numbers, of which some
are missing if ``missing``. A rule is (column, threshold, set): the set is that of the levels that
go right, or of numbers {0} where missing cells go right. A threshold of +-inf is "is missing".

A missing cell is NaN. In a column whose ``missing`` is IMPUTED it is -1 - u, where u is the number
imputed for it, in [0, 1]; and the set of a rule that takes the cell for this number is {1}.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
Column = tuple[int, int]
Rule = tuple[int, float, frozenset[int]]

IS_MISSING = 0.2
"""Prior probability of the rule "is missing" in a column that has missing cells."""
IMPUTED = 2
TAKEN_AS_IMPUTED = frozenset({1})
AS_IMPUTED = 0.5
"""Prior probability that a cut takes missing cells for their imputed numbers, where there are."""


def is_gone(x: Array) -> NDArray[np.bool_]:
    return np.isnan(x) | (x < 0)


def sides_of(missing: int) -> dict[frozenset[int], float]:
    """What cuts of numbers do with missing cells, and its prior probability."""
    if not missing:
        return {frozenset(): 1.0}
    both = {frozenset(): 0.5, frozenset({0}): 0.5}
    if missing != IMPUTED:
        return both
    shared = {side: (1 - AS_IMPUTED) * share for side, share in both.items()}
    return shared | {TAKEN_AS_IMPUTED: AS_IMPUTED}


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
    gone = is_gone(x)
    if right == TAKEN_AS_IMPUTED:
        x, gone = np.where(gone, -1 - x, x), np.zeros(len(x), bool)
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
            known = np.where(is_gone(x), -1 - x, x)  # imputed numbers part cuts as well
            edge = np.unique(np.concatenate([[0.0, 1.0], known[~np.isnan(known)]]))
            cuts = [((low + high) / 2, high - low) for low, high in pairwise(edge)]
        else:
            cuts = list(zip(*thresholds, strict=True))
        of_cuts = share * (1 - IS_MISSING) if missing else share
        for side, part in sides_of(missing).items():
            yield from (((f, float(t), side), of_cuts * part * w) for t, w in cuts)
        if missing:
            yield (f, -np.inf, frozenset()), share * IS_MISSING / 2
            yield (f, np.inf, frozenset({0})), share * IS_MISSING / 2


def bits(levels: frozenset[int]) -> int:
    return sum(1 << level for level in levels)
