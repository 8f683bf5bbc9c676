"""Every method on every kind of target: fit, predict, save and reload, and the two agree."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.posterior import Posterior
from hamiltree.settings import METHODS

SHORT = {"n_chains": 2, "n_warmup": 30, "n_draws": 40, "random_state": 3}
TARGETS = ("binary", "multi-class", "regression")


def data(target: str):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(90, 3))
    group = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3) * (X[:, 0] > 0)
    if target == "binary":
        return X, np.array(["no", "yes"])[np.minimum(group, 1)]
    if target == "multi-class":
        return X, np.array([10, 20, 30])[group]
    return X, 100.0 + 5.0 * group + rng.normal(scale=0.5, size=90)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", METHODS)
def test_fits_predicts_saves_and_reloads(method, target, tmp_path):
    X, y = data(target)
    estimator = BayesianTreeRegressor if target == "regression" else BayesianTreeClassifier
    model = estimator(method=method, **SHORT).fit(X, y)
    posterior = model.posterior_
    assert model.score(X, y) > 0.75
    assert posterior.weights.shape == (2, 40)
    np.testing.assert_allclose(posterior.weights.sum(), 1.0)
    assert np.isfinite(posterior.log_posterior).all()
    tree = posterior.tree(0, -1)
    assert tree.n_leaves == posterior.n_leaves[0, -1]
    assert tree.to_text()
    assert posterior.summary()
    samples = model.sample_predictive(X[:5], n_samples=7, random_state=0)
    assert samples.shape == (7, 5)
    interval = model.predict_interval(X[:5])
    if target == "regression":
        mean, sd = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (sd > 0).all()
        assert ((interval[:, 0] < mean[:5]) & (mean[:5] < interval[:, 1])).all()
        assert np.isfinite(posterior.sigma).all()
    else:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert set(np.unique(samples)) <= set(np.unique(y))

    path = tmp_path / "posterior.nc"
    posterior.save(path)
    again = Posterior.load(path)
    np.testing.assert_array_equal(again.predict_mean(X), posterior.predict_mean(X))
    np.testing.assert_array_equal(again.predict_single_trees(X), posterior.predict_single_trees(X))
    assert again.settings == posterior.settings
    assert again.acceptance.keys() == posterior.acceptance.keys()
    if target == "regression":
        np.testing.assert_array_equal(
            again.predict_quantiles(X[:5], [0.1, 0.9]), posterior.predict_quantiles(X[:5], [0.1, 0.9])
        )
