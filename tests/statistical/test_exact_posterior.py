"""The posterior over tree shapes against quadrature and enumeration, for every exact kernel.

Judged by two things with a declared false-alarm rate: total variation over the nine shapes of up
to three splits (also below 0.02 outright), and z-tests of the means of a few functionals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hamiltree.core.scan.data import is_soft
from hamiltree.core.soft import kept_routing
from hamiltree.methods import HMCDF
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from ..reference.exact import exact_posterior, exact_toy
from ..reference.model import TOYS, Toy, shared_values
from .battery import CONFIGURATIONS, assert_exact, run_toy

LEVEL = 1e-4  # of each test


def length(toy: str, configuration: str) -> int:
    """Draws per chain.

    Jumps that draw a mean from its prior are rarely accepted: more of them. An informed iteration
    makes some ten jumps: fewer of them.
    """
    options = CONFIGURATIONS[configuration]
    if options.get("moves") != "prior":
        return 20_000
    explicit = options.get("leaf_means") == "explicit"
    return 150_000 if toy == "regression" and explicit else 30_000


def is_in_the_default_run(toy: str, method: str, h: float, configuration: str) -> bool:
    """All informed chains; of the others each method, target and kind of split, not each pairing.

    The pairs that are left out differ from these by the likelihood alone, which the informed chains
    of the same target check, and by the update of the rules, which those of the same method do.
    """
    if length(toy, configuration) > 30_000:  # one of these will do
        return (method, h, configuration) == ("hmc-df", 0.1, "double-sided")
    paired = (method == "hmc-dfi") == (toy == "three-classes")
    simplest = configuration == "composed" and method == "hmc-df"
    return configuration.startswith("informed") or paired or simplest


def cases():
    for toy in TOYS:
        for method in ("hmc-df", "hmc-dfi"):
            for h in (0.1, 0.0):
                for configuration, options in CONFIGURATIONS.items():
                    if toy != "regression" and set(options) == {"leaf_means"}:
                        continue  # classification has no means to be explicit about
                    case = (toy, method, h, configuration)
                    marks = [] if is_in_the_default_run(*case) else [pytest.mark.long]
                    yield pytest.param(*case, marks=marks, id="-".join(map(str, case)))


CASES = list(cases())
assert 2 * len(CASES) * LEVEL < 1 / 80, "false alarms: in less than one of so many runs of the file"


@pytest.mark.parametrize(("toy", "method", "h", "configuration"), CASES)
def test_shapes_and_means(toy, method, h, configuration, seed):
    exact = exact_toy(toy, method, h)
    assert exact.error < 1e-3
    sampled = run_toy(
        TOYS[toy](),
        method=method,
        h=h,
        n_draws=length(toy, configuration),
        seed=seed,
        of_labels="paper",
        configuration=configuration,
    )
    assert_exact(sampled, exact, level=LEVEL, most=0.02)


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
@pytest.mark.parametrize("configuration", ["informed", "informed-explicit"])
def test_means_by_what_changed_alone(configuration, method, seed, monkeypatch):
    """As large trees are evaluated: here from two leaves on."""
    monkeypatch.setattr(kept_routing, "FEWEST_LEAVES", 2)
    sampled = run_toy(
        TOYS["regression"](),
        method=method,
        h=0.1,
        n_draws=6_000,
        seed=seed,
        configuration=configuration,
    )
    assert_exact(sampled, exact_toy("regression", method, 0.1), level=LEVEL, most=0.02)


def with_shared_values(regression: bool) -> Toy:
    toy = shared_values()
    toy = replace(toy, prior=replace(toy.prior, max_leaves=4))
    if not regression:
        return toy
    y = toy.y + 0.4 * np.cos(np.arange(len(toy.y)))
    return replace(toy, y=(y - y.mean()) / y.std(), n_classes=0)


@pytest.mark.parametrize("regression", [False, True])
def test_columns_that_are_scanned_softly(regression, seed):
    """At h = 0.1 the other toys' columns are not: their values are too few for their distances."""
    toy = with_shared_values(regression)
    method = HMCDF(likelihood="paper")
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    sampler = RJHMC.build(problem, method.configured(h=0.1), 0)
    scan = sampler.start(np.random.default_rng(0)).state.proposals.scan
    assert all(is_soft(scan, f) for f in (0, 1))
    exact = exact_posterior(toy, method="hmc-df", h=0.1)
    assert exact.error < 1e-3
    sampled = run_toy(
        toy,
        method="hmc-df",
        h=0.1,
        n_draws=12_000,
        seed=seed,
        configuration="informed",
        of_labels="paper",
    )
    assert_exact(sampled, exact, level=LEVEL, most=0.02)
