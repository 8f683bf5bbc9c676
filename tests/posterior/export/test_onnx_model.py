"""The exported model in a runtime of its own, against our predictions."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from hamiltree.posterior import Posterior

from ...support.fake_draws import fake_posterior, fake_rows

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
