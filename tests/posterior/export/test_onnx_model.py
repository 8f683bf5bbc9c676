"""The exported model in a runtime of its own, against our predictions."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest

from hamiltree.inputs.columns import coded
from hamiltree.posterior import Posterior

from ...support.fake_draws import fake_posterior, fake_rows
from ...support.fake_special import fake_special_posterior, special_rows

HOW = "needs the optional group onnx: pip install hamiltree[onnx]"
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")


def run(model, X):
    runtime = pytest.importorskip("onnxruntime", reason=HOW)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": X})[0]


def hard(post):
    draws = dataclasses.replace(post.draws, h=np.zeros_like(post.draws.h))
    return Posterior(draws, post.info, post.preprocessing, post.configuration)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.parametrize("h", [0.0, 0.05])
def test_the_runtime_predicts_the_same(n_classes, h, seed, rng):
    pytest.importorskip("onnx", reason=HOW)
    post = fake_posterior(seed, n_draws=30, n_classes=n_classes, h=h)
    weights = rng.dirichlet(np.ones(60)).reshape(2, 30)
    draws = dataclasses.replace(post.draws, weights_of_draws=weights)
    post = Posterior(draws, post.info, post.preprocessing, post.configuration)
    X = fake_rows(1000, seed)
    got = run(post.to_onnx(hard=True), X)
    expected = hard(post).predict_mean(X).reshape(1000, -1)
    assert got.shape == expected.shape
    # float32 comes out: 1e-6 of the scale of y
    np.testing.assert_allclose(got, expected, atol=1e-6 if n_classes else 1e-4)


def test_rows_at_and_next_to_the_thresholds_keep_their_side(seed):
    """Where float32 would send them elsewhere; a leaf's value says where a row went."""
    pytest.importorskip("onnx", reason=HOW)
    post = fake_posterior(seed, n_draws=20, n_classes=0, h=0.0)
    scale, draws = post.preprocessing, post.draws
    rows = []
    for feature, tau in zip(draws.feature, draws.threshold, strict=True):
        at = scale.threshold_to_user(int(feature), float(tau))
        for x in (at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)):
            row = fake_rows(1, 3)[0]
            row[scale.used[feature]] = x
            rows.append(row)
    X = np.array(rows)
    expected = post.predict_mean(X)
    np.testing.assert_allclose(run(post.to_onnx(), X)[:, 0], expected, atol=1e-4)
    # and float32 would not have done: this test can fail
    rounded = post.predict_mean(X.astype(np.float32).astype(np.float64))
    assert np.abs(rounded - expected).max() > 1e-3


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("expand", [False, True], ids=["sets", "columns of 0 and 1"])
def test_missing_cells_and_categories_go_where_ours_go(expand, n_classes, seed):
    pytest.importorskip("onnx", reason=HOW)
    post = fake_special_posterior(seed, n_classes=n_classes, expand=expand)
    rows = special_rows(500, seed + 1)
    expected = post.predict_mean(coded(rows)).reshape(500, -1)
    model = post.to_onnx()
    np.testing.assert_allclose(run(model, rows), expected, atol=1e-5)
    # a missing site may be NaN as well as its own code
    gone = np.where(rows == 4.0, np.nan, rows)
    np.testing.assert_allclose(run(model, gone), expected, atol=1e-5)
    codes = json.loads({e.key: e.value for e in model.metadata_props}["codes"])
    assert codes["group"] == {"a": 0, "b": 1, "c": 2}
    assert codes["site"] == {"x": 0, "y": 1, "z": 2, "(other)": 3, "u": 3, "v": 3}


def leftmost_told_apart(post):
    """The leftmost leaf of each tree is of class 0, and all others are of class 1."""
    leaf = np.tile([0.0, 100.0, 0.0], (len(post.draws.leaf), 1))
    first = (post.draws.node_offset[:-1] + np.arange(len(post.draws.node_offset) - 1)) // 2
    leaf[first] = [100.0, 0.0, 0.0]
    draws = dataclasses.replace(post.draws, leaf=leaf)
    return Posterior(draws, post.info, post.preprocessing, post.configuration)


@pytest.mark.parametrize("post", [fake_posterior, fake_special_posterior])
def test_what_training_never_saw_goes_both_ways_on_average(post, seed):
    """Each tree sends such a cell one way; false alarms: 2 x 40 x 3 values beyond 5.5 sds."""
    pytest.importorskip("onnx", reason=HOW)
    special = post is fake_special_posterior
    post = leftmost_told_apart(hard(post(seed, n_draws=3000, n_classes=3)))
    rows = special_rows(40, seed) if special else fake_rows(40, seed)
    rows[::2, 0] = np.nan
    if special:
        rows[1::2, 1] = 9.0  # no level of training
    ours = np.where(rows == 9.0, np.nan, rows)
    expected = post.predict_mean(coded(ours))
    got = run(post.to_onnx(), rows)
    # a tree's probability lies in [0, 1]: its sd about both ways is at most 1/2
    limit = 5.5 * 0.5 * np.sqrt(np.sum(post.weights**2))
    np.testing.assert_allclose(got, expected, atol=limit)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-5)
    one_way = post.predict_mean(coded(np.where(np.isnan(ours), 0.0 if special else -1e9, ours)))
    assert np.abs(one_way - expected).max() > 2 * limit  # what sends all left is found out


def test_trees_without_a_split_need_no_columns(seed):
    pytest.importorskip("onnx", reason=HOW)
    post = fake_special_posterior(seed, n_draws=2)
    leaves = np.ones((2, 2), np.int64)
    bare = dataclasses.replace(
        post.draws, node_offset=np.arange(5), size=np.ones(4, np.int32), n_leaves=leaves,
        feature=np.zeros(0, np.int32), threshold=np.zeros(0), split_weights=np.zeros((0, 0)),
        levels=np.zeros(0, np.uint64), leaf=post.draws.leaf[:4],
    )  # fmt: skip
    post = Posterior(bare, post.info, post.preprocessing, post.configuration)
    rows = special_rows(7, seed)
    np.testing.assert_allclose(run(post.to_onnx(), rows), post.predict_mean(coded(rows)), atol=1e-6)


def test_what_onnx_cannot_have_is_refused(seed):
    pytest.importorskip("onnx", reason=HOW)
    with pytest.raises(ValueError, match="hard=True"):
        fake_posterior(seed).to_onnx()
    with pytest.raises(ValueError, match="hmc-dfi"):
        fake_posterior(seed, oblique=True).to_onnx(hard=True)


def test_names_travel_with_the_model(seed):
    pytest.importorskip("onnx", reason=HOW)
    model = fake_posterior(seed, h=0.0).to_onnx()
    properties = {entry.key: entry.value for entry in model.metadata_props}
    assert properties["classes"].split("\n") == ["ash", "beech", "cedar"]
    assert properties["features"].split("\n")[2] == "mass (kg)"


def test_without_onnx_it_says_what_to_install(seed, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install hamiltree\[onnx\]"):
        fake_posterior(seed, h=0.0).to_onnx()
