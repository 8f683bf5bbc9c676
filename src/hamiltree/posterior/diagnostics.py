"""Have the chains converged? R-hat and effective sample sizes, and a sentence on both.

Only this module and ``loo`` call ArviZ. Trees change size, so their parameters cannot be compared
from chain to chain; judged are the log posterior, the number of leaves, the depth, the noise sd and
the predictions at a few fixed rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..utils.arrays import FloatArray, IntArray
from ..utils.notebook import html_of_text
from .judgement import (
    RHAT_LIMIT,
    TARGET_ESS,
    Evidence,
    badness,
    judge_chains,
    judge_particles,
    number,
)

if TYPE_CHECKING:
    from .posterior import Posterior


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Convergence of the chains; ``sentence`` states it. Prints as text."""

    converged: bool
    """No sign of disagreement, and enough draws to have seen one."""
    sentence: str
    rhat: dict[str, float]
    """Rank-normalised split R-hat of log_posterior, log_likelihood, n_leaves, depth, sigma
    (regression), h (where it is learned; of the worst column) and of predictions, the worst of the
    monitored rows. 1 for what is constant over all chains."""
    ess: dict[str, float]
    """Bulk effective sample size of the same; for predictions the smallest."""
    worst: str
    """The quantity with the largest R-hat."""
    median_rhat: float
    """Median R-hat of the predictions at the monitored rows; NaN without any."""
    median_ess: float
    stuck: tuple[int, ...]
    """Chains that never moved while they, or others, should have."""
    n_divergent: int
    acceptance: dict[str, float]
    """Accepted share of the proposals after warm-up, by move."""
    seed_error: float
    """How much the predictions of all chains together would change with another seed: their Monte
    Carlo error, estimated between chains, over the sd of a new observation; the root mean square
    over the monitored rows. NaN for one chain, and without monitored rows."""

    @property
    def label(self) -> str:
        """In two or three words."""
        return "chains agree" if self.converged else "read with care"

    def __str__(self) -> str:
        rows = [(name, self.rhat[name], self.ess[name]) for name in self.rhat]
        if "predictions" in self.rhat:
            rows[-1] = ("predictions, worst", *rows[-1][1:])
            rows.append(("predictions, median", self.median_rhat, self.median_ess))
        lines = [f"  {name:<20} R-hat {number(r)}   ESS {ess:.0f}" for name, r, ess in rows]
        if np.isfinite(self.seed_error):
            moved = f"{self.seed_error:.1%} of the sd of a new observation"
            lines.append(f"  {'another seed':<20} would move predictions by about {moved}")
        if self.acceptance:
            lines.append(f"  {'accepted':<20} {accepted_shares(self.acceptance)}")
        return "\n".join([self.sentence, *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_of_text(str(self), self.label, good=self.converged)


def diagnose(posterior: Posterior) -> Diagnosis:
    """Judge a posterior; see ``Diagnosis``.

    Converged means: at least 100 draws per chain, no stuck chain, every R-hat at most 1.05 and
    every effective sample size at least 100; after a fit with ``target_rhat``, every R-hat at most
    that and every effective sample size at least 400. The parts of a single chain are compared
    with each other, which cannot show that it missed a mode: the sentence says so. Particles are no
    chains: they have no R-hat (NaN), and are judged by the effective numbers of their weights and
    of the first particles that they descend from. Stacked chains (``stacked``) are judged as they
    ran, and the sentence gives their weights.
    """
    share = posterior.weights.sum(axis=1)  # of each chain
    chains = np.allclose(posterior.weights, share[:, None] / posterior.n_draws, rtol=1e-6)
    if posterior.has_particles or not chains:
        effective = _effective_particles(posterior)
        found = _evidence(posterior, particles=min(effective))
        converged, sentence = judge_particles(posterior.weights.shape, *effective)
    else:
        found = _evidence(posterior)
        converged, sentence = judge_chains(found)
        if not np.allclose(share, 1 / len(share), rtol=1e-6):
            counted = ", ".join(f"{value:.2f}" for value in share)
            sentence += f" Stacking has given them the weights {counted}."
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
        seed_error=seed_error(posterior),
    )


def seed_error(posterior: Posterior) -> float:
    """Monte Carlo error of the pooled predictions over the predictive sd; see ``Diagnosis``.

    Chains are independent, so that the spread of their own means estimates the error of the mean
    of all, whatever goes on within them.
    """
    monitor, weights = posterior.monitor, posterior.weights
    n_chains = posterior.n_chains
    if monitor is None or n_chains == 1:
        return float("nan")
    share = weights.sum(axis=1)  # of each chain in the pooled mean
    own = np.einsum("cd,cdp->cp", weights, monitor) / np.maximum(share, 1e-300)[:, None]
    pooled = share @ own
    unit = max(float(np.abs(own).max()), 1e-300)  # squares of the largest numbers overflow
    squares = (share[:, None] * (own - pooled) / unit) ** 2
    variance = n_chains / (n_chains - 1) * squares.sum(axis=0)
    if posterior.n_classes:
        predictive = pooled * (1 - pooled) / unit**2
    else:
        spread = np.einsum("cd,cdp->p", weights, ((monitor - pooled) / unit) ** 2)
        predictive = spread + np.sum(weights * (posterior.sigma / unit) ** 2)
    ratio = np.where(variance > 0, variance / np.maximum(predictive, 1e-300), 0.0)
    return float(np.sqrt(ratio.mean()))


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
        "log_likelihood": posterior.log_likelihood,
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
        max_seconds=posterior.info.max_seconds,
        replicas=len(posterior.info.powers) or 1,
        why_replicas=posterior.info.why_replicas,
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


def error_of_mean(draws: FloatArray) -> float:
    """Standard error of the mean of [chain, draw]; NaN for fewer than 8 draws per chain."""
    if _constant(draws.ravel(), axis=0):
        return 0.0
    if draws.shape[1] < 8:
        return float("nan")
    from arviz_stats.base import array_stats

    return float(draws.std(ddof=1) / np.sqrt(array_stats.ess(draws, method="mean")))
