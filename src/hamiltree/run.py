"""Chains, seeds, blocks of iterations, progress and interruption: one ordinary loop.

Chains run in threads (the compiled code releases the GIL). Each has its own generator, spawned
from the seed, so the draws do not depend on how many threads there are; and a chain advanced in
blocks makes the same draws as one advanced in one go, so they do not depend on the blocks either.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import joblib
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .core.record import SCALARS, Block
from .draws import Draws, RunInfo
from .samplers.cgm import build_cgm
from .samplers.rjhmc import RJHMC
from .samplers.smc import SMC
from .samplers.tempering import Tempered
from .samplers.wu import build_wu
from .settings import Settings

BLOCK_SECONDS = 0.25
"""Aim for blocks of this length: short enough for Ctrl-C, long enough not to cost anything."""
ANNOUNCE_AFTER = 2.0
"""Loading compiled code takes less than this; whatever takes longer is compilation."""

_NUTS_STATS = ("divergent", "nuts_depth", "step_size", "accept_stat", "n_gradients")
_STATS: dict[str, tuple[str, ...]] = {
    "hmc-df": _NUTS_STATS,
    "hmc-dfi": _NUTS_STATS,
    "cgm": (),
    "wu": (),
    "smc": ("log_weight", "founder"),
}
_STAT_TYPES = {
    "divergent": np.bool_,
    "nuts_depth": np.int64,
    "n_gradients": np.int64,
    "founder": np.int64,
}


@dataclass(frozen=True)
class Problem:
    """Data as the samplers want it."""

    columns: NDArray[np.float64]
    """[p, n], C-contiguous, on the unit interval."""
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
    data = (problem.columns, problem.y, problem.n_classes)
    if settings.method == "smc":
        return SMC.build(*data, settings, n_draws)
    if settings.method == "cgm":
        return build_cgm(*data, settings, n_warmup)
    if settings.method == "wu":
        return build_wu(*data, settings, n_warmup)
    sampler = RJHMC.build(*data, settings, n_warmup)
    return sampler if settings.replicas == 1 else Tempered(sampler, settings.replicas)


def sample(
    problem: Problem,
    settings: Settings,
    *,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    n_jobs: int | None = None,
    seed: int | np.random.SeedSequence = 0,
    progress: bool | None = None,
) -> tuple[Draws, RunInfo]:
    """Run the chains; Ctrl-C keeps the draws that every chain has made by then.

    SMC has no warm-up, and its particles are of no use until all of them are complete: it runs
    until every island has handed them over, and Ctrl-C leaves nothing to keep.

    ``progress``: None shows a bar when standard error is a terminal.
    """
    started = time.perf_counter()
    sampler = build_sampler(problem, settings, n_warmup, n_draws)
    total = None if settings.method == "smc" else n_warmup + n_draws
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    generators = [np.random.Generator(np.random.PCG64(s)) for s in root.spawn(n_chains)]
    with _announced_compilation():
        chains = [sampler.start(rng) for rng in generators]
        chains[0].compile()
    pieces: list[list[Block]] = [[] for _ in chains]
    with _progress_bar(None if total is None else n_chains * total, progress) as report:
        interrupted = _advance_all(chains, pieces, total, n_jobs, report)
    kept = min(sum(len(b.n_nodes) for b in chain_pieces) for chain_pieces in pieces)
    if kept == 0:
        stage = "before the particles were complete" if total is None else "during warm-up"
        raise KeyboardInterrupt(
            f"stopped {stage}: no draws had been made yet, so there is nothing to keep"
        )
    draws, scalar = _gather(pieces, kept, sampler.h)
    info = RunInfo(
        acceptance=_gather_tallies(chains),
        stats={
            name: scalar[name].astype(_STAT_TYPES.get(name, np.float64))
            for name in _STATS.get(settings.method, ())
        },
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        log_evidence=_log_evidence(scalar["log_weight"]) if settings.method == "smc" else None,
    )
    return draws, info


def _advance_all(
    chains: list[Chain],
    pieces: list[list[Block]],
    total: int | None,
    n_jobs: int | None,
    report: _Report,
) -> bool:
    """Advance all chains to ``total`` iterations in blocks; True where Ctrl-C ended it.

    Without a total, until each has handed over its draws, which it does in one piece.
    """

    def work(k: int, n: int) -> None:
        pieces[k].extend(chains[k].advance(n))
        report(n)

    threads = min(max(joblib.effective_n_jobs(n_jobs), 1), len(chains))
    done, block = 0, 1
    # A pool of our own rather than joblib's: on Ctrl-C the blocks under way must finish (a
    # fraction of a second) before their draws are collected, which joblib's pools do not offer.
    with ThreadPoolExecutor(threads, thread_name_prefix="hamiltree") as pool:
        try:
            while done < total if total is not None else not all(pieces):
                n = block if total is None else min(block, total - done)
                begun = time.perf_counter()
                futures = [pool.submit(work, k, n) for k in range(len(chains))]
                for future in futures:
                    future.result()
                done += n
                rounds = -(-len(chains) // threads)
                speed = (time.perf_counter() - begun) / (n * rounds)
                block = int(min(max(BLOCK_SECONDS / max(speed, 1e-9), 1), 4 * n))
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            return True
    return False


def _gather(
    pieces: list[list[Block]], kept: int, h: NDArray[np.float64]
) -> tuple[Draws, dict[str, NDArray[np.float64]]]:
    """The first ``kept`` draws of every chain, flat, and all scalars, [chain, draw]."""
    parts: dict[str, list[NDArray[np.generic]]] = {}
    tables, counts = [], []
    for chain in pieces:
        n_nodes = np.concatenate([b.n_nodes for b in chain])[:kept]
        nodes = int(n_nodes.sum())
        limits = {
            "size": nodes,
            "feature": (nodes - kept) // 2,
            "threshold": (nodes - kept) // 2,
            "weights": (nodes - kept) // 2,
            "leaf": (nodes + kept) // 2,
        }
        for name, limit in limits.items():
            whole = np.concatenate([getattr(b, name) for b in chain])
            parts.setdefault(name, []).append(whole[:limit])
        tables.append(np.concatenate([b.scalars for b in chain])[:kept])
        counts.append(n_nodes)
    table = np.stack(tables)  # chain, draw, scalar
    scalar = {name: table[:, :, j] for j, name in enumerate(SCALARS)}
    flat = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    weight = np.exp(scalar["log_weight"] - scalar["log_weight"].max())
    draws = Draws(
        n_chains=len(pieces),
        n_draws=kept,
        node_offset=np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64),
        size=flat["size"].astype(np.int32, copy=False),
        feature=flat["feature"].astype(np.int32, copy=False),
        threshold=flat["threshold"].astype(np.float64, copy=False),
        weights=flat["weights"].astype(np.float64, copy=False),
        leaf=flat["leaf"].astype(np.float64, copy=False),
        h=h,
        n_leaves=scalar["n_leaves"].astype(np.int64),
        depth=scalar["depth"].astype(np.int64),
        log_likelihood=scalar["log_likelihood"].copy(),
        log_posterior=scalar["log_posterior"].copy(),
        sigma=scalar["sigma"].copy(),
        weights_of_draws=weight / weight.sum(),
    )
    return draws, scalar


def _log_evidence(log_weight: NDArray[np.float64]) -> float:
    """Log of the mean over islands of their estimates, which are the sums of their weights."""
    top = log_weight.max()
    return float(top + np.log(np.exp(log_weight - top).sum(axis=1).mean()))


def _gather_tallies(
    chains: list[Chain],
) -> dict[str, dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]]:
    tallies = [chain.tally() for chain in chains]
    moves = list(dict.fromkeys(m for tally in tallies for m in tally["sampling"]))
    return {
        phase: {
            move: (
                np.array([t[phase].get(move, (0, 0))[0] for t in tallies]),
                np.array([t[phase].get(move, (0, 0))[1] for t in tallies]),
            )
            for move in moves
        }
        for phase in ("warmup", "sampling")
    }


# ------------------------------------------------------------------ what the user sees meanwhile


class _Report(Protocol):
    def __call__(self, iterations: int) -> None: ...


@contextmanager
def _announced_compilation() -> Iterator[None]:
    """Say so when the first call compiles; loading what was compiled before stays silent."""
    message = "hamiltree: compiling the sampler for this machine (once; half a minute or so) ..."
    timer = threading.Timer(ANNOUNCE_AFTER, lambda: print(message, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _progress_bar(total: int | None, show: bool | None) -> Iterator[_Report]:
    console = Console(stderr=True)
    if not (console.is_terminal if show is None else show):
        yield lambda iterations: None
        return
    count = "{task.completed:,.0f}" + (
        " decisions" if total is None else " of {task.total:,.0f} iterations"
    )
    columns = (TextColumn("sampling"), BarColumn(), TextColumn(count), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sampling", total=total)
        yield lambda iterations: bar.advance(task, iterations)
