"""Synthetic posteriors of random trees, so that what reads draws is tested without a sampler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hamiltree.inputs.preprocess import Preprocessing
from hamiltree.posterior import Posterior
from hamiltree.posterior.draws import Draws, RunInfo, TrainingData

from .configuring import changed, configured

P = 4
"""Used columns; a constant column stands before the last of them."""


def random_sizes(n_leaves: int, rng: np.random.Generator) -> list[int]:
    """Subtree sizes in preorder of a random tree."""
    if n_leaves == 1:
        return [1]
    left = int(rng.integers(1, n_leaves))
    sides = random_sizes(left, rng) + random_sizes(n_leaves - left, rng)
    return [2 * n_leaves - 1, *sides]


def depth_of(sizes: list[int]) -> int:
    if len(sizes) == 1:
        return 0
    left = sizes[1]
    return 1 + max(depth_of(sizes[1 : 1 + left]), depth_of(sizes[1 + left :]))


def fake_draws(
    seed: int,
    *,
    n_chains: int = 2,
    n_draws: int = 5,
    n_classes: int = 3,
    oblique: bool = False,
    h: float = 0.05,
    max_leaves: int = 7,
    n_leaves: np.ndarray | None = None,
) -> Draws:
    rng = np.random.default_rng(seed)
    shape = (n_chains, n_draws)
    if n_leaves is None:
        n_leaves = rng.integers(1, max_leaves + 1, size=shape)
    trees = [random_sizes(int(n), rng) for n in n_leaves.ravel()]
    leaves = int(n_leaves.sum())
    splits = leaves - len(trees)
    counts = rng.gamma(1.0, 5.0, size=(leaves, n_classes))
    return Draws(
        n_chains=n_chains,
        n_draws=n_draws,
        node_offset=np.cumsum([0, *(len(tree) for tree in trees)]),
        size=np.concatenate(trees).astype(np.int32),
        feature=(np.full(splits, -1) if oblique else rng.integers(0, P, splits)).astype(np.int32),
        threshold=rng.uniform(size=splits),
        split_weights=rng.dirichlet(np.ones(P), size=splits) if oblique else np.empty((splits, 0)),
        leaf=counts if n_classes else rng.normal(size=(leaves, 1)),
        h=np.full(P, h),
        n_leaves=np.asarray(n_leaves, dtype=np.int64),
        depth=np.array([depth_of(tree) for tree in trees]).reshape(shape),
        log_likelihood=rng.normal(size=shape),
        log_posterior=rng.normal(size=shape),
        sigma=np.full(shape, np.nan) if n_classes else rng.uniform(0.1, 0.5, size=shape),
        weights_of_draws=np.full(shape, 1 / (n_chains * n_draws)),
    )


def fake_preprocessing(n_classes: int = 3) -> Preprocessing:
    return Preprocessing(
        feature_names=("length", "width", "mass (kg)", "constant", "age"),
        used=np.array([0, 1, 2, 4]),
        minimum=np.array([-3.0, 0.0, 100.0, 1e-3]),
        span=np.array([10.0, 2.0, 1500.0, 4e-3]),
        classes=np.array(["ash", "beech", "cedar", "fir", "oak"])[:n_classes]
        if n_classes
        else None,
        y_mean=0.0 if n_classes else 40.0,
        y_sd=1.0 if n_classes else 12.0,
    )


def fake_rows(n: int, seed: int = 0) -> np.ndarray:
    """[n, 5] rows in the user's units, a little beyond the training range."""
    scale = fake_preprocessing()
    unit = np.random.default_rng(seed).uniform(-0.05, 1.05, size=(n, P))
    rows = np.ones((n, 5))
    rows[:, scale.used] = scale.minimum + unit * scale.span
    return rows


def fake_info(n_chains: int, n_draws: int) -> RunInfo:
    ones = np.ones(n_chains, dtype=np.int64)
    shape = (n_chains, n_draws)
    return RunInfo(
        acceptance={
            "warmup": {"grow": (5 * ones, 20 * ones), "prune": (0 * ones, 0 * ones)},
            "sampling": {"grow": (3 * ones, 10 * ones), "prune": (1 * ones, 4 * ones)},
        },
        stats={
            "divergent": np.zeros(shape, dtype=bool),
            "nuts_depth": np.full(shape, 3, dtype=np.int64),
            "step_size": np.full(shape, 0.25),
        },
        seconds=1.5,
        stopped="n_draws",
        n_warmup=500,
        seed=7,
    )


def fake_training(n: int, n_classes: int, seed: int = 0) -> TrainingData:
    """Rows of ``fake_rows`` with targets that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n) if n_classes else 40 + 12 * rng.normal(size=n)
    return TrainingData(fake_rows(n, seed), y)


def fake_posterior(seed: int = 0, *, n_training: int = 0, **options: object) -> Posterior:
    """``n_training`` rows of training data, unless that is 0."""
    draws = fake_draws(seed, **options)  # type: ignore[arg-type]
    n_classes = draws.leaf.shape[1] if np.isnan(draws.sigma).all() else 0
    method = "hmc-dfi" if draws.split_weights.shape[1] else "hmc-df"
    return Posterior(
        draws,
        fake_info(draws.n_chains, draws.n_draws),
        fake_preprocessing(n_classes),
        configured(method, h=None if method in ("cgm", "wu", "smc") else float(draws.h[0])),
        training=fake_training(n_training, n_classes, seed) if n_training else None,
    )


def with_learned_h(posterior: Posterior, n_columns: int, seed: int = 0) -> Posterior:
    """The same trees, each with an h of its own: one (``n_columns`` 1), or one per column."""
    trees = posterior.weights.size
    h = np.random.default_rng(seed).uniform(0.01, 0.2, size=(trees, n_columns))
    configuration = changed(posterior.configuration, h="learn", h_by_feature=n_columns > 1)
    return Posterior(
        replace(posterior.draws, h=h), posterior.info, posterior.preprocessing, configuration,
        training=posterior.training,
    )  # fmt: skip
