"""Exact draws from the priors over trees, in plain Python: for prior predictive checks.

The samplers never draw a whole tree from its prior, so nothing here is compiled or fast.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.tree.kinds import (
    CATEGORY_THRESHOLD,
    IMPUTED,
    IMPUTED_RULE,
    MISSING_BELOW,
    MISSING_RULE,
    WITH_IMPUTED,
    Kinds,
    plain_kinds,
)
from ..utils.arrays import FloatArray, IntArray
from .base import Configuration
from .common import MAX_SPLIT_PROBABILITY

OPEN_ENDS = 1e-15
"""Thresholds keep this distance from 0 and 1, as those of the samplers do."""


@dataclass(frozen=True)
class Rule:
    """A split, and the training rows on each side where its prior depends on them."""

    feature: int
    """Index into the used columns; -1 for weighted sums."""
    threshold: float
    weights: FloatArray | None = None
    sides: tuple[IntArray, IntArray] | None = None
    """Rows that go left and right; None where the prior does not look at them."""
    levels: int = 0
    """What goes right beside larger numbers, see ``core.tree.kinds``."""


@dataclass(frozen=True)
class PriorTree:
    """Shape and rules of a tree, in preorder."""

    size: list[int]
    rules: list[Rule]

    @property
    def n_leaves(self) -> int:
        return len(self.rules) + 1


DrawRule = Callable[[IntArray | None], Rule | None]
"""A rule for a node with these rows; None where there is none that it could have."""


def branching_tree(
    configuration: Configuration[Any],
    draw_rule: DrawRule,
    rows: IntArray | None,
    rng: np.random.Generator,
    *,
    cut: bool = False,
) -> PriorTree | None:
    """A tree whose nodes split with probability alpha_split (1 + depth)^-beta_split.

    A tree outside min_leaves .. max_leaves is None, to be drawn again, as the prior is conditioned
    on these limits. With ``cut`` it stops at max_leaves instead, and its root splits where
    min_leaves is 2: that is how SMC grows trees, level by level.
    """
    alpha, beta = configuration.alpha_split, configuration.beta_split
    assert alpha is not None
    assert beta is not None
    least, most = configuration.method.min_leaves, configuration.max_leaves
    found: list[Rule | None] = []
    first: list[int] = []  # number of the left child; the right one is next to it
    waiting = deque([(0, rows)])
    leaves = 1
    while waiting:
        depth, own = waiting.popleft()
        chance = min(alpha * (1.0 + depth) ** -beta, MAX_SPLIT_PROBABILITY)
        if cut and depth == 0 and least > 1:
            chance = 1.0
        rule = None
        if not (cut and leaves >= most) and rng.random() < chance:
            rule = draw_rule(own)
        found.append(rule)
        first.append(len(found) + len(waiting))
        if rule is not None:
            leaves += 1
            left, right = rule.sides or (None, None)
            waiting += [(depth + 1, left), (depth + 1, right)]
        if leaves > most:
            return None
    return _in_preorder(found, first) if leaves >= least or cut else None


def pinball_tree(
    configuration: Configuration[Any],
    draw_rule: DrawRule,
    rows: IntArray,
    rng: np.random.Generator,
) -> PriorTree | None:
    """A tree of WU's prior: 1 + Poisson leaves, of which 1 + binomial go left at each split.

    None, to be drawn again, outside the limits of its size and where a leaf has no row.
    """
    method = configuration.method
    n_leaves = 1 + int(rng.poisson(method.expected_splits))
    if not method.min_leaves <= n_leaves <= configuration.max_leaves:
        return None
    size: list[int] = []
    rules: list[Rule] = []
    waiting = [(n_leaves, rows)]
    while waiting:
        below, own = waiting.pop()
        size.append(2 * below - 1)
        if below == 1:
            continue
        left = 1 + int(rng.binomial(below - 2, method.left_share))
        rule = draw_rule(own)
        if rule is None or rule.sides is None or not all(len(side) for side in rule.sides):
            return None
        rules.append(rule)
        waiting += [(below - left, rule.sides[1]), (left, rule.sides[0])]
    return PriorTree(size, rules)


def _in_preorder(found: list[Rule | None], first: list[int]) -> PriorTree:
    """From the order in which nodes were made."""
    below = [1] * len(found)
    for node in reversed(range(len(found))):  # children have larger numbers
        if found[node] is not None:
            below[node] = 1 + below[first[node]] + below[first[node] + 1]
    size: list[int] = []
    rules: list[Rule] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        size.append(below[node])
        rule = found[node]
        if rule is not None:
            rules.append(rule)
            waiting += [first[node] + 1, first[node]]
    return PriorTree(size, rules)


# ------------------------------------------------------------------ rules


class RuleDraws:
    """Draws of rules from the prior of a method; ``columns`` [p, n] on the unit interval.

    ``kinds`` says which columns are categories, and which have missing cells in training.
    """

    def __init__(
        self, method: Any, columns: FloatArray, kinds: Kinds | None, rng: np.random.Generator
    ) -> None:
        self.columns, self.rng = columns, rng
        self.rows = np.arange(columns.shape[1])
        self.kinds = plain_kinds(len(columns)) if kinds is None else kinds
        self.tau = getattr(method, "tau_prior", (1.0, 1.0))
        own = getattr(method, "feature_prior", None)
        mass = np.ones(len(columns)) if own is None else np.asarray(own, np.float64)
        self.mass = mass / mass.sum()
        self.min_size = getattr(method, "min_size", 1)
        self.weight_prior = getattr(method, "weight_prior", 1.0)

    def anywhere(self, rows: IntArray | None) -> Rule:
        """Any feature, a threshold on its whole range; with sides where rows are given."""
        feature = int(self.rng.choice(len(self.mass), p=self.mass))
        n_levels = int(self.kinds.levels[feature])
        if n_levels:
            return self._with_sides(
                feature, CATEGORY_THRESHOLD, rows, _set_of(self._parted(n_levels))
            )
        if self.kinds.missing[feature]:
            return self._beside_missing(feature, self._threshold, MISSING_RULE, rows)
        return self._with_sides(feature, self._threshold(), rows)

    def oblique(self, rows: IntArray | None) -> Rule:
        """Dirichlet weights of all features (HMC-DFI)."""
        gammas = np.maximum(self.rng.standard_gamma(self.weight_prior, len(self.mass)), 1e-300)
        return Rule(-1, self._threshold(), gammas / gammas.sum())

    def between_values(self, rows: IntArray | None) -> Rule | None:
        """A feature that varies in the node, uniform from its smallest to its largest value."""
        return self._in_node(rows, self._between)

    def at_values(self, rows: IntArray | None) -> Rule | None:
        """A feature that varies in the node, and one of its values there but the largest.

        The threshold stands midway to the next value of the whole column.
        """
        return self._in_node(rows, self._at)

    def _in_node(
        self, rows: IntArray | None, cut: Callable[[int, FloatArray], float]
    ) -> Rule | None:
        """Of a feature that varies in the node; ``cut`` draws a threshold among its numbers."""
        assert rows is not None
        feature = self._varying(rows)
        if feature is None:
            return None
        x = self.columns[feature, rows]
        n_levels = int(self.kinds.levels[feature])
        if n_levels:  # the levels that are there are parted, and each other one has a fair coin
            here = np.unique(x).astype(np.int64)
            bits = self.rng.integers(2, size=n_levels)
            bits[here] = self._parted(len(here))
            return self._with_sides(feature, CATEGORY_THRESHOLD, rows, _set_of(bits))
        there = x[x > MISSING_BELOW]
        if len(there) == len(x):
            return self._with_sides(feature, cut(feature, there), rows, self._side(feature))
        varies = there.max() > there.min()
        by_missing = MISSING_RULE if varies else 1.0
        return self._beside_missing(feature, lambda: cut(feature, there), by_missing, rows)

    def _between(self, feature: int, there: FloatArray) -> float:
        low, high = float(there.min()), float(there.max())
        return low + (high - low) * float(self.rng.random())

    def _at(self, feature: int, there: FloatArray) -> float:
        x = self.columns[feature]
        value = float(self.rng.choice(np.unique(there)[:-1]))
        above = float(x[x > value].min())
        middle = value + 0.5 * (above - value)
        return middle if middle < above else value

    def _beside_missing(
        self,
        feature: int,
        cut: Callable[[], float],
        by_missing: float,
        rows: IntArray | None,
    ) -> Rule:
        """A cut, or with probability ``by_missing`` "is missing"; the side is a fair coin.

        Where missing cells are imputed, a cut may treat them as imputed.
        """
        side = self._side(feature)
        if self.rng.random() < by_missing:
            return self._with_sides(feature, np.inf if side else -np.inf, rows, side)
        imputed = self.kinds.missing[feature] == WITH_IMPUTED
        if imputed and self.rng.random() < IMPUTED_RULE:
            side = int(IMPUTED)
        return self._with_sides(feature, cut(), rows, side)

    def _side(self, feature: int) -> int:
        """Whether missing cells go right; 0 in a column that has none in training."""
        return int(self.rng.integers(2)) if self.kinds.missing[feature] else 0

    def _parted(self, n: int) -> IntArray:
        """[n]; 1 for what goes right, neither all nor none, all ways alike."""
        while True:
            bits = self.rng.integers(2, size=n)
            if 0 < bits.sum() < n:
                return bits

    def _threshold(self) -> float:
        return min(max(float(self.rng.beta(*self.tau)), OPEN_ENDS), 1 - OPEN_ENDS)

    def _varying(self, rows: IntArray) -> int | None:
        """A feature by its prior, of those that vary; None for nodes that cannot be split."""
        if len(rows) <= self.min_size:
            return None
        here = self.columns[:, rows]
        mass = np.where(here.max(axis=1) > here.min(axis=1), self.mass, 0.0)
        if mass.sum() == 0:
            return None
        return int(self.rng.choice(len(mass), p=mass / mass.sum()))

    def _with_sides(
        self, feature: int, threshold: float, rows: IntArray | None, levels: int = 0
    ) -> Rule:
        if rows is None:
            return Rule(feature, threshold, levels=levels)
        x = self.columns[feature, rows]
        if self.kinds.levels[feature]:
            right = np.array([levels >> int(level) & 1 for level in x], bool)
        else:
            right = np.where(x < MISSING_BELOW, bool(levels), x > threshold)
        return Rule(feature, threshold, sides=(rows[~right], rows[right]), levels=levels)


def _set_of(bits: IntArray) -> int:
    """The set of the levels whose entries are 1."""
    return sum(1 << int(level) for level in np.flatnonzero(bits))
