"""What the user sees while chains run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..core.backend.cache import LASTS, WANTED
from ..core.backend.units import Unit, compile_units, missing
from ..utils.notebook import in_notebook, notebook_bar


class Report(Protocol):
    """Called from the chains' threads: so many iterations more, of so many in all (or unknown)."""

    def __call__(self, iterations: int, total: int | None) -> None: ...


def silent(iterations: int, total: int | None) -> None:
    """Report nothing."""


def compiled(kernels: Iterable[Any], show: bool | None = None) -> float:
    """Compile what a sampler needs, where that was never done on this machine; the seconds it took.

    One line says so, and on a terminal or in a notebook a bar says how far it is. What was compiled
    before is loaded when it is called, and nothing is said.
    """
    units = missing(kernels)
    return compile_with_bar(units, show) if units else 0.0


def compile_with_bar(units: Sequence[Unit], show: bool | None = None) -> float:
    """Compile, and say so; the seconds it took."""
    console = Console(stderr=True)
    if show is not False and in_notebook():
        with notebook_bar(f"compiling {len(units)} kernels for this machine, once") as shown:
            return compile_units(units, lambda done, total, what: shown(done, total, ""))
    if show is not False:
        text = (
            f"hamiltree: compiling {len(units)} kernels for this machine, only once (about a "
            "minute)"
        )
        if not LASTS:
            text = (
                f"hamiltree: compiling {len(units)} kernels (about a minute, in every new process: "
                f"{WANTED} is not writable; set NUMBA_CACHE_DIR to a writable folder)"
            )
        print(text, file=sys.stderr, flush=True)
    if not (console.is_terminal if show is None else show):
        return compile_units(units)
    columns = (TextColumn("compiling"), BarColumn(), TextColumn("{task.fields[what]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compiling", total=len(units), what="")

        def say(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, what=what.split(":")[-1])

        return compile_units(units, say)


@contextmanager
def progress_bar(show: bool | None, *, unit: str) -> Iterator[Report]:
    """A bar that counts up to a total which may still move.

    On standard error, or in a notebook's output; None: on a terminal and in notebooks.
    """
    console = Console(stderr=True)
    if show is not False and in_notebook():
        with _counting(unit) as report:
            yield report
        return
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


@contextmanager
def _counting(unit: str) -> Iterator[Report]:
    done, lock = 0, Lock()
    with notebook_bar("sampling") as show:

        def report(iterations: int, total: int | None) -> None:
            nonlocal done
            with lock:
                done += iterations
            limit = "" if total is None else f" of {total:,}"
            show(done, total, f"{done:,}{limit} {unit}")

        yield report
