"""What CGM and WU share above the compiled moves: building the model, and a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core import informed
from ..core.hard_exploring import make_explorer
from ..core.hard_moves import HardModel, HardState
from ..core.hard_rules import FULL, RULE_PRIORS, UNIFORM, RuleModel, make_rule_work
from ..core.leaves import make_leaf_model, n_stats, n_values
from ..core.nodes import empty_tree
from ..core.partition import make_cells, make_hard_data
from ..core.record import Block, drain, make_block
from ..core.restructure import make_partition_work
from ..core.scan_data import ScanModel
from ..core.shapes import make_shape_prior
from ..settings import Settings
from .common import tree_prior_of


class HardPlan(NamedTuple):
    """Frozen configuration of a compiled loop."""

    n_warmup: int
    repeats: int
    """CGM: prior-drawn proposals an iteration; WU: triples before, and after, the restructure."""


class HardLoop(NamedTuple):
    """What a compiled loop needs, and moves."""

    state: HardState
    iteration: NDArray[np.int64]
    """[1]; iterations done."""
    tally: NDArray[np.int64]
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""


Advance = Callable[..., int]


@dataclass(frozen=True)
class HardSampler:
    """CGM or WU: configuration shared by its chains."""

    model: HardModel
    plan: HardPlan
    advance: Advance
    moves: tuple[str, ...]
    scan_model: ScanModel | None = None
    """What informed moves look at; None where there are none."""
    sweep: tuple[str, ...] = ()
    """Names of the informed moves of an iteration, in order."""

    def start(self, rng: np.random.Generator) -> HardChain:
        return HardChain(self, rng)

    @property
    def h(self) -> NDArray[np.float64]:
        return np.zeros(self.model.data.columns.shape[0])


class HardChain:
    """One chain: its loop, its generator, and room for draws."""

    def __init__(self, sampler: HardSampler, rng: np.random.Generator) -> None:
        self.rng = rng
        self.sampler = sampler
        self.model = model = sampler.model
        self.loop = HardLoop(
            state=make_state(model),
            iteration=np.zeros(1, np.int64),
            tally=np.zeros((2, len(sampler.moves), 2), np.int64),
        )
        self.explorer = None
        if sampler.scan_model is not None:
            self.explorer = make_explorer(
                sampler.scan_model, sampler.sweep, model, self.loop.state, rng
            )
        self.block = make_block(model.shape.max_leaves, 0, n_values(model.leaf))

    def advance(self, n: int) -> list[Block]:
        """Run n iterations; returns the draws made, in one piece or several."""
        pieces: list[Block] = []
        while n > 0:
            done = self._advance(n)
            if done < 0:
                raise ValueError(
                    f"found no tree with min_leaves={self.model.shape.min_leaves} leaves whose "
                    "leaves all have rows: lower min_leaves"
                )
            n -= done
            if self.block.filled[0] > 0:
                pieces.append(drain(self.block))
        return pieces

    def _advance(self, n: int) -> int:
        return self.sampler.advance(
            self.model, self.loop, self.explorer, self.sampler.plan, self.block, n, self.rng
        )

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        self._advance(0)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """phase -> move -> (accepted, proposed); an impossible move counts as refused.

        Where there are informed moves, only those that were proposed; "prior" marks the others.
        """
        counted = [(name, self.loop.tally[:, k]) for k, name in enumerate(self.sampler.moves)]
        if self.explorer is not None:
            counted = [(f"prior {name}", counts) for name, counts in counted]
            counted += [(name, self.explorer.tally[:, k]) for k, name in enumerate(informed.NAMES)]
            counted = [(name, counts) for name, counts in counted if counts[:, 1].any()]
        return {
            phase: {name: (int(counts[t, 0]), int(counts[t, 1])) for name, counts in counted}
            for t, phase in enumerate(("warmup", "sampling"))
        }


def make_model(
    columns: NDArray[np.float64],
    y: NDArray[np.generic],
    n_classes: int,
    settings: Settings,
    *,
    pinball: bool,
) -> HardModel:
    kind = FULL if pinball else RULE_PRIORS[settings.rule_prior]
    leaf, target, classes = make_leaf_model(
        y,
        n_classes,
        class_prior=settings.class_prior,
        variance_prior=settings.variance_prior,
        mean_prior=settings.mean_prior,
        common=settings.variance == "common",
    )
    prior = tree_prior_of(columns.shape[0], settings)
    shape = make_shape_prior(
        min_leaves=settings.min_leaves,
        max_leaves=settings.max_leaves,
        alpha_split=settings.alpha_split,
        beta_split=settings.beta_split,
        expected_splits=settings.expected_splits,
        left_share=settings.left_share,
        pinball=pinball,
    )
    return HardModel(
        data=make_hard_data(columns, target, classes, coded=kind == UNIFORM),
        rules=RuleModel(kind, prior, np.exp(prior.log_feature)),
        shape=shape,
        leaf=leaf,
        power=float(settings.likelihood_power),
    )


def make_state(model: HardModel) -> HardState:
    capacity = model.shape.max_leaves
    p, n = model.data.columns.shape
    sums = n_stats(model.leaf)
    trees: list[Any] = [(empty_tree(capacity, 0), make_cells(capacity, n, sums)) for _ in range(2)]
    (tree, cells), (new_tree, new_cells) = trees
    return HardState(
        tree=tree,
        cells=cells,
        new_tree=new_tree,
        new_cells=new_cells,
        log_prior=np.zeros(1),
        log_like=np.zeros(1),
        spare=np.zeros(n, np.int64),
        no_rows=np.zeros(sums),
        rule_work=make_rule_work(model.data),
        partition_work=make_partition_work(capacity, p),
    )
