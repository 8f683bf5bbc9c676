"""The chains of a run: seeds, threads or other machines, blocks of iterations, draws.

Chains run in threads (the compiled code releases the GIL), or elsewhere if the user asks joblib for
it. Threads that they leave idle help with rungs, or with the rows of large data. Each has its own
generator, spawned from the seed, so the draws do not depend on where it runs; and a chain advanced
in blocks makes the same draws as one advanced in one go, so they do not depend on the blocks
either.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, Self

import joblib
import numpy as np

from ..core.tree.record import Piece
from ..draws import Draws, RunInfo
from ..methods.base import Configuration, Problem, build_sampler
from ..samplers.tempering import TemperedChain
from .chain_state import capture, restore
from .cluster import advance_elsewhere, is_asked_for
from .gathering import gather, gather_tallies, joined, log_evidence, stats_of
from .progress import Report, compiled, silent
from .snapshot import Snapshot

BLOCK_SECONDS = 0.25
"""Aim for blocks of this length: short enough for Ctrl-C, long enough not to cost anything."""
BLOCKS_A_ROUND = 64
"""Of each chain, before all meet in any case: who is done first waits for the last."""
FIRST_ROUND = 50
"""Iterations elsewhere that show how long an iteration takes there."""


def nothing_between() -> None:
    """Between two blocks, do nothing."""


class Chains:
    """The chains of a run, advanced side by side, and the draws they have made so far.

    A context manager: leaving it waits for the blocks under way, and drops those that are not.

    Parameters
    ----------
    resume : a run to go on from, of the same data, settings and seed
    round_seconds : chains elsewhere come back so often; None for only when they are done
    """

    def __init__(
        self,
        problem: Problem,
        settings: Configuration[Any],
        *,
        n_chains: int,
        n_warmup: int,
        n_particles: int = 0,
        n_jobs: int | None = None,
        seed: int | np.random.SeedSequence = 0,
        resume: Snapshot | None = None,
        round_seconds: float | None = None,
        progress: bool | None = None,
    ) -> None:
        self.started = time.perf_counter() - (0.0 if resume is None else resume.seconds)
        self.method = settings.method.name
        self.elsewhere = is_asked_for(n_jobs)
        cores = 1 if self.elsewhere else max(joblib.effective_n_jobs(n_jobs), 1)
        self._threads = min(cores, n_chains)
        inside = max(cores // n_chains, 1)  # threads of a chain, where chains leave some idle
        sampler = build_sampler(problem, settings, n_warmup, n_particles, inside)
        self.h = sampler.h
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        generators = [np.random.Generator(np.random.PCG64(s)) for s in root.spawn(n_chains)]
        self._task = (problem, settings, n_warmup, n_particles)
        self._n_jobs = n_jobs
        self.compile_seconds = compiled(sampler.kernels, progress)
        self.started += self.compile_seconds
        self.chains = [sampler.start(rng) for rng in generators]
        if not self.elsewhere:
            self.chains[0].compile()
        self._pieces: list[list[Piece]] = [[] for _ in self.chains]
        self._done = [0] * n_chains
        if resume is not None:
            for chain, state in zip(self.chains, resume.states, strict=True):
                restore(chain, state)
            self._pieces = [list(pieces) for pieces in resume.pieces]
            self._done = list(resume.done)
        for chain in self.chains:
            if isinstance(chain, TemperedChain):
                chain.workers = inside
        self.block = 1  # iterations that should take about so long:
        self._seconds, self._growth = BLOCK_SECONDS, 4
        if self.elsewhere:
            self.block = sys.maxsize if round_seconds is None else FIRST_ROUND
            self._seconds, self._growth = round_seconds or np.inf, 100
        self.undisturbed: Callable[[], AbstractContextManager[None]] = nullcontext
        """Signals wait for what is done in it; for whoever lets them act at once."""
        self.asked_to_meet: Callable[[], bool] = lambda: False
        """Where it says so, chains meet as soon as they can: to stop, or for a checkpoint."""
        # A pool of our own rather than joblib's: on Ctrl-C the blocks under way must finish (a
        # fraction of a second) before their draws are collected, which joblib's do not offer.
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="hamiltree")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def done(self) -> int:
        """Iterations that every chain has made."""
        return min(self._done)

    @property
    def n_draws(self) -> int:
        """Draws that every chain has made."""
        return min(sum(len(piece.n_nodes) for piece in pieces) for pieces in self._pieces)

    def advance(self, n: int, report: Report = silent, total: int | None = None) -> None:
        """Advance every chain by n iterations, of ``total`` for the report."""
        self._advance(dict.fromkeys(range(len(self.chains)), n), report, total)

    def _advance(self, steps: dict[int, int], report: Report, total: int | None) -> None:
        """Advance some chains, each by its own number of iterations."""
        total = None if total is None else total * len(self.chains)

        def keep(k: int, n: int, blocks: list[Piece]) -> None:
            self._pieces[k].extend(blocks)
            self._done[k] += n
            report(n, total)

        if not self.elsewhere:
            self._advance_here(steps, keep)
            return
        begun = time.perf_counter()
        back = advance_elsewhere(*self._task, self.chains, steps, self._n_jobs)
        with closing(back):
            for k, blocks, state in back:
                with self.undisturbed():  # a chain and its draws belong together
                    restore(self.chains[k], state)
                    keep(k, steps[k], blocks)
        self._pace(max(steps.values()), time.perf_counter() - begun)

    def _pace(self, n: int, seconds: float) -> None:
        """How long the next block should be, after one of n iterations that took so long."""
        wanted = min(self._seconds * n / max(seconds, 1e-9), self._growth * n, sys.maxsize)
        self.block = max(int(wanted), 1)

    def _advance_here(
        self, steps: dict[int, int], keep: Callable[[int, int, list[Piece]], None]
    ) -> None:
        """In threads, block by block, always the chain that is furthest behind.

        Iterations differ in length, by far where data are large: chains that met after each block
        would keep threads waiting.
        """
        end = {k: self._done[k] + n for k, n in steps.items()}
        reached = {k: self._done[k] for k in steps}  # with the blocks under way
        furthest = max(reached.values())
        resting = set(steps)
        lock = threading.Lock()
        failed = False

        def take() -> tuple[int, int] | None:
            """A chain that rests, and how far it should go."""
            with lock:
                most = max(reached.values())
                if most == furthest or not self.asked_to_meet():  # a block at least
                    most = sys.maxsize
                ready = [k for k in resting if reached[k] < min(end[k], most)]
                if failed or not ready:
                    return None
                k = min(ready, key=lambda k: (reached[k], k))
                n = min(self.block, end[k] - reached[k], most - reached[k])
                resting.remove(k)
                reached[k] += n
                return k, n

        def work() -> None:
            nonlocal failed
            while (taken := take()) is not None:
                k, n = taken
                begun = time.perf_counter()
                try:
                    keep(k, n, self.chains[k].advance(n))
                except BaseException:
                    failed = True
                    raise
                self._pace(n, time.perf_counter() - begun)
                with lock:
                    resting.add(k)

        for future in [self._pool.submit(work) for _ in range(min(self._threads, len(steps)))]:
            future.result()

    def advance_to(
        self,
        total: int,
        report: Report = silent,
        between: Callable[[], None] = nothing_between,
    ) -> None:
        """Advance every chain to ``total`` iterations, in blocks, with something between them."""
        while self.done < total:
            between()
            blocks = 1 if self.elsewhere else BLOCKS_A_ROUND
            goal = min(self.done + blocks * self.block, total)
            behind = {k: goal - done for k, done in enumerate(self._done) if done < goal}
            self._advance(behind, report, total)

    def finish(
        self, report: Report = silent, between: Callable[[], None] = nothing_between
    ) -> None:
        """Advance until each chain has handed over its draws, for those that make all at once."""
        while not all(self._pieces):
            between()
            self.advance(self.block, report)

    def forget(self) -> None:
        """Drop the draws made so far, as if warm-up had been longer."""
        self._pieces = [[] for _ in self.chains]

    def snapshot(self, identity: dict[str, Any]) -> Snapshot:
        """All that is needed to go on from here; between two calls that advance."""
        self._pieces = [[joined(pieces)] if pieces else [] for pieces in self._pieces]
        return Snapshot(
            identity=identity,
            states=[capture(chain) for chain in self.chains],
            done=list(self._done),
            pieces=[list(pieces) for pieces in self._pieces],
            seconds=time.perf_counter() - self.started,
        )

    def collect(self, stopped: str, most: int | None = None) -> tuple[Draws, RunInfo]:
        """The draws that every chain has made, and what a person reads of the run.

        ``most``: only so many draws a chain, the first ones.
        """
        kept = self.n_draws if most is None else min(self.n_draws, most)
        draws, scalar = gather(self._pieces, kept, self.h)
        info = RunInfo(
            acceptance=gather_tallies([chain.tally() for chain in self.chains]),
            stats=stats_of(self.method, scalar),
            seconds=time.perf_counter() - self.started,
            stopped=stopped,
            compile_seconds=self.compile_seconds,
            log_evidence=log_evidence(scalar["log_weight"]) if self.method == "smc" else None,
        )
        return draws, info
