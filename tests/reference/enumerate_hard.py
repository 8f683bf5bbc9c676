"""The exact posterior over hard trees on tiny data: every tree is listed, in plain Python.

Thresholds matter through the cell they fall into: cell k of a feature lies from its k-th distinct
value (of all rows) up to the next, cell -1 below the first. A tree is labelled by a code for each
node in preorder, -1 for a leaf and ``100 * feature + cell + 1`` for a split. Written from the
definitions of the priors, slow and direct on purpose; nothing is shared with the library.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp

Array = NDArray[np.float64]
Rows = tuple[int, ...]
Label = tuple[int, ...]
LEAF = -1


@dataclass(frozen=True)
class HardPrior:
    """A prior over trees; ``kind`` is "uniform", "gap", "uniform01" or "wu"."""

    kind: str
    alpha_split: float = 0.95
    beta_split: float = 1.0
    min_leaves: int = 1
    max_leaves: int = 4
    expected_splits: float = 1.5
    left_share: float = 0.4
    features: tuple[float, ...] | None = None
    tau: tuple[float, float] = (1.0, 1.0)
    """Beta prior of thresholds; "uniform01" and "wu" only."""


@dataclass(frozen=True)
class Leaves:
    """Conjugate leaves: Dirichlet classes, or normal-inverse-gamma with own or common variance."""

    class_prior: tuple[float, ...] = ()
    variance_prior: tuple[float, float] = (2.0, 1.0)
    mean_prior: tuple[float, float] = (0.0, 0.5)
    common: bool = False


@dataclass(frozen=True)
class Toy:
    X: Array
    """[n, p] on the unit interval"""
    y: NDArray[np.generic]
    prior: HardPrior
    leaves: Leaves
    row_weights: Array | None = None
    """[n]; rows that each row counts for; None: one."""

    def weight_of(self, rows: Rows) -> Array:
        return (np.ones(len(self.X)) if self.row_weights is None else self.row_weights)[list(rows)]

    @property
    def n_classes(self) -> int:
        return len(self.leaves.class_prior)

    @cached_property
    def levels(self) -> list[Array]:
        return [np.unique(x) for x in self.X.T]

    @cached_property
    def weights(self) -> Array:
        p = self.X.shape[1]
        w = np.ones(p) if self.prior.features is None else np.array(self.prior.features)
        return w / w.sum()

    @cached_property
    def trees(self) -> list[tuple[Label, float, tuple[Rows, ...]]]:
        """(label, log prior up to a constant, rows of each leaf) of every tree allowed."""
        out = []
        rows = tuple(range(len(self.X)))
        for label, log_p, parts in subtrees(self, rows, 0, self.prior.max_leaves):
            if len(parts) < self.prior.min_leaves:
                continue
            if self.prior.kind == "wu":
                log_p += stats.poisson(self.prior.expected_splits).logpmf(len(parts) - 1)
            out.append((label, log_p, parts))
        return out

    def rules_at(self, rows: Rows) -> Iterator[tuple[int, int, float, Rows, Rows]]:
        """(feature, cell, prior mass, left, right) of the rules in a node with these rows."""
        return rules_at(self, rows)

    def exact(self, *, likelihood: bool = True) -> dict[Label, float]:
        """Posterior (or prior) probability of every label."""
        logs = np.array(
            [p + (self.log_marginal(parts) if likelihood else 0.0) for _, p, parts in self.trees]
        )
        probabilities = np.exp(logs - logsumexp(logs))
        return {t[0]: float(q) for t, q in zip(self.trees, probabilities, strict=True)}

    @cached_property
    def log_evidence(self) -> float:
        """Under the prior normalised over the trees allowed."""
        logs = np.array([p for _, p, _ in self.trees])
        joint = logs + [self.log_marginal(parts) for _, _, parts in self.trees]
        return float(logsumexp(joint) - logsumexp(logs))

    def log_marginal(self, parts: tuple[Rows, ...]) -> float:
        if self.n_classes:
            return sum(self._log_classes(rows) for rows in parts)
        if not self.leaves.common:
            return sum(self._log_normal([rows]) for rows in parts)
        return self._log_normal(list(parts))

    def _log_classes(self, rows: Rows) -> float:
        """Each label given those before it."""
        counts, total = Counter[int](), 0.0
        alpha = self.leaves.class_prior
        if self.row_weights is not None:
            return self._log_weighted_classes(rows)
        for seen, i in enumerate(rows):
            m = int(self.y[i])
            total += math.log((counts[m] + alpha[m]) / (seen + sum(alpha)))
            counts[m] += 1
        return total

    def _log_weighted_classes(self, rows: Rows) -> float:
        """Ratio of the normalisers of two Dirichlets."""
        prior = np.array(self.leaves.class_prior)
        counts = np.bincount(self.y[list(rows)], self.weight_of(rows), minlength=len(prior))

        def log_beta(alpha: Array) -> float:
            return float(gammaln(alpha).sum() - gammaln(alpha.sum()))

        return log_beta(prior + counts) - log_beta(prior)

    def _log_normal(self, parts: list[Rows]) -> float:
        """One variance for these leaves: a multivariate t."""
        rows = [i for part in parts for i in part]
        if not rows:
            return 0.0
        shape, rate = self.leaves.variance_prior
        mean, count = self.leaves.mean_prior
        member = np.array([[float(i in part) for part in parts] for i in rows])
        if self.row_weights is None:
            scale = rate / shape * (np.eye(len(rows)) + member @ member.T / count)
            y, centre = np.asarray(self.y, float)[rows], np.full(len(rows), mean)
            return float(stats.multivariate_t.logpdf(y, centre, scale, df=2 * shape))
        # given the variance, normals to the power of the weights; then integrate over its log
        weight, y = self.weight_of(tuple(rows)), np.asarray(self.y, float)[rows]
        residual, log_v = y - mean, np.linspace(-14.0, 14.0, 4001)
        v = np.exp(log_v)
        logs = stats.invgamma.logpdf(v, shape, scale=rate) + log_v
        of_unit_variance = np.diag(1 / weight) + member @ member.T / count
        log_det = len(rows) * log_v + np.linalg.slogdet(of_unit_variance)[1]
        square = residual @ np.linalg.solve(of_unit_variance, residual) / v
        logs -= 0.5 * (square + log_det + len(rows) * math.log(2 * math.pi))
        logs -= 0.5 * ((weight - 1).sum() * np.log(2 * math.pi * v) + np.log(weight).sum())
        return float(logsumexp(logs) + math.log(log_v[1] - log_v[0]))

    def means(self, *, likelihood: bool = True) -> dict[str, float]:
        """Posterior means by row: ``fitted i`` is the mean of its leaf, or its P(class 0);
        ``log sd i`` the log of the leaf's noise sd (regression). With the likelihood off, trees and
        the leaves of regression follow their prior; class counts stay those of the data.
        """
        weight = self.exact(likelihood=likelihood)
        fitted, log_sd = np.zeros(len(self.X)), np.zeros(len(self.X))
        for label, _, parts in self.trees:
            used = parts if likelihood or self.n_classes else tuple(() for _ in parts)
            for k, rows in enumerate(parts):
                fitted[list(rows)] += weight[label] * self._fitted(used[k])
                if not self.n_classes:
                    log_sd[list(rows)] += weight[label] * self._log_sd(used, k)
        out = {f"fitted {i}": float(value) for i, value in enumerate(fitted)}
        if not self.n_classes:
            out |= {f"log sd {i}": float(value) for i, value in enumerate(log_sd)}
        return out

    def _fitted(self, rows: Rows) -> float:
        y, w = np.asarray(self.y)[list(rows)], self.weight_of(rows)
        if self.n_classes:
            alpha = self.leaves.class_prior
            return float((w[y == 0].sum() + alpha[0]) / (w.sum() + sum(alpha)))
        mean, count = self.leaves.mean_prior
        return float((count * mean + w @ y) / (count + w.sum()))

    def _log_sd(self, parts: tuple[Rows, ...], k: int) -> float:
        """Mean of half the log of an inverse gamma variance."""
        shape, rate = self.leaves.variance_prior
        mean, count = self.leaves.mean_prior
        for rows in parts if self.leaves.common else [parts[k]]:
            if rows:
                y, w = np.asarray(self.y, float)[list(rows)], self.weight_of(rows)
                n, centre = w.sum(), np.average(y, weights=w)
                shape += n / 2
                rate += w @ (y - centre) ** 2 / 2
                rate += n * count / (n + count) * (centre - mean) ** 2 / 2
        return float((np.log(rate) - digamma(shape)) / 2)


def rules_at(toy: Toy, rows: Rows) -> Iterator[tuple[int, int, float, Rows, Rows]]:
    """(feature, cell, prior mass, left, right) of the rules in a node with these rows."""
    kind = toy.prior.kind
    X = toy.X
    varying = [f for f in range(X.shape[1]) if len({X[i, f] for i in rows}) > 1]
    mass = sum(toy.weights[f] for f in varying)
    for f in range(X.shape[1]):
        levels = toy.levels[f]
        here = sorted({X[i, f] for i in rows})
        edges = [0.0, *levels, 1.0]
        for cell in range(-1, len(levels)):
            low, high = edges[cell + 1], edges[cell + 2]
            left = tuple(i for i in rows if X[i, f] <= (levels[cell] if cell >= 0 else -1.0))
            right = tuple(i for i in rows if i not in left)
            if kind in ("uniform01", "wu"):
                share = toy.weights[f] * float(
                    np.diff(stats.beta(*toy.prior.tau).cdf([low, high]))[0]
                )
                if share > 0 and (kind == "uniform01" or (left and right)):
                    yield f, cell, share, left, right
                continue
            if f not in varying or not left or not right:
                continue
            share = toy.weights[f] / mass
            if kind == "gap":
                yield f, cell, share * (high - low) / (here[-1] - here[0]), left, right
            elif levels[cell] in here:
                yield f, cell, share / (len(here) - 1), left, right


def subtrees(
    toy: Toy, rows: Rows, depth: int, budget: int
) -> Iterator[tuple[Label, float, tuple[Rows, ...]]]:
    """Every subtree over these rows with up to ``budget`` leaves."""
    prior = toy.prior
    rules = list(toy.rules_at(rows))
    split = min(prior.alpha_split * (1 + depth) ** -prior.beta_split, 1 - 1e-6)
    pinball = prior.kind == "wu"
    log_stop = 0.0 if pinball or not rules else math.log(1 - split)
    yield (LEAF,), log_stop, (rows,)
    if budget < 2:
        return
    for f, cell, mass, left, right in rules:
        log_rule = math.log(mass) + (0.0 if pinball else math.log(split))
        for a_label, a_log, a_parts in subtrees(toy, left, depth + 1, budget - 1):
            for b_label, b_log, b_parts in subtrees(toy, right, depth + 1, budget - len(a_parts)):
                log_p = log_rule + a_log + b_log
                if pinball:
                    n = len(a_parts) + len(b_parts) - 2
                    log_p += stats.binom(n, prior.left_share).logpmf(len(a_parts) - 1)
                yield (100 * f + cell + 1, *a_label, *b_label), log_p, a_parts + b_parts


def depth_of(label: Label) -> int:
    """Splits on the longest path."""
    waiting, deepest = [0], 0
    for code in label:
        depth = waiting.pop()
        deepest = max(deepest, depth)
        if code != LEAF:
            waiting += [depth + 1, depth + 1]
    return deepest


def labels_of(
    toy: Toy, node_offset: NDArray[np.int64], size: NDArray[np.int32],
    feature: NDArray[np.int32], threshold: Array,
) -> list[Label]:  # fmt: skip
    """Labels of flat draws, in order."""
    cell = np.empty(len(feature), np.int64)
    for f, levels in enumerate(toy.levels):
        mine = feature == f
        cell[mine] = np.searchsorted(levels, threshold[mine], side="right") - 1
    code = np.full(len(size), LEAF)
    code[size > 1] = 100 * feature + cell + 1
    return [tuple(code[a:b].tolist()) for a, b in itertools.pairwise(node_offset)]
