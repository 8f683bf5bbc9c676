"""``hamiltree report``: the posterior as one page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..report import write_report
from ..report.contents import DRAWS
from .screen import ModelFile, examples, load, note, writable


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree report model.nc",
            "hamiltree report model.nc -o report.html --title 'Who is readmitted?'",
        )
    )(report)


def report(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Heading; made of the target's name.")] = None,
    draws: Annotated[
        int, typer.Option(help="Trees that the page holds to leaf through and predict with.", min=1)
    ] = DRAWS,
) -> None:
    """Write one page for the browser; it needs no network and no Python to be read."""
    writable(output)
    write_report(load(model), output, title=title, n_draws=draws)
    note(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB): open it in a browser")
