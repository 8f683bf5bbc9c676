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
FINE_BINS, WINDOW_CELLS, CLOSE_COLUMNS, TIE = 512, 96, 3, 1e-9
"""Large data: bins and cells of a close look, and how many columns get one. Scores that differ by a
rounding are equal, and the first of them is the best."""
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


def first_best(score: Array) -> int:
    """The first of those that no later one beats by more than a rounding."""
    best = 0
    for k, value in enumerate(score):
        if value > score[best] + TIE:
            best = k
    return best


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
    max_bins: int = 0
    """Of a column; 0 for data whose columns are not binned."""

    def reaching(self, tree: Tree, path: Path, frame: Path | None = None) -> Array:
        """What a scan of a node has to know of the tree: the rows that reach it."""
        return reaches(tree, path, self.X)

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
        low, high = self.edges_of(x, soft)
        if soft:
            cut = (low + high)[:, None, None] / 2 + self.h * QUANTILES
            on_left = (x[None, :, None] < cut).mean(axis=2)
        else:
            on_left = (x[None, :] <= low[:, None]).astype(float)
        return self.weighed(low, high, self.score_of(on_left, rows, left, right))

    def edges_of(self, values: Array, soft: bool) -> tuple[Array, Array]:
        """Low and high ends of the cells between these values, from 0 to 1."""
        edges = np.unique(np.concatenate([[0.0, 1.0], values]))
        if soft:
            edges = np.concatenate([[0.0], *map(self.pieces, edges[:-1], edges[1:])])
        return edges[:-1], edges[1:]

    def score_of(self, on_left: Array, rows: Array, left: Tree, right: Tree) -> Array:
        """Of each cut, from the part of each row that it sends left, [cuts, rows]."""
        to_left, to_right = self.sides(rows, left, right)
        reach = on_left[..., None] * to_left + (1 - on_left[..., None]) * to_right
        return self.score(reach, rows)

    def weighed(self, low: Array, high: Array, score: Array) -> Cells:
        score = self.power * score
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

    # ------------------------------------------------------------------ cells of large data
    def spread(self, cut: Array, soft: bool, begin: Array, end: Array) -> Array:
        """[cuts, rows]: part of each row before a cut, if it is spread between two ends."""
        at = cut[:, None] + self.h * QUANTILES if soft else cut[:, None]
        at, size = at[:, None, :], (end - begin)[None, :, None]
        whole = np.where(size > 0, size, 1.0)
        part = np.where(size > 0, (at - begin[None, :, None]) / whole, at > end[None, :, None])
        return np.clip(part, 0.0, 1.0).mean(axis=2)

    def binned(
        self,
        x: Array,
        ends: Array,
        place: Array,
        soft: bool,
        close: bool,
        single: bool,
        start: float,
        rows: Array,
        left: Tree,
        right: Tree,
    ) -> Cells:
        """Cells between the ends of bins, where x are in their places among the bins.

        ``single``: a bin holds one value. ``start`` is where the first of the others begins.
        """
        begins = ends if single else np.concatenate([[start], ends[:-1]])
        low, high = self.edges_of(ends, soft)
        on_left = self.spread((low + high) / 2, soft, begins[place], ends[place])
        score = self.score_of(on_left, rows, left, right)
        if single or not close:
            return self.weighed(low, high, score)
        best = first_best(score)
        first, last = max(best - 1, 0), min(best + 1, len(low) - 1)
        window = np.linspace(low[first], high[last], WINDOW_CELLS + 1)
        reach = self.h * QUANTILES[-1] if soft else 0.0
        from_bin = min(int(np.sum(ends <= window[0] - reach)), len(ends) - 1)
        to_bin = min(int(np.sum(ends < window[-1] + reach)), len(ends) - 1)
        a, b = begins[from_bin], ends[to_bin]
        number = np.clip(((x - a) * (FINE_BINS / (b - a))).astype(int), 0, FINE_BINS - 1)
        fine = np.linspace(a, b, FINE_BINS + 1)
        # rows before these bins are left of every cut in the window, those behind them right
        begin = np.select([place < from_bin, place > to_bin], [-np.inf, np.inf], fine[number])
        finite = np.isfinite(begin)
        closely = self.spread(
            (window[1:] + window[:-1]) / 2,
            soft,
            np.where(finite, begin, 0.0),
            np.where(finite, fine[number + 1], 1.0),
        )
        closely = np.where(finite, closely, (begin < 0).astype(float))
        return self.weighed(
            np.concatenate([low[:first], window[:-1], low[last + 1 :]]),
            np.concatenate([high[:first], window[1:], high[last + 1 :]]),
            np.concatenate(
                [score[:first], self.score_of(closely, rows, left, right), score[last + 1 :]]
            ),
        )

    def binned_column(self, f: int, soft: bool, close: bool, rows: Array, *sides: Tree) -> Cells:
        whole = np.sort(self.X[:, f])
        ends = np.unique(whole)
        single = len(ends) <= self.max_bins
        if not single:
            share = np.arange(1, self.max_bins + 1) / self.max_bins
            ends = np.unique(whole[np.ceil(share * len(whole)).astype(int) - 1])
        x = self.X[rows, f]
        place = np.array([np.sum(ends < value) for value in x], dtype=int)
        return self.binned(x, ends, place, soft, close, single, 0.0, rows, *sides)

    # ------------------------------------------------------------------ columns
    def column(self, f: int, rows: Array, left: Tree, right: Tree, close: bool = False) -> Cells:
        levels = len(np.unique(self.X[:, f]))
        spans, shared = self.h * levels, len(self.X) >= SHARED * levels
        soft = spans * SOFT_GAP > 1 and (shared or spans > SPANNED)
        if self.max_bins:
            return self.binned_column(f, soft, close, rows, left, right)
        return self.cells(self.X[rows, f], soft, rows, left, right)

    def projection(self, weights: Array, rows: Array, left: Tree, right: Tree) -> Cells:
        """Cells of the projection on weights, whose values are put into bins."""
        x = self.X[rows] @ weights
        if self.max_bins:
            low, high = (x.min(), x.max()) if len(x) and x.max() > x.min() else (0.0, 1.0)
            scale = self.max_bins / (high - low)
            place = np.minimum(((x - low) * scale).astype(int), self.max_bins - 1)
            ends = np.linspace(low, high, self.max_bins + 1)[1:]
            return self.binned(x, ends, place, self.h > 0, True, False, low, rows, left, right)
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
        if self.max_bins:
            total = np.array([c.log_total for c in cells])
            for _ in range(min(CLOSE_COLUMNS, p)):
                best = first_best(total)
                total[best] = -np.inf
                cells[best] = self.column(best, rows, left, right, close=True)
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
        return self.column(f, rows, left, right, close=True).log_density(threshold)

    def log_gain(self, rows: Array) -> float:
        """Log of what splitting a node once does to the likelihood, rules averaged by prior."""
        _, _, everything = self.columns(rows, Leaf(), Leaf())
        return everything - self.power * self.start(rows)
