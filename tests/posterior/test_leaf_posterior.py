"""What the data say about the leaves of a tree, against formulas and draws of their own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from hamiltree import BayesianTreeRegressor
from hamiltree.methods import HMCDF
from hamiltree.posterior.leaf_posterior import class_intervals, mean_posterior, soft_rows

from ..support.configuring import parameters
from ..support.fake_draws import fake_posterior


def test_class_intervals_hold_their_share_of_dirichlet_draws(rng):
    counts = np.array([[9.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    method = HMCDF(class_prior=(0.5, 1.0, 2.0))
    got = class_intervals(counts, method, 0.8)
    assert got.shape == (2, 3, 2)
    for leaf in range(2):
        draws = rng.dirichlet(counts[leaf] + [0.5, 1.0, 2.0], 40_000)
        for k in range(3):
            below = int((draws[:, k] < got[leaf, k, 0]).sum())
            above = int((draws[:, k] > got[leaf, k, 1]).sum())
            # 12 tails x a false alarm of 1e-6
            assert stats.binomtest(below, 40_000, 0.1).pvalue > 1e-6
            assert stats.binomtest(above, 40_000, 0.1).pvalue > 1e-6


def test_normal_means_by_conditioning_the_joint_distribution(rng):
    """(mu, y) is jointly normal: the same posterior without the normal equations."""
    phi, y = rng.dirichlet(np.ones(4), 30), rng.normal(size=30)
    mean, sd, sigma = 0.3, 1.7, 0.4
    got = mean_posterior(phi, y, sigma, HMCDF(mu_prior=(mean, sd)))
    gain = sd**2 * phi.T @ np.linalg.inv(sd**2 * phi @ phi.T + sigma**2 * np.eye(30))
    np.testing.assert_allclose(got.centre, mean + gain @ (y - phi @ np.full(4, mean)), rtol=1e-9)
    covariance = sd**2 * np.eye(4) - gain @ phi * sd**2
    np.testing.assert_allclose(got.scale, np.sqrt(np.diag(covariance)), rtol=1e-9)
    low, high = got.intervals(0.9).T
    np.testing.assert_allclose((high - low) / 2, got.scale * stats.norm.ppf(0.95), rtol=1e-12)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("hmc-df", {"h": 0.1}),
        ("hmc-df", {"h": 0.1, "leaf_means": "explicit"}),
        ("hmc-dfi", {"h": 0.1}),
        ("cgm", {}),
        ("cgm", {"variance": "common"}),
        ("smc", {}),
    ],
)
def test_recorded_means_have_this_posterior(method, options, rng):
    """Given its tree, the recorded mean of a leaf is a draw: through its law it is uniform."""
    X = rng.uniform(size=(40, 2))
    y = 10 * (X[:, 0] > 0.5) + rng.normal(size=40) + 100
    lengths = {"n_chains": 2, "n_warmup": 200, "n_draws": 400, "random_state": 3}
    model = BayesianTreeRegressor(**parameters(method=method, **lengths, **options)).fit(X, y)
    post = model.posterior_
    probability = []
    for chain, draw in np.ndindex(2, 400):
        tree = post.tree(chain, draw)
        law = tree._means
        z = (tree.leaf[0, 0] - law.centre[0]) / law.scale[0]
        probability.append(stats.t.cdf(z, law.df[0]))
    if method == "smc":  # copies of a particle share its draw
        probability = np.unique(probability)
    if options.get("leaf_means") == "explicit":
        probability = probability[::10]  # a chain of its own, so thinned
    # 6 cases x a false alarm of 1e-5; with two trees or more they are draws of one uniform law
    assert stats.kstest(probability, "uniform").pvalue > 1e-5


def test_rows_of_every_node():
    size = np.array([7, 3, 1, 1, 3, 1, 1])
    rows = soft_rows(size, np.array([1.0, 2.0, 4.0, 8.0]))
    assert rows.tolist() == [15, 3, 1, 2, 12, 4, 8]


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("oblique", [False, True])
def test_a_tree_knows_its_rows_and_settles_its_means(n_classes, oblique, seed):
    post = fake_posterior(seed, n_classes=n_classes, oblique=oblique, n_training=50)
    tree = post.tree(1, 2)
    phi = tree.reach(post.training.X)
    np.testing.assert_allclose(phi.sum(axis=1), 1)
    settled = tree.settled()
    if n_classes:
        assert settled is tree
        np.testing.assert_allclose(tree.n_rows[0], tree.leaf.sum())
        return
    np.testing.assert_allclose(tree.n_rows[0], 50)
    np.testing.assert_allclose(tree.n_rows[tree.size == 1], phi.sum(axis=0), atol=1e-9)
    low, high = settled.intervals.T
    np.testing.assert_allclose(settled.values, (low + high) / 2, rtol=1e-9)
    narrow, wide = (np.ptp(settled.leaf_intervals(c), axis=1) for c in (0.5, 0.99))
    assert (narrow < wide).all()
    assert tree.leaf is not settled.leaf


def test_without_training_data_what_they_tell_is_none(seed):
    post = fake_posterior(seed, n_classes=0, n_training=20).without_data()
    tree = post.best_tree()
    assert (tree.intervals, tree.certainty, tree.n_rows) == (None, None, None)
    assert tree.settled() is tree
    assert "of trees" not in tree.to_text()
    assert "rows" not in tree.to_text()
    classes = fake_posterior(seed)
    assert classes.best_tree().intervals.shape[1:] == (3, 2)
    assert dataclasses.replace(classes.best_tree(), training=None).n_rows is not None
