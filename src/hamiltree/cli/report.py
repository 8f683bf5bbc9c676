"""``hamiltree report``: the posterior as one page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..inputs.tables import TableError
from ..report import write_report
from ..report.contents import DRAWS
from .rows import Target, rows_of
from .screen import ModelFile, examples, load, note, writable


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree report model.nc",
            "hamiltree report model.nc -o report.html --title 'Who is readmitted?'",
            "hamiltree report model.nc --test held_out.csv",
            "hamiltree report model.nc --names names.csv",
        )
    )(report)


def report(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Heading; by default names the target.")] = None,
    draws: Annotated[
        int, typer.Option(help="Sampled trees in the page, to browse and to predict with.", min=1)
    ] = DRAWS,
    test: Annotated[
        Path | None,
        typer.Option(
            help="Table of held-out rows with the target: the report then says how well they are "
            "predicted.",
            show_default=False,
        ),
    ] = None,
    target: Target = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="Display names and units: a CSV with columns column, label and optionally unit "
            "and value, or JSON.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write an HTML report, which can be read without Python and without a network."""
    writable(output)
    posterior = load(model)
    held_out: dict[str, Any] = {}
    if test is not None:
        rows = rows_of(posterior, test, with_target=True, target=target)
        if "y" not in rows:
            wanted = target or (posterior.table.encoding.target if posterior.table else "")
            if not wanted:
                raise TableError(
                    "the model was fitted in Python and does not know the name of its target: "
                    "--target NAME"
                )
            raise TableError(f"{test.name} lacks the target's column {wanted!r}")
        held_out = {"X_test": rows["X"], "y_test": rows["y"]}
    write_report(posterior, output, title=title, n_draws=draws, names=names, **held_out)
    note(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB): open it in a browser")
