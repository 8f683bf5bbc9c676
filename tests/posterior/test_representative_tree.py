"""The best, the typical and the likeliest trees, and how certain splits are, by brute force."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hamiltree.core.tree.kinds import MISSING
from hamiltree.posterior import Posterior, representative_tree
from hamiltree.posterior.draws import places, systematic
from hamiltree.posterior.representative_tree import SplitCensus

from ..support.fake_draws import fake_posterior, fake_rows


def weighted(post, rng):
    """The same draws with uneven weights, one of them 0."""
    weights = rng.dirichlet(np.ones(post.weights.size)).reshape(post.weights.shape)
    weights[0, 0] = 0.0
    draws = dataclasses.replace(post.draws, weights_of_draws=weights / weights.sum())
    return Posterior(
        draws, post.info, post.preprocessing, post.configuration, training=post.training
    )


def all_trees(post):
    return [post.tree(c, d) for c in range(post.n_chains) for d in range(post.n_draws)]


@pytest.mark.parametrize("oblique", [False, True])
def test_certainty_counts_the_trees_with_a_like_split(oblique, seed, rng):
    post = fake_posterior(seed, n_draws=60, n_training=37, oblique=oblique)
    # thresholds in a narrow range, so that some are alike
    draws = dataclasses.replace(post.draws, threshold=0.4 + 0.2 * post.draws.threshold)
    post = Posterior(
        draws, post.info, post.preprocessing, post.configuration, training=post.training
    )
    post = weighted(post, rng)
    columns = post.preprocessing.to_unit(post.training.X)
    trees = all_trees(post)

    def goes_left(tree, split):
        x = tree.weights[split] @ columns if oblique else columns[tree.feature[split]]
        return x <= tree.threshold[split]

    def alike(a, i, b, j):
        if not oblique and a.feature[i] != b.feature[j]:
            return False
        return np.sum(goes_left(a, i) != goes_left(b, j)) <= 0.05 * 37

    tree = max(trees, key=lambda tree: tree.n_leaves)
    assert tree.n_leaves > 3
    for i in range(tree.n_leaves - 1):
        has = [any(alike(tree, i, other, j) for j in range(other.n_leaves - 1)) for other in trees]
        expected = post.weights.ravel()[has].sum()
        assert 0 < expected < 1
        np.testing.assert_allclose(tree.certainty[i], expected, atol=1e-12)


def with_splits(per_chain):
    """Chains of stumps, 100 each: so many of them split on column 0, the others on column 1."""
    n_chains = len(per_chain)
    post = fake_posterior(
        0, n_chains=n_chains, n_draws=100, n_leaves=np.full((n_chains, 100), 2), n_training=40
    )
    feature = np.concatenate([np.repeat([0, 1], [n, 100 - n]) for n in per_chain])
    draws = dataclasses.replace(
        post.draws, feature=feature.astype(np.int32), threshold=np.full(len(feature), 0.5)
    )
    return Posterior(
        draws, post.info, post.preprocessing, post.configuration, training=post.training
    )


@pytest.mark.parametrize(
    ("per_chain", "on_0", "on_1"),
    [
        ((50, 60, 40, 50), 4, 4),
        ((100, 0, 100, 100), 3, 1),
        ((97, 3, 100, 100), 3, 2),  # of 75% on average: 3% is more than ten times rarer
        ((97, 8, 100, 100), 4, 2),
        ((4, 2, 3, 3), 4, 4),  # rare, but alike
        ((100, 100, 100, 100), 4, 0),
    ],
)
def test_chains_that_have_a_split(per_chain, on_0, on_1):
    post = with_splits(per_chain)
    stumps = [post.tree(chain, draw) for chain in range(4) for draw in (0, 99)]
    for stump in stumps:
        expected = (on_0, on_1)[stump.feature[0]]
        assert list(post.split_chains(stump)) == [expected] == list(stump.chains)
        assert stump.to_dict()["chains"] == expected
        share = "of trees)" if expected == 4 else f"of trees, in {expected} of 4 chains)"
        assert share in stump.to_text()
    alone = post.without_data()
    assert alone.tree(0, 0).chains is None
    assert alone.tree(0, 0).to_dict()["chains"] is None
    with pytest.raises(ValueError, match="split_chains needs the training data"):
        alone.split_chains(stumps[0])


def test_chains_count_whatever_their_weights(seed, rng):
    """A split occurs in a chain or not, whether the chain counts much or nothing."""
    post = with_splits((100, 100, 0, 0))
    weights = np.repeat(np.array([[0.7], [0.0], [0.3], [0.0]]) / 100, 100, axis=1)
    heavy = Posterior(
        dataclasses.replace(post.draws, weights_of_draws=weights),
        post.info, post.preprocessing, post.configuration, training=post.training,
    )  # fmt: skip
    assert list(heavy.split_chains(heavy.tree(0, 0))) == [2]
    np.testing.assert_allclose(heavy.tree(0, 0).certainty, [0.7])


@pytest.mark.parametrize(
    ("missing", "of_left", "of_right", "of_imputed"), [(1, 0.8, 0.7, 1.0), (4, 0.3, 0.2, 0.5)]
)
def test_imputing_few_cells_makes_no_other_split(missing, of_left, of_right, of_imputed):
    """30 cuts send missing cells left, 20 right, and 50 impute them, of one or four of 40 rows."""
    post = with_splits([100])
    levels = np.repeat(np.array([0, 1, 2], np.uint64), [30, 20, 50])
    kinds = np.array([-2, 0])
    post = post._with(draws=dataclasses.replace(post.draws, levels=levels, kinds=kinds))
    columns = np.random.default_rng(0).random((2, 40))
    columns[0, :missing] = MISSING
    census = SplitCensus(post.draws, columns)
    found = [census.certainty(post.tree(0, draw))[0] for draw in (0, 30, 50)]
    np.testing.assert_allclose(found, [of_left, of_right, of_imputed])


def test_splits_by_chain_average_to_their_certainty(seed):
    post = fake_posterior(seed, n_chains=3, n_draws=40, n_training=30, oblique=True)
    tree = max(all_trees(post), key=lambda tree: tree.n_leaves)
    shares = post._census.by_chain(tree)
    assert shares.shape == (tree.n_leaves - 1, 3)
    np.testing.assert_allclose(shares.mean(axis=1), tree.certainty, atol=1e-12)


def test_likes_of_weighted_splits_are_counted_on_samples(seed, monkeypatch):
    post = fake_posterior(seed, n_draws=50, n_training=300, oblique=True)
    exact = post.best_tree().certainty
    monkeypatch.setattr(representative_tree, "OBLIQUE_DRAWS", 40)
    monkeypatch.setattr(representative_tree, "ROWS_COMPARED", 100)
    sampled = fake_posterior(seed, n_draws=50, n_training=300, oblique=True).best_tree().certainty
    assert exact.shape == sampled.shape
    np.testing.assert_allclose(np.round(sampled * 40), sampled * 40)  # shares of 40 draws


@pytest.mark.parametrize("n_classes", [0, 3])
def test_the_representative_is_the_medoid(n_classes, seed, rng):
    post = weighted(fake_posterior(seed, n_draws=30, n_classes=n_classes, n_training=50), rng)
    predictions = post.predict_draws(post.training.X).reshape(60, -1)
    distance = ((predictions[:, None] - predictions[None]) ** 2).sum(axis=2)
    total = distance @ post.weights.ravel()
    total[post.weights.ravel() == 0] = np.inf
    expected = post._tree(int(total.argmin())).settled()
    assert post.representative_tree().to_text() == expected.to_text()
    with pytest.raises(ValueError, match="representative_tree needs the training data"):
        post.without_data().representative_tree()


def test_the_best_draw_has_the_highest_posterior(seed):
    post = fake_posterior(seed, n_training=20)
    chain, draw = np.unravel_index(post.log_posterior.argmax(), post.log_posterior.shape)
    best = post.best_tree(polish=False)
    assert best.to_text() == post.tree(int(chain), int(draw)).to_text()


@pytest.mark.parametrize("oblique", [False, True])
def test_shapes(oblique, seed, rng):
    post = fake_posterior(seed, n_draws=100, max_leaves=3, oblique=oblique, n_training=10)
    post = weighted(post, rng)
    groups: dict[tuple, list[int]] = {}
    for t in range(200):
        nodes, splits, _ = places(post.draws, t)
        key = (tuple(post.draws.size[nodes]), tuple(post.draws.feature[splits]))
        groups.setdefault(key, []).append(t)
    weights, log_posterior = post.weights.ravel(), post.log_posterior.ravel()
    expected = sorted((weights[members].sum() for members in groups.values()), reverse=True)
    shapes = post.shapes(10_000)
    np.testing.assert_allclose([shape.probability for shape in shapes], expected, rtol=1e-12)
    assert sum(shape.n_draws for shape in shapes) == 200
    assert len({shape.text for shape in shapes}) == len(shapes) == len(groups)
    for shape in shapes[:5]:
        key = (tuple(shape.tree.size), tuple(shape.tree.feature))
        best = max(groups[key], key=lambda t: log_posterior[t])
        np.testing.assert_array_equal(shape.tree.threshold, post._tree(best).threshold)
    assert len(post.shapes(2)) == 2


def test_text_of_a_shape(seed):
    post = fake_posterior(seed, n_chains=1, n_draws=1, n_leaves=np.array([[4]]))
    draws = dataclasses.replace(
        post.draws,
        size=np.array([7, 3, 1, 1, 3, 1, 1], np.int32),
        feature=np.array([2, 0, 3], np.int32),
        depth=np.array([[2]]),
    )
    post = Posterior(draws, post.info, post.preprocessing, post.configuration)
    assert post.shapes()[0].text == "mass (kg) (length (leaf, leaf), age (leaf, leaf))"
    root = fake_posterior(seed, n_chains=1, n_draws=1, n_leaves=np.array([[1]]))
    assert root.shapes()[0].text == "leaf"
    assert root.shapes()[0].probability == 1


@pytest.mark.parametrize("h", [0.0, 0.1])
def test_similarity_is_the_chance_of_one_leaf(h, seed, rng):
    post = weighted(fake_posterior(seed, n_draws=30, h=h), rng)
    X = fake_rows(12, seed)
    chosen = post.equally_weighted(2000)  # what the method looks at
    expected = np.zeros((12, 12))
    for t in range(60):
        nodes, splits, _ = places(chosen.draws, t)
        tree = dataclasses.replace(
            post.tree(0, 0),
            size=chosen.draws.size[nodes],
            feature=chosen.draws.feature[splits],
            threshold=chosen.draws.threshold[splits],
            weights=chosen.draws.split_weights[splits],
            leaf=chosen.draws.leaf[places(chosen.draws, t)[2]],
        )
        phi = tree.reach(X)
        expected += phi @ phi.T / 60
    np.testing.assert_allclose(post.similarity(X), expected, atol=1e-12)


def test_shares_of_splits(seed):
    post = fake_posterior(seed, n_draws=20)
    shares = representative_tree.shares_of_splits(post.draws, np.array([2, 0]))
    for t, tree in enumerate(all_trees(post)):
        n = max(len(tree.feature), 1)
        assert shares[t].tolist() == [np.sum(tree.feature == 2) / n, np.sum(tree.feature == 0) / n]


def test_systematic_resampling_follows_the_weights(rng):
    weights = rng.dirichlet(np.ones(20))
    counts = np.bincount(systematic(weights, 1000), minlength=20)
    assert (np.abs(counts - 1000 * weights) < 1 + 1e-9).all()
    assert systematic(np.full((2, 5), 0.1), 10).tolist() == list(range(10))
    assert systematic(np.array([1.0, 0.0]), 3).tolist() == [0, 0, 0]
