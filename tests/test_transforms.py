"""Transforms: inverse, log Jacobian and gradient against numerical ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from hamiltree.core.transforms import (
    logit,
    simplex,
    simplex_gradient,
    simplex_inverse,
    unit_interval,
)


def weights_of(u: np.ndarray) -> np.ndarray:
    weights = np.zeros(u.size + 1)
    simplex(u, weights)
    return weights


@pytest.mark.parametrize("u", [-50.0, -3.0, 0.0, 0.7, 30.0])
def test_unit_interval(u):
    x, log_jacobian = unit_interval(u)
    assert 0 < x < 1
    assert log_jacobian == pytest.approx(-np.logaddexp(0, -u) - np.logaddexp(0, u), rel=1e-12)
    if abs(u) < 10:
        assert logit(x) == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("p", [2, 3, 7])
def test_simplex_jacobian_is_the_determinant(p, rng):
    for _ in range(5):
        u = rng.normal(size=p - 1)
        weights = np.zeros(p)
        log_jacobian = simplex(u, weights)
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
        numeric = np.array(
            [approx_fprime(u, lambda v, k=k: weights_of(v)[k], 1e-7) for k in range(p - 1)]
        )
        assert log_jacobian == pytest.approx(np.linalg.slogdet(numeric)[1], abs=1e-5)
        back = np.zeros(p - 1)
        simplex_inverse(weights, back)
        np.testing.assert_allclose(back, u, atol=1e-11)


def test_simplex_is_uniform_at_zero():
    np.testing.assert_allclose(weights_of(np.zeros(4)), np.full(5, 0.2))


@pytest.mark.parametrize("p", [2, 3, 7])
def test_simplex_gradient(p, rng):
    slope = rng.normal(size=p)
    for _ in range(5):
        u = rng.normal(size=p - 1)

        def objective(v):
            weights = np.zeros(p)
            return simplex(v, weights) + slope @ weights

        grad = np.zeros(p - 1)
        simplex_gradient(u, weights_of(u), slope, grad)
        numeric = [(objective(u + e) - objective(u - e)) / 2e-6 for e in 1e-6 * np.eye(p - 1)]
        np.testing.assert_allclose(grad, numeric, rtol=1e-6, atol=1e-7)


def test_extreme_coordinates_stay_inside():
    for u in (np.full(4, 700.0), np.full(4, -700.0), np.array([700.0, -700.0, 700.0, -700.0])):
        weights = weights_of(u)
        assert (weights > 0).all()
        assert np.isfinite(weights).all()
