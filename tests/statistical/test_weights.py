"""Weights of rows in every sampler: whole ones as repeated rows, others by exact posteriors."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hamiltree.running.run import Problem, sample

from ..reference.exact import exact_posterior
from ..reference.exact_learned import label_posterior
from ..reference.model import TOYS
from ..reference.stats import compare_means, total_variation
from ..support.configuring import configured
from .battery import run_toy
from .hard_battery import assert_exact, make_toy, run_hard

LEVEL = 1e-4  # of each test
WEIGHTS = np.array([0.4, 1.7, 1.0, 2.3, 0.6, 1.2, 0.9, 1.4, 0.5, 2.0, 0.8, 1.1])


METHODS = {
    "df": ("hmc-df", {"h": 0.05, "likelihood": "paper"}),
    "df-hard": ("hmc-df", {"h": 0}),
    "df-explicit": ("hmc-df", {"h": 0.05, "leaf_means": "explicit"}),
    "df-prior-moves": ("hmc-df", {"h": 0.05, "moves": "prior", "likelihood": "paper"}),
    "dfi": ("hmc-dfi", {"h": 0.05, "likelihood": "paper"}),
    "cgm": ("cgm", {}),
    "cgm-gap": ("cgm", {"rule_prior": "gap"}),
    "cgm-common": ("cgm", {"moves": "prior", "variance": "common"}),
    "wu": ("wu", {}),
    "smc": ("smc", {}),
    "smc-prior": ("smc", {"split_proposal": "prior", "min_size": 4}),
}


CASES = [
    (name, n_classes)
    for name in METHODS
    for n_classes in (0, 3)
    if (name, n_classes) not in (("df-hard", 0), ("df-explicit", 3), ("cgm-common", 3))
]


def by_length(cases, short):
    """All cases, those marked long that are not among ``short``: each value is in one of these."""
    return [pytest.param(*case, marks=() if case in short else pytest.mark.long) for case in cases]


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_draws_are_those_of_repeated_rows(name, n_classes, rng, seed):
    """The same trees, to rounding, which grows as a chain goes on: hence few draws.

    Hard splits often part the rows as others do, and then rounding decides whether a random number
    is asked for: y is such that sums are exact. Those of ``df-hard`` cannot be.
    """
    method, options = METHODS[name]
    X = rng.uniform(size=(40, 3)).round(2)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=40), [0.3, 0.6])
    times = rng.integers(1, 4, len(X))
    if not n_classes:
        times[-1] = 1
        y = y - 1.0
        y[-1] -= times @ y  # whole numbers with mean 0
    if not n_classes:
        options = {name: value for name, value in options.items() if name != "likelihood"}
    configuration = configured(method, **options)
    weighted = Problem(np.ascontiguousarray(X.T), y, n_classes, times.astype(float))
    repeated = Problem(
        np.ascontiguousarray(np.repeat(X, times, axis=0).T), np.repeat(y, times), n_classes
    )
    n_draws = 200 if method == "smc" else 15
    first, second = (
        sample(
            p, configuration, n_chains=1, n_warmup=5, n_draws=n_draws, seed=seed, progress=False
        )[0]
        for p in (weighted, repeated)
    )
    np.testing.assert_array_equal(first.size, second.size)
    np.testing.assert_array_equal(first.feature, second.feature)
    for array in ("threshold", "leaf", "log_likelihood", "log_posterior", "split_weights", "sigma"):
        a, b = getattr(first, array), getattr(second, array)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8, err_msg=array)


@pytest.mark.parametrize(
    ("method", "toy", "h"),
    by_length(
        itertools.product(("hmc-df", "hmc-dfi"), ("two-classes", "regression"), (0.1, 0.0)),
        short=[
            ("hmc-df", "two-classes", 0.1),
            ("hmc-df", "regression", 0.0),
            ("hmc-dfi", "two-classes", 0.1),
        ],
    ),
)
def test_exact_posterior_of_soft_trees(method, toy, h, seed):
    problem = TOYS[toy]()
    problem = replace(problem, weights=WEIGHTS[: len(problem.y)])
    exact = exact_posterior(problem, method=method, h=h, order=None if problem.n_classes else 16)
    assert exact.error < 1e-3
    sampled = run_toy(
        problem,
        method=method,
        h=h,
        n_draws=20_000,
        seed=seed,
        configuration="informed",
        of_labels="paper",
    )
    distance = total_variation(sampled.shapes, exact.shapes, level=LEVEL)
    means = compare_means(sampled.functionals, exact.means, level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.ok, distance
    assert means.ok, means


def test_exact_posterior_of_labels(seed):
    """The likelihood that is normalised over labels."""
    problem, keep = TOYS["two-classes"](), [0, 2, 3, 5, 6, 8, 9, 11]
    problem = replace(
        problem,
        X=problem.X[keep],
        y=problem.y[keep],
        weights=WEIGHTS[keep],
        prior=replace(problem.prior, max_leaves=3),
    )
    exact = label_posterior(problem, method="hmc-df", h=0.1, order=26)
    assert exact.error < 1e-3
    sampled = run_toy(
        problem, method="hmc-df", h=0.1, n_draws=12_000, seed=seed, configuration="informed"
    )
    distance = total_variation(sampled.shapes, exact.shapes, level=LEVEL)
    drawn = {key: value for key, value in sampled.functionals.items() if key in exact.means}
    means = compare_means(drawn, exact.means, level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.ok, distance
    assert means.ok, means


@pytest.mark.parametrize(
    ("kind", "moves", "leaves"),
    by_length(
        [
            (*kind, leaves)
            for kind in (("gap", "informed"), ("uniform", "prior"), ("wu", ""))
            for leaves in ("classes", "regression", "common")
        ],
        short=[
            ("gap", "informed", "regression"),
            ("uniform", "prior", "classes"),
            ("wu", "", "common"),
        ],
    ),
)
def test_exact_posterior_of_hard_trees(kind, moves, leaves, seed):
    toy = make_toy(kind, leaves, max_leaves=3)
    toy = replace(toy, row_weights=WEIGHTS[: len(toy.y)])
    options = {"moves": moves} if moves else {}
    draws, _ = run_hard(toy, n_draws=10_000, seed=seed, **options)
    assert_exact(toy, draws, likelihood=True, level=LEVEL)
