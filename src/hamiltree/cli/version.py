"""``hamiltree version``."""

from __future__ import annotations

import platform
from typing import Annotated

import numba
import typer

from .. import __version__
from .screen import out


def mount(app: typer.Typer) -> None:
    app.command()(version)
    app.callback()(options)


def version() -> None:
    """Print the versions of hamiltree, Python and numba."""
    out.print(
        f"hamiltree {__version__} (Python {platform.python_version()}, numba {numba.__version__})"
    )


def _and_leave(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


def options(
    asked: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions and exit.",
            is_eager=True,
            callback=_and_leave,
        ),
    ] = False,
) -> None:
    """Bayesian decision trees: fit and read them, and predict with them."""
