"""h="learn": whole chains against the prior and quadrature (steps: ``test_learned_h.py``)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ..reference.exact import Exact
from ..reference.exact_learned import h_prior, learned_posterior
from ..reference.model import TOYS, Toy
from ..reference.stats import kolmogorov
from .battery import assert_exact, run_toy
from .prior_battery import OPTIONS, assert_prior, toy

LEVEL = 1e-5  # of a false alarm in each test of each quantity
PRIOR_OF_H = (0.12, 0.7)  # wide enough to see the data in it, and within reach of quadrature

KINDS = {
    "one": {"method": "hmc-df"},
    "by-feature": {"method": "hmc-df", "h_by_feature": True},
    "oblique": {"method": "hmc-dfi"},
    "explicit": {"method": "hmc-df", "leaf_means": "explicit"},
}


def cases(names):
    """All of them; those of a short run are the ones that have the most in them."""
    for name in names:
        for kind in KINDS:
            if name in (3, "two-classes") and kind == "explicit":
                continue  # classification has no means to be explicit about
            short = kind == "by-feature" or (kind == "one" and isinstance(name, str))
            yield pytest.param(name, kind, marks=[] if short else [pytest.mark.long])


@pytest.mark.parametrize(("n_classes", "kind"), list(cases([3, 0])))
def test_prior_is_recovered(n_classes, kind, seed):
    """Everything that a fixed h has, and h; an unused column's h as well as a used one's."""
    options = KINDS[kind]
    sampled = run_toy(
        toy(n_classes, 1),
        h="learn",
        h_prior=PRIOR_OF_H,
        n_draws=2_000,
        seed=seed,
        configuration="informed",
        likelihood=False,
        **options,
        **OPTIONS,
    )
    assert_prior(sampled, method=options["method"], n_classes=n_classes, min_leaves=1, level=LEVEL)
    draws = sampled.draws
    assert draws.h.shape[1] == (3 if kind == "by-feature" else 1)
    for column in draws.h.T:
        log_h = np.log(column).reshape(draws.n_chains, draws.n_draws)
        assert kolmogorov(log_h, h_prior(*PRIOR_OF_H).cdf, level=LEVEL).ok


def small(name: str, kind: str) -> Toy:
    """Up to two splits of one feature with one h, and one split where there is more to sum over."""
    data = TOYS[name]()
    if name == "two-classes":  # fewer rows take fewer nodes for each leaf
        keep = [0, 2, 3, 5, 6, 8, 9, 11]
        data = replace(data, X=data.X[keep], y=data.y[keep])
    most = 3 if kind in ("one", "explicit") else 2
    return replace(data, prior=replace(data.prior, max_leaves=most))


@cache
def exact(name: str, kind: str) -> Exact:
    order, h_nodes = {"one": (26, 12), "by-feature": (34, 14), "oblique": (22, 14)}[kind]
    return learned_posterior(
        small(name, kind),
        method=KINDS[kind]["method"],
        prior_of_h=PRIOR_OF_H,
        by_feature=kind == "by-feature",
        order=order,
        h_nodes=h_nodes,
    )


@pytest.mark.parametrize(("name", "kind"), list(cases(["two-classes", "regression"])))
def test_posterior_by_quadrature(name, kind, seed):
    truth = exact(name, "one" if kind == "explicit" else kind)
    assert truth.error < 1e-3
    sampled = run_toy(
        small(name, kind),
        h="learn",
        h_prior=PRIOR_OF_H,
        n_draws=5_000,
        seed=seed,
        configuration="informed",
        **KINDS[kind],
    )
    drawn = {key: value for key, value in sampled.functionals.items() if key in truth.means}
    assert set(drawn) == set(truth.means)
    assert_exact(replace(sampled, functionals=drawn), truth, level=LEVEL, most=0.02)
