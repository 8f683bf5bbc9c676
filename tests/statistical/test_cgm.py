"""CGM: exact posterior and prior by enumeration, larger priors by simulation, bookkeeping."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.core.hard.moves import SWAP, attempt, log_marginal, settle
from hamiltree.core.hard.record import start_tree
from hamiltree.core.hard.shapes import log_tree_prior
from hamiltree.core.tree.nodes import relink
from hamiltree.running.run import Problem, sample
from hamiltree.samplers.cgm import MOVES, build_cgm

from ..reference.enumerate_hard import HardPrior, Toy
from ..reference.stats import geweke
from ..support.configuring import configured
from .hard_battery import (
    LEAVES,
    MORE_ROWS,
    assert_exact,
    assert_known,
    configuration_of,
    labels_by_chain,
    make_toy,
    prior_functionals,
    run_hard,
)

LEVEL = 1e-4  # of a false alarm in each test of each quantity
N_DRAWS = 30_000
SHORT = [("uniform", "classes"), ("uniform", "regression"), ("uniform", "common")]
SHORT += [("gap", "classes"), ("uniform01", "regression")]
LONG = [(k, v) for k in ("uniform", "gap", "uniform01") for v in LEAVES if (k, v) not in SHORT]
EXACT = [*SHORT, *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)]


def toy_of(kind: str, leaves: str, **prior: object) -> Toy:
    """At most 4 leaves; 3 where empty ones are allowed, since there are so many more trees then."""
    return make_toy(kind, leaves, max_leaves=3 if kind == "uniform01" else 4, **prior)


@pytest.mark.parametrize(("kind", "leaves"), EXACT)
def test_exact_posterior(kind, leaves, seed):
    toy = toy_of(kind, leaves)
    draws, _ = run_hard(toy, n_draws=N_DRAWS, seed=seed)
    assert_exact(toy, draws, level=LEVEL, most=0.02)


@pytest.mark.parametrize("kind", ["uniform", "gap", "uniform01"])
def test_exact_prior(kind, seed):
    """The likelihood switched off; nothing even, so that all of it matters."""
    tau = (2.0, 1.0) if kind == "uniform01" else (1.0, 1.0)  # the others have none
    toy = toy_of(kind, "regression", features=(2.0, 1.0), min_leaves=2, tau=tau)
    draws, _ = run_hard(toy, n_draws=N_DRAWS, seed=seed, likelihood_power=0.0)
    assert_exact(toy, draws, level=LEVEL, likelihood=False, most=0.02)


@pytest.mark.parametrize("kind", ["uniform", "gap", "uniform01"])
def test_prior_of_larger_trees(kind, rng, seed):
    """Leaves, depth, features and thresholds of the first and the last split, up to 9 leaves."""
    prior = HardPrior(kind, alpha_split=0.9, beta_split=0.8, max_leaves=9)
    toy = Toy(MORE_ROWS, np.zeros(16, int), prior, LEAVES["classes"])
    draws, _ = run_hard(toy, n_draws=15_000, seed=seed, likelihood_power=0.0)
    fresh, chains = prior_functionals(rng, toy, draws, n=6_000)
    result = geweke(fresh, chains, level=LEVEL)
    assert result.ok, result


# ------------------------------------------------------------------ bookkeeping


@pytest.mark.parametrize("kind", ["uniform", "gap", "uniform01"])
@pytest.mark.parametrize("leaves", ["classes", "regression"])
def test_the_chain_knows_its_tree(kind, leaves, rng):
    """What moves carry along equals what is computed from scratch, after each of many moves."""
    toy = toy_of(kind, leaves)
    toy = Toy(toy.X, toy.y, HardPrior(kind, max_leaves=8), toy.leaves)
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    chain = build_cgm(problem, configuration_of(toy), 0).start(rng)
    model, state = chain.model, chain.loop.state
    assert start_tree(model, state, rng)
    accepted = 0
    for move in rng.integers(0, 4, 1500):
        accepted += attempt(model, state, int(move), rng)
        assert_known(model, state)
    assert 100 < accepted < 1500


def test_swap_gives_both_children_with_one_rule_the_parents(rng):
    columns = np.array([[0.0, 0.0, 1.0, 1.0] * 3, [0.0, 1.0, 0.0, 1.0] * 3])
    problem = Problem(columns, rng.integers(0, 2, 12), 2)
    chain = build_cgm(problem, configured(method="cgm"), 0).start(rng)
    model, state = chain.model, chain.loop.state
    tree = state.tree
    tree.n_nodes[0] = 7
    tree.size[:7] = [7, 3, 1, 1, 3, 1, 1]
    tree.feature[:7] = [0, 1, -1, -1, 1, -1, -1]
    tree.threshold[:7] = 0.5
    relink(tree)
    cells = state.cells
    assert settle(model, tree, cells, 0, np.nan, state.spare, state.rule_work)
    state.log_prior[0] = log_tree_prior(model.shape, tree, cells)
    state.log_like[0] = log_marginal(model, tree, cells)
    # The same four leaves by the same number of rules: the ratio is 1.
    assert attempt(model, state, SWAP, rng)
    assert tree.feature[:7].tolist() == [1, 0, -1, -1, 0, -1, -1]


def test_densities_are_those_of_the_enumeration(seed):
    """log_likelihood and log_posterior of a draw against the independent list of trees."""
    for kind, leaves in SHORT:
        toy = toy_of(kind, leaves)
        draws, _ = run_hard(toy, n_draws=200, seed=seed, n_chains=1)
        known = {label: (log_p, toy.log_marginal(parts)) for label, log_p, parts in toy.trees}
        # a cell's mass where the tree has a density in it: compare where thresholds are discrete
        for t, label in enumerate(labels_by_chain(toy, draws)[0]):
            log_p, log_like = known[label]
            np.testing.assert_allclose(draws.log_likelihood[0, t], log_like, rtol=1e-9)
            if kind == "uniform":
                np.testing.assert_allclose(
                    draws.log_posterior[0, t], log_p + log_like, rtol=1e-9, atol=1e-9
                )


def test_a_run_in_blocks_is_the_run_in_one_go(seed):
    toy = make_toy("uniform", "regression")
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, 0)
    pieces = []
    for blocks in ([1, 2, 300, 700], [1003]):
        chain = build_cgm(problem, configuration_of(toy), 3).start(np.random.default_rng(seed))
        chain.compile()
        made = [piece for n in blocks for piece in chain.advance(n)]
        pieces.append(
            [np.concatenate([getattr(b, name) for b in made]) for name in made[0]._fields[1:]]
        )
        assert sum(counts[1] for counts in chain.tally()["sampling"].values()) == 12 * 1000
    for first, second in zip(*pieces, strict=True):
        np.testing.assert_array_equal(first, second)


def test_leaf_counts_and_limits(seed):
    toy = make_toy("uniform", "classes", min_leaves=3, max_leaves=5)
    draws, info = run_hard(toy, n_draws=2_000, seed=seed)
    assert set(np.unique(draws.n_leaves)) == {3, 4, 5}
    first = (draws.node_offset[:-1] + np.arange(len(draws.node_offset) - 1)) // 2
    rows = np.add.reduceat(draws.leaf, first, axis=0)
    np.testing.assert_array_equal(rows, np.tile(np.bincount(toy.y), (len(rows), 1)))
    assert (draws.leaf.sum(axis=1) > 0).all()  # no empty leaf
    assert set(info.acceptance["sampling"]) == set(MOVES)


def test_too_many_leaves_are_refused_with_advice():
    toy = make_toy("uniform", "classes", min_leaves=9, max_leaves=12)
    with pytest.raises(ValueError, match=r"min_leaves=9 leaves.*lower min_leaves"):
        run_hard(toy, n_draws=10, seed=0)


def test_rows_that_are_all_alike_have_one_leaf():
    problem = Problem(np.full((2, 6), 0.5), np.array([0, 1, 0, 1, 1, 0]), 2)
    draws, _ = sample(problem, configured(method="cgm"), n_chains=2, n_warmup=5, n_draws=20)
    assert (draws.n_leaves == 1).all()


def test_neighbouring_floats_can_be_told_apart():
    """The midpoint of neighbouring floats rounds to one of them; it must be the smaller."""
    low = 0.5
    x = np.array([low, np.nextafter(low, 1), low, np.nextafter(low, 1)])
    problem = Problem(x[None, :], np.array([0, 1, 0, 1]), 2)
    configuration = configured(method="cgm", min_leaves=2)
    draws, _ = sample(problem, configuration, n_chains=1, n_warmup=5, n_draws=20)
    assert (draws.n_leaves == 2).all()
    assert {tuple(leaf) for leaf in draws.leaf} == {(2.0, 0.0), (0.0, 2.0)}
