"""Seconds from a bare interpreter to a fitted tree: first ever (compiling), and later ones."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from rich.console import Console
from rich.table import Table

MAX_COLD_SECONDS = 45.0
MAX_WARM_SECONDS = 3.0
WARM_RUNS = 3

SCRIPT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import hamiltree
rng = np.random.default_rng(0)
X = rng.random((150, 4))
signal = X[:, 0] > 0.5
estimator = getattr(hamiltree, sys.argv[1])
y = signal.astype(int) if "Classifier" in sys.argv[1] else signal + 0.1 * rng.normal(size=150)
estimator(n_warmup=100, n_draws=100, n_jobs=2, random_state=0, progress=False).fit(X, y)
"""


def seconds_to_fit(estimator: str, cache: str) -> float:
    """Wall time of a fresh interpreter that imports, fits 150 rows and ends."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", SCRIPT, estimator],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def run(console: Console) -> list[tuple[str, str, str, bool | None]]:
    """Print the table; return (claim, measured, goal, met)."""
    table = Table(title="import hamiltree and fit 150 rows, 4 chains x 200 iterations")
    for heading in ("estimator", "first ever, s", f"later, s (median of {WARM_RUNS})"):
        table.add_column(heading)
    claims = []
    for estimator in ("BayesianTreeClassifier", "BayesianTreeRegressor"):
        # An empty cache for each: the second estimator must not profit from the first.
        with tempfile.TemporaryDirectory() as cache:
            cold = seconds_to_fit(estimator, cache)
            warm = statistics.median(seconds_to_fit(estimator, cache) for _ in range(WARM_RUNS))
        table.add_row(estimator, f"{cold:.1f}", f"{warm:.2f}")
        claims += [
            (
                f"{estimator}: cold first fit, compilation included",
                f"{cold:.1f} s",
                f"<= {MAX_COLD_SECONDS:.0f} s",
                cold <= MAX_COLD_SECONDS,
            ),
            (
                f"{estimator}: warm import and small fit",
                f"{warm:.2f} s",
                f"<= {MAX_WARM_SECONDS:.0f} s",
                warm <= MAX_WARM_SECONDS,
            ),
        ]
    console.print(table)
    return claims
