"""A run: its chains, judging, going on, checkpoints and interruption; one ordinary loop.

The draws do not depend on how often the run was judged, or stopped, and went on.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ..draws import Draws, RunInfo
from ..methods.base import Configuration, Problem, build_sampler
from .chains import Chains
from .interrupts import gentle_stop
from .keeper import Keeper
from .progress import Report, progress_bar
from .snapshot import identify

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
    """Draws a chain at which the run ends in any case."""


def sample(
    problem: Problem,
    settings: Configuration[Any],
    *,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    goal: Goal | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    keeper: Keeper | None = None,
) -> tuple[Draws, RunInfo]:
    """Run the chains; Ctrl-C and SIGTERM keep the draws that every chain has made by then.

    With a goal the chains make ``n_draws`` and go on until it is reached, or its limit;
    ``RunInfo.stopped`` says which. The draws are those that a longer run begins with.

    SMC has no warm-up and no goal, and its particles are of no use until all of them are complete:
    it runs until every island has handed them over, and Ctrl-C leaves nothing to keep.

    ``progress``: None shows a bar when standard error is a terminal.
    ``keeper``: goes on with a run that it has, writes checkpoints, and holds the end of this one.
    """
    smc = settings.method.name == "smc"
    lengths = {"n_chains": n_chains, "n_warmup": n_warmup, "n_particles": n_draws, "seed": seed}
    keeper = Keeper() if keeper is None else keeper
    identity = identify(problem, settings, **lengths)
    chains = Chains(
        problem,
        settings,
        **lengths,
        n_jobs=n_jobs,
        resume=keeper.resume(identity),
        round_seconds=None if keeper.target is None else keeper.seconds,
        progress=progress,
    )
    if goal is None and chains.n_draws > n_draws:
        raise ValueError(
            f"the run to go on from has {chains.n_draws} draws a chain already, more than "
            f"n_draws={n_draws}: ask for at least as many, or start anew"
        )
    unit = "decisions" if smc else "iterations"
    with gentle_stop(at_once=chains.elsewhere) as stop:
        chains.undisturbed = stop.undisturbed
        chains.asked_to_meet = lambda: stop.signal is not None or keeper.is_time()
        keeper.begin(lambda: chains.snapshot(identity))

        def between() -> None:
            stop.look()
            keeper.look(lambda: chains.snapshot(identity))

        made = n_draws
        with progress_bar(progress, unit=unit) as report, chains:
            report(chains.done * n_chains, None)
            try:
                if smc:
                    chains.finish(report, between)
                    stopped = "n_draws"
                else:
                    stopped, made = _run_and_judge(chains, n_warmup, n_draws, goal, report, between)
            except KeyboardInterrupt:
                stopped, made = "interrupted", chains.n_draws
        keeper.end(lambda: chains.snapshot(identity))
        if stop.signal is not None:
            stopped = "interrupted"
    if chains.n_draws == 0:
        _end_without_draws(chains, stop.signal, smc, keeper)
    return chains.collect(stopped, made)


def _run_and_judge(
    chains: Chains,
    n_warmup: int,
    n_draws: int,
    goal: Goal | None,
    report: Report,
    between: Callable[[], None],
) -> tuple[str, int]:
    """Run, judge, and run on in steps that grow with the run; what ended it, and its draws.

    A run that goes on is judged again at the lengths at which it was: it ends where it would have.
    """
    while True:
        chains.advance_to(n_warmup + n_draws, report, between)
        if goal is None:
            return "n_draws", n_draws
        if goal.enough(*chains.collect("n_draws", n_draws)):
            return "target", n_draws
        if n_draws >= goal.max_draws:
            return "max_draws", n_draws
        n_draws = min(int(np.ceil(GROWTH * n_draws)), goal.max_draws)


def _end_without_draws(
    chains: Chains, received: signal.Signals | None, smc: bool, keeper: Keeper
) -> NoReturn:
    """Nothing to return; say what became of the work, as KeyboardInterrupt or, SIGTERM, an exit."""
    stage = "before the particles were complete" if smc else "during warm-up"
    if keeper.target is not None and keeper.failure is None:
        text = (
            f"stopped {stage}, after {chains.done} steps of each chain: nothing is lost, the same "
            f"call goes on from {keeper.path}"
        )
    else:
        text = f"stopped {stage}: no draws had been made yet, so there is nothing to keep"
    if received == signal.SIGTERM:
        raise SystemExit(f"hamiltree: {text}")
    raise KeyboardInterrupt(text)
