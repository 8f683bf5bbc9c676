"""Classification by the posterior over decision trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ..inputs.preprocess import Preprocessing, learn
from ..inputs.weights import with_class_weights
from ..methods.parameters import class_weights, parameter
from ..posterior.draws import TrainingData
from ..utils.arrays import FloatArray
from .base import BayesianTree, tails_of
from .parameters import documented_estimator

INTERVAL_SEED = 0  # intervals are part of the answer: the same each time they are asked for
EXACT_FLOATS = 2.0**53  # up to here a float64 keeps every whole number apart


@documented_estimator
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTreeClassifier(ClassifierMixin, BayesianTree):
    """Classification by the posterior distribution over decision trees.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.

    Examples
    --------
    >>> from hamiltree import BayesianTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianTreeClassifier(n_warmup=200, n_draws=200, random_state=0).fit(X, y)
    >>> model.predict(X[:1])
    array([0])
    >>> model.predict_proba(X[:1]).shape, model.predict_interval(X[:1]).shape
    ((1, 3), (1, 3, 2))
    >>> model.predict_log_proba(X[:1]).shape, model.h_.shape
    ((1, 3), (4,))
    >>> bool(model.single_tree_score(X, y) <= model.score(X, y) + 0.05)
    True
    """

    class_weight: Mapping[Any, float] | str | None = parameter(
        None,
        class_weights(),
        'Weights of the classes by label, which multiply those of the rows; or "balanced", which '
        "gives all classes the same total weight.",
    )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with the highest posterior mean probability, [n]."""
        probabilities = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior mean of the class probabilities, [n, n_classes] in the order of classes_."""
        rows = self._rows(X)
        return self.posterior_.predict_mean(rows, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithm of ``predict_proba``."""
        return np.log(self.predict_proba(X))

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> FloatArray:
        """Credible intervals of the class probabilities, [n, n_classes, 2].

        Central intervals, over the sampled trees and the uncertainty of their leaf probabilities.
        """
        tails = tails_of(coverage)
        rows = self._rows(X)
        quantiles = self.posterior_.predict_probability_quantiles(
            rows, tails, INTERVAL_SEED, n_jobs=self.n_jobs
        )
        return np.moveaxis(quantiles, 0, 2)

    def _with_class_weights(self, weights: FloatArray, y: NDArray[Any]) -> FloatArray:
        if self.class_weight is not None:
            classes_of(y)  # which refuses labels that have no order
        return with_class_weights(weights, y, self.class_weight)

    def _learn(
        self, training: TrainingData, about: dict[str, Any]
    ) -> tuple[Preprocessing, NDArray[Any], int]:
        y = training.y
        if y.dtype.kind == "f" and np.abs(y).max() >= EXACT_FLOATS:
            raise ValueError(
                "class labels of 2**53 and more cannot be told apart as floating-point numbers: "
                "give y as strings, or as an array of integers"
            )
        self.classes_, codes = classes_of(y)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes; got 1 class")
        scale = learn(training.X, classes=self.classes_, weights=training.weights, **about)
        return scale, codes, len(self.classes_)

    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        right: NDArray[np.bool_] = trees == y
        return right.astype(np.float64)


def classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The labels, sorted, and each row's place among them."""
    try:
        check_classification_targets(y)
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        if y.dtype.kind == "S":  # scikit-learn says that bytes are no labels
            raise
        raise TypeError(f"class labels of different types have no order: {error}") from None
    return labels, codes
