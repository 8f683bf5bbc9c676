"""Synthetic posteriors of random trees whose rules impute missing cells, or send them to a side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hamiltree.inputs.columns import CodedRows, Column, coded
from hamiltree.inputs.preprocess import Preprocessing, learn
from hamiltree.posterior import Posterior
from hamiltree.posterior.draws import Draws, TrainingData

from ..support.configuring import changed
from ..support.fake_draws import fake_draws, fake_posterior

COLUMNS = (
    Column(),
    Column(levels=("a", "b", "c")),
    Column(missing=True),
    Column(missing=True, whole=True),
)
NAMES = ("length", "group", "age", "count")
KINDS = np.array([0, 3, -2, -2])


def imputing_rows(n: int, seed: int = 0) -> CodedRows:
    """[n, 4]; ages and counts follow the length and the group, and are missing in places."""
    rng = np.random.default_rng(seed)
    length, group = rng.uniform(-3.0, 7.0, n), rng.integers(3, size=n)
    age = 40 + 4 * length + 5 * (group == 1) + rng.normal(0, 2, n)
    count = np.floor(20 + 2 * length + rng.normal(0, 1, n))
    rows = np.column_stack([length, group, age, count])
    rows[:, 2:][rng.random((n, 2)) < 0.35] = np.nan
    rows[:3, 1] = [0, 1, 2]
    rows[:3, 2:] = [[50.0, np.nan], [np.nan, 22.0], [np.nan, np.nan]]
    return coded(rows)


def imputing_posterior(
    seed: int, *, h: float = 0.05, n_chains: int = 2, n_draws: int = 20, n_classes: int = 3
) -> Posterior:
    rng = np.random.default_rng(seed)
    rows = imputing_rows(60, seed)
    base = fake_posterior(seed, n_chains=n_chains, n_draws=n_draws, n_classes=n_classes, h=h)
    if n_classes:
        y = rng.integers(n_classes, size=60)
        about = {"classes": np.array(["ash", "beech", "cedar"])[:n_classes]}
    else:
        y = rng.normal(size=60)
        about = {"y": 40 + 12 * y}
    scale = learn(rows, NAMES, columns=COLUMNS, impute=True, **about)
    draws = fake_draws(seed, n_chains=n_chains, n_draws=n_draws, n_classes=n_classes, h=h)
    configuration = changed(base.configuration, h=h)
    training = TrainingData(np.asarray(rows), y)
    return Posterior(_special(draws, rng), base.info, scale, configuration, training=training)


def with_parts(
    post: Posterior, *, draws: Draws | None = None, scale: Preprocessing | None = None
) -> Posterior:
    """The posterior with other draws, or another preprocessing."""
    return Posterior(
        draws or post.draws, post.info, scale or post.preprocessing, post.configuration,
        training=post.training,
    )  # fmt: skip


def _special(draws: Draws, rng: np.random.Generator) -> Draws:
    """Rules of each kind on each column."""
    n = len(draws.feature)
    feature = rng.integers(4, size=n).astype(np.int32)
    threshold, levels = draws.threshold.copy(), np.zeros(n, np.uint64)
    for k, f in enumerate(feature):
        if f == 1:
            threshold[k], levels[k] = 0.5, rng.integers(1, 7)
        elif f > 1:
            levels[k] = rng.choice([0, 1, 2, 2])
            if levels[k] < 2 and rng.random() < 0.3:
                threshold[k] = np.inf if levels[k] else -np.inf
    return replace(draws, feature=feature, threshold=threshold, levels=levels, kinds=KINDS)
