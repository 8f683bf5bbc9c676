"""Whatever data come in, the estimators answer with a valid result or with a clear error."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas
from hypothesis import assume, event
from hypothesis import strategies as st

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior

from ..support.configuring import parameters
from .checks import (
    assert_nothing_changed,
    assert_valid,
    only_known_warnings,
    refused,
    rows_to_predict,
)
from .strategies import (
    LABELS,
    ODD,
    ODD_CONTAINERS,
    SAME_NUMBERS,
    USABLE,
    columns,
    frames,
    holds_for,
    odd_targets,
)

TINY = {"n_chains": 2, "n_warmup": 5, "n_draws": 5, "n_jobs": 1, "random_state": 1}
METHODS = [
    {"method": "hmc-df", "h": 0.0},
    {"method": "hmc-df", "h": 0.05},
    {"method": "hmc-dfi", "h": 0.0},
    {"method": "hmc-dfi", "h": 0.05},
    {"method": "cgm"},
    {"method": "wu"},
    {"method": "smc"},
    {"method": "hmc-df", "h": "learn"},
    {"method": "hmc-df", "dtype": "float32"},
    {"method": "cgm", "dtype": "float32"},
]
ESTIMATORS = [BayesianTreeClassifier, BayesianTreeRegressor]


# ---------------------------------------------------------------------- usable data


@st.composite
def usable_data(draw):
    """A frame that floating point can tell apart, a target of each kind, and a configuration."""
    n = draw(st.integers(2, 12))
    frame = draw(frames(n, USABLE, unique=True))
    numbers = frame.astype(object).astype(float).to_numpy()
    assume((numbers.max(axis=0) > numbers.min(axis=0)).any())
    estimator = draw(st.sampled_from(ESTIMATORS))
    if estimator is BayesianTreeClassifier:
        labels = LABELS[draw(st.sampled_from(sorted(LABELS)))]
        codes = draw(st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n))
        assume(len(set(codes)) > 1)
        y = np.asarray(labels)[codes]
    else:
        y = draw(columns(n, {k: v for k, v in USABLE.items() if k != "huge"}))
        y.index = frame.index
    return frame, numbers, y, estimator(**parameters(**TINY, **draw(st.sampled_from(METHODS))))


@holds_for(usable_data(), few=15, many=500)
def test_usable_data_give_a_valid_result(case):
    frame, numbers, y, model = case
    with only_known_warnings():
        model.fit(frame, y)
        assert_valid(model, rows_to_predict(numbers))
        assert_valid(model, frame)
        assert_valid(model, frame.iloc[:1])
        assert_valid(model, frame.iloc[:0])
        event(f"{type(model).__name__} {model.method}")


@holds_for(usable_data(), few=5, many=150)
def test_a_file_keeps_the_predictions(case):
    frame, numbers, y, model = case
    with only_known_warnings(), tempfile.TemporaryDirectory() as folder:
        model.fit(frame, y)
        rows = rows_to_predict(numbers)
        path = Path(folder) / "model.nc"
        model.posterior_.save(path)
        loaded = Posterior.load(path)
        np.testing.assert_array_equal(
            loaded.predict_mean(rows), model.posterior_.predict_mean(rows)
        )
        classes = loaded.preprocessing.classes
        if classes is not None:
            assert classes.dtype == model.classes_.dtype
            np.testing.assert_array_equal(classes, model.classes_)


# ---------------------------------------------------------------------- what must not matter


@st.composite
def dyadic_data(draw):
    """Numbers in a range where sums and products with powers of two are exact."""
    n, p = draw(st.integers(4, 12)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X = rng.integers(-500, 500, size=(n, p)) / 64.0
    y = rng.permutation(np.arange(n) % draw(st.integers(2, 3)))
    assume((X.max(axis=0) > X.min(axis=0)).all())
    model = draw(st.sampled_from(ESTIMATORS))(
        **parameters(**TINY, **draw(st.sampled_from(METHODS)))
    )
    return X, y, model


def predictions(model, rows) -> np.ndarray:
    if isinstance(model, BayesianTreeClassifier):
        return model.predict_proba(rows)
    return model.predict(rows)


@st.composite
def changes_of_units(draw):
    X, y, model = draw(dyadic_data())
    p = X.shape[1]
    scale = 2.0 ** np.array(draw(st.lists(st.integers(-900, 900), min_size=p, max_size=p)))
    shift = np.array(draw(st.lists(st.integers(-999, 999), min_size=p, max_size=p)))
    return X, y, model, scale, shift, 2.0 ** draw(st.integers(-900, 900))


@holds_for(changes_of_units(), few=5, many=150)
def test_units_of_columns_and_target_change_nothing(case):
    X, y, model, scale, shift, y_scale = case
    with only_known_warnings():
        before = predictions(model.fit(X, y), X)
        moved = (X + shift) * scale
        if isinstance(model, BayesianTreeRegressor):
            after = predictions(model.fit(moved, y * y_scale), moved) / y_scale
        else:
            after = predictions(model.fit(moved, y), moved)
    np.testing.assert_array_equal(after, before)


@st.composite
def containers(draw):
    X, y, model = draw(dyadic_data())
    return X, y, model, draw(st.sampled_from(sorted(SAME_NUMBERS)))


@holds_for(containers(), few=6, many=200)
def test_the_container_of_the_numbers_changes_nothing(case):
    X, y, model, container = case
    wrapped = SAME_NUMBERS[container](X)
    with only_known_warnings():
        before = predictions(model.fit(X, y), X)
        after = predictions(model.fit(wrapped, y), wrapped)
        np.testing.assert_array_equal(after, before)
        if container != "list of Series":  # their rows are no columns
            np.testing.assert_array_equal(model.posterior_.predict_mean(wrapped), before)


@st.composite
def renamed_labels(draw):
    X, y, model = draw(dyadic_data())
    name = draw(st.sampled_from(sorted(LABELS)))
    labels = np.asarray(LABELS[name])
    method = {"method": model.method, "h": model.h}
    return X, y % len(labels), labels, BayesianTreeClassifier(**parameters(**TINY, **method))


@holds_for(renamed_labels(), few=5, many=150)
def test_names_of_classes_change_nothing(case):
    X, codes, labels, model = case
    with only_known_warnings():
        before = model.fit(X, codes).predict_proba(X)
        after = model.fit(X, labels[codes]).predict_proba(X)
        np.testing.assert_array_equal(after, before)
        np.testing.assert_array_equal(model.predict(X), labels[before.argmax(axis=1)])


# ---------------------------------------------------------------------- columns mixed up


@st.composite
def mixed_up_columns(draw):
    X, y, model = draw(dyadic_data())
    p = X.shape[1]
    names = [f"column {place}" for place in range(p)]
    change = draw(st.sampled_from(["reordered", "missing", "unseen", "renamed", "doubled"]))
    assume(p > 1 or change not in ("reordered", "missing"))
    frame = pandas.DataFrame(X, columns=names)
    if change == "reordered":
        order = draw(st.permutations(names))
        assume(order != names)
        new = frame[order]
    elif change == "missing":
        new = frame.drop(columns=draw(st.sampled_from(names)))
    elif change == "unseen":
        new = frame.assign(unseen=1.0)
    elif change == "doubled":
        new = frame[[*names, names[0]]]
    else:
        new = frame.rename(columns={draw(st.sampled_from(names)): "other"})
    return frame, y, model, new


@holds_for(mixed_up_columns(), few=4, many=100)
def test_columns_mixed_up_are_refused(case):
    frame, y, model, new = case
    with only_known_warnings():
        model.fit(frame, y)
        whole = predictions(model, frame)
        unnamed = predictions(model, frame.to_numpy())
    np.testing.assert_array_equal(unnamed, whole)
    assert refused(model.predict, new)
    assert refused(model.predict_interval, new)
    assert refused(model.sample_predictive, new)
    assert refused(model.posterior_.predict_mean, new)
    if new.shape[1] != frame.shape[1]:
        assert refused(model.predict, new.to_numpy())


# ---------------------------------------------------------------------- any data


@st.composite
def any_training_data(draw):
    n = draw(st.integers(1, 10))
    if draw(st.booleans()):
        X = draw(frames(n, {**USABLE, **ODD}))
        if draw(st.booleans()):
            X = X.to_numpy()
    else:
        numbers = np.random.default_rng(draw(st.integers(0, 99))).random(
            (n, draw(st.integers(1, 3)))
        )
        X = ODD_CONTAINERS[draw(st.sampled_from(sorted(ODD_CONTAINERS)))](numbers)
    usual = [0, 1] * n
    y = draw(st.one_of(st.just(usual[:n]), odd_targets(n)))
    model = draw(st.sampled_from(ESTIMATORS))(
        **parameters(**TINY, **draw(st.sampled_from(METHODS)))
    )
    return X, y, model


@holds_for(any_training_data(), few=30, many=1000)
def test_any_training_data_are_refused_clearly_or_fitted(case):
    X, y, model = case
    if not refused(model.fit, X, y):
        assert_nothing_changed(model, X, y)
        rows = np.asarray(model.posterior_.training.X)
        with only_known_warnings():
            assert_valid(model, rows_to_predict(rows))


@st.composite
def any_rows(draw):
    n = draw(st.integers(1, 6))
    if draw(st.booleans()):
        rows = draw(frames(n, {**USABLE, **ODD}))
        if draw(st.booleans()):
            rows = rows.to_numpy()
    else:
        rows = ODD_CONTAINERS[draw(st.sampled_from(sorted(ODD_CONTAINERS)))](np.eye(n, 2))
    return rows, draw(st.sampled_from(ESTIMATORS))


FITTED: dict[type, object] = {}


@holds_for(any_rows(), few=30, many=500)
def test_any_rows_are_refused_clearly_or_predicted(case):
    rows, estimator = case
    if estimator not in FITTED:
        X = np.random.default_rng(5).random((20, 2))
        FITTED[estimator] = estimator(**TINY).fit(X, X[:, 0] > 0.5)
    model = FITTED[estimator]
    if not refused(model.predict, rows):
        with only_known_warnings():
            assert_valid(model, rows)
    if not refused(model.posterior_.predict_mean, rows):
        assert np.isfinite(model.posterior_.predict_mean(rows)).all()
