"""The models that people weigh against each other, on six tables: what docs/comparison.md shows.

Tables of two classes, because BART of stochtree has no more, named before anything was measured:
the two that ship with hamiltree, one of them with texts and both with missing cells, and four of
``calibration.py``. Random halves to learn from and to be judged on. Every model is at or
near its defaults, as someone who tries it would have. hamiltree sees tables as they are; for the
others texts become columns of 0 and 1, and a missing number the median of its column.

``HAMILTREE_BENCH_MODELS=hamiltree`` runs some models alone, separated by semicolons: EBM takes most
of the time. ``HAMILTREE_BENCH_SPLITS`` says how many halves (5). A model that is not installed is
left out.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from rich.console import Console
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder

from hamiltree import BayesianTreeClassifier
from hamiltree.datasets import load_bcw, load_heart
from hamiltree.experiments.measures import probability_measures

from .calibration import CLASSIFICATIONS
from .markdown import Claim, Report, table
from .peers import CLASSIFICATION, Peer, boosted_trees, plain_tree

N_SPLITS = int(os.environ.get("HAMILTREE_BENCH_SPLITS", "5"))
N_JOBS = int(os.environ.get("HAMILTREE_BENCH_JOBS", "-1"))
OURS = "hamiltree"
PEERS: dict[str, Peer] = {
    "CART": plain_tree,
    **CLASSIFICATION,
    "boosting": boosted_trees,
}
MEASURES = {
    "accuracy": ("Accuracy", ".3f"),
    "log_score": ("Log score", ".3f"),
    "calibration_error": ("Calibration error", ".3f"),
    "seconds": ("Seconds for a fit and its predictions", ".2f"),
}


def heart() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_heart(return_X_y=True)
    return X, y.to_numpy()


def biopsies() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_bcw(drop_missing=False, as_frame=True)
    return data.data, data.target


def packaged(name: str) -> Callable[[], tuple[pd.DataFrame, np.ndarray]]:
    def load() -> tuple[pd.DataFrame, np.ndarray]:
        X, y = CLASSIFICATIONS[name].load(regression=False)
        return pd.DataFrame(X).rename(columns=str), y

    return load


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, np.ndarray]]] = {
    "heart disease": heart,
    "biopsies": biopsies,
    **{name: packaged(name) for name in ("crabs", "labour force", "infertility", "orange juice")},
}


def encoded(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Columns of complete numbers, encoded and imputed from the training half."""
    texts = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
        (SimpleImputer(strategy="median"), numbers),
    )
    return encoder.fit_transform(X), encoder.transform(X_test)


def judge(name: str, model: str, seed: int) -> tuple[str, str, dict[str, float] | None]:
    """One model on one random half; None where it, or the table, is not installed."""
    try:
        X, labels = TABLES[name]()
    except ImportError:
        return name, model, None
    y = np.unique(labels, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    begun = time.perf_counter()
    measured: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether ours converged is counted instead
        try:
            if model == OURS:
                fitted = BayesianTreeClassifier(random_state=seed, progress=False).fit(X, y)
                predicted = fitted.predict_proba(X_test)
            else:
                numbers, test_numbers = encoded(X, X_test)
                predicted = PEERS[model](numbers, y, test_numbers, seed)
        except ImportError:
            return name, model, None
    measured["seconds"] = time.perf_counter() - begun
    if model == OURS:
        measured["converged"] = float(fitted.posterior_.diagnose().converged)
    floored = np.maximum(predicted, 0.5 / len(y))  # a leaf that says 0 would score minus infinity
    floored /= floored.sum(axis=1, keepdims=True)
    measured |= probability_measures(floored, y_test, np.unique(y))
    measured["accuracy"] = float(np.mean(predicted.argmax(axis=1) == y_test))
    return name, model, measured


def run(console: Console) -> list[Claim]:
    """Print a table per measure; return (claim, measured, goal, met)."""
    report = Report(console, "comparison")
    report.add(f"# Comparison: means over {N_SPLITS} random halves of each table")
    chosen = os.environ.get("HAMILTREE_BENCH_MODELS")
    models = chosen.split(";") if chosen else [OURS, *PEERS]
    jobs = [(n, m, seed) for seed in range(N_SPLITS) for n in TABLES for m in models]
    with console.status("fitting"):
        outcomes: list[Any] = Parallel(n_jobs=N_JOBS)(delayed(judge)(*job) for job in jobs)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for name, model, measured in outcomes:
        if measured is not None:
            found.setdefault((name, model), []).append(measured)
    names = [n for n in TABLES if any((n, m) in found for m in models)]
    models = [m for m in models if all((n, m) in found for n in names)]
    for measure, (heading, digits) in MEASURES.items():
        means = np.array(
            [[np.mean([o[measure] for o in found[n, m]]) for m in models] for n in names]
        )
        rows = [(n, *(format(v, digits) for v in row)) for n, row in zip(names, means, strict=True)]
        rows.append(("**mean**", *(f"**{value:{digits}}**" for value in means.mean(axis=0))))
        report.add(f"## {heading}\n\n{table(('', *models), rows)}")
    ours = [one for name in names for one in found.get((name, OURS), [])]
    claims: list[Claim] = [
        (
            "fits of hamiltree whose chains agree (R-hat at most 1.05)",
            f"{sum(one['converged'] for one in ours):.0f} of {len(ours)}",
            "-",
            None,
        )
    ]
    report.save(claims)
    return claims
