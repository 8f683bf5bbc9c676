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
from ..reference.enumerate_special import labels_of_special
from ..support.configuring import configured
from ..support.special import as_columns, kinds_of

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


def data_of(problem: TinyProblem) -> Problem:
    kinds = kinds_of(list(problem.columns)) if problem.columns else None
    weights = np.array(problem.times, float) if problem.times else None
    return Problem(as_columns(problem.X), problem.y, problem.n_classes, weights, kinds)


def run_islands(problem: TinyProblem, seed: int, islands: int, particles: int, **others):
    return sample(
        data_of(problem), configuration_of(problem, **others), n_chains=islands, n_warmup=0,
        n_draws=particles, seed=seed, n_jobs=1, progress=False,
    )  # fmt: skip


def partitions_of(problem: TinyProblem, draws) -> np.ndarray:
    """[tree, row]; the first row that shares a row's leaf, which names the partition."""
    leaf = most_likely_leaf(draws.forest, as_columns(problem.X), 1)
    return (leaf[:, :, None] == leaf[:, None, :]).argmax(axis=2)


def labels_of(problem: TinyProblem, draws) -> list[tuple[int, ...]]:
    """Codes of each tree's nodes, -1 for leaves."""
    levels = np.zeros(len(draws.feature), np.uint64) if draws.levels is None else draws.levels
    flat = (draws.node_offset, draws.size, draws.feature, draws.threshold, levels)
    return labels_of_special(problem.toy, *flat)


def named(partition, n_rows: int) -> tuple[int, ...]:
    """The same name for a partition of the reference."""
    first = {row: min(rows) for rows in partition for row in rows}
    return tuple(first[row] for row in range(n_rows))


def z_scores(problem: TinyProblem, truth: Exact, draws, info) -> dict[str, float]:
    """Of evidence, mean number of leaves, and each partition and first split that is not rare."""
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
    first = np.array([label[0] for label in labels_of(problem, draws)]).reshape(weight.shape)
    for code, mass in truth.root.items():
        share = mass / truth.evidence
        if share >= 0.02:
            functionals[f"first split {code}"] = (weight * (first == code)).sum(axis=1) - share
    functionals["rare"] = (weight * rare).sum(axis=1) - rare_mass
    return {
        name: float(f.mean() / (max(f.std(ddof=1), 1e-12) / math.sqrt(islands)))
        for name, f in functionals.items()
    }


def assert_close(z: dict[str, float]) -> None:
    worst = max(z, key=lambda name: abs(z[name]))
    assert abs(z["evidence"]) < Z_LIMIT, f"evidence: z = {z['evidence']:.1f}"
    limit = max(Z_LIMIT, float(stats.norm.isf(0.5e-4 / len(z))))
    assert abs(z[worst]) < limit, f"{worst}: z = {z[worst]:.1f}"
