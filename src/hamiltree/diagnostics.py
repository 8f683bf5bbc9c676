"""Have the chains arrived? R-hat and effective sample sizes, and one plain sentence.

The only module that knows ArviZ. Trees change size, so their parameters cannot be compared from
chain to chain; judged are the log posterior, the number of leaves, the depth, the noise sd and
the predictions at a few fixed rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .draws import FloatArray, IntArray

if TYPE_CHECKING:
    from .posterior import Posterior

RHAT_GOOD = 1.01
"""The usual standard for final results: chains at or below it agree well."""
RHAT_LIMIT = 1.05
"""Above it a fit warns; in between, the sentence says how to get to 1.01."""
MIN_DRAWS = 100
"""Draws a chain below which R-hat itself is too noisy to mean anything."""
MIN_ESS = 100.0
"""Effective draws, over all chains, below which posterior means are not to be trusted."""


@dataclass(frozen=True)
class Diagnosis:
    """What the chains say about each other; ``sentence`` says it in words."""

    converged: bool
    """No sign of disagreement, and enough draws to have seen one."""
    sentence: str
    rhat: dict[str, float]
    """Rank-normalised split R-hat of log_posterior, n_leaves, depth, sigma (regression) and of
    predictions, the worst of the monitored rows. 1 for what is constant over all chains."""
    ess: dict[str, float]
    """Bulk effective sample size of the same; for predictions the smallest."""
    worst: str
    """The quantity with the largest R-hat."""
    median_rhat: float
    """Over all quantities, with each monitored row as one."""
    stuck: tuple[int, ...]
    """Chains that never moved while they, or others, should have."""
    n_divergent: int
    acceptance: dict[str, float]
    """Accepted share of the proposals after warm-up, by move."""

    def __str__(self) -> str:
        rows = [
            f"  {name:<14} R-hat {_number(self.rhat[name])}   ESS {self.ess[name]:.0f}"
            for name in self.rhat
        ]
        return "\n".join([self.sentence, *rows])


def diagnose(posterior: Posterior) -> Diagnosis:
    """Judge a posterior; see ``Diagnosis``.

    Converged means: at least 100 draws a chain, no stuck chain, every R-hat at most 1.05 and
    every effective sample size at least 100. The parts of a single chain are compared with each
    other, which cannot show that it missed a mode: the sentence says so. Particles are no chains:
    they have no R-hat (NaN), and are judged by the effective numbers of their weights and of the
    first particles that they descend from.
    """
    quantities: dict[str, FloatArray] = {
        "log_posterior": posterior.log_posterior,
        "n_leaves": posterior.n_leaves.astype(np.float64),
        "depth": posterior.depth.astype(np.float64),
    }
    if posterior.preprocessing.classes is None:
        quantities["sigma"] = posterior.sigma
    n_scalars = len(quantities)
    if posterior.monitor is not None:
        for point in range(posterior.monitor.shape[2]):
            quantities[f"predictions {point}"] = posterior.monitor[:, :, point]
    even = np.allclose(posterior.weights, 1 / posterior.weights.size, rtol=1e-6)
    weighted = posterior.log_evidence is not None or not even
    if weighted:
        effective = _effective_particles(posterior)
        rhats, sizes = dict.fromkeys(quantities, np.nan), dict.fromkeys(quantities, min(effective))
        stuck: tuple[int, ...] = ()
    else:
        rhats = {name: _rhat(draws) for name, draws in quantities.items()}
        sizes = {name: _ess(draws) for name, draws in quantities.items()}
        stuck = _stuck_chains(posterior.n_leaves, posterior.log_posterior, rhats["n_leaves"])
    shown = list(quantities)[:n_scalars]
    rhat, ess = {name: rhats[name] for name in shown}, {name: sizes[name] for name in shown}
    if len(quantities) > n_scalars:
        points = list(quantities)[n_scalars:]
        rhat["predictions"] = max((rhats[name] for name in points), key=_badness)
        ess["predictions"] = min(sizes[name] for name in points)
    if weighted:
        converged, sentence = _judge_particles(posterior.weights.shape, *effective)
    else:
        warmup = posterior.provenance.get("n_warmup")
        converged, sentence = _judge_chains(
            posterior.n_leaves.shape, warmup if isinstance(warmup, int) else None, rhat, ess, stuck
        )
    return Diagnosis(
        converged=converged,
        sentence=sentence,
        rhat=rhat,
        ess=ess,
        worst=max(rhat, key=lambda name: _badness(rhat[name])),
        median_rhat=float(np.median(list(rhats.values()))),
        stuck=stuck,
        n_divergent=int(np.sum(posterior.stats.get("divergent", np.zeros(1)))),
        acceptance=posterior.acceptance,
    )


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
    if posterior.log_evidence is not None:
        apart = posterior.log_evidence_of_chains
        islands = "" if apart is None else f" (islands {', '.join(f'{v:.1f}' for v in apart[:8])})"
        lines.append(f"  log evidence   {posterior.log_evidence:.2f}{islands}")
    moves = [f"{m} {share:.0%}" for m, share in posterior.acceptance.items() if share == share]
    if posterior.acceptance:
        lines.append(f"  accepted       {', '.join(moves) or 'nothing proposed'}")
    if "divergent" in posterior.stats:
        lines.append(f"  divergences    {diagnosis.n_divergent}")
    stopped = ", interrupted" if posterior.info.interrupted else ""
    lines.append(f"  run time       {posterior.info.seconds:.1f} s{stopped}")
    return "\n".join([*lines, diagnosis.sentence])


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


def _judge_particles(shape: tuple[int, ...], effective: float, families: float) -> tuple[bool, str]:
    islands, particles = shape
    found = (
        f"The {islands * particles} weighted draws are worth {effective:.0f} equal ones that "
        f"descend from about {families:.0f} first particles"
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


def _judge_chains(
    shape: tuple[int, ...],
    n_warmup: int | None,
    rhat: Mapping[str, float],
    ess: Mapping[str, float],
    stuck: tuple[int, ...],
) -> tuple[bool, str]:
    """The verdict in one sentence; the gravest finding speaks."""
    n_chains, n_draws = shape
    worst = max(rhat, key=lambda name: _badness(rhat[name]))
    thinnest = min(ess, key=lambda name: ess[name] if np.isfinite(ess[name]) else -1.0)
    evidence = f"R-hat of {_words(worst)} is {_number(rhat[worst])}"
    longer = _run_longer(n_draws, n_warmup, ess[thinnest])
    who = "The chain" if n_chains == 1 else "The chains"
    if n_draws < MIN_DRAWS:
        return False, (
            f"{who} cannot be judged: {n_draws} draws a chain are far too few; {longer}."
        )
    if stuck:
        names = ", ".join(str(chain) for chain in stuck)
        are = "Chain {} is" if len(stuck) == 1 else "Chains {} are"
        return False, f"{are.format(names)} stuck at one tree size ({evidence}); {longer}."
    if not rhat[worst] <= RHAT_LIMIT:
        claim = (
            "The parts of the chain disagree"
            if n_chains == 1
            else f"The {n_chains} chains do not agree"
        )
        return False, f"{claim}: {evidence}, above {RHAT_LIMIT}; {longer}."
    if not ess[thinnest] >= MIN_ESS:
        return False, (
            f"{who} moved too little to tell: the {n_chains * n_draws} draws of "
            f"{_words(thinnest)} are worth {ess[thinnest]:.0f} independent ones, "
            f"fewer than {MIN_ESS:.0f}; {longer}."
        )
    at_most = f"every R-hat is at most {_number(rhat[worst])}, every effective sample size at least"
    numbers = f"{at_most} {ess[thinnest]:.0f}"
    if n_chains == 1:
        return True, (
            f"The parts of the chain agree ({numbers}), but one chain cannot show that it "
            "missed a part of the posterior: use n_chains=4."
        )
    if rhat[worst] <= RHAT_GOOD:
        return True, f"The {n_chains} chains agree well: {numbers}."
    return True, (
        f"The {n_chains} chains agree: {numbers}; for an R-hat of at most {RHAT_GOOD}, {longer}."
    )


def _run_longer(n_draws: int, n_warmup: int | None, ess: float) -> str:
    """Advice that would bring the effective sample size to twice the minimum, within reason."""
    if n_draws < MIN_DRAWS:
        return f"run longer: n_warmup={max(500, n_warmup or 0)}, n_draws=500"
    wanted = MIN_ESS / ess if np.isfinite(ess) and ess > 0 else 10.0
    factor = min(max(2.0, 2 * wanted), 10.0)
    warmup = _round_up(factor * (n_draws if n_warmup is None else n_warmup))
    return (
        f"run longer: n_warmup={max(500, warmup)}, n_draws={max(500, _round_up(factor * n_draws))}"
    )


def _round_up(n: float) -> int:
    """To two leading digits."""
    unit = 10 ** max(0, int(np.floor(np.log10(max(n, 1)))) - 1)
    return int(np.ceil(n / unit) * unit)


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


def _rhat(draws: FloatArray) -> float:
    """Rank-normalised split R-hat of [chain, draw]; 1 for a constant, infinite for constants."""
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


def _ess(draws: FloatArray) -> float:
    """Bulk effective sample size of [chain, draw]; all of the draws for a constant."""
    if _constant(draws.ravel(), axis=0):
        return float(draws.size)
    if draws.shape[1] < 4:
        return float("nan")
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        return float(array_stats.ess(draws))


def _badness(rhat: float) -> float:
    """For sorting: what could not be computed counts as worst."""
    return np.inf if np.isnan(rhat) else rhat


def _number(rhat: float) -> str:
    """Rounded up, so that a value just above a limit never reads as the limit."""
    return f"{np.ceil(rhat * 1000) / 1000:.3f}" if np.isfinite(rhat) else str(rhat)


def _words(quantity: str) -> str:
    return {
        "log_posterior": "the log posterior",
        "n_leaves": "the number of leaves",
        "depth": "the depth",
        "sigma": "sigma",
        "predictions": "the worst monitored prediction",
    }[quantity]
