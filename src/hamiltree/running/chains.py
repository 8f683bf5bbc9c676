"""The chains of a run: seeds, threads or other machines, batches of iterations, and their draws.

Chains run in threads (the compiled code releases the GIL), or on a cluster if the user asks joblib
for it. Threads that they leave idle help with rungs, or with the rows of large data. Each has its
own generator, spawned from the seed, so the draws do not depend on where it runs; and a chain
advanced in batches makes the same draws as one advanced in one go, so they do not depend on the
batches either.

A chain hands its draws over in pieces. ``Chains.collect`` makes of all pieces the flat ``Draws`` of
a posterior.

With replicas="auto", chains are judged by their first draws, and where they disagree each becomes
the start of a chain with replicas (``takeover``): what was drawn before counts as warm-up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from queue import SimpleQueue
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from ..core.tree.kinds import coded_kinds
from ..core.tree.record import Piece, joined
from ..methods.base import Configuration, build_sampler
from ..posterior.draws import STAT_TYPES, Draws, RunInfo, collect, collect_tallies
from ..posterior.evidence import evidence_of_ladder, evidence_of_particles
from ..samplers.chain_state import capture, restore
from ..samplers.common import Problem
from ..samplers.tempering import TemperedChain, settle
from .checkpoints import Checkpoints, Identity, Snapshot
from .cluster import advance_on_cluster, is_asked_for
from .interrupts import Stop
from .progress import Report, compiled, silent
from .takeover import Takeover

BATCH_SECONDS = 0.25
"""Intended length of a batch: short enough for Ctrl-C, long enough to cost nothing."""
BATCHES_PER_ROUND = 64
"""Of each chain, after which all chains wait for each other."""
FIRST_ROUND = 50
"""Iterations on a cluster that show how long an iteration takes there."""
ROUNDS_IN_TIME = 20
"""Of chains on a cluster, where the time of the run is limited."""

Keep = Callable[[int, int, list[Piece]], None]
"""Stores what a batch has made: number of the chain, iterations, draws."""


class Chains:
    """The chains of a run, advanced side by side, and the draws they have made so far.

    Parameters
    ----------
    resume : a run to go on from, of the same data, configuration and seed
    stop : may ask the chains to end; looked at whenever they meet
    checkpoints : of the run; chains meet when one is to be written
    identify : says whose run it is, for checkpoints
    """

    def __init__(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        *,
        n_chains: int,
        n_warmup: int,
        n_particles: int = 0,
        n_jobs: int | None = None,
        seed: int | np.random.SeedSequence = 0,
        progress: bool | None = None,
        resume: Snapshot | None = None,
        stop: Stop | None = None,
        checkpoints: Checkpoints | None = None,
        identify: Callable[[], Identity] = dict,
    ) -> None:
        self.started = time.perf_counter() - (0.0 if resume is None else resume.seconds)
        self.method = configuration.method
        self.n_warmup, self.seed = n_warmup, seed if isinstance(seed, int) else None
        self.on_cluster = is_asked_for(n_jobs)
        self._stop = Stop() if stop is None else stop
        self._checkpoints = Checkpoints() if checkpoints is None else checkpoints
        self._identify = identify
        self._task = (problem, configuration, n_warmup, n_particles)
        self._n_jobs = n_jobs
        cores = 1 if self.on_cluster else max(joblib.effective_n_jobs(n_jobs), 1)
        self._n_threads = min(cores, n_chains)
        self._inside = max(cores // n_chains, 1)  # threads of a chain, where chains leave some idle
        sampler = build_sampler(problem, configuration, n_warmup, n_particles, self._inside)
        self.h = sampler.h
        self.kinds = coded_kinds(problem.kinds)
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        generators = [np.random.Generator(np.random.PCG64(s)) for s in root.spawn(n_chains)]
        self.compile_seconds = compiled(sampler.kernels, progress)
        self.started += self.compile_seconds
        self.chains: list[Any] = [sampler.start(rng) for rng in generators]
        if not self.on_cluster:
            self.chains[0].compile()
        self._pieces: list[list[Piece]] = [[] for _ in self.chains]
        self._done = [0] * n_chains
        self.takeover = Takeover(sampler, configuration, n_warmup, root.spawn(n_chains))
        self._before: tuple[list[Any], list[list[Piece]], int] | None = None
        """Chains, draws and iterations of warm-up of before the takeover, for a run that ends
        without draws after it."""
        self._ladders: list[TemperedChain] = []
        if resume is not None:
            if resume.replicas > 1:
                self.takeover.n_warmup = resume.replica_warmup or n_warmup
                self._take_over(resume.replicas, resume.taken_over_at)
                self.takeover.reason = resume.why_replicas
            for chain, state in zip(self.chains, resume.states, strict=True):
                restore(chain, state)
            self._pieces = [[] if draws is None else [draws] for draws in resume.draws]
            self._done = list(resume.done)
            self._before = None
        self._know_ladders()
        self._workers: list[threading.Thread] = []
        self.batch = 1  # iterations that should take about so long:
        self._seconds, self._growth = BATCH_SECONDS, 4
        if self.on_cluster:  # chains come back when they are done, for a checkpoint, or in time
            seconds = self._stop.seconds / ROUNDS_IN_TIME
            if self._checkpoints.target is not None:
                seconds = min(seconds, self._checkpoints.seconds)
            self.batch = FIRST_ROUND if seconds < np.inf else sys.maxsize
            self._seconds, self._growth = seconds, 100

    @property
    def done(self) -> int:
        """Iterations that every chain has made."""
        return min(self._done)

    @property
    def n_draws(self) -> int:
        """Draws that every chain has made."""
        return min(sum(len(piece.n_nodes) for piece in pieces) for pieces in self._pieces)

    # ------------------------------------------------------------------ going on

    def advance(self, n: int, report: Report = silent, total: int | None = None) -> None:
        """Advance every chain by n iterations, of ``total`` for the report."""
        self._advance(dict.fromkeys(range(len(self.chains)), n), report, total)

    def advance_to(self, n_draws: int, report: Report = silent) -> None:
        """Advance every chain to ``n_draws``, in rounds; may end in ``Stopped``."""
        while self.done < (total := self.n_warmup + n_draws):
            self._meet()
            if self._judge():
                continue
            batches = 1 if self.on_cluster else BATCHES_PER_ROUND
            goal = min(self.done + batches * self.batch, total, self._next_round())
            behind = {k: goal - done for k, done in enumerate(self._done) if done < goal}
            self._advance(behind, report, total)

    def finish(self, report: Report = silent) -> None:
        """Advance until each chain has handed over its draws, for those that make all at once."""
        while not all(self._pieces):
            self._meet()
            self.advance(self.batch, report)

    def wait(self) -> None:
        """Let the batches end that are under way after an interruption: their draws count."""
        for worker in self._workers:
            worker.join()

    def forget(self) -> None:
        """Drop the draws made so far, as if warm-up had been longer."""
        self._pieces = [[] for _ in self.chains]

    def _meet(self) -> None:
        """While no chain moves: end the run if that is due, write a checkpoint if it is time."""
        self._stop.look()
        self._checkpoints.look(self.snapshot)

    def _next_round(self) -> int:
        """Where chains with replicas have to meet next, to place these together."""
        while self._ladders and all(chain.is_due for chain in self._ladders):
            settle(self._ladders)
        left = [
            self.takeover.at + end
            for chain in self._ladders[:1]
            for end in chain.rounds[chain.settled :]
        ]
        if self.takeover.is_open:
            left.append(self.n_warmup + self.takeover.n_judged)
        return min(left, default=sys.maxsize)

    # ------------------------------------------------------------------ replicas where needed

    def _judge(self) -> bool:
        """Whether the chains, which have made enough draws to be judged, need replicas.

        A run that was resumed may have made enough to be judged more than once.
        """
        while self.takeover.is_open and self.n_draws >= self.takeover.n_judged:
            draws, _ = collect(self._pieces, self.takeover.n_judged, self.h, self.kinds)
            replicas = self.takeover.decide(draws)
            if replicas == 1:
                continue
            seconds_per_iteration = (time.perf_counter() - self.started) / self.done
            if self.takeover.fits(replicas, seconds_per_iteration, self._stop.seconds_left):
                self._take_over(replicas, self.done)
                return True
        return False

    def _take_over(self, replicas: int, at: int) -> None:
        """Each chain becomes the start of one with replicas."""
        self._before = self.chains, self._pieces, self.n_warmup
        self.chains = self.takeover.start(replicas, at, self.chains)
        self.n_warmup = at + self.takeover.n_warmup
        self.forget()
        problem, _, _, n_particles = self._task
        self._task = (problem, self.takeover.configuration, self.takeover.n_warmup, n_particles)
        self.batch = 1
        self._know_ladders()

    def _know_ladders(self) -> None:
        self._ladders = [chain for chain in self.chains if isinstance(chain, TemperedChain)]
        for chain in self._ladders:
            chain.workers = self._inside

    def fall_back(self) -> None:
        """Back to the draws of before the takeover, where there are none after it."""
        if self.n_draws == 0 and self._before is not None:
            self.chains, self._pieces, self.n_warmup = self._before
            self.takeover.reason += ", but the run ended before they had made a draw"
            self._know_ladders()

    def _advance(self, steps: dict[int, int], report: Report, total: int | None) -> None:
        """Advance some chains, each by its own number of iterations."""
        total = None if total is None else total * len(self.chains)

        def keep(k: int, n: int, pieces: list[Piece]) -> None:
            self._pieces[k].extend(pieces)
            self._done[k] += n
            report(n, total)

        if self.on_cluster:
            self._advance_there(steps, keep)
        else:
            self._advance_here(steps, keep)

    def _advance_there(self, steps: dict[int, int], keep: Keep) -> None:
        """On other machines. Signals do not wait for them; a chain comes back with its draws."""
        begun = time.perf_counter()
        with closing(advance_on_cluster(*self._task, self.chains, steps, self._n_jobs)) as back:
            while True:
                with self._stop.at_once():
                    result = next(back, None)
                if result is None:
                    break
                k, pieces, state = result
                restore(self.chains[k], state)
                keep(k, steps[k], pieces)
        self._pace(max(steps.values()), time.perf_counter() - begun)

    def _advance_here(self, steps: dict[int, int], keep: Keep) -> None:
        """In threads, batch by batch, always the chain that is furthest behind.

        Iterations differ in length, by far where data are large: chains that met after each batch
        would keep threads waiting.
        """
        end = {k: self._done[k] + n for k, n in steps.items()}
        reached = {k: self._done[k] for k in steps}  # with the batches under way
        furthest = max(reached.values())
        resting = set(steps)
        lock = threading.Lock()
        ending = False
        outcomes: SimpleQueue[BaseException | None] = SimpleQueue()

        def take() -> tuple[int, int] | None:
            """A chain that rests, and how far it should go."""
            with lock:
                most = max(reached.values())
                wanted = self._stop.is_due or self._checkpoints.is_time()
                if most == furthest or not wanted:  # at least one batch
                    most = sys.maxsize
                ready = [k for k in resting if reached[k] < min(end[k], most)]
                if ending or not ready:
                    return None
                k = min(ready, key=lambda k: (reached[k], k))
                n = min(self.batch, end[k] - reached[k], most - reached[k])
                resting.remove(k)
                reached[k] += n
                return k, n

        def work() -> None:
            nonlocal ending
            try:
                while (taken := take()) is not None:
                    k, n = taken
                    begun = time.perf_counter()
                    keep(k, n, self.chains[k].advance(n))
                    self._pace(n, time.perf_counter() - begun)
                    with lock:
                        resting.add(k)
            except BaseException as error:
                ending = True
                outcomes.put(error)
            else:
                outcomes.put(None)

        # Daemons, rather than a pool: a second Ctrl-C must not wait for a batch.
        self._workers = [
            threading.Thread(target=work, name=f"hamiltree_{number}", daemon=True)
            for number in range(min(self._n_threads, len(steps)))
        ]
        try:
            for worker in self._workers:
                worker.start()
            errors = [outcomes.get() for _ in self._workers]
            self.wait()  # they are done; until they are gone they hold the chains and their memory
        finally:
            ending = True
        for error in errors:
            if error is not None:
                raise error

    def _pace(self, n: int, seconds: float) -> None:
        """Set the size of the next batch, after one of n iterations that took so many seconds."""
        wanted = min(self._seconds * n / max(seconds, 1e-9), self._growth * n, sys.maxsize)
        self.batch = max(int(wanted), 1)

    # ------------------------------------------------------------------ results

    def snapshot(self) -> Snapshot:
        """All that is needed to go on from here; between two calls that advance."""
        self._pieces = [[joined(pieces)] if pieces else [] for pieces in self._pieces]
        return Snapshot(
            identity=self._identify(),
            states=[capture(chain) for chain in self.chains],
            done=list(self._done),
            draws=[pieces[0] if pieces else None for pieces in self._pieces],
            seconds=time.perf_counter() - self.started,
            replicas=self.takeover.replicas,
            taken_over_at=self.takeover.at,
            replica_warmup=self.takeover.n_warmup,
            why_replicas=self.takeover.reason,
        )

    def collect(self, stopped: str, most: int | None = None) -> tuple[Draws, RunInfo]:
        """The draws that every chain has made, and the information about the run.

        ``most``: only so many draws per chain, the first ones.
        """
        kept = self.n_draws if most is None else min(self.n_draws, most)
        draws, scalar = collect(self._pieces, kept, self.h, self.kinds)
        evidence, error = self._log_evidence(scalar["log_weight"], kept)
        info = RunInfo(
            acceptance=collect_tallies([chain.tally() for chain in self.chains]),
            stats={
                name: scalar[name].astype(STAT_TYPES.get(name, np.float64))
                for name in self.method.stats
            },
            seconds=time.perf_counter() - self.started,
            stopped=stopped,
            compile_seconds=self.compile_seconds,
            n_warmup=self.n_warmup,
            seed=self.seed,
            log_evidence=evidence,
            log_evidence_error=error,
            powers=tuple(float(v) for chain in self._ladders[:1] for v in chain.powers),
            why_replicas=self.takeover.reason,
        )
        return draws, info

    def _log_evidence(
        self, log_weight: NDArray[np.float64], kept: int
    ) -> tuple[float, float] | tuple[None, None]:
        """With its standard error, where there are particles, or replicas down to the prior."""
        if self.method.makes_particles:
            return evidence_of_particles(log_weight)
        if not self._ladders or self._ladders[0].powers[-1] > 0.0:
            return None, None
        powers = [chain.full_power * chain.powers for chain in self._ladders]
        log_likes = [
            np.concatenate([piece.rungs for piece in pieces])[:kept] for pieces in self._pieces
        ]
        return evidence_of_ladder(np.array(powers), np.array(log_likes))
