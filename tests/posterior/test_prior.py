"""Draws from the prior against its known law, and against an independent simulation of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hamiltree.inputs.columns import Column, coded
from hamiltree.inputs.preprocess import learn
from hamiltree.methods import CGM, HMCDF, HMCDFI, SMC, WU
from hamiltree.posterior import Posterior
from hamiltree.posterior.draws import TrainingData
from hamiltree.posterior.prior import prior_trees

from ..reference import simulate_hard
from ..reference.enumerate_hard import HardPrior, Leaves
from ..reference.enumerate_special import SpecialToy, labels_of_special
from ..reference.model import Prior, sample_tree, shape, splits
from ..support.fake_draws import fake_posterior, fake_rows

N = 4000
LEVEL = 1e-5  # of a false alarm in each test
FEATURES = (1.0, 3.0, 2.0, 0.5)
SHAPES = {"alpha_split": 0.8, "beta_split": 0.7, "max_leaves": 6}
HARD = {"feature_prior": FEATURES, "min_leaves": 1}


def with_method(method, n_classes=0, *, h=0.0, shared=None, columns=4):
    """A posterior whose prior is that of the method, on 30 rows with ties."""
    base = fake_posterior(1, n_classes=n_classes, h=h, oblique=isinstance(method, HMCDFI))
    configuration = method.configured(
        regression=not n_classes, **(SHAPES if shared is None else shared)
    )
    rows = fake_rows(30, seed=5)
    scale = base.preprocessing
    unit = np.round(np.clip((rows[:, scale.used] - scale.minimum) / scale.span, 0, 1), 1)
    unit[0], unit[1] = 0.0, 1.0
    rows[:, scale.used] = scale.minimum + unit * scale.span
    y = np.zeros(30, int) if n_classes else np.zeros(30)
    return Posterior(
        base.draws, base.info, scale, configuration, training=TrainingData(rows, y)
    ), np.ascontiguousarray(scale.to_unit(rows).T)


def sizes(posterior):
    draws = posterior.draws
    return [
        tuple(draws.size[a:b].tolist())
        for a, b in zip(draws.node_offset[:-1], draws.node_offset[1:], strict=True)
    ]


def assert_same_shares(found, expected):
    """Chi-square test that two samples of labels come from one law; rare labels pooled."""
    one, other = Counter(found), Counter(expected)
    counts = np.array([[c[label] for label in {*one, *other}] for c in (one, other)])
    common = counts.sum(axis=0) >= 20
    table = np.hstack([counts[:, common], counts[:, ~common].sum(axis=1, keepdims=True)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > LEVEL


def assert_same_numbers(found, expected):
    assert stats.ks_2samp(found, expected).pvalue > LEVEL


SOFT = {
    "df": (HMCDF(feature_prior=FEATURES, tau_prior=(2.0, 3.0)), {}),
    "df, at least two leaves": (HMCDF(feature_prior=FEATURES, min_leaves=2), {}),
    "dfi": (HMCDFI(weight_prior=0.6), {}),
}


@pytest.mark.parametrize("name", SOFT)
def test_soft_trees_follow_the_prior(name, rng):
    method = SOFT[name][0]
    post, _ = with_method(method, 3)
    drawn = prior_trees(post, N, rng)
    prior = Prior(
        alpha_split=0.8, beta_split=0.7, max_leaves=6, min_leaves=method.min_leaves,
        tau=method.tau_prior, feature=FEATURES, weight=getattr(method, "weight_prior", 1.0),
    )  # fmt: skip
    trees = [sample_tree(rng, 4, prior, method=method.name) for _ in range(N)]
    assert_same_shares(sizes(drawn), [shape(tree) for tree in trees])
    rules = [split for tree in trees for split in splits(tree)]
    assert_same_numbers(drawn.draws.threshold, [split.threshold for split in rules])
    if method.name == "hmc-dfi":
        weights = np.array([split.rule for split in rules])
        for column in range(4):
            assert_same_numbers(drawn.draws.split_weights[:, column], weights[:, column])
    else:
        assert_same_shares(drawn.draws.feature.tolist(), [split.rule for split in rules])
    depth = [tree.depth for tree in (drawn.tree(0, d) for d in range(50))]
    assert drawn.depth[0, :50].tolist() == depth


HARD_PRIORS = {
    "uniform": CGM(rule_prior="uniform", **HARD),
    "gap": CGM(rule_prior="gap", **HARD),
    "uniform01": CGM(rule_prior="uniform01", tau_prior=(2.0, 3.0), **HARD),
    "wu": WU(expected_splits=1.5, left_share=0.4, feature_prior=FEATURES, tau_prior=(2.0, 3.0)),
    "smc": SMC(feature_prior=FEATURES),
}


@pytest.mark.parametrize("name", HARD_PRIORS)
def test_hard_trees_follow_the_prior(name, rng):
    method = HARD_PRIORS[name]
    shared = {"max_leaves": 6} if name == "wu" else None
    if name == "smc":  # without its limit, which stops trees where others refuse them
        shared = {"alpha_split": 0.8, "beta_split": 1.5, "max_leaves": 200}
    post, X = with_method(method, shared=shared)
    drawn = prior_trees(post, N, rng)
    limits = post.configuration
    prior = HardPrior(
        "gap" if name == "smc" else name, alpha_split=limits.alpha_split or 0.5,
        beta_split=limits.beta_split or 0.0, max_leaves=limits.max_leaves, features=FEATURES,
        expected_splits=1.5, left_share=0.4, tau=getattr(method, "tau_prior", (1.0, 1.0)),
    )  # fmt: skip
    trees = [simulate_hard.draw_tree(rng, X, prior) for _ in range(N)]
    assert_same_shares(
        drawn.n_leaves.ravel().tolist(), [simulate_hard.n_leaves(tree) for tree in trees]
    )
    assert_same_shares(drawn.depth.ravel().tolist(), [simulate_hard.depth(tree) for tree in trees])
    rules = [split for tree in trees for split in simulate_hard.splits(tree)]
    assert_same_shares(drawn.draws.feature.tolist(), [feature for feature, _ in rules])
    assert_same_numbers(drawn.draws.threshold, [threshold for _, threshold in rules])
    # Below the root, where a rule has to fit the rows of its node.
    offset = (drawn.draws.node_offset[:-1] - np.arange(N)) // 2
    below = np.delete(drawn.draws.threshold, offset[drawn.n_leaves[0] > 1])
    expected = [threshold for tree in trees for _, threshold in simulate_hard.splits(tree)[1:]]
    assert_same_numbers(below, expected)
    if name != "uniform01":
        assert all((drawn.tree(0, d).n_rows > 0).all() for d in range(300))


def test_smc_stops_at_its_limit(rng):
    shared = {"alpha_split": 0.95, "beta_split": 0.1, "max_leaves": 3}
    post, _ = with_method(SMC(min_leaves=2), shared=shared)
    drawn = prior_trees(post, 500, rng)
    assert set(drawn.n_leaves.ravel().tolist()) == {2, 3}
    # root, then left: 1 - P(neither of the two children splits)
    split = 0.95 * 2**-0.1
    share = (drawn.n_leaves == 3).mean()
    expected = 1 - (1 - split) ** 2
    assert stats.binomtest(int(share * 500), 500, expected).pvalue > LEVEL


def test_small_nodes_of_smc_stay_whole(rng):
    post, _ = with_method(SMC(min_size=20), shared={"alpha_split": 0.95, "beta_split": 0.0})
    drawn = prior_trees(post, 100, rng)
    trees = [drawn.tree(0, number) for number in range(100)]
    assert all((tree.n_rows[tree.size > 1] > 20).all() for tree in trees)
    assert max(tree.n_leaves for tree in trees) > 2


def test_means_of_hard_trees_are_normal_at_every_row(rng):
    """Whatever the tree, a row's mean is one draw from the prior of a leaf's."""
    post, _ = with_method(HMCDF(mu_prior=(0.5, 2.0), sigma_prior=(3.0, 2.0)))
    rows = fake_rows(3)
    means = post.sample_prior(rows, N, rng)
    assert means.shape == (N, 3)
    for row in range(3):
        law = stats.norm(40 + 12 * 0.5, 12 * 2.0)
        assert stats.kstest(means[:, row], law.cdf).pvalue > LEVEL
    new = post.sample_prior(rows, N, rng, observations=True)
    sigma = 2.0 / rng.gamma(3.0, size=N)
    expected = 40 + 12 * (0.5 + 2.0 * rng.normal(size=N) + sigma * rng.normal(size=N))
    assert_same_numbers(new[:, 0], expected)


@pytest.mark.parametrize("variance", ["leaf", "common"])
def test_means_of_conjugate_leaves_are_students_t(variance, rng):
    method = CGM(variance=variance, variance_prior=(2.0, 0.6), mean_prior=(0.3, 0.5))
    post, _ = with_method(method)
    means = post.sample_prior(fake_rows(1), N, rng)[:, 0]
    law = stats.t(4.0, 40 + 12 * 0.3, 12 * np.sqrt(0.6 / 2.0 / 0.5))
    assert stats.kstest(means, law.cdf).pvalue > LEVEL
    new = post.sample_prior(fake_rows(1), N, rng, observations=True)[:, 0]
    law = stats.t(4.0, 40 + 12 * 0.3, 12 * np.sqrt(0.6 / 2.0 * (1 + 1 / 0.5)))
    assert stats.kstest(new, law.cdf).pvalue > LEVEL
    drawn = prior_trees(post, 50, rng)
    for tree in (drawn.tree(0, d) for d in range(50)):
        sds = np.unique(tree.leaf[:, 1])
        assert len(sds) == (1 if variance == "common" else tree.n_leaves)


def test_class_probabilities_of_hard_trees_are_beta(rng):
    post, _ = with_method(HMCDF(class_prior=(0.5, 1.0, 2.0)), 3)
    p = post.sample_prior(fake_rows(2), N, rng)
    assert p.shape == (N, 2, 3)
    np.testing.assert_allclose(p.sum(axis=2), 1)
    for k, own in enumerate((0.5, 1.0, 2.0)):
        assert stats.kstest(p[:, 0, k], stats.beta(own, 3.5 - own).cdf).pvalue > LEVEL
    labels = post.sample_prior(fake_rows(2), N, rng, observations=True)
    counts = [int((labels[:, 0] == name).sum()) for name in ("ash", "beech", "cedar")]
    assert stats.chisquare(counts, N * np.array([0.5, 1.0, 2.0]) / 3.5).pvalue > LEVEL


def test_two_rows_share_a_leaf_as_often_as_in_simulated_trees(rng):
    """Means of two rows are equal where they share a leaf; soft splits are left aside."""
    post, X = with_method(CGM(rule_prior="gap", **HARD))
    means = post.sample_prior(post.training.X[2:4], N, rng)
    together = (means[:, 0] == means[:, 1]).sum()
    prior = HardPrior("gap", alpha_split=0.8, beta_split=0.7, max_leaves=6, features=FEATURES)
    trees = [simulate_hard.draw_tree(rng, X, prior) for _ in range(N)]
    leaves = np.array([simulate_hard.leaf_of(tree, X[2:4]) for tree in trees])
    expected = (leaves[:, 0] == leaves[:, 1]).sum()
    table = [[together, N - together], [expected, N - expected]]
    assert stats.chi2_contingency(table).pvalue > LEVEL


@pytest.mark.parametrize("columns", [1, 4])
def test_learned_h_has_its_prior(columns, rng):
    method = HMCDF(h_prior=(0.02, 1.5), h_by_feature=columns > 1)
    post, _ = with_method(method, shared={"h": "learn"})
    post.draws = replace(post.draws, h=np.full((10, columns), 0.1))
    h = prior_trees(post, N, rng).draws.h
    assert h.shape == (N, columns)
    low, high = np.log(1e-4 / 0.02) / 1.5, np.log(0.5 / 0.02) / 1.5
    law = stats.truncnorm(low, high)
    z = np.log(h / 0.02) / 1.5
    for column in range(columns):
        assert stats.kstest(z[:, column], law.cdf).pvalue > LEVEL


def test_an_impossible_prior_and_missing_rows_are_refused(rng):
    post, _ = with_method(HMCDF(min_leaves=6), shared={"alpha_split": 0.01, "beta_split": 2.0})
    with pytest.raises(ValueError, match="hardly ever has trees of 6 to 256 leaves"):
        post.sample_prior(fake_rows(1), 2, rng)
    with pytest.raises(ValueError, match="at least 1"):
        post.sample_prior(fake_rows(1), 0, rng)
    post, _ = with_method(WU(), shared={})
    with pytest.raises(ValueError, match="sample_prior needs the training data"):
        post.without_data().sample_prior(fake_rows(1), 2, rng)


def test_the_same_seed_gives_the_same_draws():
    post, _ = with_method(HMCDF(), 3)
    one, other = (post.sample_prior(fake_rows(4), 20, 3) for _ in range(2))
    np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------ missing cells and categories

X_SPECIAL = np.column_stack(
    [
        [0.0, 0.2, 0.2, np.nan, 0.4, 0.7, np.nan, 1.0, np.nan],
        [0, 1, 2, 0, 1, 2, 2, 1, 0],
        [0.0, 1.0, 0.5, 0.5, 0.0, 1.0, 0.0, 0.5, 0.0],
    ]
)
KINDS = ((0, True), (3, False), (0, False))
SMALL = {"alpha_split": 0.8, "beta_split": 0.7, "max_leaves": 3}
SPECIAL = {
    "uniform": CGM(rule_prior="uniform", min_leaves=1),
    "gap": CGM(rule_prior="gap", min_leaves=1),
    "uniform01": CGM(rule_prior="uniform01", min_leaves=1),
    "wu": WU(expected_splits=1.5, left_share=0.4),
    "hmc-df": HMCDF(min_leaves=1),
}


def special_posterior(method, *, expand=False):
    base = fake_posterior(1, n_classes=0, h=0.0, oblique=isinstance(method, HMCDFI))
    about = (Column(missing=True), Column(levels=("a", "b", "c")), Column())
    y = np.arange(9.0)
    scale = learn(X_SPECIAL, None, y=y, columns=about, expand=expand)
    shared = {"max_leaves": 3} if isinstance(method, WU) else SMALL
    configuration = method.configured(regression=True, **shared)
    draws = replace(base.draws, h=np.zeros(len(scale.used)))
    training = TrainingData(X_SPECIAL, y)
    return Posterior(draws, base.info, scale, configuration, training=training)


@pytest.mark.parametrize("name", SPECIAL)
def test_trees_on_special_columns_follow_the_prior(name, rng):
    """Every tree of at most three leaves, against its enumerated probability."""
    kind = "uniform01" if name == "hmc-df" else name
    prior = HardPrior(
        kind, alpha_split=0.8, beta_split=0.7, max_leaves=3, expected_splits=1.5, left_share=0.4
    )
    toy = SpecialToy(X_SPECIAL, np.arange(9.0), prior, Leaves(), columns=KINDS)
    exact = toy.exact(likelihood=False)
    n = 3 * N
    drawn = prior_trees(special_posterior(SPECIAL[name]), n, rng).draws
    labels = Counter(
        labels_of_special(
            toy, drawn.node_offset, drawn.size, drawn.feature, drawn.threshold, drawn.levels
        )
    )
    assert set(labels) <= set(exact)
    common = [label for label, p in exact.items() if p * n >= 10]
    assert len(common) > 20
    counts = [labels[label] for label in common]
    expected = [exact[label] * n for label in common]
    if sum(expected) < n - 10:
        counts.append(n - sum(counts))
        expected.append(n - sum(expected))
    scale = n / sum(expected)
    assert stats.chisquare(counts, np.array(expected) * scale).pvalue > LEVEL


def test_prior_predictions_of_special_tables(rng):
    """Of holes and levels never seen, also by a method that sees levels as columns of 0 and 1."""
    rows = np.array([[np.nan, 1.0, np.nan], [0.3, np.nan, 0.1]])
    for method, expand in ((HMCDF(), False), (SMC(), False), (HMCDFI(), True)):
        means = special_posterior(method, expand=expand).sample_prior(coded(rows), 50, rng)
        assert means.shape == (50, 2)
        assert np.isfinite(means).all()
