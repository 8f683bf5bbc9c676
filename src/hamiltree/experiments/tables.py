"""From runs to tidy tables: means and spreads over restarts, beside the paper's numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import pandas

from .. import __version__
from ..datasets import Split
from ..posterior.diagnostics import rank_rhat
from ..utils.arrays import FloatArray
from .store import Config, Result, Store, sources_digest

GROUP = ["dataset", "method", "preset"]
COLUMNS = [*GROUP, "metric", "mean", "sd", "paper_mean", "paper_sd"]


@dataclass(frozen=True)
class Run:
    """A configuration and what came of it."""

    config: Config
    split: Split
    result: Result

    @property
    def group(self) -> tuple[str, str, str]:
        c = self.config
        return c["dataset"], c["method"], c["preset"]


def collect(configs: Iterable[tuple[Config, Split]], store: Store) -> list[Run]:
    """The finished ones among the runs."""
    found = ((config, split, store.load(config)) for config, split in configs)
    return [Run(config, split, result) for config, split, result in found if result is not None]


def runs_table(runs: Sequence[Run]) -> pandas.DataFrame:
    """One row per run: what it was, and every value measured."""
    return pandas.DataFrame(
        [
            {
                **{name: run.config[name] for name in (*GROUP, "seed", "data_source")},
                "version": __version__,
                "sources": sources_digest(),
                "configuration": json.dumps(run.config["parameters"]),
                "burn_in_cut": run.config["cut"],
                **run.result.values,
            }
            for run in runs
        ]
    )


def paper_table() -> pandas.DataFrame:
    """Tables 1 and 2; SMC's accuracies are of all particles together, and named so here."""
    path = files("hamiltree") / "data" / "rjhmc_tree_tables.csv"
    with path.open("r", encoding="utf-8") as file:
        table = pandas.read_csv(file)
    ensemble = (table["method"] == "smc") & table["metric"].str.endswith("_acc")
    table.loc[ensemble, "metric"] = "ensemble_" + table.loc[ensemble, "metric"]
    return table.rename(columns={"mean": "paper_mean", "sd": "paper_sd"})


def summary_table(runs: Sequence[Run]) -> pandas.DataFrame:
    """The tidy table: one row per data set, method, preset and metric.

    The sd of single trees' scores and of leaves is over all draws of all restarts, as the paper's
    seems to be; that of everything else is over the restarts.
    """
    rows = []
    for group, members in _grouped(runs).items():
        measured = [run.result.values for run in members]
        names = dict.fromkeys(name for values in measured for name in values)
        for name in names:
            if name.endswith("_sd"):
                continue
            means = np.array([values.get(name, np.nan) for values in measured])
            if f"{name}_sd" in names:
                within = np.array([values[f"{name}_sd"] for values in measured])
                sd = float(np.sqrt(np.mean(within**2) + means.var()))
            else:
                sd = float(means.std(ddof=1)) if len(means) > 1 else np.nan
            rows.append((*group, name, float(means.mean()), sd))
        rows += [(*group, name, value, np.nan) for name, value in rhats(members).items()]
    ours = pandas.DataFrame(rows, columns=COLUMNS[:-2])
    return ours.merge(paper_table(), how="left", on=["dataset", "method", "metric"])[COLUMNS]


def rhats(runs: Sequence[Run]) -> dict[str, float]:
    """R-hat between restarts; particles are no chains and have none."""
    if len(runs) < 2 or runs[0].config["method"] == "smc":
        return {}
    stacked = {
        name: np.stack([run.result.arrays[name].astype(np.float64) for run in runs])
        for name in ("log_posterior", "n_leaves", "monitor")
    }
    predictions = [rank_rhat(row) for row in np.moveaxis(stacked["monitor"], 2, 0)]
    return {
        "rhat_log_posterior": rank_rhat(stacked["log_posterior"]),
        "rhat_leaves": rank_rhat(stacked["n_leaves"]),
        "rhat_worst_prediction": float(np.max(predictions)),
    }


def agreement_table(runs: Sequence[Run], summary: pandas.DataFrame) -> pandas.DataFrame:
    """Each test figure against the paper's, in standard errors of a test set of that size.

    Binomial for accuracy; for the MSE, that of a mean over the test rows.
    """
    rows = []
    wanted = summary["metric"].str.contains("test_") & summary["paper_mean"].notna()
    members = _grouped(runs)
    for row in summary[wanted].itertuples():
        group = members[row.dataset, row.method, row.preset]
        if row.metric.endswith("acc"):
            error = np.sqrt(row.paper_mean * (1 - row.paper_mean) / len(group[0].split.y_test))
        else:
            error = standard_error([run.result.arrays["score_by_row"] for run in group])
        difference = row.mean - row.paper_mean
        rows.append(
            (row.dataset, row.method, row.preset, row.metric, row.mean, row.paper_mean, error,
             difference / error, bool(abs(difference) <= error))
        )  # fmt: skip
    names = ["mean", "paper_mean", "standard_error", "differs_by_se", "within_one_se"]
    return pandas.DataFrame(rows, columns=[*GROUP, "metric", *names])


def standard_error(scores: Sequence[FloatArray]) -> float:
    """Of a mean over test rows; ``scores`` has one array over the rows for each restart."""
    by_row = np.mean(scores, axis=0)
    return float(by_row.std(ddof=1) / np.sqrt(len(by_row)))


def _grouped(runs: Sequence[Run]) -> dict[tuple[str, str, str], list[Run]]:
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return groups
