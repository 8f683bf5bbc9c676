"""Predictions against a plain recursive router, and what else a posterior answers."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.predict import most_likely_leaf
from hamiltree.posterior import Posterior, predictions

from ..support.fake_draws import P, fake_draws, fake_posterior, fake_rows


def walk(draws, t, x, i=None, reach=1.0):
    """(leaf number in the flat leaves, probability) of row x in tree t: the paper, word by word."""
    first = int(draws.node_offset[t])
    i = first if i is None else i
    inner = int(np.sum(draws.size[:i] > 1))
    if draws.size[i] == 1:
        return [(i - inner, reach)]
    if draws.split_weights.shape[1]:
        value, h = float(draws.split_weights[inner] @ x), draws.h[0]
    else:
        value, h = float(x[draws.feature[inner]]), draws.h[draws.feature[inner]]
    distance = value - draws.threshold[inner]
    if h == 0:
        psi = 1.0 if distance > 0 else 0.0
    else:
        psi = 1 / (1 + math.exp(-distance / h)) if abs(distance / h) < 700 else float(distance > 0)
    left = i + 1
    right = left + int(draws.size[left])
    return walk(draws, t, x, left, reach * (1 - psi)) + walk(draws, t, x, right, reach * psi)


KINDS = [
    pytest.param(n_classes, oblique, h, id=f"{n_classes or 'y'}-{'dfi' if oblique else 'df'}-{h}")
    for n_classes in (0, 2, 3)
    for oblique in (False, True)
    for h in (0.0, 0.001, 0.1)
]


@pytest.mark.parametrize(("n_classes", "oblique", "h"), KINDS)
def test_predictions_match_a_recursive_router(n_classes, oblique, h, seed):
    post = fake_posterior(seed, n_classes=n_classes, oblique=oblique, h=h, n_draws=6)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(12)).reshape(2, 6)
    draws = dataclasses.replace(post.draws, weights_of_draws=weights)
    post = Posterior(draws, post.info, post.preprocessing, post.configuration)
    X = fake_rows(261, seed)  # one block of 256 rows and a short one
    columns = post.preprocessing.to_unit(X)
    K = max(1, n_classes)
    expected = np.zeros((12, len(X), K))
    single = np.empty((12, len(X)), dtype=object)
    for t in range(12):
        for row in [0, 1, 2, 100, 254, 255, 256, 257, 260]:
            reached = walk(draws, t, columns[:, row])
            best, best_reach = None, -1.0
            for leaf, reach in reached:
                if n_classes:
                    value = (draws.leaf[leaf] + 1 / n_classes) / (draws.leaf[leaf].sum() + 1)
                else:
                    value = 40 + 12 * draws.leaf[leaf]
                expected[t, row] += reach * value
                if reach > best_reach:
                    best, best_reach = value, reach
            likeliest = post.preprocessing.classes[best.argmax()] if n_classes else best[0]
            single[t, row] = likeliest
    checked = np.flatnonzero(expected.any(axis=(0, 2)))
    expected = expected.reshape(2, 6, len(X), K)[:, :, checked]
    single = single.reshape(2, 6, len(X))[:, :, checked]

    got = post.predict_draws(X)[:, :, checked]
    # Sigmoids are good to 1e-14, products of 7 of them and sums of 7 leaves to 1e-12 of y's scale.
    scale = 1 if n_classes else 100
    np.testing.assert_allclose(got.reshape(expected.shape), expected, atol=1e-12 * scale)
    mean = post.predict_mean(X)[checked]
    np.testing.assert_allclose(
        mean.reshape(-1, K), np.einsum("cd,cdrk->rk", weights, expected), atol=1e-12 * scale
    )
    trees = post.predict_single_trees(X)[:, :, checked]
    if n_classes:
        assert (trees == single).all()
    else:
        np.testing.assert_allclose(trees, single.astype(float), rtol=1e-14)


def test_a_row_at_the_threshold_of_a_hard_split_goes_left():
    post = fake_posterior(1, n_leaves=np.array([[2]]), n_chains=1, n_draws=1, h=0.0)
    draws = dataclasses.replace(
        post.draws, threshold=np.array([0.5]), feature=np.array([1], np.int32)
    )
    columns = np.zeros((P, 3))
    columns[1] = [0.5, np.nextafter(0.5, 1), 0.4]
    forest = draws.forest
    assert most_likely_leaf(forest, columns).tolist() == [[0, 1, 0]]


def test_predictions_do_not_depend_on_the_number_of_threads(seed):
    post = fake_posterior(seed, n_classes=0)
    X = fake_rows(1500, seed)
    for name in ("predict_mean", "predict_mean_std", "predict_draws", "predict_single_trees"):
        one, three = (np.asarray(getattr(post, name)(X, n_jobs=n)) for n in (1, 3))
        assert (one == three).all(), name


def test_mean_and_std_are_the_moments_of_the_draws(seed):
    post = fake_posterior(seed, n_classes=0, n_draws=40)
    X = fake_rows(20, seed)
    draws = post.predict_draws(X)
    mean, std = post.predict_mean_std(X)
    variance = draws.var(axis=(0, 1)) + np.mean(post.sigma**2)
    np.testing.assert_allclose(mean, draws.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-10)


def test_spread_survives_a_large_raw_target(seed):
    """Squares about zero would lose all digits of a spread of 1 about 1e9."""
    post = fake_posterior(seed, n_classes=0, n_draws=40)
    draws = dataclasses.replace(post.draws, leaf=post.draws.leaf + 1e9)
    shifted = Posterior(draws, post.info, post.preprocessing, post.configuration)
    X = fake_rows(20, seed)
    # 1e9 itself is rounded to 1e-7 in the leaves, so their spread is good to about that.
    np.testing.assert_allclose(
        shifted.predict_mean_std(X)[1], post.predict_mean_std(X)[1], rtol=1e-5
    )


def test_quantiles_invert_the_mixture(seed):
    post = fake_posterior(seed, n_classes=0, n_draws=30)
    X = fake_rows(7, seed)
    levels = [1e-6, 0.05, 0.5, 0.9, 1 - 1e-6]
    quantiles = post.predict_quantiles(X, levels)
    means = post.predict_draws(X)
    for level, row_quantiles in zip(levels, quantiles, strict=True):
        below = stats.norm.cdf(row_quantiles, means, post.sigma[..., None]).mean(axis=(0, 1))
        np.testing.assert_allclose(below, level, atol=1e-9, rtol=1e-7)
    with pytest.raises(ValueError, match="between 0 and 1"):
        post.predict_quantiles(X, [0.0, 0.5])


def test_predictive_draws_of_y_follow_the_mixture(seed):
    post = fake_posterior(seed, n_classes=0, n_chains=4, n_draws=2000)
    X = fake_rows(3, seed)
    y = post.sample_predictive(X, seed)
    means = post.predict_draws(X)
    # Given its draw, each y is normal; 3 rows x a false alarm of 1e-6.
    z = (y - means) / post.sigma[..., None]
    for row in range(3):
        assert stats.kstest(z[:, :, row].ravel(), "norm").pvalue > 1e-6
    assert (y == post.sample_predictive(X, seed)).all()
    assert (y != post.sample_predictive(X, seed + 1)).any()


def test_predictive_labels_follow_the_mean_probabilities(seed):
    n = 20_000
    one = fake_draws(seed, n_chains=1, n_draws=1, n_leaves=np.array([[5]]), h=0.2)
    draws = repeated(one, n)
    base = fake_posterior(seed, n_chains=1, n_draws=1)
    post = Posterior(draws, base.info, base.preprocessing, base.configuration)
    X = fake_rows(6, seed)
    labels = post.sample_predictive(X, seed)[0]
    expected = post.predict_mean(X)
    for row in range(6):
        counts = [(labels[:, row] == label).sum() for label in post.preprocessing.classes]
        # 6 rows x a false alarm of 1e-6
        assert stats.chisquare(counts, n * expected[row]).pvalue > 1e-6


def test_labels_of_one_draw_share_their_leaf_probabilities(seed):
    """A leaf without rows has Dirichlet(.5, .5) probabilities: two labels agree in 3 of 4."""
    n = 20_000
    one = fake_draws(seed, n_chains=1, n_draws=1, n_leaves=np.array([[1]]), n_classes=2)
    draws = repeated(dataclasses.replace(one, leaf=np.zeros((1, 2))), n)
    base = fake_posterior(seed, n_chains=1, n_draws=1, n_classes=2)
    post = Posterior(draws, base.info, base.preprocessing, base.configuration)
    first, second = post.sample_predictive(fake_rows(2, seed), seed)[0].T
    agreeing = int((first == second).sum())
    assert stats.binomtest(agreeing, n, 3 / 4).pvalue > 1e-6


def repeated(one, n):
    """The same single tree as n draws of one chain."""
    shape = (1, n)
    return dataclasses.replace(
        one,
        n_draws=n,
        node_offset=np.arange(n + 1) * len(one.size),
        **{name: np.tile(getattr(one, name), n) for name in ("size", "feature", "threshold")},
        split_weights=np.tile(one.split_weights, (n, 1)),
        leaf=np.tile(one.leaf, (n, 1)),
        **{
            name: np.broadcast_to(getattr(one, name), shape).copy()
            for name in ("n_leaves", "depth", "log_likelihood", "log_posterior", "sigma")
        },
        weights_of_draws=np.full(shape, 1 / n),
    )


def test_feature_inclusion_counts_splits_tree_by_tree():
    post = fake_posterior(0, n_chains=1, n_draws=3, n_leaves=np.array([[1, 2, 4]]))
    draws = dataclasses.replace(
        post.draws,
        feature=np.array([3, 0, 0, 1], np.int32),
        weights_of_draws=np.array([[0.5, 0.25, 0.25]]),
    )
    got = Posterior(draws, post.info, post.preprocessing, post.configuration).feature_inclusion()
    # The root-only tree says nothing; the other two count alike. Used column 3 is input column 4.
    np.testing.assert_allclose(got, [1 / 3, 1 / 6, 0, 0, 1 / 2])


def test_feature_inclusion_of_roots_and_of_oblique_trees():
    roots = fake_posterior(0, n_leaves=np.ones((2, 5), int))
    assert (roots.feature_inclusion() == 0).all()
    oblique = fake_posterior(0, n_chains=1, n_draws=1, n_leaves=np.array([[3]]), oblique=True)
    expected = oblique.draws.split_weights.mean(axis=0)
    np.testing.assert_allclose(oblique.feature_inclusion()[[0, 1, 2, 4]], expected)


def test_classification_has_no_sigma():
    post = fake_posterior(0)
    assert not hasattr(post, "sigma")
    with pytest.raises(AttributeError, match="regression"):
        post.predict_mean_std(fake_rows(2))
    regression = fake_posterior(0, n_classes=0)
    np.testing.assert_allclose(regression.sigma, 12 * regression.draws.sigma)


def test_too_large_a_result_is_refused_with_advice(monkeypatch):
    post = fake_posterior(0)
    monkeypatch.setattr(predictions, "MEMORY_LIMIT", 10 * 100 * 3 * 8 - 1)
    with pytest.raises(ValueError, match="use predict_mean"):
        post.predict_draws(fake_rows(100))
    post.predict_draws(fake_rows(99))


def test_pieces_change_nothing(monkeypatch, seed):
    post = fake_posterior(seed, n_classes=0)
    X = fake_rows(50, seed)
    whole = post.predict_quantiles(X, [0.1, 0.9])
    monkeypatch.setattr(predictions, "SCRATCH", 10 * 2 * 8 * 7)  # 7 rows a piece
    np.testing.assert_allclose(post.predict_quantiles(X, [0.1, 0.9]), whole, rtol=1e-12)
    assert post.sample_predictive(X, seed).shape == (2, 5, 50)


def test_monitor_keeps_the_likeliest_class(seed):
    post = fake_posterior(seed)
    X = fake_rows(4, seed)
    monitored = post.monitored_at(X)
    best = post.predict_mean(X).argmax(axis=1)
    draws = post.predict_draws(X)
    for row in range(4):
        np.testing.assert_array_equal(monitored.monitor[:, :, row], draws[:, :, row, best[row]])


def test_reports_and_pickle(seed):
    post = fake_posterior(seed, n_classes=0, oblique=True)
    assert post.acceptance == {"grow": 0.3, "prune": 0.25}
    assert "25.0% of 40" in post.acceptance_table()
    assert "- of 0" in post.acceptance_table()
    for text in ("HMC-DFI", "leaves", "sigma", "grow 30%", "far too few"):
        assert text in post.summary()
    assert "2 chains x 5 draws" in repr(post)
    copy = pickle.loads(pickle.dumps(post))
    X = fake_rows(5)
    assert (copy.predict_mean(X) == post.predict_mean(X)).all()
    groups = post.monitored_at(X).to_datatree()
    assert groups["posterior"]["monitor"].shape == (2, 5, 5)
    assert (groups["posterior"]["sigma"].values == post.sigma).all()
    assert groups["sample_stats"]["diverging"].dtype == bool
    assert '"seed": 7' in groups.attrs["run"]


def test_no_rows(seed):
    post = fake_posterior(seed)
    assert post.predict_mean(fake_rows(0)).shape == (0, 3)
    assert post.predict_draws(fake_rows(0)).shape == (2, 5, 0, 3)


def test_taken_draws_are_a_posterior(seed, tmp_path):
    post = fake_posterior(seed, n_training=8).monitored_at(fake_rows(3))
    taken = post.taken([3, 3, 0])
    assert taken.monitor is None
    assert not taken.stats
    assert taken.training is post.training
    assert taken.predict_draws(fake_rows(5))[0].tolist() == [
        post.predict_draws(fake_rows(5)).reshape(-1, 5, post.n_classes)[t].tolist()
        for t in (3, 3, 0)
    ]
    taken.save(tmp_path / "taken.nc")
    again = Posterior.load(tmp_path / "taken.nc").tree(0, 2)
    assert again.threshold.tolist() == post.tree(0, 0).threshold.tolist()
