"""RJHMC-Tree with h="learn": a chain whose h, and for classification leaf probabilities, move."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..core.moves.propose import NAMES
from ..core.soft.labels import label_likelihood
from ..core.soft.learned_h import (
    LearnedH,
)
from ..core.soft.learned_loop import advance_learning
from ..core.soft.loop import advance
from ..core.tree.nodes import empty_tree
from ..core.tree.record import (
    Piece,
    make_block,
)
from .rjhmc import RJHMC, RJHMCChain, in_blocks
from .softness import H_RANGE, first_softness_of


@dataclass(frozen=True)
class LearningRJHMC:
    """The sampler whose chains also move h."""

    sampler: RJHMC

    @property
    def h(self) -> NDArray[np.float64]:
        """Where it starts; each draw has its own."""
        return self.sampler.h

    @property
    def kernels(self) -> list[Any]:
        """Those of the chain inside, with its own loop; and the likelihood that is learned by."""
        inside = [found for found in self.sampler.kernels if found is not advance]
        labels = [label_likelihood] if self.sampler.n_classes else []
        return [*inside, *labels, advance_learning]

    def start(self, rng: np.random.Generator) -> LearningChain:
        return LearningChain(self.sampler, rng)


class LearningChain:
    """A chain like any other, with what it learns beside its state."""

    remembers = ("chain", "learning")

    def __init__(self, sampler: RJHMC, rng: np.random.Generator) -> None:
        settings = sampler.settings
        if sampler.n_classes and settings.method.likelihood_power not in (0.0, 1.0):
            raise ValueError('h="learn" needs likelihood_power 0 or 1 for classification')
        self.chain = RJHMCChain(sampler, rng)
        self.state, self.plan, self.rng = self.chain.state, self.chain.plan, rng
        self.state.model.h[:] = first_softness_of(sampler.h, settings)
        self.learning = make_learning(sampler, self.chain)
        self.block = make_block(
            settings.max_leaves,
            self.state.tree.weights.shape[1],
            max(sampler.n_classes, 1),
            len(sampler.h) if settings.method.h_by_feature else 1,
        )

    def advance(self, n: int) -> list[Piece]:
        """Run n iterations; returns the draws made, in one piece or several."""
        with self.chain.helped():
            return in_blocks(self._advance, self.block, n)

    def _advance(self, n: int) -> int:
        done: int = advance_learning(
            self.state, self.plan, self.chain.calls, self.learning, self.block, n, self.rng
        )
        return done

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        with self.chain.helped():
            self._advance(0)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The chain's moves, and the steps of NUTS where those can be refused."""
        moves = self.chain.tally()
        for phase, (accepted, proposed) in zip(moves, self.learning.nuts_tally, strict=True):
            if proposed:
                moves[phase]["nuts"] = (int(accepted), int(proposed))
        return moves


def make_learning(sampler: RJHMC, chain: RJHMCChain) -> LearnedH:
    settings, state = sampler.settings, chain.state
    leaves, classes = settings.max_leaves, max(sampler.n_classes, 1)
    median, sd = settings.method.h_prior
    low, high = (math.log(end) for end in H_RANGE)
    below = [float(ndtr((end - math.log(median)) / sd)) for end in (low, high)]
    tables = [np.zeros((leaves, classes)) for _ in range(5)]
    return LearnedH(
        log_median=math.log(median),
        log_sd=float(sd),
        log_mass=math.log(below[1] - below[0]),
        log_low=low,
        log_high=high,
        by_feature=settings.method.h_by_feature,
        p=tables[0],
        new_p=tables[1],
        concentration=tables[2],
        rows=tables[3],
        spare=tables[4],
        prior=state.model.leaf_prior.class_prior.reshape(1, -1),
        uniform=np.zeros(sampler.data.block[-1] if sampler.n_classes else 0),
        empty=np.zeros(0),
        log_weight=np.zeros(1),
        log_like=np.zeros(1),
        before=empty_tree(leaves, state.tree.weights.shape[1]),
        like_before=np.zeros(1),
        accepted_before=np.zeros(len(NAMES), np.int64),
        nuts_tally=np.zeros((2, 2), np.int64),
        labels=label_likelihood,
    )
