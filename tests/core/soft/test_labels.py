"""The likelihood that is normalised over labels, and rows by leaf, against the reference.

Value and gradient are in ``test_likelihoods.py``, with those of the other families.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.soft.data import DRAWN, EXPECTED, LABELS, REACHED, VALUE
from hamiltree.core.soft.labels import SMALLEST_PROBABILITY, sum_of_logs
from hamiltree.core.soft.target import evaluate, evaluate_at
from hamiltree.core.tree.nodes import n_leaves

from ...reference.model import log_likelihood_labels, phi
from ...support.core_trees import MAX_LEAVES, random_model, random_tree, to_reference, with_room

LEVEL = 1e-4
H = 0.05


def setting(rng, *, oblique=False, n_splits=3, n_rows=20):
    tree = random_tree(rng, 3, n_splits, oblique)
    return (tree, *random_model(rng, LABELS, tree, n_rows=n_rows, n_features=3, h=H))


def test_sum_of_logarithms(rng):
    for values in (
        rng.uniform(size=64),
        10.0 ** rng.uniform(-299, 0, size=64),
        1.0 + 1e-9 * rng.normal(size=64),
        np.sqrt(0.5) * (1.0 + 1e-15 * np.arange(-32, 32)),
        np.full(64, 1.0),
    ):
        for size in (8, 64):
            expected = np.log(values[:size])
            total = sum_of_logs(values[None, :].copy(), 0, size)
            assert total == pytest.approx(expected.sum(), abs=4e-15 * np.abs(expected).sum())
    assert sum_of_logs(np.zeros((1, 8)), 0, 8) == pytest.approx(8 * np.log(SMALLEST_PROBABILITY))


@pytest.mark.parametrize("room", [False, True])
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("n_splits", [0, 1, 5, 11])
def test_expected_rows(n_splits, oblique, room, rng):
    """With routing kept for the next call, and where there is no room for it."""
    tree, model, work, X, y = setting(rng, oblique=oblique, n_splits=n_splits, n_rows=600)
    if not room:
        work = with_room(work, 2 * MAX_LEAVES - 1)
    leaves = n_leaves(tree)
    share = phi(to_reference(tree), X, H)
    evaluate_at(model, model.leaves.p, tree, work, REACHED, False)
    np.testing.assert_allclose(work.counts[0, :leaves], share.T @ np.eye(3)[y], rtol=1e-9)
    for routed in (False, True):
        p = rng.dirichlet(np.ones(3), size=MAX_LEAVES)
        value = evaluate_at(model, p, tree, work, VALUE, routed)
        expected = log_likelihood_labels(to_reference(tree), X, y, p[:leaves], H)
        assert value == pytest.approx(expected, rel=1e-9)
        evaluate_at(model, p, tree, work, EXPECTED, routed)
        of_leaf = share * p[:leaves, y].T
        of_leaf /= of_leaf.sum(axis=1, keepdims=True)
        rows = of_leaf.T @ np.eye(3)[y]
        np.testing.assert_allclose(work.counts[0, :leaves], rows, rtol=1e-9, atol=1e-12)


def test_drawn_rows_have_their_probabilities(rng):
    tree, model, work, X, y = setting(rng, n_rows=30)
    leaves = n_leaves(tree)
    share = phi(to_reference(tree), X, H) * model.leaves.p[:leaves, y].T
    share /= share.sum(axis=1, keepdims=True)
    mean = share.T @ np.eye(3)[y]
    variance = (share * (1 - share)).T @ np.eye(3)[y]
    n, total = 2000, np.zeros((leaves, 3))
    for _ in range(n):
        work.uniform[:] = rng.random(work.uniform.size)
        evaluate(model, LABELS, tree, work, DRAWN)
        counts = work.counts[0, :leaves]
        assert (counts.sum(axis=0) == np.bincount(y, minlength=3)).all()
        total += counts
    seen = variance > 1e-9
    z = (total / n - mean)[seen] / np.sqrt(variance[seen] / n)
    assert np.abs(z).max() < stats.norm.isf(LEVEL / 2 / z.size)
