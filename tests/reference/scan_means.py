"""Scans of regression with soft splits, spelled out: each rule's likelihood, by dense algebra.

Of a rule at a node the likelihood of the whole tree, all leaf means integrated out, is computed at
some thresholds of every column, and interpolated between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import expit

from .model import Array, Leaf, Split, Tree, phi
from .scan import Cells, Path, Scan

HARDLY = 1e-3
"""Rows of which less reaches the node are left out."""
BAND, MERGED = 5.0, 1 / 6
"""In h: how far from a threshold a row is soft, and how near to each other values count as one."""
POINTS_PER_H, FEWEST_POINTS, MOST_POINTS = 0.75, 10, 128
FAR, STEPS, PIECES = 20.0, ((0.3, 1), (2.0, 4)), 16
"""Cells of the intervals between points: by how much the score changes from point to point."""


@dataclass(frozen=True)
class Context:
    """What a scan of a node knows of the tree."""

    reach: Array
    """[rows]; of the node."""
    others: Array
    """[rows, leaves]; phi of the leaves that are not below it."""


@dataclass(frozen=True)
class MeansScan(Scan):
    """A scan that sees the other leaves."""

    def reaching(self, tree: Tree, path: Path, frame: Path | None = None) -> Context:
        """``frame``: only leaves that are not below that node are seen."""
        reach, others = np.ones(len(self.X)), [np.zeros((len(self.X), 0))]
        frame = path if frame is None else frame
        node, above = tree, np.ones(len(self.X))
        for depth, side in enumerate(path):
            assert isinstance(node, Split)
            right = expit((self.X[:, node.rule] - node.threshold) / self.h)
            kept, other = (right, 1 - right) if side else (1 - right, right)
            sibling = node.left if side else node.right
            if depth < len(frame):
                others.append((above * other)[:, None] * phi(sibling, self.X, self.h))
            above = above * kept
            reach = above
            node = node.right if side else node.left
        return Context(reach, np.hstack(others))

    def log_marginal(self, columns: Array) -> float:
        covariance = self.sigma**2 * np.eye(len(self.y))
        covariance += self.prior.mu[1] ** 2 * columns @ columns.T
        return float(stats.multivariate_normal.logpdf(self.y - self.prior.mu[0], None, covariance))

    def score_means(self, right: Array, context: Context, left: Tree, other: Tree) -> float:
        """``right`` [rows]: what of each row a rule sends right; ``other`` is there."""
        reach = np.where(context.reach > HARDLY, context.reach, 0.0)
        on_left = (reach * (1 - right))[:, None] * phi(left, self.X, self.h)
        on_right = (reach * right)[:, None] * phi(other, self.X, self.h)
        changed = np.hstack([context.others, on_left, on_right])
        return self.log_marginal(changed) - self.log_marginal(context.others)

    def start(self, context: Context, left: Tree = Leaf(), right: Tree = Leaf()) -> float:
        return self.score_means(np.ones(len(self.X)), context, left, right)

    def column(
        self, f: int, context: Context, left: Tree, right: Tree, close: bool = False
    ) -> Cells:
        x = self.merged(f, context.reach)
        n = int(np.clip(np.ceil(POINTS_PER_H / self.h), FEWEST_POINTS, MOST_POINTS))
        score = []
        for cut in np.arange(n + 1) / n:
            z = (x - cut) / self.h
            share = np.where(z < -BAND, 0.0, np.where(z >= BAND, 1.0, expit(z)))
            score.append(self.score_means(share, context, left, right))
        low, high, between = [], [], []
        known = np.array(score)
        padded = np.concatenate([[2 * known[0] - known[1]], known, [2 * known[-1] - known[-2]]])
        steep = self.power * np.abs(np.diff(known))
        for g in range(n):
            pieces = PIECES
            for limit, count in reversed(STEPS):
                pieces = count if steep[max(g - 1, 0) : g + 2].max() < limit else pieces
            if self.power * (max(known[g], known[g + 1]) - known.max()) < -FAR:
                pieces = 1
            edges = (g + np.arange(pieces + 1) / pieces) / n
            low.append(edges[:-1])
            high.append(edges[1:])
            between.append(cubic(padded[g : g + 4], (np.arange(pieces) + 0.5) / pieces))
        return self.weighed(np.concatenate(low), np.concatenate(high), np.concatenate(between))

    def merged(self, f: int, reach: Array) -> Array:
        """The column, values near each other at their mean."""
        x = self.X[:, f].copy()
        near = reach > HARDLY
        start, members = -np.inf, np.zeros(len(x), bool)
        for value in np.unique(x[near]):
            if value - start > MERGED * self.h:
                start, members = value, np.zeros(len(x), bool)
            members |= near & (self.X[:, f] == value)
            x[members] = np.average(self.X[members, f], weights=reach[members] ** 2)
        return x


def cubic(p: Array, x: Array) -> Array:
    """The spline of Catmull and Rom between the two middle ones of four values."""
    basis = 0.5 * np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]])
    return np.vander(x, 4, increasing=True) @ (basis @ p)
