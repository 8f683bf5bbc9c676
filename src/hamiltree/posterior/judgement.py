"""Do the chains agree, and what to do if not: the judgement, and the sentence that says it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    "log_likelihood": "the log-likelihood",
    "n_leaves": "the number of leaves",
    "depth": "the depth",
    "sigma": "sigma",
    "h": "h",
    "predictions": "the worst monitored prediction",
}


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
    max_seconds: float | None = None
    replicas: int = 1
    """Of each chain."""
    why_replicas: str = ""
    """Why replicas="auto" added them."""

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
    sentence = _sentence(found, max_rhat, min_ess)
    if found.why_replicas:
        came = f"{found.replicas} replicas were added to each chain"
        added = came if found.replicas > 1 else "Replicas were to be added to each chain"
        sentence += f" {added}, because {found.why_replicas}."
    return found.within(max_rhat, min_ess), sentence


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
        return f", and max_draws={found.n_draws} was reached before {target}"
    if found.stopped == "max_seconds":
        reached = f"max_seconds={found.max_seconds:g} ended the run at {found.n_draws} draws"
        return f", and {reached} per chain"
    if found.stopped == "interrupted":
        return f", and the run was interrupted at {found.n_draws} draws per chain"
    return ""


def _longer(found: Evidence, min_ess: float) -> str:
    """Advice that would bring the effective sample size to twice the minimum, within reason."""
    if found.stopped == "target":
        return f"set target_rhat={RHAT_GOOD}"
    if found.stopped == "max_seconds" and found.max_seconds is not None:
        return f"allow more time: max_seconds={_round_up(4 * found.max_seconds)}"
    limit = "n_draws" if found.target_rhat is None else "max_draws"
    n_draws, n_warmup, ess = found.n_draws, found.n_warmup, found.ess[found.thinnest]
    if n_draws < MIN_DRAWS:
        return f"run longer: n_warmup={max(500, n_warmup or 0)}, {limit}=500"
    wanted = min_ess / ess if np.isfinite(ess) and ess > 0 else 10.0
    factor = min(max(2.0, 2 * wanted), 10.0)
    warmup = _round_up(factor * (n_draws if n_warmup is None else n_warmup))
    draws = max(500, _round_up(factor * n_draws))
    if found.replicas > 1:  # which had a warm-up of their own, after the chains had theirs
        return f"run longer: {limit}={draws}"
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
            f"{found}; below {MIN_ESS:.0f} of either, estimates are rough (R-hat does not apply to "
            f"particles): use more particles, such as n_draws={_round_up(10 * particles)}, and "
            "compare the islands' evidence."
        )
    return True, (
        f"{found} (R-hat does not apply to particles); trees that no particle tried are missed."
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
