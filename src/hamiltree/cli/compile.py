"""``hamiltree compile``."""

from __future__ import annotations

import typer

from ..core.backend.cache import LASTS, WANTED
from ..core.backend.units import all_units
from ..running.progress import compile_with_bar
from .screen import examples, out


def mount(app: typer.Typer) -> None:
    app.command("compile", epilog=examples("hamiltree compile"))(compile_everything)


def compile_everything() -> None:
    """Compile the sampler before the first fit, for example when an image is built."""
    if not LASTS:
        raise OSError(f"{WANTED} is not writable: set NUMBA_CACHE_DIR to a writable folder")
    units = all_units()
    left = [unit for unit in units if not unit.is_compiled]
    if not left:
        out.print(f"All {len(units)} kernels are compiled already.")
        return
    seconds = compile_with_bar(left)
    out.print(f"Compiled {len(left)} kernels in {seconds:.1f} s.")
