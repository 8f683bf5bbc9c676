"""With the likelihood switched off every exact configuration must return the prior.

The data are there, and matter if a term of a ratio is wrong. Judged marginal by marginal with a
declared false-alarm rate; the number of leaves against the exact law of the truncated branching
process.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from .battery import CONFIGURATIONS, run_toy
from .reference.model import Prior, Toy, log_prior_shape
from .reference.stats import compare_means, frequencies, kolmogorov, total_variation

LEVEL = 1e-5  # about 8 tests in each of 32 cases: a false alarm in 400 runs of the file
PRIOR = Prior(alpha_split=0.8, beta_split=1.0, max_leaves=5, tau=(2.0, 1.0), weight=1.5)
OPTIONS = {
    "tau_prior": PRIOR.tau,
    "weight_prior": PRIOR.weight,
    "feature_prior": (1.0, 2.0, 3.0),
    "mu_prior": (0.5, 2.0),
    "sigma_prior": (3.0, 2.0),
}


def toy(n_classes: int, min_leaves: int) -> Toy:
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_classes, 15) if n_classes else rng.normal(size=15)
    prior = Prior(
        alpha_split=PRIOR.alpha_split,
        beta_split=PRIOR.beta_split,
        min_leaves=min_leaves,
        max_leaves=PRIOR.max_leaves,
    )
    return Toy(rng.uniform(size=(15, 3)), y, n_classes, prior)


def all_shapes(n_leaves: int) -> list[tuple[int, ...]]:
    if n_leaves == 1:
        return [(1,)]
    return [
        (2 * n_leaves - 1, *left, *right)
        for k in range(1, n_leaves)
        for left in all_shapes(k)
        for right in all_shapes(n_leaves - k)
    ]


def shape_law(min_leaves: int) -> dict[tuple[int, ...], float]:
    shapes = [s for n in range(min_leaves, PRIOR.max_leaves + 1) for s in all_shapes(n)]
    mass = np.exp([log_prior_shape(s, PRIOR) for s in shapes])
    return dict(zip(shapes, mass / mass.sum(), strict=True))


@pytest.mark.parametrize("min_leaves", [1, 2])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("h", [0.1, 0.0])
@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
@pytest.mark.parametrize("n_classes", [3, 0])
def test_prior_is_recovered(n_classes, method, h, configuration, min_leaves, seed):
    sampled = run_toy(
        toy(n_classes, min_leaves),
        method=method,
        h=h,
        n_draws=8_000,
        seed=seed,
        configuration=configuration,
        likelihood=False,
        # uneven, and either way round: a ratio above 1 hides what is wrong with it
        move_probs=(0.3, 0.5, 0.2) if min_leaves == 1 else (0.5, 0.3, 0.2),
        **OPTIONS,
    )
    draws = sampled.draws
    distance = total_variation(sampled.shapes, shape_law(min_leaves), level=LEVEL)
    assert distance.ok, distance

    # One number a draw for each marginal: of the root, of the last split, of the last leaf.
    trees = np.arange(draws.n_chains * draws.n_draws)
    square = (draws.n_chains, draws.n_draws)
    split_of = {
        "root": (draws.node_offset[:-1] - trees) // 2,
        "last": (draws.node_offset[1:] - trees - 1) // 2 - 1,
    }
    exists = draws.n_leaves.ravel() > 1
    beta = stats.beta(*PRIOR.tau)
    for which, place in split_of.items():
        tau = draws.threshold[np.where(exists, place, 0)]
        assert kolmogorov(tau[exists], beta.cdf, level=LEVEL).ok, which
        rule = np.where(exists, place, 0)
        if method == "hmc-df":
            used = draws.feature[rule][exists]
            assert frequencies(used, [1 / 6, 2 / 6, 3 / 6], level=LEVEL).ok, which
        else:
            marginal = stats.beta(PRIOR.weight, 2 * PRIOR.weight)
            for f in range(3):
                weight = draws.weights[rule, f][exists]
                assert kolmogorov(weight, marginal.cdf, level=LEVEL).ok, (which, f)
    if n_classes == 0:
        sigma = stats.invgamma(3.0, scale=2.0)
        assert kolmogorov(draws.sigma, sigma.cdf, level=LEVEL).ok
        last_leaf = draws.leaf[(draws.node_offset[1:] + trees + 1) // 2 - 1, 0].reshape(square)
        assert kolmogorov(last_leaf, stats.norm(0.5, 2.0).cdf, level=LEVEL).ok
        means = compare_means({"mu": last_leaf}, {"mu": 0.5}, level=LEVEL)
        assert means.ok, means
