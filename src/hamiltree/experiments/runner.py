"""Runs what is not in the store yet: in parallel, resumable, with an estimate of the time left.

Jobs go through joblib. Threads by default, because the compiled code releases the GIL and a run
takes a second or so; inside ``joblib.parallel_config("dask")`` or the like they go wherever that
sends them. Only this process writes to the store.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from sklearn.exceptions import ConvergenceWarning

from ..datasets import Split
from .store import Config, Result, Store, key_of

LINE_SECONDS = 15.0
"""Where the progress is not shown on a terminal, a line so often."""


@dataclass(frozen=True)
class Job:
    """One run: what is to be done, to what, and under which configuration it is kept."""

    config: Config
    split: Split
    function: Callable[[Config, Split], Result]

    def __call__(self) -> tuple[Config, Result]:
        return self.config, self.function(self.config, self.split)


class StoppedError(Exception):
    """Ctrl-C; what was finished is in the store."""


def complete(jobs: Sequence[Job], store: Store, n_jobs: int, console: Console, what: str) -> None:
    """Run the jobs that the store does not have.

    Jobs of the same kind should be spread over the sequence: the time left is judged by the
    number of jobs that are done.
    """
    there = store.keys()
    left = [job for job in jobs if key_of(job.config) not in there]
    if not left:
        console.print(f"{what}: all {len(jobs)} are there already")
        return
    if len(left) < len(jobs):
        console.print(f"{what}: {len(jobs) - len(left)} of {len(jobs)} are there already")
    pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
    done = 0
    with warnings.catch_warnings(), _shown_progress(what, len(left), console) as report:
        # Single chains cannot agree with each other; the tables have R-hat between restarts.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            for config, result in pool(delayed(job)() for job in left):
                store.save(config, result)
                done += 1
                report(done)
        except KeyboardInterrupt:
            kept = len(jobs) - len(left) + done
            raise StoppedError(
                f"stopped: {kept} of {len(jobs)} are kept in {store.path}; the same command "
                "resumes from there"
            ) from None


@contextmanager
def _shown_progress(what: str, total: int, console: Console) -> Iterator[Callable[[int], None]]:
    if not console.is_terminal:
        yield _Lines(what, total, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


class _Lines:
    """Progress for a log file."""

    def __init__(self, what: str, total: int, console: Console) -> None:
        self.what, self.total, self.console = what, total, console
        self.started = self.last = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now - self.last < LINE_SECONDS and done < self.total:
            return
        self.last = now
        elapsed = now - self.started
        left = elapsed / done * (self.total - done)
        self.console.print(
            f"{self.what}: {done} of {self.total}, {elapsed:.0f} s, about {left:.0f} s left"
        )
