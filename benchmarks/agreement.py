"""How well ten chains agree after so many seconds, and how many effective draws they made.

Warm-up counts, compilation does not. A twentieth of the time finds out how many iterations of
adaptation are to be had, for about a fifth of it; the draws of the first quarter are thrown away.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from hamiltree.datasets.paper import Split
from hamiltree.inputs.preprocess import learn
from hamiltree.methods.base import Configuration
from hamiltree.posterior import Posterior
from hamiltree.posterior.diagnostics import bulk_ess, number, rank_rhat
from hamiltree.running.run import Chains, Problem

from .data import is_regression

N_CHAINS, N_THREADS, N_POINTS = 10, 2, 20
MIN_ADAPTING, MAX_ADAPTING = 20, 250
"""Iterations in which samplers that adapt do so."""
PILOT, ADAPTING, THROWN_AWAY = 0.05, 0.2, 0.25
"""Shares of the time: to measure the speed, to adapt, and whose draws are not kept."""
ROUND = 0.02
"""Share of the time in which the chains advance before the clock is looked at again."""
QUANTITIES = ("log-likelihood", "leaves", "worst prediction")
HEADINGS = (
    *(f"R-hat {name}" for name in QUANTITIES),
    *(f"ESS/s {name}" for name in QUANTITIES),
    "leaves",
    "draws per chain",
    "s",
)


@dataclass(frozen=True)
class Outcome:
    """What the chains of one sampler made of one data set."""

    rhat: tuple[float, ...]
    """Of each of ``QUANTITIES``."""
    speed: tuple[float, ...]
    """Effective draws per second of each; of predictions the smallest."""
    leaves: float
    n_draws: int
    seconds: float
    sentence: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """In the order of ``HEADINGS``."""
        rhats, speeds = map(number, self.rhat), (f"{speed:,.1f}" for speed in self.speed)
        return (*rhats, *speeds, f"{self.leaves:.2f}", f"{self.n_draws:,}", f"{self.seconds:.1f}")


def outcome(
    log_likelihood: np.ndarray,
    n_leaves: np.ndarray,
    predictions: np.ndarray,
    seconds: float,
    sentence: str = "",
) -> Outcome:
    """Judge arrays [chain, draw] and predictions [chain, draw, point]."""
    points = list(np.moveaxis(predictions, 2, 0))
    scalars = (log_likelihood, n_leaves.astype(np.float64))
    ess = [*map(bulk_ess, scalars), min(map(bulk_ess, points))]
    return Outcome(
        rhat=(*map(rank_rhat, scalars), max(map(rank_rhat, points))),
        speed=tuple(e / seconds for e in ess),
        leaves=float(n_leaves.mean()),
        n_draws=n_leaves.shape[1],
        seconds=seconds,
        sentence=sentence,
    )


def points_of(split: Split) -> np.ndarray:
    """Test rows at which predictions are compared."""
    chosen = np.linspace(0, len(split.X_test) - 1, min(N_POINTS, len(split.X_test)))
    return split.X_test[chosen.round().astype(int)]


def measure(
    split: Split, configuration: Configuration[Any], seconds: float, *, standardize: bool
) -> Outcome | str:
    """Run ten chains for so long; what they made, or why nothing."""
    classes = None if is_regression(split.name) else np.unique(split.y)
    target = split.y.astype(np.float64) if classes is None else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constant columns are left out
        scale = learn(split.X, None, classes=classes, y=target, standardize=standardize)
    coded = np.searchsorted(classes, split.y) if target is None else scale.y_to_model(target)
    problem = Problem(scale.to_unit(split.X), coded, 0 if classes is None else len(classes))
    lengths = {"n_chains": N_CHAINS, "n_jobs": N_THREADS}
    spent, adapting = 0.0, 0
    if configuration.method.name != "cgm":
        pilot = Chains(problem, configuration, **lengths, n_warmup=MAX_ADAPTING, seed=0)
        spent = _advance_for(pilot, PILOT * seconds)
        expected = int(pilot.done * ADAPTING * seconds / spent)
        adapting = min(max(expected, MIN_ADAPTING), MAX_ADAPTING)
    chains = Chains(problem, configuration, **lengths, n_warmup=adapting, seed=1)
    spent += _advance_for(chains, seconds - spent)
    if chains.n_draws == 0:
        return f"still adapting after {spent:.0f} s"
    posterior = Posterior(*chains.collect("n_draws"), scale, configuration)
    posterior = posterior.monitored_at(points_of(split), n_jobs=N_THREADS)
    said = posterior.diagnose().sentence
    return outcome(posterior.log_likelihood, posterior.n_leaves, posterior.monitor, spent, said)


def _advance_for(chains: Chains, seconds: float) -> float:
    """Advance all chains until the time is over, forgetting the draws of its first part."""
    begun = time.perf_counter()
    warm, n, of_one = False, 1, 0.0
    while (spent := time.perf_counter() - begun) + of_one < seconds:
        if not warm and spent >= THROWN_AWAY * seconds:
            chains.forget()
            warm = True
        chains.advance(n)
        now = time.perf_counter() - begun
        of_one = (now - spent) / n
        n = max(1, min(2 * n, int(min(seconds - now, ROUND * seconds) / of_one)))
    return time.perf_counter() - begun
