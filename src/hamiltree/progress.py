"""What the user sees while chains run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .core.jit import CACHE, CAN_KEEP

ANNOUNCE_AFTER = 2.0
"""Seconds. Loading compiled code takes less than this; whatever takes longer is compilation."""


class Report(Protocol):
    """Called from the chains' threads: so many iterations more, of so many in all (or unknown)."""

    def __call__(self, iterations: int, total: int | None) -> None: ...


def silent(iterations: int, total: int | None) -> None:
    """Report nothing."""


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Say so when the first call compiles; loading what was compiled before stays silent."""
    message = "hamiltree: compiling the sampler for this machine (once; half a minute or so) ..."
    if not CAN_KEEP:
        message = (
            f"hamiltree: compiling the sampler (a minute or so, and in every new process: {CACHE} "
            "cannot be written to; let NUMBA_CACHE_DIR name a folder that can) ..."
        )
    timer = threading.Timer(ANNOUNCE_AFTER, lambda: print(message, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def progress_bar(show: bool | None, *, unit: str) -> Iterator[Report]:
    """A bar on standard error that counts up to a total which may still move; None: a terminal."""
    console = Console(stderr=True)
    if not (console.is_terminal if show is None else show):
        yield silent
        return
    count = TextColumn("{task.completed:,.0f}{task.fields[limit]} " + unit)
    columns = (TextColumn("sampling"), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sampling", total=None, limit="")

        def report(iterations: int, total: int | None) -> None:
            limit = "" if total is None else f" of {total:,}"
            bar.update(task, advance=iterations, total=total, limit=limit)

        yield report
