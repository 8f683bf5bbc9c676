"""The steps of h="learn" one by one, each against the reference or an exact conditional."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid

from hamiltree.core.soft.data import COLLAPSED, LABELS, MEANS
from hamiltree.core.soft.learned_h import HPrior, log_prior_of_h, update_h
from hamiltree.core.soft.target import likelihood
from hamiltree.core.tree.nodes import n_leaves
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from ...reference.exact_learned import H_RANGE, h_prior
from ...reference.model import (
    TOYS,
    log_likelihood_collapsed,
    log_likelihood_labels,
    log_likelihood_reg,
)
from ...support.configuring import configured
from ...support.core_trees import (
    MAX_LEAVES,
    PRIOR,
    random_model,
    random_tree,
    to_reference,
)

LEVEL = 1e-4
PRIOR_OF_H = (0.05, 0.8)
FAMILIES = {"labels": LABELS, "explicit means": MEANS, "means integrated out": COLLAPSED}


def make_h_prior(by_feature=False) -> HPrior:
    ends = [(np.log(end) - np.log(PRIOR_OF_H[0])) / PRIOR_OF_H[1] for end in H_RANGE]
    return HPrior(
        learned=True,
        by_feature=by_feature,
        log_median=np.log(PRIOR_OF_H[0]),
        log_sd=PRIOR_OF_H[1],
        log_mass=np.log(np.diff(stats.norm.cdf(ends))[0]),
        log_low=np.log(H_RANGE[0]),
        log_high=np.log(H_RANGE[1]),
    )


def setting(rng, family, *, oblique=False, n_splits=3, power=1.0, n_rows=20, by_feature=False):
    tree = random_tree(rng, 3, n_splits, oblique)
    model, work, X, y = random_model(
        rng, FAMILIES[family], tree, n_rows=n_rows, n_features=3, h=PRIOR_OF_H[0], power=power
    )
    return tree, model, work, X, y, make_h_prior(by_feature)


# ------------------------------------------------------------------ h


def log_likelihood(family, tree, X, y, h, p):
    reference, sigma = to_reference(tree), float(tree.sigma[0])
    if family == "labels":
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


def updates(n, model, tree, work, prior_of_h, log_like, rng, move=np.inf):
    """log h after each of n updates, [n, columns]; by steps of a given mean move, not adapted."""
    kept, moves = np.empty((n, len(model.h))), np.full(len(model.h), move)
    for row in kept:
        log_like = update_h(model, tree, work, prior_of_h, moves, False, log_like, rng)
        row[:] = np.log(model.h)
    assert (moves == move).all()
    return kept, log_like


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("move", [np.inf, 0.3])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_h_has_its_conditional(family, move, oblique, rng):
    tree, model, work, X, y, prior_of_h = setting(rng, family, oblique=oblique)

    def like(u):
        return log_likelihood(family, tree, X, y, np.exp(u), model.leaves.p)

    law = h_prior(*PRIOR_OF_H)
    cdf = conditional(lambda u: law.logpdf(u) + like(u))
    start = like(np.log(model.h[0]))
    kept, log_like = updates(2000, model, tree, work, prior_of_h, start, rng, move)
    assert (kept == kept[:, :1]).all()
    assert log_like == pytest.approx(like(kept[-1, 0]), rel=1e-9)
    assert stats.kstest(cdf(kept[100::4, 0]), "uniform").pvalue > LEVEL


def test_the_length_of_a_step_is_learnt_in_warm_up(rng):
    """It follows the moves that are made, and stays as it is later."""
    tree, model, work, _, _, prior_of_h = setting(rng, "labels", n_rows=400)
    moves, log_like = np.full(3, np.inf), likelihood(model, tree, work)
    made = []
    for _ in range(400):
        before = np.log(model.h[0])
        log_like = update_h(model, tree, work, prior_of_h, moves, True, log_like, rng)
        made.append(abs(np.log(model.h[0]) - before))
    assert np.isinf(moves[1:]).all()
    assert moves[0] == pytest.approx(np.mean(made[-30:]), rel=0.5)
    assert moves[0] < 0.5
    learnt = moves.copy()
    update_h(model, tree, work, prior_of_h, moves, False, log_like, rng)
    np.testing.assert_array_equal(moves, learnt)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_column_has_its_conditional(family, rng):
    """Those that the tree splits on, given the others; the rest have the prior."""
    tree, model, work, X, y, prior_of_h = setting(rng, family, n_splits=2, by_feature=True)
    tree.feature[tree.feature == 2] = 0  # a column without a split
    assert set(tree.feature[: int(tree.n_nodes[0])]) - {-1} <= {0, 1}
    grid = np.linspace(*np.log(H_RANGE), 60)
    law = h_prior(*PRIOR_OF_H)
    joint = np.array(
        [
            [log_likelihood(family, tree, X, y, np.exp([a, b, 0.0]), model.leaves.p) for b in grid]
            for a in grid
        ]
    )
    joint = np.exp(joint - joint.max()) * law.pdf(grid)[:, None] * law.pdf(grid)
    start = log_likelihood(family, tree, X, y, model.h, model.leaves.p)
    kept, _ = updates(3000, model, tree, work, prior_of_h, start, rng)
    kept = kept[100::5]
    for axis in (0, 1):
        below = cumulative_trapezoid(joint.sum(axis=1 - axis), grid, initial=0.0)
        place = np.interp(kept[:, axis], grid, below / below[-1])
        assert stats.kstest(place, "uniform").pvalue > LEVEL, axis
    assert stats.kstest(kept[:, 2], law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_split_or_a_likelihood_h_has_its_prior(family, rng):
    for n_splits, power in ((0, 1.0), (3, 0.0)):
        tree, model, work, _, _, prior_of_h = setting(rng, family, n_splits=n_splits, power=power)
        kept, _ = updates(1000, model, tree, work, prior_of_h, 0.0, rng)
        every = slice(50, None, 1 if n_splits == 0 else 4)
        law = h_prior(*PRIOR_OF_H)
        assert stats.kstest(kept[every, 0], law.cdf).pvalue > LEVEL


def test_prior_density_of_h(rng):
    for by_feature in (False, True):
        _, model, _, _, _, prior_of_h = setting(rng, "labels", by_feature=by_feature)
        model.h[:] = [0.02, 0.1, 0.3]
        learned = model.h if by_feature else model.h[:1]
        expected = (h_prior(*PRIOR_OF_H).logpdf(np.log(learned)) - np.log(learned)).sum()
        assert log_prior_of_h(model, prior_of_h) == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------ chains


@pytest.mark.parametrize("by_feature", [False, True])
@pytest.mark.parametrize("name", ["two-classes", "regression"])
def test_a_chain_knows_the_likelihood_of_its_h(name, by_feature, rng):
    toy = TOYS[name]()
    configuration = configured(h="learn", h_by_feature=by_feature, max_leaves=MAX_LEAVES)
    columns = np.ascontiguousarray(toy.X.T)
    sampler = RJHMC.build(Problem(columns, toy.y, toy.n_classes), configuration, 5)
    chain = sampler.start(rng)
    for _ in range(12):
        (block,) = chain.advance(1) or [None]
        state = chain.state
        fresh = likelihood(state.model, state.tree, state.work)
        assert state.log_like[0] == pytest.approx(fresh, rel=1e-9)
        if block is None:
            continue
        recorded = fresh
        if toy.n_classes:
            leaves = n_leaves(state.tree)
            recorded = log_likelihood_labels(
                to_reference(state.tree), toy.X, toy.y, state.model.leaves.p[:leaves], state.model.h
            )
        assert block.scalars[0, 2] == pytest.approx(recorded, rel=1e-9)
        np.testing.assert_array_equal(block.h[0], state.model.h[: block.h.shape[1]])


def test_in_regression_h_waits_for_a_tree(rng):
    """It keeps its first value for the first quarter of warm-up, and moves from there on."""
    toy = TOYS["regression"]()
    configuration = configured(h="learn", max_leaves=MAX_LEAVES)
    sampler = RJHMC.build(
        Problem(np.ascontiguousarray(toy.X.T), toy.y, 0), configuration, n_warmup=40
    )
    chain = sampler.start(rng)
    first = chain.state.model.h.copy()
    chain.advance(10)
    np.testing.assert_array_equal(chain.state.model.h, first)
    chain.advance(1)
    assert np.all(chain.state.model.h != first)
