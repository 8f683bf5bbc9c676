"""Replica exchange: one chain at the target, others at lower powers of the likelihood beside it.

Every few iterations neighbours on the ladder may exchange their trees, by the exact ratio for the
product of their targets; only the draws of the first are kept. Hot rungs cross what the first does
not. The ladder adapts in warm-up, so that neighbours exchange equally often, and is frozen with
everything else; step sizes and masses are learnt by each rung for itself.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.backend.jit import kernel
from ..core.tree.nodes import copy_tree
from ..core.tree.record import Piece
from .rjhmc import RJHMC, RJHMCChain

EVERY = 2
"""Iterations between exchanges; alternately of the even and of the odd neighbours."""
WANTED = 0.4
"""Acceptance of exchanges that the ladder aims for."""
FIRST_STEP = 0.25
"""First distance of neighbours, in the log of the power."""


@kernel
def exchange_trees(a, spare, b):
    copy_tree(a, spare)
    copy_tree(b, a)
    copy_tree(spare, b)


@dataclass(frozen=True)
class Tempered:
    """A sampler whose chains have rungs."""

    sampler: RJHMC
    n_rungs: int

    @property
    def h(self) -> NDArray[np.float64]:
        return self.sampler.h

    @property
    def kernels(self) -> list[Any]:
        return self.sampler.kernels

    def start(self, rng: np.random.Generator) -> TemperedChain:
        return TemperedChain(self.sampler, rng, self.n_rungs)


class TemperedChain:
    """A chain like any other, with rungs inside."""

    remembers = ("rng", "rungs", "log_distance", "exchanges")

    def __init__(self, sampler: RJHMC, rng: np.random.Generator, n_rungs: int) -> None:
        self.rng = rng
        self.rungs = [
            RJHMCChain(sampler, child, keep=k == 0) for k, child in enumerate(rng.spawn(n_rungs))
        ]
        self.n_warmup = sampler.n_warmup
        self.full_power = sampler.settings.method.likelihood_power
        self.log_distance = np.full(n_rungs - 1, math.log(FIRST_STEP))
        self.exchanges = np.zeros((2, 2), np.int64)
        self.workers = 1
        self._set_powers()

    @property
    def powers(self) -> list[float]:
        """Of the likelihood, rung by rung; the first is the target's."""
        return [float(rung.state.model.power[0]) for rung in self.rungs]

    @property
    def iteration(self) -> int:
        return self.rungs[0].iteration

    def advance(self, n: int) -> list[Piece]:
        """Run n iterations of every rung; returns the draws of the first."""
        pieces: list[Piece] = []
        with ThreadPoolExecutor(min(self.workers, len(self.rungs))) as pool:
            # a thread of its own only where there are more workers than chains
            over = map if self.workers == 1 else pool.map
            while n > 0:
                step = min(n, EVERY - self.iteration % EVERY)
                first, *_ = over(RJHMCChain.advance, self.rungs, repeat(step))
                pieces += first
                n -= step
                if self.iteration % EVERY == 0:
                    self._exchange(self.iteration // EVERY)
        return pieces

    def compile(self) -> None:
        self.rungs[0].compile()
        state = self.rungs[0].state
        exchange_trees(state.tree, state.proposal, state.tree)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The first rung's moves, and exchanges between any two."""
        moves = self.rungs[0].tally()
        for phase, (accepted, proposed) in zip(moves, self.exchanges, strict=True):
            moves[phase]["exchange"] = (int(accepted), int(proposed))
        return moves

    def _exchange(self, turn: int) -> None:
        warming = self.iteration <= self.n_warmup
        for k in range(turn % 2, len(self.rungs) - 1, 2):
            a, b = self.rungs[k].state, self.rungs[k + 1].state
            gap = a.model.power[0] - b.model.power[0]
            log_ratio = gap * (b.log_like[0] - a.log_like[0])
            accepted = math.log(self.rng.random()) < log_ratio
            self.exchanges[0 if warming else 1] += (accepted, 1)
            if accepted:
                exchange_trees(a.tree, a.proposal, b.tree)
                a.log_like[0], b.log_like[0] = b.log_like[0], a.log_like[0]
            if warming:
                chance = math.exp(min(log_ratio, 0.0)) if math.isfinite(log_ratio) else 0.0
                self.log_distance[k] += (turn + 1) ** -0.6 * (chance - WANTED)
        if warming:
            self._set_powers()

    def _set_powers(self) -> None:
        power = self.full_power
        self.rungs[0].state.model.power[0] = power
        for rung, log_distance in zip(self.rungs[1:], self.log_distance, strict=True):
            power *= math.exp(-math.exp(log_distance))
            rung.state.model.power[0] = power
