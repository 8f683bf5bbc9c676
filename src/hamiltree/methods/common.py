"""Parameters and checks that several methods have, each described once."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..samplers.common import KNOWN_MOVES, Problem, Sampler
from ..samplers.tempering import ReplicaSampler, Tempered
from ..utils.arrays import FloatArray
from .base import Configuration, Defaults, Method, check_positive
from .parameters import (
    number_and_positive,
    one_of,
    pair_of_positives,
    parameter,
    real,
    sequence,
    whole_or,
)

HARD_SPLITS = "its splits are hard. Leave h at None, or choose method='hmc-df'"
MAX_SPLIT_PROBABILITY = 1 - 1e-6
"""Of the prior: p_split = min(alpha (1 + d)^-beta, this)."""


def features_of_used(
    name: str, value: tuple[Any, ...], used: Sequence[int], n_features: int
) -> tuple[float, ...]:
    """Positive numbers of the used columns from those of all."""
    check_positive(name, value, n_features, f"{n_features} positive numbers")
    return tuple(value[column] for column in used)


def feature_prior_parameter(
    text: str = "Prior weights of the columns, equal by default.",
) -> Any:
    return parameter(
        None,
        sequence("array", "one positive number per column", object),
        text,
        of_used=features_of_used,
    )


def tau_prior_parameter(where: str = "", only_with: tuple[str, Any] | None = None) -> Any:
    return parameter(
        (1.0, 1.0),
        pair_of_positives(),
        f"Beta prior of the thresholds, on the range of a column scaled to (0, 1){where}.",
        only_with=only_with,
    )


def variance_parameter() -> Any:
    return parameter(
        "leaf",
        one_of("leaf", "common"),
        'One noise variance per "leaf", or one "common" to all leaves.',
        task="regression",
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class HardMethod(Method):
    """What methods with hard splits and conjugate leaves have in common."""

    conjugate_leaves: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {"h": HARD_SPLITS}
    defaults: ClassVar[Defaults] = Defaults(h=None)

    feature_prior: tuple[float, ...] | None = feature_prior_parameter()
    variance_prior: tuple[float, float] = parameter(
        (1.5, 0.1),
        pair_of_positives(),
        "Inverse gamma prior (shape, rate) of the noise variance, in the model's units.",
        task="regression",
    )
    mean_prior: tuple[float, float] = parameter(
        (0.0, 0.1),
        number_and_positive("a mean and a positive number of rows"),
        "Prior mean of the leaf means, and the number of rows that it counts as.",
        task="regression",
    )

    def prior_leaves(self, n_leaves: int, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """[leaves, 2] means and noise sds from the prior, and the root mean square of the sds."""
        shape, rate = self.variance_prior
        mean, prior_rows = self.mean_prior
        common = getattr(self, "variance", "leaf") == "common"
        variance = rate / rng.standard_gamma(shape, 1 if common else n_leaves)
        variance = np.broadcast_to(variance, n_leaves)
        means = mean + np.sqrt(variance / prior_rows) * rng.standard_normal(n_leaves)
        leaf: FloatArray = np.stack([means, np.sqrt(variance)], axis=1)
        return leaf, float(np.sqrt(variance.mean()))


# ------------------------------------------------------------------ Markov chains


@dataclass(frozen=True, kw_only=True, repr=False)
class ChainMethod(Method):
    """What methods of Markov chains have in common: a chain may have replicas."""

    replicas: int | str = parameter(
        "auto",
        whole_or("auto", 1),
        "Replicas of each chain, which sample with powers of the likelihood from 1 down and "
        'exchange their trees, for posteriors with several modes; 1 for none. "auto" adds as many '
        "as needed if the first draws show that the chains are in different modes; never with "
        'moves="prior".',
    )
    hottest_power: float | None = parameter(
        None,
        real(0, 1, low_allowed=True),
        "Power of the likelihood of the last replica. By default the highest at which it mixes "
        "without exchanges, found in warm-up; 0 is the prior, which also gives log_evidence.",
    )

    @property
    def n_replicas(self) -> int:
        """Of each chain from its start on."""
        return 1 if isinstance(self.replicas, str) else self.replicas

    @property
    def adds_replicas(self) -> bool:
        return self.replicas == "auto" and self.likelihood_power > 0.0

    def check_together(self, configuration: Configuration[Any], n_classes: int) -> None:
        if self.hottest_power is not None and self.n_replicas == 1:
            raise ValueError(
                "hottest_power is that of the last of several replicas: set replicas, too"
            )

    @abstractmethod
    def build_one(
        self, problem: Problem, configuration: Configuration[Any], n_warmup: int, threads: int
    ) -> ReplicaSampler:
        """The sampler of chains without replicas."""

    def build(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        n_warmup: int,
        n_draws: int,
        threads: int,
    ) -> Sampler:
        if self.n_replicas == 1:
            return self.build_one(problem, configuration, n_warmup, threads)
        one = self.build_one(problem, configuration, n_warmup, 1)  # replicas have threads
        return Tempered(one, n_warmup, self.n_replicas, self.hottest_power)


@dataclass(frozen=True, kw_only=True, repr=False)
class InformedMethod(ChainMethod):
    """What methods have in common whose moves may look at the data."""

    moves: str = parameter(
        "informed",
        one_of("informed", "prior"),
        'How changes of a tree are proposed: "informed" by the data, or drawn from the "prior" as '
        "in the original papers.",
    )
    informed_moves: tuple[str, ...] | None = parameter(
        None,
        sequence("sequence of str", f"a sequence of names among {', '.join(KNOWN_MOVES)}", str),
        f"Informed moves of an iteration, in order, out of {', '.join(KNOWN_MOVES)}; by default a "
        'sequence that suits most data with moves="informed", and none with moves="prior".',
    )

    @property
    def adds_replicas(self) -> bool:
        return super().adds_replicas and self.moves == "informed"

    def check_together(self, configuration: Configuration[Any], n_classes: int) -> None:
        super().check_together(configuration, n_classes)
        unknown = set(self.informed_moves or ()) - set(KNOWN_MOVES)
        if unknown:
            known = ", ".join(KNOWN_MOVES)
            raise ValueError(f"informed_moves has {sorted(unknown)}; known are {known}")
        size = configuration.max_leaves
        stuck = self.moves == "prior" and not self.informed_moves and self.min_leaves == size
        if stuck and size > 2:  # up to two leaves there is one shape only, and nothing to reach
            raise ValueError(
                f'moves="prior" changes the shape of a tree only by way of its size, and with '
                f"min_leaves = max_leaves = {size} there is one size only: set moves='informed', "
                "or a smaller min_leaves"
            )


# ------------------------------------------------------------------ checks


def softness_of_used(name: str, value: Any, used: Sequence[int], n_features: int) -> Any:
    """Softness of the used columns from that of all; one number stays one."""
    if not isinstance(value, tuple):
        return value
    right = all(isinstance(v, int | float) and 0 <= v < math.inf for v in value)
    if len(value) != n_features or not right:
        raise ValueError(
            f"{name} must be a number, or one for each of the {n_features} columns, none negative; "
            f"got {value!r}"
        )
    return tuple(float(value[column]) for column in used)


def expected_leaves(alpha_split: float, beta_split: float, limit: float) -> float:
    """Expected number of leaves of a tree under the topology prior, or inf once above ``limit``.

    A split adds one leaf, so this is 1 + sum over depths of the expected number of splits.
    """
    leaves, nodes, depth = 1.0, 1.0, 0
    while nodes > 1e-12:
        splits = nodes * min(alpha_split * (1.0 + depth) ** -beta_split, MAX_SPLIT_PROBABILITY)
        leaves, nodes, depth = leaves + splits, 2 * splits, depth + 1
        if leaves > limit:
            return math.inf
    return leaves


def warn_of_endless_growth(configuration: Configuration[Any]) -> None:
    """Where nothing but max_leaves would stop the trees of the prior."""
    alpha, beta = configuration.alpha_split, configuration.beta_split
    limit = configuration.max_leaves
    assert alpha is not None
    assert beta is not None
    if expected_leaves(alpha, beta, limit) > limit:
        warnings.warn(
            f"with alpha_split={alpha:g} and beta_split={beta:g} the prior's trees have more than "
            f"max_leaves={limit} leaves on average, so max_leaves limits them; lower alpha_split "
            "or raise beta_split",
            UserWarning,
            stacklevel=6,
        )
