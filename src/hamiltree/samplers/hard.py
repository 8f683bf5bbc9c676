"""What CGM and WU share above the compiled moves: building the model, and a chain."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.backend.records import Int1, Int3, Record
from ..core.forest import draws_of_rows
from ..core.hard.informed_sweep import Explorer, make_explorer
from ..core.hard.leaves import make_leaf_model, n_stats, n_values
from ..core.hard.moves import HardModel, HardState
from ..core.hard.partition import make_cells, make_hard_data
from ..core.hard.restructure import make_partition_work
from ..core.hard.rules import RULE_PRIORS, RuleModel, make_rule_work
from ..core.hard.shapes import make_shape_prior
from ..core.moves.propose import NAMES, propose_informed
from ..core.scan.data import FULL, UNIFORM, ScanData, ScanModel
from ..core.scan.proposals import kernels_of_scans
from ..core.tree.nodes import empty_tree
from ..core.tree.record import Piece, drain, make_block
from .common import Problem, tree_prior_of

if TYPE_CHECKING:
    from ..methods.base import Configuration


class HardPlan(Record):
    """Frozen configuration of a compiled loop."""

    n_warmup: int
    repeats: int
    """CGM: prior-drawn proposals per iteration; WU: triples before, and after, the restructure."""


class HardLoop(Record, role="state"):
    """What a compiled loop needs, and moves."""

    state: HardState
    iteration: Int1
    """[1]; iterations done."""
    tally: Int3
    """[2, moves, 2]; accepted and proposed, in warm-up and sampling."""


Advance = Any
"""A compiled loop."""


@dataclass(frozen=True)
class HardSampler:
    """CGM or WU: configuration shared by its chains."""

    model: HardModel
    plan: HardPlan
    advance: Advance
    moves: tuple[str, ...]
    scanned: tuple[ScanData, Callable[[HardModel], ScanModel]] | None = None
    """What informed moves look at, and how they score it; None where there are none."""
    sweep: tuple[str, ...] = ()
    """Names of the informed moves of an iteration, in order."""

    @property
    def kernels(self) -> list[Any]:
        """What a chain of it calls; see ``core.backend.units``."""
        loop = [draws_of_rows, self.advance]
        if self.scanned is None:
            return loop
        return [propose_informed, *kernels_of_scans(self.scanned[0]), *loop]

    def with_warmup(self, n_warmup: int) -> HardSampler:
        return replace(self, plan=self.plan._replace(n_warmup=n_warmup))

    def start(self, rng: np.random.Generator, keep: bool = True) -> HardChain:
        return HardChain(self, rng, keep)

    @property
    def h(self) -> NDArray[np.float64]:
        return np.zeros(self.model.data.columns.shape[0])


class HardChain:
    """One chain: its loop, its generator, and room for draws."""

    remembers = ("rng", "loop", "explorer", "power")

    def __init__(self, sampler: HardSampler, rng: np.random.Generator, keep: bool = True) -> None:
        self.rng = rng
        self.sampler = sampler
        # Warm-up differs in nothing but that its draws are not kept.
        self.plan = sampler.plan if keep else sampler.plan._replace(n_warmup=sys.maxsize)
        self.power = sampler.model.power.copy()
        self.model = model = sampler.model._replace(power=self.power)
        self.loop = HardLoop(
            state=make_state(model),
            iteration=np.zeros(1, np.int64),
            tally=np.zeros((2, len(sampler.moves), 2), np.int64),
        )
        self.explorer: Explorer | None = None
        if sampler.scanned is not None:
            data, scored = sampler.scanned
            self.explorer = make_explorer(
                data, scored(model), sampler.sweep, model.shape.max_leaves
            )
        self.block = make_block(model.shape.max_leaves, 0, n_values(model.leaf))

    def advance(self, n: int) -> list[Piece]:
        """Run n iterations; returns the draws made, in one piece or several."""
        pieces: list[Piece] = []
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
            self.model, self.loop, self.explorer, self.plan, self.block, n, self.rng
        )

    def compile(self) -> None:
        """Compile, or load what was compiled before, without moving the chain."""
        self._advance(0)

    def log_likelihood(self) -> float:
        return float(self.loop.state.log_like[0])

    def exchanged(self) -> list[Record | NDArray[Any]]:
        state = self.loop.state
        return [state.tree, state.cells, state.log_prior, state.log_like]

    def after_exchange(self) -> None:
        """Nothing else depends on the tree."""

    def n_leaves(self) -> int:
        return (int(self.loop.state.tree.n_nodes[0]) + 1) // 2

    def tally(self) -> dict[str, dict[str, tuple[int, int]]]:
        """phase -> move -> (accepted, proposed); an impossible move counts as refused.

        Where there are informed moves, only those that were proposed; "prior" marks the others.
        """
        counted = [(name, self.loop.tally[:, k]) for k, name in enumerate(self.sampler.moves)]
        if self.explorer is not None:
            counted = [(f"prior {name}", counts) for name, counts in counted]
            counted += [(name, self.explorer.tally[:, k]) for k, name in enumerate(NAMES)]
            counted = [(name, counts) for name, counts in counted if counts[:, 1].any()]
        return {
            phase: {name: (int(counts[t, 0]), int(counts[t, 1])) for name, counts in counted}
            for t, phase in enumerate(("warmup", "sampling"))
        }


def make_model(problem: Problem, configuration: Configuration[Any], *, pinball: bool) -> HardModel:
    columns, weights, kinds = (
        np.asarray(problem.columns, np.float64),
        problem.weights,
        problem.kinds,
    )
    method = configuration.method
    kind = FULL if pinball else RULE_PRIORS[method.rule_prior]
    leaf, target, classes = make_leaf_model(
        problem.y,
        problem.n_classes,
        class_prior=method.class_concentration(problem.n_classes),
        variance_prior=method.variance_prior,
        mean_prior=method.mean_prior,
        common=method.variance == "common",
        weights=weights,
    )
    prior = tree_prior_of(columns.shape[0], configuration, kinds)
    coded = kind == UNIFORM
    shape = make_shape_prior(
        min_leaves=method.min_leaves,
        max_leaves=configuration.max_leaves,
        alpha_split=configuration.alpha_split or 0.5,  # read unless pinball
        beta_split=configuration.beta_split or 0.0,
        expected_splits=getattr(method, "expected_splits", 1.0),  # read if pinball
        left_share=getattr(method, "left_share", 0.5),
        pinball=pinball,
    )
    return HardModel(
        data=make_hard_data(columns, target, classes, coded=coded, weights=weights, kinds=kinds),
        rules=RuleModel(kind=kind, prior=prior, feature_weight=np.exp(prior.log_feature)),
        shape=shape,
        leaf=leaf,
        power=np.array([method.likelihood_power], np.float64),
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
