"""The references judged by their own logic, before they judge the library."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from . import exact, model
from . import stats as check
from .model import Leaf, Prior, Split

CASES = list(itertools.product(model.TOYS, ("hmc-df", "hmc-dfi"), (0.1, 0.0)))


def small_tree(method: str) -> Split:
    rules = (0, 1) if method == "hmc-df" else ((0.3, 0.7), (0.8, 0.2))
    return Split(rules[0], 0.4, Leaf(-0.7), Split(rules[1], 0.6, Leaf(0.3), Leaf(1.1)))


# ------------------------------------------------------------------------------------ model
def test_shapes_and_flat_arrays_agree():
    tree = small_tree("hmc-df")
    assert model.shape(tree) == (5, 1, 3, 1, 1)
    assert list(model.node_depths(model.shape(tree))) == [(0, 5), (1, 1), (1, 3), (2, 1), (2, 1)]
    rebuilt = model.from_flat(
        [5, 1, 3, 1, 1], [0, 1], [0.4, 0.6], np.empty((2, 0)), [-0.7, 0.3, 1.1]
    )
    assert rebuilt == tree
    oblique = small_tree("hmc-dfi")
    weights = [s.rule for s in model.splits(oblique)]
    assert (
        model.from_flat([5, 1, 3, 1, 1], [-1, -1], [0.4, 0.6], weights, [-0.7, 0.3, 1.1]) == oblique
    )


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_routing(method, rng):
    tree, X = small_tree(method), rng.random((50, 2))
    assert np.allclose(model.phi(tree, X, 0.1).sum(axis=1), 1.0, rtol=0, atol=1e-14)
    hard = model.phi(tree, X, 0.0)
    assert set(np.unique(hard)) == {0.0, 1.0}
    # The soft limit: a row further than 40 h from each threshold is within e^-40 of hard.
    assert np.allclose(model.phi(tree, X, 1e-6), hard, rtol=0, atol=1e-12)
    direction = X[:, 0] > 0.4 if method == "hmc-df" else X @ [0.3, 0.7] > 0.4
    assert np.array_equal(hard[:, 0], 1.0 - direction)


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_hard_class_likelihood_is_a_distribution(method, n_classes, rng):
    X, prior = rng.random((6, 2)), Prior(classes=np.arange(1, n_classes + 1) / 2)
    total = sum(
        np.exp(model.log_likelihood_class(small_tree(method), X, y, n_classes, 0.0, prior))
        for y in itertools.product(range(n_classes), repeat=6)
    )
    assert total == pytest.approx(1.0, abs=1e-12)


def test_soft_class_likelihood_is_not(rng):
    """The deficit grows with the splits: rows shared between leaves lose mass in each."""
    X, tree = rng.random((10, 2)), small_tree("hmc-df")
    root, stump = Leaf(), Split(0, 0.4, Leaf(), Leaf())
    totals = [
        sum(
            np.exp(model.log_likelihood_class(t, X, y, 2, 0.1))
            for y in itertools.product((0, 1), repeat=10)
        )
        for t in (root, stump, tree)
    ]
    assert totals[0] == pytest.approx(1.0, abs=1e-12)
    assert 0.9 > totals[1] > totals[2] > 0.2


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_label_likelihood_is_a_distribution_whatever_h_is(method, rng):
    X, tree = rng.random((4, 2)), small_tree(method)
    p = rng.dirichlet(np.ones(3), size=len(model.leaves(tree)))
    for h in (0.0, 0.05, 0.5):
        total = sum(
            np.exp(model.log_likelihood_labels(tree, X, np.array(y), p, h))
            for y in itertools.product(range(3), repeat=4)
        )
        assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("h", [0.0, 0.1])
def test_collapsed_likelihood_integrates_the_explicit_one(h, rng):
    X, y, prior = rng.random((7, 2)), rng.normal(size=7), Prior(mu=(0.4, 1.3))
    # A Gaussian integrand, sd at least .3: the trapezoid rule errs by exp(-2 (pi sd / step)^2).
    grid = np.linspace(-9.6, 10.4, 101)
    total = 0.0
    for a, b in itertools.product(grid, grid):
        tree = Split(0, 0.45, Leaf(a), Leaf(b))
        if abs(a) + abs(b) < 9:  # beyond, below e^-20 of the peak
            total += np.exp(
                model.log_prior_mu(tree, prior) + model.log_likelihood_reg(tree, X, y, 0.8, h)
            )
    step = grid[1] - grid[0]
    collapsed = model.log_likelihood_collapsed(tree, X, y, 0.8, h, prior)
    assert np.log(total * step**2) == pytest.approx(collapsed, abs=1e-8)


def test_topology_prior_is_the_branching_process(rng):
    prior = Prior(alpha_split=0.8, beta_split=0.7, min_leaves=2, max_leaves=4)
    mass = np.array([np.exp(model.log_prior_shape(s, prior)) for s in exact.SHAPES[1:]])
    assert model.log_prior_shape((1,), prior) == -np.inf
    assert 0 < mass.sum() < 1
    index = {s: k for k, s in enumerate(exact.SHAPES[1:])}
    draws = [index[model.shape(model.sample_tree(rng, 2, prior))] for _ in range(4000)]
    assert stats.chisquare(np.bincount(draws, minlength=8), mass / mass.sum() * 4000).pvalue > 1e-4
    # More than three splits have probability about .05 (2 * .05 / 4) (2 * .05 / 9) ... < 1e-4.
    assert sum(
        np.exp(model.log_prior_shape(s, Prior(alpha_split=0.05))) for s in exact.SHAPES
    ) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_priors_of_rules_and_leaves(method, rng):
    prior = Prior(tau=(2.0, 3.0), feature=(1.0, 3.0), weight=2.5, mu=(0.2, 1.5), sigma=(2.0, 0.7))
    tree = small_tree(method)
    beta = stats.beta.logpdf([0.4, 0.6], 2.0, 3.0).sum()
    if method == "hmc-df":
        expected = beta + np.log(1 / 4) + np.log(3 / 4)
    else:
        expected = beta + sum(
            stats.dirichlet.logpdf(w, [2.5, 2.5]) for w in ((0.3, 0.7), (0.8, 0.2))
        )
    assert model.log_prior_rules(tree, 2, prior) == pytest.approx(expected, rel=1e-12)
    sigma = [model.sample_sigma(rng, prior) for _ in range(3000)]
    assert stats.kstest(sigma, stats.invgamma(2.0, scale=0.7).cdf).pvalue > 1e-4
    log_sigma = np.linspace(-6, 14, 2001)
    density = np.exp([model.log_prior_sigma(s, prior) for s in np.exp(log_sigma)])
    assert (density * np.exp(log_sigma)).sum() * 0.01 == pytest.approx(1.0, abs=1e-8)


# ------------------------------------------------------------------------------- quadrature
@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_measure_of_hard_rules(method, rng):
    """Areas of 0/1 patterns against the share of rules drawn from the prior."""
    X = model.regression().X
    rules = exact.make_rules(X, method, 0.0, 0)
    assert rules.weight.sum() == pytest.approx(1.0, abs=1e-12)
    merged: dict[bytes, float] = {}
    for psi, weight in zip(rules.psi, rules.weight, strict=True):
        merged[psi.tobytes()] = merged.get(psi.tobytes(), 0.0) + weight
    n = 20_000
    tau, w = rng.random(n), rng.random(n)
    w = np.round(w) if method == "hmc-df" else w
    drawn = (w[:, None] * X[:, 0] + (1 - w)[:, None] * X[:, 1] > tau[:, None]).astype(float)
    counts = dict.fromkeys(merged, 0)
    for row in drawn:
        counts[row.tobytes()] += 1
    likely = [p for p, weight in merged.items() if weight * n >= 5]
    observed = np.array([counts[p] for p in likely] + [n - sum(counts[p] for p in likely)])
    expected = np.array([merged[p] * n for p in likely])
    expected = np.append(expected, n - expected.sum())
    kept = expected > 1e-6
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > 1e-4
    assert rules.weight @ rules.feature0 == pytest.approx(0.5, abs=1e-12)
    assert rules.weight @ rules.threshold == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "method", "h"),
    [  # soft regression takes 10 s; the tests that use it ask for an error below 1e-3
        pytest.param(*case, marks=[pytest.mark.long] if case[::2] == ("regression", 0.1) else [])
        for case in CASES
    ],
)
def test_quadrature_has_converged(name, method, h):
    result = exact.exact_toy(name, method, h)
    assert result.error < 1e-4
    assert sum(result.shapes.values()) == pytest.approx(1.0, abs=1e-12)
    assert max(result.shapes.values()) < 0.6
    prior = exact.exact_posterior(model.TOYS[name](), method=method, h=h, likelihood=False)
    assert 0.5 * sum(abs(p - prior.shapes[s]) for s, p in result.shapes.items()) > 0.1


@pytest.mark.parametrize(
    ("name", "method", "h"),
    [
        ("two-classes", "hmc-df", 0.1),
        ("three-classes", "hmc-dfi", 0.0),
        ("regression", "hmc-dfi", 0.1),
        ("regression", "hmc-df", 0.0),
    ],
)
def test_quadrature_against_draws_from_the_prior(name, method, h, rng):
    """Importance sampling from the prior with the slow likelihoods of reference.model."""
    toy, n = model.TOYS[name](), 6000
    log_weight, shapes, feature0, sigmas = np.empty(n), [], np.zeros(n), np.empty(n)
    for i in range(n):
        tree = model.sample_tree(rng, 2, toy.prior, method=method)
        shapes.append(model.shape(tree))
        if isinstance(tree, Split):
            feature0[i] = tree.rule == 0 if method == "hmc-df" else tree.rule[0]
        if toy.n_classes:
            log_weight[i] = model.log_likelihood_class(
                tree, toy.X, toy.y, toy.n_classes, h, toy.prior
            )
        else:
            sigmas[i] = model.sample_sigma(rng, toy.prior)
            log_weight[i] = model.log_likelihood_collapsed(
                tree, toy.X, toy.y, sigmas[i], h, toy.prior
            )
    weight = np.exp(log_weight - log_weight.max())
    result = exact.exact_toy(name, method, h)

    def z(f: np.ndarray, target: float) -> float:  # of sum(w f) / sum(w), by the delta method
        return (weight @ (f - target)) / np.sqrt(weight**2 @ (f - target) ** 2)

    def given(values: np.ndarray, condition: np.ndarray, target: float) -> np.ndarray:
        return np.where(condition, values, target)

    has_split = np.array([s != (1,) for s in shapes])
    scores = [z(np.array([s == t for s in shapes], float), p) for t, p in result.shapes.items()]
    target = result.means["root_feature0"]
    scores.append(z(given(feature0, has_split, target), target))
    if not toy.n_classes:
        scores.append(z(np.log(sigmas), result.means["log_sigma"]))
        scores.append(z(sigmas, result.means["sigma"]))
    evidence = np.log(weight.mean()) + log_weight.max()
    scores.append((evidence - result.log_evidence) / (weight.std() / weight.mean() / np.sqrt(n)))
    assert np.abs(scores).max() < stats.norm.isf(1e-3 / 2 / len(scores))


def test_size_limits_and_prior_only():
    toy = model.two_classes()
    limited = exact.exact_posterior(
        toy, method="hmc-df", h=0.1, prior=Prior(min_leaves=2, max_leaves=3, classes=0.5)
    )
    assert set(limited.shapes) == set(exact.SHAPES[1:4])
    prior = exact.exact_posterior(model.regression(), method="hmc-df", h=0.1, likelihood=False)
    sigma = stats.invgamma(1.5, scale=1.5)
    assert prior.means["sigma"] == pytest.approx(sigma.mean())
    assert prior.means["log_sigma"] == pytest.approx(sigma.expect(np.log), abs=1e-6)


# ------------------------------------------------------------------------------- statistics
def autoregression(rng: np.random.Generator, rho: float, shape: tuple[int, int]) -> np.ndarray:
    x = rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def test_effective_sample_size(rng):
    for rho in (-0.3, 0.0, 0.6, 0.9):
        x = autoregression(rng, rho, (4, 20_000))
        exact_size = x.size * (1 - rho) / (1 + rho)
        assert check.effective_sample_size(x) == pytest.approx(exact_size, rel=0.15)
    stuck = np.repeat([[0.0], [1.0]], 100, axis=1) + 1e-3 * rng.normal(size=(2, 100))
    assert check.effective_sample_size(stuck) < 5


@pytest.mark.parametrize("level", [1e-2, 1e-3, 1e-4, 1e-5])
def test_the_bound_of_two_labels_is_that_of_a_t_test(level, rng):
    """Their distance is the absolute error of one share: a t of the batches, times its error."""
    draws = (rng.random((4, 10_000)) < 0.3).astype(int)
    bound = check.total_variation(draws.tolist(), {0: 0.7, 1: 0.3}, level=level).bound
    batches = check.batch_means(draws)
    error = batches.std(ddof=1) / batches.size**0.5
    assert bound == pytest.approx(error * stats.t.isf(level / 2, batches.size - 1), rel=0.05)


def test_false_alarm_rates_and_power(rng):
    """Each test at level .05 on right and wrong input; 200 repetitions.

    The number of false alarms is below the 99.99% quantile of Binomial(200, .05), with a rate
    of .07 allowed for the normal approximations.
    """
    alarms, misses = dict.fromkeys(("means", "tv", "ks", "geweke", "sbc"), 0), {}
    misses |= dict.fromkeys(alarms, 0)
    edges = stats.norm.ppf([0.2, 0.5, 0.9])
    shares = {0: 0.2, 1: 0.3, 2: 0.4, 3: 0.1}
    repeats = 200
    for _ in range(repeats):
        x = autoregression(rng, 0.6, (4, 1000))
        for shift, tally, wrong in ((0.0, alarms, False), (0.2, misses, True)):
            shifted = x + shift
            results = {
                "means": check.compare_means({"x": shifted}, {"x": 0.0}, level=0.05),
                "tv": check.total_variation(
                    np.searchsorted(edges, shifted).tolist(), shares, level=0.05
                ),
                "ks": check.kolmogorov(shifted, stats.norm.cdf, level=0.05),
                "geweke": check.geweke({"x": rng.normal(size=4000)}, {"x": shifted}, level=0.05),
                "sbc": check.sbc_uniformity(
                    [
                        check.sbc_rank(rng.normal(size=19), truth, rng)
                        for truth in shifted[0, ::20] + 2 * shift
                    ],
                    19,
                    level=0.05,
                ),
            }
            for name, result in results.items():
                tally[name] += result.ok == wrong
    limit = stats.binom.ppf(1 - 1e-4, repeats, 0.07)
    assert max(alarms.values()) <= limit, alarms
    assert all(misses[name] <= repeats // 4 for name in ("means", "tv", "ks", "geweke")), misses


def test_conditional_means_and_unknown_labels(rng):
    defined = rng.random((4, 2000)) < 0.3
    x = np.where(defined, rng.normal(2.0, size=defined.shape), np.nan)
    assert check.compare_means({"x": x}, {"x": 2.0}, level=1e-6).ok
    assert not check.compare_means({"x": x}, {"x": 2.2}, level=1e-6).ok
    labels = [["a", "b"] * 100, ["a", "new"] * 100]
    assert check.total_variation(labels, {"a": 0.5, "b": 0.5}).value == pytest.approx(0.25)
    assert check.frequencies(rng.integers(4, size=(4, 500)), np.ones(4), level=1e-6).ok
