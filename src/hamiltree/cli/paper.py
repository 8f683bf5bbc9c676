"""``hamiltree paper``: the paper's experiments."""

from __future__ import annotations

import typer

from ..experiments.cli import app as experiments
from .screen import examples


def mount(app: typer.Typer) -> None:
    lines = ("hamiltree paper tables --restarts 2 --out paper-output", "hamiltree paper figures")
    app.add_typer(experiments, name="paper", epilog=examples(*lines))
