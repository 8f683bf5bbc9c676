"""WU: exact posterior and prior by enumeration, the prior by rejection, restructure by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hamiltree.core.hard.moves import RESTRUCTURE, attempt
from hamiltree.core.hard.record import start_tree
from hamiltree.samplers.common import Problem
from hamiltree.samplers.wu import MOVES, build_wu

from ..reference.enumerate_hard import HardPrior, Toy, labels_of
from ..reference.stats import geweke, total_variation
from .hard_battery import (
    LEAVES,
    assert_exact,
    configuration_of,
    labels_by_chain,
    make_toy,
    prior_functionals,
    run_hard,
)

LEVEL = 1e-4
N_DRAWS = 30_000
MORE_ROWS = np.random.default_rng(9).integers(1, [4, 7, 20], size=(14, 3)) / [4, 8, 25]


@pytest.mark.parametrize("leaves", LEAVES)
def test_exact_posterior(leaves, seed):
    toy = make_toy("wu", leaves)
    draws, _ = run_hard(toy, n_draws=N_DRAWS, seed=seed)
    assert_exact(toy, draws, level=LEVEL, most=0.02)


@pytest.mark.parametrize("max_leaves", [4, pytest.param(6, marks=pytest.mark.long)])
def test_exact_prior(max_leaves, seed):
    """The likelihood switched off; nothing even, so that all of it matters."""
    toy = make_toy(
        "wu",
        "regression",
        max_leaves=max_leaves,
        features=(2.0, 1.0),
        min_leaves=2,
        left_share=0.2,
        expected_splits=3.0,
        tau=(2.0, 1.5),
    )
    draws, _ = run_hard(toy, n_draws=N_DRAWS * max_leaves // 4, seed=seed, likelihood_power=0.0)
    assert_exact(toy, draws, level=LEVEL, likelihood=False, most=0.02)


def test_prior_of_larger_trees(rng, seed):
    """Against rejection: trees drawn freely, thrown away where a leaf is empty."""
    prior = HardPrior("wu", max_leaves=7, expected_splits=2.5, left_share=0.3)
    toy = Toy(MORE_ROWS, np.zeros(14, int), prior, LEAVES["classes"])
    draws, _ = run_hard(toy, n_draws=15_000, seed=seed, likelihood_power=0.0)
    fresh, chains = prior_functionals(rng, toy, draws, n=4_000)
    result = geweke(fresh, chains, level=LEVEL)
    assert result.ok, result


# ------------------------------------------------------------------ restructure


def chain_of(toy: Toy, rng: np.random.Generator):
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    chain = build_wu(problem, configuration_of(toy), 0).start(rng)
    assert start_tree(chain.model, chain.loop.state, rng)
    return chain.model, chain.loop.state


def partition(state) -> set[frozenset[int]]:
    n = int(state.tree.n_nodes[0])
    cells = state.cells
    return {
        frozenset(cells.rows[cells.start[i] : cells.stop[i]].tolist())
        for i in range(n)
        if state.tree.size[i] == 1
    }


def test_restructure_keeps_the_leaves(rng):
    toy = make_toy("wu", "regression", max_leaves=7)
    model, state = chain_of(toy, rng)
    changed = 0
    for _ in range(300):
        for move in rng.integers(0, 4, 6):
            attempt(model, state, int(move), rng)
        leaves, log_like = partition(state), state.log_like[0]
        size = state.tree.size[: state.tree.n_nodes[0]].copy()
        if attempt(model, state, RESTRUCTURE, rng):
            assert partition(state) == leaves
            np.testing.assert_allclose(state.log_like[0], log_like, rtol=1e-12)
            changed += not np.array_equal(size, state.tree.size[: len(size)])
    assert changed > 10


def test_restructure_alone_samples_the_trees_over_a_partition(rng):
    """Nothing but restructure, from a fixed partition: shares of the trees by their prior."""
    toy = make_toy("wu", "regression", left_share=0.15)
    sets = {label: frozenset(map(frozenset, parts)) for label, _, parts in toy.trees}
    richest = max(Counter(sets.values()).items(), key=lambda item: item[1])[0]
    wanted = {
        label: p for label, p in toy.exact(likelihood=False).items() if sets[label] == richest
    }
    assert len(wanted) >= 4
    model, state = chain_of(toy, rng)
    while partition(state) != richest:
        attempt(model, state, int(rng.integers(0, 4)), rng)
    seen = []
    for _ in range(40_000):
        attempt(model, state, RESTRUCTURE, rng)
        n = int(state.tree.n_nodes[0])
        size = state.tree.size[:n]
        split = size > 1
        seen += labels_of(
            toy, np.array([0, n]), size, state.tree.feature[:n][split],
            state.tree.threshold[:n][split],
        )  # fmt: skip
    exact = {label: p / sum(wanted.values()) for label, p in wanted.items()}
    distance = total_variation([seen], exact, level=LEVEL)
    assert distance.value < 0.02
    assert distance.ok, distance


# ------------------------------------------------------------------ bookkeeping


def test_acceptance_by_proposal_and_by_iteration(seed):
    toy = make_toy("wu", "classes")
    _, info = run_hard(toy, n_draws=500, seed=seed, triples=25)
    counts = {move: int(c[1].sum()) for move, c in info.acceptance["sampling"].items()}
    assert list(counts) == list(MOVES)
    n = 4 * 500
    assert counts["iteration"] == counts["restructure"] == n
    assert counts["change"] == counts["swap"] == counts["grow"] + counts["prune"] == 50 * n
    accepted, proposed = info.acceptance["sampling"]["iteration"]
    assert (accepted <= proposed).all()
    assert accepted.sum() / proposed.sum() > 0.9


def test_no_leaf_is_empty_and_thresholds_lie_between_rows(seed):
    toy = make_toy("wu", "classes")
    draws, _ = run_hard(toy, n_draws=3_000, seed=seed)
    assert (draws.leaf.sum(axis=1) > 0).all()
    for f in range(2):
        tau = draws.threshold[draws.feature == f]
        assert tau.min() >= toy.X[:, f].min()
        assert tau.max() < toy.X[:, f].max()
    assert all(
        label in dict.fromkeys(t[0] for t in toy.trees) for label in labels_by_chain(toy, draws)[0]
    )
