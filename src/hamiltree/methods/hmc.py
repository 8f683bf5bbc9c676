"""HMC-DF and HMC-DFI (Cochrane, Wills and Johnson): soft splits, sampled by Hamiltonian dynamics.

HMC-DF splits on one feature, HMC-DFI on a weighted sum of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from ..samplers.common import Problem
from ..samplers.rjhmc import RJHMC
from ..samplers.softness import H_RANGE
from ..utils.arrays import FloatArray
from .base import PAPER_LENGTHS, Configuration, Defaults, described, refuse_special
from .common import (
    InformedMethod,
    feature_prior_parameter,
    softness_of_used,
    tau_prior_parameter,
    warn_of_endless_growth,
)
from .parameters import (
    flag,
    number_and_positive,
    one_of,
    pair_of_positives,
    parameter,
    probabilities,
    real,
    softness,
    whole,
)
from .prior_trees import PriorTree, RuleDraws, branching_tree

SMALLEST_H = 1e-9
"""Gradients grow like 1/h; below this, h = 0 is meant."""
MOVE_PROBS = "three probabilities (grow, prune, stay) that sum to 1"
NOT_THE_PAPERS_SCHEME = (
    'needs moves="informed", and not the scheme of preset="paper"; set h to a number or to "auto" '
    "otherwise"
)


def is_hard(h: Any) -> bool:
    """Whether splits are hard: h is 0, for every column."""
    return not isinstance(h, str) and not np.any(np.asarray(h, np.float64))


@dataclass(frozen=True, kw_only=True, repr=False)
class HMC(InformedMethod):
    """What HMC-DF and HMC-DFI have in common."""

    conjugate_leaves: ClassVar[bool] = False
    stats: ClassVar[tuple[str, ...]] = (
        "divergent",
        "nuts_depth",
        "step_size",
        "accept_stat",
        "n_gradients",
    )
    oblique: ClassVar[bool]
    """Splits on weighted sums of the columns."""
    # alpha_split, beta_split and h were tuned by the authors for each data set; these are middle
    # values of their table 4.
    paper_defaults: ClassVar[Defaults] = Defaults(alpha_split=0.45, h=0.025, **PAPER_LENGTHS)
    paper_values: ClassVar[Mapping[str, Any]] = {
        "min_leaves": 2,
        "moves": "prior",
        "leaf_means": "explicit",
        "likelihood": "paper",
        "class_prior": 1.0,
        "sigma_prior": (1.5, 1.5),
        "scheme": "double-sided",
        "adapt": "transition",
        "replicas": 1,
        "move_probs": (0.2, 0.2, 0.6),
        "warmup_move_probs": (0.5, 0.25, 0.25),
        "warmup_acceptance": "biased",
    }

    h_prior: tuple[float, float] = parameter(
        (0.01, 1.5),
        number_and_positive(
            f"a median of h between {H_RANGE[0]:g} and {H_RANGE[1]:g} and a positive sd of its "
            "logarithm"
        ),
        'With h="learn": median of h, and sd of log h, of its log-normal prior.',
    )
    h_init: float | tuple[float, ...] | None = parameter(
        None,
        softness(),
        "Softness at the start of warm-up, from where it moves to h: one number, or one per "
        "column; by default h itself.",
        of_used=softness_of_used,
    )
    tau_prior: tuple[float, float] = tau_prior_parameter()
    mu_prior: tuple[float, float] = parameter(
        (0.0, 1.0),
        number_and_positive("a mean and a positive sd"),
        "Mean and sd of the normal prior of the leaf means, in the model's units.",
        task="regression",
    )
    sigma_prior: tuple[float, float] = parameter(
        (1.5, 0.1),
        pair_of_positives(),
        "Inverse gamma prior (shape, scale) of the noise sd, in the model's units.",
        task="regression",
    )
    leaf_means: str = parameter(
        "collapsed",
        one_of("collapsed", "explicit"),
        '"collapsed" integrates the leaf means out, "explicit" samples them.',
        task="regression",
    )
    likelihood: str = parameter(
        "normalised",
        one_of("normalised", "paper"),
        'For soft splits: "normalised" over labels, p(y) = sum over leaves of P(leaf) P(y in the '
        'leaf), with the leaf probabilities sampled; or the "paper"\'s Dirichlet-multinomial of '
        "soft counts, which does not sum to 1 over labels. They agree for hard splits (h = 0).",
        task="classification",
    )
    scheme: str = parameter(
        "composed",
        one_of("composed", "double-sided"),
        '"composed" of exact kernels, or the "double-sided" jumps of the paper\'s algorithm 1.',
    )
    adapt: str = parameter(
        "warmup",
        one_of("warmup", "transition"),
        'NUTS adapts in the "warmup" or, as in the paper, again in each "transition".',
    )
    adapt_steps: int = parameter(
        500,
        whole(1),
        'Steps of adaptation with adapt="transition".',
        only_with=("adapt", "transition"),
    )
    inner_steps: int = parameter(
        1, whole(1), "NUTS steps per iteration, or on each side of a double-sided jump (k)."
    )
    move_probs: tuple[float, float, float] = parameter(
        (0.4, 0.4, 0.2),
        probabilities(3, MOVE_PROBS),
        'Probabilities of grow, prune and stay, with moves="prior".',
        only_with=("moves", "prior"),
    )
    warmup_move_probs: tuple[float, float, float] | None = parameter(
        None,
        probabilities(3, MOVE_PROBS),
        "The same in warm-up, by default move_probs.",
        only_with=("moves", "prior"),
    )
    acceptance: str = parameter(
        "exact",
        one_of("exact", "biased"),
        'Double-sided jumps are accepted by the "exact" or by the paper\'s "biased" ratio.',
    )
    warmup_acceptance: str = parameter("exact", one_of("exact", "biased"), "The same in warm-up.")
    target_accept: float = parameter(
        0.8, real(0, 1), "Acceptance statistic for which the step size of NUTS is adapted."
    )
    max_nuts_depth: int | None = parameter(
        None,
        whole(1, 20),
        "NUTS doubles its trajectory at most this many times; the default depends on method, "
        "moves, rows and leaves of the tree.",
    )

    def why_not_learned(self) -> str:
        """What keeps h from being learned; empty where nothing does."""
        exact = self.scheme == "composed" and self.adapt == "warmup"
        if self.moves != "informed" or not exact:
            return NOT_THE_PAPERS_SCHEME
        return ""

    def _check_likelihood(self, h: Any) -> None:
        """Refuse ``likelihood`` where it does not apply."""
        if self.likelihood == "paper" and h == "learn":
            raise ValueError(
                'h="learn" needs a likelihood that is normalised over labels: set '
                'likelihood="normalised", or h to a number or to "auto"'
            )
        if self.likelihood == "normalised" and self.scheme == "double-sided":
            raise ValueError(
                'scheme="double-sided" is the paper\'s, with its likelihood: set '
                'likelihood="paper" for soft splits, or scheme="composed"'
            )

    def check_together(self, configuration: Configuration[Any], n_classes: int) -> None:
        self._check_softness(configuration.h)
        if self.scheme == "double-sided" and self.moves != "prior":
            raise ValueError(
                'scheme="double-sided" is the paper\'s, with its jumps: set moves="prior"'
            )
        if n_classes and not is_hard(configuration.h):
            self._check_likelihood(configuration.h)
        if self.n_replicas > 1 and self.scheme != "composed":
            raise ValueError('replicas needs scheme="composed"; set replicas=1')
        super().check_together(configuration, n_classes)
        biased = "biased" in (self.acceptance, self.warmup_acceptance)
        if biased and self.scheme != "double-sided":
            raise ValueError(
                "the biased acceptance compares both ends of a double-sided step: set "
                'scheme="double-sided" (or preset="paper"), or acceptance="exact"'
            )
        for name in ("move_probs", "warmup_move_probs"):
            grow, prune, _ = getattr(self, name) or self.move_probs
            if (grow > 0) != (prune > 0):
                raise ValueError(
                    f"{name} must let trees both grow and shrink, or neither, got "
                    f"{getattr(self, name)!r}: a jump that can never be undone is never accepted"
                )
        warn_of_endless_growth(configuration)

    def _check_softness(self, h: Any) -> None:
        """Refuse an h that is not one, and what cannot be together with it."""
        for name, value in (("h", h), ("h_init", self.h_init)):
            if value is None or isinstance(value, str):
                continue
            values = np.atleast_1d(np.asarray(value, np.float64))
            if ((values > 0) & (values < SMALLEST_H)).any():
                raise ValueError(
                    f"{name} must be 0 (hard splits) or at least {SMALLEST_H:g}, got {value}"
                )
            if (values > 0).any() and (values == 0).any():
                raise ValueError(f"{name} must be all 0 (hard splits) or all positive, got {value}")
            if self.oblique and isinstance(value, tuple):
                raise ValueError(
                    f"every split of method={self.name!r} weighs all columns: {name} must be one "
                    "number"
                )
        self.refuse_without_effect("h_prior", h == "learn", "h", "learn")
        low, high = H_RANGE
        if not low <= self.h_prior[0] <= high:
            raise ValueError(
                f"h_prior must be a median of h between {low:g} and {high:g} and a positive sd of "
                f"its logarithm, got {self.h_prior!r}"
            )
        if h != "learn":
            return
        if reason := self.why_not_learned():
            raise ValueError(f'h="learn" {reason}')
        start = self.h_init
        if start is not None and not all(low <= v <= high for v in np.atleast_1d(start)):
            raise ValueError(f'with h="learn", h_init must be between {low:g} and {high:g}')

    def prior_tree(self, configuration: Configuration[Any], rules: RuleDraws) -> PriorTree | None:
        draw_rule = rules.oblique if self.oblique else rules.anywhere
        return branching_tree(configuration, draw_rule, None, rules.rng)

    def prior_leaves(self, n_leaves: int, rng: np.random.Generator) -> tuple[FloatArray, float]:
        mean, sd = self.mu_prior
        shape, scale = self.sigma_prior
        means = mean + sd * rng.standard_normal((n_leaves, 1))
        return means, float(scale / rng.standard_gamma(shape))

    def prior_h(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` draws from the prior of a learned h."""
        median, sd = self.h_prior
        low, high = ndtr((np.log(H_RANGE) - np.log(median)) / sd)
        h: FloatArray = median * np.exp(sd * ndtri(rng.uniform(low, high, n)))
        return np.clip(h, *H_RANGE)

    def build_one(
        self, problem: Problem, configuration: Configuration[Any], n_warmup: int, threads: int
    ) -> RJHMC:
        if self.oblique:
            refuse_special(problem, self.name)
        return RJHMC.build(problem, configuration, n_warmup, threads)


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class HMCDF(HMC):
    """HMC-DF: soft splits on one feature each. The default method.

    The default of h is "learn" if the other fields allow it.

    Examples
    --------
    >>> from hamiltree import BayesianTreeRegressor
    >>> from hamiltree.methods import HMCDF
    >>> model = BayesianTreeRegressor(method=HMCDF(replicas=6), h=0)
    >>> model.get_params()["method__replicas"]
    6
    """

    name: ClassVar[str] = "hmc-df"
    oblique: ClassVar[bool] = False
    paper_values: ClassVar[Mapping[str, Any]] = {**HMC.paper_values, "index_update": "mh"}

    feature_prior: tuple[float, ...] | None = feature_prior_parameter()
    h_by_feature: bool = parameter(
        False, flag(), 'With h="auto" and h="learn": one h per column instead of one for all.'
    )
    impute: bool = parameter(
        True,
        flag(),
        "Whether a cut may also treat missing cells as numbers imputed from the other cells of the "
        "row, rather than send them all to one side; for soft splits alone.",
    )
    index_update: str = parameter(
        "gibbs",
        one_of("gibbs", "mh", "liu"),
        'How the features of splits are drawn with moves="prior": "gibbs", "mh" '
        '(Metropolis-Hastings) or "liu" (Liu\'s modified Gibbs sampler).',
    )

    def imputes(self, h: Any) -> bool:
        # of the user's h, which nobody has checked yet
        return self.impute and any(v != 0 for v in np.ravel(np.array(h, object)))

    def estimator_default(self, name: str, *, regression: bool) -> Any:
        # h is learned where it can be: that predicts better, and takes no longer.
        normalised = regression or self.likelihood == "normalised"
        if name == "h" and normalised and not self.is_paper and not self.why_not_learned():
            return "learn"
        return super().estimator_default(name, regression=regression)


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class HMCDFI(HMC):
    """HMC-DFI: soft splits, each on a weighted sum of all features.

    Examples
    --------
    >>> from hamiltree.methods import HMCDFI
    >>> HMCDFI().name
    'hmc-dfi'
    """

    name: ClassVar[str] = "hmc-dfi"
    oblique: ClassVar[bool] = True
    takes_numbers_only: ClassVar[bool] = True
    h_by_feature: ClassVar[bool] = False  # every split weighs all columns, and has one h
    index_update: ClassVar[str] = "gibbs"  # of splits that have a feature

    weight_prior: float = parameter(
        1.0, real(0), "Concentration of the Dirichlet prior of a split's weights."
    )
    feature_prior: tuple[float, ...] | None = feature_prior_parameter(
        "Weights of the columns when informed moves propose a split, equal by default. They affect "
        "how soon chains agree, not the posterior: every split uses all columns."
    )
