"""Each informed move beside the sampler that draws its jumps from the prior, which is known right.

Every iteration makes that sampler's steps and then the one informed move, several times, so that a
wrong ratio of it would pull the draws away. Two judges: the exact posterior by quadrature; and the
prior, with the likelihood switched off in the target but not in the scans, so that proposals are
as lopsided as ever while the target is known for trees of any shape.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hamiltree.core.moves.propose import NAMES
from hamiltree.samplers import rjhmc_state

from ..reference.exact import exact_toy
from ..reference.model import TOYS
from ..support.turns import in_turns
from .battery import assert_exact, run_toy
from .prior_battery import OPTIONS, assert_prior, toy

LEVEL = 1e-5  # of a false alarm in each test of each quantity
TIMES = {"regrow": 2}  # it costs as much as several others
MOVES = ("grow", "insert", "change", "regrow", "transpose", "swap", "relocate", "rotate")


def assert_move_is_exact(toy_name, method, h, move, seed):
    """The exact posterior of a toy, where each iteration makes this informed move several times."""
    sampled = run_toy(
        TOYS[toy_name](),
        method=method,
        h=h,
        n_draws=8_000,
        seed=seed,
        of_labels="paper",
        informed_moves=(move,) * TIMES.get(move, 6),
    )
    assert_used(sampled, move)
    assert_exact(sampled, exact_toy(toy_name, method, h), level=LEVEL)


def assert_used(sampled, move):
    """Often enough accepted for a wrong ratio to matter."""
    for name in {"grow": ("grow", "prune"), "insert": ("insert", "delete")}.get(move, (move,)):
        accepted, _ = sampled.acceptance[name]
        assert accepted.sum() >= 500, (name, accepted)


@pytest.mark.parametrize(
    ("toy_name", "method", "h", "move"),
    in_turns(list(product(TOYS, ("hmc-df", "hmc-dfi"), (0.1, 0.0))), MOVES, period=6),
)
def test_posterior(toy_name, method, h, move, seed):
    assert_move_is_exact(toy_name, method, h, move, seed)


@pytest.fixture
def scans_see_the_data(monkeypatch):
    """Scans at full power, whatever the power of the likelihood in the target."""
    made = rjhmc_state.make_scan

    def at_full_power(data, model, *sizes, coupled):
        return made(data, model._replace(power=np.ones(1)), *sizes, coupled=coupled)

    monkeypatch.setattr(rjhmc_state, "make_scan", at_full_power)


@pytest.mark.usefixtures("scans_see_the_data")
@pytest.mark.parametrize(
    ("n_classes", "method", "h", "move"),
    in_turns(list(product((3, 0), ("hmc-df", "hmc-dfi"), (0.1, 0.0))), MOVES, period=4),
)
def test_prior_under_informed_proposals(n_classes, method, h, move, seed):
    sampled = run_toy(
        toy(n_classes, 1),
        method=method,
        h=h,
        n_draws=5_000,
        seed=seed,
        configuration="composed",
        likelihood=False,
        informed_moves=(move,) * TIMES.get(move, 6),
        **OPTIONS,
    )
    assert_used(sampled, move)
    assert_prior(sampled, method=method, n_classes=n_classes, min_leaves=1, level=LEVEL)


def test_every_informed_move_is_here():
    pairs = {"prune": "grow", "delete": "insert"}
    assert {pairs.get(name, name) for name in NAMES} == set(MOVES)
