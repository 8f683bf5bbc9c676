"""Regression by the posterior over decision trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from ..inputs.preprocess import Preprocessing, learn
from ..methods.parameters import flag, parameter
from ..posterior.draws import TrainingData
from ..utils.arrays import FloatArray
from .base import BayesianTree, tails_of
from .parameters import documented_estimator


@documented_estimator
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTreeRegressor(RegressorMixin, BayesianTree):
    """Regression by the posterior distribution over decision trees.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from hamiltree import BayesianTreeRegressor
    >>> from hamiltree.datasets import make_cgm
    >>> data = make_cgm(200, random_state=0)
    >>> model = BayesianTreeRegressor(n_warmup=200, n_draws=200, random_state=0)
    >>> model = model.fit(data.data, data.target)
    >>> mean, sd = model.predict(data.data, return_std=True)
    >>> mean.shape, sd.shape, model.predict_interval(data.data).shape
    ((200,), (200,), (200, 2))
    """

    standardize: bool = parameter(
        True, flag(), "Scale y to mean 0 and sd 1 for the model; results are in y's units."
    )

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Posterior mean of the target, [n], in its units.

        With ``return_std`` also the sd of a new observation: spread over the trees, and noise.
        """
        rows = self._rows(X)
        if return_std:
            return self.posterior_.predict_mean_std(rows, n_jobs=self.n_jobs)
        return self.posterior_.predict_mean(rows, n_jobs=self.n_jobs)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> FloatArray:
        """Central posterior predictive intervals of new observations, noise included, [n, 2]."""
        tails = tails_of(coverage)
        rows = self._rows(X)
        return self.posterior_.predict_quantiles(rows, tails, n_jobs=self.n_jobs).T

    def _learn(
        self, training: TrainingData, about: dict[str, Any]
    ) -> tuple[Preprocessing, NDArray[Any], int]:
        target = training.y.astype(np.float64)
        about = about | {"weights": training.weights, "standardize": self.standardize}
        preprocessing = learn(training.X, y=target, **about)
        return preprocessing, preprocessing.y_to_model(target), 0

    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        squares: FloatArray = (trees - y) ** 2
        return squares
