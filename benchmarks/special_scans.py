"""What missing cells and categories cost in a scan, beside complete numbers, in one process.

A scan weighs every rule at the root of a tree. All columns of a table have missing cells, a fifth
of them, or are categories; beside it the same table with these cells filled in, or the codes as
numbers. Both take turns, and the ratio is that of the medians; seconds are the thread's own.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from numba import njit
from rich.console import Console

from hamiltree.core.scan.proposals import MODE_COLUMNS, weigh
from hamiltree.core.scan.rows import NEW_LEAF
from hamiltree.core.scan.scores import fill_known_tables
from hamiltree.core.tree.kinds import (
    IMPUTED_UNIT,
    MISSING,
    NOT_IMPUTED,
    WITH_IMPUTED,
    Kinds,
    make_kinds,
)
from hamiltree.core.tree.nodes import empty_tree
from hamiltree.methods import HMCDF
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from .markdown import Claim, Report, table

COLUMNS = 10
SIZES = (300, 3_000, 30_000)
ROWS = 3_000
"""Of all tables that are scanned in turn, at least: scans of a single small one, over and over, are
fast because the processor learns which rows come next."""
LEVELS = 8
SECONDS = 0.1
"""Of a measurement, about."""
ROUNDS = 9
GOAL = 2.0


@njit
def scan_often(proposals, tree, times):
    for _ in range(times):
        for own in proposals:
            weigh(own, tree, 0, -1, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)


Table = tuple[np.ndarray, np.ndarray, Kinds | None]
"""Columns, y, and what the columns are."""


class Scans:
    """Scans of some tables."""

    def __init__(self, tables: list[Table], h: float) -> None:
        self.chains = []
        for columns, y, kinds in tables:
            n_classes = 2 if y.dtype.kind == "i" else 0
            configuration = HMCDF().configured(regression=not n_classes, h=h)
            problem = Problem(columns, y, n_classes, kinds=kinds)
            chain = RJHMC.build(problem, configuration, 0).start(np.random.default_rng(0))
            if not n_classes:
                fill_known_tables(chain.state.proposals.scan, 1.0)
            self.chains.append(chain)
        self.proposals = tuple(chain.state.proposals for chain in self.chains)
        self.tree = empty_tree(8, 0)
        self.times = 1
        self.measure()  # compiles
        while self.measure() < SECONDS:
            self.times *= 2
        self.found: list[float] = []

    def measure(self) -> float:
        begun = time.thread_time()
        scan_often(self.proposals, self.tree, self.times)
        return time.thread_time() - begun

    def again(self) -> None:
        self.found.append(self.measure() / self.times / len(self.proposals))


def tables_of(
    kind: str, n: int, classes: bool, soft: bool, rng: np.random.Generator
) -> tuple[Table, Table]:
    """Special, plain; missing cells are imputed where splits are soft, as in the estimators."""
    y = rng.integers(0, 2, n) if classes else rng.normal(size=n)
    if kind == "category":
        codes = rng.integers(0, LEVELS, (COLUMNS, n)).astype(np.float64)
        kinds = make_kinds([LEVELS] * COLUMNS, [0] * COLUMNS)
        return (codes, y, kinds), (codes / (LEVELS - 1), y, None)
    plain = rng.uniform(size=(COLUMNS, n))
    gone = rng.random((COLUMNS, n)) < 0.2
    holes = np.where(gone, IMPUTED_UNIT * (1.0 + plain) if soft else MISSING, plain)
    missing = WITH_IMPUTED if soft else NOT_IMPUTED
    return (holes, y, make_kinds([0] * COLUMNS, [missing] * COLUMNS)), (plain, y, None)


def pair(kind: str, n: int, classes: bool, h: float) -> list[float]:
    """Median seconds of a scan: special, plain."""
    rng = np.random.default_rng(n)
    tables = [tables_of(kind, n, classes, h > 0, rng) for _ in range(max(1, ROWS // n))]
    both = [Scans(list(side), h) for side in zip(*tables, strict=True)]
    for _ in range(ROUNDS):
        for one in both:
            one.again()
    return [median(one.found) for one in both]


def run(console: Console) -> list[Claim]:
    """Print the table; return (claim, measured, goal, met)."""
    report = Report(console, "special_scans")
    rows, worst = [], 0.0
    for kind in ("missing cells", "category"):
        for n in SIZES:
            for classes in (True, False):
                for h in (0.0, 0.02):
                    special, plain = pair(kind, n, classes, h)
                    ratio = special / plain
                    if kind == "missing cells":
                        worst = max(worst, ratio)
                    what = "two classes" if classes else "numbers"
                    rows.append(
                        (
                            kind, f"{n:,}", what, f"{h:g}", f"{1e6 * special:.0f}",
                            f"{1e6 * plain:.0f}", f"{ratio:.2f}",
                        )
                    )  # fmt: skip
    heads = ("columns", "rows", "target", "h", "special, us", "plain, us", "ratio")
    report.add(f"A scan of {COLUMNS} columns, medians of {ROUNDS}\n\n{table(heads, rows)}")
    claim = "a column with missing cells over a complete one, the worst"
    claims = [(claim, f"{worst:.2f}", f"<= {GOAL:g}", worst <= GOAL)]
    report.save(claims)
    return claims
