"""From data and settings to a sampler, and what the run asks of samplers and their chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .core.buffers import Columns
from .core.record import Block
from .samplers.cgm import build_cgm
from .samplers.learning import LearningRJHMC
from .samplers.rjhmc import RJHMC
from .samplers.smc import SMC
from .samplers.tempering import Tempered
from .samplers.wu import build_wu
from .settings import Settings


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
    """What the loop asks of a chain of any sampler; see also ``chain_state``."""

    def compile(self) -> None: ...
    def advance(self, n: int) -> list[Block]: ...
    def tally(self) -> dict[str, dict[str, tuple[int, int]]]: ...


class Sampler(Protocol):
    """Frozen configuration that starts chains."""

    @property
    def h(self) -> NDArray[np.float64]: ...
    def start(self, rng: np.random.Generator) -> Chain: ...


def build_sampler(
    problem: Problem, settings: Settings, n_warmup: int, n_draws: int, threads: int = 1
) -> Sampler:
    """``threads``: of each chain, where it can use them for its rows; one with rungs does not."""
    if settings.method in ("hmc-df", "hmc-dfi"):
        sampler = RJHMC.build(
            problem.columns,
            problem.y,
            problem.n_classes,
            settings,
            n_warmup,
            threads if settings.replicas == 1 else 1,
        )
        if settings.h == "learn":
            return LearningRJHMC(sampler)
        return sampler if settings.replicas == 1 else Tempered(sampler, settings.replicas)
    data = (np.asarray(problem.columns, np.float64), problem.y, problem.n_classes)
    if settings.method == "smc":
        return SMC.build(*data, settings, n_draws)
    if settings.method == "cgm":
        return build_cgm(*data, settings, n_warmup)
    return build_wu(*data, settings, n_warmup)
