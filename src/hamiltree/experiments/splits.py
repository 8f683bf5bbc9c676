"""The comparison over many random splits, because one split of 36 to 270 test rows decides little.

Synthetic data are drawn anew for each "split".
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np
import pandas

from ..datasets import Split
from ..datasets.paper import REGRESSION, generate_split, random_split
from .configurations import HMC, REFERENCES, Lengths, classical_estimator, hmc_estimator, lengths_of
from .hyperparameters import TABLE_4
from .measures import measure
from .references import MEASURE
from .render import Cell, Line
from .restarts import fitted, parameters_set
from .runner import Job
from .store import Config, Result, Store, data_digest

SCORES = {
    "ensemble_test_acc": ("accuracy", 3),
    "ensemble_test_mse": ("MSE", 4),
    "log_score": ("log score", 3),
    "brier": ("Brier score", 3),
}
"""Compared with the references, pair by pair: label and digits."""


def split_jobs(
    wholes: Iterable[Split], methods: Sequence[str], n_splits: int, n_chains: int, shorten: int = 1
) -> list[Job]:
    """Split by split, each with every method, the references included."""
    wholes = list(wholes)
    jobs = []
    for seed in range(n_splits):
        for whole in wholes:
            drawn_anew = whole.name in REGRESSION
            split = generate_split(whole.name, seed) if drawn_anew else random_split(whole, seed)
            for method in (*methods, *REFERENCES):
                config = _config(split, method, seed, n_chains, shorten)
                jobs.append(Job(config, split, run_split))
    return jobs


def _config(split: Split, method: str, seed: int, n_chains: int, shorten: int) -> Config:
    lengths = lengths_of(split.name, method).shortened(shorten)
    return {
        "kind": "split",
        "dataset": split.name,
        "method": method,
        "preset": _preset(method),
        "seed": seed,
        "parameters": {}
        if method in REFERENCES
        else _parameters(split, method, lengths, seed, n_chains),
        "data": data_digest(split),
        "data_source": split.source,
    }


def _preset(method: str) -> str:
    if method in REFERENCES:
        return "reference"
    return "exact" if method in HMC else "paper"


def _parameters(
    split: Split, method: str, lengths: Lengths, seed: int, n_chains: int
) -> dict[str, object]:
    symbols, n_classes = TABLE_4[method, split.name], split.n_classes
    if method in HMC:
        return parameters_set(
            hmc_estimator(method, "exact", symbols, n_classes, lengths, seed, n_chains)
        )
    return parameters_set(classical_estimator(method, symbols, n_classes, lengths, seed, n_chains))


def run_split(config: Config, split: Split) -> Result:
    """Fit and measure one method on one split."""
    started = time.perf_counter()
    if config["method"] in REFERENCES:
        values = MEASURE[config["method"]](split, config["seed"])
    else:
        posterior = fitted(config, split)
        values, _ = measure(posterior, split)
        if not posterior.has_particles:
            values["rhat_worst"] = float(max(posterior.diagnose().rhat.values()))
    values["seconds"] = time.perf_counter() - started
    return Result(values)


def splits_table(jobs: Sequence[Job], store: Store) -> pandas.DataFrame:
    """One row per split and method."""
    rows = []
    for job in jobs:
        if (result := store.load(job.config)) is not None:
            names = ("dataset", "method", "preset", "seed", "data_source")
            sizes = {"n_train": len(job.split.y), "n_test": len(job.split.y_test)}
            rows.append({**{name: job.config[name] for name in names}, **sizes, **result.values})
    return pandas.DataFrame(rows)


def summary_of_splits(table: pandas.DataFrame) -> pandas.DataFrame:
    """Mean and sd over the splits; and, split by split, what is left after CART and the forest.

    Random splits share rows, so that their results are not independent: the standard error of a
    mean difference is widened by the share of test rows (Nadeau and Bengio 2003). Data that are
    drawn anew need none of that.
    """
    fixed = {"dataset", "method", "preset", "seed", "data_source", "n_train", "n_test"}
    rows = []
    for (dataset, method, preset), group in table.groupby(
        ["dataset", "method", "preset"], sort=False
    ):
        for metric in (name for name in table.columns if name not in fixed):
            if metric.endswith("_sd") or group[metric].isna().all():
                continue
            # R-hat can be infinite, where chains stand still apart: the median can be had.
            rhat = metric.startswith("rhat")
            row = {
                "dataset": dataset, "method": method, "preset": preset, "metric": metric,
                "mean": group[metric].median() if rhat else group[metric].mean(),
                "sd": np.nan if rhat else group[metric].std(),
                "paper_mean": np.nan, "paper_sd": np.nan,
            }  # fmt: skip
            if metric in SCORES:
                for reference in REFERENCES:
                    row |= _difference(table, group, str(dataset), metric, reference)
            rows.append(row)
    return pandas.DataFrame(rows)


def _difference(
    table: pandas.DataFrame, group: pandas.DataFrame, dataset: str, metric: str, reference: str
) -> dict[str, float]:
    others = table[(table["dataset"] == dataset) & (table["method"] == reference)]
    paired = group.set_index("seed")[metric] - others.set_index("seed")[metric]
    overlap = 0.0 if dataset in REGRESSION else float((group["n_test"] / group["n_train"]).iloc[0])
    error = float(paired.std() * np.sqrt(1 / len(paired) + overlap))
    return {f"minus_{reference}": float(paired.mean()), f"minus_{reference}_se": error}


def difference_lines(summary: pandas.DataFrame, columns: Sequence[tuple[str, str]]) -> list[Line]:
    """Differences with their standard errors; bold where they exceed two of them."""
    lines = []
    indexed = summary.set_index(["dataset", "metric", "method", "preset"])
    for dataset in dict.fromkeys(summary["dataset"]):
        for metric, (label, digits) in SCORES.items():
            for reference in REFERENCES:
                found = [(dataset, metric, *column) for column in columns]
                if not all(key in indexed.index for key in found):
                    continue
                cells = tuple(_cell(indexed.loc[key], reference, digits) for key in found)
                lines.append(Line(dataset, label, f"minus {reference}", cells))
    return lines


def _cell(row: pandas.Series, reference: str, digits: int) -> Cell:
    difference, error = row[f"minus_{reference}"], row[f"minus_{reference}_se"]
    text = f"{difference:+.{digits}f}"
    return Cell(f"{text} ({error:.{digits}f})", text, bool(abs(difference) > 2 * error))
