"""Runs of SMC on the reference's problems, and their scores against its sums."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from hamiltree.core.predict import most_likely_leaf
from hamiltree.methods import SMC
from hamiltree.methods.base import Configuration
from hamiltree.running.run import Problem, sample

from ..reference.enumerate_smc import Exact, TinyProblem
from ..support.configuring import configured

PROPOSALS = ("prior", "empirical", "posterior")
RESAMPLINGS = ("systematic", "multinomial")
Z_LIMIT = 4.0  # two-sided rate 6e-5


def configuration_of(problem: TinyProblem, **others) -> Configuration[SMC]:
    return configured(
        method="smc",
        alpha_split=problem.alpha_split,
        beta_split=problem.beta_split,
        min_leaves=problem.min_leaves,
        max_leaves=min(problem.max_leaves, 256),
        min_size=problem.min_size,
        feature_prior=problem.feature_weight,
        class_prior=problem.class_prior or 1.0,
        variance_prior=problem.variance_prior,
        mean_prior=problem.mean_prior,
        likelihood_power=problem.power,
        **others,
    )


def run_islands(problem: TinyProblem, seed: int, islands: int, particles: int, **others):
    data = Problem(np.ascontiguousarray(problem.X.T), problem.y, problem.n_classes)
    return sample(
        data, configuration_of(problem, **others), n_chains=islands, n_warmup=0, n_draws=particles,
        seed=seed, n_jobs=1, progress=False,
    )  # fmt: skip


def partitions_of(problem: TinyProblem, draws) -> np.ndarray:
    """[tree, row]; the first row that shares a row's leaf, which names the partition."""
    forest = draws.forest
    leaf = most_likely_leaf(forest, np.ascontiguousarray(problem.X.T), 1)
    return (leaf[:, :, None] == leaf[:, None, :]).argmax(axis=2)


def named(partition, n_rows: int) -> tuple[int, ...]:
    """The same name for a partition of the reference."""
    first = {row: min(rows) for rows in partition for row in rows}
    return tuple(first[row] for row in range(n_rows))


def z_scores(problem: TinyProblem, truth: Exact, draws, info) -> dict[str, float]:
    """Of the evidence, the mean number of leaves, and every partition that is not rare."""
    islands = draws.n_chains
    weight = np.exp(info.stats["log_weight"] - truth.log_evidence)  # sums to 1 on average
    names = partitions_of(problem, draws).reshape(islands, draws.n_draws, -1)
    functionals = {
        "evidence": weight.sum(axis=1) - 1.0,
        "leaves": (weight * (draws.n_leaves - truth.mean_leaves)).sum(axis=1),
    }
    rare = np.ones(weight.shape, bool)
    rare_mass = 1.0
    for partition, mass in truth.partitions.items():
        share = mass / truth.evidence
        if share < 0.02:
            continue
        name = named(partition, len(problem.y))
        here = (names == np.array(name)).all(axis=2)
        rare &= ~here
        rare_mass -= share
        functionals[str(name)] = (weight * here).sum(axis=1) - share
    functionals["rare"] = (weight * rare).sum(axis=1) - rare_mass
    return {
        name: float(f.mean() / (f.std(ddof=1) / math.sqrt(islands)))
        for name, f in functionals.items()
    }


def assert_close(z: dict[str, float]) -> None:
    worst = max(z, key=lambda name: abs(z[name]))
    assert abs(z["evidence"]) < Z_LIMIT, f"evidence: z = {z['evidence']:.1f}"
    limit = max(Z_LIMIT, float(stats.norm.isf(0.5e-4 / len(z))))
    assert abs(z[worst]) < limit, f"{worst}: z = {z[worst]:.1f}"
