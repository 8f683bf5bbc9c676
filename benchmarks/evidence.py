"""The log evidence by replicas: beside quadrature on toys, and beside SMC on the CGM data.

SMC has the prior of CGM with rule_prior="gap". There, with few values in each column, the evidence
is also known exactly, by recursion over all subsets of rows (``tests.reference.enumerate_smc``).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from hamiltree import BayesianTreeRegressor
from hamiltree.datasets import make_cgm
from hamiltree.methods import CGM, HMCDF, SMC
from hamiltree.posterior.draws import RunInfo
from hamiltree.running.run import Problem, sample
from tests.reference.enumerate_smc import TinyProblem, log_evidence
from tests.reference.exact import exact_toy
from tests.reference.model import TOYS
from tests.support.configuring import configured, usable, values_of

from .markdown import Claim, Report, table

TOY_CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("two-classes", "hmc-df", {"h": 0.0}),
    ("three-classes", "hmc-df", {"h": 0.0}),
    ("regression", "hmc-df", {"h": 0.0}),
    ("regression", "hmc-df", {"h": 0.1, "leaf_means": "explicit"}),
    ("regression", "hmc-dfi", {"h": 0.1}),
)
MOST_ERRORS = 2.0
ROWS = 800
RUNGS = 24
SHARED: dict[str, Any] = {"beta_split": 0.5, "n_chains": 4, "n_jobs": 2, "random_state": 0}
LADDER: dict[str, Any] = {"replicas": RUNGS, "hottest_power": 0.0}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SMC, 4 islands of 1,000 particles": (SMC(), {"n_draws": 1_000}),
    f'CGM(rule_prior="gap"), {RUNGS} replicas': (CGM(rule_prior="gap", **LADDER), {}),
    f'CGM(rule_prior="uniform01"), {RUNGS} replicas': (CGM(rule_prior="uniform01", **LADDER), {}),
    f"HMC-DF, h = 0, {RUNGS} replicas": (HMCDF(**LADDER), {"h": 0.0}),
    f"HMC-DF, h learned, {RUNGS} replicas": (HMCDF(**LADDER), {"h": "learn"}),
}


def run(console: Console) -> list[Claim]:
    """Print the tables; return (claim, measured, goal, met)."""
    report = Report(console, "evidence")
    report.add("# Log evidence of toys: replicas and quadrature")
    rows, worst = [], 0.0
    for toy, method, values in TOY_CASES:
        info, truth = toy_evidence(toy, method, values), exact_toy(toy, method, values["h"])
        assert info.log_evidence is not None
        assert info.log_evidence_error is not None
        off = (info.log_evidence - truth.log_evidence) / info.log_evidence_error
        worst = max(worst, abs(off))
        name = ", ".join([toy, method, *(f"{k}={v!r}" for k, v in values.items())])
        found = f"{info.log_evidence:.3f} +- {info.log_evidence_error:.3f}"
        rows.append((name, f"{truth.log_evidence:.3f}", found, f"{off:+.1f}"))
    report.add(table(("toy", "quadrature", "replicas", "errors off"), rows))

    data = make_cgm(ROWS, random_state=0)
    y = (data.target - data.target.mean()) / data.target.std()
    grid = TinyProblem((data.data - 1) / 9, y, variance_prior=(1.5, 0.1))
    exact = log_evidence(grid)
    report.add(f"# Log evidence of the CGM data, {ROWS} rows, y standardised")
    rows = [('exact, rule_prior="gap"', f"{exact:.2f}", "", "")]
    distance = np.nan
    for name, (method, values) in MODELS.items():
        model = BayesianTreeRegressor(method=method, **SHARED, **values, progress=False)
        with console.status(name), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = model.fit(data.data, data.target).posterior_
        value, error = posterior.log_evidence, posterior.log_evidence_error
        assert value is not None
        assert error is not None
        if "gap" in name:
            distance = abs(value - exact) / error
        leaves = f"{np.sum(posterior.weights * posterior.n_leaves):.1f}"
        rows.append((name, f"{value:.2f} +- {error:.2f}", leaves, f"{posterior.info.seconds:.0f}"))
    report.add(table(("model", "log evidence", "leaves", "s"), rows))
    claims: list[Claim] = [
        (
            "evidence of five toys, errors from quadrature",
            f"{worst:.1f}",
            f"<= {MOST_ERRORS:g}",
            worst <= MOST_ERRORS,
        ),
        (
            'evidence of CGM(rule_prior="gap"), errors from the exact one',
            f"{distance:.1f}",
            f"<= {MOST_ERRORS:g}",
            bool(distance <= MOST_ERRORS),
        ),
    ]
    report.save(claims)
    return claims


def toy_evidence(name: str, method: str, values: dict[str, Any]) -> RunInfo:
    toy = TOYS[name]()
    options = {
        **values_of(toy.prior),
        "replicas": 6,
        "hottest_power": 0.0,
        **values,
    }
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    configuration = configured(method, **usable(method, options))
    _, info = sample(
        problem,
        configuration,
        n_chains=4,
        n_warmup=500,
        n_draws=4_000,
        n_jobs=2,
        seed=0,
        progress=False,
    )
    return info
