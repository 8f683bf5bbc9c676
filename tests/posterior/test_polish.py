"""The best tree: a search from the best draws, exact about its log posterior, never worse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import CGM, HMCDF, HMCDFI, SMC, WU
from hamiltree.posterior import polish
from tests.reference import model as reference
from tests.reference.enumerate_hard import LEAF, HardPrior, Leaves, Toy
from tests.reference.leaf_proposal import LeafProposal
from tests.support.configuring import changed
from tests.support.fake_draws import fake_posterior

SHORT = {"n_chains": 2, "n_warmup": 30, "n_draws": 30, "n_jobs": 1, "random_state": 0}
PRIOR = {"alpha_split": 0.95, "beta_split": 1.0}


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such short chains need not agree
        return model.fit(X, y)


def rows_of(rng, n, p):
    """On a grid, so that values are shared, from 0 to 1 in every column."""
    X = rng.integers(0, 5, (n, p)) / 4
    X[0], X[1] = 0.0, 1.0
    return X


def label_of(tree, levels):
    """As the reference labels a tree: -1 for a leaf, 100 feature + cell + 1 for a split."""
    label, split = [], 0
    for size in tree.size:
        if size == 1:
            label.append(LEAF)
            continue
        feature = int(tree.feature[split])
        cell = int(np.searchsorted(levels[feature], tree.threshold[split], side="right")) - 1
        label.append(100 * feature + cell + 1)
        split += 1
    return tuple(label)


HARD = {
    "cgm classes": (CGM(class_prior=2.5), "uniform", Leaves(class_prior=(2.5, 2.5))),
    "cgm leaf": (CGM(variance_prior=(2.0, 1.0), mean_prior=(0.0, 0.5)), "uniform", Leaves()),
    "cgm common": (
        CGM(variance_prior=(2.0, 1.0), mean_prior=(0.0, 0.5), variance="common"),
        "uniform",
        Leaves(common=True),
    ),
    "wu classes": (
        WU(class_prior=2.5, expected_splits=1.5, left_share=0.4), "wu",
        Leaves(class_prior=(2.5, 2.5)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HARD)
def test_the_best_hard_tree_is_the_best_of_all(case, rng):
    """Of every tree of up to four leaves, listed by the reference, with its log posterior."""
    method, kind, leaves = HARD[case]
    X = rows_of(rng, 14, 2)
    signal = 2.0 * (X[:, 0] > 0.5) - 1.5 * (X[:, 1] > 0.2) * (X[:, 0] <= 0.5)
    y = signal + 0.3 * rng.standard_normal(14)
    shape = {} if kind == "wu" else PRIOR
    if leaves.class_prior:
        y = (y > np.median(y)).astype(int)
        model = BayesianTreeClassifier(method=method, max_leaves=4, **shape, **SHORT)
    else:
        model = BayesianTreeRegressor(
            method=method, max_leaves=4, standardize=False, **shape, **SHORT
        )
    tree = fitted(model, X, y).best_tree()
    toy = Toy(X, y, HardPrior(kind, max_leaves=4), leaves)
    widths = [np.diff([0.0, *levels, 1.0]) for levels in toy.levels]

    def density(label):
        """Thresholds of WU have a density, where the reference has the mass of a cell."""
        codes = [code for code in label if code != LEAF and kind == "wu"]
        return -sum(np.log(widths[code // 100][code % 100]) for code in codes)

    values = {
        label: log_p + toy.log_marginal(parts) + density(label) for label, log_p, parts in toy.trees
    }
    np.testing.assert_allclose(tree.log_posterior, max(values.values()), atol=1e-9)
    np.testing.assert_allclose(tree.log_posterior, values[label_of(tree, toy.levels)], atol=1e-9)


LEARNED = {"h_prior": (0.02, 1.0)}
NOISE = {"sigma_prior": (1.5, 1.5)}  # as the reference has it
SOFT = {
    "hard classes": (HMCDF(), 0.0),
    "soft counts": (HMCDF(likelihood="paper"), 0.05),
    "labels": (HMCDF(class_prior=2.0), 0.05),
    "flat labels": (HMCDF(class_prior=1.0), 0.05),
    "labels, by default": (HMCDF(), 0.05),
    "labels, learned h": (HMCDF(class_prior=1.0, **LEARNED), "learn"),
    "hard numbers": (HMCDF(**NOISE), 0.0),
    "numbers": (HMCDF(**NOISE), 0.05),
    "numbers, learned h": (HMCDF(**NOISE, **LEARNED), "learn"),
    "numbers, h by feature": (HMCDF(**NOISE, **LEARNED, h_by_feature=True), "learn"),
}


def log_prior_of_h(tree, method, by_feature):
    """Log-normal, cut off at 1e-4 and 0.5."""
    median, sd = method.h_prior
    law = stats.lognorm(sd, scale=median)
    inside = law.cdf(0.5) - law.cdf(1e-4)
    h = tree.h if by_feature else tree.h[:1]
    return float(np.sum(law.logpdf(h) - np.log(inside)))


@pytest.mark.parametrize("case", SOFT)
def test_the_log_posterior_of_soft_trees_is_the_references(case, rng):
    method, h = SOFT[case]
    X = rng.random((60, 3))
    numbers = "numbers" in case
    y = np.where(X[:, 0] > 0.4, 2.0, np.where(X[:, 1] > 0.5, -1.0, 0.5))
    y = y + 0.4 * rng.standard_normal(60)
    if numbers:
        model = BayesianTreeRegressor(method=method, h=h, standardize=False, **PRIOR, **SHORT)
    else:
        y = np.digitize(y, [0.0, 1.5])
        model = BayesianTreeClassifier(method=method, h=h, **PRIOR, **SHORT)
    posterior = fitted(model, X, y).posterior_
    tree = posterior.best_tree()
    if "labels" not in case:  # log posteriors of their draws are of the probabilities, too
        assert tree.log_posterior >= posterior.log_posterior.max()
        if h:  # thresholds are never at their best by chance
            assert tree.log_posterior > posterior.log_posterior.max()
    unit = posterior.preprocessing.to_unit(X).T
    prior = reference.Prior(**PRIOR, classes=method.class_concentration(3))
    same = reference.from_flat(tree.size, tree.feature, tree.threshold)
    options = {"sigma": tree.sigma} if numbers else {"n_classes": 3}
    value = reference.log_posterior(same, unit, y, tree.h, prior, **options)
    tolerance = 1e-6
    if "labels" in case:
        value -= reference.log_likelihood_class(same, unit, y, 3, tree.h, prior)
        share = reference.phi(same, unit, tree.h)
        of_leaves = LeafProposal(share, y, np.array(prior.classes), 1.0)
        integral, error = of_leaves.log_integral(2_000, rng)
        value += integral
        tolerance = 6.0 * error  # of both, each by 2,000 draws
        assert tolerance < 1.0
    if h == "learn":
        value += log_prior_of_h(tree, method, method.h_by_feature)
    np.testing.assert_allclose(tree.log_posterior, value, rtol=0.0, atol=tolerance)


def test_the_search_is_the_same_each_time_and_done_once(rng):
    X = rows_of(rng, 80, 4)
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)
    model = fitted(BayesianTreeClassifier(method="cgm", **SHORT), X, y)
    tree = model.best_tree()
    assert tree is model.posterior_.best_tree()
    other = model.posterior_.without_data()._with(training=model.posterior_.training)
    again = other.best_tree()
    assert again.to_text() == tree.to_text()
    assert again.log_posterior == tree.log_posterior
    draw = model.posterior_.best_tree(polish=False)
    assert draw.log_posterior == model.posterior_.log_posterior.max() <= tree.log_posterior


def test_leaves_hold_the_training_rows(rng):
    """By weight, with the missing cells and categories that they came with."""
    n = 90
    X = np.column_stack([rng.random(n), rng.integers(0, 4, n).astype(float)])
    X[rng.random(n) < 0.2, 0] = np.nan
    y = (np.nan_to_num(X[:, 0], nan=1.0) > 0.6).astype(int) + (X[:, 1] == 2)
    weights = rng.integers(1, 3, n)
    for method in ("cgm", HMCDF()):
        model = BayesianTreeClassifier(method=method, categorical_features=[1], h=None, **SHORT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = model.fit(X, y, sample_weight=weights).best_tree()
        if method == "cgm":
            assert tree.log_posterior >= model.posterior_.log_posterior.max()
        np.testing.assert_allclose(tree.leaf.sum(), weights.sum(), rtol=1e-9)
        assert np.mean(model.classes_[tree.predict(X).argmax(axis=1)] == y) > 0.9


NOT_SEARCHED = {
    "hmc-dfi": BayesianTreeClassifier(method=HMCDFI(), **SHORT),
    "smc": BayesianTreeClassifier(method=SMC(), n_chains=2, n_draws=50, random_state=0),
    "explicit means": BayesianTreeRegressor(method=HMCDF(leaf_means="explicit"), h=0.05, **SHORT),
    "no likelihood": BayesianTreeClassifier(method=CGM(likelihood_power=0.0), **SHORT),
}


@pytest.mark.parametrize("case", NOT_SEARCHED)
def test_otherwise_it_is_the_best_draw(case, rng):
    X = rng.random((40, 2))
    posterior = fitted(NOT_SEARCHED[case], X, (X[:, 0] > 0.5).astype(int)).posterior_
    assert posterior.best_tree().log_posterior == posterior.log_posterior.max()


def test_without_data_and_for_large_data_it_is_the_best_draw(rng, monkeypatch):
    X = rows_of(rng, 80, 4)
    posterior = fitted(BayesianTreeClassifier(method="cgm", **SHORT), X, X[:, 0] > 0.5).posterior_
    best = posterior.log_posterior.max()
    assert posterior.without_data().best_tree().log_posterior == best
    monkeypatch.setattr(polish, "CELLS_SEEN", 100)
    assert posterior._with().best_tree().log_posterior == best


@pytest.mark.parametrize("h", [0.0, 0.1])
def test_draws_that_the_model_does_not_know_are_left_alone(h):
    """Their log posterior is not that of the configuration: nothing could be compared with it.

    Where leaf probabilities are sampled that shows if their prior is flat.
    """
    posterior = fake_posterior(0, h=h, n_training=60)
    flat = changed(posterior.configuration, class_prior=1.0)
    posterior = posterior._with(configuration=flat)
    assert polish.polished_tree(posterior) is None


def test_columns_of_two_values_count_a_quarter(rng):
    numbers, flags = rng.random((4, 50_000)), rng.integers(0, 2, (4, 50_000)).astype(float)
    assert polish.iterations_for(numbers) == polish.CELLS_SEEN // numbers.size
    assert polish.iterations_for(flags) == 4 * polish.CELLS_SEEN // flags.size
    assert polish.iterations_for(numbers[:, :100]) == polish.MOST_ITERATIONS
