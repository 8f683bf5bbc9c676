"""Chains, seeds, blocks of iterations, judging and interruption: one ordinary loop.

Chains run in threads (the compiled code releases the GIL). Each has its own generator, spawned
from the seed, so the draws do not depend on how many threads there are; and a chain advanced in
blocks makes the same draws as one advanced in one go, so they do not depend on the blocks either,
nor on how often the run was judged and went on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from .core.buffers import Columns
from .core.record import Block
from .draws import Draws, RunInfo
from .gathering import gather, gather_tallies, log_evidence, stats_of
from .progress import Report, announced_compilation, progress_bar, silent
from .samplers.cgm import build_cgm
from .samplers.rjhmc import RJHMC
from .samplers.smc import SMC
from .samplers.tempering import Tempered, TemperedChain
from .samplers.wu import build_wu
from .settings import Settings

BLOCK_SECONDS = 0.25
"""Aim for blocks of this length: short enough for Ctrl-C, long enough not to cost anything."""
GROWTH = 1.5
"""A run that goes on becomes this many times longer before it is judged again: all judging
together then costs about three times the last, and at most a third of the draws are too many."""


@dataclass(frozen=True)
class Problem:
    """Data as the samplers want it."""

    columns: Columns
    """[p, n] on the unit interval; ``np.asarray`` makes one array of it."""
    y: NDArray[np.generic]
    """[n]: the standardised target, or class codes 0 .. n_classes - 1."""
    n_classes: int
    """0 for regression."""


class Chain(Protocol):
    """What the loop asks of a chain of any sampler."""

    def compile(self) -> None: ...
    def advance(self, n: int) -> list[Block]: ...
    def tally(self) -> dict[str, dict[str, tuple[int, int]]]: ...


class Sampler(Protocol):
    """Frozen configuration that starts chains."""

    @property
    def h(self) -> NDArray[np.float64]: ...
    def start(self, rng: np.random.Generator) -> Chain: ...


def build_sampler(problem: Problem, settings: Settings, n_warmup: int, n_draws: int) -> Sampler:
    if settings.method in ("hmc-df", "hmc-dfi"):
        sampler = RJHMC.build(problem.columns, problem.y, problem.n_classes, settings, n_warmup)
        return sampler if settings.replicas == 1 else Tempered(sampler, settings.replicas)
    data = (np.asarray(problem.columns, np.float64), problem.y, problem.n_classes)
    if settings.method == "smc":
        return SMC.build(*data, settings, n_draws)
    if settings.method == "cgm":
        return build_cgm(*data, settings, n_warmup)
    return build_wu(*data, settings, n_warmup)


class Chains:
    """The chains of a run, advanced side by side, and the draws they have made so far.

    A context manager: leaving it waits for the blocks under way, and drops those that are not.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        *,
        n_chains: int,
        n_warmup: int,
        n_particles: int = 0,
        n_jobs: int | None = None,
        seed: int | np.random.SeedSequence = 0,
    ) -> None:
        self.started = time.perf_counter()
        self.method = settings.method
        sampler = build_sampler(problem, settings, n_warmup, n_particles)
        self.h = sampler.h
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        generators = [np.random.Generator(np.random.PCG64(s)) for s in root.spawn(n_chains)]
        with announced_compilation():
            self.chains = [sampler.start(rng) for rng in generators]
            self.chains[0].compile()
        self.done = 0  # iterations of every chain
        self.block = 1  # iterations that should take about BLOCK_SECONDS
        self._pieces: list[list[Block]] = [[] for _ in self.chains]
        cores = max(joblib.effective_n_jobs(n_jobs), 1)
        self._threads = min(cores, n_chains)
        for chain in self.chains:
            if isinstance(chain, TemperedChain):  # rungs in threads where chains leave some idle
                chain.workers = max(cores // n_chains, 1)
        # A pool of our own rather than joblib's: on Ctrl-C the blocks under way must finish (a
        # fraction of a second) before their draws are collected, which joblib's do not offer.
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="hamiltree")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def n_draws(self) -> int:
        """Draws that every chain has made."""
        return min(sum(len(piece.n_nodes) for piece in pieces) for pieces in self._pieces)

    def advance(self, n: int, report: Report = silent, total: int | None = None) -> None:
        """Advance every chain by n iterations, of ``total`` for the report."""
        total = None if total is None else total * len(self.chains)

        def work(k: int) -> None:
            self._pieces[k].extend(self.chains[k].advance(n))
            report(n, total)

        begun = time.perf_counter()
        for future in [self._pool.submit(work, k) for k in range(len(self.chains))]:
            future.result()
        self.done += n
        rounds = -(-len(self.chains) // self._threads)
        speed = (time.perf_counter() - begun) / (n * rounds)
        self.block = int(min(max(BLOCK_SECONDS / max(speed, 1e-9), 1), 4 * n))

    def advance_to(self, total: int, report: Report = silent) -> None:
        """Advance every chain to ``total`` iterations, in blocks."""
        while self.done < total:
            self.advance(min(self.block, total - self.done), report, total)

    def finish(self, report: Report = silent) -> None:
        """Advance until each chain has handed over its draws, for those that make all at once."""
        while not all(self._pieces):
            self.advance(self.block, report)

    def forget(self) -> None:
        """Drop the draws made so far, as if warm-up had been longer."""
        self._pieces = [[] for _ in self.chains]

    def collect(self, stopped: str) -> tuple[Draws, RunInfo]:
        """The draws that every chain has made, and what a person reads of the run."""
        draws, scalar = gather(self._pieces, self.n_draws, self.h)
        info = RunInfo(
            acceptance=gather_tallies([chain.tally() for chain in self.chains]),
            stats=stats_of(self.method, scalar),
            seconds=time.perf_counter() - self.started,
            stopped=stopped,
            log_evidence=log_evidence(scalar["log_weight"]) if self.method == "smc" else None,
        )
        return draws, info


@dataclass(frozen=True)
class Goal:
    """What makes a run go on beyond its first draws, and for how long."""

    enough: Callable[[Draws, RunInfo], bool]
    """Judges what was drawn so far."""
    max_draws: int
    """Draws a chain at which the run ends in any case."""


def sample(
    problem: Problem,
    settings: Settings,
    *,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    goal: Goal | None = None,
    n_jobs: int | None = None,
    seed: int | np.random.SeedSequence = 0,
    progress: bool | None = None,
) -> tuple[Draws, RunInfo]:
    """Run the chains; Ctrl-C keeps the draws that every chain has made by then.

    With a goal the chains make ``n_draws`` and go on until it is reached, or its limit;
    ``RunInfo.stopped`` says which. The draws are those that a longer run begins with.

    SMC has no warm-up and no goal, and its particles are of no use until all of them are complete:
    it runs until every island has handed them over, and Ctrl-C leaves nothing to keep.

    ``progress``: None shows a bar when standard error is a terminal.
    """
    smc = settings.method == "smc"
    chains = Chains(
        problem,
        settings,
        n_chains=n_chains,
        n_warmup=n_warmup,
        n_particles=n_draws,
        n_jobs=n_jobs,
        seed=seed,
    )
    with progress_bar(progress, unit="decisions" if smc else "iterations") as report, chains:
        try:
            if smc:
                chains.finish(report)
                stopped = "n_draws"
            else:
                stopped = _run_and_judge(chains, n_warmup, n_draws, goal, report)
        except KeyboardInterrupt:
            stopped = "interrupted"
    if chains.n_draws == 0:
        stage = "before the particles were complete" if smc else "during warm-up"
        raise KeyboardInterrupt(
            f"stopped {stage}: no draws had been made yet, so there is nothing to keep"
        )
    return chains.collect(stopped)


def _run_and_judge(
    chains: Chains, n_warmup: int, n_draws: int, goal: Goal | None, report: Report
) -> str:
    """Run, judge, and run on in steps that grow with the run; returns what ended it."""
    while True:
        chains.advance_to(n_warmup + n_draws, report)
        if goal is None:
            return "n_draws"
        if goal.enough(*chains.collect("n_draws")):
            return "target"
        if n_draws >= goal.max_draws:
            return "max_draws"
        n_draws = min(int(np.ceil(GROWTH * n_draws)), goal.max_draws)
