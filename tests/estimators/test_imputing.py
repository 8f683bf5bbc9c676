"""Fits whose rules impute missing cells: what switches it on, and that runs stay what they are."""

from __future__ import annotations

import joblib
import numpy as np
import pandas
import pytest
from sklearn.base import clone

import hamiltree
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import CGM, HMCDF, HMCDFI, SMC, WU
from hamiltree.posterior import Posterior

from ..support.configuring import changed
from ..support.resuming import arrays_of, same_arrays

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SHORT = {"n_chains": 2, "n_warmup": 30, "n_draws": 20, "random_state": 1}


@pytest.fixture(scope="module")
def table():
    """Two columns of which one follows the other, and cells removed at random; a category."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=160)
    X = pandas.DataFrame(
        {
            "size": size,
            "mass": 3 * size + 0.2 * rng.normal(size=160),
            "site": rng.choice(["North", "South"], 160),
        }
    )
    y = np.where(size > 0, 2.0, -2.0) + 0.3 * rng.normal(size=160)
    X[["size", "mass"]] = X[["size", "mass"]].mask(rng.random((160, 2)) < 0.3)
    return X, y


def draws_of(model):
    return arrays_of(model.posterior_.draws)


def test_by_default_missing_cells_are_imputed(table):
    X, y = table
    model = BayesianTreeRegressor(**SHORT).fit(X, y)
    draws = model.posterior_.draws
    np.testing.assert_array_equal(draws.kinds, [-2, -2, 2])
    assert (draws.levels[draws.feature < 2] == 2).any()
    gone = X.loc[X["size"].isna() & X["mass"].notna()]
    assert len(gone) > 20
    # the sign of the mass, which the other column tells, tells the size
    predicted = model.predict(gone.assign(size=np.nan))
    assert (np.sign(predicted) == np.sign(gone["mass"])).mean() > 0.85


@pytest.mark.parametrize(
    ("method", "h"),
    [
        (HMCDF(impute=False), None),
        (HMCDF(), 0),
        (HMCDF(impute=False), 0),
        (HMCDFI(), None),
        (CGM(), None),
        (WU(), None),
        (SMC(), None),
    ],
)
def test_nothing_is_imputed_with_other_methods_and_hard_splits(method, h, table):
    X, y = table
    given = SHORT if method.name != "smc" else {**SHORT, "n_warmup": None}
    model = BayesianTreeRegressor(method=method, h=h, **given).fit(X, y)
    assert model.posterior_.preprocessing.imputation is None
    kinds = model.posterior_.draws.kinds
    assert kinds is None or kinds.min() == -1


def test_hard_splits_have_the_same_draws_with_and_without(table):
    """With h = 0 the field says nothing: files of older versions have it either way."""
    X, y = table
    one, other = (
        BayesianTreeRegressor(method=HMCDF(impute=impute), h=0, **SHORT).fit(X, y)
        for impute in (True, False)
    )
    assert same_arrays(draws_of(one), draws_of(other))


def test_complete_tables_have_the_same_draws_with_and_without(table):
    X, y = table[0].fillna({"size": 0.0, "mass": 0.0}), table[1]
    one, other = (
        BayesianTreeRegressor(method=HMCDF(impute=impute), **SHORT).fit(X, y)
        for impute in (True, False)
    )
    assert same_arrays(draws_of(one), draws_of(other))
    assert one.posterior_.preprocessing.imputation is None


def test_a_cell_that_training_always_had_goes_both_ways(table, rng):
    X, y = table
    X = X.assign(size=X["size"].fillna(X["mass"] / 3).fillna(0.0), mass=rng.permutation(X["mass"]))
    model = BayesianTreeRegressor(method=HMCDF(min_leaves=2), **SHORT).fit(X, y)
    scale = model.posterior_.preprocessing
    np.testing.assert_array_equal(model.posterior_.draws.kinds, [0, -2, 2])
    gone = X.head(1).assign(size=np.nan, mass=np.nan)
    filled = scale.imputed(scale.rows(gone))[0]
    assert np.isnan(filled[0])
    assert np.isfinite(filled[1:]).all()
    root = model.best_tree().to_dict()
    assert root["feature"] == "size"
    assert "missing" not in root
    assert model.explain(gone).steps[0].probability == 0.5


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_files_predict_the_same(dtype, table, tmp_path):
    X, y = table
    model = BayesianTreeRegressor(**SHORT, dtype=dtype).fit(X, y)
    model.save(tmp_path / "model.nc")
    back = hamiltree.load(tmp_path / "model.nc")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.posterior_.configuration.method.impute is True
    assert Posterior.load(tmp_path / "model.nc").best_tree().to_text()


def test_single_precision_predicts_almost_the_same(table):
    X, y = table
    model = BayesianTreeRegressor(**SHORT).fit(X, y)
    post = model.posterior_
    rows = post.preprocessing.rows(X)
    scale = post.preprocessing.__class__(**{**vars(post.preprocessing), "dtype": "float32"})
    single = Posterior(post.draws, post.info, scale, post.configuration)
    np.testing.assert_allclose(single.predict_mean(rows), post.predict_mean(rows), atol=1e-3)


# ------------------------------------------------------------------ runs


def test_threads_and_processes_make_the_same_draws(table):
    X, y = table
    one = BayesianTreeRegressor(**SHORT, n_jobs=1).fit(X, y)
    two = BayesianTreeRegressor(**SHORT, n_jobs=2).fit(X, y)
    assert same_arrays(draws_of(one), draws_of(two))
    with joblib.parallel_config("loky", n_jobs=2):
        there = BayesianTreeRegressor(**SHORT).fit(X, y)
    assert same_arrays(draws_of(one), draws_of(there))
    np.testing.assert_array_equal(one.predict(X), there.predict(X))


def test_runs_go_on(table, tmp_path):
    """From a checkpoint, and from the same object."""
    X, y = table
    longer = SHORT | {"n_draws": 35}
    whole = BayesianTreeRegressor(**longer).fit(X, y)
    BayesianTreeRegressor(**SHORT, checkpoint=tmp_path / "run.nc").fit(X, y)
    on = BayesianTreeRegressor(**longer, checkpoint=tmp_path / "run.nc").fit(X, y)
    assert same_arrays(draws_of(on), draws_of(whole))
    model = BayesianTreeRegressor(**SHORT, warm_start=True).fit(X, y)
    model.set_params(n_draws=35).fit(X, y)
    assert same_arrays(draws_of(model), draws_of(whole))


def test_another_treatment_of_missing_cells_is_another_run(table, tmp_path):
    X, y = table
    path = tmp_path / "run.nc"
    BayesianTreeRegressor(**SHORT, checkpoint=path).fit(X, y)
    other = BayesianTreeRegressor(method=HMCDF(impute=False), **SHORT, checkpoint=path)
    with pytest.raises(ValueError, match="impute was True and is False"):
        other.fit(X, y)


@pytest.mark.parametrize("estimator", [BayesianTreeRegressor, BayesianTreeClassifier])
def test_whole_weights_give_the_draws_of_repeated_rows(estimator, table, rng):
    X, y = table
    y = y if estimator is BayesianTreeRegressor else np.where(y > 0, "high", "low")
    times = rng.integers(0, 3, len(y))
    again = rng.permutation(np.repeat(np.arange(len(y)), times))
    one = estimator(**SHORT).fit(X, y, sample_weight=times)
    other = estimator(**SHORT).fit(X.iloc[again], y[again])
    for name in ("threshold", "levels", "leaf", "log_posterior", "size"):
        np.testing.assert_array_equal(draws_of(one)[name], draws_of(other)[name])
    rows = one.posterior_.preprocessing.rows(X)
    for model in (one, other):
        found = model.posterior_.preprocessing.imputed(rows)
        np.testing.assert_array_equal(found, one.posterior_.preprocessing.imputed(rows))


def test_fractional_weights_fit(table, rng):
    X, y = table
    model = BayesianTreeRegressor(**SHORT).fit(X, y, sample_weight=rng.uniform(0.1, 2, len(y)))
    assert np.isfinite(model.predict(X)).all()


def test_the_field_is_a_parameter_like_others(table):
    model = BayesianTreeRegressor(method=HMCDF(impute=False))
    assert model.get_params()["method__impute"] is False
    assert clone(model).set_params(method__impute=True).method.impute is True
    with pytest.raises(ValueError, match="impute must be"):
        BayesianTreeRegressor(method=HMCDF(impute="always"), **SHORT).fit(*table)
    post = BayesianTreeRegressor(**SHORT).fit(*table).posterior_
    assert changed(post.configuration, impute=False).method.impute is False
