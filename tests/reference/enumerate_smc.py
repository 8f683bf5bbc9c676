"""The exact posterior under SMC's prior on tiny data, by summing over every tree; plain Python.

A node with no available split stops. Any other splits with probability alpha (1 + depth)^-beta, on
a feature drawn among those that vary in it, at a threshold uniform over its range of values. All
thresholds between two neighbouring values part the rows alike, so a node has finitely many
different splits, with prior masses in proportion to the gaps.

``tree_sums`` and ``log_evidence`` recurse over the subtrees, each independent of the others.
``queue_sums`` grows whole trees from a queue, oldest leaf first, as a limit on the leaves needs; it
is slow.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

Rows = frozenset[int]
Partition = frozenset[Rows]


@dataclass(frozen=True, eq=False)
class TinyProblem:
    """Data on the unit interval, and the prior."""

    X: NDArray[np.float64]
    """[rows, features]"""
    y: NDArray[np.generic]
    n_classes: int = 0
    alpha_split: float = 0.95
    beta_split: float = 0.5
    min_leaves: int = 1
    max_leaves: int = 10**9
    min_size: int = 1
    feature_weight: tuple[float, ...] | None = None
    class_prior: tuple[float, ...] = ()
    variance_prior: tuple[float, float] = (1.5, 0.5)
    mean_prior: tuple[float, float] = (0.0, 0.1)
    power: float = 1.0

    def split_probability(self, depth: int) -> float:
        if depth == 0 and self.min_leaves == 2:
            return 1.0
        return min(self.alpha_split * (1 + depth) ** -self.beta_split, 1 - 1e-6)

    def splits(self, rows: Rows) -> list[tuple[float, Rows, Rows, int]]:
        """Prior mass, left rows, right rows and feature of each different split; sums to 1."""
        if len(rows) <= self.min_size:
            return []
        weights = self.feature_weight or (1.0,) * self.X.shape[1]
        values = {j: sorted({float(self.X[i, j]) for i in rows}) for j in range(len(weights))}
        total = sum(weights[j] for j in values if len(values[j]) > 1)
        found = []
        for j, levels in values.items():
            for low, high in pairwise(levels):
                mass = weights[j] / total * (high - low) / (levels[-1] - levels[0])
                left = frozenset(i for i in rows if self.X[i, j] <= low)
                found.append((mass, left, rows - left, j))
        return found

    def leaf(self, rows: Rows) -> float:
        return math.exp(self.log_leaf(rows))

    def log_leaf(self, rows: Rows) -> float:
        """Log marginal likelihood of a leaf: the sum of its one-row-ahead predictions."""
        y = [self.y[i] for i in sorted(rows)]
        ahead = self._classes_ahead(y) if self.n_classes else self._values_ahead(y)
        return self.power * float(np.sum(ahead))

    def _classes_ahead(self, y: list[int]) -> list[float]:
        seen = list(self.class_prior)
        logs = []
        for new in y:
            logs.append(math.log(seen[new] / sum(seen)))
            seen[new] += 1
        return logs

    def _values_ahead(self, y: list[float]) -> NDArray[np.float64]:
        """Densities of t, with the normal-inverse-gamma parameters updated one row at a time."""
        (shape, rate), (mean, count) = self.variance_prior, self.mean_prior
        parameters = []
        for new in y:
            parameters.append((2 * shape, mean, math.sqrt(rate * (count + 1) / (shape * count))))
            rate += 0.5 * count / (count + 1) * (new - mean) ** 2
            mean, count, shape = (count * mean + new) / (count + 1), count + 1, shape + 0.5
        freedom, location, scale = np.array(parameters).T
        return np.asarray(stats.t.logpdf(y, freedom, location, scale))


@dataclass(frozen=True)
class Exact:
    """Masses p(tree, y) added up by what the tree looks like."""

    partitions: dict[Partition, float]
    """By the rows of its leaves."""
    leaves: dict[int, float]
    """By the number of its leaves."""
    root: dict[tuple[int, int], float] = field(default_factory=dict)
    """By the feature of the first split and the number of rows that go left; (-1, 0): none."""

    @cached_property
    def evidence(self) -> float:
        return math.fsum(self.partitions.values())

    @property
    def log_evidence(self) -> float:
        return math.log(self.evidence)

    @property
    def mean_leaves(self) -> float:
        return sum(k * mass for k, mass in self.leaves.items()) / self.evidence


def tree_sums(problem: TinyProblem) -> Exact:
    """All trees, subtree by subtree; no limit on the leaves."""

    @cache
    def below(rows: Rows, depth: int) -> dict[Partition, float]:
        mass: dict[Partition, float] = defaultdict(float)
        splits = problem.splits(rows)
        p = problem.split_probability(depth) if splits else 0.0
        mass[frozenset([rows])] = (1 - p) * problem.leaf(rows)
        for prior, left, right, _ in splits:
            for a, left_mass in below(left, depth + 1).items():
                for b, right_mass in below(right, depth + 1).items():
                    mass[a | b] += p * prior * left_mass * right_mass
        return mass

    everything = frozenset(range(len(problem.y)))
    partitions = {part: m for part, m in below(everything, 0).items() if m > 0}
    root = {(-1, 0): (1 - problem.split_probability(0)) * problem.leaf(everything)}
    for prior, left, right, feature in problem.splits(everything):
        sides = sum(below(left, 1).values()) * sum(below(right, 1).values())
        key = (feature, len(left))
        root[key] = root.get(key, 0.0) + problem.split_probability(0) * prior * sides
    return Exact(partitions, _by_leaves(partitions), root)


def log_evidence(problem: TinyProblem) -> float:
    """The evidence alone, which needs no list of trees: for many rows on a coarse grid."""
    log_leaf, splits_of = cache(problem.log_leaf), cache(problem.splits)

    @cache
    def below(rows: Rows, depth: int) -> float:
        splits = splits_of(rows)
        stop = log_leaf(rows)
        if not splits:
            return stop
        p = problem.split_probability(depth)
        terms = [
            math.log(p * prior) + below(left, depth + 1) + below(right, depth + 1)
            for prior, left, right, _ in splits
        ]
        return float(logsumexp([*terms, stop + math.log1p(-p)]))

    return below(frozenset(range(len(problem.y))), 0)


def queue_sums(problem: TinyProblem) -> Exact:
    """All trees, grown as SMC grows them, so that ``max_leaves`` stops them where it does."""

    def grow(
        queue: tuple[tuple[Rows, int], ...], done: tuple[Rows, ...], mass: float
    ) -> Iterator[tuple[Partition, float]]:
        if not queue:
            yield frozenset(done), mass * math.prod(problem.leaf(rows) for rows in done)
            return
        (rows, depth), *rest = queue
        full = len(queue) + len(done) >= problem.max_leaves
        splits = [] if full else problem.splits(rows)
        p = problem.split_probability(depth) if splits else 0.0
        if p < 1.0:
            yield from grow(tuple(rest), (*done, rows), mass * (1 - p))
        for prior, left, right, _ in splits:
            children = ((left, depth + 1), (right, depth + 1))
            yield from grow((*rest, *children), done, mass * p * prior)

    partitions: dict[Partition, float] = defaultdict(float)
    for partition, mass in grow(((frozenset(range(len(problem.y))), 0),), (), 1.0):
        partitions[partition] += mass
    return Exact(dict(partitions), _by_leaves(partitions))


def _by_leaves(partitions: dict[Partition, float]) -> dict[int, float]:
    leaves: dict[int, float] = defaultdict(float)
    for partition, mass in partitions.items():
        leaves[len(partition)] += mass
    return dict(leaves)


# ------------------------------------------------------------------ problems to sum over


def grid_problem(rng: np.random.Generator, n_classes: int, n_rows: int = 60) -> TinyProblem:
    """Rows on a 5 x 5 grid, the target related to them weakly."""
    X = rng.integers(0, 5, size=(n_rows, 2)) / 4
    signal = X[:, 0] + 0.5 * rng.standard_normal(n_rows)
    if n_classes:
        y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
        return TinyProblem(X, y, n_classes, class_prior=(1.0,) * n_classes, beta_split=1.0)
    return TinyProblem(X, (signal - signal.mean()) / signal.std(), beta_split=1.0)


_X = np.array([[0.0, 0.3], [0.1, 1.0], [0.4, 0.3], [0.4, 0.0], [0.7, 1.0], [1.0, 0.6], [1.0, 0.0]])
"""Ties in both columns, gaps of different widths, no two rows alike."""

TINY: dict[str, TinyProblem] = {
    "two classes": TinyProblem(
        _X, np.array([0, 0, 0, 1, 1, 1, 1]), n_classes=2, class_prior=(0.5, 0.5)
    ),
    "three classes": TinyProblem(
        _X,
        np.array([0, 0, 2, 1, 1, 2, 2]),
        n_classes=3,
        class_prior=(0.3, 0.2, 0.4),
        feature_weight=(0.75, 0.25),
        min_size=2,
    ),
    "regression": TinyProblem(_X, np.array([-1.3, -0.9, -0.7, 0.8, 0.6, 1.2, 0.3])),
}
