"""``hamiltree version``."""

from __future__ import annotations

import platform

import numba
import typer

from .. import __version__
from .screen import out


def mount(app: typer.Typer) -> None:
    app.command()(version)


def version() -> None:
    """Print the versions of hamiltree, Python and numba."""
    out.print(
        f"hamiltree {__version__} (Python {platform.python_version()}, numba {numba.__version__})"
    )
