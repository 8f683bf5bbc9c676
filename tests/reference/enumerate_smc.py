"""The exact posterior under SMC's prior on tiny data, by summing over every tree; plain Python.

A node with no available split stops. Any other splits with probability alpha (1 + depth)^-beta, on
a feature drawn among those that vary in it, at a threshold uniform over its range of values. All
thresholds between two neighbouring values part the rows alike, so a node has finitely many
different splits, with prior masses in proportion to the gaps. With special columns, splits are
those of CGM's prior "gap" (``enumerate_special``).

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

from .enumerate_hard import HardPrior, Leaves
from .enumerate_special import SpecialToy, labels_of_special
from .special import Column

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
    columns: tuple[Column, ...] = ()
    """What each is where some are special: X has NaN where cells are missing, and codes."""
    times: tuple[int, ...] = ()
    """How often each row counts, where some count more than once."""

    @cached_property
    def toy(self) -> SpecialToy:
        columns = self.columns or ((0, False),) * self.X.shape[1]
        return SpecialToy(self.X, self.y, HardPrior("gap"), Leaves(), columns=columns)

    def split_probability(self, depth: int) -> float:
        if depth == 0 and self.min_leaves == 2:
            return 1.0
        return min(self.alpha_split * (1 + depth) ** -self.beta_split, 1 - 1e-6)

    def splits(self, rows: Rows) -> list[tuple[float, Rows, Rows, int]]:
        """Prior mass, left rows, right rows and code of each different split; sums to 1.

        Codes are those of ``enumerate_special``.
        """
        if self.n_rows(rows) <= self.min_size:
            return []
        weights = self.feature_weight or (1.0,) * self.X.shape[1]
        if self.columns:
            return self._special_splits(rows, weights)
        values = {j: sorted({float(self.X[i, j]) for i in rows}) for j in range(len(weights))}
        total = sum(weights[j] for j in values if len(values[j]) > 1)
        found = []
        for j, levels in values.items():
            for low, high in pairwise(levels):
                mass = weights[j] / total * (high - low) / (levels[-1] - levels[0])
                left = frozenset(i for i in rows if self.X[i, j] <= low)
                cell = int(np.searchsorted(self.toy.levels[j], low))
                found.append((mass, left, rows - left, 100 * j + cell + 1))
        return found

    def _special_splits(
        self, rows: Rows, weights: tuple[float, ...]
    ) -> list[tuple[float, Rows, Rows, int]]:
        found = list(self.toy.rules_at(tuple(sorted(rows))))
        able = {f for f, *_ in found}
        total = sum(weights[f] for f in able)
        return [  # there features are alike
            (
                mass * len(able) * weights[f] / total,
                frozenset(left),
                frozenset(right),
                100 * f + what + 1,
            )
            for f, what, mass, left, right in found
        ]

    def at(self, rows: Rows, f: int, tau: float, levels: int) -> tuple[float, Rows]:
        """Prior density of a rule in a node, by threshold where there is one; and its left rows."""
        if not self.columns:
            x = [self.X[i, f] for i in rows]
            of_feature = sum(mass for mass, _, _, code in self.splits(rows) if code // 100 == f)
            left = frozenset(i for i in rows if self.X[i, f] <= tau)
            return of_feature / (max(x) - min(x)), left
        one = np.array([f]), np.array([tau]), np.array([levels], np.uint64)
        ((code, *_),) = labels_of_special(self.toy, np.array([0, 1]), np.array([3]), *one)
        ((mass, left),) = [(m, own) for m, own, _, c in self.splits(rows) if c == code]
        if self.columns[f][0] or math.isinf(tau):
            return mass, left
        edges = np.array([0.0, *self.toy.levels[f], 1.0])
        place = int(np.searchsorted(self.toy.levels[f], tau, side="right"))
        return mass / (edges[place + 1] - edges[place]), left

    def n_rows(self, rows: Rows) -> int:
        return sum(self.times[i] if self.times else 1 for i in rows)

    def leaf(self, rows: Rows) -> float:
        return math.exp(self.log_leaf(rows))

    def log_leaf(self, rows: Rows) -> float:
        """Log marginal likelihood of a leaf: the sum of its one-row-ahead predictions."""
        y = [self.y[i] for i in sorted(rows) for _ in range(self.times[i] if self.times else 1)]
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
    root: dict[int, float] = field(default_factory=dict)
    """By the code of the first split; -1: none."""

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
    root = {-1: (1 - problem.split_probability(0)) * problem.leaf(everything)}
    for prior, left, right, code in problem.splits(everything):
        sides = sum(below(left, 1).values()) * sum(below(right, 1).values())
        root[code] = problem.split_probability(0) * prior * sides
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

_SPECIAL = np.column_stack(
    [[0.0, np.nan, 0.3, 0.3, 1.0, np.nan, 0.8], np.array([0.0, 1, 3, 1, 0, 3, 1])]
)
"""Numbers with two missing cells, and a category of whose four levels no row has one."""

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
    "two classes, special": TinyProblem(
        _SPECIAL,
        np.array([0, 1, 0, 1, 1, 0, 1]),
        n_classes=2,
        class_prior=(0.5, 0.4),
        feature_weight=(0.6, 0.4),
        columns=((0, True), (4, False)),
    ),
    "regression, special": TinyProblem(
        _SPECIAL,
        np.array([-0.9, 0.4, -0.3, 0.6, 0.8, -0.5, 0.2]),
        min_size=2,
        columns=((0, True), (4, False)),
        times=(1, 2, 1, 1, 1, 2, 1),
    ),
}
