"""Two samplers, one posterior: CGM with rule_prior="uniform01" and HMC-DF with h = 0.

Same prior, same likelihood, nothing in common but the nodes: CGM re-partitions rows and keeps
sums, HMC-DF routes all rows by path probabilities and jumps by its own moves.
"""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.core.predict import tree_predictions
from hamiltree.posterior.draws import Draws
from hamiltree.running.run import Problem, sample

from ..reference.stats import effective_sample_size, standard_error
from ..support.configuring import configured

TOLERANCE = 0.01
"""Largest difference of a predictive probability, outright; some 10 standard errors here."""
SHARED = {"alpha_split": 0.5, "beta_split": 1.0, "max_leaves": 8, "class_prior": (0.5, 1.0, 1.5)}


def problem() -> Problem:
    rng = np.random.default_rng(4)
    columns = rng.random((3, 40))
    high, right = columns[0] > 0.5, columns[1] > 0.4
    law = np.where(
        high[:, None], np.where(right[:, None], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]), [0.15, 0.15, 0.7]
    )
    y = (rng.random(40)[:, None] > law.cumsum(axis=1)).sum(axis=1)
    return Problem(columns, y, 3)


def functionals(draws: Draws) -> dict[str, np.ndarray]:
    forest = draws.forest
    counts = draws.leaf + np.array(SHARED["class_prior"])
    places = np.random.default_rng(7).random((3, 20))
    values = tree_predictions(forest, counts / counts.sum(axis=1, keepdims=True), places)
    values = values.reshape(draws.n_chains, draws.n_draws, 20, 3)
    out = {f"P(class {m}) at {i}": values[:, :, i, m] for i in range(20) for m in range(3)}
    out |= {f"{k} leaves": (draws.n_leaves == k).astype(float) for k in range(2, 7)}
    out |= {"depth": draws.depth.astype(float), "log likelihood": draws.log_likelihood}
    out |= {"log posterior": draws.log_posterior}
    return out


@pytest.mark.long
def test_cgm_and_hmc_df_agree_on_a_classification_problem(seed):
    found = []
    for k, options in enumerate(
        (
            {"method": "cgm", "rule_prior": "uniform01", "moves": "prior", "proposals": 40},
            {"method": "hmc-df", "h": 0.0},
        )
    ):
        draws, _ = sample(
            problem(),
            configured(**SHARED, **options),
            n_chains=4,
            n_warmup=500,
            n_draws=30_000,
            n_jobs=2,
            seed=seed + k,
        )
        found.append(functionals(draws))
    cgm, hmc = found
    limit = 4.9  # two-sided normal at level 1e-4 / 68 functionals is 4.8; a little for the ESS
    worst = 0.0
    for name in cgm:
        assert min(effective_sample_size(f[name]) for f in found) > 1_000, name
        difference = cgm[name].mean() - hmc[name].mean()
        error = np.hypot(standard_error(cgm[name]), standard_error(hmc[name]))
        assert abs(difference) < limit * error, (name, difference, error)
        if name.startswith("P"):
            worst = max(worst, abs(difference))
    print(f"largest difference of a probability {worst:.4f}")
    assert worst < TOLERANCE
    leaves = [np.array([f[f"{k} leaves"].mean() for k in range(2, 7)]) for f in found]
    assert np.abs(leaves[0] - leaves[1]).sum() / 2 < 0.02
