"""One chain of large data, one thread against two: the clock, and that the draws are the same.

The data are those of ``scale``. Each fit is a process of its own; fits with one and with two
threads take turns, and the fastest of each counts: what else runs on the machine takes the second
core first.
"""

from __future__ import annotations

from rich.console import Console

from .markdown import Claim, Report, table
from .scale import KINDS, in_a_process

ROWS, FEATURES = 500_000, 20
ITERATIONS, TURNS = 24, 2
MIN_SPEEDUP = 1.5


def run(console: Console) -> list[Claim]:
    report = Report(console, "one_chain")
    claims: list[Claim] = []
    lines = []
    task = {"rows": ROWS, "features": FEATURES, "chains": 1, "iterations": ITERATIONS}
    for kind in KINDS:
        found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
        for _ in range(TURNS):
            for jobs, fits in found.items():
                fits.append(in_a_process(who="hamiltree", kind=kind, jobs=jobs, **task))
        one, two = (min(f["wall"] for f in found[jobs]) for jobs in (1, 2))
        same = len({f["log_posterior"] for fits in found.values() for f in fits}) == 1
        lines.append([kind, f"{1e3 * one:.0f}", f"{1e3 * two:.0f}", f"{one / two:.2f}"])
        claims.append(
            (
                f"{kind}: one chain of {ROWS:,} x {FEATURES}, two threads over one",
                f"{one / two:.2f} times as fast, {'the same' if same else 'OTHER'} draws",
                f">= {MIN_SPEEDUP}, the same",
                same and one / two >= MIN_SPEEDUP,
            )
        )
    report.add(f"{ROWS:,} x {FEATURES}, 1 chain, {ITERATIONS} iterations: ms per iteration (clock)")
    report.add(table(("", "one thread", "two threads", "ratio"), lines))
    report.save(claims)
    return claims
