"""Simulation-based calibration of whole fits (long: ``make test-long``).

Truth from the prior, data from the truth, posterior from the sampler: the rank of the truth among
the draws must be uniform, for number of leaves, noise and a prediction. The soft classification
likelihood is not a distribution over labels, so there quadrature is the judge, not this file.
"""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.draws import Draws
from hamiltree.run import Problem, sample
from hamiltree.settings import Settings

from .battery import CONFIGURATIONS
from .reference.model import (
    Prior,
    from_flat,
    leaves,
    phi,
    sample_classes,
    sample_sigma,
    sample_tree,
    sample_y,
)
from .reference.stats import sbc_rank, sbc_uniformity

LEVEL = 1e-4
PRIOR = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=6, sigma=(3.0, 1.0))
N_REPLICATES = 500
KEPT = 99  # thinned draws a replicate: ranks 0..99

CASES = [
    ("hmc-df", 0.1, 0, "composed"),
    ("hmc-dfi", 0.1, 0, "composed"),
    ("hmc-df", 0.1, 0, "double-sided"),
    ("hmc-df", 0.0, 0, "composed"),
    ("hmc-df", 0.0, 2, "composed"),
    ("hmc-dfi", 0.0, 3, "composed"),
]


def spread(chains: np.ndarray) -> np.ndarray:
    """KEPT draws, evenly spaced over the joined chains: nearly independent."""
    joined = chains.ravel()
    return joined[np.linspace(0, joined.size - 1, KEPT).astype(int)]


def predictions(draws: Draws, new: np.ndarray, h: float) -> np.ndarray:
    """The mean at one new row, a draw each, by the reference router."""
    out = np.zeros(draws.n_chains * draws.n_draws)
    wanted = np.linspace(0, out.size - 1, KEPT).astype(int)  # those that ``spread`` keeps
    for t in wanted:
        a, b = draws.node_offset[t], draws.node_offset[t + 1]
        split = slice((a - t) // 2, (b - t - 1) // 2)
        leaf = draws.leaf[(a + t) // 2 : (b + t + 1) // 2, 0]
        tree = from_flat(
            draws.size[a:b].tolist(),
            draws.feature[split].tolist(),
            draws.threshold[split].tolist(),
            draws.weights[split],
            leaf.tolist(),
        )
        out[t] = phi(tree, new, h)[0] @ leaf
    return out.reshape(draws.n_chains, draws.n_draws)


@pytest.mark.long
@pytest.mark.parametrize(("method", "h", "n_classes", "configuration"), CASES)
def test_ranks_are_uniform(method, h, n_classes, configuration, rng):
    ranks: dict[str, list[int]] = {}
    for _ in range(N_REPLICATES):
        X = rng.uniform(size=(25, 2))
        tree = sample_tree(rng, 2, PRIOR, method=method)
        new = rng.uniform(size=(1, 2))
        truth = {"n_leaves": float(len(leaves(tree)))}
        if n_classes:
            y = sample_classes(rng, tree, X, n_classes, PRIOR)
        else:
            sigma = sample_sigma(rng, PRIOR)
            y = sample_y(rng, tree, X, h, sigma)
            truth["sigma"] = sigma
            truth["prediction"] = float(
                phi(tree, new, h)[0] @ np.array([leaf.mu for leaf in leaves(tree)])
            )
        draws, _ = sample(
            Problem(np.ascontiguousarray(X.T), y, n_classes),
            Settings(
                method=method,
                h=h,
                alpha_split=PRIOR.alpha_split,
                beta_split=PRIOR.beta_split,
                max_leaves=PRIOR.max_leaves,
                sigma_prior=PRIOR.sigma,
                **CONFIGURATIONS[configuration],
            ),
            n_chains=2,
            n_warmup=300,
            n_draws=KEPT * 60,
            n_jobs=2,
            seed=int(rng.integers(2**31)),
        )
        posterior = {"n_leaves": draws.n_leaves.astype(float)}
        if not n_classes:
            posterior["sigma"] = draws.sigma
            posterior["prediction"] = predictions(draws, new, h)
        for name, value in truth.items():
            ranks.setdefault(name, []).append(sbc_rank(spread(posterior[name]), value, rng))
    for name, found in ranks.items():
        test = sbc_uniformity(found, KEPT, n_bins=20, level=LEVEL)
        print(f"{method} h={h} classes={n_classes} {configuration} {name}: p = {test.p_value:.3f}")
        assert test.ok, (name, test)
