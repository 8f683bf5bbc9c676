"""SMC against sums over every tree: evidence, posterior, prior, and what it hands over.

An island is one independent run, so the spread over islands is the error bar. With the unnormalised
weights, the sum over an island of weight x f(tree) has mean evidence x E[f] exactly, whatever the
number of particles, the proposal or the resampling: z-tests of that have no bias to allow for. All
limits are two-sided with a false-alarm rate of 1e-4 a test or less.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from ..reference.enumerate_smc import TINY, grid_problem, log_evidence, queue_sums, tree_sums
from .smc_battery import (
    PROPOSALS,
    RESAMPLINGS,
    Z_LIMIT,
    assert_close,
    named,
    partitions_of,
    run_islands,
    z_scores,
)

exact = lru_cache(tree_sums)


@pytest.mark.parametrize("name", TINY)
def test_the_two_references_agree(name):
    small = replace(TINY[name], X=TINY[name].X[:5], y=TINY[name].y[:5])
    by_subtree, by_queue = tree_sums(small), queue_sums(small)
    assert by_subtree.evidence == pytest.approx(by_queue.evidence, rel=1e-12)
    for partition, mass in by_queue.partitions.items():
        assert by_subtree.partitions[partition] == pytest.approx(mass, rel=1e-12)
    prior = tree_sums(replace(small, power=0.0))
    assert prior.evidence == pytest.approx(1.0, rel=1e-12)
    assert log_evidence(small) == pytest.approx(by_queue.log_evidence, rel=1e-12)


@pytest.mark.parametrize("resampling", RESAMPLINGS)
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("name", TINY)
def test_evidence_is_unbiased_and_the_posterior_is_exact(name, proposal, resampling, seed):
    problem = TINY[name]
    draws, info = run_islands(
        problem, seed, 200, 100, split_proposal=proposal, resampling=resampling, ess_threshold=0.8
    )
    assert np.mean([len(set(f)) for f in info.stats["founder"]]) < 90  # it did resample
    assert_close(z_scores(problem, exact(problem), draws, info))


@pytest.mark.long
@pytest.mark.parametrize("threshold", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("resampling", RESAMPLINGS)
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("name", TINY)
def test_the_same_with_many_islands(name, proposal, resampling, threshold, seed):
    problem = TINY[name]
    draws, info = run_islands(
        problem, seed, 2000, 50,
        split_proposal=proposal, resampling=resampling, ess_threshold=threshold,
    )  # fmt: skip
    z = z_scores(problem, exact(problem), draws, info)
    print(name, proposal, resampling, threshold, {k: round(v, 2) for k, v in z.items()})
    assert_close(z)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_evidence_of_more_rows_and_larger_trees(n_classes, seed, rng):
    problem = grid_problem(rng, n_classes)
    truth = log_evidence(problem)
    draws, info = run_islands(problem, seed, 100, 500, ess_threshold=0.5)
    assert draws.n_leaves.max() > 8
    ratio = np.exp(info.stats["log_weight"] - truth).sum(axis=1)
    print(f"evidence / truth: {ratio.mean():.4f} +- {ratio.std(ddof=1) / 10:.4f}")
    assert abs(ratio.mean() - 1.0) < Z_LIMIT * ratio.std(ddof=1) / 10


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("limits", [{"max_leaves": 3}, {"min_leaves": 2}, {"power": 0.5}])
def test_limits_on_the_tree_and_powers_of_the_likelihood(proposal, limits, seed):
    problem = TINY["two classes"]
    problem = replace(problem, X=problem.X[1:6], y=problem.y[1:6], **limits)
    draws, info = run_islands(problem, seed, 200, 100, split_proposal=proposal, ess_threshold=0.8)
    assert draws.n_leaves.min() >= problem.min_leaves
    assert draws.n_leaves.max() <= problem.max_leaves
    assert_close(z_scores(problem, queue_sums(problem), draws, info))


@pytest.mark.parametrize("name", ["three classes", "two classes, special"])
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_without_the_likelihood_there_is_the_prior(proposal, name, seed):
    problem = replace(TINY[name], power=0.0)
    draws, info = run_islands(problem, seed, 100, 200, split_proposal=proposal)
    if proposal == "empirical":  # its weights still correct the thresholds
        assert_close(z_scores(problem, exact(problem), draws, info))
        return
    assert info.log_evidence == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(draws.weights_of_draws, 1 / 20_000, rtol=1e-12)
    shares = exact(problem).partitions
    common = {named(p, 7): share for p, share in shares.items() if share > 0.005}
    codes = {name: k for k, name in enumerate(common)}
    found = [codes.get(tuple(n), len(codes)) for n in partitions_of(problem, draws).tolist()]
    expected = np.array([*common.values(), 1 - sum(common.values())]) * len(found)
    counts = np.bincount(found, minlength=len(expected))
    assert stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_thresholds_are_uniform_within_their_gap(proposal, seed):
    problem = TINY["regression"]
    draws, _ = run_islands(problem, seed, 1, 20_000, split_proposal=proposal, ess_threshold=0.0)
    split = draws.n_leaves.ravel() > 1
    first = ((draws.node_offset[:-1] - np.arange(20_000)) // 2)[split]
    feature, threshold = draws.feature[first], draws.threshold[first]
    for f in range(2):
        values = np.unique(problem.X[:, f])
        mine = threshold[feature == f]
        gap = np.searchsorted(values, mine, side="right") - 1
        assert gap.min() >= 0
        assert gap.max() <= len(values) - 2
        within = (mine - values[gap]) / (values[gap + 1] - values[gap])
        assert stats.kstest(within, "uniform").pvalue > 1e-4
        if proposal == "prior":
            assert stats.kstest(mine, "uniform").pvalue > 1e-4
