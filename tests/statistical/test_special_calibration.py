"""Simulation-based calibration with missing cells and a category (long: ``make test-long``).

Tree, leaves and noise from the prior, in plain Python; data from them; posterior from the sampler:
the rank of the truth among the draws must be uniform. ``python -m
tests.statistical.test_special_calibration 60`` prints p-values of 60 replicates.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest

from hamiltree.posterior.draws import Draws
from hamiltree.running.run import Problem, sample

from ..reference import model
from ..reference.enumerate_hard import HardPrior, Leaves
from ..reference.enumerate_special import SpecialToy
from ..reference.special import (
    IMPUTED,
    IS_MISSING,
    Column,
    Rule,
    is_gone,
    psi_of,
    sides_of,
    subsets,
)
from ..reference.stats import sbc_rank, sbc_uniformity
from ..support.configuring import configured
from ..support.special import as_columns, kinds_of
from .hard_battery import configuration_of
from .test_hard_calibration import simulate

LEVEL = 1e-4
N_REPLICATES = 300
KEPT = 99
"""Draws a replicate, far enough apart to be nearly independent."""
COLUMNS: list[Column] = [(0, True), (3, False), (0, False)]
PRIOR = model.Prior(alpha_split=0.7, beta_split=1.0, max_leaves=6, sigma=(3.0, 1.0))
CLASSES = Leaves(class_prior=(0.6, 1.0, 0.8))
NORMAL = Leaves(variance_prior=(3.0, 0.5), mean_prior=(0.5, 0.2))
Tree = tuple[()] | tuple[Rule, "Tree", "Tree"]


@dataclass(frozen=True)
class Case:
    name: str
    n_classes: int
    h: float = 0.0
    kind: str = ""
    """Prior of rules of CGM; empty for HMC-DF."""
    imputed: bool = False

    @property
    def columns(self) -> list[Column]:
        return [(0, IMPUTED), *COLUMNS[1:]] if self.imputed else COLUMNS


CASES = [
    Case("HMC-DF soft, regression", 0, h=0.1),
    Case("HMC-DF soft, classes", 2, h=0.1),
    Case("HMC-DF imputed, regression", 0, h=0.1, imputed=True),
    Case("HMC-DF imputed, classes", 2, h=0.1, imputed=True),
    Case("HMC-DF hard, regression", 0),
    Case("HMC-DF hard, classes", 2),
    Case("CGM uniform, classes", 3, kind="uniform"),
    Case("CGM gap, regression", 0, kind="gap"),
]


def rows_of(rng: np.random.Generator, n: int, imputed: bool = False) -> np.ndarray:
    X = np.column_stack([rng.uniform(size=n), rng.integers(0, 3, n), rng.uniform(size=n)])
    X[:, 0] = X[:, 0].round(1)
    gone = rng.permutation(n)[: n // 4]
    X[gone, 0] = np.nan
    if imputed:
        X[gone, 0] = -1 - np.clip(X[gone, 2] + 0.1 * rng.normal(size=len(gone)), 0.0, 1.0)
    return X


def depth_of(tree: Tree) -> int:
    return 1 + max(depth_of(tree[1]), depth_of(tree[2])) if tree else 0


def phi(tree: Tree, X: np.ndarray, h: float, columns: list[Column] = COLUMNS) -> np.ndarray:
    """[rows, leaves]"""
    if not tree:
        return np.ones((len(X), 1))
    right = psi_of(tree[0], X, columns, h)[:, None]
    below = [phi(side, X, h, columns) for side in tree[1:]]
    return np.hstack([(1 - right) * below[0], right * below[1]])


def tree_of(draws: Draws, t: int) -> Tree:
    first, last = draws.node_offset[t], draws.node_offset[t + 1]
    mine = slice((first - t) // 2, (last - t - 1) // 2)
    levels = [frozenset(k for k in range(3) if (int(s) >> k) & 1) for s in draws.levels[mine]]
    feature, threshold = draws.feature[mine].tolist(), draws.threshold[mine].tolist()
    rules, nodes = iter(zip(feature, threshold, levels, strict=True)), iter(draws.size[first:last])

    def build() -> Tree:
        if next(nodes) == 1:
            return ()
        rule = next(rules)
        left = build()
        return rule, left, build()

    return build()


def leaves_of(draws: Draws, t: int) -> np.ndarray:
    first = (draws.node_offset[t] + t) // 2
    return draws.leaf[first : first + draws.n_leaves.ravel()[t]]


# ------------------------------------------------------------------ HMC-DF


def with_rules(tree: model.Tree, rng: np.random.Generator, columns: list[Column]) -> Tree:
    """The same shape and thresholds, with a rule of the prior on each column."""
    if isinstance(tree, model.Leaf):
        return ()
    f, threshold = int(tree.rule), tree.threshold
    levels, holes = columns[f]
    right = frozenset()
    if levels:
        sets = subsets(list(range(levels)))
        right, threshold = sets[rng.integers(len(sets))], 0.5
    elif holes:
        right = frozenset({0}) if rng.random() < 0.5 else frozenset()
        if rng.random() < IS_MISSING:
            threshold = np.inf if right else -np.inf
        elif holes == IMPUTED:
            sides = sides_of(holes)
            right = list(sides)[rng.choice(len(sides), p=list(sides.values()))]
    left, other = (with_rules(side, rng, columns) for side in (tree.left, tree.right))
    return (f, threshold, right), left, other


def replicate_df(case: Case, rng: np.random.Generator):
    """The truth, and KEPT draws, of each quantity."""
    columns = case.columns
    X, new = rows_of(rng, 25, case.imputed), rows_of(rng, 4, case.imputed)
    drawn = model.sample_tree(rng, len(columns), PRIOR)
    tree = with_rules(drawn, rng, columns)
    of_row, at_new = phi(tree, X, case.h, columns), phi(tree, new, case.h, columns)
    truth = {"leaves": float(of_row.shape[1])}
    if case.n_classes:
        law = rng.dirichlet(np.full(case.n_classes, PRIOR.classes), size=of_row.shape[1])
        y = np.array([rng.choice(case.n_classes, p=p / p.sum()) for p in of_row @ law])
        value = law[:, 0]
    else:
        truth["sigma"] = sigma = model.sample_sigma(rng, PRIOR)
        value = np.array([leaf.mu for leaf in model.leaves(drawn)])
        y = of_row @ value + sigma * rng.normal(size=len(X))
    there, gone = int(np.argmin(is_gone(new[:, 0]))), int(np.argmax(is_gone(new[:, 0])))
    truth["prediction"] = float(at_new[there] @ value)
    truth["of a hole"] = float(at_new[gone] @ value)
    configuration = configured(
        "hmc-df", h=case.h, alpha_split=PRIOR.alpha_split, beta_split=PRIOR.beta_split,
        max_leaves=PRIOR.max_leaves, class_prior=PRIOR.classes, sigma_prior=PRIOR.sigma,
    )  # fmt: skip
    draws, _ = sample(
        Problem(as_columns(X), y, case.n_classes, None, kinds_of(columns)), configuration,
        n_chains=2, n_warmup=300, n_draws=KEPT * 10, n_jobs=2, seed=int(rng.integers(2**31)),
    )  # fmt: skip
    kept = np.linspace(0, draws.n_leaves.size - 1, KEPT).astype(int)
    found = {name: np.empty(KEPT) for name in truth}
    for j, t in enumerate(kept):
        weights, leaf = phi(tree_of(draws, t), new, case.h, columns), leaves_of(draws, t)
        if case.n_classes:
            leaf = np.array([rng.dirichlet(rows + PRIOR.classes) for rows in leaf])
        found["prediction"][j] = weights[there] @ leaf[:, 0]
        found["of a hole"][j] = weights[gone] @ leaf[:, 0]
        found["leaves"][j] = len(leaf)
        if not case.n_classes:
            found["sigma"][j] = draws.sigma.ravel()[t]
    return truth, found


# ------------------------------------------------------------------ CGM


def parted(toy: SpecialToy, rng: np.random.Generator, rows: tuple[int, ...], depth: int = 0):
    """Rows of each leaf of a tree drawn from the prior, top down, and its depth."""
    rules = list(toy.rules_at(rows))
    if not rules or rng.random() >= toy.prior.alpha_split * (1 + depth) ** -toy.prior.beta_split:
        return [rows], 0
    mass = np.array([own for _, _, own, _, _ in rules])
    *_, left, right = rules[rng.choice(len(rules), p=mass / mass.sum())]
    first, second = (parted(toy, rng, side, depth + 1) for side in (left, right))
    return [*first[0], *second[0]], 1 + max(first[1], second[1])


def replicate_cgm(case: Case, rng: np.random.Generator):
    X = rows_of(rng, 18)
    X[:, 2] = X[:, 2].round(1)  # ties
    prior = HardPrior(case.kind, 0.8, 0.7, max_leaves=7)
    leaves = CLASSES if case.n_classes else NORMAL
    blank = SpecialToy(X, np.zeros(len(X)), prior, leaves, columns=tuple(COLUMNS))
    while True:
        parts, depth = parted(blank, rng, tuple(range(len(X))))
        if len(parts) <= prior.max_leaves:
            break
    leaf = np.empty(len(X), np.int64)
    for k, rows in enumerate(parts):
        leaf[list(rows)] = k
    y, values = simulate(rng, leaves, leaf, len(parts))
    toy = SpecialToy(X, y, prior, leaves, columns=tuple(COLUMNS))
    gone = int(np.argmax(np.isnan(X[:, 0])))
    truth = {"leaves": float(len(parts)), "depth": float(depth), "value": values[leaf[0], 0]}
    truth |= {"of a hole": values[leaf[gone], 0], "beside it": float((leaf == leaf[gone]).sum())}
    draws, _ = sample(
        Problem(as_columns(X), y, toy.n_classes, None, kinds_of(COLUMNS)),
        configuration_of(toy, moves="informed"),
        n_chains=1, n_warmup=50, n_draws=KEPT * 8, n_jobs=1, seed=int(rng.integers(2**31)),
    )  # fmt: skip
    found = {name: np.empty(KEPT) for name in truth}
    for j in range(KEPT):
        tree, own = tree_of(draws, 8 * j), leaves_of(draws, 8 * j)
        at = phi(tree, X, 0.0).argmax(axis=1)
        if case.n_classes:
            own = np.array([rng.dirichlet(c + np.array(leaves.class_prior)) for c in own])
        found["leaves"][j], found["depth"][j] = len(own), depth_of(tree)
        found["value"][j], found["of a hole"][j] = own[at[0], 0], own[at[gone], 0]
        found["beside it"][j] = (at == at[gone]).sum()
    return truth, found


# ------------------------------------------------------------------ ranks


def ranks_of(case: Case, rng: np.random.Generator, n: int) -> dict[str, list[int]]:
    ranks: dict[str, list[int]] = {}
    for _ in range(n):
        truth, found = (replicate_cgm if case.kind else replicate_df)(case, rng)
        for name, value in truth.items():
            ranks.setdefault(name, []).append(sbc_rank(found[name], value, rng))
    return ranks


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_ranks_are_uniform(case, rng):
    for name, ranks in ranks_of(case, rng, N_REPLICATES).items():
        test = sbc_uniformity(ranks, KEPT, n_bins=20, level=LEVEL)
        print(f"{case.name}, {name}: p = {test.p_value:.3f}")
        assert test.ok, (name, test)


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_REPLICATES
    for k, case in enumerate(CASES):
        begun = time.perf_counter()
        for name, ranks in ranks_of(case, np.random.default_rng(k), n).items():
            test = sbc_uniformity(ranks, KEPT, n_bins=20 if n >= 100 else n // 5)
            print(f"| {case.name} | {name} | {test.p_value:.3f} |", flush=True)
        print(f"{time.perf_counter() - begun:.0f} s", flush=True)
