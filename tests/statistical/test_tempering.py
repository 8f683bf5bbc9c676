"""Replica exchange: the first rung keeps its posterior, whatever hot rungs and threads do."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier
from hamiltree.core.tree.nodes import copy_tree
from hamiltree.methods import HMCDF
from hamiltree.running.run import Problem
from hamiltree.samplers.rjhmc import RJHMC
from hamiltree.samplers.tempering import EVERY, TemperedChain

from ..reference.exact import exact_posterior, exact_toy
from ..reference.model import TOYS
from ..reference.stats import compare_means, total_variation
from ..support.configuring import configured
from .battery import run_toy

LEVEL = 1e-4


@pytest.mark.parametrize(
    ("toy", "method", "h"),
    [("two-classes", "hmc-df", 0.1), ("regression", "hmc-df", 0.0), ("regression", "hmc-dfi", 0.1)],
)
def test_posterior_is_exact(toy, method, h, seed):
    exact = exact_toy(toy, method, h)
    sampled = run_toy(
        TOYS[toy](),
        method=method,
        h=h,
        n_draws=6_000,
        seed=seed,
        configuration="informed",
        replicas=3,
    )
    distance = total_variation(sampled.shapes, exact.shapes, level=LEVEL)
    means = compare_means(sampled.functionals, exact.means, level=LEVEL)
    assert distance.ok, distance
    assert means.ok, means


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
        n_draws=8_000,
        seed=seed,
        configuration="informed-explicit",
        replicas=6,
        mu_prior=(0.0, 30.0),
    )
    distance = total_variation(sampled.shapes, exact.shapes, level=LEVEL)
    means = compare_means(sampled.functionals, exact.means, level=LEVEL)
    assert distance.ok, distance
    assert means.ok, means


def test_exchanges_alone_keep_the_joint_law(seed):
    """Two frozen rungs of two trees each: the exact law of who holds which."""
    chain = make_chain(seed, n_rungs=2)
    chain.advance(2 * EVERY)
    a, b = (rung.state for rung in chain.rungs)
    chain.n_warmup = 0
    a.model.power[0], b.model.power[0] = 1.0, 0.25
    a.log_like[0], b.log_like[0] = -10.0, -9.0
    held = []
    for turn in range(0, 40_000, 2):
        chain._exchange(turn)
        held.append(a.log_like[0] == -9.0)
    # weights exp(power x log-likelihood) of the two ways to hold the trees
    ways = np.exp([1.0 * -9.0 + 0.25 * -10.0, 1.0 * -10.0 + 0.25 * -9.0])
    expected = ways[0] / ways.sum()
    assert abs(np.mean(held) - expected) < 5 * np.sqrt(0.25 / len(held) * 3)


def make_chain(seed: int, n_rungs: int) -> TemperedChain:
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(40, 2)), rng.integers(0, 2, 40)
    problem = Problem(np.ascontiguousarray(X.T), y, 2)
    sampler = RJHMC.build(problem.columns, problem.y, 2, configured(), 50)
    return TemperedChain(sampler, np.random.Generator(np.random.PCG64(seed)), n_rungs)


def test_an_exchange_moves_trees_with_their_likelihoods(seed):
    chain = make_chain(seed, n_rungs=2)
    chain.advance(30)
    a, b = (rung.state for rung in chain.rungs)
    a.log_like[0], b.log_like[0] = -50.0, -1.0  # certain to be exchanged
    before = [(s.tree.n_nodes[0], s.tree.threshold[: s.tree.n_nodes[0]].copy()) for s in (a, b)]
    chain._exchange(0)
    after = [(s.tree.n_nodes[0], s.tree.threshold[: s.tree.n_nodes[0]].copy()) for s in (b, a)]
    for (n, threshold), (m, other) in zip(before, after, strict=True):
        assert n == m
        np.testing.assert_array_equal(threshold, other)
    assert (a.log_like[0], b.log_like[0]) == (-1.0, -50.0)
    copy_tree(a.tree, a.proposal)  # the spare tree is free for the next proposal


def test_draws_do_not_depend_on_blocks_or_threads(seed):
    whole, pieces, threads = (make_chain(seed, n_rungs=3) for _ in range(3))
    threads.workers = 2
    first = whole.advance(90)
    second = [block for n in (1, 30, 2, 57) for block in pieces.advance(n)]
    third = threads.advance(90)
    for name in ("size", "threshold", "scalars"):
        one, two, three = (
            np.concatenate([getattr(block, name) for block in blocks])
            for blocks in (first, second, third)
        )
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


def test_ladder_adapts_and_freezes(seed):
    chain = make_chain(seed, n_rungs=4)
    chain.advance(50)
    frozen = chain.powers
    assert frozen[0] == 1.0
    assert all(a > b > 0 for a, b in itertools.pairwise(frozen))
    chain.advance(50)
    assert chain.powers == frozen
    assert chain.tally()["sampling"]["exchange"][1] > 0


def test_replicas_where_they_mean_nothing(rng):
    X, y = rng.uniform(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match="replicas needs"):
        BayesianTreeClassifier(method=HMCDF.paper(replicas=3)).fit(X, y)
