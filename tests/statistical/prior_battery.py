"""With the likelihood switched off a chain must return the prior: toys, exact laws, and a judge.

The data are there, and matter if a term of a ratio is wrong. Judged marginal by marginal; the
shapes against the exact law of the truncated branching process.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..reference.model import Prior, Shape, Toy, log_prior_shape
from ..reference.stats import compare_means, frequencies, kolmogorov, total_variation
from .battery import Sampled

PRIOR = Prior(alpha_split=0.8, beta_split=1.0, max_leaves=5, tau=(2.0, 1.0), weight=1.5)
FEATURES = np.array([1.0, 2.0, 3.0]) / 6
OPTIONS = {
    "tau_prior": PRIOR.tau,
    "weight_prior": PRIOR.weight,
    "feature_prior": tuple(FEATURES),
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


def all_shapes(n_leaves: int) -> list[Shape]:
    if n_leaves == 1:
        return [(1,)]
    return [
        (2 * n_leaves - 1, *left, *right)
        for k in range(1, n_leaves)
        for left in all_shapes(k)
        for right in all_shapes(n_leaves - k)
    ]


def shape_law(min_leaves: int) -> dict[Shape, float]:
    shapes = [s for n in range(min_leaves, PRIOR.max_leaves + 1) for s in all_shapes(n)]
    mass = np.exp([log_prior_shape(s, PRIOR) for s in shapes])
    return dict(zip(shapes, mass / mass.sum(), strict=True))


def places_of_splits(sampled: Sampled) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(where it exists, index into the draws' splits) of some splits of each tree.

    ``forked`` is a root with two internal children, which is what transpose turns over, and
    ``left``, ``right`` are those children.
    """
    draws = sampled.draws
    trees = np.arange(draws.n_chains * draws.n_draws)
    begin = draws.node_offset[:-1]
    root = (begin - trees) // 2
    last = (draws.node_offset[1:] - trees - 1) // 2 - 1
    split = draws.n_leaves.ravel() > 1
    left_size = draws.size[np.where(split, begin + 1, begin)]
    right_size = draws.size[begin] - 1 - left_size
    forked = split & (left_size > 1) & (right_size > 1)
    right = root + 1 + (left_size - 1) // 2  # the left subtree has half as many splits
    return {
        "root": (split, root),
        "last": (split, last),
        "forked": (forked, root),
        "left": (forked, root + 1),
        "right": (forked, right),
    }


def assert_prior(
    sampled: Sampled, *, method: str, n_classes: int, min_leaves: int, level: float
) -> None:
    """Shapes, rules, noise and means have their prior, each test at ``level``."""
    draws = sampled.draws
    distance = total_variation(sampled.shapes, shape_law(min_leaves), level=level)
    assert distance.ok, distance
    beta = stats.beta(*PRIOR.tau)
    square = (draws.n_chains, draws.n_draws)
    places = places_of_splits(sampled)
    for which, (exists, place) in places.items():
        rule = place[exists]
        assert kolmogorov(draws.threshold[rule], beta.cdf, level=level).ok, which
        if method == "hmc-df":
            assert frequencies(draws.feature[rule], FEATURES, level=level).ok, which
        else:
            marginal = stats.beta(PRIOR.weight, 2 * PRIOR.weight)
            for f in range(3):
                weight = draws.split_weights[rule, f]
                assert kolmogorov(weight, marginal.cdf, level=level).ok, (which, f)
    if method == "hmc-df":
        exists = places["forked"][0]
        left, right = (draws.feature[places[side][1][exists]] for side in ("left", "right"))
        alike = (left == right).astype(float)
        share = (FEATURES**2).sum()
        assert frequencies(alike, [1 - share, share], level=level).ok
    if n_classes == 0:
        trees = np.arange(draws.n_chains * draws.n_draws)
        sigma = stats.invgamma(3.0, scale=2.0)
        assert kolmogorov(draws.sigma, sigma.cdf, level=level).ok
        last_leaf = draws.leaf[(draws.node_offset[1:] + trees + 1) // 2 - 1, 0].reshape(square)
        assert kolmogorov(last_leaf, stats.norm(0.5, 2.0).cdf, level=level).ok
        means = compare_means({"mu": last_leaf}, {"mu": 0.5}, level=level)
        assert means.ok, means
