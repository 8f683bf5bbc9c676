"""Steps of the leaf probabilities one by one, against the reference or an exact conditional."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import roots_jacobi

from hamiltree.core.sampling import accept
from hamiltree.core.soft.data import LABELS
from hamiltree.core.soft.leaf_probabilities import (
    draw_rows,
    propose_probabilities,
    refresh_probabilities,
    start_probabilities,
    take_probabilities,
    weigh_state,
)
from hamiltree.core.soft.leaf_proposal import fit_probabilities, log_dirichlet
from hamiltree.core.soft.target import likelihood
from hamiltree.core.tree.nodes import n_leaves
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC
from hamiltree.samplers.tempering import exchange_states

from ...reference.leaf_proposal import LeafProposal
from ...reference.leaf_proposal import log_dirichlet as reference_dirichlet
from ...reference.model import TOYS, log_likelihood_labels, phi
from ...support.configuring import configured
from ...support.core_trees import MAX_LEAVES, random_model, random_tree, to_reference

LEVEL = 1e-4
H = 0.05
CONCENTRATION = 0.7  # of random_model's leaves


def setting(rng, *, n_splits=3, power=1.0, n_rows=20):
    tree = random_tree(rng, 3, n_splits, oblique=False)
    return (tree, *random_model(rng, LABELS, tree, n_rows=n_rows, n_features=3, h=H, power=power))


def proposal_of(tree, X, y, power, h=H):
    share = phi(to_reference(tree), X, h)
    return LeafProposal(share, y, np.full(3, CONCENTRATION), power)


def test_dirichlet_density(rng):
    a, p = rng.uniform(0.2, 5, size=3), rng.dirichlet(np.ones(3))
    assert log_dirichlet(a, p) == pytest.approx(reference_dirichlet(a, p), rel=1e-12)


@pytest.mark.parametrize("power", [1.0, 0.3])
def test_the_proposal_depends_on_the_tree_alone(power, rng):
    """Or the way back would not find it again; and it is that of the reference."""
    tree, model, work, X, y = setting(rng, power=power, n_rows=60)
    leaves, expected = n_leaves(tree), proposal_of(tree, X, y, power)
    for _ in range(2):
        fit_probabilities(model, tree, work)
        for name in ("centre", "spread"):
            found = getattr(model.leaves, name)[:leaves]
            np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-8)
        model.leaves.p[:] = rng.dirichlet(np.ones(3), size=MAX_LEAVES)
        model.leaves.new_p[:] = rng.dirichlet(np.ones(3), size=MAX_LEAVES)


def test_where_a_row_has_one_leaf_the_proposal_is_exact(rng):
    """Then its weight is the same whatever is proposed: the likelihood with p integrated out."""
    tree = random_tree(rng, 3, 3, oblique=False)
    model, work, _, _ = random_model(rng, LABELS, tree, n_rows=60, n_features=3, h=1e-9)
    weights = [propose_probabilities(model, tree, work, rng) for _ in range(5)]
    np.testing.assert_allclose(weights, weights[0], rtol=1e-9)


@pytest.mark.parametrize("power", [1.0, 0.3])
def test_weights_differ_little_where_rows_reach_several_leaves(power, rng):
    """Effective draws of importance sampling, per draw; Dirichlets of expected rows fail."""
    shares = []
    for _ in range(7):
        tree = random_tree(rng, 3, 4, oblique=False)
        model, work, _, _ = random_model(
            rng, LABELS, tree, n_rows=600, n_features=3, h=0.3, power=power
        )
        w = np.array([propose_probabilities(model, tree, work, rng) for _ in range(400)])
        w = np.exp(w - w.max())
        shares.append(w.mean() ** 2 / (w**2).mean())
    assert np.median(shares) > 0.1


def log_weight(model, tree, X, y, p):
    """w = log [Dir(p) L^power / q(p | T)] by the reference."""
    power = float(model.power[0])
    log_like = log_likelihood_labels(to_reference(tree), X, y, p, H)
    prior = sum(reference_dirichlet(np.full(3, CONCENTRATION), row) for row in p)
    return prior + power * log_like - proposal_of(tree, X, y, power).log_density(p)


@pytest.mark.parametrize("power", [1.0, 0.3, 0.0])
def test_weights_of_the_state_and_of_a_proposal(power, rng):
    tree, model, work, X, y = setting(rng, power=power)
    leaves = n_leaves(tree)
    now = likelihood(model, tree, work)
    weight = weigh_state(model, tree, work, now)
    assert model.leaves.log_likes[0] == now
    p = model.leaves.p[:leaves].copy()
    assert weight == pytest.approx(log_weight(model, tree, X, y, p), rel=1e-9, abs=1e-9)
    weight = propose_probabilities(model, tree, work, rng)
    new = model.leaves.new_p[:leaves].copy()
    assert weight == pytest.approx(log_weight(model, tree, X, y, new), rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(model.leaves.p[:leaves], p)
    assert (new != p).all()
    log_like = take_probabilities(model, tree)
    np.testing.assert_array_equal(model.leaves.p[:leaves], new)
    assert log_like == model.leaves.log_likes[0]
    assert log_like == pytest.approx(likelihood(model, tree, work), rel=1e-9)


def exact_mean_of_p(tree, X, y, power):
    """Of each leaf's class probabilities given the tree, two leaves, by Gauss-Jacobi quadrature.

    p = (u, (1 - u) v, (1 - u) (1 - v)), where u and v are Beta.
    """
    a = CONCENTRATION
    u, weight_u = _beta_nodes(a, 2 * a)
    v, weight_v = _beta_nodes(a, a)
    u, v = (grid.ravel() for grid in np.meshgrid(u, v, indexing="ij"))
    p = np.stack([u, (1 - u) * v, (1 - u) * (1 - v)], axis=1)  # [nodes, 3]
    weight = np.outer(weight_u, weight_v).ravel()
    share = phi(to_reference(tree), X, H)
    log_like = np.zeros((len(p), len(p)))
    for of_row, label in zip(share, y, strict=True):
        log_like += np.log(of_row[0] * p[:, None, label] + of_row[1] * p[None, :, label])
    mass = np.exp(power * log_like) * weight[:, None] * weight
    mass /= mass.sum()
    return np.stack([mass.sum(axis=1) @ p, mass.sum(axis=0) @ p])


def _beta_nodes(a, b, n=28):
    node, weight = roots_jacobi(n, b - 1, a - 1)
    return (node + 1) / 2, weight / weight.sum()


@pytest.mark.parametrize(
    ("step", "power"), [("refresh", 1.0), ("refresh", 0.4), ("refresh", 0.0), ("sweep", 1.0)]
)
def test_probabilities_have_their_conditional(step, power, rng):
    """By a step of their own, and by a proposal of a sweep that changed nothing else."""
    tree, model, work, X, y = setting(rng, n_splits=1, n_rows=10, power=power)
    exact = exact_mean_of_p(tree, X, y, power)
    log_like = start_probabilities(model, tree, work, rng)
    kept = np.empty((6000, 2, 3))
    for row in kept:
        if step == "refresh":
            log_like = refresh_probabilities(model, tree, work, log_like, rng)
        else:
            weight = weigh_state(model, tree, work, log_like)
            if accept(propose_probabilities(model, tree, work, rng) - weight, rng):
                log_like = take_probabilities(model, tree)
        row[:] = model.leaves.p[:2]
    assert log_like == pytest.approx(likelihood(model, tree, work), rel=1e-9)
    batches = kept.reshape(50, -1, 2, 3).mean(axis=1)
    z = (batches.mean(axis=0) - exact) / (batches.std(axis=0, ddof=1) / np.sqrt(50))
    assert np.abs(z).max() < stats.t.isf(LEVEL / 2 / z.size, 49), z


def test_a_refresh_draws_probabilities_given_rows(rng):
    """The recorded rows are those that the probabilities were drawn by."""
    tree, model, work, _, y = setting(rng)
    leaves = n_leaves(tree)
    refresh_probabilities(model, tree, work, likelihood(model, tree, work), rng)
    rows = model.leaves.rows[:leaves]
    assert (rows.sum(axis=0) == np.bincount(y, minlength=3)).all()
    np.testing.assert_array_equal(model.leaves.concentration[:leaves], rows + CONCENTRATION)


@pytest.mark.parametrize("power", [0.0, 0.25, 1.0])
def test_rows_count_with_the_power(power, rng):
    tree, model, work, _, y = setting(rng, power=power)
    draw_rows(model, tree, work, rng)
    rows = model.leaves.rows[: n_leaves(tree)]
    assert (rows.sum(axis=0) == power * np.bincount(y, minlength=3)).all()


@pytest.mark.parametrize("h", [0.1, "learn"])
def test_what_two_chains_exchange(h, rng):
    """After it each has the other's tree, h and probabilities, and knows their likelihood."""
    toy = TOYS["three-classes"]()
    configuration = configured(h=h, max_leaves=MAX_LEAVES)
    sampler = RJHMC.build(Problem(np.ascontiguousarray(toy.X.T), toy.y, 3), configuration, 0)
    a, b = (sampler.start(child) for child in rng.spawn(2))
    b.state.model.power[0] = 0.3
    for chain in (a, b):
        chain.advance(20)
    for _ in range(20):
        before = [_described(chain) for chain in (a, b)]
        exchange_states(a, b)
        assert [_described(chain) for chain in (b, a)] == before
        for chain in (a, b):
            state = chain.state
            fresh = likelihood(state.model, state.tree, state.work)
            assert state.log_like[0] == pytest.approx(fresh, rel=1e-9)
            chain.advance(1)
    assert (a.state.model.power[0], b.state.model.power[0]) == (1.0, 0.3)


def _described(chain):
    state = chain.state
    leaves = n_leaves(state.tree)
    p = state.model.leaves.p[:leaves].tolist()
    return to_reference(state.tree), p, state.model.h.tolist(), state.log_like[0]
