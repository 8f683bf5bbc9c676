"""The prior of one rule as a list of P(right) vectors with weights.

Gauss-Legendre nodes where splits are soft; for hard splits the finitely many 0/1 patterns with
their exact prior measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .model import Array


@dataclass(frozen=True)
class Rules:
    """A discretised prior over one split's rule."""

    psi: Array
    """[rules, rows]; P(right)."""
    weight: Array
    """[rules]; sums to one."""
    feature0: Array
    """[rules]; 1 where feature 0 is used, or the mean weight of feature 0."""
    threshold: Array
    """[rules]; (mean) threshold."""


def make_rules(X: Array, method: str, h: float, order: int) -> Rules:
    """Discretise the prior of a rule: ``order`` Gauss-Legendre nodes, or exact for h = 0."""
    if method == "hmc-df":
        return _soft_df(X, h, order) if h > 0 else _hard_df(X)
    return soft_dfi(X, h, order) if h > 0 else _hard_dfi(X)


def unit_legendre(order: int) -> tuple[Array, Array]:
    node, weight = np.polynomial.legendre.leggauss(order)
    return (node + 1) / 2, weight / 2


def _soft_df(X: Array, h: float, order: int) -> Rules:
    tau, weight = unit_legendre(order)
    psi = np.vstack([expit((X[:, j][None, :] - tau[:, None]) / h) for j in (0, 1)])
    return Rules(psi, np.tile(weight / 2, 2), np.repeat([1.0, 0.0], order), np.tile(tau, 2))


def _hard_df(X: Array) -> Rules:
    """One rule per gap between neighbouring values of a feature, the outer gaps included."""
    rules = []
    for j in (0, 1):
        edge = np.unique(np.concatenate([[0.0, 1.0], X[:, j]]))
        for low, high in pairwise(edge):
            middle = (low + high) / 2
            rules.append((X[:, j] > middle, (high - low) / 2, 1.0 - j, middle))
    return _stack(rules)


def soft_dfi(X: Array, h: float, order: int) -> Rules:
    # A unit of tau moves a projection by 1, a unit of w by x0 - x1 only: fewer nodes will do.
    node_w, weight_w = unit_legendre(order // 2 + 1)
    node_tau, weight_tau = unit_legendre(order)
    w, tau = (grid.ravel() for grid in np.meshgrid(node_w, node_tau, indexing="ij"))
    psi = expit((w[:, None] * X[:, 0] + (1 - w)[:, None] * X[:, 1] - tau[:, None]) / h)
    return Rules(psi, np.outer(weight_w, weight_tau).ravel(), w, tau)


def _hard_dfi(X: Array) -> Rules:
    """Every 0/1 pattern with the exact area of its polygons in the (w, tau) square.

    Projections are linear in w and change their order only where two of them cross. Between two
    crossings a pattern is a gap of the sorted projections, whose length, and whose moments in w
    and tau, are polynomials of degree two at most: Simpson's rule is exact.
    """
    slope = X[:, 0] - X[:, 1]
    cuts = [0.0, 1.0]
    for i, j in combinations(range(len(X)), 2):
        if slope[i] != slope[j]:
            cuts.append((X[j, 1] - X[i, 1]) / (slope[i] - slope[j]))
    cuts = sorted(cut for cut in set(cuts) if 0 <= cut <= 1)
    patterns: dict[bytes, Array] = {}  # pattern -> area and its moments in w and in tau
    for low, high in pairwise(cuts):
        w = np.array([low, (low + high) / 2, high])
        simpson = (high - low) * np.array([1, 4, 1]) / 6
        projection = X[:, 1] + w[:, None] * slope  # [3, rows]
        rows = np.argsort(projection[1])
        ends = np.column_stack([np.zeros(3), projection[:, rows], np.ones(3)])
        for k in range(len(X) + 1):  # tau between the k-th and the next projection
            right = np.zeros(len(X), dtype=np.uint8)
            right[rows[k:]] = 1
            gap, square = np.diff(ends[:, k : k + 2]), np.diff(ends[:, k : k + 2] ** 2)
            moments = simpson @ np.column_stack([gap, w[:, None] * gap, square / 2])
            patterns[right.tobytes()] = patterns.get(right.tobytes(), np.zeros(3)) + moments
    return _stack(
        [
            (np.frombuffer(right, dtype=np.uint8), m[0], m[1] / m[0], m[2] / m[0])
            for right, m in patterns.items()
            if m[0] > 1e-15
        ]
    )


def _stack(rules: list[tuple[NDArray[np.generic], float, float, float]]) -> Rules:
    psi, weight, feature0, threshold = zip(*rules, strict=True)
    columns = (np.array(part, dtype=float) for part in (psi, weight, feature0, threshold))
    return Rules(*columns)
