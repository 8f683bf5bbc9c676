"""A run: its chains, judging, going on, checkpoints and interruption; one ordinary loop.

The draws do not depend on how often the run was judged, or stopped, and went on.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ..methods.base import Configuration, build_sampler
from ..posterior.draws import Draws, RunInfo
from ..samplers.common import Problem
from .chains import Chains
from .checkpoints import Checkpoints, Identity, identify
from .interrupts import Stop, Stopped, TimeIsOver
from .progress import Report, progress_bar

__all__ = ["Chains", "Goal", "Problem", "build_sampler", "sample"]

GROWTH = 1.5
"""A run that goes on becomes this many times longer before it is judged again: all judging
together then costs about three times the last, and at most a third of the draws are too many."""


@dataclass(frozen=True)
class Goal:
    """What makes a run go on beyond its first draws, and for how long."""

    enough: Callable[[Draws, RunInfo], bool]
    """Judges what was drawn so far."""
    max_draws: int
    """Draws per chain at which the run ends in any case."""


def sample(
    problem: Problem,
    configuration: Configuration[Any],
    *,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    goal: Goal | None = None,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    checkpoints: Checkpoints | None = None,
) -> tuple[Draws, RunInfo]:
    """Run the chains until they have made ``n_draws``, or have reached their goal.

    With a goal the chains make ``n_draws`` and go on until it is reached, or its limit;
    ``RunInfo.stopped`` says which. The draws are those that a longer run begins with.

    ``max_seconds``: the run ends after so long, compiling left aside, with the draws that every
    chain has made by then; a ``RuntimeError`` where there are none.

    Ctrl-C keeps the draws that every chain has made by then; a second one ends at once. SIGTERM
    ends the process with status 143, after the checkpoint is written, if there is one.

    SMC has no warm-up and no goal, and its particles are of no use until all of them are complete:
    it runs until every island has handed them over, and Ctrl-C leaves nothing to keep.

    ``progress``: None shows a bar when standard error is a terminal, and in notebooks.
    ``checkpoints``: the run to go on from, and where this one is kept; only then are
    data hashed and chains copied.
    """
    lengths = {"n_chains": n_chains, "n_warmup": n_warmup, "n_particles": n_draws, "seed": seed}
    checkpoints = Checkpoints() if checkpoints is None else checkpoints
    stop = Stop(max_seconds)

    @cache
    def identity() -> Identity:
        return identify(problem, configuration, **lengths)

    chains = Chains(
        problem,
        configuration,
        **lengths,
        n_jobs=n_jobs,
        progress=progress,
        resume=checkpoints.resume(identity),
        stop=stop,
        checkpoints=checkpoints,
        identify=identity,
    )
    if goal is None and chains.n_draws > n_draws:
        raise ValueError(
            f"the run to continue has {chains.n_draws} draws per chain already, more than "
            f"n_draws={n_draws}: ask for at least as many, or start again"
        )
    particles = configuration.method.makes_particles
    with stop:
        stop.start_clock()
        checkpoints.begin(chains.snapshot)
        made = n_draws
        with progress_bar(progress, unit="decisions" if particles else "iterations") as report:
            report(chains.done * n_chains, None)
            try:
                if particles:
                    chains.finish(report)
                    stopped = "n_draws"
                else:
                    stopped, made = _run_and_judge(chains, n_draws, goal, report)
            except TimeIsOver:
                stopped, made = "max_seconds", chains.n_draws
            except KeyboardInterrupt as interruption:
                if stop.signal is not None and not isinstance(interruption, Stopped):
                    raise  # the second Ctrl-C
                chains.wait()
                stopped, made = "interrupted", chains.n_draws
        if stop.signal is not None:
            stopped = "interrupted"
        checkpoints.end(chains.snapshot, interrupted=stopped == "interrupted")
        if stop.signal == signal.SIGTERM:
            _end_the_process(checkpoints)
    if chains.n_draws == 0:
        chains.fall_back()
        made = chains.n_draws
    if chains.n_draws == 0:
        if stopped == "max_seconds":
            assert max_seconds is not None
            _end_in_warmup(max_seconds, chains, checkpoints)
        _end_without_draws(chains.done, particles, checkpoints)
    return chains.collect(stopped, made)


def _run_and_judge(
    chains: Chains, n_draws: int, goal: Goal | None, report: Report
) -> tuple[str, int]:
    """Run, judge, and run on in steps that grow with the run; what ended it, and its draws.

    A run that goes on is judged again at the lengths at which it was: it ends where it would have.
    """
    while True:
        chains.advance_to(n_draws, report)
        if goal is None:
            return "n_draws", n_draws
        if goal.enough(*chains.collect("n_draws", n_draws)):
            return "target", n_draws
        if n_draws >= goal.max_draws:
            return "max_draws", n_draws
        n_draws = min(int(np.ceil(GROWTH * n_draws)), goal.max_draws)


def _end_the_process(checkpoints: Checkpoints) -> NoReturn:
    """SIGTERM means that the process is to end, not only this run: it could be one of many."""
    text = "the run has no checkpoint and is lost"
    if checkpoints.target is not None:
        text = checkpoints.failure or f"the same call resumes from {checkpoints.path}"
    print(f"hamiltree: ended by SIGTERM; {text}", file=sys.stderr, flush=True)
    raise SystemExit(128 + signal.SIGTERM)


def _end_in_warmup(max_seconds: float, chains: Chains, checkpoints: Checkpoints) -> NoReturn:
    """No draws to return; say how long it would take."""
    needed = ""
    if chains.done:
        seconds = max_seconds * chains.n_warmup / chains.done
        needed = f" (warm-up alone would take about {seconds:.0f} s)"
    how = f"raise max_seconds{needed}, or lower n_warmup"
    if checkpoints.target is not None and checkpoints.failure is None:
        how += f"; the same call resumes from {checkpoints.path}"
    raise RuntimeError(
        f"max_seconds={max_seconds:g} ended during warm-up, after {chains.done} of "
        f"{chains.n_warmup} iterations, before the first draw: {how}"
    )


def _end_without_draws(done: int, particles: bool, checkpoints: Checkpoints) -> NoReturn:
    """Nothing to return after Ctrl-C; say what became of the work."""
    stage = "before the particles were complete" if particles else "during warm-up"
    if checkpoints.target is not None and checkpoints.failure is None:
        raise KeyboardInterrupt(
            f"stopped {stage}, after {done} steps of each chain: nothing is lost, the same call "
            f"resumes from {checkpoints.path}"
        )
    raise KeyboardInterrupt(
        f"stopped {stage}: no draws had been made yet, so there is nothing to keep"
    )
