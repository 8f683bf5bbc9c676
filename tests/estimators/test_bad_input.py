"""Bad input gets a clear word: what is wrong, and what would be right."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import HMCDF, METHODS
from hamiltree.methods.common import expected_leaves
from hamiltree.running import run

from ..support import configuring

SHORT = {"n_chains": 2, "n_warmup": 50, "n_draws": 30, "random_state": 7}
ESTIMATORS = [BayesianTreeClassifier, BayesianTreeRegressor]


def _of(values):
    """Parameters of an estimator from these, some of which are the method's."""
    given = {**SHORT, **values}
    return configuring.parameters(**given) if given.get("method", "hmc-df") in METHODS else given


def small_data():
    X = np.random.default_rng(20).random((30, 2))
    return X, (X[:, 0] > 0.5).astype(int)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.inf], [2.0]], [0, 1, 0], "Input X contains infinity"),
        ([[1.0], [3.0], [2.0]], [0, np.nan, 1], "Input y contains NaN"),
        ([[1.0]], [0], r"Found array with 1 sample\(s\).*minimum of 2"),
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([[1.0, 2.0], [1.0, 2.0]], [0, 1], "every column of X is constant"),
        ([["a"], ["b"]], [0, 1], "X holds text in column "),
        ([[1.0], [10**400], [2.0]], [0, 1, 0], "beyond the range of floating point: rescale"),
        (np.array([["2020"], ["NaT"]], "M8[Y]"), [0, 1], "X holds dates or times"),
        (np.ma.masked_array([[1.0], [2.0]], [[0], [1]]), [0, 1], "X has masked cells"),
        (pandas.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [0, 1], "the same name.*: 'a'"),
        ([[1.0], [2.0], [3.0]], [1, 0, None], "y has missing or infinite values|contains NaN"),
        ([[1.0], [2.0], [3.0]], np.array([1, 0, None]), "y has missing or infinite values"),
        ([[1.0], [2.0]], np.array(["2020", "NaT"], "M8[Y]"), "y holds dates or times"),
    ],
)
def test_bad_data_is_refused(estimator, X, y, message):
    with pytest.raises(ValueError, match=message):
        estimator(**SHORT).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="needs at least 2 classes; got 1 class"):
        BayesianTreeClassifier(**SHORT).fit([[1.0], [2.0]], ["a", "a"])
    with pytest.raises(ValueError, match="continuous"):
        BayesianTreeClassifier(**SHORT).fit([[1.0], [2.0]], [0.5, 1.25])


def test_labels_that_cannot_be_told_apart_are_refused():
    model = BayesianTreeClassifier(**SHORT)
    with pytest.raises(ValueError, match=r"2\*\*53 and more cannot be told apart"):
        model.fit([[1.0], [2.0], [3.0]], [-1, 2**63, 2**63 + 1])  # NumPy makes floats of these
    with pytest.raises(TypeError, match="class labels of different types have no order"):
        model.fit([[1.0], [2.0]], np.array(["a", 1], dtype=object))


@pytest.mark.parametrize("labels", [[b"a", b"a"], [b"\x80", b"a"]])
def test_bytes_are_no_labels(labels):
    """Equal rows are ordered by their labels, which need not be text in any encoding."""
    with pytest.raises(TypeError, match=r"^Support for labels represented as bytes is not"):
        BayesianTreeClassifier(**SHORT).fit([[0.1], [0.1]], np.array(labels))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_rows_have_no_predictions(estimator):
    X, y = small_data()
    model = estimator(**SHORT).fit(X, y)
    assert model.predict(X[:0]).shape == (0,)
    assert model.sample_predictive(X[:0], 4).shape == (4, 0)
    probabilities = (2,) if estimator is BayesianTreeClassifier else ()
    assert model.predict_interval(X[:0]).shape == (0, *probabilities, 2)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.single_tree_score(X[:0], y[:0])


MOVES = r"three probabilities \(grow, prune, stay\) that sum to 1"


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "bart"}, "(?=.*'hmc-df')(?=.*'hmc-dfi').*got 'bart'"),
        ({"method": None}, "method must be one of"),
        ({"preset": "fast"}, "'paper'"),
        ({"moves": "wild"}, "'prior'"),
        ({"h": -0.1}, "h must be a number of at least 0"),
        ({"h": float("inf")}, "h must be a number of at least 0"),
        ({"h": 1e-12}, r"h must be 0 \(hard splits\) or at least 1e-09"),
        ({"h_init": -1}, "h_init must be a number of at least 0"),
        ({"move_probs": (0.5, 0.4, 0.2)}, "move_probs must be " + MOVES),
        ({"move_probs": (1.2, -0.1, -0.1)}, "move_probs must be " + MOVES),
        ({"move_probs": (0.5, 0.5)}, "move_probs must be " + MOVES),
        ({"move_probs": ("a", "b", "c")}, "move_probs must be " + MOVES),
        ({"move_probs": (0.5, 0.0, 0.5)}, "both grow and shrink, or neither"),
        ({"warmup_move_probs": (0.5, 0.4, 0.2)}, "warmup_move_probs must be " + MOVES),
        ({"target_accept": 1.0}, "target_accept must be a number above 0 and below 1"),
        ({"alpha_split": 0.0}, "alpha_split must be a number above 0"),
        ({"alpha_split": float("inf")}, "alpha_split must be"),
        ({"beta_split": -1.0}, "beta_split must be a number of at least 0"),
        ({"tau_prior": (1.0, 0.0)}, "tau_prior must be two positive numbers"),
        ({"tau_prior": (1.0,)}, "tau_prior must be two positive numbers"),
        ({"feature_prior": [1.0, 2.0, 3.0]}, "feature_prior must be 2 positive numbers"),
        ({"feature_prior": [1.0, 0.0]}, "feature_prior must be 2 positive numbers"),
        ({"weight_prior": 0, "method": "hmc-dfi"}, "weight_prior must be a number above 0"),
        ({"min_leaves": 9, "max_leaves": 8}, "min_leaves=9 is larger than max_leaves=8"),
        ({"n_draws": 0}, "n_draws must be an integer of at least 1"),
        ({"n_chains": 2.5}, "n_chains must be an integer"),
        ({"n_jobs": 1.5}, "n_jobs must be an integer"),
        ({"progress": "yes"}, "progress must be True or False"),
        ({"checkpoint": 3}, "checkpoint must be a path"),
        ({"dtype": "float16"}, "dtype must be 'float64' or 'float32'"),
        ({"n_warmup": -1}, "n_warmup must be an integer of at least 0"),
        ({"acceptance": "always"}, "'exact'"),
        ({"random_state": "today"}, "'today' cannot be used to seed"),
    ],
)
def test_bad_parameters_are_refused(estimator, parameters, message):
    X, y = small_data()
    with pytest.raises(ValueError, match=message):
        estimator(**_of(parameters)).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (BayesianTreeClassifier, {"class_prior": 0.0}, "class_prior must be a positive number"),
        (BayesianTreeClassifier, {"class_prior": [1.0]}, "one for each of the 2 classes"),
        (BayesianTreeClassifier, {"class_prior": [1.0, -1.0]}, "one for each of the 2 classes"),
        (BayesianTreeRegressor, {"mu_prior": (0.0, 0.0)}, "a mean and a positive sd"),
        (BayesianTreeRegressor, {"mu_prior": (0.0,)}, "a mean and a positive sd"),
        (BayesianTreeRegressor, {"sigma_prior": (0.0, 1.0)}, "two positive numbers"),
        (BayesianTreeRegressor, {"leaf_means": "both"}, "'collapsed'"),
        (BayesianTreeRegressor, {"standardize": "no"}, "standardize must be True or False"),
    ],
)
def test_bad_priors_are_refused(estimator, parameters, message):
    X, y = small_data()
    with pytest.raises(ValueError, match=message):
        estimator(**_of(parameters)).fit(X, y)


# ---------------------------------------------------------------------- the prior of the topology


def test_expected_leaves_of_known_priors():
    # beta = 0: a Galton-Watson tree with L = 1 - a + 2 a L, so L = (1 - a) / (1 - 2 a).
    for alpha in (0.1, 0.3, 0.45):
        assert expected_leaves(alpha, 0.0, 1e6) == pytest.approx((1 - alpha) / (1 - 2 * alpha))
    # Splits only at depths 0 and 1 matter when beta is large: 1 + a + 2 a a 2^-beta + ...
    assert expected_leaves(0.95, 30.0, 256) == pytest.approx(1.95, abs=1e-8)
    assert expected_leaves(0.5, 0.0, 256) == np.inf


@pytest.mark.parametrize(
    ("parameters", "warns"),
    [({}, False), ({"preset": "paper"}, False), ({"alpha_split": 0.6, "beta_split": 0.0}, True),
     ({"alpha_split": 0.4, "beta_split": 0.0}, False), ({"alpha_split": 50.0}, True),
     ({"alpha_split": 0.95, "beta_split": 0.2}, True)],
)  # fmt: skip
def test_a_prior_of_endless_trees_warns(parameters, warns, monkeypatch):
    def stop(*args, **kwargs):
        raise InterruptedError  # the warning comes first, and such a run would be long

    monkeypatch.setattr(run, "sample", stop)
    X, y = small_data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(InterruptedError):
            BayesianTreeClassifier(**{**SHORT, **parameters}).fit(X, y)
    endless = [w for w in caught if "so max_leaves limits them" in str(w.message)]
    assert [w.filename for w in endless] == [__file__] * warns


def test_biased_acceptance_needs_both_sides():
    X, y = np.random.default_rng(0).random((20, 2)), np.arange(20) % 2
    for name in ("acceptance", "warmup_acceptance"):
        with pytest.raises(ValueError, match="double-sided"):
            BayesianTreeClassifier(method=HMCDF(**{name: "biased"})).fit(X, y)
