"""Synthetic posteriors of random trees on tables with missing cells and categories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hamiltree.inputs.columns import Column
from hamiltree.inputs.preprocess import learn
from hamiltree.posterior import Posterior
from hamiltree.posterior.draws import Draws, TrainingData

from .fake_draws import fake_draws, fake_posterior

COLUMNS = (
    Column(),
    Column(levels=("a", "b", "c")),
    Column(missing=True),
    Column(levels=("x", "y", "z", "(other)"), missing=True, others=("u", "v")),
)
"""Numbers and categories, of each one with missing cells in training and one without."""
NAMES = ("length", "group", "age", "site")


def special_rows(n: int, seed: int = 0) -> np.ndarray:
    """[n, 4] as training had them: NaN for missing numbers, codes of categories."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack(
        [
            rng.uniform(-3.0, 7.0, n),
            rng.integers(3, size=n),
            rng.uniform(20.0, 80.0, n),
            rng.integers(5, size=n),
        ]
    )
    rows[:5, 0] = [-3.0, 7.0, 0.0, 0.0, 0.0]
    rows[:5, 1] = [0, 1, 2, 2, 2]
    rows[:5, 2] = [20.0, 80.0, np.nan, np.nan, 50.0]
    rows[:5, 3] = np.arange(5)
    rows[5:, 2][rng.random(n - 5) < 0.3] = np.nan
    return rows


def fake_special_posterior(
    seed: int, *, n_draws: int = 40, n_classes: int = 3, expand: bool = False
) -> Posterior:
    """Hard trees; with ``expand`` as methods have them that take numbers only."""
    rng = np.random.default_rng(seed)
    rows = special_rows(60, seed)
    base = fake_posterior(seed, n_draws=n_draws, n_classes=n_classes, h=0.0)
    y = rng.integers(n_classes, size=60) if n_classes else rng.normal(size=60)
    about = {"columns": COLUMNS, "expand": expand}
    if n_classes:
        scale = learn(rows, NAMES, classes=np.arange(n_classes), **about)
    else:
        scale = learn(rows, NAMES, y=y, **about)
    draws = fake_draws(seed, n_draws=n_draws, n_classes=n_classes, h=0.0)
    draws = replace(draws, h=np.zeros(len(scale.used)))
    draws = _plain(draws, len(scale.used), rng) if expand else _special(draws, rng)
    return Posterior(draws, base.info, scale, base.configuration, training=TrainingData(rows, y))


def _plain(draws: Draws, p: int, rng: np.random.Generator) -> Draws:
    return replace(draws, feature=rng.integers(p, size=len(draws.feature)).astype(np.int32))


def _special(draws: Draws, rng: np.random.Generator) -> Draws:
    n = len(draws.feature)
    feature = rng.integers(4, size=n).astype(np.int32)
    threshold = draws.threshold.copy()
    levels = np.zeros(n, np.uint64)
    for k, f in enumerate(feature):
        if f in (1, 3):
            levels[k] = rng.integers(1, 2 ** (3 if f == 1 else 5) - 1)
            threshold[k] = 0.5
        elif f == 2:
            levels[k] = rng.integers(2)
            if rng.random() < 0.3:
                threshold[k] = np.inf if levels[k] else -np.inf
    kinds = np.array([0, 3, -1, 5])
    return replace(draws, feature=feature, threshold=threshold, levels=levels, kinds=kinds)
