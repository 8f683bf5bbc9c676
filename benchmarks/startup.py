"""Seconds from a bare interpreter to a fitted tree: first ever (compiling), and later ones.

Each first fit runs in a process of its own with an empty cache; then all of them, one after the
other, share one cache. Python keeps its byte code, as of an installed package, and has it before
the first measurement: otherwise each process would compile some 200 modules of Python.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from rich.console import Console
from rich.table import Table

MAX_COLD_SECONDS = 25.0
MAX_ALL_SECONDS = 90.0
MAX_WARM_SECONDS = 2.0
MAX_IMPORT_SECONDS = 1.2
WARM_RUNS = 3

FITS = {
    "classification": ("BayesianTreeClassifier", {}),
    "regression, learned h": ("BayesianTreeRegressor", {}),
    "classification, h=0": ("BayesianTreeClassifier", {"h": 0}),
    "hmc-dfi": ("BayesianTreeClassifier", {"method": "hmc-dfi"}),
    "cgm": ("BayesianTreeClassifier", {"method": "cgm"}),
    "wu": ("BayesianTreeClassifier", {"method": "wu"}),
    "smc": ("BayesianTreeClassifier", {"method": "smc"}),
}

SCRIPT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import hamiltree
rng = np.random.default_rng(0)
X = rng.random((150, 4))
signal = X[:, 0] > 0.5
estimator, parameters = sys.argv[1], eval(sys.argv[2])
y = signal.astype(int) if "Classifier" in estimator else signal + 0.1 * rng.normal(size=150)
getattr(hamiltree, estimator)(
    n_draws=100, n_jobs=2, random_state=0, progress=False, **parameters
).fit(X, y)
"""


WITH_BYTE_CODE = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def seconds_of(program: str, *arguments: str, cache: str) -> float:
    """Wall time of a fresh interpreter that runs a program and ends."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**WITH_BYTE_CODE, "NUMBA_CACHE_DIR": cache},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def processor_seconds() -> float:
    """Of all processes that have ended so far: beside other work they say more than wall time."""
    return sum(os.times()[2:4])  # of children, theirs included


def run(console: Console) -> list[tuple[str, str, str, bool | None]]:
    """Print the table; return (claim, measured, goal, met)."""
    table = Table(title="import hamiltree and fit 150 rows, 4 chains")
    for heading in (
        "fit",
        "first ever, s",
        "processor time, s",
        "after those above, s",
        f"later, s ({WARM_RUNS} runs)",
    ):
        table.add_column(heading)
    claims = []
    together = 0.0
    seconds_of("import hamiltree", cache=os.devnull)  # writes the byte code
    with tempfile.TemporaryDirectory() as shared:
        for name, (estimator, parameters) in FITS.items():
            given = (SCRIPT, estimator, repr(parameters))
            with tempfile.TemporaryDirectory() as cache:
                before = processor_seconds()
                cold = seconds_of(*given, cache=cache)
                processor = processor_seconds() - before
            added = seconds_of(*given, cache=shared)
            together += added
            warm = statistics.median(seconds_of(*given, cache=shared) for _ in range(WARM_RUNS))
            table.add_row(name, f"{cold:.1f}", f"{processor:.1f}", f"{added:.1f}", f"{warm:.2f}")
            for what, measured, limit in (
                ("first fit, compilation included", cold, MAX_COLD_SECONDS),
                ("warm import and small fit", warm, MAX_WARM_SECONDS),
            ):
                claims.append(
                    (f"{name}: {what}", f"{measured:.1f} s", f"<= {limit:g} s", measured <= limit)
                )
        loading, peers = (
            statistics.median(seconds_of(program, cache=shared) for _ in range(WARM_RUNS))
            for program in (
                "from hamiltree import BayesianTreeClassifier",
                "import sklearn.base, numba",
            )
        )
    claims.append(
        (
            "all first fits, one after the other",
            f"{together:.1f} s",
            f"<= {MAX_ALL_SECONDS:g} s",
            together <= MAX_ALL_SECONDS,
        )
    )
    claims.append(
        (
            "import hamiltree",
            f"{loading:.2f} s, {loading / peers:.2f} of import sklearn.base, numba",
            f"<= {MAX_IMPORT_SECONDS:g} s",
            loading <= MAX_IMPORT_SECONDS,
        )
    )
    console.print(table)
    return claims
