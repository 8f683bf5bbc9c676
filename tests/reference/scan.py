"""What informed moves draw rules from, spelled out: every cut scored, none of it incremental.

A scan looks at the rows of one node and at two sides, each a subtree that is kept or a new leaf.
Between two neighbouring values of a column is a cell (several where splits are soft); its weight is
its width times the likelihood of a tree that cuts there, as if splits were hard. Soft splits: a row
is left of a cut for those of five logistic quantiles, h apart, that put the cut beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from .model import Array, Leaf, Prior, Split, Tree, leaves

QUANTILES = stats.logistic.ppf([0.1, 0.3, 0.5, 0.7, 0.9])
PRIOR_SHARE = 0.05
"""Of the draws of a column, and of a cell, that ignore the likelihood."""
PIECE = 1.5
"""Next to a value, a gap is cut into two pieces of so many h on either side."""
SOFT_GAP, SHARED, SPANNED = 20, 3, 2
"""A column is scanned as soft where its values are on average nearer to each other than SOFT_GAP h,
and it has SHARED rows a value or SPANNED values within h."""
BINS = 512
"""Of a projection (HMC-DFI)."""
LEAN = 10.0
"""HMC-DFI: concentration that a Dirichlet has above the prior's at the column it leans to."""

Path = tuple[int, ...]
"""From the root: 0 for left, 1 for right."""
Rule = tuple[int | tuple[float, ...], float]


def reaches(tree: Tree, path: Path, X: Array) -> Array:
    """Rows that arrive at a node of the tree, as if splits were hard."""
    arrived = np.ones(len(X), dtype=bool)
    for side in path:
        assert isinstance(tree, Split)
        right = project(tree.rule, X) > tree.threshold
        arrived &= right if side else ~right
        tree = tree.right if side else tree.left
    return arrived


def project(rule: int | tuple[float, ...], X: Array) -> Array:
    return X[:, rule] if isinstance(rule, int) else X @ np.asarray(rule)


def leaf_of(tree: Tree, X: Array) -> Array:
    """[rows, leaves]; 1 where a row ends."""
    ends = np.zeros((len(X), len(leaves(tree))))
    if isinstance(tree, Leaf):
        return np.ones_like(ends)
    right = (project(tree.rule, X) > tree.threshold)[:, None]
    return np.hstack([~right * leaf_of(tree.left, X), right * leaf_of(tree.right, X)])


@dataclass(frozen=True)
class Cells:
    """One column of one node."""

    low: Array
    high: Array
    log_weight: Array

    @property
    def log_total(self) -> float:
        return float(logsumexp(self.log_weight))

    def log_density(self, threshold: float) -> float:
        """Of drawing this threshold, given the column."""
        c = np.searchsorted(self.high, threshold, side="right")
        share = np.exp(self.log_weight[c] - self.log_total)
        return float(np.log((1 - PRIOR_SHARE) * share / self.width[c] + PRIOR_SHARE))

    @property
    def width(self) -> Array:
        return self.high - self.low


@dataclass(frozen=True)
class Scan:
    """The data, and what the model makes of them."""

    X: Array
    y: Array
    n_classes: int
    h: float
    prior: Prior
    sigma: float = 1.0
    power: float = 1.0

    # ------------------------------------------------------------------ scores
    def score(self, reach: Array, rows: Array) -> Array:
        """Log-likelihood, up to what no cut changes; ``reach`` is [cells, rows, leaves]."""
        if self.n_classes:
            a = np.broadcast_to(np.asarray(self.prior.classes, float), (self.n_classes,))
            labels = np.eye(self.n_classes)[self.y[rows]]
            counts = np.einsum("crl,rk->clk", reach, labels)
            by_class = (gammaln(counts + a) - gammaln(a)).sum(axis=-1)
            size = gammaln(counts.sum(axis=-1) + a.sum()) - gammaln(a.sum())
            return (by_class - size).sum(axis=-1)
        mean, sd = self.prior.mu
        total = np.einsum("crl,r->cl", reach, self.y[rows] - mean)
        precision = reach.sum(axis=1) / self.sigma**2 + 1 / sd**2  # of a leaf's mean
        fit = (total / self.sigma**2) ** 2 / precision
        return 0.5 * (fit - np.log(precision * sd**2)).sum(axis=-1)

    def sides(self, rows: Array, left: Tree, right: Tree) -> tuple[Array, Array]:
        """[rows, leaves] on the left and on the right, columns of the left leaves first."""
        to_left, to_right = leaf_of(left, self.X[rows]), leaf_of(right, self.X[rows])
        empty_left, empty_right = np.zeros_like(to_left), np.zeros_like(to_right)
        return np.hstack([to_left, empty_right]), np.hstack([empty_left, to_right])

    def start(self, rows: Array, left: Tree = Leaf(), right: Tree = Leaf()) -> float:
        """Score with all rows on the right; of a node that is not split if both are leaves."""
        return float(self.score(self.sides(rows, left, right)[1][None], rows)[0])

    # ------------------------------------------------------------------ cells
    def cells(self, x: Array, soft: bool, rows: Array, left: Tree, right: Tree) -> Cells:
        """Cells of the values ``x`` of the node's rows."""
        edges = np.unique(np.concatenate([[0.0, 1.0], x]))
        if soft:
            edges = np.concatenate([[0.0], *map(self.pieces, edges[:-1], edges[1:])])
        low, high = edges[:-1], edges[1:]
        if soft:
            cut = (low + high)[:, None, None] / 2 + self.h * QUANTILES
            on_left = (x[None, :, None] < cut).mean(axis=2)
        else:
            on_left = (x[None, :] <= low[:, None]).astype(float)
        to_left, to_right = self.sides(rows, left, right)
        reach = on_left[..., None] * to_left + (1 - on_left[..., None]) * to_right
        score = self.power * self.score(reach, rows)
        # a weight below exp(-40) of the largest is that
        score = score.max() + np.maximum(score - score.max(), -40.0)
        prior = stats.beta.logpdf((low + high) / 2, *self.prior.tau)
        return Cells(low, high, score + np.log(high - low) + prior)

    def pieces(self, low: float, high: float) -> Array:
        """Upper edges of the cells between two neighbouring values."""
        edge = PIECE * self.h
        count = int(np.ceil((high - low) / edge))
        if count <= 5:
            return np.linspace(low, high, count + 1)[1:]
        return np.array([low + edge, low + 2 * edge, high - 2 * edge, high - edge, high])

    def column(self, f: int, rows: Array, left: Tree, right: Tree) -> Cells:
        levels = len(np.unique(self.X[:, f]))
        spans, shared = self.h * levels, len(self.X) >= SHARED * levels
        soft = spans * SOFT_GAP > 1 and (shared or spans > SPANNED)
        return self.cells(self.X[rows, f], soft, rows, left, right)

    def projection(self, weights: Array, rows: Array, left: Tree, right: Tree) -> Cells:
        """Cells of the projection on weights, whose values are put into bins."""
        x = self.X[rows] @ weights
        if len(x):
            low, high = x.min(), x.max()
            scale = BINS / (high - low) if high > low else 0.0
            place = np.minimum(((x - low) * scale).astype(int), BINS - 1)
            x = np.clip(low + (place + 0.5) * (high - low) / BINS, 0.0, 1.0)
        return self.cells(x, self.h > 0, rows, left, right)

    # ------------------------------------------------------------------ rules
    def columns(self, rows: Array, left: Tree, right: Tree) -> tuple[list[Cells], Array, float]:
        """Cells and share of every column, and the log of all weight under the prior of rules."""
        p = self.X.shape[1]
        prior = np.ones(p) if self.prior.feature is None else np.asarray(self.prior.feature, float)
        prior = prior / prior.sum()
        cells = [self.column(f, rows, left, right) for f in range(p)]
        log_total = np.log(prior) + [c.log_total for c in cells]
        everything = logsumexp(log_total)
        share = (1 - PRIOR_SHARE) * np.exp(log_total - everything) + PRIOR_SHARE * prior
        return cells, share, float(everything)

    def log_rule(
        self, rows: Array, left: Tree, right: Tree, rule: Rule, by_columns: bool = True
    ) -> float:
        """Log density of a rule; HMC-DFI: weights by the columns' shares, or from their prior."""
        which, threshold = rule
        if isinstance(which, int):
            cells, share, _ = self.columns(rows, left, right)
            return float(np.log(share[which])) + cells[which].log_density(threshold)
        weights = np.asarray(which)
        a = np.full(len(weights), self.prior.weight)
        if by_columns:
            _, share, _ = self.columns(rows, left, right)
            leaning = [
                stats.dirichlet.logpdf(weights, a + LEAN * np.eye(len(a))[f]) for f in range(len(a))
            ]
            log_weights = float(logsumexp(np.log(share) + leaning))
        else:
            log_weights = float(stats.dirichlet.logpdf(weights, a))
        return log_weights + self.projection(weights, rows, left, right).log_density(threshold)

    def log_threshold(
        self, rows: Array, left: Tree, right: Tree, f: int, threshold: float
    ) -> float:
        """Log density of a threshold where the column is given."""
        return self.column(f, rows, left, right).log_density(threshold)

    def log_gain(self, rows: Array) -> float:
        """Log of what splitting a node once does to the likelihood, rules averaged by prior."""
        _, _, everything = self.columns(rows, Leaf(), Leaf())
        return everything - self.power * self.start(rows)
