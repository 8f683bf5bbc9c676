"""Have the chains arrived? R-hat and effective sample sizes, and one plain sentence.

The only module that knows ArviZ. Trees change size, so their parameters cannot be compared from
chain to chain; judged are the log posterior, the number of leaves, the depth, the noise sd and
the predictions at a few fixed rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .draws import FloatArray, IntArray
from .verdict import (
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

_ENDED = {
    "n_draws": "",
    "target": ", ended when target_rhat was met",
    "max_draws": ", ended at max_draws",
    "interrupted": ", interrupted",
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

    Converged means: at least 100 draws a chain, no stuck chain, every R-hat at most 1.05 and
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
    """What the verdict is made of; ``particles``: how many draws those of SMC are worth."""

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


def summarise(posterior: Posterior) -> str:
    """The posterior on one screen."""
    weights, diagnosis = posterior.weights, diagnose(posterior)
    task = f"{posterior.n_classes} classes" if posterior.n_classes else "regression"
    counts = np.bincount(posterior.n_leaves.ravel(), weights=weights.ravel())
    likely = int(counts.argmax())
    leaves = f"{mean_sd(posterior.n_leaves, weights)}, most often {likely} ({counts[likely]:.0%})"
    lines = [
        f"{repr(posterior)[1:-1]}, {task}, {len(posterior.preprocessing.used)} features",
        f"  leaves         {leaves}",
        f"  depth          {mean_sd(posterior.depth, weights)}",
        f"  log posterior  {mean_sd(posterior.log_posterior, weights)}",
    ]
    if not posterior.n_classes:
        lines.append(f"  sigma          {mean_sd(posterior.sigma, weights)}")
    if (softness := _softness(posterior)) is not None:
        lines.append(f"  h              {softness}")
    if posterior.log_evidence is not None:
        apart = posterior.log_evidence_of_chains
        islands = "" if apart is None else f" (islands {', '.join(f'{v:.1f}' for v in apart[:8])})"
        lines.append(f"  log evidence   {posterior.log_evidence:.2f}{islands}")
    if posterior.acceptance:
        lines.append(f"  accepted       {accepted_shares(posterior.acceptance)}")
    if "divergent" in posterior.stats:
        lines.append(f"  divergences    {diagnosis.n_divergent}")
    ended = _ENDED[posterior.info.stopped]
    lines.append(f"  run time       {posterior.info.seconds:.1f} s{ended}")
    return "\n".join([*lines, diagnosis.sentence])


def _softness(posterior: Posterior) -> str | None:
    """What h was chosen or learned, or that it differs by column; None where it was one number."""
    h, weights = posterior.draws.h, posterior.weights
    if posterior.draws.h_learned:
        if h.shape[1] == 1:
            return f"{mean_sd(h.reshape(weights.shape), weights)}, learned"
        h = h.mean(axis=0)
    chosen = isinstance(posterior.configuration.h, str)
    how = ", learned" if posterior.draws.h_learned else ", by the data's spacing" if chosen else ""
    if (h == h[0]).all():
        return f"{h[0]:.3g}{how}" if chosen else None
    names = posterior.preprocessing.used_names
    ends = [f"{h[k]:.3g} ({names[k]})" for k in (h.argmin(), h.argmax())]
    return f"{' to '.join(ends)}{how}"


def accepted_shares(acceptance: Mapping[str, float]) -> str:
    """The accepted share of each move that was proposed, as text."""
    moves = [f"{move} {share:.0%}" for move, share in acceptance.items() if share == share]
    return ", ".join(moves) or "nothing proposed"


def mean_sd(values: NDArray[Any], weights: FloatArray) -> str:
    """Weighted mean and sd as text."""
    mean = float(np.sum(weights * values))
    sd = float(np.sqrt(np.sum(weights * (values - mean) ** 2)))
    return f"{mean:.4g} +- {sd:.2g}"


def _effective_particles(posterior: Posterior) -> tuple[float, float]:
    """How many equal draws the weights are worth, and how many the families are.

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
    may know it for sure. One log posterior throughout is suspicious unless all chains have the
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
