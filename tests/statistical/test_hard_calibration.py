"""Simulation-based calibration of CGM and WU (long: ``make test-long``).

Tree and leaves from the prior, data from them, posterior from the sampler: the rank of the truth
among the draws must be uniform. The rows of X stay as they are: the priors depend on them.
"""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.posterior.draws import Draws
from hamiltree.running.run import Problem, sample

from ..reference.enumerate_hard import HardPrior, Leaves, Toy
from ..reference.simulate_hard import Tree, depth, draw_tree, leaf_of, n_leaves
from ..reference.stats import sbc_rank, sbc_uniformity
from .hard_battery import configuration_of

LEVEL = 1e-4
N_REPLICATES = 600
KEPT = 99
"""Draws a replicate, far enough apart to be nearly independent."""
CLASSES = Leaves(class_prior=(0.6, 1.0, 0.8))
NORMAL = Leaves(variance_prior=(3.0, 0.5), mean_prior=(0.5, 0.2))
COMMON = Leaves(variance_prior=(3.0, 0.5), mean_prior=(0.5, 0.2), common=True)
CASES = {
    "uniform, classes": (HardPrior("uniform", 0.8, 0.7, max_leaves=7), CLASSES),
    "uniform, regression": (HardPrior("uniform", 0.8, 0.7, max_leaves=7), NORMAL),
    "uniform, common variance": (HardPrior("uniform", 0.8, 0.7, max_leaves=7), COMMON),
    "gap, regression": (HardPrior("gap", 0.8, 0.7, max_leaves=7), NORMAL),
    "uniform01, classes": (HardPrior("uniform01", 0.8, 0.7, max_leaves=7), CLASSES),
    "wu, classes": (HardPrior("wu", expected_splits=2.0, max_leaves=7), CLASSES),
    "wu, regression": (HardPrior("wu", expected_splits=2.0, max_leaves=7), NORMAL),
}


def simulate(rng: np.random.Generator, leaves: Leaves, leaf: np.ndarray, k: int):
    """y of rows in these of k leaves, and the leaves' parameters [k, .]."""
    if leaves.class_prior:
        law = rng.dirichlet(leaves.class_prior, size=k)
        y = np.array([rng.choice(len(law[0]), p=law[j]) for j in leaf])
        return y, law
    shape, rate = leaves.variance_prior
    mean, count = leaves.mean_prior
    sd = np.sqrt(rate / rng.gamma(shape, size=1 if leaves.common else k)) * np.ones(k)
    mu = mean + sd / np.sqrt(count) * rng.normal(size=k)
    return mu[leaf] + sd[leaf] * rng.normal(size=len(leaf)), np.column_stack([mu, sd])


def tree_of(draws: Draws, t: int) -> Tree:
    first, last = draws.node_offset[t], draws.node_offset[t + 1]
    mine = slice((first - t) // 2, (last - t - 1) // 2)
    rules = iter(zip(draws.feature[mine], draws.threshold[mine], strict=True))
    nodes = iter(draws.size[first:last])

    def build() -> Tree:
        if next(nodes) == 1:
            return ()
        f, tau = next(rules)
        left = build()
        return int(f), float(tau), left, build()

    return build()


def summaries(rng, leaves: Leaves, tree: Tree, values: np.ndarray, new: np.ndarray):
    """What is ranked: sizes, and the parameters of the leaf of a new row."""
    found = {"leaves": float(n_leaves(tree)), "depth": float(depth(tree))}
    at = values[leaf_of(tree, new)[0]]
    if leaves.class_prior:
        return found | {"P(class 0)": float(at[0])}
    return found | {"mean": float(at[0]), "sd": float(at[1])}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_ranks_are_uniform(case, rng):
    prior, leaves = CASES[case]
    X = np.round(rng.uniform(size=(20, 2)), 1)  # ties
    ranks: dict[str, list[int]] = {}
    for _ in range(N_REPLICATES):
        tree = draw_tree(rng, X, prior)
        y, values = simulate(rng, leaves, leaf_of(tree, X), n_leaves(tree))
        new = rng.uniform(size=(1, 2))
        truth = summaries(rng, leaves, tree, values, new)
        toy = Toy(X, y, prior, leaves)
        draws, _ = sample(
            Problem(np.ascontiguousarray(X.T), y, toy.n_classes),
            configuration_of(toy, proposals=300, triples=25),
            n_chains=1,
            n_warmup=20,
            n_draws=KEPT,
            n_jobs=1,
            seed=int(rng.integers(2**31)),
        )
        found: dict[str, list[float]] = {}
        for t in range(KEPT):
            first = (draws.node_offset[t] + t) // 2
            leaf = draws.leaf[first : first + draws.n_leaves[0, t]]
            if leaves.class_prior:
                leaf = np.array([rng.dirichlet(c + np.array(leaves.class_prior)) for c in leaf])
            for name, value in summaries(rng, leaves, tree_of(draws, t), leaf, new).items():
                found.setdefault(name, []).append(value)
        for name, value in truth.items():
            ranks.setdefault(name, []).append(sbc_rank(found[name], value, rng))
    for name, r in ranks.items():
        test = sbc_uniformity(r, KEPT, n_bins=20, level=LEVEL)
        print(f"{case}, {name}: p = {test.p_value:.3f}")
        assert test.ok, (name, test)
