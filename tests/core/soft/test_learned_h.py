"""The steps of h="learn" one by one, each against the reference or an exact conditional."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid
from scipy.special import gammaln

from hamiltree.core.soft.data import CLASSES, COLLAPSED, MEANS
from hamiltree.core.soft.labels import label_likelihood
from hamiltree.core.soft.learned_h import (
    LearnedH,
    correct,
    fit_probabilities,
    log_dirichlet,
    log_prior_of_h,
    refresh,
    update_h,
)
from hamiltree.core.soft.target import likelihood
from hamiltree.core.tree.nodes import copy_tree, empty_tree, n_leaves
from hamiltree.samplers.learning import LearningRJHMC
from hamiltree.samplers.rjhmc import RJHMC

from ...reference.exact_learned import H_RANGE, h_prior
from ...reference.model import (
    TOYS,
    log_likelihood_class,
    log_likelihood_collapsed,
    log_likelihood_labels,
    log_likelihood_reg,
    phi,
)
from ...support.configuring import configured
from ...support.core_trees import (
    MAX_LEAVES,
    PRIOR,
    random_model,
    random_tree,
    to_reference,
    with_room,
)

LEVEL = 1e-4
PRIOR_OF_H = (0.05, 0.8)
FAMILIES = {"classes": CLASSES, "explicit means": MEANS, "means integrated out": COLLAPSED}
CONCENTRATION = 0.7  # of random_model's leaves


def make_learning(rng, model, tree, by_feature=False) -> LearnedH:
    classes = max(len(model.leaf_prior.class_prior), 1)
    tables = [np.zeros((MAX_LEAVES, classes)) for _ in range(5)]
    tables[0][:] = rng.dirichlet(np.ones(classes), size=MAX_LEAVES)
    empty, rows = np.zeros(0), model.data.columns.shape[1]
    ends = [(np.log(end) - np.log(PRIOR_OF_H[0])) / PRIOR_OF_H[1] for end in H_RANGE]
    return LearnedH(
        log_median=np.log(PRIOR_OF_H[0]),
        log_sd=PRIOR_OF_H[1],
        log_mass=np.log(np.diff(stats.norm.cdf(ends))[0]),
        log_low=np.log(H_RANGE[0]),
        log_high=np.log(H_RANGE[1]),
        by_feature=by_feature,
        p=tables[0],
        new_p=tables[1],
        concentration=tables[2],
        rows=tables[3],
        spare=tables[4],
        prior=model.leaf_prior.class_prior.reshape(1, -1),
        uniform=np.zeros(rows),
        empty=empty,
        log_weight=np.zeros(1),
        log_like=np.zeros(1),
        before=empty_tree(MAX_LEAVES, tree.weights.shape[1]),
        like_before=np.zeros(1),
        accepted_before=np.zeros(10, np.int64),
        nuts_tally=np.zeros((2, 2), np.int64),
        labels=label_likelihood,
    )


def setting(rng, family, *, oblique=False, n_splits=3, power=1.0, n_rows=20, by_feature=False):
    tree = random_tree(rng, 3, n_splits, oblique)
    model, work, X, y = random_model(
        rng, FAMILIES[family], tree, n_rows=n_rows, n_features=3, h=PRIOR_OF_H[0], power=power
    )
    return tree, model, work, X, y, make_learning(rng, model, tree, by_feature)


# ------------------------------------------------------------------ h


def log_likelihood(family, tree, X, y, h, p):
    reference, sigma = to_reference(tree), float(tree.sigma[0])
    if family == "classes":
        return log_likelihood_labels(reference, X, y, p[: n_leaves(tree)], h)
    if family == "explicit means":
        return log_likelihood_reg(reference, X, y, sigma, h)
    return log_likelihood_collapsed(reference, X, y, sigma, h, PRIOR)


def conditional(log_density):
    """Distribution function of log h from its unnormalised log density."""
    u = np.linspace(*np.log(H_RANGE), 500)
    log_values = np.array([log_density(v) for v in u])
    below = cumulative_trapezoid(np.exp(log_values - log_values.max()), u, initial=0.0)
    return lambda v: np.interp(v, u, below / below[-1])


def updates(n, model, tree, work, learning, log_like, rng):
    """log h after each of n updates, [n, columns]."""
    kept = np.empty((n, len(model.h)))
    for row in kept:
        log_like = update_h(model, tree, work, learning, log_like, rng)
        row[:] = np.log(model.h)
    return kept, log_like


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_h_has_its_conditional(family, oblique, rng):
    tree, model, work, X, y, learning = setting(rng, family, oblique=oblique)

    def like(u):
        return log_likelihood(family, tree, X, y, np.exp(u), learning.p)

    law = h_prior(*PRIOR_OF_H)
    cdf = conditional(lambda u: law.logpdf(u) + like(u))
    start = like(np.log(model.h[0]))
    kept, log_like = updates(2000, model, tree, work, learning, start, rng)
    assert (kept == kept[:, :1]).all()
    assert log_like == pytest.approx(like(kept[-1, 0]), rel=1e-9)
    assert stats.kstest(cdf(kept[100::4, 0]), "uniform").pvalue > LEVEL


@pytest.mark.parametrize("family", FAMILIES)
def test_each_column_has_its_conditional(family, rng):
    """Those that the tree splits on, given the others; the rest have the prior."""
    tree, model, work, X, y, learning = setting(rng, family, n_splits=2, by_feature=True)
    tree.feature[tree.feature == 2] = 0  # a column without a split
    assert set(tree.feature[: int(tree.n_nodes[0])]) - {-1} <= {0, 1}
    grid = np.linspace(*np.log(H_RANGE), 60)
    law = h_prior(*PRIOR_OF_H)
    joint = np.array(
        [
            [log_likelihood(family, tree, X, y, np.exp([a, b, 0.0]), learning.p) for b in grid]
            for a in grid
        ]
    )
    joint = np.exp(joint - joint.max()) * law.pdf(grid)[:, None] * law.pdf(grid)
    start = log_likelihood(family, tree, X, y, model.h, learning.p)
    kept, _ = updates(3000, model, tree, work, learning, start, rng)
    kept = kept[100::5]
    for axis in (0, 1):
        below = cumulative_trapezoid(joint.sum(axis=1 - axis), grid, initial=0.0)
        place = np.interp(kept[:, axis], grid, below / below[-1])
        assert stats.kstest(place, "uniform").pvalue > LEVEL, axis
    assert stats.kstest(kept[:, 2], law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_split_or_a_likelihood_h_has_its_prior(family, rng):
    for n_splits, power in ((0, 1.0), (3, 0.0)):
        tree, model, work, _, _, learning = setting(rng, family, n_splits=n_splits, power=power)
        kept, _ = updates(1000, model, tree, work, learning, 0.0, rng)
        every = slice(50, None, 1 if n_splits == 0 else 4)
        law = h_prior(*PRIOR_OF_H)
        assert stats.kstest(kept[every, 0], law.cdf).pvalue > LEVEL


def test_prior_density_of_h(rng):
    for by_feature in (False, True):
        _, model, _, _, _, learning = setting(rng, "classes", by_feature=by_feature)
        model.h[:] = [0.02, 0.1, 0.3]
        learned = model.h if by_feature else model.h[:1]
        expected = (h_prior(*PRIOR_OF_H).logpdf(np.log(learned)) - np.log(learned)).sum()
        assert log_prior_of_h(model, learning) == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize("room", [None, 300])
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("n_splits", [0, 1, 5])
def test_likelihood_of_labels_and_expected_rows(n_splits, oblique, room, rng):
    """With routing kept for the next call, and where there is no room for it."""
    tree, model, work, X, y, learning = setting(
        rng, "classes", oblique=oblique, n_splits=n_splits, n_rows=600
    )
    if room:
        work = with_room(work, 2 * MAX_LEAVES - 1)
    leaves = n_leaves(tree)
    counts = np.full((MAX_LEAVES, 3), np.nan)
    for routed in (False, True):
        p = rng.dirichlet(np.ones(3), size=MAX_LEAVES)
        value = label_likelihood(model.data, model.h, tree, work, p, learning.empty, counts, routed)
        expected = log_likelihood_labels(to_reference(tree), X, y, p[:leaves], PRIOR_OF_H[0])
        assert value == pytest.approx(expected, rel=1e-9)
        share = phi(to_reference(tree), X, PRIOR_OF_H[0]) * p[:leaves, y].T
        share /= share.sum(axis=1, keepdims=True)
        rows = share.T @ np.eye(3)[y]
        np.testing.assert_allclose(counts[:leaves], rows, rtol=1e-9, atol=1e-12)


def test_drawn_rows_have_their_probabilities(rng):
    tree, model, work, X, y, learning = setting(rng, "classes", n_rows=30)
    leaves = n_leaves(tree)
    share = phi(to_reference(tree), X, PRIOR_OF_H[0]) * learning.p[:leaves, y].T
    share /= share.sum(axis=1, keepdims=True)
    mean = share.T @ np.eye(3)[y]
    variance = (share * (1 - share)).T @ np.eye(3)[y]
    n, total = 2000, np.zeros((leaves, 3))
    counts = np.zeros((MAX_LEAVES, 3))
    for _ in range(n):
        uniform = rng.random(model.data.columns.shape[1])
        label_likelihood(model.data, model.h, tree, work, learning.p, uniform, counts, False)
        assert (counts[:leaves].sum(axis=0) == np.bincount(y, minlength=3)).all()
        total += counts[:leaves]
    seen = variance > 1e-9
    z = (total / n - mean)[seen] / np.sqrt(variance[seen] / n)
    assert np.abs(z).max() < stats.norm.isf(LEVEL / 2 / z.size)


# ------------------------------------------------------------------ leaf probabilities


def log_dirichlets(a, p):
    return float(
        (gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1)).sum() + ((a - 1) * np.log(p)).sum()
    )


def test_dirichlet_density(rng):
    a, p = rng.uniform(0.2, 5, size=(4, 3)), rng.dirichlet(np.ones(3), size=4)
    assert log_dirichlet(a, p, 4) == pytest.approx(log_dirichlets(a, p), rel=1e-12)
    every = np.repeat(a[:1], 4, axis=0)
    assert log_dirichlet(a[:1].copy(), p, 4) == pytest.approx(log_dirichlets(every, p), rel=1e-12)


def log_weight(tree, X, y, p, a):
    """w = log [Dir(p) L / (D q)] by the reference, q of these concentrations."""
    reference, h = to_reference(tree), PRIOR_OF_H[0]
    log_like = log_likelihood_labels(reference, X, y, p, h)
    d = log_likelihood_class(reference, X, y, 3, h, PRIOR)
    return log_dirichlets(np.full_like(p, CONCENTRATION), p) + log_like - d - log_dirichlets(a, p)


def test_refresh_weighs_what_it_draws(rng):
    tree, model, work, X, y, learning = setting(rng, "classes")
    leaves = n_leaves(tree)
    d = likelihood(model, tree, work)
    refresh(model, tree, work, learning, d, rng)
    fit_probabilities(model, tree, work, learning, learning.new_p)
    p, a = learning.p[:leaves], learning.concentration[:leaves]
    assert learning.log_weight[0] == pytest.approx(log_weight(tree, X, y, p, a), rel=1e-9)
    expected = log_likelihood_labels(to_reference(tree), X, y, p, PRIOR_OF_H[0])
    assert learning.log_like[0] == pytest.approx(expected, rel=1e-9)
    # q depends on tree and h alone: the way back must find it again
    learning.p[:] = rng.dirichlet(np.ones(3), size=MAX_LEAVES)
    before = a.copy()
    fit_probabilities(model, tree, work, learning, learning.new_p)
    np.testing.assert_array_equal(learning.concentration[:leaves], before)


def exact_mean_of_p(tree, X, y):
    """Of each leaf's class probabilities given tree and h, by summing over all rows' leaves."""
    weight = phi(to_reference(tree), X, PRIOR_OF_H[0])  # [rows, 2]
    total, mean = 0.0, np.zeros((2, 3))
    for code in range(2 ** len(y)):
        leaf = (code >> np.arange(len(y))) & 1
        a = np.full((2, 3), CONCENTRATION)
        np.add.at(a, (leaf, y), 1.0)
        mass = np.prod(weight[np.arange(len(y)), leaf])
        mass *= np.exp((gammaln(a).sum(axis=1) - gammaln(a.sum(axis=1))).sum())
        total, mean = total + mass, mean + mass * a / a.sum(axis=1, keepdims=True)
    return mean / total


@pytest.mark.parametrize("step", ["refresh", "correct"])
def test_probabilities_have_their_conditional(step, rng):
    """Either step alone, at a fixed tree: ``correct`` then is a step that changed nothing."""
    tree, model, work, X, y, learning = setting(rng, "classes", n_splits=1, n_rows=10)
    exact = exact_mean_of_p(tree, X, y)
    d = likelihood(model, tree, work)
    refresh(model, tree, work, learning, d, rng)
    copy_tree(tree, learning.before)
    learning.like_before[0] = d
    kept = np.empty((6000, 2, 3))
    for row in kept:
        if step == "refresh":
            refresh(model, tree, work, learning, d, rng)
        else:
            correct(model, tree, work, learning, d, rng)
        row[:] = learning.p[:2]
    batches = kept.reshape(50, -1, 2, 3).mean(axis=1)
    z = (batches.mean(axis=0) - exact) / (batches.std(axis=0, ddof=1) / np.sqrt(50))
    assert np.abs(z).max() < stats.t.isf(LEVEL / 2 / z.size, 49), z


@pytest.mark.parametrize("weight", [-1e9, 1e9])
def test_a_refused_step_is_undone(weight, rng):
    """A state of small weight is always left, and one of large weight never."""
    tree, model, work, _, _, learning = setting(rng, "classes", n_splits=2)
    copy_tree(tree, learning.before)
    learning.like_before[0] = -77.0
    learning.log_weight[0] = weight
    p = learning.p.copy()
    tree.threshold[0] *= 0.5
    log_like, kept = correct(model, tree, work, learning, likelihood(model, tree, work), rng)
    assert kept == (weight < 0)
    assert (log_like == -77.0) == (not kept)
    assert (tree.threshold[0] == learning.before.threshold[0]) == (not kept)
    assert (learning.p == p).all() == (not kept)
    assert (learning.log_weight[0] == weight) == (not kept)


@pytest.mark.parametrize("by_feature", [False, True])
@pytest.mark.parametrize("name", ["two-classes", "regression"])
def test_a_chain_knows_the_likelihood_of_its_h(name, by_feature, rng):
    toy = TOYS[name]()
    settings = configured(h="learn", h_by_feature=by_feature, max_leaves=MAX_LEAVES)
    columns = np.ascontiguousarray(toy.X.T)
    sampler = RJHMC.build(columns, toy.y, toy.n_classes, settings, 5)
    chain = LearningRJHMC(sampler).start(rng)
    for _ in range(12):
        (block,) = chain.advance(1) or [None]
        state, learning = chain.state, chain.learning
        fresh = likelihood(state.model, state.tree, state.work)
        assert state.log_like[0] == pytest.approx(fresh, rel=1e-9)
        if block is None:
            continue
        recorded = fresh
        if toy.n_classes:
            leaves = n_leaves(state.tree)
            recorded = log_likelihood_labels(
                to_reference(state.tree), toy.X, toy.y, learning.p[:leaves], state.model.h
            )
        assert block.scalars[0, 2] == pytest.approx(recorded, rel=1e-9)
        np.testing.assert_array_equal(block.h[0], state.model.h[: block.h.shape[1]])


def test_in_regression_h_waits_for_a_tree(rng):
    """It keeps its first value for the first quarter of warm-up, and moves from there on."""
    toy = TOYS["regression"]()
    settings = configured(h="learn", max_leaves=MAX_LEAVES)
    sampler = RJHMC.build(np.ascontiguousarray(toy.X.T), toy.y, 0, settings, n_warmup=40)
    chain = LearningRJHMC(sampler).start(rng)
    first = chain.state.model.h.copy()
    chain.advance(10)
    np.testing.assert_array_equal(chain.state.model.h, first)
    chain.advance(1)
    assert np.all(chain.state.model.h != first)
