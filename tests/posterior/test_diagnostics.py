"""Diagnoses of chains whose truth is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hamiltree.posterior import Posterior
from hamiltree.posterior.diagnostics import agree, diagnose

from ..support.fake_draws import fake_posterior


def chains(rng, *, n_chains=4, n_draws=500, log_posterior=None, n_leaves=None, **changes):
    """A posterior whose recorded numbers are independent unless given; its trees are roots."""
    shape = (n_chains, n_draws)
    base = fake_posterior(0, n_chains=n_chains, n_draws=n_draws, n_leaves=np.ones(shape, int))
    n_leaves = rng.poisson(2, shape) + 3 if n_leaves is None else n_leaves
    draws = dataclasses.replace(
        base.draws,
        n_leaves=n_leaves,
        depth=n_leaves - 1,
        log_posterior=rng.normal(size=shape) if log_posterior is None else log_posterior,
        **changes,
    )
    return Posterior(
        draws,
        dataclasses.replace(base.info, n_warmup=300),
        base.preprocessing,
        base.configuration,
        monitor=rng.uniform(size=(*shape, 20)),
    )


def test_independent_chains_agree(rng):
    found = diagnose(chains(rng))
    assert found.converged
    assert found.sentence.startswith("The 4 chains agree")
    assert found.stuck == ()
    assert (
        set(found.rhat)
        == set(found.ess)
        == {
            "log_posterior",
            "log_likelihood",
            "n_leaves",
            "depth",
            "predictions",
        }
    )
    assert max(found.rhat.values()) < 1.02
    assert min(found.ess.values()) > 1000
    assert found.median_rhat <= found.rhat[found.worst]
    assert found.acceptance["grow"] == 0.3


def test_a_shifted_chain_is_named_with_a_remedy(rng):
    values = rng.normal(size=(4, 500))
    values[2] += 1.5
    found = diagnose(chains(rng, log_posterior=values))
    assert not found.converged
    assert found.worst == "log_posterior"
    assert found.rhat["log_posterior"] > 1.05
    assert "do not agree" in found.sentence
    assert "the log posterior" in found.sentence
    assert "n_warmup=" in found.sentence
    assert "n_draws=" in found.sentence


def test_a_shifted_prediction_is_found(rng):
    post = chains(rng)
    post.monitor[1, :, 13] += 2
    found = diagnose(post)
    assert not found.converged
    assert found.worst == "predictions"
    assert found.median_rhat < 1.01
    assert found.median_ess > 4 * found.ess["predictions"]
    assert f"(of the median one {np.ceil(1000 * found.median_rhat) / 1000:.3f})" in found.sentence


def test_a_chain_stuck_at_one_size_is_named_although_its_ess_looks_fine(rng):
    leaves = rng.poisson(2, (4, 500)) + 3
    leaves[3] = 9
    found = diagnose(chains(rng, n_leaves=leaves))
    assert not found.converged
    assert found.stuck == (3,)
    assert found.sentence.startswith("Chain 3 is stuck")


def test_chains_stuck_at_different_sizes(rng):
    leaves = np.repeat([[3], [4], [5], [5]], 500, axis=1)
    found = diagnose(chains(rng, n_leaves=leaves))
    assert not found.converged
    assert found.stuck == (0, 1, 2, 3)
    assert found.rhat["n_leaves"] == np.inf


def test_one_size_known_for_sure_is_fine(rng):
    found = diagnose(chains(rng, n_leaves=np.full((4, 500), 5)))
    assert found.converged
    assert found.rhat["n_leaves"] == 1
    assert found.ess["n_leaves"] == 2000


def test_a_chain_that_never_moves_in_log_posterior_is_stuck(rng):
    values = rng.normal(size=(4, 500))
    values[1] = 0.1
    found = diagnose(chains(rng, log_posterior=values))
    assert not found.converged
    assert found.stuck == (1,)


def test_a_single_still_chain_is_stuck_unless_it_is_a_root(rng):
    still = np.zeros((1, 500))
    five = np.full((1, 500), 5)
    assert diagnose(chains(rng, n_chains=1, log_posterior=still, n_leaves=five)).stuck == (0,)
    roots = diagnose(chains(rng, n_chains=1, log_posterior=still, n_leaves=five // 5))
    assert roots.stuck == ()
    assert roots.converged


@pytest.mark.parametrize("n_draws", [1, 3, 5, 99])
def test_a_short_run_is_never_called_converged(rng, n_draws):
    found = diagnose(chains(rng, n_draws=n_draws))
    assert not found.converged
    assert "far too few" in found.sentence
    assert "n_draws=500" in found.sentence


def test_slow_chains_have_too_few_effective_draws(rng):
    """AR(1) chains with a correlation time of about 200 draws that start in their equilibrium."""
    rho = 0.99
    values = np.empty((4, 500))
    values[:, 0] = rng.normal(size=4)
    for t in range(1, 500):
        values[:, t] = rho * values[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=4)
    found = diagnose(chains(rng, log_posterior=values))
    assert not found.converged
    assert found.ess["log_posterior"] < 100
    assert "run longer" in found.sentence


def test_one_chain_is_told_what_it_cannot_know(rng):
    found = diagnose(chains(rng, n_chains=1, n_draws=1000))
    assert found.converged
    assert "one chain cannot" in found.sentence
    drifting = diagnose(
        chains(rng, n_chains=1, log_posterior=np.linspace(0, 5, 500)[None] + rng.normal(size=500))
    )
    assert not drifting.converged
    assert "parts of the chain disagree" in drifting.sentence


def test_weighted_draws_are_judged_by_their_weights(rng):
    shape = (1, 1000)
    even = rng.uniform(0.5, 1.5, size=shape)
    found = diagnose(chains(rng, n_chains=1, n_draws=1000, weights_of_draws=even / even.sum()))
    assert found.converged
    assert "R-hat does not apply" in found.sentence
    uneven = np.exp(5 * rng.normal(size=shape))
    found = diagnose(chains(rng, n_chains=1, n_draws=1000, weights_of_draws=uneven / uneven.sum()))
    assert not found.converged
    assert "more particles" in found.sentence


def test_divergences_are_counted_and_the_table_is_readable(rng):
    post = chains(rng)
    post.stats["divergent"][0, :7] = True
    found = diagnose(post)
    assert found.n_divergent == 7
    lines = str(found).splitlines()
    assert lines[0] == found.sentence
    names = [line[:21].strip() for line in lines[1:]]
    assert names == ["log_posterior", "log_likelihood", "n_leaves", "depth", "predictions, worst",
                     "predictions, median", "another seed", "accepted"]  # fmt: skip
    assert all("R-hat" in line and "ESS" in line for line in lines[1:-2])
    assert "grow 30%, prune 25%" in lines[-1]


# ---------------------------------------------------------------------- runs with a target


def after(posterior, stopped, target_rhat):
    """The same posterior as the end of a fit with target_rhat."""
    posterior.info = dataclasses.replace(posterior.info, stopped=stopped, target_rhat=target_rhat)
    return posterior


def test_chains_are_stopped_when_all_is_well_and_not_before(rng):
    assert agree(chains(rng), 1.02)
    assert not agree(chains(rng, n_draws=99), 1.5)
    assert not agree(chains(rng, n_chains=2, n_draws=150), 1.5)  # 300 draws: fewer than 400
    shifted = chains(rng)
    shifted.monitor[1, :, 13] += 2
    assert not agree(shifted, 1.05)
    leaves = rng.poisson(2, (4, 500)) + 3
    leaves[3] = 9
    assert not agree(chains(rng, n_leaves=leaves), 10.0)  # stuck


def test_the_sentence_says_what_ended_the_run(rng):
    found = diagnose(after(chains(rng), "target", 1.02))
    assert found.converged
    assert found.sentence.endswith(", and target_rhat=1.02 is met with 500 draws per chain.")
    found = diagnose(after(chains(rng), "interrupted", 1.02))
    assert "interrupted at 500 draws per chain" in found.sentence


def test_a_missed_target_is_no_convergence_though_the_usual_limit_is_met(rng):
    values = rng.normal(size=(4, 500))
    values[2] += 0.4
    post = chains(rng, log_posterior=values)
    usual = diagnose(post)
    assert usual.converged
    assert 1.01 < usual.rhat["log_posterior"] <= 1.05
    strict = diagnose(after(post, "max_draws", 1.01))
    assert not strict.converged
    assert "above 1.01, and max_draws=500 was reached before target_rhat=1.01" in strict.sentence
    assert "max_draws=1000" in strict.sentence


def test_a_lenient_target_does_not_make_chains_agree(rng):
    values = rng.normal(size=(4, 500))
    values[2] += 1.5
    found = diagnose(after(chains(rng, log_posterior=values), "target", 1.5))
    assert not found.converged
    assert "above 1.05, and target_rhat=1.5 is met" in found.sentence
    assert "set target_rhat=1.01" in found.sentence
