"""CGM (Chipman, George and McCulloch 1998): hard splits and conjugate leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..samplers.cgm import build_cgm
from .base import PAPER_LENGTHS, Configuration, Defaults, Method, Problem, Sampler, described
from .common import (
    HARD_SPLITS,
    check_moves,
    feature_prior_parameter,
    informed_moves_parameter,
    mean_prior_parameter,
    moves_parameter,
    tau_prior_parameter,
    variance_parameter,
    variance_prior_parameter,
    warn_of_endless_growth,
)
from .parameters import one_of, parameter, whole


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class CGM(Method):
    """CGM (Chipman, George and McCulloch 1998): hard splits, by informed or by their own moves."""

    name: ClassVar[str] = "cgm"
    conjugate_leaves: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {"h": HARD_SPLITS}
    defaults: ClassVar[Defaults] = Defaults(h=None)
    # Tables 3 and 4 of the paper tune most of these by data set.
    paper_defaults: ClassVar[Defaults] = Defaults(
        h=None, alpha_split=1.0, beta_split=1.2, **PAPER_LENGTHS
    )
    paper_values: ClassVar[Mapping[str, Any]] = {
        "moves": "prior",
        "class_mass": 1.0,
        "proposals": 1,
    }

    moves: str = moves_parameter()
    informed_moves: tuple[str, ...] | None = informed_moves_parameter()
    proposals: int = parameter(100, whole(1), 'Proposals in an iteration, with moves="prior".')
    rule_prior: str = parameter(
        "uniform",
        one_of("uniform", "gap", "uniform01"),
        'Prior of a rule: "uniform" over the values that a column has in the node, uniform over '
        'the "gap" between the smallest and the largest of them, or tau_prior over the whole '
        'range of the column ("uniform01").',
    )
    feature_prior: tuple[float, ...] | None = feature_prior_parameter()
    tau_prior: tuple[float, float] = tau_prior_parameter(', with rule_prior="uniform01"')
    variance: str = variance_parameter()
    variance_prior: tuple[float, float] = variance_prior_parameter()
    mean_prior: tuple[float, float] = mean_prior_parameter()

    def check_together(self, configuration: Configuration[Any]) -> None:
        check_moves(self, configuration)
        # Otherwise a split must leave rows on both sides, and the rows are the limit.
        if self.rule_prior == "uniform01":
            warn_of_endless_growth(configuration)

    def build(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        n_warmup: int,
        n_draws: int,
        threads: int,
    ) -> Sampler:
        columns = np.asarray(problem.columns, np.float64)
        return build_cgm(columns, problem.y, problem.n_classes, configuration, n_warmup)
