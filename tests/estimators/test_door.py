"""Rows, targets and names of the kinds that users have: read, or refused with a clear message."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas
import pytest

import hamiltree
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import HMCDFI

SHORT = {"n_chains": 2, "n_warmup": 20, "n_draws": 20, "random_state": 0}
N = 40


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age, sex = rng.permutation(N) + 20.0, rng.choice(["female", "male"], N)
    sex = np.where(rng.random(N) < 0.2, None, sex)
    return pandas.DataFrame({"age": age, "sex": sex}), np.where(age > 40, "old", "young")


@pytest.fixture(scope="module")
def fitted(table):
    return BayesianTreeClassifier(method="cgm", **SHORT).fit(*table)


@pytest.mark.parametrize("gone", [None, np.nan, pandas.NA])
def test_a_row_keeps_its_missing_cells_beside_texts(gone, fitted):
    """NumPy makes texts of all cells of such a row, "nan" of a missing one."""
    for row in ({"age": 41, "sex": gone}, pandas.Series({"age": 41, "sex": gone}), [41, gone]):
        assert fitted.explain(row).row == {"age": 41.0, "sex": "(missing)"}
    assert fitted.explain(["41", "male"]).row == {"age": 41.0, "sex": "male"}
    assert fitted.explain([gone, "male"]).row == {"age": None, "sex": "male"}


def test_integer_names_are_kept(table):
    """scikit-learn forgets them, and would read columns in another order without a word."""
    X = pandas.DataFrame({3: table[0]["age"], 1: np.arange(N) % 7})
    model = BayesianTreeClassifier(method="cgm", **SHORT).fit(X, table[1])
    assert model.posterior_.preprocessing.feature_names == ("3", "1")
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), expected)
    assert model.explain({1: 2, 3: 50}).row == {"3": 50.0, "1": 2.0}
    for other in (X[[1, 3]], X.rename(columns={3: "age", 1: "day"})):
        with pytest.raises(ValueError, match=r"columns must be \['3', '1'\] in this order"):
            model.predict(other)


def test_labels_of_any_type_are_saved(table, tmp_path):
    """Categories of intervals, as pandas' cut makes, and of dates are kept as texts."""
    age = table[0]["age"]
    X = pandas.DataFrame(
        {
            "size": np.arange(N) % 5,
            "band": pandas.cut(age, [0, 30, 45, 90]),
            "day": pandas.Categorical([pandas.Timestamp(2020, 1, 1 + k % 3) for k in range(N)]),
        }
    )
    model = BayesianTreeClassifier(method="cgm", **SHORT).fit(X, table[1])
    columns = model.posterior_.preprocessing.columns
    assert columns[1].order == ("(0, 30]", "(30, 45]", "(45, 90]")
    assert columns[2].levels[0] == "2020-01-01 00:00:00"
    model.save(tmp_path / "m.nc")
    again = hamiltree.load(tmp_path / "m.nc")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.explain(X.iloc[0]).row["band"] == model.explain(X.iloc[0]).row["band"]
    known = pandas.DataFrame({"size": [1], "band": ["(0, 30]"], "day": [None]})
    found = model.explain(known)
    assert found.row["band"] == "(0, 30]"
    assert "band from (0, 30] to (45, 90]: old" in str(found)
    assert "? yes ((0, 30]" in str(found)


def test_decimals_and_missing_values_of_pandas_in_arrays_are_numbers(table):
    prices = pandas.DataFrame({"price": [Decimal(k) / 2 for k in range(N)], "day": np.arange(N)})
    model = BayesianTreeClassifier(method="cgm", **SHORT).fit(prices, table[1])
    assert model.posterior_.training.X[3, 0] == 1.5
    cells = prices.astype(float).to_numpy(dtype=object)
    cells[0, 0] = pandas.NA
    model = BayesianTreeClassifier(method="cgm", **SHORT).fit(cells, table[1])
    assert np.isnan(model.posterior_.training.X[0, 0])
    assert model.predict(cells[:1]).shape == (1,)


DATE = datetime.date(2020, 1, 1)


def polars_series(values):
    return pytest.importorskip("polars").Series(values)


def arrow_array(values):
    return pytest.importorskip("pyarrow").array(values)


@pytest.mark.parametrize("kind", [list, pandas.to_datetime, polars_series, arrow_array])
def test_a_target_of_dates_is_refused(kind, table):
    for estimator in (BayesianTreeClassifier, BayesianTreeRegressor):
        with pytest.raises(ValueError, match="y holds dates or times: turn them into numbers"):
            estimator(**SHORT).fit(table[0], kind([DATE] * N))


@pytest.mark.parametrize("kind", [list, np.array, pandas.Series, polars_series, arrow_array])
def test_a_target_of_texts_is_refused_by_regression(kind, table):
    X, y = table
    with pytest.raises(ValueError, match=r"y holds text, such as '\w+', but regression"):
        BayesianTreeRegressor(**SHORT).fit(X, kind(y.tolist()))


def test_a_target_in_a_table_of_one_column(table):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, y = table
    for target in (polars.DataFrame({"y": y}), pyarrow.table({"y": y})):
        model = BayesianTreeClassifier(method="cgm", **SHORT)
        with pytest.warns(Warning, match="1d array was expected"):
            model.fit(X, target)
        assert model.classes_.tolist() == ["old", "young"]


def test_tables_that_are_none(table):
    polars = pytest.importorskip("polars")
    X, y = table
    with pytest.raises(ValueError, match="lazy table"):
        BayesianTreeClassifier(**SHORT).fit(polars.from_pandas(X).lazy(), y)
    with pytest.raises(ValueError, match="X has no columns"):
        BayesianTreeClassifier(**SHORT).fit(X[[]], y)


def test_class_weights_and_labels_without_an_order():
    y = np.array(["a", 1] * 5, dtype=object)
    with pytest.raises(TypeError, match="class labels of different types have no order"):
        BayesianTreeClassifier(class_weight="balanced").fit(np.arange(10.0)[:, None], y)


def test_means_for_missing_cells_follow_the_weights_of_classification_too(rng):
    X = rng.random((N, 2))
    X[:9, 0] = np.nan
    weights = rng.random(N)
    model = BayesianTreeClassifier(method=HMCDFI(replicas=1), **SHORT)
    scale = model.fit(X, X[:, 1] > 0.5, weights).posterior_.preprocessing
    there = X[9:, 0]
    expected = (np.average(there, weights=weights[9:]) - there.min()) / np.ptp(there)
    assert scale.fill[0] == pytest.approx(expected, rel=1e-12)
