"""replicas="auto": chains that are in different modes go on with replicas.

Chains start without replicas, which cost several times as much. Once each has made a few draws,
these are judged: levels of the log-likelihood, or numbers of leaves, that do not mix are modes, and
then every chain becomes the start of one with replicas. All that was drawn before counts as
warm-up. A run that goes on is judged again, by more draws. The decision depends on the draws
alone, and is made at fixed iterations: a run that was stopped and went on, or was made by other
threads, decides the same; with ``max_seconds`` it depends on the time that is left, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..methods.base import Configuration
from ..posterior.diagnostics import rank_rhat
from ..posterior.draws import Draws
from ..samplers.ladder import GAP_WANTED
from ..samplers.tempering import Tempered, TemperedChain, arrays_of

LOOKS = ((250, 1.5), (1_000, 1.2), (4_000, 1.1))
"""Draws of each chain by which it is decided, and the R-hat above which chains are taken to be in
different modes, rather than slow; the more draws there are, the less slowness alone explains."""
FEWEST_WARMUP = 100
"""Iterations of warm-up that replicas need to be placed."""
HOT_END = 0.1
"""Power of the likelihood for which their number is computed: trees are small there, and such
replicas cost little. That of the last replica follows from its mixing (``samplers.ladder``)."""
FEWEST, MOST = 4, 16
"""Numbers of replicas of a chain."""
WARMUP_SHARE = 1.0 / 3.0
"""Most of the time left that their warm-up may take; it is shorter where it would take more."""


class Takeover:
    """Whether replicas take over, how many, and the chains that they start from."""

    def __init__(
        self,
        sampler: Any,
        configuration: Configuration[Any],
        n_warmup: int,
        seeds: Sequence[np.random.SeedSequence],
    ) -> None:
        self.configuration = configuration
        self.n_warmup = n_warmup
        """Iterations of warm-up after the takeover."""
        self.replicas = 1
        """Of each chain, after it."""
        self.at = 0
        """Iterations of each chain before it."""
        self.reason = ""
        """Why they took over; empty where they did not."""
        self.looks = list(LOOKS)
        """Those that are still to come."""
        self._sampler, self._seeds = sampler, seeds
        self.is_open = (
            configuration.method.adds_replicas and len(seeds) > 1 and n_warmup >= FEWEST_WARMUP
        )
        """Whether it is still to be decided."""

    @property
    def n_judged(self) -> int:
        """Draws of each chain by which it is decided next."""
        return self.looks[0][0]

    def decide(self, draws: Draws) -> int:
        """The number of replicas, 1 for none, by the first draws of every chain."""
        n_judged, modes = self.looks.pop(0)
        self.is_open = bool(self.looks)
        rhat = {
            "the log-likelihood": rank_rhat(draws.log_likelihood),
            "the number of leaves": rank_rhat(draws.n_leaves.astype(np.float64)),
        }
        worst = max(rhat, key=lambda name: rhat[name])
        if not rhat[worst] > modes:
            return 1
        self.is_open = False
        value = f"{rhat[worst]:.2f}" if math.isfinite(rhat[worst]) else "infinite"
        self.reason = (
            f"R-hat of {worst} over the first {n_judged} draws of {draws.n_chains} chains "
            f"was {value}"
        )
        return replicas_for(draws.log_likelihood)

    def fits(self, replicas: int, seconds_per_iteration: float, seconds_left: float) -> bool:
        """Whether there is time for so many replicas, by the seconds of an iteration so far.

        Their warm-up becomes shorter where there is time for that alone. An iteration of a replica
        is taken to need as long as one of a chain without; in regression it needs less.
        """
        most = WARMUP_SHARE * seconds_left / (replicas * seconds_per_iteration)
        if most < FEWEST_WARMUP:
            self.reason += ", but max_seconds leaves no time for them"
            return False
        self.n_warmup = int(min(self.n_warmup, most))
        return True

    def start(self, replicas: int, at: int, chains: Sequence[Any]) -> list[TemperedChain]:
        """Chains with replicas, all of which begin at the tree that the chain before had."""
        self.is_open = False
        self.replicas, self.at = replicas, at
        self.configuration = replace(
            self.configuration, method=self.configuration.method.set_params(replicas=replicas)
        )
        sampler = self._sampler.with_warmup(self.n_warmup)
        hottest = self.configuration.method.hottest_power
        tempered = Tempered(sampler, self.n_warmup, replicas, hottest)
        started = []
        for chain, seed in zip(chains, self._seeds, strict=True):
            new = tempered.start(np.random.Generator(np.random.PCG64(seed)))
            for rung in new.rungs:
                for there, here in zip(arrays_of(rung), arrays_of(chain), strict=True):
                    there[...] = here
                rung.after_exchange()
            started.append(new)
        return started


def replicas_for(log_likelihood: np.ndarray) -> int:
    """How many, for exchanges of about half of the proposals down to ``HOT_END``.

    The communication barrier at the target is half of the mean difference of two draws of a chain,
    per unit of power, and is taken to fall like 1 / power (``samplers.ladder``).
    """
    n = log_likelihood.shape[1]
    rank = 2.0 * np.arange(1, n + 1) - n - 1.0
    local = (np.sort(log_likelihood, axis=1) @ rank / (n * (n - 1))).mean()
    barrier = local * math.log(1.0 / HOT_END)
    return int(np.clip(1 + math.ceil(barrier / GAP_WANTED), FEWEST, MOST))
