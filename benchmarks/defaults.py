"""Which defaults serve data that nobody tuned for: log scores over repeated splits.

Each choice is the base with one thing changed. 14 data sets, chosen before anything was measured;
random halves to learn from and to be scored on, or data drawn anew. A choice is judged by its log
score per test row less that of the base, split by split. Beside it: the share of test rows inside
the 90% interval (regression), and the calibration error (classification).

``HAMILTREE_BENCH_SPLITS`` says how many splits (5), ``HAMILTREE_BENCH_CHOICES`` which choices, and
``HAMILTREE_BENCH_KIND=regression`` or ``classification`` that only such data are used.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_friedman1
from sklearn.model_selection import train_test_split

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import load_bcw, make_cgm
from hamiltree.experiments.measures import predictive_measures
from hamiltree.methods import CGM, HMCDF, HMCDFI, WU

from .data import read_packaged
from .markdown import Claim, Report, table

N_SPLITS = int(os.environ.get("HAMILTREE_BENCH_SPLITS", "5"))
RUN = {"n_chains": 2, "n_warmup": 300, "n_draws": 500, "n_jobs": 1, "progress": False}
FLAT: dict[str, Any] = {"class_prior": 1.0, "sigma_prior": (1.5, 1.5)}
"""Priors of leaves before this study chose others: those of every choice that names no other."""


def leaves(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with the flat priors where it names no others."""
    named = {"class_prior": None} if "class_mass" in fields else {}
    return {**FLAT, **named, **fields}


def soft(h: float | str, **fields: Any) -> dict[str, Any]:
    """HMC-DF with this h."""
    return {"h": h, "method": HMCDF(**leaves(fields))}


def oblique(h: float | str, **fields: Any) -> dict[str, Any]:
    """HMC-DFI with this h."""
    return {"h": h, "method": HMCDFI(**leaves(fields))}


BASE = "h = .01"
CHOICES: dict[str, dict[str, Any]] = {
    BASE: soft(0.01),
    "h = 0": soft(0.0),
    "h = .003": soft(0.003),
    "h = .03": soft(0.03),
    "h = .1": soft(0.1),
    "h auto": soft("auto"),
    "h auto, each feature": soft("auto", h_by_feature=True),
    "h learned": soft("learn"),
    "h learned, each feature": soft("learn", h_by_feature=True),
    "h learned, split .95, 1": {**soft("learn"), "alpha_split": 0.95, "beta_split": 1.0},
    "split .95, 1": {**soft(0.01), "alpha_split": 0.95, "beta_split": 1.0},
    "split .95, .5": {**soft(0.01), "alpha_split": 0.95, "beta_split": 0.5},
    "split .5, 2": {**soft(0.01), "alpha_split": 0.5, "beta_split": 2.0},
    "hmc-dfi": oblique(0.01),
    "hmc-dfi, h = .03": oblique(0.03),
    "hmc-dfi, h = .1": oblique(0.1),
    "cgm": {"method": CGM(class_prior=1.0)},
}
CLASS_CHOICES: dict[str, dict[str, Any]] = {
    "class prior .5": soft(0.01, class_prior=0.5),
    "class mass 1": soft(0.01, class_mass=1.0),
    "class mass .5": soft(0.01, class_mass=0.5),
    "h auto, class mass 1": soft("auto", class_mass=1.0),
    "h learned, class mass 1": soft("learn", class_mass=1.0),
    "h learned, class mass .5": soft("learn", class_mass=0.5),
    "hmc-dfi, class mass 1": oblique(0.01, class_mass=1.0),
    "cgm, class mass 1": {"method": CGM(class_mass=1.0)},
    "wu": {"method": WU(class_prior=1.0)},
    "wu, class mass 1": {"method": WU(class_mass=1.0)},
}
"""For classification alone."""
NUMBER_CHOICES: dict[str, dict[str, Any]] = {
    "h learned, sigma 1.5, .5": soft("learn", sigma_prior=(1.5, 0.5)),
    "h learned, sigma 1.5, .2": soft("learn", sigma_prior=(1.5, 0.2)),
    "h learned, sigma 1.5, .1": soft("learn", sigma_prior=(1.5, 0.1)),
    "h learned, sigma 1.5, .03": soft("learn", sigma_prior=(1.5, 0.03)),
}
"""For regression alone."""
ALL_CHOICES = CHOICES | CLASS_CHOICES | NUMBER_CHOICES


@dataclass(frozen=True)
class Source:
    """A data set: whether numbers are predicted, and all of it, or a fresh sample by seed."""

    regression: bool
    load: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None
    draw: Callable[[int], tuple[np.ndarray, np.ndarray]] | None = None

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        if self.draw is not None:
            return (*self.draw(2 * seed), *self.draw(2 * seed + 1))
        assert self.load is not None
        X, y = self.load()
        strata = None if self.regression else y
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=0.5, random_state=seed, stratify=strata
        )
        return X, y, X_test, y_test


def _scikit(load: Callable[..., Any]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    return lambda: load(return_X_y=True)


def _packaged(package: str, item: str, target: str) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    return lambda: read_packaged(package, item, target)


def _bcw() -> tuple[np.ndarray, np.ndarray]:
    data = load_bcw()
    return data.data, data.target


def _cgm(seed: int) -> tuple[np.ndarray, np.ndarray]:
    data = make_cgm(400, random_state=seed)
    return data.data, data.target


EVERY_SOURCE = {
    "iris": Source(False, _scikit(load_iris)),
    "wine": Source(False, _scikit(load_wine)),
    "breast cancer (diagnostic)": Source(False, _scikit(load_breast_cancer)),
    "breast cancer (original)": Source(False, _bcw),
    "olive oils": Source(False, _packaged("dslabs", "olive", "region")),
    "pima": Source(False, _packaged("MASS", "Pima.te", "type")),
    "swiss labour": Source(False, _packaged("AER", "SwissLabor", "participation")),
    "diabetes": Source(True, _scikit(load_diabetes)),
    "boston": Source(True, _packaged("MASS", "Boston", "medv")),
    "car mileage": Source(True, _packaged("ISLR", "Auto", "mpg")),
    "house prices": Source(True, _packaged("Ecdat", "Housing", "price")),
    "earthquakes": Source(True, _packaged("datasets", "quakes", "mag")),
    "cgm": Source(True, draw=_cgm),
    "friedman": Source(True, draw=lambda seed: make_friedman1(300, noise=1.0, random_state=seed)),
}

KIND = os.environ.get("HAMILTREE_BENCH_KIND")
SOURCES = {
    name: source
    for name, source in EVERY_SOURCE.items()
    if KIND is None or source.regression == (KIND == "regression")
}


def applies(choice: str, source: Source) -> bool:
    return choice not in (CLASS_CHOICES if source.regression else NUMBER_CHOICES)


def score(name: str, choice: str, seed: int) -> tuple[str, str, int, dict[str, float]]:
    """What one choice makes of one split: log score per test row, calibration and seconds."""
    source = SOURCES[name]
    X, y, X_test, y_test = source.split(seed)
    estimator = BayesianTreeRegressor if source.regression else BayesianTreeClassifier
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short runs; a choice that mixes badly pays for it
        model = estimator(**ALL_CHOICES[choice], **RUN, random_state=seed).fit(X, y)
    found = predictive_measures(model.posterior_, X_test, y_test)
    return name, choice, seed, {**found, "seconds": time.perf_counter() - begun}


Scores = dict[tuple[str, str], dict[str, np.ndarray]]
"""By data set and choice, and by measure: one number per split."""


def gains_table(scores: Scores, chosen: list[str]) -> str:
    """Log scores less those of the base, and what a choice makes of all data sets together."""
    rows, gains = [], {}
    for name in SOURCES:
        base = scores[name, BASE]["log_score"]
        cells = [f"{base.mean():.3f}"]
        for choice in chosen[1:]:
            if (name, choice) not in scores:
                cells.append("-")
                continue
            gain = scores[name, choice]["log_score"] - base
            error = gain.std(ddof=1) / np.sqrt(N_SPLITS) if N_SPLITS > 1 else np.nan
            cells.append(f"{gain.mean():+.3f} ({error:.3f})")
            gains.setdefault(choice, []).append(gain.mean())
        rows.append((name, *cells))
    rows.append(("mean", "", *(f"{np.mean(gains[c]):+.3f}" for c in chosen[1:])))
    rows.append(("median", "", *(f"{np.median(gains[c]):+.3f}" for c in chosen[1:])))
    rows.append(("worst", "", *(f"{np.min(gains[c]):+.3f}" for c in chosen[1:])))
    better = (f"{sum(gain > 0 for gain in gains[c])} of {len(gains[c])}" for c in chosen[1:])
    rows.append(("better on", "", *better))
    seconds = (
        sum(found["seconds"].sum() for (_, choice), found in scores.items() if choice == c)
        for c in chosen
    )
    rows.append(("seconds", *(f"{total:.0f}" for total in seconds)))
    return table(("data", *chosen), rows)


def averages_table(scores: Scores, chosen: list[str], measure: str) -> str:
    """Of the data sets that have this measure, averaged over the splits."""
    names = [name for name in SOURCES if measure in scores[name, BASE]]
    used = [c for c in chosen if any((name, c) in scores for name in names)]
    values = {(n, c): float(scores[n, c][measure].mean()) for n in names for c in used}
    rows = [(n, *(f"{values[n, c]:.3f}" for c in used)) for n in names]
    rows.append(("mean", *(f"{np.mean([values[n, c] for n in names]):.3f}" for c in used)))
    return table((measure, *used), rows)


def run(console: Console) -> list[Claim]:
    """Print the tables; nothing here has a goal."""
    report = Report(console, "defaults")
    wanted = os.environ.get("HAMILTREE_BENCH_CHOICES")
    chosen = [BASE, *wanted.split(";")] if wanted else list(ALL_CHOICES)
    report.add(
        f"# Log score per test row less that of {BASE}: mean over {N_SPLITS} splits (its error)"
    )
    jobs = [
        (n, c, s)
        for s in range(N_SPLITS)
        for n in SOURCES
        for c in chosen
        if applies(c, SOURCES[n])
    ]
    with console.status("fitting"):
        results: list[Any] = Parallel(n_jobs=-1)(delayed(score)(*job) for job in jobs)
    scores: Scores = {}
    for name, choice, seed, found in results:
        kept = scores.setdefault((name, choice), {key: np.zeros(N_SPLITS) for key in found})
        for key, value in found.items():
            kept[key][seed] = value
    report.add(gains_table(scores, chosen))
    for measure in ("coverage_90", "calibration_error"):
        if not any(measure in found for found in scores.values()):
            continue
        report.add(averages_table(scores, chosen, measure))
    report.save([])
    return []
