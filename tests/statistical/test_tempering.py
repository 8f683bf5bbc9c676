"""Replica exchange: the first rung keeps its posterior, whatever hot rungs and threads do."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier
from hamiltree.core.hard.moves import log_marginal, settle
from hamiltree.core.soft.target import likelihood
from hamiltree.methods import CGM, HMCDF
from hamiltree.running.run import Problem, build_sampler
from hamiltree.samplers.tempering import ROUNDS, TemperedChain, arrays_of, exchange_states

from ..reference.exact import exact_posterior, exact_toy
from ..reference.exact_learned import label_posterior
from ..reference.model import TOYS
from ..support.configuring import configured
from .battery import assert_exact, run_toy
from .hard_battery import assert_exact as assert_exact_hard
from .hard_battery import make_toy, run_hard
from .test_learned_posterior import KINDS, PRIOR_OF_H, small
from .test_learned_posterior import exact as exact_learned

LEVEL = 1e-4


def assert_known_exact(sampled, truth):
    """By the functionals whose exact means are known."""
    known = {name: v for name, v in sampled.functionals.items() if name in truth.means}
    assert_exact(replace(sampled, functionals=known), truth, level=LEVEL)


@pytest.mark.parametrize(
    ("toy", "method", "h", "hottest_power"),
    [
        ("two-classes", "hmc-df", 0.1, None),
        ("two-classes", "hmc-df", 0.1, 0.0),
        ("regression", "hmc-df", 0.0, None),
        ("regression", "hmc-dfi", 0.1, 0.0),
    ],
)
def test_posterior_is_exact(toy, method, h, hottest_power, seed):
    exact = exact_toy(toy, method, h)
    sampled = run_toy(
        TOYS[toy](),
        method=method,
        h=h,
        n_draws=4_000,
        seed=seed,
        of_labels="paper",
        configuration="informed",
        replicas=3,
        hottest_power=hottest_power,
    )
    assert_exact(sampled, exact, level=LEVEL)


@pytest.mark.parametrize("h", [0.0, 0.1])
def test_explicit_means_are_exact(h, seed):
    """With a wide prior of the means, where a power inside and outside of the integral differ."""
    toy = TOYS["regression"]()
    toy = replace(toy, prior=replace(toy.prior, mu=(0.0, 30.0)))
    exact = exact_posterior(toy, method="hmc-df", h=h)
    sampled = run_toy(
        toy,
        method="hmc-df",
        h=h,
        n_draws=4_000,
        seed=seed,
        configuration="informed-explicit",
        replicas=4,
        mu_prior=(0.0, 30.0),
    )
    assert_exact(sampled, exact, level=LEVEL)


@pytest.mark.parametrize("hottest_power", [None, 0.0])
def test_leaf_probabilities_are_exact(hottest_power, seed):
    """They are a part of what is exchanged, and moved by another step at another power."""
    toy = small("two-classes", "one")
    sampled = run_toy(
        toy,
        method="hmc-df",
        h=0.1,
        n_draws=4_000,
        seed=seed,
        configuration="informed",
        replicas=3,
        hottest_power=hottest_power,
    )
    truth = label_posterior(toy, method="hmc-df", h=0.1)
    assert_known_exact(sampled, truth)


@pytest.mark.parametrize(
    ("toy", "kind"),
    [
        ("regression", "one"),
        ("regression", "by-feature"),
        ("two-classes", "one"),
        pytest.param("regression", "oblique", marks=pytest.mark.long),
        pytest.param("two-classes", "oblique", marks=pytest.mark.long),
    ],
)
def test_learned_h_is_exact(toy, kind, seed):
    """h is a part of what is exchanged."""
    truth = exact_learned(toy, kind)
    sampled = run_toy(
        small(toy, kind),
        h="learn",
        h_prior=PRIOR_OF_H,
        n_draws=3_000,
        seed=seed,
        configuration="informed",
        replicas=3,
        **KINDS[kind],
    )
    assert_known_exact(sampled, truth)


@pytest.mark.parametrize(
    ("kind", "leaves", "moves", "hottest_power"),
    [
        ("uniform", "classes", "informed", None),
        ("gap", "regression", "informed", 0.0),
        ("uniform01", "common", "informed", None),
        ("uniform01", "classes", "prior", 0.0),
        ("wu", "classes", "prior", 0.0),
        ("wu", "regression", "prior", None),
        *(
            pytest.param("uniform", "regression", "prior", None, marks=pytest.mark.long),
            pytest.param("wu", "common", "prior", 0.0, marks=pytest.mark.long),
        ),
    ],
)
def test_hard_trees_are_exact(kind, leaves, moves, hottest_power, seed):
    toy = make_toy(kind, leaves, max_leaves=3 if kind == "uniform01" else 4)
    draws, info = run_hard(
        toy,
        n_draws=4_000,
        seed=seed,
        moves=moves,
        replicas=3,
        hottest_power=hottest_power,
    )
    accepted, proposed = info.acceptance["sampling"]["exchange"]
    assert (accepted > 0.2 * proposed).all()
    assert_exact_hard(toy, draws, level=LEVEL)


# ------------------------------------------------------------------ exchanges


CHAINS = {
    "classes": ("hmc-df", {}),
    "means": ("hmc-df", {"leaf_means": "explicit", "h": 0.05}),
    "oblique": ("hmc-dfi", {}),
    "learned": ("hmc-df", {"h": "learn"}),
    "learned classes": ("hmc-df", {"h": "learn"}),
    "cgm": ("cgm", {}),
    "wu": ("wu", {}),
}


def make_chain(seed: int, replicas: int, kind: str = "classes", **values: Any) -> TemperedChain:
    method, more = CHAINS[kind]
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(40, 2)), rng.integers(0, 2, 40)
    classes = 0 if kind in ("means", "learned") else 2
    problem = Problem(np.ascontiguousarray(X.T), y if classes else y + rng.normal(size=40), classes)
    configuration = configured(method, replicas=replicas, **more, **values)
    sampler = build_sampler(problem, configuration, 80, 0)
    chain = sampler.start(np.random.Generator(np.random.PCG64(seed)))
    assert isinstance(chain, TemperedChain)
    return chain


def test_exchanges_alone_keep_the_joint_law(seed):
    """Two frozen rungs of two states each: the exact law of who holds which."""
    chain = make_chain(seed, replicas=2)
    chain.advance(4)
    a, b = (rung.state for rung in chain.rungs)
    chain.rungs[0].power[0], chain.rungs[1].power[0] = 1.0, 0.25
    a.log_like[0], b.log_like[0] = -10.0, -9.0
    held = []
    for turn in range(1_000, 41_000, 2):
        chain.exchange(turn, np.array([a.log_like[0], b.log_like[0]]))
        held.append(a.log_like[0] == -9.0)
    # weights exp(power x log-likelihood) of the two ways to hold the trees
    ways = np.exp([1.0 * -9.0 + 0.25 * -10.0, 1.0 * -10.0 + 0.25 * -9.0])
    expected = ways[0] / ways.sum()
    assert abs(np.mean(held) - expected) < 5 * np.sqrt(0.25 / len(held) * 3)


@pytest.mark.parametrize("hottest_power", [None, 0.0])
@pytest.mark.parametrize("kind", CHAINS)
def test_an_exchange_is_of_whole_states(kind, hottest_power, seed):
    """What a rung says of its state after an exchange is what the other one said before."""
    chain = make_chain(seed, replicas=3, kind=kind, hottest_power=hottest_power)
    chain.advance(60)
    a, b = chain.rungs[0], chain.rungs[2]
    log_likes = [a.log_likelihood(), b.log_likelihood()]  # at power 0 it is computed here
    before = [[array.copy() for array in arrays_of(rung)] for rung in (a, b)]
    exchange_states(a, b)
    for rung, arrays in zip((b, a), before, strict=True):
        for now, then in zip(arrays_of(rung), arrays, strict=True):
            np.testing.assert_array_equal(now, then)
    assert [b.log_likelihood(), a.log_likelihood()] == pytest.approx(log_likes, rel=1e-10)
    assert a.log_likelihood() == pytest.approx(recomputed(a), rel=1e-10)


def recomputed(rung: Any) -> float:
    """The log-likelihood of a rung's state from its tree alone."""
    if hasattr(rung, "loop"):
        model, state = rung.model, rung.loop.state
        cells = state.new_cells
        cells.rows[:] = np.arange(len(cells.rows))
        cells.start[0], cells.stop[0] = 0, len(cells.rows)
        settle(model, state.tree, cells, 0, np.nan, state.spare, state.rule_work)
        return log_marginal(model, state.tree, cells)
    return likelihood(rung.state.model, rung.state.tree, rung.state.work)


@pytest.mark.parametrize("kind", CHAINS)
def test_rungs_know_their_likelihood_at_power_0(kind, seed):
    chain = make_chain(seed, replicas=3, kind=kind, hottest_power=0.0)
    chain.advance(70)
    hot = chain.rungs[-1]
    assert hot.power[0] == 0.0
    found = hot.log_likelihood()
    hot.power[0] = 0.5
    assert found == pytest.approx(recomputed(hot), rel=1e-10)


def test_draws_do_not_depend_on_blocks_or_threads(seed):
    whole, pieces, threads = (make_chain(seed, replicas=3) for _ in range(3))
    threads.workers = 2
    first = whole.advance(120)
    second = [block for n in (1, 30, 2, 87) for block in pieces.advance(n)]
    third = threads.advance(120)
    for name in ("size", "threshold", "scalars", "rungs"):
        one, two, three = (
            np.concatenate([getattr(block, name) for block in blocks])
            for blocks in (first, second, third)
        )
        assert len(one)
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("kind", ["classes", "cgm"])
@pytest.mark.parametrize("hottest_power", [None, 0.0, 0.3])
def test_rungs_are_placed_in_warm_up_and_stay(kind, hottest_power, seed):
    chain = make_chain(seed, replicas=4, kind=kind, hottest_power=hottest_power)
    start = chain.powers.copy()
    chain.advance(80)
    frozen = [float(rung.power[0]) for rung in chain.rungs]
    assert chain.settled == len(ROUNDS)
    assert frozen == list(chain.powers)
    assert (chain.powers != start).any()
    assert frozen[0] == 1.0
    assert all(a > b >= 0 for a, b in itertools.pairwise(frozen))
    if hottest_power is not None:
        assert frozen[-1] == pytest.approx(hottest_power)
    chain.advance(60)
    assert [float(rung.power[0]) for rung in chain.rungs] == frozen
    assert chain.tally()["sampling"]["exchange"][1] == 3 * 60 / 2


def test_replicas_where_they_mean_nothing(rng):
    X, y = rng.uniform(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match="replicas needs"):
        BayesianTreeClassifier(method=HMCDF.paper(replicas=3)).fit(X, y)
    with pytest.raises(ValueError, match="hottest_power is that of the last"):
        BayesianTreeClassifier(method=CGM(hottest_power=0.1)).fit(X, y)
