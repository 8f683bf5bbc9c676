"""The likelihood that is normalised over labels, at a given h: whole chains against quadrature.

With a learned h: ``test_learned_posterior.py``. The single steps: ``test_leaf_probabilities.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hamiltree.core.scan.data import is_soft
from hamiltree.core.soft import kept_routing
from hamiltree.methods import HMCDF
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from ..reference.exact_learned import label_posterior
from ..reference.model import Toy, shared_values, two_classes
from ..reference.stats import compare_means, total_variation
from .battery import run_toy
from .prior_battery import OPTIONS, assert_prior, toy

LEVEL = 1e-5  # of a false alarm in each test of each quantity


@dataclass(frozen=True)
class Case:
    method: str
    h: float | tuple[float, float]
    configuration: str = "informed"
    power: float = 1.0
    shared: bool = False
    """A toy with shared values, whose columns are scanned softly."""
    most: int = 3
    short: bool = True

    def __str__(self) -> str:
        parts = (self.method, f"h={self.h}", self.configuration, f"power={self.power}")
        return "-".join([*parts, *(["shared"] if self.shared else [])]).replace(" ", "")

    @property
    def toy(self) -> Toy:
        if self.shared:
            data = shared_values()
        else:  # fewer rows take fewer nodes for each leaf
            data, keep = two_classes(), [0, 2, 3, 5, 6, 8, 9, 11]
            data = replace(data, X=data.X[keep], y=data.y[keep])
        return replace(data, prior=replace(data.prior, max_leaves=self.most))


CASES = [
    Case("hmc-df", 0.1),
    Case("hmc-df", 0.1, shared=True),
    Case("hmc-df", (0.08, 0.2)),
    Case("hmc-dfi", 0.1, most=2),
    Case("hmc-dfi", 0.1, shared=True, most=2, short=False),
    Case("hmc-df", 0.1, power=0.5),
    Case("hmc-df", 0.1, power=2.0, most=2, short=False),
    Case("hmc-df", (0.08, 0.2), power=0.5, most=2, short=False),
    Case("hmc-dfi", 0.1, power=0.5, most=2, short=False),
    Case("hmc-df", 0.1, "composed"),
    Case("hmc-dfi", 0.1, "composed", most=2, short=False),
    Case("hmc-df", 0.1, "composed", power=0.5, most=2, short=False),
]


def marked(cases):
    marks = {True: [], False: [pytest.mark.long]}
    return [pytest.param(case, id=str(case), marks=marks[case.short]) for case in cases]


def compared(case: Case, seed: int, **options: object) -> None:
    exact = label_posterior(
        case.toy,
        method=case.method,
        h=case.h,
        order=22 if case.method == "hmc-dfi" else 26,
        power=case.power,
    )
    assert exact.error < 1e-3
    sampled = run_toy(
        case.toy,
        method=case.method,
        h=case.h,
        n_draws=6_000,
        seed=seed,
        configuration=case.configuration,
        likelihood_power=case.power,
        **options,
    )
    distance = total_variation(sampled.shapes, exact.shapes, level=LEVEL)
    drawn = {key: value for key, value in sampled.functionals.items() if key in exact.means}
    assert set(drawn) == set(exact.means)
    means = compare_means(drawn, exact.means, level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.ok, distance
    assert means.ok, means


@pytest.mark.parametrize("case", marked(CASES))
def test_posterior_by_quadrature(case, seed):
    compared(case, seed)


OF_CHANGED = [
    Case("hmc-df", 0.1),
    Case("hmc-df", 0.1, power=0.5),
    Case("hmc-dfi", 0.1, most=2),
    Case("hmc-df", (0.08, 0.2), shared=True, short=False),
]


TURNS = ("grow", "change", "grow", "insert", "swap", "grow", "change", "rotate", "grow", "rare")
"""Between one leaf and two a tree is evaluated as a whole, by what changed otherwise."""


@pytest.mark.parametrize("case", marked(OF_CHANGED))
def test_posterior_by_what_changed_alone(case, seed, monkeypatch):
    """From two leaves on, in an order in which proposals of both kinds take turns."""
    monkeypatch.setattr(kept_routing, "FEWEST_LEAVES", 2)
    compared(case, seed, informed_moves=TURNS)


@pytest.mark.parametrize("h", [0.1, pytest.param((0.08, 0.2), marks=pytest.mark.long)])
def test_with_replicas(h, seed):
    """Chains at other powers pass on tree, h and leaf probabilities."""
    compared(Case("hmc-df", h), seed, replicas=3)


def test_shared_values_are_scanned_softly():
    """Otherwise no whole chain at h = 0.1 would go through the soft counts of the scans."""
    for toy_of, expected in ((shared_values, True), (two_classes, False)):
        data = toy_of()
        configuration = HMCDF().configured(h=0.1, max_leaves=4)
        sampler = RJHMC.build(Problem(np.ascontiguousarray(data.X.T), data.y, 2), configuration, 0)
        scan = sampler.start(np.random.default_rng(0)).state.proposals.scan
        assert [bool(is_soft(scan, f)) for f in (0, 1)] == [expected] * 2


@pytest.mark.parametrize("method", ["hmc-df", pytest.param("hmc-dfi", marks=pytest.mark.long)])
def test_prior_is_recovered(method, seed):
    sampled = run_toy(
        toy(3, 1),
        method=method,
        h=0.1,
        n_draws=2_000,
        seed=seed,
        configuration="informed",
        likelihood=False,
        **OPTIONS,
    )
    assert_prior(sampled, method=method, n_classes=3, min_leaves=1, level=LEVEL)
