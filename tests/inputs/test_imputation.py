"""Numbers imputed from the other cells of a row, against formulas and simulated truths."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.core.tree.kinds import IMPUTED_UNIT, MISSING, MISSING_BELOW
from hamiltree.inputs import imputation
from hamiltree.inputs.columns import Column, coded
from hamiltree.inputs.imputation import RESOLUTION, Imputation, learn_imputation
from hamiltree.inputs.preprocess import learn

NUMBERS = np.zeros(3, np.int64)
MEAN = np.array([0.5, 0.4, 0.6])
COVARIANCE = 0.01 * np.array([[1.0, 0.8, -0.5], [0.8, 1.0, -0.3], [-0.5, -0.3, 1.0]])


def simulated(rng, n, gone=0.2):
    """Complete columns [3, n] of a known normal distribution, and the same with cells removed."""
    complete = rng.multivariate_normal(MEAN, COVARIANCE, n).T
    return complete, np.where(rng.random(complete.shape) < gone, np.nan, complete)


def conditional_mean(by: Imputation, row: np.ndarray) -> np.ndarray:
    """The textbook formula, for one row of numbers."""
    gone = np.isnan(row)
    inverse = np.linalg.inv(by.covariance[np.ix_(~gone, ~gone)])
    filled = row.copy()
    filled[gone] = by.mean[gone] + by.covariance[np.ix_(gone, ~gone)] @ inverse @ (
        row[~gone] - by.mean[~gone]
    )
    return filled


def assert_same(one: Imputation, other: Imputation) -> None:
    np.testing.assert_array_equal(one.place, other.place)
    np.testing.assert_array_equal(one.code, other.code)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-7, atol=1e-12)


# ------------------------------------------------------------------ the distribution


def test_em_recovers_mean_and_covariance(rng):
    """Within 5 standard errors, those of complete data, and half as much for the missing cells.

    Standard errors: sd / sqrt(n) of a mean, sqrt((v_ij ** 2 + v_ii v_jj) / n) of a covariance.
    """
    n = 4000
    _, columns = simulated(rng, n)
    by = learn_imputation(columns, NUMBERS)
    np.testing.assert_array_equal(by.place, [0, 1, 2])
    np.testing.assert_array_equal(by.code, -1)
    variance = np.diag(COVARIANCE)
    limit = 7.5 * np.sqrt(variance / n)
    assert (np.abs(by.mean - MEAN) <= limit).all()
    limit = 7.5 * np.sqrt((COVARIANCE**2 + np.outer(variance, variance)) / n)
    assert (np.abs(by.covariance - COVARIANCE) <= limit).all()


def test_em_has_converged(rng, monkeypatch):
    """Ten times as many steps change the imputed numbers by a fiftieth of an sd at most."""
    _, columns = simulated(rng, 500, gone=0.3)
    few = learn_imputation(columns, NUMBERS).fill(columns)
    monkeypatch.setattr(imputation, "STEPS", 100)
    many = learn_imputation(columns, NUMBERS).fill(columns)
    assert np.abs(few - many).max() < 0.02 * np.sqrt(COVARIANCE[0, 0])


def test_complete_columns_have_their_moments_shrunk_to_the_diagonal(rng):
    complete, _ = simulated(rng, 50)
    by = learn_imputation(complete, NUMBERS)
    np.testing.assert_allclose(by.mean, complete.mean(axis=1))
    sample = np.cov(complete, ddof=0)
    shrunk = (50 * sample + 3 * np.diag(np.diag(sample))) / 53
    np.testing.assert_allclose(by.covariance, shrunk, rtol=1e-9, atol=1e-10)


def test_one_step_of_em_is_that_of_the_textbook(rng, monkeypatch):
    """Little and Rubin, with the prior rows added; written with a loop over the rows."""
    _, columns = simulated(rng, 40)
    monkeypatch.setattr(imputation, "STEPS", 1)
    by = learn_imputation(columns, NUMBERS)
    mean = np.nanmean(columns, axis=1)
    start = np.diag(np.nanvar(columns, axis=1))
    filled, spread = [], 3 * start
    for row in columns.T:
        gone = np.isnan(row)
        filled.append(conditional_mean(Imputation(by.place, by.code, mean, start), row))
        spread = spread + start * np.outer(gone, gone)  # a diagonal: no cell tells of another
    filled = np.array(filled)
    centred = filled - filled.mean(axis=0)
    np.testing.assert_allclose(by.mean, filled.mean(axis=0))
    np.testing.assert_allclose(by.covariance, (spread + centred.T @ centred) / 43, rtol=1e-9)


def test_the_target_has_no_part_in_it(rng):
    _, columns = simulated(rng, 60)
    one = learn(columns.T, y=rng.normal(size=60), impute=True)
    other = learn(columns.T, classes=np.array(["a", "b"]), impute=True)
    np.testing.assert_array_equal(one.to_unit(columns.T), other.to_unit(columns.T))


# ------------------------------------------------------------------ imputed numbers


def test_conditional_means_are_those_of_the_formula(rng):
    _, columns = simulated(rng, 300, gone=0.4)
    by = learn_imputation(columns, NUMBERS)
    expected = np.array([conditional_mean(by, row) for row in columns.T]).T
    assert ((expected > 0) & (expected < 1)).all()
    found = by.fill(columns)
    np.testing.assert_allclose(found, expected, atol=0.5 / RESOLUTION + 1e-12)
    there = ~np.isnan(columns)
    np.testing.assert_array_equal(found[there], columns[there])
    parts = found[~there] * RESOLUTION
    np.testing.assert_array_equal(parts, np.round(parts))


def test_correlated_columns_are_imputed_better_than_by_their_means(rng):
    """Correlations of 0.8 and 0.5: shares of 0.36 and 0.75 of the variance are left, or more
    where the other cell is missing, too.
    """
    complete, columns = simulated(rng, 4000)
    found = learn_imputation(columns, NUMBERS).fill(columns)
    for f, left in enumerate((0.6, 0.6, 0.9)):
        gone = np.isnan(columns[f])
        error = np.mean((found[f] - complete[f])[gone] ** 2)
        assert error < left * np.mean((np.nanmean(columns[f]) - complete[f])[gone] ** 2)


def test_a_row_without_any_cell_has_the_means(rng):
    _, columns = simulated(rng, 100)
    columns[:, 7] = np.nan
    by = learn_imputation(columns, NUMBERS)
    np.testing.assert_allclose(by.fill(columns)[:, 7], by.mean, atol=1 / RESOLUTION)


def test_a_single_column_has_its_mean():
    columns = np.array([[0.0, 1.0, np.nan, 0.5, 0.9]])
    by = learn_imputation(columns, np.zeros(1, np.int64))
    assert by.fill(columns)[0, 2] == pytest.approx(0.6, abs=1 / RESOLUTION)


def test_imputed_numbers_stay_within_the_training_range(rng):
    _, columns = simulated(rng, 100)
    by = learn_imputation(columns, NUMBERS)
    far = np.array([[np.nan, 1e30, 0.5], [np.nan, -1e30, 0.5], [np.nan, 1e30, -1e30]]).T
    found = by.fill(far)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0], [1.0, 0.0, 1.0])


def test_the_order_of_rows_changes_no_imputed_number(rng):
    _, columns = simulated(rng, 400)
    order = rng.permutation(400)
    one = learn_imputation(columns, NUMBERS).fill(columns)
    other = learn_imputation(columns[:, order], NUMBERS).fill(columns[:, order])
    np.testing.assert_array_equal(one[:, order], other)


def test_a_row_has_the_same_numbers_alone(rng):
    _, columns = simulated(rng, 200)
    by = learn_imputation(columns, NUMBERS)
    together = by.fill(columns)
    alone = np.hstack([by.fill(columns[:, r : r + 1]) for r in range(200)])
    np.testing.assert_array_equal(together, alone)


# ------------------------------------------------------------------ weights


def test_a_row_of_weight_two_is_the_row_twice(rng):
    _, columns = simulated(rng, 80)
    weights = rng.integers(0, 4, 80).astype(float)
    by = learn_imputation(columns, NUMBERS, weights)
    repeated = np.repeat(columns, weights.astype(int), axis=1)
    assert_same(by, learn_imputation(repeated, NUMBERS))
    np.testing.assert_array_equal(
        by.fill(columns), learn_imputation(repeated, NUMBERS).fill(columns)
    )


def test_rows_of_weight_zero_are_ignored(rng):
    _, columns = simulated(rng, 80)
    weights = np.ones(80)
    weights[::3] = 0.0
    odd = columns.copy()
    odd[:, ::3] = 100.0
    by = learn_imputation(odd, NUMBERS, weights)
    assert_same(by, learn_imputation(columns[:, weights > 0], NUMBERS))


def test_weights_of_one_change_nothing(rng):
    _, columns = simulated(rng, 80)
    assert_same(learn_imputation(columns, NUMBERS), learn_imputation(columns, NUMBERS, np.ones(80)))


# ------------------------------------------------------------------ categories


def test_frequent_levels_tell_of_missing_numbers(rng):
    """Of a category the share of a level, and of a number its mean beside the level."""
    n = 3000
    group = rng.choice(3, n, p=[0.6, 0.37, 0.03])
    number = 0.2 + 0.4 * (group == 1) + 0.02 * rng.normal(size=n)
    columns = np.array([number, group.astype(float)])
    columns[0, ::4] = np.nan
    by = learn_imputation(columns, np.array([0, 3]))
    np.testing.assert_array_equal(by.place, [0, 1, 1])
    np.testing.assert_array_equal(by.code, [-1, 0, 1])  # level 2 is too rare
    np.testing.assert_allclose(by.mean[1:], [np.mean(group == 0), np.mean(group == 1)], atol=1e-9)
    found = by.fill(columns)
    np.testing.assert_array_equal(found[1], columns[1])
    for level, mean in enumerate([0.2, 0.6]):
        own = found[0, ::4][group[::4] == level]
        np.testing.assert_allclose(own, mean, atol=0.02)
    # a level that training did not see tells nothing
    assert by.fill(np.array([[np.nan], [np.nan]]))[0, 0] == pytest.approx(by.mean[0], abs=1e-6)


def test_a_category_of_rare_levels_has_no_indicator(rng):
    columns = np.array([rng.random(200), np.arange(200) % 40.0])
    columns[0, ::3] = np.nan
    by = learn_imputation(columns, np.array([0, 40]))
    np.testing.assert_array_equal(by.code, [-1])
    assert np.isfinite(by.fill(columns)).all()


def test_missing_cells_of_a_category_are_a_level(rng):
    """Numbers are low where the category is missing, and so are imputed ones."""
    group = rng.integers(0, 3, 600).astype(float)  # 2: missing, beside two levels
    columns = np.array([np.where(group == 2, 0.1, 0.8), group])
    columns[0, ::5] = np.nan
    found = learn_imputation(columns, np.array([0, 3])).fill(columns)
    np.testing.assert_allclose(found[0], np.where(group == 2, 0.1, 0.8), atol=0.02)


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([[0.0, np.nan, 0.0], [0.1, 0.5, 1.0]], id="constant but for missing cells"),
        pytest.param([[0.0, np.nan, np.nan], [np.nan, 0.0, 1.0]], id="never together"),
        pytest.param([[0.0, 1.0, np.nan], [0.0, 1.0, 0.3]], id="the same column twice"),
        pytest.param([[0.0, np.nan], [np.nan, 1.0]], id="two rows"),
        pytest.param([[np.nan, np.nan], [0.0, 1.0]], id="only missing cells"),
    ],
)
def test_nothing_is_infinite_or_missing(columns):
    columns = np.array(columns)
    by = learn_imputation(columns, np.zeros(len(columns), np.int64))
    assert np.isfinite(by.mean).all()
    assert np.isfinite(by.covariance).all()
    assert (np.linalg.eigvalsh(by.covariance) > 0).all()
    found = by.fill(columns)
    assert ((found >= 0) & (found <= 1)).all()


def test_more_columns_than_rows(rng):
    columns = rng.random((30, 10))
    columns[rng.random(columns.shape) < 0.3] = np.nan
    by = learn_imputation(columns, np.zeros(30, np.int64))
    assert (np.linalg.eigvalsh(by.covariance) > 0).all()
    assert np.isfinite(by.fill(columns)).all()


def test_many_rows_are_thinned_evenly(rng):
    """20,000 rows, of which every fourth counts; the imputed numbers hardly change."""
    n = 4 * imputation.MOST_ROWS
    _, columns = simulated(rng, n)
    by = learn_imputation(columns, NUMBERS)
    assert_same(by, learn_imputation(columns[:, ::4], NUMBERS))
    other = learn_imputation(columns[:, 1::4], NUMBERS)
    difference = by.fill(columns[:, :500]) - other.fill(columns[:, :500])
    assert np.abs(difference).max() < 0.1 * np.sqrt(COVARIANCE[0, 0])


def test_numbers_that_are_equal_up_to_rounding_tell_nothing(rng):
    """Two rows of 20,000 have another number, and are not among those that count."""
    n = 4 * imputation.MOST_ROWS
    columns = np.array([np.full(n, 0.3), rng.random(n)])
    columns[0, 1:3] = 0.0, 1.0
    columns[1, ::5] = np.nan
    found = learn_imputation(columns, np.zeros(2, np.int64)).fill(
        np.array([[0.3, 0.0, 1.0], [np.nan] * 3])
    )
    np.testing.assert_allclose(found[1], found[1, 0], atol=2 / RESOLUTION)


# ------------------------------------------------------------------ in the preprocessing


@pytest.fixture
def table(rng):
    """Numbers of which two have missing cells, and a category; in the user's units."""
    _, columns = simulated(rng, 120)
    X = np.column_stack([40 + 100 * columns[:2].T, columns[2], rng.integers(0, 2, 120)])
    X[np.isnan(X[:, 2]), 2] = 0.5  # a column without missing cells
    return coded(X)


COLUMNS = (Column(missing=True), Column(missing=True), Column(), Column(levels=("a", "b")))


def learned(table, **options):
    return learn(table, y=np.arange(len(table)), columns=COLUMNS, impute=True, **options)


def test_missing_cells_carry_their_imputed_numbers(table):
    scale = learned(table)
    unit = scale.to_unit(table)
    gone = np.isnan(table.T)
    assert (unit[gone] < MISSING_BELOW).all()
    assert (unit[~gone] > MISSING_BELOW).all()
    number = unit / IMPUTED_UNIT - 1
    columns = np.where(gone, np.nan, unit)
    np.testing.assert_allclose(number[gone], scale.imputation.fill(columns)[gone], atol=1e-12)
    user = scale.imputed(table)
    np.testing.assert_array_equal(user.T[~gone], table.T[~gone])
    back = (scale.minimum[:, None] + scale.span[:, None] * number)[gone]
    np.testing.assert_allclose(user.T[gone], back)
    np.testing.assert_array_equal(scale.kinds.missing, [2, 2, 0, 0])
    np.testing.assert_array_equal(scale.kinds.levels, [0, 0, 0, 2])


def test_cells_that_training_had_stay_missing_without_a_number(table):
    """A column that was complete in training, and an unknown level; others are imputed."""
    scale = learned(table)
    row = coded(np.array([[np.nan, 90.0, np.nan, np.nan]]))
    unit = scale.to_unit(row)[:, 0]
    assert unit[2] == unit[3] == MISSING
    assert IMPUTED_UNIT * 2 <= unit[0] <= IMPUTED_UNIT
    user = scale.imputed(row)[0]
    assert np.isfinite(user[:2]).all()
    assert np.isnan(user[2:]).all()


def test_single_precision_keeps_imputed_numbers(table):
    """To 2 ** -23 of the range: the numbers lie between 1 and 2 when they are stored."""
    double, single = (learned(table, dtype=dtype) for dtype in ("float64", "float32"))
    gone = np.isnan(table.T)
    unit = single.to_unit(table)
    np.testing.assert_array_equal(unit, unit.astype(np.float32))
    found, expected = (scale.to_unit(table)[gone] / IMPUTED_UNIT for scale in (single, double))
    np.testing.assert_allclose(found, expected, atol=2.0**-23)


def test_blocks_of_training_rows_have_the_same_numbers(table, monkeypatch):
    monkeypatch.setattr("hamiltree.inputs.preprocess.ROWS_PER_BLOCK", 7)
    scale = learned(table)
    parts = [block for _, block in scale.columns_of(table).blocks()]
    np.testing.assert_array_equal(np.hstack(parts), scale.to_unit(table))


def test_nothing_is_imputed_where_it_is_not_asked_for_or_nothing_is_missing(table):
    plain = learn(table, y=np.arange(len(table)), columns=COLUMNS)
    assert plain.imputation is None
    assert (plain.to_unit(table)[np.isnan(table.T)] == MISSING).all()
    np.testing.assert_array_equal(plain.kinds.missing, [1, 1, 0, 0])
    np.testing.assert_array_equal(plain.imputed(table), table)
    complete = coded(table[:, 2:])
    assert learn(complete, columns=COLUMNS[2:], impute=True).imputation is None


def test_complete_rows_stay_what_they_are(table):
    """Also if they have a level that training did not see, of a category of rare levels."""
    scale = learned(table)
    row = coded(np.array([[80.0, 90.0, 0.4, 1.0]]))
    assert (scale.to_unit(row) > MISSING_BELOW).all()
    np.testing.assert_array_equal(scale.imputed(row), row)
    rare = (*COLUMNS[:3], Column(levels=tuple(range(40))))
    X = np.array(table)
    X[:, 3] = np.arange(len(X)) % 40
    scale = learn(coded(X), columns=rare, impute=True)
    row[0, 3] = np.nan
    assert scale.to_unit(row)[3, 0] == MISSING


def test_missing_categories_alone_are_not_imputed(rng):
    X = np.column_stack([rng.random(30), rng.integers(0, 3, 30)])
    columns = (Column(), Column(levels=("a", "b"), missing=True))
    assert learn(X, columns=columns, impute=True).imputation is None
