"""WU (Wu, Tjelmeland and West 2007): hard splits, the pinball prior, a restructuring move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..samplers.wu import build_wu
from .base import PAPER_LENGTHS, Configuration, Defaults, Method, Problem, Sampler, described
from .common import (
    HARD_SPLITS,
    feature_prior_parameter,
    mean_prior_parameter,
    tau_prior_parameter,
    variance_parameter,
    variance_prior_parameter,
)
from .parameters import parameter, real, whole

PINBALL = (
    "its prior of shapes is the pinball prior. Leave it at None, and set expected_splits and "
    "left_share of WU instead"
)


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class WU(Method):
    """WU (Wu, Tjelmeland and West 2007): hard splits, the pinball prior, a restructuring move."""

    name: ClassVar[str] = "wu"
    conjugate_leaves: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {
        "h": HARD_SPLITS,
        "alpha_split": PINBALL,
        "beta_split": PINBALL,
    }
    defaults: ClassVar[Defaults] = Defaults(h=None, alpha_split=None, beta_split=None)
    paper_defaults: ClassVar[Defaults] = replace(defaults, **PAPER_LENGTHS)
    paper_values: ClassVar[Mapping[str, Any]] = {"expected_splits": 0.8, "class_prior": 2.0}

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
    feature_prior: tuple[float, ...] | None = feature_prior_parameter()
    tau_prior: tuple[float, float] = tau_prior_parameter()
    variance: str = variance_parameter()
    variance_prior: tuple[float, float] = variance_prior_parameter()
    mean_prior: tuple[float, float] = mean_prior_parameter()

    def build(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        n_warmup: int,
        n_draws: int,
        threads: int,
    ) -> Sampler:
        columns = np.asarray(problem.columns, np.float64)
        return build_wu(columns, problem.y, problem.n_classes, configuration, n_warmup)
