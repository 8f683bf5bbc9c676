"""What a user waits for after ``fit``, with 4 x 5,000 trees: predictions, files, a tree to read."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from hamiltree import BayesianTreeClassifier, Posterior
from hamiltree.datasets import load_bcw
from hamiltree.posterior.draws import Draws, take

N_TREES = 20_000
N_ROWS = 100_000
MAX_PREDICT_SECONDS = 20.0
MAX_FILE_SECONDS = 2.0
MAX_FILE_MB = 20.0


def many_trees(h: float) -> Posterior:
    """Sampled trees of the biopsies, each repeated until there are 4 x 5,000 of them."""
    data = load_bcw()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = BayesianTreeClassifier(
            h=h, n_draws=1000, random_state=0, n_jobs=-1, progress=False
        )
        posterior = fitted.fit(data.data, data.target).posterior_
    flat = take(posterior.draws, np.arange(N_TREES) % posterior.weights.size)
    shape = (4, N_TREES // 4)
    by_draw = {
        name: getattr(flat, name).reshape(shape)
        for name in ("n_leaves", "depth", "log_likelihood", "log_posterior", "sigma")
    }
    weights = np.full(shape, 1 / N_TREES)
    draws = Draws(
        **{**vars(flat), **by_draw, "n_chains": 4, "n_draws": shape[1], "weights_of_draws": weights}
    )
    repeated = {name: np.tile(stat, (1, 5)) for name, stat in posterior.info.stats.items()}
    info = replace(posterior.info, stats=repeated)
    whole = Posterior(
        draws, info, posterior.preprocessing, posterior.configuration, training=posterior.training
    )
    return whole.monitored_at(data.data[:20])


def seconds(task: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - wall, time.process_time() - processor


def run(console: Console) -> Iterator[tuple[str, str, str, bool | None]]:
    """Measure; yields rows of the summary (claim, measured, goal, met)."""
    table = Table(title=f"{N_TREES} trees")
    for heading in ("", "wall s", "processor s"):
        table.add_column(heading)
    rng = np.random.default_rng(0)
    for name, h in (("soft", 0.01), ("hard", 0.0)):
        posterior = many_trees(h)
        data = posterior.data("the benchmark").X
        rows = data[rng.integers(0, len(data), N_ROWS)] + rng.normal(
            0, 0.3, (N_ROWS, data.shape[1])
        )
        posterior.predict_mean(rows[:300])
        wall, processor = seconds(lambda p=posterior, r=rows: p.predict_mean(r, n_jobs=-1))
        leaves = f"{name} splits, {posterior.n_leaves.mean():.1f} leaves"
        table.add_row(f"predict {N_ROWS} rows, {leaves}", f"{wall:.1f}", f"{processor:.1f}")
        yield (
            f"{N_TREES} trees predict {N_ROWS} rows, {leaves}",
            f"{wall:.1f} s ({processor:.0f} s of processor time)",
            f"{MAX_PREDICT_SECONDS:.0f} s",
            wall <= MAX_PREDICT_SECONDS,
        )
    for name, task in {
        "best_tree": lambda: posterior.best_tree().to_text(),
        "representative_tree": lambda: posterior.representative_tree().to_text(),
        "shapes": lambda: posterior.shapes(),
    }.items():
        table.add_row(name, *(f"{s:.2f}" for s in seconds(task)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trees.nc"
        save, _ = seconds(lambda: posterior.save(path))
        load, _ = seconds(lambda: Posterior.load(path))
        size = os.path.getsize(path) / 1e6
    yield (
        f"save and load {N_TREES} trees",
        f"{save:.2f} + {load:.2f} s",
        f"{MAX_FILE_SECONDS:.0f} s",
        save + load <= MAX_FILE_SECONDS,
    )
    yield "size of the file", f"{size:.1f} MB", f"{MAX_FILE_MB:.0f} MB", size <= MAX_FILE_MB
    console.print(table)
