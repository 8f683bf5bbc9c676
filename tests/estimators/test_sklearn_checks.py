"""scikit-learn's own contract for estimators, sample weights included, without an exception."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor

# The checks fit some 200 times, on data where a few dozen draws are plenty.
SHORT = {"n_chains": 2, "n_warmup": 60, "n_draws": 20}


@parametrize_with_checks([BayesianTreeClassifier(**SHORT), BayesianTreeRegressor(**SHORT)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_repetitions_in_the_sampler_too():
    """Where weights stay weights, a run that is short enough for rounding not to show."""
    model = BayesianTreeRegressor(n_chains=2, n_warmup=0, n_draws=3)
    with patch("hamiltree.inputs.weights.MOST_REPEATED", 0):
        check_sample_weight_equivalence_on_dense_data("BayesianTreeRegressor", model)
