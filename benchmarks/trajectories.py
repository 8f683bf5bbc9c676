"""How long NUTS should follow a trajectory beside informed moves, which draw thresholds too."""

from __future__ import annotations

import os

from rich.console import Console

from hamiltree.datasets import MissingDataError, load_paper_split
from hamiltree.datasets.paper import PAPER_DATASETS
from hamiltree.samplers.rjhmc import INFORMED_NUTS_DEPTH

from .agreement import N_CHAINS, N_THREADS, Outcome, measure
from .markdown import Claim, Report, table
from .mixing import paper_samplers, with_fields

SECONDS = float(os.environ.get("HAMILTREE_BENCH_SECONDS", "4"))
DEPTHS = (2, 3, 4, 5, 6, 10)
METHODS = {"HMC-DF": "hmc-df", "HMC-DFI": "hmc-dfi"}


def run(console: Console) -> list[Claim]:
    """Print the tables; return (claim, measured, goal, met)."""
    report = Report(console, "trajectories")
    report.add(
        f"# Effective draws per second of the worst prediction by max_nuts_depth: {N_CHAINS} "
        f"chains, {N_THREADS} threads, {SECONDS:g} s each; "
        f"load at the start {os.getloadavg()[0]:.1f}"
    )
    claims: list[Claim] = []
    for name, method in METHODS.items():
        rows = []
        for data in PAPER_DATASETS:
            try:
                split = load_paper_split(data)
            except MissingDataError as error:
                report.add(f"{data}: skipped, {error}")
                continue
            configuration = paper_samplers(data)[name]
            speeds = {}
            for depth in DEPTHS:
                with console.status(f"{data}: {name}, depth {depth}"):
                    given = with_fields(configuration, max_nuts_depth=depth)
                    found = measure(split, given, SECONDS, standardize=False)
                speeds[depth] = found.speed[-1] if isinstance(found, Outcome) else 0.0
            rows.append((data, *(f"{speed:,.1f}" for speed in speeds.values())))
            ours, longest = (speeds[d] for d in (INFORMED_NUTS_DEPTH[method], DEPTHS[-1]))
            ratio = f"{ours / longest:.2f}" if longest > 0.0 else "no draws in time to compare with"
            claim = f"{data}, {name}: the default over {2 ** DEPTHS[-1] - 1:,} steps at most"
            claims.append((claim, ratio, "", None))
        report.add(table((name, *map(str, DEPTHS)), rows))
    report.save(claims)
    return claims
