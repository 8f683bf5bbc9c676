"""Which trees to show of thousands: the best, a typical one, the likeliest shapes.

And how certain a split is: the posterior share of the trees that have one like it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.forest import Forest
from ..core.predict import tree_predictions
from ..core.tree.kinds import IMPUTED, MISSING_BELOW
from ..utils.arrays import FloatArray, IntArray, evenly
from ..utils.notebook import preformatted
from .draws import Draws, places, take

if TYPE_CHECKING:
    from .posterior import Posterior
    from .tree import Tree

NEARBY = 0.05
"""Two splits are alike if at most this share of the training rows lies between them."""
ROWS_COMPARED = 256
"""Training rows, evenly spaced, on which predictions and weighted splits are compared."""
RARER = 0.1
"""A chain has a split unless it is rarer there than this share of how common it is in all."""
OBLIQUE_DRAWS = 2000
"""Draws, evenly spaced, among which splits like a weighted one (HMC-DFI) are counted."""


@dataclass(frozen=True, repr=False)
class Shape:
    """One shape of tree: its topology and the feature of each split (HMC-DFI: topology alone)."""

    probability: float
    """Posterior share of the trees of this shape."""
    n_draws: int
    tree: Tree
    """The tree of highest posterior of this shape."""
    text: str
    """Features, each with its subtrees for yes and no: ``age (leaf, height (leaf, leaf))``."""

    def __repr__(self) -> str:
        return f"<Shape of {self.probability:.1%} of the trees: {self.text}>"

    def _repr_html_(self) -> str:
        return f"<div>{preformatted(repr(self)[1:-1])}{self.tree._repr_html_()}</div>"


class SplitCensus:
    """The splits of all draws, to count the trees that have one like a given split.

    Splits on one feature are alike if at most 5% of the training rows have values between their
    thresholds; thus thresholds within one gap of the data are the same split. Where the column has
    missing cells, they must go to the same side; if only one of the two splits imputes them, they
    count like values between the thresholds. Sets of levels of a category are alike if at most 5%
    of the rows have levels that only one of the two sends right. Weighted splits (HMC-DFI) are
    alike if they send at most 5% of the rows to different sides, judged on 256 rows and 2,000
    draws, both evenly spaced.
    """

    def __init__(self, draws: Draws, columns: FloatArray) -> None:
        weights = draws.weights_of_draws.ravel()
        chain = np.repeat(np.arange(draws.n_chains), draws.n_draws)
        self.n_chains = draws.n_chains
        self._oblique = draws.split_weights.shape[1] > 0
        if self._oblique:
            chosen = evenly(weights.size, OBLIQUE_DRAWS)
            draws, weights, chain = take(draws, chosen), weights[chosen], chain[chosen]
            self._columns = columns[:, evenly(columns.shape[1], ROWS_COMPARED)]
            self._sides = self._side(draws.split_weights, draws.threshold)
        else:
            self._columns = np.sort(columns, axis=1)
            self._feature = draws.feature
            self._ranks = self._rank(draws.feature, draws.threshold)
            self._kinds, self._levels = draws.kinds, draws.levels
        self._weights = weights / weights.sum()
        # within its chain, whatever the chain counts
        own = np.maximum(np.bincount(chain, weights=weights, minlength=self.n_chains), 1e-300)
        even = 1 / np.bincount(chain, minlength=self.n_chains)
        self._chain = chain
        self._in_chain = np.where(own[chain] > 1e-300, weights / own[chain], even[chain])
        self._tree_of_split = np.repeat(np.arange(weights.size), draws.n_leaves.ravel() - 1)

    def certainty(self, tree: Tree) -> FloatArray:
        """Posterior share of the trees that have a split like it, for each split of ``tree``."""
        shares = [float(self._weights[has].sum()) for has in self._having(tree)]
        return np.minimum(np.array(shares, np.float64), 1.0)

    def by_chain(self, tree: Tree) -> FloatArray:
        """The same within each chain, [splits, chain]."""
        shares = [
            np.bincount(self._chain[has], self._in_chain[has], self.n_chains)
            for has in self._having(tree)
        ]
        by_chain: FloatArray = np.array(shares, np.float64).reshape(-1, self.n_chains)
        return np.minimum(by_chain, 1.0)

    def chains(self, tree: Tree) -> IntArray:
        """In how many chains each split of ``tree`` occurs; see ``Posterior.split_chains``."""
        shares = self.by_chain(tree)
        common = shares >= RARER * shares.mean(axis=1, keepdims=True)
        counts: IntArray = np.sum(common & (shares > 0), axis=1)
        return counts

    def _having(self, tree: Tree) -> Iterator[NDArray[np.bool_]]:
        """For each split of ``tree``, which of the trees have one like it."""
        alike = self._alike_oblique(tree) if self._oblique else self._alike(tree)
        for matches in alike:
            has = np.zeros(self._weights.size, dtype=bool)
            has[self._tree_of_split[matches]] = True
            yield has

    def _alike(self, tree: Tree) -> Iterator[NDArray[np.bool_]]:
        ranks = self._rank(tree.feature, tree.threshold)
        for split, (feature, rank) in enumerate(zip(tree.feature, ranks, strict=True)):
            alike = self._feature == feature
            kind = 0 if self._kinds is None else self._kinds[feature]
            apart = np.abs(self._ranks - rank)
            if kind != 0 and self._levels is not None and tree.levels is not None:
                alike &= self._same_levels(feature, kind, tree.levels[split])
                if kind < 0:
                    apart += self._missing(feature) * (self._levels != tree.levels[split])
            if kind <= 0:
                alike &= apart <= NEARBY + 1e-12
            yield alike

    def _same_levels(self, feature: int, kind: int, levels: np.uint64) -> NDArray[np.bool_]:
        """Of each split, taken as one on this column, whether it sends the same levels right.

        Missing cells of a column of numbers must not go to opposite sides.
        """
        assert self._levels is not None
        if kind < 0:
            imputed = (self._levels == IMPUTED) | (levels == IMPUTED)
            same: NDArray[np.bool_] = (self._levels == levels) | imputed
            return same
        column = self._columns[feature]
        share = np.array([np.mean(column == code) for code in range(kind)])
        sets, place = np.unique(self._levels, return_inverse=True)
        bits = (sets ^ levels)[:, None] >> np.arange(kind, dtype=np.uint64) & np.uint64(1)
        near: NDArray[np.bool_] = bits @ share <= NEARBY + 1e-12
        return near[place]

    def _missing(self, feature: int) -> float:
        """Share of the training rows whose cell is missing."""
        return float(np.mean(self._columns[feature] < MISSING_BELOW))

    def _alike_oblique(self, tree: Tree) -> Iterator[NDArray[np.bool_]]:
        for side in self._side(tree.weights, tree.threshold):
            yield np.mean(self._sides != side, axis=1) <= NEARBY + 1e-12

    def _rank(self, feature: NDArray[np.int32], threshold: FloatArray) -> FloatArray:
        """Share of the training rows on the yes side of each threshold, over all rows."""
        ranks = np.empty(len(threshold))
        for column, values in enumerate(self._columns):
            here = feature == column
            ranks[here] = np.searchsorted(values, threshold[here], side="right") / len(values)
        return ranks

    def _side(self, weights: FloatArray, threshold: FloatArray) -> NDArray[np.bool_]:
        """[splits, rows]: whether the row goes to no."""
        sides: NDArray[np.bool_] = weights @ self._columns > threshold[:, None]
        return sides


def split_chains(posterior: Posterior, tree: Tree) -> IntArray:
    """In how many chains each split of a tree occurs, [splits], in preorder.

    A chain counts unless such a split (see ``Tree.certainty``) is ten times rarer in its trees
    than on average over the chains. If not all chains count, they disagree about the split.

    Raises
    ------
    ValueError
        If the training data were left out of the posterior.
    """
    posterior.data("split_chains")
    census = posterior._census
    assert census is not None
    return census.chains(tree)


def best_draw(posterior: Posterior) -> int:
    """Number of the draw of highest log posterior; the first of several."""
    return int(posterior.log_posterior.argmax())


def representative_draw(posterior: Posterior, values: FloatArray, columns: FloatArray) -> int:
    """Number of the draw that predicts the rows most like all others do.

    Over all draws s, the weighted mean of the squared distance between the predictions of t and s
    is the squared distance of t from the posterior mean, plus a constant: the draw nearest to the
    mean is the one sought, and no pairs need be compared.
    """
    rows = np.ascontiguousarray(columns[:, evenly(columns.shape[1], ROWS_COMPARED)])
    predictions = tree_predictions(posterior.draws.forest, values, rows)
    weights = posterior.weights.ravel()
    mean = np.tensordot(weights, predictions, axes=1)
    predictions -= mean
    distance = np.einsum("trk,trk->t", predictions, predictions)
    distance[weights == 0] = np.inf
    return int(distance.argmin())


def shares_of_splits(draws: Draws, columns: IntArray) -> FloatArray:
    """Share of each tree's splits that are on these used columns, [tree, column]; HMC-DF.

    0 for trees without splits.
    """
    n_splits = draws.n_leaves.ravel() - 1
    tree_of_split = np.repeat(np.arange(n_splits.size), n_splits)
    counts = [
        np.bincount(tree_of_split[draws.feature == column], minlength=n_splits.size)
        for column in columns
    ]
    shares: FloatArray = np.stack(counts, axis=1) / np.maximum(n_splits, 1)[:, None]
    return shares


def feature_inclusion(posterior: Posterior) -> FloatArray:
    """Share of the splits that use each input column, [column]; sums to 1.

    The share is taken tree by tree and averaged with the weights of the draws over the trees
    that split at all; it is 0 for all columns if none does. Constant columns get 0.

    For HMC-DFI it is the mean weight of a column in the rules. These weights are barely more
    concentrated than their prior: do not interpret them as importance.
    """
    used = inclusion_of_used(posterior)
    inclusion = np.zeros(len(posterior.preprocessing.feature_names))
    np.add.at(inclusion, posterior.preprocessing.used, used)
    return inclusion


def inclusion_of_used(posterior: Posterior) -> FloatArray:
    """The same by what the trees split on, [p]: of methods of numbers each level of a category."""
    d, p = posterior.draws, len(posterior.preprocessing.used)
    n_splits = d.n_leaves.ravel() - 1
    # Every split of a tree counts alike, and every tree counts by its weight alone.
    per_split = np.repeat(posterior.weights.ravel() / np.maximum(n_splits, 1), n_splits)
    if d.split_weights.shape[1]:
        used: FloatArray = per_split @ d.split_weights
    else:
        used = np.bincount(d.feature, weights=per_split, minlength=p).astype(np.float64)
    total = used.sum()
    return used / total if total > 0 else np.zeros(p)


def co_leaf(forest: Forest, weights: FloatArray, columns: FloatArray) -> FloatArray:
    """Probability that two rows end in the same leaf of a tree, over trees, [row, row].

    Each row is sent down a soft tree on its own, so that a row in doubt is with itself in one leaf
    with probability sum_k phi_k^2, below 1.
    """
    n_leaves = (np.diff(forest.node_offset) + 1) // 2
    number = np.arange(n_leaves.sum()) - np.repeat(np.cumsum(n_leaves) - n_leaves, n_leaves)
    which = np.zeros((len(number), n_leaves.max()))
    which[np.arange(len(number)), number] = 1.0
    phi = tree_predictions(forest, which, columns)  # [tree, row, leaf]
    phi *= np.sqrt(weights)[:, None, None]
    flat = np.moveaxis(phi, 1, 0).reshape(columns.shape[1], -1)
    together: FloatArray = flat @ flat.T
    return together


def likeliest_shapes(posterior: Posterior, n: int) -> list[tuple[float, IntArray]]:
    """The ``n`` likeliest shapes as (probability, numbers of their draws), likeliest first."""
    draws, weights = posterior.draws, posterior.weights.ravel()
    members: dict[bytes, list[int]] = {}
    for t in range(weights.size):
        nodes, splits, _ = places(draws, t)
        key = draws.size[nodes].tobytes() + draws.feature[splits].tobytes()
        members.setdefault(key, []).append(t)
    shapes = [(float(weights[numbers].sum()), np.array(numbers)) for numbers in members.values()]
    return sorted(shapes, key=lambda shape: -shape[0])[:n]


def shape_text(tree: Tree) -> str:
    """``age (leaf, height (leaf, leaf))``: features, then yes and no; "split" for HMC-DFI."""
    names = tree.preprocessing.used_names

    def text(node: int, split: int) -> tuple[str, int]:
        """A subtree, and the number of the split that comes after it."""
        if tree.size[node] == 1:
            return "leaf", split
        feature = tree.feature[split]
        yes, after = text(node + 1, split + 1)
        no, after = text(node + 1 + int(tree.size[node + 1]), after)
        return f"{names[feature] if feature >= 0 else 'split'} ({yes}, {no})", after

    return text(0, 0)[0]
