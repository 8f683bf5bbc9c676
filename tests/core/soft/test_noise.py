"""sigma by slice sampling and leaf means by their conditional, each against the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_trapezoid

from hamiltree.core.soft.collapsed import draw_means
from hamiltree.core.soft.data import COLLAPSED, MEANS, VALUE
from hamiltree.core.soft.noise import update_noise
from hamiltree.core.soft.target import (
    LARGEST_LOG_SIGMA,
    constrain,
    dimension,
    evaluate,
    likelihood,
    likelihood_as,
    log_posterior_as,
    unconstrain,
)

from ...reference.model import leaves, log_likelihood_collapsed, log_prior_sigma, phi
from ...support.core_trees import PRIOR, random_model, random_tree, to_reference

LEVEL = 1e-4
N_ROWS = 12
POWERS = [1.0, 0.3, 2.0, 0.0]


def setting(rng, h, power, n_splits=3, oblique=False):
    tree = random_tree(rng, 3, n_splits, oblique)
    model, work, X, y = random_model(
        rng, COLLAPSED, tree, n_rows=N_ROWS, n_features=3, h=h, power=power
    )
    return tree, model, work, X, y


def conditional_of_log_sigma(tree, X, y, h, power):
    """Distribution function of log sigma given the tree."""
    reference = to_reference(tree)

    def log_like(s):
        return power * log_likelihood_collapsed(reference, X, y, s, h, PRIOR) if power else 0.0

    return law_of_log_sigma(log_like)


def law_of_log_sigma(log_like):
    """Distribution function of log sigma by the trapezoid rule."""
    log_sigma = np.linspace(-5.0, 9.0, 1000)
    log_density = [
        log_prior_sigma(s, PRIOR) + np.log(s) + log_like(s)  # the density is by log sigma
        for s in np.exp(log_sigma)
    ]
    density = np.exp(np.array(log_density) - np.max(log_density))
    below = cumulative_trapezoid(density, log_sigma, initial=0.0)
    assert density[0] < 1e-9
    assert density[-1] < 1e-4
    return lambda sigma: np.interp(np.log(sigma), log_sigma, below / below[-1])


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("h", [0.1, 0.0])
@pytest.mark.parametrize("oblique", [False, True])
def test_sigma_has_its_conditional(oblique, h, power, rng):
    """From a start far off, by many updates; what they return is the log-likelihood there."""
    tree, model, work, X, y = setting(rng, h, power, oblique=oblique)
    cdf = conditional_of_log_sigma(tree, X, y, h, power)
    reference = to_reference(tree)
    tree.sigma[0] = 20.0
    kept = []
    for k in range(2500):
        log_like = update_noise(model, tree, work, rng)
        if k % 50 == 0:
            sigma = float(tree.sigma[0])
            expected = log_likelihood_collapsed(reference, X, y, sigma, h, PRIOR)
            assert log_like == pytest.approx(expected, rel=1e-9)
        if k >= 100:
            kept.append(float(tree.sigma[0]))
    # nearly independent already (the slice is one interval); every fourth to be sure
    assert stats.kstest(cdf(np.array(kept[::4])), "uniform").pvalue > LEVEL


def test_one_step_leaves_the_conditional_as_it_is(rng):
    """From exact draws, one update; a wrong slice moves them, however well it would mix."""
    tree, model, work, X, y = setting(rng, 0.1, 1.0)
    cdf = conditional_of_log_sigma(tree, X, y, 0.1, 1.0)
    grid = np.exp(np.linspace(-5.0, 9.0, 20_000))
    after = []
    for u in rng.random(1500):
        tree.sigma[0] = grid[np.searchsorted(cdf(grid), u)]
        update_noise(model, tree, work, rng)
        after.append(float(tree.sigma[0]))
    assert stats.kstest(cdf(np.array(after)), "uniform").pvalue > LEVEL


def test_a_lone_root_and_far_starts(rng):
    """A width of 1 in log sigma must step out a long way, and come back."""
    tree, model, work, _, _ = setting(rng, 0.1, 1.0, n_splits=0)
    for start in (1e-12, 1e12):
        tree.sigma[0] = start
        for _ in range(10):
            update_noise(model, tree, work, rng)
        assert 0.05 < tree.sigma[0] < 50


@pytest.mark.parametrize("h", [0.1, 0.0])
def test_means_have_their_conditional(h, rng):
    """Normal given tree and sigma: each mean, and the correlations through soft splits."""
    tree, model, work, X, y = setting(rng, h, 1.0)
    weights = phi(to_reference(tree), X, h)
    sigma, (mean, sd) = float(tree.sigma[0]), PRIOR.mu
    precision = weights.T @ weights / sigma**2 + np.eye(weights.shape[1]) / sd**2
    covariance = np.linalg.inv(precision)
    centre = covariance @ (weights.T @ y / sigma**2 + mean / sd**2)
    evaluate(model, COLLAPSED, tree, work, VALUE)
    out = np.zeros((2000, weights.shape[1]))
    for row in out:
        draw_means(model.leaf_prior, work, len(row), model.power[0], row, rng)
    standard = (out - centre) @ np.linalg.cholesky(precision)
    assert stats.kstest(standard.ravel(), "norm").pvalue > LEVEL
    correlation = np.corrcoef(standard.T)[np.triu_indices(weights.shape[1], 1)]
    assert np.abs(correlation).max() < stats.norm.isf(LEVEL / 2 / correlation.size) / np.sqrt(2000)


def test_means_without_the_likelihood_have_their_prior(rng):
    tree, model, work, _, _ = setting(rng, 0.1, 0.0)
    assert likelihood(model, tree, work) == 0.0
    evaluate(model, COLLAPSED, tree, work, VALUE)
    out = np.zeros((500, len(leaves(to_reference(tree)))))
    for row in out:
        draw_means(model.leaf_prior, work, len(row), model.power[0], row, rng)
    assert stats.kstest(out.ravel(), stats.norm(*PRIOR.mu).cdf).pvalue > LEVEL


# ------------------------------------------------------------------ explicit means, integrated out


def explicit_setting(rng, h, power):
    """With room for both families, as a sampler has."""
    tree, model, work, X, y = setting(rng, h, power)
    return tree, model._replace(family=MEANS), work, X, y


def law_of_means(weights, y, sigma, power):
    """Log of the integral of prior times likelihood^power over the means; their mean, precision.

    The integrand is a normal density but for its height, so its top and its curvature say it all.
    """
    mean, sd = PRIOR.mu
    precision = power * weights.T @ weights / sigma**2 + np.eye(weights.shape[1]) / sd**2
    top = np.linalg.solve(precision, power * weights.T @ y / sigma**2 + mean / sd**2)
    height = power * stats.norm.logpdf(y, weights @ top, sigma).sum()
    height += stats.norm.logpdf(top, mean, sd).sum()
    log_det = np.linalg.slogdet(precision / (2.0 * np.pi))[1]
    return height - 0.5 * log_det, top, precision


@pytest.mark.parametrize("power", [1.0, 0.3, 2.0])
@pytest.mark.parametrize("h", [0.1, 0.0])
def test_the_power_is_inside_the_integral_over_the_means(h, power, rng):
    tree, model, work, X, y = explicit_setting(rng, h, power)
    sigma = float(tree.sigma[0])
    expected, top, precision = law_of_means(phi(to_reference(tree), X, h), y, sigma, power)
    log_like = likelihood_as(model, COLLAPSED, tree, work)
    assert log_like == pytest.approx(expected, rel=1e-9)
    assert tree.sigma[0] == sigma
    with_prior = log_posterior_as(model, COLLAPSED, tree, log_like)
    assert with_prior - log_posterior_as(model, COLLAPSED, tree, 0.0) == pytest.approx(log_like)
    out = np.zeros((2000, len(top)))
    for row in out:
        draw_means(model.leaf_prior, work, len(row), power, row, rng)
    standard = (out - top) @ np.linalg.cholesky(precision)
    assert stats.kstest(standard.ravel(), "norm").pvalue > LEVEL


@pytest.mark.parametrize("power", [1.0, 0.3, 0.0])
def test_sigma_has_its_conditional_with_explicit_means(power, rng):
    tree, model, work, X, y = explicit_setting(rng, 0.1, power)
    weights = phi(to_reference(tree), X, 0.1)
    cdf = law_of_log_sigma(lambda s: law_of_means(weights, y, s, power)[0] if power else 0.0)
    kept = []
    for _ in range(2500):
        update_noise(model, tree, work, rng)
        kept.append(float(tree.sigma[0]))
    assert stats.kstest(cdf(np.array(kept[100::4])), "uniform").pvalue > LEVEL


@pytest.mark.parametrize("h", [0.1, 0.0])
def test_no_density_beyond_the_range_of_sigma(h, rng):
    """The Jacobian of log sigma grows for ever: a trajectory that went there was once accepted."""
    tree, model, _, _, _ = setting(rng, h, 1.0)
    u = np.zeros(dimension(model, tree))
    unconstrain(model, tree, u)
    for log_sigma in (LARGEST_LOG_SIGMA, -LARGEST_LOG_SIGMA):
        u[-1] = log_sigma
        assert np.isfinite(constrain(model, u, tree))
        u[-1] = 1e5 * log_sigma
        assert constrain(model, u, tree) == -np.inf
        assert tree.sigma[0] > 0.0
        assert np.isfinite(tree.sigma[0])
