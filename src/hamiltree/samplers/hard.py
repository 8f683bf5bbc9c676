"""What CGM and WU share above the compiled moves: building the model, and a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.hard_moves import HardModel, HardState
from ..core.hard_rules import FULL, RULE_PRIORS, UNIFORM, RuleModel, make_rule_work
from ..core.leaves import make_leaf_model, n_stats, n_values
from ..core.nodes import empty_tree
from ..core.partition import make_cells, make_hard_data
from ..core.record import Block, drain, make_block
from ..core.restructure import make_partition_work
from ..core.shapes import make_shape_prior
from ..settings import Settings
from .common import tree_prior_of


class HardPlan(NamedTuple):
    """Frozen configuration of a compiled loop."""

    n_warmup: int
    repeats: int
    """CGM: proposals an iteration; WU: triples before, and after, the restructure."""


class HardLoop(NamedTuple):
    """What a compiled loop needs, and moves."""

    state: HardState
    iteration: NDArray[np.int64]
    """[1]; iterations done."""
    tally: NDArray[np.int64]
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""


Advance = Callable[..., int]


class HardChain:
    """One chain: its loop, its generator, and room for draws."""

    def __init__(
        self,
        model: HardModel,
        plan: HardPlan,
        advance: Advance,
        moves: tuple[str, ...],
        rng: np.random.Generator,
    ) -> None:
        self.rng = rng
        self.model = model
        self.plan = plan
        self.moves = moves
        self._advance = advance
        self.loop = HardLoop(
            state=make_state(model),
            iteration=np.zeros(1, np.int64),
            tally=np.zeros((2, len(moves), 2), np.int64),
        )
        self.block = make_block(model.shape.max_leaves, 0, n_values(model.leaf))

    def advance(self, n: int) -> list[Block]:
        """Run n iterations; returns the draws made, in one piece or several."""
        pieces: list[Block] = []
        while n > 0:
            done = self._advance(self.model, self.loop, self.plan, self.block, n, self.rng)
            if done < 0:
                raise ValueError(
                    f"found no tree with min_leaves={self.model.shape.min_leaves} leaves whose "
                    "leaves all have rows: lower min_leaves"
                )
            n -= done
            if self.block.filled[0] > 0:
                pieces.append(drain(self.block))
        return pieces

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        self._advance(self.model, self.loop, self.plan, self.block, 0, self.rng)

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """phase -> move -> (accepted, proposed); an impossible move counts as refused."""
        return {
            phase: {
                name: (int(counts[place, 0]), int(counts[place, 1]))
                for place, name in enumerate(self.moves)
            }
            for phase, counts in zip(("warmup", "sampling"), self.loop.tally, strict=True)
        }


@dataclass(frozen=True)
class HardSampler:
    """CGM or WU: configuration shared by its chains."""

    model: HardModel
    plan: HardPlan
    advance: Any
    moves: tuple[str, ...]

    def start(self, rng: np.random.Generator) -> HardChain:
        return HardChain(self.model, self.plan, self.advance, self.moves, rng)

    @property
    def h(self) -> NDArray[np.float64]:
        return np.zeros(self.model.data.columns.shape[0])


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
