"""scikit-learn's own contract for estimators, without an exception."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor

# The checks fit some 200 times, on data where a few dozen draws are plenty.
SHORT = {"n_chains": 2, "n_warmup": 60, "n_draws": 20}


@parametrize_with_checks([BayesianTreeClassifier(**SHORT), BayesianTreeRegressor(**SHORT)])
def test_scikit_learn_check(estimator, check):
    check(estimator)
