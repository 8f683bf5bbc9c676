"""Other models that predict with an interval or with probabilities, each with its own defaults.

A regression peer returns quantiles [level, row] at ``LEVELS``; a classification peer returns
probabilities [row, class]. Packages are imported where they are used: a peer that is not installed
is left out by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

LEVELS = np.linspace(0.05, 0.95, 19)
"""Of the quantiles; the first and the last are the ends of a 90% interval."""
PRUNING = {"ccp_alpha": [0.0, *np.geomspace(1e-4, 0.1, 10)]}
BART_RUN = {"num_gfr": 10, "num_burnin": 0, "num_mcmc": 500}

Array = np.ndarray
Peer = Callable[[Array, Array, Array, int], Array]
"""(X, y, X_test, seed) -> quantiles or probabilities."""


# ------------------------------------------------------------------ regression


def quantile_forest(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    from quantile_forest import RandomForestQuantileRegressor

    forest = RandomForestQuantileRegressor(500, min_samples_leaf=5, random_state=seed).fit(X, y)
    found: Array = forest.predict(X_test, quantiles=list(LEVELS)).T
    return found


def ngboost(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(X, y)
    normal = model.pred_dist(X_test).params
    return norm.ppf(LEVELS[:, None], normal["loc"], normal["scale"])


def conformal_tree(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    """A pruned tree of two thirds of the rows; the rest says how far it is off."""
    from crepes import WrapRegressor

    X, X_held, y, y_held = train_test_split(X, y, test_size=1 / 3, random_state=seed)
    tree = GridSearchCV(DecisionTreeRegressor(random_state=seed), scaled(PRUNING, y)).fit(X, y)
    model = WrapRegressor(tree.best_estimator_)
    model.calibrate(X_held, y_held, cps=True, seed=seed)
    # Where the held-out rows are too few for a level, the interval is unbounded: their range then.
    spread = np.ptp(y)
    found = model.predict_percentiles(
        X_test, lower_percentiles=list(100 * LEVELS), y_min=y.min() - spread, y_max=y.max() + spread
    )
    return np.asarray(found).T


def scaled(grid: dict[str, Any], y: Array) -> dict[str, Any]:
    """``ccp_alpha`` of a regression tree is in units of the variance of y."""
    return {name: [value * np.var(y) for value in values] for name, values in grid.items()}


def bart_regression(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    from stochtree import BARTModel

    model = BARTModel()
    general = {"num_threads": 1, "random_seed": seed}
    model.sample(X, y.astype(float), X_test=X_test, general_params=general, **BART_RUN)
    rng = np.random.default_rng(seed)
    noise = np.sqrt(model.global_var_samples) * rng.normal(size=model.y_hat_test.shape)
    return np.quantile(model.y_hat_test + noise, LEVELS, axis=1)


REGRESSION: dict[str, Peer] = {
    "quantile forest": quantile_forest,
    "NGBoost": ngboost,
    "CART, conformal": conformal_tree,
    "BART (stochtree)": bart_regression,
}


# ------------------------------------------------------------------ classification


def plain_tree(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    """As scikit-learn has it: grown until its leaves are pure."""
    return np.asarray(DecisionTreeClassifier(random_state=seed).fit(X, y).predict_proba(X_test))


def pruned_classifier(X: Array, y: Array, seed: int) -> DecisionTreeClassifier:
    """By cross-validated log score."""
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=seed), PRUNING, scoring="neg_log_loss"
    )
    return search.fit(X, y).best_estimator_


def smoothed_probabilities(tree: DecisionTreeClassifier, X_test: Array) -> Array:
    """Of leaves that count one more row of each class."""
    rows = tree.tree_.n_node_samples[tree.apply(X_test)][:, None]
    counts: Array = rows * tree.predict_proba(X_test) + 1.0
    return counts / counts.sum(axis=1, keepdims=True)


def smoothed_tree(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    return smoothed_probabilities(pruned_classifier(X, y, seed), X_test)


def random_forest(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    forest = RandomForestClassifier(500, min_samples_leaf=5, random_state=seed).fit(X, y)
    return np.asarray(forest.predict_proba(X_test))


def logistic_regression(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5_000)).fit(X, y)
    return np.asarray(model.predict_proba(X_test))


def boosting_machine(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    from interpret.glassbox import ExplainableBoostingClassifier

    model = ExplainableBoostingClassifier(random_state=seed, n_jobs=1).fit(X, y)
    return np.asarray(model.predict_proba(X_test))


def boosted_trees(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    model = HistGradientBoostingClassifier(random_state=seed).fit(X, y)
    return np.asarray(model.predict_proba(X_test))


def bart_classification(X: Array, y: Array, X_test: Array, seed: int) -> Array:
    """Probit; for two classes alone."""
    from stochtree import BARTModel, OutcomeModel

    if len(np.unique(y)) != 2:
        raise ImportError("BART of stochtree has two classes")
    model = BARTModel()
    general = {
        "num_threads": 1,
        "random_seed": seed,
        "sample_sigma2_global": False,
        "outcome_model": OutcomeModel(outcome="binary", link="probit"),
    }
    target = (y == y.max()).astype(float)
    model.sample(X, target, X_test=X_test, general_params=general, **BART_RUN)
    second = norm.cdf(model.y_hat_test).mean(axis=1)
    return np.column_stack([1.0 - second, second])


CLASSIFICATION: dict[str, Peer] = {
    "CART, smoothed": smoothed_tree,
    "random forest": random_forest,
    "logistic regression": logistic_regression,
    "EBM": boosting_machine,
    "BART (stochtree)": bart_classification,
}
