"""The model's scale: exact where arithmetic is exact, finite wherever the input is."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.inputs.preprocess import learn

EPSILON = np.finfo(float).eps


@pytest.fixture
def data(rng):
    """Non-trivial values on a dyadic grid: sums and powers of two lose no digit."""
    return rng.integers(-500, 500, size=(40, 3)) / 64.0


def test_the_training_data_fill_the_unit_interval(data):
    unit = learn(data, None).to_unit(data)
    assert unit.shape == (3, 40)
    assert unit.flags.c_contiguous
    np.testing.assert_array_equal(unit.min(axis=1), 0.0)
    np.testing.assert_array_equal(unit.max(axis=1), 1.0)


@pytest.mark.parametrize(
    ("scale", "shift"), [(2.0**40, 0.0), (2.0**-900, 0.0), (1.0, 3.0), (8.0, -7.0)]
)
def test_exact_changes_of_units_leave_no_trace(data, scale, shift):
    np.testing.assert_array_equal(
        learn(data * scale + shift, None).to_unit(data * scale + shift),
        learn(data, None).to_unit(data),
    )


@pytest.mark.parametrize(
    ("scale", "shift"), [(2.54, 0.0), (5 / 9, -32 * 5 / 9), (1e-300, 0.0), (1e299, 0.0)]
)
def test_other_changes_of_units_leave_rounding(data, scale, shift):
    changed = data * scale + shift
    before, after = learn(data, None), learn(changed, None)
    # Each of x, minimum and maximum is rounded to half a unit in the last place, at most three
    # times (product, sum, difference), relative to the span.
    size = np.abs(changed).max(axis=0)[before.used] / after.span
    error = np.abs(after.to_unit(changed) - before.to_unit(data))
    assert (error <= 6 * EPSILON * (1 + size[:, None])).all()


@pytest.mark.parametrize("magnitude", [5e-324, 1e-310, 1e-300, 1.0, 1e300])
def test_no_magnitude_overflows(magnitude):
    X = np.array([[0.0], [magnitude], [magnitude]])
    y = np.array([-magnitude, magnitude, 0.0])
    preprocessing = learn(X, None, y=y)
    np.testing.assert_array_equal(preprocessing.to_unit(X), [[0.0, 1.0, 1.0]])
    assert np.isfinite(preprocessing.y_to_model(y)).all()
    assert np.isfinite(preprocessing.y_to_user([-3.0, 3.0])).all()
    far = preprocessing.to_unit(np.array([[1.7e308], [-1.7e308]]))
    assert np.isfinite(far).all()


def test_rows_outside_the_training_range_stay_outside():
    preprocessing = learn(np.array([[0.0], [4.0]]), None)
    np.testing.assert_array_equal(preprocessing.to_unit([[-4.0], [8.0]]), [[-1.0, 2.0]])


def test_constant_columns_are_named_and_ignored(data):
    data = np.column_stack([data, np.full(40, 7.0)])
    with pytest.warns(UserWarning, match="ignoring constant columns: weight"):
        preprocessing = learn(data, ["a", "b", "c", "weight"])
    np.testing.assert_array_equal(preprocessing.used, [0, 1, 2])
    assert preprocessing.used_names == ("a", "b", "c")
    assert preprocessing.to_unit(data).shape == (3, 40)


def test_only_constant_columns_are_an_error():
    with pytest.raises(ValueError, match="every column of X is constant"):
        learn(np.ones((5, 2)), None)


def test_a_range_that_overflows_is_an_error():
    with pytest.raises(ValueError, match="overflows, rescale them: height"):
        learn(np.array([[-1.7e308, 0.0], [1.7e308, 1.0]]), ["height", "b"])


def test_thresholds_go_back_to_the_users_units():
    preprocessing = learn(np.array([[0.0, 10.0], [1.0, 30.0]]), None)
    assert preprocessing.threshold_to_user(1, 0.25) == 15.0


def test_targets_are_standardised_with_the_population_sd(rng):
    y = rng.normal(50.0, 8.0, size=200)
    preprocessing = learn(rng.normal(size=(200, 1)), None, y=y)
    model = preprocessing.y_to_model(y)
    assert abs(model.mean()) < 200 * EPSILON * np.abs(y).max() / y.std()
    assert model.std() == pytest.approx(1.0, rel=200 * EPSILON)
    np.testing.assert_allclose(preprocessing.y_to_user(model), y, rtol=4 * EPSILON * 10)
    assert preprocessing.sd_to_user(1.0) == pytest.approx(y.std(), rel=200 * EPSILON)


def test_raw_targets_are_left_alone(rng):
    y = rng.normal(50.0, 8.0, size=20)
    preprocessing = learn(rng.normal(size=(20, 1)), None, y=y, standardize=False)
    assert (preprocessing.y_mean, preprocessing.y_sd) == (0.0, 1.0)
    np.testing.assert_array_equal(preprocessing.y_to_model(y), y)
    with pytest.raises(ValueError, match=r"1e\+100 with standardize=False"):
        learn(rng.normal(size=(20, 1)), None, y=1e200 * y, standardize=False)


def test_a_constant_target_is_said(rng):
    with pytest.warns(UserWarning, match="target is constant"):
        preprocessing = learn(rng.normal(size=(4, 1)), None, y=np.full(4, 3.0))
    assert (preprocessing.y_mean, preprocessing.y_sd) == (3.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([[1.0, 2.0]], "expected 3 columns"), ([1.0, 2.0, 3.0], "expected 3 columns"),
     ([[1.0, np.inf, 2.0]], "infinity")],
)  # fmt: skip
def test_rows_that_do_not_fit_are_an_error(data, rows, message):
    with pytest.raises(ValueError, match=message):
        learn(data, None).to_unit(rows)


def test_a_table_must_have_the_training_columns(data):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(data, columns=["a", "b", "c"])
    preprocessing = learn(data, ["a", "b", "c"])
    np.testing.assert_array_equal(preprocessing.to_unit(table), preprocessing.to_unit(data))
    with pytest.raises(ValueError, match="in this order"):
        preprocessing.to_unit(table[["b", "a", "c"]])
