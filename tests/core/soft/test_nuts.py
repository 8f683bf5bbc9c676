"""NUTS against targets that are known, and (optional group) against NumPyro on a fixed tree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.backend.jit import inlined, kernel
from hamiltree.core.soft.adaptation import (
    AVERAGER,
    LOG_STEP,
    LOG_STEP_BAR,
    restart_averager,
    update_averager,
)
from hamiltree.core.soft.data import CLASSES, COLLAPSED
from hamiltree.core.soft.nuts import first_step_size, make_nuts_work, nuts_transition
from hamiltree.core.soft.target import constrain, dimension, nuts_on_tree, unconstrain
from hamiltree.core.soft.transforms import simplex, simplex_gradient

from ...reference.stats import compare_means, kolmogorov, standard_error
from ...support.core_trees import random_model, random_tree

LEVEL = 1e-4


@inlined
def adapt_and_run(target, args, q, n_warmup, out, accept, work, averager, inverse_mass, rng):
    """Dual averaging, then frozen; ``out`` gets one position per row."""
    restart_averager(averager, first_step_size(target, args, q, inverse_mass, work, rng))
    for _ in range(n_warmup):
        step = math.exp(averager[LOG_STEP])
        info = nuts_transition(target, args, q, step, inverse_mass, 10, work, rng)
        update_averager(averager, info.accept_stat, 0.8)
    step = math.exp(averager[LOG_STEP_BAR])
    for t in range(out.shape[0]):
        info = nuts_transition(target, args, q, step, inverse_mass, 10, work, rng)
        accept[t] = info.accept_stat
        for j in range(q.shape[0]):
            out[t, j] = q[j]


@kernel
def normal_density(q, grad, args):
    precision = args[0]
    total = 0.0
    for i in range(q.shape[0]):
        grad[i] = 0.0
        for j in range(q.shape[0]):
            grad[i] -= precision[i, j] * q[j]
        total += 0.5 * grad[i] * q[i]
    return total


@kernel
def dirichlet_density(q, grad, args):
    """Dirichlet(alpha) through stick breaking."""
    alpha, weights, slope = args
    total = simplex(q, weights)
    for k in range(alpha.shape[0]):
        total += (alpha[k] - 1.0) * math.log(weights[k])
        slope[k] = (alpha[k] - 1.0) / weights[k]
    simplex_gradient(q, weights, slope, grad)
    return total


@kernel
def inverse_gamma_density(q, grad, args):
    """Inverse gamma through its logarithm."""
    shape, scale = args[0][0], args[0][1]
    x = math.exp(q[0])
    grad[0] = -shape + scale / x
    return -shape * q[0] - scale / x


@kernel
def run_normal(args, q, n_warmup, out, accept, work, averager, mass, rng):
    adapt_and_run(normal_density, args, q, n_warmup, out, accept, work, averager, mass, rng)


@kernel
def run_dirichlet(args, q, n_warmup, out, accept, work, averager, mass, rng):
    adapt_and_run(dirichlet_density, args, q, n_warmup, out, accept, work, averager, mass, rng)


@kernel
def run_inverse_gamma(args, q, n_warmup, out, accept, work, averager, mass, rng):
    adapt_and_run(inverse_gamma_density, args, q, n_warmup, out, accept, work, averager, mass, rng)


def chains(run, args, dimension, rng, n=20_000, mass=None):
    """[4, n, dimension] positions and the mean acceptance."""
    mass = np.ones(dimension) if mass is None else mass
    out, accept = np.zeros((4, n, dimension)), np.zeros((4, n))
    for c in range(4):
        work = make_nuts_work(dimension, 10)
        q = rng.normal(size=dimension)
        run(args, q, 1000, out[c], accept[c], work, np.zeros(AVERAGER), mass, rng)
    return out, accept.mean()


def test_correlated_normal(rng):
    covariance = np.array([[1.0, 0.95, 0.0], [0.95, 1.0, 0.0], [0.0, 0.0, 25.0]])
    precision = np.linalg.inv(covariance)
    for mass in (None, np.array([1.0, 0.3, 20.0])):  # any mass must give the same distribution
        draws, accept = chains(run_normal, (precision,), 3, rng, mass=mass)
        assert accept == pytest.approx(0.8, abs=0.1)
        functionals = {f"x{i}": draws[:, :, i] for i in range(3)}
        exact = dict.fromkeys(functionals, 0.0)
        for i, j in ((0, 0), (0, 1), (1, 1), (2, 2), (0, 2)):
            functionals[f"x{i}x{j}"] = draws[:, :, i] * draws[:, :, j]
            exact[f"x{i}x{j}"] = covariance[i, j]
        test = compare_means(functionals, exact, level=LEVEL)
        assert test.ok, test
        for i in range(3):
            sd = covariance[i, i] ** 0.5
            assert kolmogorov(draws[:, :, i], stats.norm(scale=sd).cdf, level=LEVEL).ok


def test_dirichlet_through_stick_breaking(rng):
    alpha = np.array([0.8, 1.0, 2.5, 4.0])
    draws, _ = chains(run_dirichlet, (alpha, np.zeros(4), np.zeros(4)), 3, rng)
    weights = np.zeros((*draws.shape[:2], 4))
    for c in range(draws.shape[0]):
        for t in range(draws.shape[1]):
            simplex(draws[c, t], weights[c, t])
    for k in range(4):
        marginal = stats.beta(alpha[k], alpha.sum() - alpha[k])
        assert kolmogorov(weights[:, :, k], marginal.cdf, level=LEVEL).ok


def test_inverse_gamma_through_log(rng):
    draws, _ = chains(run_inverse_gamma, (np.array([1.5, 1.5]),), 1, rng)
    sigma = np.exp(draws[:, :, 0])
    assert kolmogorov(sigma, stats.invgamma(1.5, scale=1.5).cdf, level=LEVEL).ok


def test_depth_limit_and_divergence(rng):
    """Depth 0 leaves q alone; a hopeless step diverges and leaves q alone."""
    tree = random_tree(rng, 2, 2, oblique=False)
    model, work, _, _ = random_model(rng, CLASSES, tree, n_rows=20, n_features=2, h=0.1)
    u = np.zeros(2)
    unconstrain(model, tree, u)
    nuts_work = make_nuts_work(2, 10)
    before = u.copy()
    info, _ = nuts_on_tree(model, tree, work, u, 0.1, np.ones(2), 0, nuts_work, rng)
    assert info.depth == 0
    np.testing.assert_array_equal(u, before)
    info, _ = nuts_on_tree(model, tree, work, u, 1e9, np.ones(2), 10, nuts_work, rng)
    assert info.divergent
    np.testing.assert_array_equal(u, before)


@pytest.mark.numpyro
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", [CLASSES, COLLAPSED])
def test_same_moments_as_numpyro_on_a_fixed_tree(family, oblique, rng):
    """Two NUTS implementations on one density, written twice (ours, and in JAX below)."""
    jax = pytest.importorskip("jax")
    numpyro = pytest.importorskip("numpyro")
    jax.config.update("jax_enable_x64", True)
    tree = random_tree(rng, 3, 2, oblique)
    model, work, X, y = random_model(rng, family, tree, n_rows=30, n_features=3, h=0.1)
    n = dimension(model, tree)
    start = np.zeros(n)
    unconstrain(model, tree, start)

    ours = np.zeros((4, 6000, n))
    for c in range(4):
        u, nuts_work, step = start.copy(), make_nuts_work(n, 10), 0.25
        for t in range(-200, 6000):
            nuts_on_tree(model, tree, work, u, step, np.ones(n), 10, nuts_work, rng)
            if t >= 0:
                ours[c, t] = u

    theirs = numpyro_draws(jax, numpyro, tree, X, y, family, start)
    for j in range(n):
        error = np.hypot(standard_error(ours[:, :, j]), standard_error(theirs[:, :, j]))
        assert abs(ours[:, :, j].mean() - theirs[:, :, j].mean()) < 4.5 * error
        squares = np.hypot(standard_error(ours[:, :, j] ** 2), standard_error(theirs[:, :, j] ** 2))
        assert abs((ours[:, :, j] ** 2).mean() - (theirs[:, :, j] ** 2).mean()) < 4.5 * squares
    constrain(model, start, tree)


def numpyro_draws(jax, numpyro, tree, X, y, family, start):
    """The same density in JAX from the paper's formulas, sampled by NumPyro's NUTS."""
    import jax.numpy as jnp
    from jax.scipy import special
    from numpyro.distributions.transforms import StickBreakingTransform

    from ...support.core_trees import PRIOR

    n_nodes = int(tree.n_nodes[0])
    size = tree.size[:n_nodes].tolist()
    feature = tree.feature[:n_nodes].tolist()
    p = X.shape[1]
    oblique = tree.weights.shape[1] > 0
    width = p if oblique else 1
    stick = StickBreakingTransform()
    inner = [i for i in range(n_nodes) if size[i] > 1]
    h = 0.1

    def potential(u):
        total, psi = 0.0, {}
        for k, i in enumerate(inner):
            tau = jax.nn.sigmoid(u[k * width])
            total += jnp.log(tau) + jnp.log1p(-tau)
            total += (PRIOR.tau[0] - 1) * jnp.log(tau) + (PRIOR.tau[1] - 1) * jnp.log1p(-tau)
            if oblique:
                raw = u[k * width + 1 : (k + 1) * width]
                weights = stick(raw)
                total += stick.log_abs_det_jacobian(raw, weights)
                total += (PRIOR.weight - 1) * jnp.log(weights).sum()
                x = X @ weights
            else:
                x = X[:, feature[i]]
            psi[i] = jax.nn.sigmoid((x - tau) / h)

        phi = []

        def walk(i, reach):
            if size[i] == 1:
                phi.append(reach)
                return i + 1
            right = walk(i + 1, reach * (1 - psi[i]))
            return walk(right, reach * psi[i])

        walk(0, jnp.ones(X.shape[0]))
        Phi = jnp.stack(phi, axis=1)
        if family == CLASSES:
            counts = Phi.T @ jnp.eye(3)[y]
            a = 0.7
            total += (special.gammaln(counts + a)).sum()
            total -= special.gammaln(counts.sum(axis=1) + 3 * a).sum()
        else:
            sigma = jnp.exp(u[-1])
            total += u[-1] - (PRIOR.sigma[0] + 1) * u[-1] - PRIOR.sigma[1] / sigma
            cov = sigma**2 * jnp.eye(X.shape[0]) + PRIOR.mu[1] ** 2 * Phi @ Phi.T
            total += jax.scipy.stats.multivariate_normal.logpdf(
                y, PRIOR.mu[0] * jnp.ones(X.shape[0]), cov
            )
        return -total

    kernel_ = numpyro.infer.NUTS(potential_fn=potential)
    mcmc = numpyro.infer.MCMC(
        kernel_,
        num_warmup=1000,
        num_samples=6000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(0), init_params=jnp.tile(jnp.asarray(start), (4, 1)))
    return np.asarray(mcmc.get_samples(group_by_chain=True))
