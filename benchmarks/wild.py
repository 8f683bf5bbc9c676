"""Do four chains agree within a minute on data that nobody tuned for?

The defaults with ``target_rhat=1.01, max_seconds=60`` on two cores, beside the same without
replicas and classic CGM, for as long. A run ends sooner where its chains agree.

``HAMILTREE_BENCH_SECONDS`` says how long (60), ``HAMILTREE_BENCH_DATA`` on which data, and
``HAMILTREE_BENCH_SAMPLERS`` which samplers; names with ; between them.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from rich.console import Console

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import CGM, HMCDF
from hamiltree.posterior.diagnostics import number, rank_rhat

from .markdown import Claim, Report, asked_for, table
from .wild_data import WILD, WildSet

SECONDS = float(os.environ.get("HAMILTREE_BENCH_SECONDS", "60"))
SAMPLERS: dict[str, Any] = {
    "default": HMCDF(),
    "no replicas": HMCDF(replicas=1),
    "classic CGM": CGM(moves="prior"),
}
GOOD, FAIR = 1.01, 1.05


def fitted(data: WildSet, sampler: str, seconds: float) -> Any:
    """The posterior of one sampler."""
    X, y = data.load()
    estimator = BayesianTreeRegressor if data.regression else BayesianTreeClassifier
    values = dict(data.values)
    if SAMPLERS[sampler].name == "cgm":
        values.pop("h", None)
    model = estimator(
        method=SAMPLERS[sampler],
        target_rhat=GOOD,
        max_seconds=seconds,
        n_jobs=2,
        random_state=0,
        progress=False,
        **values,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: that is what is measured
        return model.fit(X, y).posterior_


def rhats(posterior: Any) -> tuple[float, float, float]:
    """Of the log-likelihood, the leaves, and the worst of 20 monitored predictions."""
    points = np.moveaxis(posterior.monitor, 2, 0)
    return (
        rank_rhat(posterior.log_likelihood),
        rank_rhat(posterior.n_leaves.astype(np.float64)),
        max(rank_rhat(point) for point in points),
    )


def run(console: Console) -> list[Claim]:
    """Print the table; the goals are of the defaults alone."""
    report = Report(console, "wild")
    report.add(
        f"# Four chains on two cores, {SECONDS:g} s at most: R-hat of the log-likelihood, of the "
        "leaves and of the worst of 20 predictions"
    )
    names = asked_for("HAMILTREE_BENCH_DATA", [data.name for data in WILD])
    samplers = asked_for("HAMILTREE_BENCH_SAMPLERS", list(SAMPLERS))
    lines, worst = [], {}
    for data in WILD:
        if data.name not in names:
            continue
        for sampler in samplers:
            try:
                posterior = fitted(data, sampler, SECONDS)
            except RuntimeError as error:  # the time was over in warm-up
                lines.append((data.name, sampler, "-", str(error).split(":")[0], "-", "-", "-"))
                if sampler == "default":
                    worst[data.name] = np.inf
                continue
            found = rhats(posterior)
            if sampler == "default":
                worst[data.name] = max(found)
            lines.append(
                (
                    data.name,
                    sampler,
                    f"{len(posterior.info.powers) or 1}",
                    " / ".join(map(number, found)),
                    f"{posterior.n_leaves.mean():.1f}",
                    f"{posterior.n_draws:,}",
                    f"{posterior.info.seconds:.0f}",
                )
            )
            console.print(" ".join(lines[-1]), highlight=False, soft_wrap=True)
    report.add(table(("data", "sampler", "replicas", "R-hat", "leaves", "draws", "s"), lines))
    claims: list[Claim] = []
    if worst:
        n = len(worst)
        good = sum(value <= GOOD for value in worst.values())
        fair = sum(value <= FAIR for value in worst.values())
        claims = [
            (f"every R-hat at most {GOOD}", f"{good} of {n}", "10 of 15", good * 15 >= 10 * n),
            (f"every R-hat at most {FAIR}", f"{fair} of {n}", "13 of 15", fair * 15 >= 13 * n),
        ]
    report.save(claims)
    return claims
