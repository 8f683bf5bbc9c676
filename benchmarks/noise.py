"""Do 90% intervals cover where noise is low? Simulated regressions, by the prior of the noise.

y is a tree of three leaves on the first two of five features, plus normal noise of a known sd; the
leaves' means are standard normal, so that the noise is in units of the signal. Each replicate draws
training rows, leaf means and 200 test rows anew; every prior sees the same. Beside the share of
test rows inside the interval: its width over that of the interval of somebody who knows the truth,
and the log score.

``HAMILTREE_BENCH_REPLICATES`` says how many data sets of each kind (10).
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from scipy.stats import norm

from hamiltree import BayesianTreeRegressor
from hamiltree.experiments.measures import predictive_measures
from hamiltree.methods import HMCDF

from .markdown import Claim, Report, table

N_REPLICATES = int(os.environ.get("HAMILTREE_BENCH_REPLICATES", "10"))
RUN = {"n_chains": 2, "n_warmup": 300, "n_draws": 500, "n_jobs": 1, "progress": False}
PRIORS = ((1.5, 1.5), (1.5, 0.5), (1.5, 0.1), (1.5, 0.03))
"""Of the noise sd, inverse gamma (shape, scale), y standardised."""
SIZES = (30, 100)
NOISES = (0.02, 0.2, 1.0)
N_TEST = 200
ENDS = (0.05, 0.95)


def simulate(
    rng: np.random.Generator, means: np.ndarray, n: int, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    X = rng.random((n, 5))
    leaf = np.where(X[:, 0] < 0.5, 0, np.where(X[:, 1] < 0.4, 1, 2))
    return X, means[leaf] + noise * rng.standard_normal(n)


def judge(n: int, noise: float, prior: tuple[float, float], seed: int) -> dict[str, float]:
    """One prior on one data set."""
    rng = np.random.default_rng((n, round(1_000 * noise), seed))
    means = rng.standard_normal(3)
    X, y = simulate(rng, means, n, noise)
    X_test, y_test = simulate(rng, means, N_TEST, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short runs
        model = BayesianTreeRegressor(method=HMCDF(sigma_prior=prior), **RUN, random_state=seed)
        posterior = model.fit(X, y).posterior_
    low, high = posterior.predict_quantiles(X_test, list(ENDS), n_jobs=1)
    known = noise * (norm.ppf(ENDS[1]) - norm.ppf(ENDS[0]))
    return {
        "coverage": float(np.mean((low <= y_test) & (y_test <= high))),
        "width": float(np.median(high - low)) / known,
        "log score": predictive_measures(posterior, X_test, y_test)["log_score"],
    }


def cell(found: list[dict[str, float]], measure: str) -> str:
    values = np.array([one[measure] for one in found])
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.3f} ({error:.3f})"


def run(console: Console) -> list[Claim]:
    """Print the tables; nothing here has a goal."""
    report = Report(console, "noise")
    report.add(f"# Simulated regressions: mean over {N_REPLICATES} data sets (its error)")
    kinds = [(n, noise, prior) for n in SIZES for noise in NOISES for prior in PRIORS]
    jobs = [(*kind, seed) for kind in kinds for seed in range(N_REPLICATES)]
    with console.status("fitting"):
        outcomes: list[Any] = Parallel(n_jobs=-1)(delayed(judge)(*job) for job in jobs)
    found: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for (*kind, _), outcome in zip(jobs, outcomes, strict=True):
        found.setdefault(tuple(kind), []).append(outcome)
    for measure in ("coverage", "width", "log score"):
        rows = [
            (f"{n} rows, noise {noise:g}", *(cell(found[n, noise, p], measure) for p in PRIORS))
            for n in SIZES
            for noise in NOISES
        ]
        report.add(table((measure, *(str(prior) for prior in PRIORS)), rows))
    report.save([])
    return []
