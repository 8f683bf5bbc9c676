"""Tests for Monte Carlo output, each with a declared false-alarm rate (``level``).

Draws are arrays [chain, draw]. A correct sampler fails a test with probability ``level``, up to
the normal approximation of its means; levels are split over the functionals of one call
(Bonferroni), so that a call, not each number in it, has the declared rate.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

Array = NDArray[np.float64]

SIMULATED = 20_000
"""Distances of correct samplers, of which a bound is made."""


@dataclass(frozen=True)
class TotalVariation:
    """Distance between the shares of labels in the draws and exact probabilities."""

    value: float
    standard_error: float
    noise: float
    """Mean of ``value`` for a correct sampler with this run's autocorrelation: it is not 0."""
    bound: float
    """The value which a correct sampler exceeds with probability ``level``."""

    @property
    def ok(self) -> bool:
        return self.value <= self.bound


@dataclass(frozen=True)
class MeanTest:
    """z-scores of several means against a common limit."""

    z: dict[str, float]
    limit: float

    @property
    def ok(self) -> bool:
        return all(abs(z) <= self.limit for z in self.z.values())


@dataclass(frozen=True)
class Test:
    __test__ = False  # pytest: not a test class

    statistic: float
    p_value: float
    level: float

    @property
    def ok(self) -> bool:
        return self.p_value >= self.level


def effective_sample_size(draws: ArrayLike) -> float:
    """ESS of the mean over all chains: Geyer's initial monotone sequence, as Stan does.

    Chains that disagree lower it through the between-chain variance. Infinite for constants.
    """
    x = np.atleast_2d(np.asarray(draws, dtype=float))
    m, n = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    autocovariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n].mean(axis=0) / n
    within = autocovariance[0] * n / (n - 1)
    total = autocovariance[0] + (x.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    if total <= 1e-300:
        return np.inf
    rho = 1 - (within - autocovariance) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    time = 2 * np.minimum.accumulate(pairs[:end]).sum() - 1
    return float(m * n / max(time, 1 / np.log10(m * n)))  # a limit for antithetic chains


def standard_error(draws: ArrayLike) -> float:
    """Of the mean over all chains and draws, by the effective sample size."""
    x = np.atleast_2d(np.asarray(draws, dtype=float))
    return float(np.sqrt(x.var() / effective_sample_size(x)))


def batch_means(draws: ArrayLike, n_batches: int = 25) -> Array:
    """Means of consecutive batches, all chains together: [chains * n_batches, ...].

    Batches must be long against the autocorrelation for their spread to be an error bar.
    """
    x = np.asarray(draws, dtype=float)
    length = x.shape[1] // n_batches
    if length < 2:
        raise ValueError(f"{x.shape[1]} draws per chain are too few for {n_batches} batches")
    kept = x[:, x.shape[1] - length * n_batches :]
    batches = kept.reshape(x.shape[0], n_batches, length, *x.shape[2:]).mean(axis=2)
    return batches.reshape(-1, *x.shape[2:])


def total_variation(
    chains: Sequence[Sequence[Hashable]],
    exact: Mapping[Hashable, float],
    *,
    level: float = 1e-3,
    n_batches: int = 25,
) -> TotalVariation:
    """Compare labels drawn by several chains of one length with exact probabilities.

    The covariance of the shares comes from batch means; the law of the distance under a correct
    sampler is simulated with it (multivariate t, for the finite number of batches). Normal noise is
    drawn; what a t divides it by has its exact law, so that levels below one in ``SIMULATED`` hold.
    Labels that are not in ``exact`` have probability 0.
    """
    labels = list(exact) + sorted({x for c in chains for x in c} - set(exact), key=repr)
    code = {label: k for k, label in enumerate(labels)}
    target = np.array([exact.get(label, 0.0) for label in labels])
    index = np.array([[code[x] for x in c] for c in chains])
    difference = np.bincount(index.ravel(), minlength=len(labels)) / index.size - target
    batches = _batch_shares(index, len(labels), n_batches)
    deviation = (batches - batches.mean(axis=0)) / len(batches)
    rng = np.random.default_rng(20240)
    freedom = len(batches) - 1
    _, scale, axes = np.linalg.svd(deviation, full_matrices=False)
    normal, spread = np.empty(SIMULATED), np.empty(SIMULATED)
    for part in np.split(np.arange(SIMULATED), SIMULATED // 250):  # that stay in the cache
        noise = rng.normal(size=(len(part), len(scale))) @ (scale[:, None] * axes)
        normal[part] = np.abs(noise).sum(axis=1) / 2
        noise *= np.sqrt(len(batches) / rng.chisquare(freedom, size=(len(part), 1)))
        spread[part] = np.abs(difference + noise).sum(axis=1) / 2

    normal.sort()
    body = normal[:-1000].reshape(-1, 20).mean(axis=1)
    distance = np.concatenate([body, normal[-1000:]])
    share = np.repeat([20 / SIMULATED, 1 / SIMULATED], [len(body), 1000])

    def exceeded(bound: float) -> float:
        """Probability, by the normal distances and the exact law of what divides them."""
        return float(share @ special.chdtr(freedom, len(batches) * (distance / bound) ** 2))

    most = 10.0 * float(normal.max())
    return TotalVariation(
        value=float(np.abs(difference).sum() / 2),
        standard_error=float(spread.std()),
        noise=float(normal.mean() * np.sqrt(len(batches)) * _mean_of_inverse_chi(freedom)),
        bound=optimize.brentq(lambda b: exceeded(b) - level, 1e-3 * most, most, rtol=1e-3)
        if most > 0
        else 0.0,
    )


def _mean_of_inverse_chi(freedom: int) -> float:
    """E[1 / chi], of the square root of a chi-square."""
    return float(np.exp(special.gammaln((freedom - 1) / 2) - special.gammaln(freedom / 2)) / 2**0.5)


def _batch_shares(index: NDArray[np.int64], n_labels: int, n_batches: int) -> Array:
    """``batch_means`` of the indicators of labels 0..n_labels - 1, without making those."""
    n_chains, n = index.shape
    length = n // n_batches
    if length < 2:
        raise ValueError(f"{n} draws per chain are too few for {n_batches} batches")
    batches = index[:, n - length * n_batches :].reshape(n_chains * n_batches, length)
    place = batches + n_labels * np.arange(len(batches))[:, None]
    counts = np.bincount(place.ravel(), minlength=n_labels * len(batches))
    return counts.reshape(len(batches), n_labels) / length


def compare_means(
    draws: Mapping[str, ArrayLike], exact: Mapping[str, float], *, level: float = 1e-3
) -> MeanTest:
    """z-test of the means of several functionals, with ESS-based standard errors.

    NaN draws mean "not defined here" (the root's threshold of a tree without splits): the exact
    value is then the mean given that it is defined, and the test is on E[(f - exact) 1(defined)].
    """
    z = {}
    for name, value in draws.items():
        x = np.atleast_2d(np.asarray(value, dtype=float))
        centred = np.where(np.isnan(x), 0.0, x - exact[name])
        z[name] = _z(float(centred.mean()), standard_error(centred))
    return MeanTest(z, float(stats.norm.isf(level / 2 / len(z))))


def geweke(
    independent: Mapping[str, ArrayLike],
    successive: Mapping[str, ArrayLike],
    *,
    level: float = 1e-3,
    n_batches: int = 25,
) -> MeanTest:
    """Geweke's joint-distribution test: two simulators of (parameters, data), equal means.

    ``independent`` holds functionals [n] of fresh draws from prior and model (the
    marginal-conditional simulator); ``successive`` the same [chain, draw] of chains that alternate
    a transition of the sampler with new data (the successive-conditional simulator). Functionals
    need a finite variance under the prior (log sigma, not sigma).
    """
    z = {}
    for name, value in independent.items():
        fresh = np.asarray(value, dtype=float)
        batches = batch_means(np.atleast_2d(np.asarray(successive[name])), n_batches)
        error = np.hypot(
            fresh.std(ddof=1) / fresh.size**0.5, batches.std(ddof=1) / batches.size**0.5
        )
        z[name] = _z(float(fresh.mean() - batches.mean()), float(error))
    return MeanTest(z, float(stats.t.isf(level / 2 / len(z), n_batches - 1)))


def sbc_rank(draws: ArrayLike, truth: float, rng: np.random.Generator) -> int:
    """Rank of the truth among (thinned) posterior draws, 0..n; ties are broken at random."""
    x = np.ravel(np.asarray(draws))
    return int((x < truth).sum() + rng.integers((x == truth).sum() + 1))


def sbc_uniformity(
    ranks: ArrayLike, n_draws: int, *, n_bins: int = 10, level: float = 1e-3
) -> Test:
    """Chi-square test that ranks are uniform on 0..n_draws, in bins of nearly equal width."""
    x = np.asarray(ranks)
    if len(x) < 5 * n_bins:
        raise ValueError(f"{len(x)} ranks are too few for {n_bins} bins")
    bin_of_rank = np.arange(n_draws + 1) * n_bins // (n_draws + 1)
    observed = np.bincount(bin_of_rank[x], minlength=n_bins)
    expected = np.bincount(bin_of_rank, minlength=n_bins) / (n_draws + 1) * len(x)
    result = stats.chisquare(observed, expected)
    return Test(float(result.statistic), float(result.pvalue), level)


def thin(draws: ArrayLike) -> Array:
    """Keep about every second effective draw, chains joined; nearly independent."""
    x = np.atleast_2d(np.asarray(draws, dtype=float))
    step = int(np.ceil(max(1.0, 2 * x.size / effective_sample_size(x))))
    return x[:, ::step].ravel()


def kolmogorov(draws: ArrayLike, cdf: Callable[[Array], Array], *, level: float = 1e-3) -> Test:
    """Kolmogorov-Smirnov test of thinned draws of a continuous variable."""
    result = stats.kstest(thin(draws), cdf)
    return Test(float(result.statistic), float(result.pvalue), level)


def frequencies(draws: ArrayLike, probabilities: ArrayLike, *, level: float = 1e-3) -> Test:
    """Chi-square test of thinned draws of a discrete variable 0..K-1."""
    x = thin(draws).astype(int)
    p = np.asarray(probabilities, dtype=float)
    result = stats.chisquare(np.bincount(x, minlength=len(p)), p / p.sum() * len(x))
    return Test(float(result.statistic), float(result.pvalue), level)


def _z(difference: float, error: float) -> float:
    if error > 0:
        return difference / error
    return 0.0 if abs(difference) < 1e-12 else float(np.copysign(np.inf, difference))
