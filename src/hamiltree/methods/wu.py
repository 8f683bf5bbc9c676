"""WU (Wu, Tjelmeland and West 2007): hard splits, the pinball prior, a restructuring move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..core.tree.kinds import Kinds
from ..samplers.wu import build_wu
from ..utils.arrays import FloatArray
from .base import PAPER_LENGTHS, Configuration, Defaults, Problem, Sampler, described
from .common import (
    HardMethod,
    adds_replicas,
    check_replicas,
    hottest_power_parameter,
    replicas_parameter,
    tau_prior_parameter,
    variance_parameter,
    with_replicas,
)
from .parameters import parameter, real, whole
from .prior_trees import PriorTree, RuleDraws, pinball_tree

PINBALL = (
    "its prior of shapes is the pinball prior. Leave it at None, and set expected_splits and "
    "left_share of WU instead"
)


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class WU(HardMethod):
    """WU (Wu, Tjelmeland and West 2007): hard splits, the pinball prior, a restructuring move.

    Examples
    --------
    >>> from hamiltree.methods import WU
    >>> WU.paper().is_paper
    True
    """

    name: ClassVar[str] = "wu"
    unused: ClassVar[Mapping[str, str]] = {
        **HardMethod.unused,
        "alpha_split": PINBALL,
        "beta_split": PINBALL,
    }
    defaults: ClassVar[Defaults] = Defaults(h=None, alpha_split=None, beta_split=None)
    paper_defaults: ClassVar[Defaults] = replace(defaults, **PAPER_LENGTHS)
    paper_values: ClassVar[Mapping[str, Any]] = {
        "expected_splits": 0.8,
        "class_prior": 2.0,
        "replicas": 1,
    }

    expected_splits: float = parameter(
        3.0, real(0), "Mean of the Poisson prior of the number of splits."
    )
    left_share: float = parameter(
        0.5,
        real(0, 1),
        "Share of the leaves under a node that goes to its left side, beyond one on each side.",
    )
    triples: int = parameter(
        25,
        whole(1),
        "Triples of moves before the restructuring move of an iteration, and again after it.",
    )
    replicas: int | str = replicas_parameter()
    hottest_power: float | None = hottest_power_parameter()
    tau_prior: tuple[float, float] = tau_prior_parameter()
    variance: str = variance_parameter()

    def prior_tree(
        self,
        configuration: Configuration[Any],
        columns: FloatArray,
        rng: np.random.Generator,
        kinds: Kinds | None = None,
    ) -> PriorTree | None:
        rules = RuleDraws(self, columns, kinds, rng)
        return pinball_tree(configuration, rules.anywhere, np.arange(columns.shape[1]), rng)

    @property
    def adds_replicas(self) -> bool:
        return adds_replicas(self)

    def check_together(self, configuration: Configuration[Any], n_classes: int) -> None:
        check_replicas(self)

    def build(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        n_warmup: int,
        n_draws: int,
        threads: int,
    ) -> Sampler:
        columns = np.asarray(problem.columns, np.float64)
        sampler = build_wu(
            columns,
            problem.y,
            problem.n_classes,
            configuration,
            n_warmup,
            weights=problem.weights,
            kinds=problem.kinds,
        )
        return with_replicas(sampler, self, n_warmup)
