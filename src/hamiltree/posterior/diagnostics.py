"""Have the chains converged? R-hat and effective sample sizes, and a sentence on both.

The only module that knows ArviZ. Trees change size, so their parameters cannot be compared from
chain to chain; judged are the log posterior, the number of leaves, the depth, the noise sd and
the predictions at a few fixed rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..utils.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from .posterior import Posterior

RHAT_GOOD = 1.01
"""The usual standard for final results: chains at or below it agree well."""
RHAT_LIMIT = 1.05
"""Above it a fit warns; in between, the sentence says how to get to 1.01."""
MIN_DRAWS = 100
"""Draws per chain below which R-hat itself is too noisy to mean anything."""
MIN_ESS = 100.0
"""Effective draws, over all chains, below which posterior means are not to be trusted."""
TARGET_ESS = 400.0
"""The same for a run that goes on until R-hat is small: a run that is judged again and again will
meet a small R-hat by chance, unless it is estimated well (Vehtari et al. 2021 ask for as many)."""
_NAMES = {
    "log_posterior": "the log posterior",
    "n_leaves": "the number of leaves",
    "depth": "the depth",
    "sigma": "sigma",
    "h": "h",
    "predictions": "the worst monitored prediction",
}


@dataclass(frozen=True)
class Diagnosis:
    """What the chains say about each other; ``sentence`` says it in words."""

    converged: bool
    """No sign of disagreement, and enough draws to have seen one."""
    sentence: str
    rhat: dict[str, float]
    """Rank-normalised split R-hat of log_posterior, n_leaves, depth, sigma (regression), h (where
    it is learned; of the worst column) and of predictions, the worst of the monitored rows. 1 for
    what is constant over all chains."""
    ess: dict[str, float]
    """Bulk effective sample size of the same; for predictions the smallest."""
    worst: str
    """The quantity with the largest R-hat."""
    median_rhat: float
    """Of the predictions, the median over the monitored rows; NaN without any."""
    median_ess: float
    stuck: tuple[int, ...]
    """Chains that never moved while they, or others, should have."""
    n_divergent: int
    acceptance: dict[str, float]
    """Accepted share of the proposals after warm-up, by move."""

    def __str__(self) -> str:
        rows = [(name, self.rhat[name], self.ess[name]) for name in self.rhat]
        if "predictions" in self.rhat:
            rows[-1] = ("predictions, worst", *rows[-1][1:])
            rows.append(("predictions, median", self.median_rhat, self.median_ess))
        lines = [f"  {name:<20} R-hat {number(r)}   ESS {ess:.0f}" for name, r, ess in rows]
        if self.acceptance:
            lines.append(f"  {'accepted':<20} {accepted_shares(self.acceptance)}")
        return "\n".join([self.sentence, *lines])


def diagnose(posterior: Posterior) -> Diagnosis:
    """Judge a posterior; see ``Diagnosis``.

    Converged means: at least 100 draws per chain, no stuck chain, every R-hat at most 1.05 and
    every effective sample size at least 100; after a fit with ``target_rhat``, every R-hat at most
    that and every effective sample size at least 400. The parts of a single chain are compared
    with each other, which cannot show that it missed a mode: the sentence says so. Particles are no
    chains: they have no R-hat (NaN), and are judged by the effective numbers of their weights and
    of the first particles that they descend from.
    """
    even = np.allclose(posterior.weights, 1 / posterior.weights.size, rtol=1e-6)
    if posterior.log_evidence is not None or not even:
        effective = _effective_particles(posterior)
        found = _evidence(posterior, particles=min(effective))
        converged, sentence = judge_particles(posterior.weights.shape, *effective)
    else:
        found = _evidence(posterior)
        converged, sentence = judge_chains(found)
    return Diagnosis(
        converged=converged,
        sentence=sentence,
        rhat=found.rhat,
        ess=found.ess,
        worst=found.worst,
        median_rhat=found.median_rhat,
        median_ess=found.median_ess,
        stuck=found.stuck,
        n_divergent=int(np.sum(posterior.stats.get("divergent", np.zeros(1)))),
        acceptance=posterior.acceptance,
    )


def agree(posterior: Posterior, target_rhat: float) -> bool:
    """Whether chains have agreed for long enough to be stopped; for ``target_rhat`` of a fit."""
    return _evidence(posterior).within(target_rhat, TARGET_ESS)


def _evidence(posterior: Posterior, particles: float | None = None) -> Evidence:
    """What the judgement rests on; ``particles``: the effective sample size of SMC's."""

    def measure(draws: FloatArray) -> tuple[float, float]:
        if particles is not None:
            return float("nan"), particles
        return rank_rhat(draws), bulk_ess(draws)

    quantities: dict[str, FloatArray] = {
        "log_posterior": posterior.log_posterior,
        "n_leaves": posterior.n_leaves.astype(np.float64),
        "depth": posterior.depth.astype(np.float64),
    }
    if posterior.preprocessing.classes is None:
        quantities["sigma"] = posterior.sigma
    measured = {name: measure(draws) for name, draws in quantities.items()}
    if posterior.draws.h_learned:
        by_column = np.atleast_3d(posterior.h)
        measured["h"] = _worst_of([measure(h) for h in np.moveaxis(by_column, 2, 0)])
    median_rhat = median_ess = float("nan")
    if posterior.monitor is not None:
        points = [measure(point) for point in np.moveaxis(posterior.monitor, 2, 0)]
        measured["predictions"] = _worst_of(points)
        median_rhat, median_ess = (float(value) for value in np.median(points, axis=0))
    rhat = {name: pair[0] for name, pair in measured.items()}
    leaves, density = posterior.n_leaves, posterior.log_posterior
    stuck = _stuck_chains(leaves, density, rhat["n_leaves"]) if particles is None else ()
    return Evidence(
        n_chains=posterior.n_chains,
        n_draws=posterior.n_draws,
        n_warmup=posterior.info.n_warmup,
        rhat=rhat,
        ess={name: pair[1] for name, pair in measured.items()},
        median_rhat=median_rhat,
        median_ess=median_ess,
        stuck=stuck,
        stopped=posterior.info.stopped,
        target_rhat=posterior.info.target_rhat,
    )


def _worst_of(measured: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Largest R-hat and smallest effective sample size of several quantities."""
    return max((rhat for rhat, _ in measured), key=badness), min(ess for _, ess in measured)


def accepted_shares(acceptance: Mapping[str, float]) -> str:
    """The accepted share of each move that was proposed, as text."""
    moves = [f"{move} {share:.0%}" for move, share in acceptance.items() if share == share]
    return ", ".join(moves) or "nothing proposed"


def _effective_particles(posterior: Posterior) -> tuple[float, float]:
    """Effective sample sizes of the weights and of the families.

    Resampling evens the weights out by copying: copies of one particle share its first splits,
    and of those they are one draw, whatever their number.
    """
    weights = posterior.weights
    families = np.arange(weights.size)
    if "founder" in posterior.stats:
        first = np.arange(posterior.n_chains)[:, None] * posterior.n_draws
        families = (first + posterior.stats["founder"]).ravel()
    by_family = np.bincount(families, weights=weights.ravel())
    return float(1 / np.sum(weights**2)), float(1 / np.sum(by_family**2))


def _stuck_chains(
    n_leaves: IntArray, log_posterior: FloatArray, rhat_leaves: float
) -> tuple[int, ...]:
    """Chains that stayed at one value.

    One number of leaves throughout is suspicious only where the chains disagree about it: all
    may have determined it. One log posterior throughout is suspicious unless all chains have the
    same, or, for a single chain, the tree is a root and has nothing to move.
    """
    still_leaves = _constant(n_leaves.astype(np.float64), axis=1)
    stuck = still_leaves & (not rhat_leaves <= RHAT_LIMIT)
    known = bool(_constant(log_posterior.ravel(), axis=0))
    if len(n_leaves) == 1:
        known = known and bool((n_leaves == 1).all())
    if not known:
        stuck = stuck | _constant(log_posterior, axis=1)
    return tuple(int(chain) for chain in np.flatnonzero(stuck))


def _constant(values: FloatArray, axis: int) -> NDArray[np.bool_]:
    """Constant but for rounding."""
    limit = 1e-9 * (1 + np.abs(values).max(axis=axis))
    still: NDArray[np.bool_] = np.ptp(values, axis=axis) <= limit
    return still


def rank_rhat(draws: FloatArray) -> float:
    """Rank-normalised split R-hat of [chain, draw]; 1 for a constant, infinite for several."""
    if _constant(draws.ravel(), axis=0):
        return 1.0
    if draws.shape[1] < 8:
        return float("nan")
    if _constant(draws, axis=1).all():
        return float("inf")
    if len(draws) == 1:  # ArviZ wants two chains: the halves, which it will split once more
        half = draws.shape[1] // 2
        draws = draws[0, : 2 * half].reshape(2, half)
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        return float(array_stats.rhat(draws))


def bulk_ess(draws: FloatArray) -> float:
    """Bulk effective sample size of [chain, draw]; all of the draws for a constant."""
    if _constant(draws.ravel(), axis=0):
        return float(draws.size)
    if draws.shape[1] < 4:
        return float("nan")
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        return float(array_stats.ess(draws))


@dataclass(frozen=True)
class Evidence:
    """All that the judgement of chains depends on."""

    n_chains: int
    n_draws: int
    """Of each chain."""
    n_warmup: int | None
    rhat: dict[str, float]
    """By quantity; those of ``_NAMES``. Of predictions the worst."""
    ess: dict[str, float]
    median_rhat: float
    median_ess: float
    stuck: tuple[int, ...]
    stopped: str
    target_rhat: float | None

    @property
    def worst(self) -> str:
        """The quantity with the largest R-hat."""
        return max(self.rhat, key=lambda name: badness(self.rhat[name]))

    @property
    def thinnest(self) -> str:
        """The quantity with the smallest effective sample size."""
        return min(self.ess, key=lambda name: np.nan_to_num(self.ess[name], nan=-1.0))

    def within(self, max_rhat: float, min_ess: float) -> bool:
        """Whether the chains meet these standards."""
        return (
            self.n_draws >= MIN_DRAWS
            and not self.stuck
            and bool(self.rhat[self.worst] <= max_rhat)
            and bool(self.ess[self.thinnest] >= min_ess)
        )


def judge_chains(found: Evidence) -> tuple[bool, str]:
    """Converged or not, and why: the most serious finding decides the sentence.

    A ``target_rhat`` stricter than the usual standard replaces it.
    """
    target = found.target_rhat
    max_rhat, min_ess = RHAT_LIMIT, MIN_ESS
    if target is not None:
        max_rhat, min_ess = min(max_rhat, target), TARGET_ESS
    return found.within(max_rhat, min_ess), _sentence(found, max_rhat, min_ess)


def _sentence(found: Evidence, max_rhat: float, min_ess: float) -> str:
    n_chains, n_draws = found.n_chains, found.n_draws
    rhat, ess = found.rhat[found.worst], found.ess[found.thinnest]
    ending, longer = _ending(found), _longer(found, min_ess)
    evidence = f"R-hat of {_NAMES[found.worst]} is {number(rhat)}"
    if found.worst == "predictions":
        evidence += f" (of the median one {number(found.median_rhat)})"
    who = "The chain" if n_chains == 1 else "The chains"
    if n_draws < MIN_DRAWS:
        few = f"{n_draws} draws per chain are far too few"
        return f"{who} cannot be judged: {few}{ending}; {longer}."
    if found.stuck:
        names = ", ".join(str(chain) for chain in found.stuck)
        are = "Chain {} is" if len(found.stuck) == 1 else "Chains {} are"
        return f"{are.format(names)} stuck at one tree size ({evidence}){ending}; {longer}."
    if not rhat <= max_rhat:
        parts = "The parts of the chain disagree"
        claim = parts if n_chains == 1 else f"The {n_chains} chains do not agree"
        return f"{claim}: {evidence}, above {max_rhat:g}{ending}; {longer}."
    if not ess >= min_ess:
        return (
            f"{who} moved too little to tell: the {n_chains * n_draws} draws of "
            f"{_NAMES[found.thinnest]} have an effective sample size of {ess:.0f}, "
            f"below {min_ess:.0f}{ending}; {longer}."
        )
    numbers = (
        f"every R-hat is at most {number(rhat)}, every effective sample size at least {ess:.0f}"
    )
    if n_chains == 1:
        return (
            f"The parts of the chain agree ({numbers}){ending}, but one chain cannot show that it "
            "missed a part of the posterior: use n_chains=4."
        )
    if rhat <= RHAT_GOOD:
        return f"The {n_chains} chains agree well: {numbers}{ending}."
    return (
        f"The {n_chains} chains agree: {numbers}{ending}; for an R-hat of at most {RHAT_GOOD}, "
        f"{longer}."
    )


def _ending(found: Evidence) -> str:
    """What ended the run, where that was not the number of draws asked for."""
    target = "the target" if found.target_rhat is None else f"target_rhat={found.target_rhat:g}"
    if found.stopped == "target":
        return f", and {target} is met with {found.n_draws} draws per chain"
    if found.stopped == "max_draws":
        return f", and max_draws={found.n_draws} came before {target}"
    if found.stopped == "interrupted":
        return f", and the run was interrupted at {found.n_draws} draws per chain"
    return ""


def _longer(found: Evidence, min_ess: float) -> str:
    """Advice that would bring the effective sample size to twice the minimum, within reason."""
    if found.stopped == "target":
        return f"set target_rhat={RHAT_GOOD}"
    limit = "n_draws" if found.target_rhat is None else "max_draws"
    n_draws, n_warmup, ess = found.n_draws, found.n_warmup, found.ess[found.thinnest]
    if n_draws < MIN_DRAWS:
        return f"run longer: n_warmup={max(500, n_warmup or 0)}, {limit}=500"
    wanted = min_ess / ess if np.isfinite(ess) and ess > 0 else 10.0
    factor = min(max(2.0, 2 * wanted), 10.0)
    warmup = _round_up(factor * (n_draws if n_warmup is None else n_warmup))
    draws = max(500, _round_up(factor * n_draws))
    return f"run longer: n_warmup={max(500, warmup)}, {limit}={draws}"


def judge_particles(shape: tuple[int, ...], effective: float, families: float) -> tuple[bool, str]:
    """Converged or not, and why, from the effective sample sizes of weights and families."""
    islands, particles = shape
    found = (
        f"The {islands * particles} weighted draws have an effective sample size of "
        f"{effective:.0f} and descend from about {families:.0f} first particles"
    )
    if min(effective, families) < MIN_ESS:
        return False, (
            f"{found}, and below {MIN_ESS:.0f} of either they are rough (R-hat does not judge "
            f"particles): use more particles, such as n_draws={_round_up(10 * particles)}, and "
            "compare the islands' evidence."
        )
    return True, (
        f"{found} (R-hat does not judge particles); trees that no particle tried stay unseen."
    )


def _round_up(n: float) -> int:
    """To two leading digits."""
    unit = 10 ** max(0, int(np.floor(np.log10(max(n, 1)))) - 1)
    return int(np.ceil(n / unit) * unit)


def badness(rhat: float) -> float:
    """For sorting: what could not be computed counts as worst."""
    return np.inf if np.isnan(rhat) else rhat


def number(rhat: float) -> str:
    """Rounded up, so that a value just above a limit never reads as the limit."""
    return f"{np.ceil(rhat * 1000) / 1000:.3f}" if np.isfinite(rhat) else str(rhat)
