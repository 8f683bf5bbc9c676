"""CGM (Chipman, George and McCulloch 1998): hard splits and conjugate leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..samplers.cgm import build_cgm
from ..samplers.common import Problem
from ..samplers.hard import HardSampler
from .base import PAPER_LENGTHS, Configuration, Defaults, described
from .common import (
    HardMethod,
    InformedMethod,
    tau_prior_parameter,
    variance_parameter,
    warn_of_endless_growth,
)
from .parameters import one_of, parameter, whole
from .prior_trees import PriorTree, RuleDraws, branching_tree


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class CGM(InformedMethod, HardMethod):
    """CGM (Chipman, George and McCulloch 1998): hard splits, with informed or original moves.

    Examples
    --------
    >>> from hamiltree.methods import CGM
    >>> CGM(rule_prior="gap").set_params(replicas=4).rule_prior
    'gap'
    """

    name: ClassVar[str] = "cgm"
    # Tables 3 and 4 of the paper tune most of these by data set.
    paper_defaults: ClassVar[Defaults] = Defaults(
        h=None, alpha_split=1.0, beta_split=1.2, **PAPER_LENGTHS
    )
    paper_values: ClassVar[Mapping[str, Any]] = {
        "moves": "prior",
        "class_mass": 1.0,
        "proposals": 1,
        "replicas": 1,
    }

    proposals: int = parameter(
        100,
        whole(1),
        'Proposals per iteration, with moves="prior".',
        only_with=("moves", "prior"),
    )
    rule_prior: str = parameter(
        "uniform",
        one_of("uniform", "gap", "uniform01"),
        'Prior of a rule: "uniform" over the values that a column has in the node, uniform over '
        'the "gap" between the smallest and the largest of them, or tau_prior over the whole '
        'range of the column ("uniform01").',
    )
    tau_prior: tuple[float, float] = tau_prior_parameter(
        ', with rule_prior="uniform01"', ("rule_prior", "uniform01")
    )
    variance: str = variance_parameter()

    def check_together(self, configuration: Configuration[Any], n_classes: int) -> None:
        super().check_together(configuration, n_classes)
        # Otherwise a split must leave rows on both sides, and the rows are the limit.
        if self.rule_prior == "uniform01":
            warn_of_endless_growth(configuration)

    def prior_tree(self, configuration: Configuration[Any], rules: RuleDraws) -> PriorTree | None:
        draw_rule = {
            "uniform": rules.at_values,
            "gap": rules.between_values,
            "uniform01": rules.anywhere,
        }[self.rule_prior]
        rows = None if self.rule_prior == "uniform01" else rules.rows
        return branching_tree(configuration, draw_rule, rows, rules.rng)

    def build_one(
        self, problem: Problem, configuration: Configuration[Any], n_warmup: int, threads: int
    ) -> HardSampler:
        return build_cgm(problem, configuration, n_warmup)
