"""Replica exchange: one chain at the target, others at lower powers of the likelihood beside it.

After every iteration neighbours on the ladder may exchange their states, alternately the even and
the odd pairs, by the exact ratio for the product of their targets; only the draws of the first are
kept. Hot rungs cross what the first does not. Rungs are placed in warm-up, three times: first from
a quarter in which they run apart, which shows the highest power at which a rung mixes by itself,
then by how often they exchange. After that they stay where they are. Step sizes and masses are
learnt by each rung for itself.

Chains that are advanced together (``running.chains``) place their rungs together, too: whether a
rung mixes by itself shows where several of them agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..core.backend.records import Record
from ..core.tree.record import Piece, joined
from .ladder import (
    agreeing_power,
    first_powers,
    gap_of_refused,
    gaps_of_rungs,
    place_rungs,
    split_rhat,
)

ROUNDS = (0.25, 0.5, 0.75)
"""Shares of warm-up after which rungs are placed anew; before the first they do not exchange."""
FEWEST = 10
"""Iterations of a round from which rungs are placed."""


class Replica(Protocol):
    """What a chain has to have to be a rung; a chain of any method of Markov chains does."""

    @property
    def remembers(self) -> tuple[str, ...]: ...
    def compile(self) -> None: ...
    def advance(self, n: int) -> list[Piece]: ...
    def tally(self) -> dict[str, dict[str, tuple[int, int]]]: ...

    @property
    def power(self) -> NDArray[np.float64]:
        """[1]; of the likelihood in its target; written to."""

    def log_likelihood(self) -> float:
        """Of its state, all constants kept, whatever the power; asked for before an exchange."""

    def exchanged(self) -> list[Record | NDArray[Any]]:
        """Its state: what two rungs exchange, whole."""

    def after_exchange(self) -> None:
        """Drop what depends on the state that it had."""

    def n_leaves(self) -> int: ...


class ReplicaSampler(Protocol):
    """A sampler of such chains."""

    @property
    def h(self) -> NDArray[np.float64]: ...
    @property
    def kernels(self) -> list[Any]: ...
    def with_warmup(self, n_warmup: int) -> Self:
        """The same with so many iterations of warm-up."""

    def start(self, rng: np.random.Generator, keep: bool = True) -> Replica:
        """``keep``: whether it hands over its draws."""


@dataclass(frozen=True)
class Tempered:
    """A sampler whose chains have rungs."""

    sampler: ReplicaSampler
    n_warmup: int
    n_rungs: int
    hottest: float | None = None
    """Power of the last rung; None: by the data."""

    @property
    def h(self) -> NDArray[np.float64]:
        return self.sampler.h

    @property
    def kernels(self) -> list[Any]:
        return self.sampler.kernels

    def start(self, rng: np.random.Generator) -> TemperedChain:
        return TemperedChain(self, rng)


class TemperedChain:
    """A chain like any other, with rungs inside."""

    remembers = (
        "rng",
        "rungs",
        "iteration",
        "settled",
        "mixes_at",
        "powers",
        "seen",
        "chances",
        "exchanges",
    )

    def __init__(self, tempered: Tempered, rng: np.random.Generator) -> None:
        n, n_warmup = tempered.n_rungs, tempered.n_warmup
        self.rng = rng
        self.rungs = [
            tempered.sampler.start(child, keep=k == 0) for k, child in enumerate(rng.spawn(n))
        ]
        self.n_warmup, self.hottest = n_warmup, tempered.hottest
        self.full_power = float(self.rungs[0].power[0])
        self.rounds = [int(share * n_warmup) for share in ROUNDS]
        self.iteration = 0
        self.settled = 0
        """Rounds after which rungs were placed."""
        self.mixes_at = 1.0
        """The highest power at which rungs mix by themselves, as far as is known."""
        self.powers = first_powers(n, tempered.hottest)
        """[rungs]; as shares of the target's, which is the first."""
        self.seen = np.full((n_warmup, n, 2), np.nan)
        """Log-likelihood and leaves of each rung, by iteration of warm-up."""
        self.chances = np.full((n_warmup, n - 1), np.nan)
        """Of an exchange of a rung with the next one, where it was proposed."""
        self.exchanges = np.zeros((2, 2), np.int64)
        """Accepted and proposed, in warm-up and sampling."""
        self.workers = 1
        self.set_powers(self.powers)

    def set_powers(self, powers: NDArray[np.float64]) -> None:
        self.powers[:] = powers
        for rung, power in zip(self.rungs, powers, strict=True):
            rung.power[0] = self.full_power * power

    @property
    def is_due(self) -> bool:
        """A round of warm-up is over, and rungs have to be placed."""
        return self.settled < len(self.rounds) and self.iteration >= self.rounds[self.settled]

    def advance(self, n: int) -> list[Piece]:
        """Run n iterations of every rung; returns the draws of the first."""
        with ThreadPoolExecutor(min(self.workers, len(self.rungs))) as pool:
            # a thread of its own only where there are more workers than chains
            over = map if self.workers == 1 else pool.map
            pieces = [piece for _ in range(n) for piece in self._iterate(over)]
        return [joined(pieces)] if pieces else []

    def _iterate(self, over: Any) -> Iterator[Piece]:
        while self.is_due:  # those of other chains would have been placed with them
            settle([self])
        first, *_ = over(advance_by_one, self.rungs)
        log_likes = np.array([rung.log_likelihood() for rung in self.rungs])
        t, self.iteration = self.iteration, self.iteration + 1
        if t < self.n_warmup:
            self.seen[t, :, 0] = self.full_power * log_likes
            self.seen[t, :, 1] = [rung.n_leaves() for rung in self.rungs]
        if t >= min(self.rounds[0], self.n_warmup):
            self.exchange(t, log_likes)
        for piece in first:
            yield piece._replace(rungs=log_likes[None, :])

    def exchange(self, turn: int, log_likes: NDArray[np.float64]) -> None:
        """Propose an exchange to every other pair of neighbours, of which these are the states."""
        warming = turn < self.n_warmup
        for k in range(turn % 2, len(self.rungs) - 1, 2):
            a, b = self.rungs[k], self.rungs[k + 1]
            log_ratio = (a.power[0] - b.power[0]) * (log_likes[k + 1] - log_likes[k])
            accepted = math.log(1.0 - self.rng.random()) < log_ratio
            self.exchanges[0 if warming else 1] += (accepted, 1)
            if accepted:
                exchange_states(a, b)
            if warming:
                chance = math.exp(min(log_ratio, 0.0)) if math.isfinite(log_ratio) else 0.0
                self.chances[turn, k] = chance

    def compile(self) -> None:
        self.rungs[0].compile()

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The first rung's moves, and exchanges between any two."""
        moves = self.rungs[0].tally()
        for phase, (accepted, proposed) in zip(moves, self.exchanges, strict=True):
            moves[phase]["exchange"] = (int(accepted), int(proposed))
        return moves


def advance_by_one(rung: Replica) -> list[Piece]:
    return rung.advance(1)


def exchange_states(a: Replica, b: Replica) -> None:
    """All that is the state of one becomes that of the other."""
    for one, other in zip(arrays_of(a), arrays_of(b), strict=True):
        one[...], other[...] = other.copy(), one.copy()
    a.after_exchange()
    b.after_exchange()


def arrays_of(rung: Replica) -> Iterator[NDArray[Any]]:
    for part in rung.exchanged():
        if isinstance(part, Record):
            yield from part
        else:
            yield part


def settle(chains: Sequence[TemperedChain]) -> None:
    """Place the rungs of these chains, which are at the end of the same round, all alike."""
    first = chains[0]
    number = first.settled
    start = first.rounds[number - 1] if number else first.rounds[0] // 2
    end = first.rounds[number]
    powers, n = first.powers.copy(), len(first.rungs)
    if end - start >= FEWEST:
        if number == 0:
            seen = np.stack([chain.seen[start:end] for chain in chains])
            gaps = gaps_of_rungs(powers, seen[..., 0].reshape(-1, n))
            mixes_at = 1.0
            if first.hottest is None:
                mixes_at = agreeing_power(powers, split_rhat(seen).max(axis=1))
        else:
            chances = np.concatenate([chain.chances[start:end] for chain in chains])
            gaps = gap_of_refused(1.0 - np.nanmean(chances, axis=0))
            mixes_at = first.mixes_at
        powers = place_rungs(powers, gaps, n, mixes_at=mixes_at, hottest=first.hottest)
        for chain in chains:
            chain.mixes_at = mixes_at
    for chain in chains:
        chain.set_powers(powers)
        chain.settled = number + 1
