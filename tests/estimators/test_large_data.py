"""Inputs stored as float32, memory, and draws put together from many pieces."""

from __future__ import annotations

import os
import tracemalloc
import warnings

import numpy as np
import pytest

from benchmarks.scale import measure_draws
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior
from hamiltree.core.predict import most_likely_leaf
from hamiltree.core.soft.data import inputs_of, make_data
from hamiltree.inputs.preprocess import ROWS_PER_BLOCK, learn
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from ..support.configuring import configured


def test_columns_in_parts_are_those_of_the_whole(rng):
    n = 2 * ROWS_PER_BLOCK + 77
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    for dtype in ("float64", "float32"):
        preprocessing = learn(X, None, classes=np.arange(3), dtype=dtype)
        data = make_data(preprocessing.columns_of(X), y, 3)
        whole = make_data(preprocessing.to_unit(X).astype(dtype), y, 3)
        inputs = inputs_of(data)
        assert inputs.dtype == np.dtype(dtype)
        assert inputs.ctypes.data % 64 == 0
        np.testing.assert_array_equal(inputs, inputs_of(whole))


def test_float32_is_rounded_once_and_alike(rng):
    X = rng.normal(size=(50, 2))
    rounded = learn(X, None, dtype="float32").to_unit(X)
    assert rounded.dtype == np.float64
    np.testing.assert_array_equal(rounded, learn(X, None).to_unit(X).astype(np.float32))
    assert np.isfinite(learn(X, None, dtype="float32").to_unit([[1e300, -1e300]])).all()


@pytest.mark.long
@pytest.mark.parametrize("h", [0.0, 0.05])
def test_rows_go_at_predict_where_they_went_at_fit(h, rng, tmp_path):
    """Values that only float64 tells apart: counts of the leaves are those of the rows routed."""
    X = np.round(rng.random((400, 2)), 2) + 1e-9 * rng.integers(0, 9, (400, 2))
    X[:2] = [[0.0, 0.0], [1.1, 1.1]]
    y = (X[:, 0] > 0.5 + 4.5e-9).astype(int)
    model = BayesianTreeClassifier(
        h=h, dtype="float32", n_chains=2, n_warmup=100, n_draws=50, random_state=0, progress=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.fit(X, y).posterior_
    assert model.posterior_.n_leaves.max() > 1
    posterior.save(tmp_path / "trees.nc")
    again = Posterior.load(tmp_path / "trees.nc")
    assert again.preprocessing.dtype == "float32"
    np.testing.assert_array_equal(again.predict_mean(X), posterior.predict_mean(X))
    if h > 0.0:
        return
    columns = posterior.preprocessing.to_unit(X)
    leaf = most_likely_leaf(posterior.draws.forest, columns, 1)
    first = (posterior.draws.node_offset[:-1] + np.arange(len(leaf))) // 2
    for tree in range(len(leaf)):
        n_leaves = int(posterior.n_leaves.ravel()[tree])
        counts = np.zeros((n_leaves, 2))
        np.add.at(counts, (leaf[tree], y), 1.0)
        np.testing.assert_array_equal(
            posterior.draws.leaf[first[tree] : first[tree] + n_leaves], counts
        )


def test_memory_of_a_fit(rng):
    """What is allocated beside X and y: the columns, one byte per value, and little a row."""
    n, p = 300_000, 20
    X = rng.random((n, p))
    y = (X[:, 0] > 0.5) + 0.1 * rng.normal(size=n)
    model = BayesianTreeRegressor(
        n_chains=1, n_warmup=1, n_draws=1, random_state=0, progress=False, max_leaves=16
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:9_000], y[:9_000])  # compiles
        tracemalloc.start()
        try:
            model.fit(X, y)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak <= 1.5 * (X.nbytes + y.nbytes)


def test_large_data_bound_the_gradients_of_a_step(rng):
    y = np.zeros(100_000)
    by_rows = ((1_000, None, 10), (40_000, None, 3), (100_000, None, 2), (100_000, 8, 8))
    for n, given, expected in by_rows:
        configuration = configured(max_nuts_depth=given, moves="prior")
        sampler = RJHMC.build(Problem(rng.random((1, n)), y[:n], 0), configuration, 0)
        assert sampler.max_nuts_depth == expected


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peak memory by /proc")
def test_draws_are_stored_compactly():
    """As ``python -m benchmarks scale`` measures a million of them."""
    found = measure_draws({"draws": 5_000, "chains": 2, "classes": 3})
    assert found["kept"] * 1e9 / 10_000 < 400, "bytes per tree of eight leaves"
    assert found["file"] * 1e9 / 10_000 < 450
