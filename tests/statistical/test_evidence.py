"""The log evidence of replicas: Bennett's ratio where it is known, and whole ladders on toys."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm

from hamiltree.posterior.draws import RunInfo
from hamiltree.posterior.evidence import bennett, evidence_of_ladder, evidence_of_particles
from hamiltree.running.run import Problem, sample

from ..reference.enumerate_hard import Toy as HardToy
from ..reference.exact import exact_toy
from ..reference.exact_learned import label_posterior
from ..reference.model import TOYS, Toy
from ..support.configuring import configured, usable, values_of
from .hard_battery import make_toy, run_hard
from .test_learned_posterior import KINDS, PRIOR_OF_H, small
from .test_learned_posterior import exact as exact_learned

MOST = norm.isf(1e-4 / 2)
"""Standard errors that an estimate may be off: a false alarm in 10,000 toys."""

SOFT = {
    "classes": ("two-classes", "hmc-df", {"h": 0.1, "likelihood": "paper"}),
    "hard-classes": ("three-classes", "hmc-df", {"h": 0.0}),
    "regression": ("regression", "hmc-df", {"h": 0.1}),
    "hard-regression": ("regression", "hmc-df", {"h": 0.0}),
    "explicit-means": ("regression", "hmc-df", {"h": 0.1, "leaf_means": "explicit"}),
    "prior-moves": ("regression", "hmc-df", {"h": 0.0, "moves": "prior"}),
    "oblique": ("regression", "hmc-dfi", {"h": 0.1}),
}
HARD = [
    ("uniform", "classes"),
    ("gap", "regression"),
    ("uniform01", "common"),
    ("wu", "classes"),
    ("wu", "regression"),
]


def ladder_on(toy: Toy, method: str, seed: int, **values: object) -> RunInfo:
    options = {
        **values_of(toy.prior),
        "replicas": 5,
        "hottest_power": 0.0,
        **values,
    }
    _, info = sample(
        Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes),
        configured(method, **usable(method, options)),
        n_chains=2,
        n_warmup=400,
        n_draws=3_000,
        n_jobs=2,
        seed=seed,
    )
    return info


def assert_evidence(info: RunInfo, truth: float) -> None:
    assert info.log_evidence is not None
    assert info.log_evidence_error is not None
    print(f"{info.log_evidence:.3f} +- {info.log_evidence_error:.3f}, truth {truth:.3f}, "
          f"powers {np.round(info.powers, 3)}")  # fmt: skip
    assert info.powers[-1] == 0.0
    assert 0.0 < info.log_evidence_error < 0.1  # an error that says nothing would pass, too
    assert abs(info.log_evidence - truth) < MOST * info.log_evidence_error


@pytest.mark.parametrize("name", SOFT)
def test_soft_trees(name, seed):
    toy, method, values = SOFT[name]
    truth = exact_toy(toy, method, values["h"]).log_evidence
    assert_evidence(ladder_on(TOYS[toy](), method, seed, **values), truth)


def test_likelihood_of_labels(seed):
    toy = small("two-classes", "one")
    truth = label_posterior(toy, method="hmc-df", h=0.1).log_evidence
    assert_evidence(ladder_on(toy, "hmc-df", seed, h=0.1), truth)


@pytest.mark.parametrize("kind", ["one", "oblique"])
def test_learned_h(kind, seed):
    """The prior of h is a part of the model."""
    toy = small("regression", kind)
    values = {**KINDS[kind], "h": "learn", "h_prior": PRIOR_OF_H}
    info = ladder_on(toy, values.pop("method"), seed, **values)
    assert_evidence(info, exact_learned("regression", kind).log_evidence)


@cache
def hard_toy(kind: str, leaves: str) -> HardToy:
    return make_toy(kind, leaves, max_leaves=3 if kind == "uniform01" else 4)


@pytest.mark.parametrize(("kind", "leaves"), HARD)
def test_hard_trees(kind, leaves, seed):
    toy = hard_toy(kind, leaves)
    moves = "prior" if kind == "wu" else "informed"
    _, info = run_hard(
        toy, n_draws=4_000, seed=seed, n_chains=2, moves=moves, replicas=5, hottest_power=0.0
    )
    assert_evidence(info, toy.log_evidence)


# ------------------------------------------------------------------ the estimators


def gaussian_ladder(rng, powers, n_chains, n_draws, rho=0.0):
    """x ~ N(0, 1) and l = -x^2 / 2 + 1: at power p, x ~ N(0, 1 / (1 + p)); Z(p) is known."""
    x = rng.standard_normal((n_chains, n_draws, len(powers)))
    for t in range(1, n_draws):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * x[:, t]
    x /= np.sqrt(1.0 + np.array(powers))
    return 1.0 - 0.5 * x**2


def truth_at(power):
    return power - 0.5 * math.log(1.0 + power)


def test_bennett_ratio(rng):
    log_like = gaussian_ladder(rng, (2.0, 0.5), 1, 200_000)[0]
    found = bennett(1.5 * log_like[:, 0], 1.5 * log_like[:, 1])
    assert found == pytest.approx(truth_at(2.0) - truth_at(0.5), abs=0.01)


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_error_covers(rng, rho):
    """z-scores of 200 ladders have variance 1, whether or not draws are correlated."""
    powers = (1.0, 0.6, 0.2, 0.0)
    z = []
    for _ in range(200):
        log_likes = gaussian_ladder(rng, powers, 2, 1_000, rho)
        value, error = evidence_of_ladder(np.tile(powers, (2, 1)), log_likes)
        z.append((value - truth_at(1.0)) / error)
    # variance of a variance of 200 is 2 / 199; errors are themselves estimates, some 5% off
    assert abs(np.mean(z)) < 5 / math.sqrt(200)
    assert 1 - 5 * math.sqrt(2 / 199) < np.var(z, ddof=1) < 1.15 + 5 * math.sqrt(2 / 199)


def test_chains_that_differ_widen_the_error(rng):
    powers = (1.0, 0.3, 0.0)
    log_likes = gaussian_ladder(rng, powers, 2, 2_000)
    both = np.tile(powers, (2, 1))
    _, alike = evidence_of_ladder(both, log_likes)
    log_likes[1] += 3.0
    _, apart = evidence_of_ladder(both, log_likes)
    assert apart > 10 * alike


def test_ladders_may_differ(rng):
    """Chains that were not advanced together place their rungs each for itself."""
    ladders = [(1.0, 0.5, 0.0), (1.0, 0.2, 0.0)]
    log_likes = np.concatenate([gaussian_ladder(rng, powers, 1, 4_000) for powers in ladders])
    value, error = evidence_of_ladder(np.array(ladders), log_likes)
    assert abs(value - truth_at(1.0)) < MOST * error


def test_a_likelihood_of_0_at_power_0(rng):
    """Half of the prior has none: the evidence is halved."""
    powers = (1.0, 0.4, 0.0)
    log_likes = gaussian_ladder(rng, powers, 2, 4_000)
    log_likes[:, ::2, 2] = -np.inf
    value, error = evidence_of_ladder(np.tile(powers, (2, 1)), log_likes)
    assert abs(value - truth_at(1.0) + math.log(2.0)) < MOST * error


def test_error_of_islands(rng):
    """By the delta method; one island has nothing to compare."""
    log_weight = np.log(rng.gamma(20.0, size=(400, 5)) / 5)
    value, error = evidence_of_particles(log_weight)
    assert abs(value - math.log(20.0)) < MOST * error
    assert error == pytest.approx(math.sqrt(1 / (20.0 * 5) / 400), rel=0.25)
    assert math.isnan(evidence_of_particles(log_weight[:1])[1])


# ------------------------------------------------------------------ constants


@pytest.mark.parametrize("common", [False, True])
def test_single_leaf_of_hard_trees_is_a_t(common, seed):
    """With one leaf the evidence is the density of y, whatever the sampler does."""
    toy = make_toy("gap", "common" if common else "regression", max_leaves=1)
    draws, _ = run_hard(toy, n_draws=4, seed=seed, n_chains=1)
    shape, rate = toy.leaves.variance_prior
    mean, rows = toy.leaves.mean_prior
    n = len(toy.y)
    scale = rate / shape * (np.eye(n) + np.ones((n, n)) / rows)
    truth = multivariate_t(np.full(n, mean), scale, df=2 * shape).logpdf(toy.y)
    np.testing.assert_allclose(draws.log_likelihood, truth, rtol=1e-10)
