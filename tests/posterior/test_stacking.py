"""Stacking of chains: the weights against direct optimisation, and what follows them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

from hamiltree.posterior import Posterior
from hamiltree.posterior.stacking import stacking_weights

from ..support.fake_draws import fake_posterior


def chains_of(seed, shifts, n_draws=50, n_training=60):
    """Chains of roots with one mean each, so far from that of y, in its sds; noise as y has."""
    n_chains = len(shifts)
    post = fake_posterior(
        seed, n_chains=n_chains, n_draws=n_draws, n_classes=0, n_training=n_training,
        n_leaves=np.ones((n_chains, n_draws), int),
    )  # fmt: skip
    y = post.preprocessing.y_to_model(post.training.y)
    rng = np.random.default_rng(seed)
    means = y.mean() + np.repeat(shifts, n_draws) + 0.01 * rng.standard_normal(n_chains * n_draws)
    draws = dataclasses.replace(
        post.draws, leaf=means[:, None], sigma=np.full((n_chains, n_draws), y.std())
    )
    return Posterior(
        draws, post.info, post.preprocessing, post.configuration, training=post.training
    )


def test_chains_that_predict_alike_count_alike(seed):
    post = chains_of(seed, [0.0, 0.0])
    weights = post.stacked().weights
    np.testing.assert_allclose(weights.sum(axis=1), 0.5, atol=0.1)
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-12)
    assert (weights == weights[:, :1]).all()  # all draws of a chain count alike


def test_a_chain_that_predicts_badly_counts_for_nothing(seed):
    post = chains_of(seed, [0.0, 20.0, 0.0])
    stacked = post.stacked()
    share = stacked.weights.sum(axis=1)
    assert share[1] < 1e-3
    np.testing.assert_allclose(share.sum(), 1.0, rtol=1e-12)
    own = [post.taken(np.arange(50) + 50 * chain) for chain in range(3)]
    X = post.training.X[:5]
    expected = sum(w * chain.predict_mean(X) for w, chain in zip(share, own, strict=True))
    np.testing.assert_allclose(stacked.predict_mean(X), expected, rtol=1e-9)
    assert post.weights.sum(axis=1) == pytest.approx(1 / 3)  # the posterior itself stays


def test_the_weights_are_the_best(seed, rng):
    """Chains that are right in different places; against a general optimiser."""
    elpd = rng.normal(-1.0, 1.0, (200, 4))

    def loss(free):
        w = np.exp(free - np.logaddexp.reduce(free))
        return -np.sum(np.log(np.exp(elpd) @ w))

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
    expected = np.exp(best - np.logaddexp.reduce(best))
    np.testing.assert_allclose(stacking_weights(elpd), expected, atol=1e-3)


def test_weights_of_few_and_of_alike_chains(rng):
    assert stacking_weights(rng.normal(size=(10, 1))) == pytest.approx([1.0])
    same = np.repeat(rng.normal(size=(10, 1)), 3, axis=1)
    np.testing.assert_allclose(stacking_weights(same), 1 / 3)
    apart = np.array([[0.0, -2000.0]] * 10)  # no density underflows to 0 / 0
    np.testing.assert_allclose(stacking_weights(apart), [1.0, 0.0], atol=1e-3)


def test_stacked_chains_are_judged_as_chains(seed):
    """Not as particles: their R-hat does not know the weights."""
    post = chains_of(seed, [0.0, 20.0, 0.0], n_draws=120)
    plain, stacked = post.diagnose(), post.stacked().diagnose()
    assert stacked.rhat == plain.rhat
    assert stacked.ess == plain.ess
    assert stacked.converged == plain.converged
    assert plain.sentence in stacked.sentence
    assert "weights" in stacked.sentence
    assert "particles" not in stacked.sentence
    uneven = np.random.default_rng(seed).dirichlet(np.ones(360)).reshape(3, 120)
    weighted = post._with(draws=dataclasses.replace(post.draws, weights_of_draws=uneven))
    assert "weighted draws" in weighted.diagnose().sentence


def test_stacked_weights_are_kept_in_files(seed, tmp_path):
    stacked = chains_of(seed, [0.0, 20.0]).stacked()
    stacked.save(tmp_path / "stacked.nc")
    again = Posterior.load(tmp_path / "stacked.nc")
    np.testing.assert_array_equal(again.weights, stacked.weights)


@pytest.mark.parametrize("n_draws", [3, 50])
def test_draws_too_few_or_all_the_same_are_stacked_too(n_draws, seed):
    """Without a tail of importance weights, which PSIS would smooth."""
    post = chains_of(seed, [0.0, 20.0], n_draws=n_draws)
    leaf = np.repeat(post.draws.leaf[::n_draws], n_draws, axis=0)
    stuck = post._with(draws=dataclasses.replace(post.draws, leaf=leaf))
    share = stuck.stacked().weights.sum(axis=1)
    np.testing.assert_allclose(share, [1.0, 0.0], atol=1e-3)


def test_what_cannot_be_stacked(seed):
    post = chains_of(seed, [0.0, 0.0])
    with pytest.raises(ValueError, match="stacked needs the training data"):
        post.without_data().stacked()
    heavy = dataclasses.replace(post.training, weights=np.full(60, 2.0))
    with pytest.raises(ValueError, match="sample_weight"):
        post._with(training=heavy).stacked()
    particles = dataclasses.replace(post.info, stats={"log_weight": np.zeros((2, 50))})
    with pytest.raises(ValueError, match="only chains can be stacked"):
        post._with(info=particles).stacked()
