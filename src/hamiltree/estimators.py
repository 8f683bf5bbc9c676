"""The posterior over decision trees as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from .base_estimator import BayesianTree
from .draws import FloatArray
from .parameters import documented, flag, parameter
from .preprocess import Preprocessing, learn

INTERVAL_SEED = 0  # intervals are part of the answer: the same each time they are asked for
EXACT_FLOATS = 2.0**53  # up to here a float64 keeps every whole number apart


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTreeClassifier(ClassifierMixin, BayesianTree):
    """Classify by the posterior distribution over decision trees.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    posterior_ : Posterior
        Every sampled tree, diagnostics, files and plots.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of splits on each column.
    h_ : ndarray of shape (n_features_in_,)
        Softness on each column: as given, as chosen, or the posterior mean.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string names.

    Examples
    --------
    >>> from hamiltree import BayesianTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianTreeClassifier(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> model.predict_proba(X[:1]).round(2)  # doctest: +SKIP
    array([[0.96, 0.02, 0.02]])
    """

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of highest posterior mean probability, [n]."""
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

        Central, over the sampled trees and the uncertainty of the probabilities in their leaves.
        """
        tails = _tails(coverage)
        rows = self._rows(X)
        quantiles = self.posterior_.predict_probability_quantiles(
            rows, tails, INTERVAL_SEED, n_jobs=self.n_jobs
        )
        return np.moveaxis(quantiles, 0, 2)

    def _learn(self, X: FloatArray, y: NDArray[Any]) -> tuple[Preprocessing, NDArray[Any], int]:
        if y.dtype.kind == "f" and np.abs(y).max() >= EXACT_FLOATS:
            raise ValueError(
                "class labels of 2**53 and more cannot be told apart as floating-point numbers: "
                "give y as texts, or as an array of integers"
            )
        try:
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise TypeError(f"class labels of different types have no order: {error}") from None
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes; got 1 class")
        names = getattr(self, "feature_names_in_", None)
        return learn(X, names, classes=self.classes_, dtype=self.dtype), codes, len(self.classes_)

    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        return (trees == y).astype(np.float64)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTreeRegressor(RegressorMixin, BayesianTree):
    """Regress by the posterior distribution over decision trees.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    posterior_ : Posterior
        Every sampled tree, diagnostics, files and plots.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of splits on each column.
    h_ : ndarray of shape (n_features_in_,)
        Softness on each column: as given, as chosen, or the posterior mean.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string names.

    Examples
    --------
    >>> from hamiltree import BayesianTreeRegressor
    >>> from hamiltree.datasets import make_cgm
    >>> data = make_cgm(200, random_state=0)
    >>> model = BayesianTreeRegressor(random_state=0).fit(data.data, data.target)  # doctest: +SKIP
    >>> mean, sd = model.predict(data.data, return_std=True)  # doctest: +SKIP
    """

    standardize: bool = parameter(
        True, flag(), "Scale y to mean 0 and sd 1 for the model; results are in y's units."
    )

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Posterior mean of the target, [n], in its units.

        With ``return_std`` also the sd of a new observation: disagreement of the trees and noise.
        """
        rows = self._rows(X)
        if return_std:
            return self.posterior_.predict_mean_std(rows, n_jobs=self.n_jobs)
        return self.posterior_.predict_mean(rows, n_jobs=self.n_jobs)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> FloatArray:
        """Central posterior predictive intervals of new observations, noise included, [n, 2]."""
        tails = _tails(coverage)
        rows = self._rows(X)
        return self.posterior_.predict_quantiles(rows, tails, n_jobs=self.n_jobs).T

    def _learn(self, X: FloatArray, y: NDArray[Any]) -> tuple[Preprocessing, NDArray[Any], int]:
        names = getattr(self, "feature_names_in_", None)
        target = y.astype(np.float64)
        preprocessing = learn(X, names, y=target, standardize=self.standardize, dtype=self.dtype)
        return preprocessing, preprocessing.y_to_model(target), 0

    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        squares: FloatArray = (trees - y) ** 2
        return squares


def _tails(coverage: float) -> tuple[float, float]:
    """Lower and upper tail of a central interval."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}")
    return (1 - coverage) / 2, (1 + coverage) / 2
