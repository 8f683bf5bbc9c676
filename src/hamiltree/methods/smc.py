"""SMC (Lakshminarayanan, Roy and Teh 2013): hard splits, trees grown by weighted particles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..core.smc.gaps import MOST_LEVELS
from ..samplers import smc
from ..samplers.common import Problem, Sampler
from .base import (
    PAPER_LENGTHS,
    Configuration,
    Defaults,
    described,
)
from .common import HardMethod
from .parameters import one_of, parameter, real, whole
from .prior_trees import PriorTree, RuleDraws, branching_tree

AT_ONCE = "it makes all its particles at once and"


@described
@dataclass(frozen=True, kw_only=True, repr=False)
class SMC(HardMethod):
    """SMC (Lakshminarayanan, Roy and Teh 2013): hard splits, trees grown by weighted particles.

    Here a chain is an island of particles, and a draw is a particle.

    Examples
    --------
    >>> from hamiltree.methods import SMC
    >>> SMC().name
    'smc'
    """

    name: ClassVar[str] = "smc"
    makes_particles: ClassVar[bool] = True
    stats: ClassVar[tuple[str, ...]] = ("log_weight", "founder")
    variance: ClassVar[str] = "leaf"  # with one in common, a leaf could not be judged on its own
    unused: ClassVar[Mapping[str, str]] = {
        **HardMethod.unused,
        "n_warmup": f"{AT_ONCE} has no warm-up. Leave n_warmup at None",
        "target_rhat": f"{AT_ONCE} has no R-hat. Leave target_rhat at None, and raise n_draws "
        "if there are too few particles",
        "max_draws": f"{AT_ONCE} stops at n_draws. Leave max_draws at None",
        "max_seconds": f"{AT_ONCE} has nothing to keep before the end. Leave max_seconds at None, "
        "and lower n_draws if it takes too long",
        "warm_start": f"{AT_ONCE} has no chains to continue. Set warm_start=False, and a larger "
        "n_draws for more particles",
    }
    defaults: ClassVar[Defaults] = Defaults(h=None, n_warmup=None)
    paper_defaults: ClassVar[Defaults] = Defaults(
        h=None, beta_split=0.5, n_warmup=None, n_draws=PAPER_LENGTHS["n_draws"]
    )
    paper_values: ClassVar[Mapping[str, Any]] = {
        "class_mass": 0.5,
        "split_proposal": "prior",
        "resampling": "multinomial",
    }

    split_proposal: str = parameter(
        "posterior",
        one_of("posterior", "prior", "empirical"),
        'How splits are proposed: by the "prior", by the "empirical" gaps between values or, '
        'optimal for one step, by the "posterior". "empirical" draws sets of levels from their '
        f'prior; "posterior" takes categories of up to {MOST_LEVELS} levels.',
    )
    resampling: str = parameter(
        "systematic",
        one_of("systematic", "multinomial"),
        "How particles are resampled.",
    )
    ess_threshold: float = parameter(
        0.1,
        real(0, 1, low_allowed=True, high_allowed=True),
        "Resample when the effective sample size falls to this share of an island's particles.",
    )
    min_size: int = parameter(1, whole(1), "Nodes with at most this many rows are not split.")

    def check_together(self, configuration: Configuration[Any], n_classes: int) -> None:
        if self.min_leaves > 2:
            raise ValueError(
                f"method='smc' allows min_leaves 1 or 2, got {self.min_leaves}: a tree that grows "
                "from its root does not know how many leaves it will have"
            )

    def prior_tree(self, configuration: Configuration[Any], rules: RuleDraws) -> PriorTree | None:
        draw_rule = rules.between_values
        return branching_tree(configuration, draw_rule, rules.rows, rules.rng, cut=True)

    def build(
        self,
        problem: Problem,
        configuration: Configuration[Any],
        n_warmup: int,
        n_draws: int,
        threads: int,
    ) -> Sampler:
        return smc.SMC.build(problem, configuration, n_draws)
