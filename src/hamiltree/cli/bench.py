"""``hamiltree bench``: the repository's measurements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from .screen import examples

SOURCE = Path(__file__).parents[3]
"""The repository, where the package runs from a checkout."""


def mount(app: typer.Typer) -> None:
    app.command(epilog=examples("hamiltree bench", "hamiltree bench gradient fit_time"))(bench)


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Benchmarks to run; by default all.", show_default=False),
    ] = None,
) -> None:
    """Run the benchmarks of speed; this needs a copy of the repository."""
    for folder in (Path.cwd(), SOURCE):
        if (folder / "benchmarks" / "__main__.py").is_file():
            done = subprocess.run([sys.executable, "-m", "benchmarks", *(names or [])], cwd=folder)
            raise typer.Exit(done.returncode)
    raise FileNotFoundError(
        "the benchmarks are part of the repository, not of the installed package: run this, or "
        "make bench, in a copy of the repository"
    )
