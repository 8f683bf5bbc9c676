"""Hard splits on 20 freshly simulated CGM data sets: the true number of leaves, the true noise."""

from __future__ import annotations

import warnings

import numpy as np
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from hamiltree import BayesianTreeRegressor
from hamiltree.datasets import make_cgm

from .markdown import Claim, Report, table

N_DATA_SETS, N_ROWS, NOISE, TRUE_LEAVES = 20, 800, 0.2, 5
MIN_RIGHT_SIZE, MIN_COVERED = 18, 14
"""A 90% interval misses 0.2 in more than 6 of 20 with a probability of 0.002."""
MODEL = {"h": 0.0, "alpha_split": 0.45, "beta_split": 2.5, "standardize": False}
"""The authors' prior for CGM."""
LENGTHS = {"n_chains": 4, "n_jobs": 2, "n_draws": 1000, "target_rhat": 1.01, "max_draws": 10_000}


def run(console: Console) -> list[Claim]:
    """Print the table; return (claim, measured, goal, met)."""
    report = Report(console, "cgm20")
    report.add(f"# Hard splits, {N_DATA_SETS} data sets of {N_ROWS} rows from the CGM tree")
    rows, sized, covered = [], 0, 0
    for seed in range(N_DATA_SETS):
        data = make_cgm(N_ROWS, noise=NOISE, random_state=1000 + seed)
        model = BayesianTreeRegressor(**MODEL, **LENGTHS, random_state=seed, progress=False)
        with console.status(f"data set {seed}"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
            posterior = model.fit(data.data, data.target).posterior_
        share = float(np.mean(posterior.n_leaves == TRUE_LEAVES))
        low, high = np.quantile(posterior.sigma, (0.05, 0.95))
        sized += share > 0.5
        covered += low <= NOISE <= high
        rows.append(
            (
                str(1000 + seed),
                f"{share:.0%}",
                f"{posterior.n_leaves.mean():.2f}",
                f"{low:.3f} to {high:.3f}",
                "yes" if low <= NOISE <= high else "no",
                posterior.info.stopped,
                f"{posterior.n_draws:,}",
                f"{posterior.info.seconds:.1f}",
            )
        )
    headings = ("seed", f"on {TRUE_LEAVES} leaves", "mean leaves", "sigma, 90%", f"covers {NOISE}")
    report.add(table((*headings, "ended by", "draws per chain", "s"), rows))
    claims: list[Claim] = [
        (
            f"data sets with most of the posterior on {TRUE_LEAVES} leaves",
            f"{sized} of {N_DATA_SETS}",
            f">= {MIN_RIGHT_SIZE}",
            sized >= MIN_RIGHT_SIZE,
        ),
        (
            f"data sets whose 90% interval of sigma covers {NOISE}",
            f"{covered} of {N_DATA_SETS}",
            f">= {MIN_COVERED}",
            covered >= MIN_COVERED,
        ),
    ]
    report.save(claims)
    return claims
