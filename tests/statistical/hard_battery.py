"""Runs CGM and WU on the toys of ``reference.enumerate_hard`` and reads off what is known there."""

from __future__ import annotations

from typing import Any

import numpy as np

from hamiltree.core.hard.moves import HardModel, HardState, log_marginal, settle
from hamiltree.core.hard.shapes import log_tree_prior
from hamiltree.core.predict import tree_predictions
from hamiltree.methods.base import Configuration
from hamiltree.posterior.draws import Draws, RunInfo
from hamiltree.running.run import Problem, sample
from hamiltree.samplers.hard import make_state

from ..reference.enumerate_hard import HardPrior, Label, Leaves, Toy, labels_of
from ..reference.simulate_hard import depth, draw_tree, n_leaves, splits
from ..reference.stats import compare_means, total_variation
from ..support.configuring import configured, usable

# Few values, unevenly spread: what is available below a split depends on the split.
ROWS = np.array(
    [[0.1, 0.2], [0.1, 0.5], [0.4, 0.2], [0.4, 0.9], [0.7, 0.5], [0.9, 0.2], [0.9, 0.9], [0.7, 0.9]]
)
MORE_ROWS = np.random.default_rng(8).integers(0, [4, 7, 20], size=(16, 3)) / [3, 6, 19]
CLASSES = np.array([0, 1, 1, 0, 0, 1, 2, 0])
TARGET = np.array([0.3, -1.2, 0.8, 0.1, 2.0, -0.4, 1.1, 0.6])
LEAVES = {
    "classes": Leaves(class_prior=(1.0, 0.5, 2.0)),
    "regression": Leaves(),
    "common": Leaves(common=True),
}


def make_toy(kind: str, leaves: str, *, max_leaves: int = 4, **prior: object) -> Toy:
    """``kind`` is a rule prior of CGM, or "wu"; ``leaves`` one of LEAVES."""
    prior_of_toy = HardPrior(kind, max_leaves=max_leaves, **prior)  # type: ignore[arg-type]
    return Toy(ROWS, CLASSES if leaves == "classes" else TARGET, prior_of_toy, LEAVES[leaves])


def configuration_of(toy: Toy, **overrides: object) -> Configuration[Any]:
    prior, leaves = toy.prior, toy.leaves
    options: dict[str, Any] = {
        "method": "wu" if prior.kind == "wu" else "cgm",
        "rule_prior": "uniform" if prior.kind == "wu" else prior.kind,
        "alpha_split": prior.alpha_split,
        "beta_split": prior.beta_split,
        "min_leaves": prior.min_leaves,
        "max_leaves": prior.max_leaves,
        "expected_splits": prior.expected_splits,
        "left_share": prior.left_share,
        "feature_prior": prior.features,
        "tau_prior": prior.tau,
        "class_prior": leaves.class_prior or 1.0,
        "variance_prior": leaves.variance_prior,
        "mean_prior": leaves.mean_prior,
        "variance": "common" if leaves.common else "leaf",
        "moves": "prior",
        "proposals": 12,
        "triples": 2,
        **overrides,
    }
    method = options.pop("method")
    return configured(method, **usable(method, options))


def run_hard(
    toy: Toy, *, n_draws: int, seed: int, n_chains: int = 4, **overrides: object
) -> tuple[Draws, RunInfo]:
    return sample(
        Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes, toy.row_weights),
        configuration_of(toy, **overrides),
        n_chains=n_chains,
        n_warmup=200,
        n_draws=n_draws,
        n_jobs=2,
        seed=seed,
    )


def assert_exact(
    toy: Toy, draws: Draws, *, level: float, likelihood: bool = True, most: float = np.inf
) -> None:
    """Total variation over all trees, and z-tests of what the leaves say at every row."""
    labels = labels_by_chain(toy, draws)
    distance = total_variation(labels, toy.exact(likelihood=likelihood), level=level)
    exact = toy.means(likelihood=likelihood)
    means = compare_means(at_rows(toy, draws), exact, level=level)
    print(f"{len(toy.trees)} trees, total variation {distance.value:.4f} of which noise "
          f"{distance.noise:.4f} +- {distance.standard_error:.4f}")  # fmt: skip
    assert distance.value < most
    assert distance.ok, distance
    assert means.ok, means


def labels_by_chain(toy: Toy, draws: Draws) -> list[list[Label]]:
    labels = labels_of(toy, draws.node_offset, draws.size, draws.feature, draws.threshold)
    n = draws.n_draws
    return [labels[c * n : (c + 1) * n] for c in range(draws.n_chains)]


def at_rows(toy: Toy, draws: Draws) -> dict[str, np.ndarray]:
    """[chain, draw] of every functional of ``Toy.means``, routed by the library."""
    forest = draws.forest
    if toy.n_classes:
        counts = draws.leaf + np.array(toy.leaves.class_prior)
        values = np.ascontiguousarray(counts[:, :1] / counts.sum(axis=1, keepdims=True))
    else:
        values = np.column_stack([draws.leaf[:, 0], np.log(draws.leaf[:, 1])])
    out = tree_predictions(forest, values, np.ascontiguousarray(toy.X.T))
    out = out.reshape(draws.n_chains, draws.n_draws, len(toy.X), -1)
    names = ("fitted", "log sd")[: out.shape[-1]]
    rows = range(len(toy.X))
    return {f"{name} {i}": out[:, :, i, k] for k, name in enumerate(names) for i in rows}


def assert_known(model: HardModel, state: HardState) -> None:
    """What a chain carries along with its tree equals what is computed from scratch."""
    fresh = make_state(model)
    for mine, theirs in zip(fresh.tree, state.tree, strict=True):
        mine[...] = theirs
    assert settle(model, fresh.tree, fresh.cells, 0, np.nan, fresh.spare, fresh.rule_work)
    n = int(state.tree.n_nodes[0])
    leaf = state.tree.size[:n] == 1
    for name in ("start", "stop", "stats", "part", "can_split"):
        mine, theirs = getattr(fresh.cells, name)[:n], getattr(state.cells, name)[:n]
        keep = leaf if name == "part" else np.ones(n, bool)
        np.testing.assert_allclose(mine[keep], theirs[keep], atol=1e-12)
    for i in range(n):
        a, b = fresh.cells.start[i], fresh.cells.stop[i]
        assert set(fresh.cells.rows[a:b]) == set(state.cells.rows[a:b])
    np.testing.assert_allclose(log_marginal(model, fresh.tree, fresh.cells), state.log_like[0])
    np.testing.assert_allclose(
        log_tree_prior(model.shape, fresh.tree, fresh.cells), state.log_prior[0]
    )


def prior_functionals(
    rng: np.random.Generator, toy: Toy, draws: Draws, *, n: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Leaves, depth, and the rules of the first and the last split: of n fresh trees, and of draws.

    Indicators of each number and feature; thresholds and their squares, 0 without a split.
    """
    limit = toy.prior.max_leaves
    trees = [draw_tree(rng, toy.X, toy.prior) for _ in range(n)]
    rules = [splits(tree) or [(-1, 0.0)] for tree in trees]
    fresh = _indicators(
        np.array([n_leaves(tree) for tree in trees]),
        np.array([depth(tree) for tree in trees]),
        {name: np.array([r[k] for r in rules]) for name, k in (("first", 0), ("last", -1))},
        limit,
        toy.X.shape[1],
    )
    count = np.arange(draws.n_leaves.size)
    places = {
        "first": (draws.node_offset[:-1] - count) // 2,
        "last": (draws.node_offset[1:] - count - 1) // 2 - 1,
    }
    exists = draws.n_leaves.ravel() > 1
    found = {}
    for name, place in places.items():
        k = np.where(exists, place, 0)
        found[name] = np.column_stack(
            [np.where(exists, draws.feature[k], -1), np.where(exists, draws.threshold[k], 0.0)]
        )
    flat = _indicators(draws.n_leaves.ravel(), draws.depth.ravel(), found, limit, toy.X.shape[1])
    square = (draws.n_chains, draws.n_draws)
    return fresh, {name: value.reshape(square) for name, value in flat.items()}


def _indicators(
    leaves: np.ndarray, depths: np.ndarray, rules: dict[str, np.ndarray], limit: int, p: int
) -> dict[str, np.ndarray]:
    out = {f"leaves {k}": (leaves == k).astype(float) for k in range(1, limit + 1)}
    out |= {f"depth {k}": (depths == k).astype(float) for k in range(4)}
    for name, rule in rules.items():
        out |= {f"{name} feature {f}": (rule[:, 0] == f).astype(float) for f in range(p)}
        out |= {f"{name} threshold": rule[:, 1], f"{name} threshold^2": rule[:, 1] ** 2}
    return out
