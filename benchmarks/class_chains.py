"""Do the chains of soft classification agree as soon with a learned h, and with another prior?

Four chains of 500 + 1,000, the default, on three data sets: R-hat of the worst prediction, the
smallest effective sample size of a prediction, and seconds of processor, each the median over the
seeds.

``HAMILTREE_BENCH_SEEDS`` says how many seeds (3).
"""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
from rich.console import Console
from sklearn.datasets import load_iris, load_wine

from hamiltree import BayesianTreeClassifier
from hamiltree.datasets import load_bcw
from hamiltree.methods import HMCDF

from .markdown import Claim, Report, table

N_SEEDS = int(os.environ.get("HAMILTREE_BENCH_SEEDS", "3"))
CHOICES = {
    "h = .01, class prior 1": (0.01, HMCDF(class_prior=1.0)),
    "h = .01, class mass 1": (0.01, HMCDF(class_mass=1.0)),
    "h auto, class mass 1": ("auto", HMCDF(class_mass=1.0)),
    "h learned, class prior 1": ("learn", HMCDF(class_prior=1.0)),
    "h learned, class mass 1": ("learn", HMCDF(class_mass=1.0)),
}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "breast cancer (original)":
        found = load_bcw()
        return found.data, found.target
    X, y = (load_iris if name == "iris" else load_wine)(return_X_y=True)
    return X, y


def run(console: Console) -> list[Claim]:
    """Print the table; nothing here has a goal."""
    report = Report(console, "class_chains")
    report.add(f"# Four chains of 500 + 1,000: medians over {N_SEEDS} seeds")
    rows = []
    for name in ("iris", "wine", "breast cancer (original)"):
        X, y = data(name)
        for choice, (h, method) in CHOICES.items():
            found = []
            for seed in range(N_SEEDS):
                begun = time.process_time()
                model = BayesianTreeClassifier(
                    h=h, method=method, random_state=seed, n_jobs=1, progress=False
                )
                with console.status(f"{name}, {choice}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # whether they agree is the question
                    told = model.fit(X, y).posterior_.diagnose()
                seconds = time.process_time() - begun
                found.append((told.rhat["predictions"], told.ess["predictions"], seconds))
            rhat, ess, seconds = np.median(found, axis=0)
            rows.append((name, choice, f"{rhat:.3f}", f"{ess:.0f}", f"{seconds:.1f}"))
    report.add(table(("data", "choice", "R-hat", "ESS", "s"), rows))
    report.save([])
    return []
