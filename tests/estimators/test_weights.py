"""``sample_weight`` and ``class_weight`` at the door, and what follows from them after sampling."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_validate

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.inputs.weights import sampled_order, weights_of, with_class_weights
from hamiltree.posterior import Posterior

SHORT = {"n_chains": 2, "n_warmup": 30, "n_draws": 20, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    X, y = load_iris(return_X_y=True)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    return X, y, times


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_zero_is_absent_and_two_is_twice(table, tmp_path):
    X, y, times = table
    model = BayesianTreeClassifier(method="cgm", **SHORT).fit(X, y, sample_weight=times)
    repeated = BayesianTreeClassifier(method="cgm", **SHORT).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    np.testing.assert_allclose(model.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
    rows = model.posterior_.best_tree().n_rows
    assert rows[0] == times.sum()
    path = tmp_path / "model.nc"
    model.posterior_.save(path)
    weights = Posterior.load(path).training.weights
    np.testing.assert_array_equal(weights, times[times > 0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_rows_of_weight_zero_have_no_say_in_what_columns_are(method, rng):
    """Levels and missing cells would otherwise take a part of the prior."""
    table = pandas.DataFrame(
        {
            "age": rng.integers(20, 60, 40).astype(float),
            "sex": rng.choice(["female", "male"], 40),
            "site": rng.choice(["North", "South", "West"], 40),
            "grade": pandas.Categorical(rng.choice(["low", "high"], 40), ["low", "high"], True),
        }
    )
    y, weights = rng.choice(["no", "yes"], 40), np.ones(40)
    weights[:4] = 0
    table.loc[0, "site"] = "East"
    table.loc[1, ["age", "sex"]] = None
    table.loc[2, "age"] = 30.5
    table.loc[3, "grade"] = None
    there = weights > 0
    model = BayesianTreeClassifier(method=method, **SHORT).fit(table, y, weights)
    other = BayesianTreeClassifier(method=method, **SHORT).fit(table[there], y[there])
    scale = model.posterior_.preprocessing
    assert scale.columns == other.posterior_.preprocessing.columns
    assert scale.columns[2].levels == ("North", "South", "West")
    for name in ("threshold", "leaf", "log_posterior"):
        found, expected = (getattr(m.posterior_.draws, name) for m in (model, other))
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.predict_proba(table), other.predict_proba(table))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("labels", [None, np.array(["a", "b", "c"])])
def test_whole_weights_give_the_draws_of_repeated_rows_in_any_order(labels, table, rng):
    X, y, times = table
    estimator = BayesianTreeRegressor if labels is None else BayesianTreeClassifier
    y = y + 0.1 * rng.normal(size=len(y)) if labels is None else labels[y]
    order, again = rng.permutation(len(y)), rng.permutation(times.sum())
    repeated, targets = np.repeat(X, times, axis=0)[again], np.repeat(y, times)[again]
    one = estimator(**SHORT).fit(X[order], y[order], sample_weight=times[order])
    other = estimator(**SHORT).fit(repeated, targets)
    for name in ("threshold", "leaf", "log_posterior", "size"):
        found, expected = (getattr(m.posterior_.draws, name) for m in (one, other))
        np.testing.assert_array_equal(found, expected)
    # what is told of the training rows stays as the user gave it
    there = order[times[order] > 0]
    np.testing.assert_array_equal(one.posterior_.training.X, X[there])
    np.testing.assert_array_equal(one.posterior_.training.weights, times[there])
    np.testing.assert_array_equal(other.posterior_.training.X, repeated)
    if labels is None:
        np.testing.assert_array_equal(one.posterior_.training.y, y[there])
    else:
        np.testing.assert_array_equal(labels[one.posterior_.training.y], y[there])


def test_the_order_of_rows_changes_only_where_some_are_equal(rng):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    assert sampled_order(X, y, None) is None
    assert sampled_order(X, y, np.full(50, 0.5)) is None
    assert sampled_order(X, y, np.full(50, 5.0)) is None  # copies would take time
    X[7], y[7] = X[31], 1 - y[31]
    assert sampled_order(X, y, None) is None  # the same row with another target
    y[7] = y[31]
    X[[3, 4], 1] = np.nan
    X[0, 0], other = 0.0, X.copy()
    other[0, 0] = -0.0
    order = sampled_order(X, y, None)
    assert sorted(order) == list(range(50))
    assert abs(int(np.flatnonzero(order == 7)[0]) - int(np.flatnonzero(order == 31)[0])) == 1
    np.testing.assert_array_equal(sampled_order(other, y, None), order)
    shuffled = rng.permutation(50)
    again = shuffled[sampled_order(X[shuffled], y[shuffled], None)]
    np.testing.assert_array_equal(X[again], X[order])
    weighted = sampled_order(X, y, np.full(50, 2.0))
    np.testing.assert_array_equal(np.bincount(weighted), np.full(50, 2))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intervals_of_means_follow(rng):
    X = rng.uniform(size=(60, 2))
    y = (X[:, 0] > 0.5) + 0.1 * rng.normal(size=60)
    times = rng.integers(1, 4, 60)
    options = {"method": "cgm", **SHORT}
    model = BayesianTreeRegressor(**options).fit(X, y, sample_weight=times)
    other = BayesianTreeRegressor(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    trees = [m.posterior_.best_tree() for m in (model, other)]
    np.testing.assert_allclose(trees[0].intervals, trees[1].intervals, rtol=1e-6)
    np.testing.assert_allclose(trees[0].n_rows, trees[1].n_rows)
    nodes = [tree.to_sklearn().tree_ for tree in trees]
    np.testing.assert_allclose(nodes[0].weighted_n_node_samples, nodes[1].weighted_n_node_samples)
    np.testing.assert_allclose(nodes[0].impurity, nodes[1].impurity, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_balanced_classes(table):
    X, y, _ = table
    keep = np.r_[:50, 50:60]  # 50 of one class, 10 of another
    X, y = X[keep], y[keep]
    options = {"method": "smc", "n_chains": 2, "n_draws": 50, "random_state": 0}
    model = BayesianTreeClassifier(class_weight="balanced", **options).fit(X, y)
    by_hand = BayesianTreeClassifier(**options).fit(X, y, np.where(y == 0, 60 / 100, 60 / 20))
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), rtol=1e-9)
    assert model.posterior_.training.weights.sum() == pytest.approx(60)


def test_class_weights():
    y = np.array(["a", "b", "b", "c"])
    weights = with_class_weights(np.array([1.0, 2.0, 0.0, 1.0]), y, {"a": 3.0, "c": 0.5})
    np.testing.assert_array_equal(weights, [3.0, 2.0, 0.0, 0.5])
    balanced = with_class_weights(np.array([1.0, 2.0, 0.0, 1.0]), y, "balanced")
    np.testing.assert_allclose(balanced, [4 / 3, 4 / 3, 0.0, 4 / 3])
    with pytest.raises(ValueError, match="labels that y does not have: \\['d'\\]"):
        with_class_weights(np.ones(4), y, {"d": 1.0})
    with pytest.raises(ValueError, match="not negative"):
        with_class_weights(np.ones(4), y, {"a": -1.0})
    with pytest.raises(ValueError, match="no row"):
        with_class_weights(np.ones(4), y, {"a": 0, "b": 0, "c": 0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((3, 1)), "1D"),
        (np.ones(4), "4 entries, but X has 3 rows"),
        ([1.0, -1.0, 1.0], "Negative"),
        ([1.0, np.nan, 1.0], "NaN"),
        (np.zeros(3), "all entries of sample_weight are zero"),
        (["a", "b", "c"], "numbers"),
        ([1e20, 1.0, 1.0], "scale the weights down"),
    ],
)
def test_weights_that_are_none(given, message):
    with pytest.raises(ValueError, match=message):
        weights_of(given, 3)


def test_one_number_for_all():
    np.testing.assert_array_equal(weights_of(2.0, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(weights_of(None, 2), [1.0, 1.0])


@pytest.mark.parametrize("class_weight", ["even", 3, [1.0, 2.0]])
def test_a_class_weight_that_is_none(class_weight):
    model = BayesianTreeClassifier(class_weight=class_weight)
    with pytest.raises(ValueError, match="class_weight must be a dict"):
        model.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_metadata_routing(table):
    X, y, times = table
    with sklearn.config_context(enable_metadata_routing=True):
        model = BayesianTreeClassifier(method="smc", n_chains=2, n_draws=20, random_state=0)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(model, X, y, cv=2, params={"sample_weight": times + 1})
        assert len(found["test_score"]) == 2
