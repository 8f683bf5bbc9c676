"""``python -m benchmarks [name ...]``: measure, and compare with the goals."""

from __future__ import annotations

import importlib
import os
import platform
import sys

from rich.console import Console
from rich.table import Table

NAMES = ("gradient", "fit_time", "startup", "proposals", "after_fit")
ON_REQUEST = (
    "calibration",
    "checkpoint",
    "class_chains",
    "comparison",
    "mixing",
    "trajectories",
    "cgm20",
    "cgm98",
    "evidence",
    "ladder",
    "noise",
    "defaults",
    "scale",
    "one_chain",
    "optimal",
    "side_by_side",
    "tables",
    "wild",
    "special_scans",
)
"""Minutes each, and more: only where they are named."""


def main(chosen: list[str]) -> None:
    known = (*NAMES, *ON_REQUEST)
    unknown = set(chosen) - set(known)
    if unknown:
        sys.exit(f"unknown benchmarks: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    console = Console()
    console.print(
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    summary = Table(title="measured and goal")
    for heading in ("claim", "measured", "goal", ""):
        summary.add_column(heading)
    for name in chosen or NAMES:
        for claim, measured, goal, met in importlib.import_module(f"{__package__}.{name}").run(
            console
        ):
            outcome = {True: "met", False: "[red]missed[/red]", None: "-"}[met]
            summary.add_row(claim, measured, goal, outcome)
    console.print(summary)


if __name__ == "__main__":
    main(sys.argv[1:])
