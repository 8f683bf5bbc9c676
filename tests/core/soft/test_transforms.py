"""Transforms: inverse, log Jacobian and gradient against numerical ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from hamiltree.core.soft.transforms import (
    balances,
    balances_gradient,
    balances_inverse,
    logit,
    simplex,
    simplex_gradient,
    simplex_inverse,
    unit_interval,
)

FORTH = {"sticks": simplex, "balances": balances}
BACK = {"sticks": simplex_inverse, "balances": balances_inverse}


def weights_of(u: np.ndarray, kind: str = "sticks") -> np.ndarray:
    weights = np.zeros(u.size + 1)
    FORTH[kind](u, weights)
    return weights


@pytest.mark.parametrize("u", [-50.0, -3.0, 0.0, 0.7, 30.0])
def test_unit_interval(u):
    x, log_jacobian = unit_interval(u)
    assert 0 < x < 1
    assert log_jacobian == pytest.approx(-np.logaddexp(0, -u) - np.logaddexp(0, u), rel=1e-12)
    if abs(u) < 10:
        assert logit(x) == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("kind", ["sticks", "balances"])
@pytest.mark.parametrize("p", [2, 3, 7])
def test_weights_have_the_jacobian_of_their_map(kind, p, rng):
    for _ in range(5):
        u = rng.normal(size=p - 1)
        weights = np.zeros(p)
        log_jacobian = FORTH[kind](u, weights)
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
        numeric = np.array(
            [approx_fprime(u, lambda v, k=k: weights_of(v, kind)[k], 1e-7) for k in range(p - 1)]
        )
        assert log_jacobian == pytest.approx(np.linalg.slogdet(numeric)[1], abs=1e-5)
        back = np.zeros(p - 1)
        BACK[kind](weights, back)
        np.testing.assert_allclose(back, u, atol=1e-11)


def test_balances_keep_distances(rng):
    u, v = rng.normal(size=(2, 4))
    logs = [np.log(weights_of(x, "balances")) for x in (u, v)]
    centred = [x - x.mean() for x in logs]
    assert np.linalg.norm(centred[0] - centred[1]) == pytest.approx(np.linalg.norm(u - v))


@pytest.mark.parametrize("kind", ["sticks", "balances"])
def test_weights_are_even_at_zero(kind):
    np.testing.assert_allclose(weights_of(np.zeros(4), kind), np.full(5, 0.2))


@pytest.mark.parametrize("kind", ["sticks", "balances"])
@pytest.mark.parametrize("p", [2, 3, 7])
def test_gradient_through_weights(kind, p, rng):
    slope = rng.normal(size=p)
    for _ in range(5):
        u = rng.normal(size=p - 1)

        def objective(v):
            weights = np.zeros(p)
            return FORTH[kind](v, weights) + slope @ weights

        grad = np.zeros(p - 1)
        if kind == "sticks":
            simplex_gradient(u, weights_of(u), slope, grad)
        else:
            balances_gradient(weights_of(u, kind), slope, grad)
        numeric = [(objective(u + e) - objective(u - e)) / 2e-6 for e in 1e-6 * np.eye(p - 1)]
        np.testing.assert_allclose(grad, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["sticks", "balances"])
def test_extreme_coordinates_stay_inside(kind):
    for u in (np.full(4, 700.0), np.full(4, -700.0), np.array([700.0, -700.0, 700.0, -700.0])):
        weights = weights_of(u, kind)
        assert (weights > 0).all()
        assert np.isfinite(weights).all()
