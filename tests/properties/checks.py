"""What must hold of a result, an error and a warning, whatever the data."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas
from hypothesis import event
from sklearn.exceptions import ConvergenceWarning

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor

FAR_SDS = 1000.0
"""From the data: a leaf's mean is within its noise of them, whose prior has thin enough tails that
a thousand sd happen once in some 1e9 trees."""

CLEAR_ERRORS = re.compile(
    "|".join(
        [
            # ours
            r"every column of X is constant: there is nothing to split on",
            r"the range of these columns overflows, rescale them: ",
            r"\|y\| must be at most 1e\+\d+ with standardize=",
            r"needs at least 2 classes; got 1 class",
            r"several columns of X have the same name, rename them: ",
            r"the columns of X have multi-level names: give each column a single name",
            r"[Xy] holds dates or times: turn them into numbers",
            r"[Xy] has masked cells: fill them in",
            r"X holds text in column \d+ .*: say which columns are categories",
            r"y has missing or infinite values: leave these rows out",
            r"y holds text, such as .*, but regression predicts numbers: for classes there is ",
            r"holds whole numbers beyond the range of floating point: rescale them",
            r"class labels of 2\*\*53 and more cannot be told apart",
            r"class labels of different types have no order: ",
            r"the columns must be .* in this order, got ",
            r"expected \d+ columns in a 2-d table, got shape ",
            r"the rows to predict contain (NaN or )?infinity",
            # scikit-learn's
            r"X has \d+ features, but \w+ is expecting \d+ features as input",
            r"The feature names should match those that were passed during fit",
            r"Feature names are only supported if all input features have string names",
            r"Found array with \d+ (sample|feature)\(s\)",
            r"Found array with dim 3",
            r"Expected 2D array, got (1D|scalar) array instead",
            r"Expected a 2-dimensional container",
            r"Found input variables with inconsistent numbers of samples",
            r"Input ([Xy] )?contains (NaN|infinity)",
            r"Complex data not supported",
            r"Sparse data was passed",
            r"estimator requires y to be passed, but the target y is None",
            r"y should be a 1d array, got an array of shape",
            r"Unknown label type: ",
            r"You appear to be using a legacy multi-label data representation",
            r"Support for labels represented as bytes is not supported",
            r"columns that cannot be used as they are: ",
            # Python's, NumPy's and pandas', which name the cell
            r"could not convert string to float: ",
            r"float\(\) argument must be a string or a real number, not ",
            r"setting an array element with a sequence",
            r"Cannot cast array data from dtype\(\[.*\]\) to dtype\('float64'\)",
        ]
    )
)
"""What an error may say; anything else is to be looked at, and made clear where it is not."""

KNOWN_WARNINGS = re.compile(
    r"ignoring constant columns: "
    r"|the target is constant: every prediction will be near it"
    r"|The number of unique classes is greater than 50% of the number of samples"
    r"|A column-vector y was passed when a 1d array was expected"
    r"|X does not have valid feature names, but \w+ was fitted with feature names"
    r"|X has feature names, but \w+ was fitted without feature names"
)


@contextmanager
def only_known_warnings() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            assert KNOWN_WARNINGS.match(str(warning.message)), f"{warning.category}: {warning}"


def refused(action, *arguments) -> bool:
    """Whether the action ends in a clear error; every other error is a failure."""
    with only_known_warnings():
        try:
            action(*arguments)
        except (ValueError, TypeError) as error:
            assert_clear(error)
            return True
    event("accepted")
    return False


def assert_clear(error: Exception) -> None:
    assert type(error) in (ValueError, TypeError), repr(error)
    assert CLEAR_ERRORS.search(str(error)), repr(error)
    event(f"refused: {str(error)[:40]}")


def assert_valid(model, rows) -> None:
    """All that the estimator says of these rows has the right shape, is finite and makes sense."""
    n = len(rows)
    sampled = model.sample_predictive(rows, 3, random_state=0)
    assert sampled.shape == (3, n)
    if isinstance(model, BayesianTreeClassifier):
        k = len(model.classes_)
        probability = model.predict_proba(rows)
        assert probability.shape == (n, k)
        assert ((probability >= 0) & (probability <= 1)).all()
        np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-12)
        interval = model.predict_interval(rows)
        assert interval.shape == (n, k, 2)
        assert ((interval >= 0) & (interval <= 1)).all()
        labels = model.predict(rows)
        assert labels.shape == (n,)
        assert np.isin(labels, model.classes_).all()
        assert np.isin(sampled, model.classes_).all()
    else:
        mean, sd = model.predict(rows, return_std=True)
        np.testing.assert_allclose(
            model.predict(rows), mean, rtol=1e-6, atol=1e-6 * sd.max(initial=0)
        )
        assert mean.shape == sd.shape == (n,)
        assert np.isfinite(mean).all()
        assert np.isfinite(sd).all()
        assert (sd >= 0).all()
        assert np.isfinite(sampled).all()
        y, scale = model.posterior_.training.y, model.posterior_.preprocessing
        with np.errstate(over="ignore"):
            assert (np.abs(mean / scale.y_sd - scale.y_mean / scale.y_sd) <= FAR_SDS + 1).all()
        assert np.isfinite(y).all()
        interval = model.predict_interval(rows)
        assert interval.shape == (n, 2)
    assert np.isfinite(interval).all()
    assert (interval[..., 0] <= interval[..., 1]).all()


def assert_nothing_changed(model, X, y) -> None:
    """The training data are the user's, cell by cell, as Python itself reads them.

    Of categories, which are coded, the number of levels.
    """
    cells = X.astype(object).to_numpy() if hasattr(X, "columns") else np.asarray(X, dtype=object)
    columns = model.posterior_.preprocessing.columns
    for j, found in enumerate(model.posterior_.training.X.T):
        if columns and columns[j].levels is not None:
            assert len(np.unique(found[np.isfinite(found)])) <= columns[j].n_levels
        else:
            expected = [np.nan if pandas.isna(cell) else float(cell) for cell in cells[:, j]]
            np.testing.assert_array_equal(found, expected)
    target = y.to_numpy() if isinstance(y, pandas.DataFrame) else y
    target = [cell[0] if isinstance(cell, np.ndarray | list) else cell for cell in target]
    if isinstance(model, BayesianTreeRegressor):
        np.testing.assert_array_equal(model.posterior_.training.y, [float(v) for v in target])
    else:
        assert len(model.classes_) == len(set(target))
        assert (model.classes_[model.posterior_.training.y] == target).all()


def rows_to_predict(X: np.ndarray) -> np.ndarray:
    """Seen rows, their middle, and rows as far away as numbers go."""
    far = np.finfo(float).max
    middle = (X.min(axis=0) / 2 + X.max(axis=0) / 2)[None]
    ends = np.array([[far] * X.shape[1], [-far] * X.shape[1], [0.0] * X.shape[1]])
    return np.vstack([X, middle, ends])
