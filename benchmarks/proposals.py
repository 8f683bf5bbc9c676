"""CGM proposals per second on one core, beside stochtree with one tree in the same run.

A peer's iteration with one tree is one grow or prune proposal plus its draws of leaves and noise;
both keep one tree in THINNING proposals. Without stochtree (``pip install stochtree``) only ours is
measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hamiltree.methods import CGM, SMC, WU
from hamiltree.running import run as chains

from .data import load

ROUNDS = 5
SECONDS = 0.5
"""Of each measurement, about."""
THINNING = 100
GOAL = 10_000
"""Proposals per second, at N = 800."""


def make_problem(X: np.ndarray, y: np.ndarray, classes: bool) -> chains.Problem:
    columns = np.ascontiguousarray(((X - X.min(axis=0)) / np.ptp(X, axis=0)).T)
    target = np.unique(y, return_inverse=True)[1] if classes else (y - y.mean()) / y.std()
    return chains.Problem(columns, target, 2 if classes else 0)


def smc_seconds() -> float:
    """2,000 particles on BCW in one island, the median of a few runs."""
    X, y, _ = load("bcw")
    problem, found = make_problem(X, y, True), []
    for seed in range(ROUNDS + 1):
        start = time.perf_counter()
        chains.sample(
            problem,
            SMC().configured(),
            n_chains=1,
            n_warmup=0,
            n_draws=2000,
            n_jobs=1,
            seed=seed,
            progress=False,
        )
        found.append(time.perf_counter() - start)
    return median(found[1:])  # the first compiles


def ours(method: str, X: np.ndarray, y: np.ndarray, classes: bool) -> Callable[[int], int]:
    """A function that runs n kept draws and returns the number of proposals made."""
    problem = make_problem(X, y, classes)
    chosen = CGM(moves="prior", proposals=THINNING) if method == "cgm" else WU()
    configuration = chosen.configured()

    def measure(n: int) -> int:
        lengths = {"n_chains": 1, "n_warmup": 0, "n_draws": n, "n_jobs": 1}
        _, info = chains.sample(problem, configuration, **lengths, seed=n, progress=False)
        moves = info.acceptance["sampling"]
        return sum(int(counts[1].sum()) for move, counts in moves.items() if move != "iteration")

    return measure


def peer(X: np.ndarray, y: np.ndarray, classes: bool) -> Callable[[int], int] | None:
    """The same for stochtree; None where it is not installed."""
    try:
        from stochtree import BARTModel
    except ImportError:
        return None
    general: dict[str, Any] = {"num_threads": 1, "keep_every": THINNING, "random_seed": 1}
    forest: dict[str, Any] = {"num_trees": 1, "sample_sigma2_leaf": False}
    if classes:
        general |= {"sample_sigma2_global": False, "probit_outcome_model": True}

    def measure(n: int) -> int:
        BARTModel().sample(
            X_train=X,
            y_train=y.astype(np.float64),
            num_gfr=0,
            num_burnin=0,
            num_mcmc=n,
            general_params=general,
            mean_forest_params=forest,
        )
        return n * THINNING

    return measure


def speeds(*measures: Callable[[int], int]) -> list[float]:
    """Median proposals per second of each, taken in turns so that all meet the same load."""
    sizes, found = [], []
    for measure in measures:
        measure(2)  # compiles
        start = time.perf_counter()
        measure(10)
        sizes.append(max(10, int(10 * SECONDS / (time.perf_counter() - start))))
        found.append([])
    for _ in range(ROUNDS):
        for k, measure in enumerate(measures):
            start = time.perf_counter()
            made = measure(sizes[k])
            found[k].append(made / (time.perf_counter() - start))
    return [median(f) for f in found]


def run(console: Console) -> list[tuple[str, str, str, bool | None]]:
    """Print the table; return (claim, measured, goal, met)."""
    table = Table(title="proposals per second, one core")
    for heading in ("data", "rows", "CGM", "WU", "stochtree, one tree", "CGM / stochtree"):
        table.add_column(heading)
    claims: list[tuple[str, str, str, bool | None]] = []
    for name, classes in (("cgm", False), ("bcw", True)):
        X, y, note = load(name)
        other = peer(X, y, classes)
        measures = [ours("cgm", X, y, classes), ours("wu", X, y, classes)]
        found = speeds(*measures, *([other] if other else []))
        cgm, wu = found[:2]
        beside = f"{found[2]:,.0f}" if other else "not installed"
        ratio = f"{cgm / found[2]:.1f}" if other else "-"
        table.add_row(f"{name}, {note}", str(len(X)), f"{cgm:,.0f}", f"{wu:,.0f}", beside, ratio)
        claims.append(
            (f"{name}: CGM proposals per second", f"{cgm:,.0f}", f"> {GOAL:,}", cgm > GOAL)
        )
        if other:
            claims.append((f"{name}: CGM beside stochtree", f"{ratio} x", "-", None))
    smc = smc_seconds()
    claims.append(("bcw: SMC with 2,000 particles", f"{smc:.2f} s", "<= 1 s", smc <= 1.0))
    console.print(table)
    if "not installed" in beside:
        console.print("stochtree is not installed, so there is no peer: pip install stochtree")
    return claims
