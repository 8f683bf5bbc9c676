"""WU (Wu, Tjelmeland and West 2007): hard splits, the pinball prior, a restructuring move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..samplers.common import Problem
from ..samplers.hard import HardSampler
from ..samplers.wu import build_wu
from .base import PAPER_LENGTHS, Configuration, Defaults, described
from .common import ChainMethod, HardMethod, tau_prior_parameter, variance_parameter
from .parameters import parameter, real, whole
from .prior_trees import PriorTree, RuleDraws, pinball_tree

PINBALL = (
    "its prior of shapes is the pinball prior. Leave it at None, and set expected_splits and "
    "left_share of WU instead"
)


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class WU(ChainMethod, HardMethod):
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
        "Expected share of the leaves below a node on its left side, beyond one on each side.",
    )
    triples: int = parameter(
        25,
        whole(1),
        "Triples of moves before the restructuring move of an iteration, and as many after it.",
    )
    tau_prior: tuple[float, float] = tau_prior_parameter()
    variance: str = variance_parameter()

    def prior_tree(self, configuration: Configuration[Any], rules: RuleDraws) -> PriorTree | None:
        return pinball_tree(configuration, rules.anywhere, rules.rows, rules.rng)

    def build_one(
        self, problem: Problem, configuration: Configuration[Any], n_warmup: int, threads: int
    ) -> HardSampler:
        return build_wu(problem, configuration, n_warmup)
