"""One sampled tree: rules and leaves in the user's units, and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.forest import Forest
from ..core.predict import prediction_moments, tree_predictions
from ..inputs.preprocess import Preprocessing
from ..methods.base import Method
from ..utils.arrays import FloatArray, IntArray
from ..utils.notebook import preformatted
from .draws import TrainingData, special_arrays
from .leaf_posterior import MeanPosterior, class_intervals, mean_posterior, soft_rows
from .representative_tree import SplitCensus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

COVERAGE = 0.9
"""Of the credible intervals of the leaves, as of ``predict_interval``."""


def leaf_values(leaf: FloatArray, method: Method, n_classes: int) -> FloatArray:
    """What a leaf predicts, [leaves, K].

    Classification (``n_classes`` > 0): posterior mean class probabilities, (counts + alpha) over
    their sum. Regression: the mean, in the model's units.
    """
    if n_classes == 0:
        return np.ascontiguousarray(leaf[:, :1])
    parameters = leaf + np.asarray(method.class_concentration(n_classes))
    values: FloatArray = parameters / parameters.sum(axis=1, keepdims=True)
    return values


@dataclass(frozen=True, repr=False, eq=False)
class Tree:
    """A tree with its rules in the user's units and feature names.

    A row goes left, "yes", when ``x <= threshold``. With soft splits it goes right with
    probability ``1 / (1 + exp(-(x - threshold) / h))``.
    """

    size: NDArray[np.int32]
    """[nodes] in preorder; nodes in the subtree, 1 for a leaf."""
    feature: NDArray[np.int32]
    """[splits]; index into the used columns, -1 for HMC-DFI."""
    threshold: FloatArray
    """[splits]; on the unit-interval scale."""
    weights: FloatArray
    """[splits, p] for HMC-DFI, [splits, 0] otherwise."""
    leaf: FloatArray
    """[leaves, K]; class counts, or mean and, with K = 2, noise sd in the model's units."""
    h: FloatArray
    """[p]; softness on the unit-interval scale."""
    preprocessing: Preprocessing
    method: Method
    sigma: float = float("nan")
    """Noise sd in the model's units; NaN for classification."""
    training: TrainingData | None = None
    """Without it there are no intervals of means, no certainty and no scikit-learn tree."""
    census: SplitCensus | None = None
    """The splits of the posterior that the tree comes from."""
    levels: NDArray[np.uint64] | None = None
    """[splits]; as in ``Draws``, as is the next."""
    kinds: NDArray[np.int64] | None = None
    log_posterior: float | None = None
    """Unnormalised, as that of draws; None for a tree that was put together by hand."""

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf)

    @property
    def depth(self) -> int:
        """Number of splits on the longest path; 0 for a single leaf."""
        return int(self.node_depths.max())

    @property
    def node_depths(self) -> NDArray[np.int64]:
        """Depth of each node, [nodes] in preorder; 0 for the root."""
        steps = np.zeros(len(self.size) + 1, dtype=np.int64)
        for i, size in enumerate(self.size):  # a split adds one level to the rest of its subtree
            if size > 1:
                steps[i + 1] += 1
                steps[i + size] -= 1
        return np.cumsum(steps)[: len(self.size)]

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        classes = self.preprocessing.classes
        return 0 if classes is None else len(classes)

    @property
    def soft(self) -> bool:
        """Whether any split sends a part of a row to each side."""
        used = self.h if self.weights.shape[1] else self.h[self.feature]
        return self.n_leaves > 1 and bool(np.any(used > 0))

    @property
    def values(self) -> FloatArray:
        """Prediction of each leaf: [leaves, class] probabilities, or [leaves] in y's units."""
        values = leaf_values(self.leaf, self.method, self.n_classes)
        return values if self.n_classes else self.preprocessing.y_to_user(values[:, 0])

    # ------------------------------------------------------------------ uncertainty

    @cached_property
    def certainty(self) -> FloatArray | None:
        """Share of the trees that have a similar split anywhere in them, [splits].

        Similar: on the same feature, with at most 5% of the training rows between the thresholds;
        for HMC-DFI, with at most 5% of the rows on different sides. None without training data.
        """
        return None if self.census is None else self.census.certainty(self)

    @cached_property
    def chains(self) -> IntArray | None:
        """Number of chains in which each split occurs, [splits]; see ``Posterior.split_chains``."""
        return None if self.census is None else self.census.chains(self)

    @property
    def intervals(self) -> FloatArray | None:
        """90% credible intervals of the leaf parameters given the tree; see ``leaf_intervals``."""
        return self.leaf_intervals(COVERAGE)

    def leaf_intervals(self, coverage: float = COVERAGE) -> FloatArray | None:
        """Central credible intervals of the leaf parameters, given the tree, in y's units.

        Classification, [leaves, class, 2]: each probability is Beta. Regression, [leaves, 2]: each
        mean is normal given sigma, and Student's t for CGM, WU and SMC, which integrate the
        variance out; None without training data.
        """
        if self.n_classes:
            return class_intervals(self.leaf, self.method, coverage)
        means = self._means
        return None if means is None else self.preprocessing.y_to_user(means.intervals(coverage))

    @cached_property
    def n_rows(self) -> FloatArray | None:
        """[nodes] in preorder; (soft) number of training rows, by weight, that reach the node.

        None for regression without training data.
        """
        if self.n_classes:
            return soft_rows(self.size, self.leaf.sum(axis=1))
        phi = self._phi
        if phi is None or self.training is None:
            return None
        return soft_rows(self.size, self.training.row_weights @ phi)

    def settled(self) -> Self:
        """The same tree with its leaf means at their posterior means given the tree.

        A draw of a regression tree has drawn means; class probabilities are posterior means
        already. Without training data, the tree as it is.
        """
        means = None if self.n_classes else self._means
        if means is None:
            return self
        columns = [means.centre] if means.noise is None else [means.centre, means.noise]
        return replace(self, leaf=np.stack(columns, axis=1))

    # ------------------------------------------------------------------ what it says

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict with this tree alone: class probabilities [row, class], or means [row]."""
        values = leaf_values(self.leaf, self.method, self.n_classes)
        columns = self.preprocessing.to_unit(X)
        mean, _ = prediction_moments(self._forest, values, np.ones(1), columns)
        return mean if self.n_classes else self.preprocessing.y_to_user(mean[:, 0])

    def reach(self, X: ArrayLike) -> FloatArray:
        """Probability that each row reaches each leaf, [row, leaf]; rows sum to 1."""
        columns = self.preprocessing.to_unit(X)
        reach: FloatArray = tree_predictions(self._forest, np.eye(self.n_leaves), columns)[0]
        return reach

    def to_dict(self) -> dict[str, Any]:
        """Nested plain Python values, ready for JSON where the class labels are.

        A split has ``column`` (of the input) and its name ``feature`` (HMC-DF), or lists of both
        with ``weights`` (HMC-DFI), and ``threshold``, ``h``, ``certainty``, ``chains``,
        ``n_rows``, ``yes`` and ``no``. On a category it has ``levels`` and ``other_levels``, and
        its threshold is None. On numbers with missing cells in training, ``missing`` says where
        these go: "yes", "no" or "imputed"; if the threshold is None, all others go to the other
        side. A leaf has ``rows`` and ``interval``, and ``classes``, ``probabilities`` and
        ``counts``, with an interval per class; or ``mean`` and, where leaves
        have their own, the noise ``sd``. Numbers of training rows are soft. Everything is in the
        user's units; values that need training data which were left out are None.
        """
        from .tree_dict import nested_dict

        return nested_dict(self)

    def to_text(self) -> str:
        """Rules as indented lines; "yes" is the side where the rule holds."""
        from .tree_text import tree_text

        return tree_text(self)

    def to_graphviz(self) -> str:
        """The tree in the DOT language, for Graphviz and other programs that read it."""
        from .export.graphviz import tree_dot

        return tree_dot(self)

    def to_sklearn(self, *, hard: bool = False) -> DecisionTreeClassifier | DecisionTreeRegressor:
        """A fitted scikit-learn tree with these splits and leaves.

        Parameters
        ----------
        hard : bool
            Needed for trees with soft splits, which scikit-learn does not have: each row then
            follows the more probable side of every split. Leaf values stay the same, so
            predictions change near the thresholds.

        Returns
        -------
        DecisionTreeClassifier or DecisionTreeRegressor
            It compares in float32: if that would send a training row to the other side, the
            threshold is moved, between the same two rows, to where it does not.

        Raises
        ------
        ValueError
            For soft splits without ``hard``, for weighted splits (HMC-DFI), which scikit-learn
            does not have, and without training data.
        """
        from .export.sklearn_tree import sklearn_tree

        return sklearn_tree(self, hard=hard)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the tree; without ``ax``, in a new figure that is large enough for it."""
        from ..plots.tree import plot_tree

        return plot_tree(self, ax)

    def __repr__(self) -> str:
        leaves = "1 leaf" if self.n_leaves == 1 else f"{self.n_leaves} leaves"
        return f"<Tree with {leaves}, depth {self.depth}>\n{self.to_text()}"

    def _repr_html_(self) -> str:
        from .svg import tree_svg

        return f"<div>{tree_svg(self) or preformatted(self.to_text())}</div>"

    # ------------------------------------------------------------------ details

    @property
    def _forest(self) -> Forest:
        return Forest(
            node_offset=np.array([0, len(self.size)]),
            size=self.size,
            feature=self.feature,
            threshold=self.threshold,
            weights=self.weights,
            h=np.ascontiguousarray(self.h[None]),
            **special_arrays(self.levels, self.kinds, len(self.threshold)),
        )

    @cached_property
    def _phi(self) -> FloatArray | None:
        """[n, leaves]; ``reach`` of the training rows."""
        return None if self.training is None else self.reach(self.training.X)

    @cached_property
    def _means(self) -> MeanPosterior | None:
        """For regression."""
        if self.training is None or self._phi is None:
            return None
        y = self.preprocessing.y_to_model(self.training.y)
        return mean_posterior(self._phi, y, self.sigma, self.method, self.training.weights)
