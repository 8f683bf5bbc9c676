"""Two references from scikit-learn: a pruned CART tree and a random forest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ..datasets import Split
from ..utils.arrays import FloatArray
from .measures import COVERAGE, probability_measures, score_name

N_TREES = 500
N_FOLDS = 5
MOST_PRUNINGS = 40
"""Strengths of pruning that are compared by cross-validation."""


def measure_cart(split: Split, seed: int) -> dict[str, float]:
    """A tree pruned by five-fold cross-validation; class counts of its leaves plus one each."""
    make = DecisionTreeClassifier if split.n_classes else DecisionTreeRegressor
    path = make(random_state=seed).cost_complexity_pruning_path(split.X, split.y)
    strengths = np.unique(np.maximum(path.ccp_alphas, 0.0))
    if len(strengths) > MOST_PRUNINGS:
        strengths = np.quantile(strengths, np.linspace(0, 1, MOST_PRUNINGS))
    search = GridSearchCV(
        make(random_state=seed),
        {"ccp_alpha": strengths},
        cv=KFold(N_FOLDS, shuffle=True, random_state=seed),
    )
    tree = search.fit(split.X, split.y).best_estimator_
    values = {"leaves": float(tree.get_n_leaves())}
    if not split.n_classes:
        residuals = split.y - tree.predict(split.X)
        sd = np.sqrt(np.sum(residuals**2) / max(len(residuals) - tree.get_n_leaves(), 1))
        return values | _regression(split, tree.predict(split.X_test), float(sd))
    return values | _classification(split, _smoothed(tree, split.X_test), tree.classes_)


def measure_forest(split: Split, seed: int) -> dict[str, float]:
    """500 trees; the class shares of their votes with one more vote for all classes alike.

    Regression: normal about the prediction, with the sd of the out-of-bag residuals.
    """
    if not split.n_classes:
        forest = RandomForestRegressor(N_TREES, oob_score=True, random_state=seed)
        forest.fit(split.X, split.y)
        sd = np.sqrt(np.mean((split.y - forest.oob_prediction_) ** 2))
        return _regression(split, forest.predict(split.X_test), float(sd))
    forest = RandomForestClassifier(N_TREES, random_state=seed).fit(split.X, split.y)
    votes = forest.predict_proba(split.X_test)
    probabilities = (N_TREES * votes + 1 / votes.shape[1]) / (N_TREES + 1)
    return _classification(split, probabilities, forest.classes_)


def _smoothed(tree: DecisionTreeClassifier, X: FloatArray) -> FloatArray:
    """Pure leaves would say 0, which no log score forgives; one more row of each class does not."""
    inner = tree.tree_
    counts = inner.value[:, 0, :] * inner.weighted_n_node_samples[:, None]
    counts = counts[tree.apply(X)] + 1
    probabilities: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    return probabilities


def _classification(
    split: Split, probabilities: FloatArray, classes: NDArray[Any]
) -> dict[str, float]:
    answer = classes[probabilities.argmax(axis=1)]
    return {
        "ensemble_test_acc": float(accuracy_score(split.y_test, answer)),
        **probability_measures(probabilities, split.y_test, classes),
    }


def _regression(split: Split, mean: FloatArray, sd: float) -> dict[str, float]:
    half = norm.ppf((1 + COVERAGE) / 2) * sd
    return {
        f"ensemble_test_{score_name(0)}": float(mean_squared_error(split.y_test, mean)),
        "log_score": float(norm.logpdf(split.y_test, mean, sd).mean()),
        "coverage_90": float(np.mean(np.abs(split.y_test - mean) <= half)),
    }


MEASURE = {"cart": measure_cart, "forest": measure_forest}
