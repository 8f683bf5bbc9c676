"""What checkpoints cost: the share of a run at the default interval, and one of a million trees."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hamiltree import BayesianTreeClassifier
from hamiltree.core.tree.record import SCALARS, Piece
from hamiltree.methods import HMCDF
from hamiltree.running.checkpoints import MAX_SHARE, Checkpoints, Snapshot, write
from hamiltree.running.run import Problem, sample

MAX_OVERHEAD = 0.02
RUN_SECONDS = 200.0
N_CHAINS, N_DRAWS, N_LEAVES = 10, 100_000, 8
DEFAULT_SECONDS = BayesianTreeClassifier.checkpoint_seconds


class Timed(Checkpoints):
    """Counts what it takes."""

    spent = 0.0
    times = 0

    def _timed(self, work: Callable[[], None]) -> None:
        begun = time.perf_counter()
        work()
        self.spent += time.perf_counter() - begun

    def begin(self, snapshot: Callable[[], Snapshot]) -> None:
        self._timed(lambda: Checkpoints.begin(self, snapshot))

    def look(self, snapshot: Callable[[], Snapshot]) -> None:
        self._timed(lambda: Checkpoints.look(self, snapshot))

    def end(self, snapshot: Callable[[], Snapshot], *, interrupted: bool) -> None:
        self._timed(lambda: Checkpoints.end(self, snapshot, interrupted=interrupted))

    def _write(self, snapshot: Callable[[], Snapshot]) -> None:
        self.times += 1
        Checkpoints._write(self, snapshot)


def share_of_a_run(folder: Path) -> tuple[float, Timed, int]:
    """Time for checkpoints over the time for everything else, in one run."""
    rng = np.random.default_rng(0)
    columns = rng.random((5, 500))
    y = (columns[0] > 0.5).astype(np.int64) + (columns[1] > 0.7)
    problem, configuration = Problem(columns, y, 3), HMCDF().configured()
    lengths = {"n_chains": 4, "n_warmup": 500, "n_jobs": 2, "seed": 1, "progress": False}
    pilot = 500
    sample(problem, configuration, **lengths, n_draws=1)  # compiled code is loaded
    _, info = sample(problem, configuration, **lengths, n_draws=pilot)
    n_draws = int(RUN_SECONDS / info.seconds * (pilot + 500))
    kept = Timed(folder / "run.nc", DEFAULT_SECONDS)
    begun = time.perf_counter()
    sample(problem, configuration, **lengths, n_draws=n_draws, checkpoints=kept)
    took = time.perf_counter() - begun
    return kept.spent / (took - kept.spent), kept, n_draws


def large_run() -> Snapshot:
    """Draws of the size of a very long run."""
    nodes = (2 * N_LEAVES - 1) * N_DRAWS
    rng = np.random.default_rng(0)
    piece = Piece(
        filled=np.array([N_DRAWS, nodes, nodes // 2, N_LEAVES * N_DRAWS]),
        n_nodes=np.full(N_DRAWS, 2 * N_LEAVES - 1),
        size=np.ones(nodes, np.int32),
        feature=np.zeros((N_LEAVES - 1) * N_DRAWS, np.int32),
        threshold=rng.random((N_LEAVES - 1) * N_DRAWS),
        weights=np.zeros(((N_LEAVES - 1) * N_DRAWS, 0)),
        leaf=rng.random((N_LEAVES * N_DRAWS, 1)),
        scalars=rng.random((N_DRAWS, len(SCALARS))),
        h=np.zeros((N_DRAWS, 0)),
    )
    identity = {"hamiltree": "", "random_state": 0}
    return Snapshot(identity, [{}] * N_CHAINS, [N_DRAWS] * N_CHAINS, [piece] * N_CHAINS, 0.0)


def run(console: Console) -> list[tuple[str, str, str, bool | None]]:
    """Print the table; return (claim, measured, goal, met)."""
    table = Table(title="checkpoints")
    for heading in ("run", "checkpoints", "size, MB", "seconds each"):
        table.add_column(heading)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        share, kept, n_draws = share_of_a_run(folder)
        size = (folder / "run.nc").stat().st_size / 1e6
        each = f"{kept.spent / kept.times:.2f}"
        what = f"4 chains x {n_draws:,} draws, 500 rows, {RUN_SECONDS:.0f} s"
        table.add_row(what, str(kept.times), f"{size:.0f}", each)
        large = large_run()
        begun = time.perf_counter()
        write(folder / "large.nc", large)
        seconds = time.perf_counter() - begun
        size = (folder / "large.nc").stat().st_size / 1e6
        what = f"{N_CHAINS} x {N_DRAWS:,} draws of {N_LEAVES} leaves"
        table.add_row(what, "1", f"{size:.0f}", f"{seconds:.2f}")
    console.print(table)
    every = max(seconds / MAX_SHARE, DEFAULT_SECONDS)
    return [
        (
            f"checkpoints every {DEFAULT_SECONDS:.0f} s, share of the rest of the run",
            f"{share:.2%}",
            f"< {MAX_OVERHEAD:.0%}",
            share < MAX_OVERHEAD,
        ),
        (
            "10 x 100,000 draws of 8 leaves: one checkpoint, and the time to the next",
            f"{seconds:.1f} s, then {every:.0f} s",
            f"< {MAX_OVERHEAD:.0%}",
            seconds / every < MAX_OVERHEAD,
        ),
    ]
