"""The log evidence and its error: of particles, or of chains with replicas down to power 0.

Replicas: the ratio of the evidences of two neighbours by Bennett's acceptance ratio, which uses the
draws of both; the product of these ratios is the evidence at power 1 over that at power 0, which is
1. The prior is thereby the normalised one, whatever limits it has.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from .diagnostics import error_of_mean

FloatArray = NDArray[np.float64]


def evidence_of_particles(log_weight: FloatArray) -> tuple[float, float]:
    """Log of the mean over islands of their estimates, and its error by how much these differ.

    The estimate of an island [island, particle] is the sum of its weights. NaN for one island.
    """
    top = log_weight.max()
    of_islands = np.exp(log_weight - top).sum(axis=1)
    value = float(top + np.log(of_islands.mean()))
    if len(of_islands) == 1:
        return value, math.nan
    error = of_islands.std(ddof=1) / math.sqrt(len(of_islands)) / of_islands.mean()
    return value, float(error)


def evidence_of_ladder(powers: FloatArray, log_likes: FloatArray) -> tuple[float, float]:
    """Log evidence at the first power, and its standard error.

    ``powers`` [chain, rung] end at 0; ``log_likes`` [chain, draw, rung] are not tempered. Each
    draw's influence on the estimate of its chain makes a series whose mean is the estimate: its
    autocorrelation, and the differences between chains, are the error.
    """
    series = np.stack([influences(*of_chain) for of_chain in zip(powers, log_likes, strict=True)])
    return float(series.mean()), error_of_mean(series)


def influences(powers: FloatArray, log_likes: FloatArray) -> FloatArray:
    """[draw]; the estimate of one chain, plus what each draw [draw, rung] contributes to it."""
    total = np.zeros(len(log_likes))
    for k in range(len(powers) - 1):
        gap = powers[k] - powers[k + 1]
        if gap == 0.0:
            continue
        cold, hot = gap * log_likes[:, k], gap * log_likes[:, k + 1]
        log_ratio = bennett(cold, hot)
        excess = expit(hot - log_ratio) - expit(log_ratio - cold)
        slope = sum(np.mean(expit(v - log_ratio) * expit(log_ratio - v)) for v in (cold, hot))
        total += log_ratio + excess / max(slope, 1e-300)
    return total


def bennett(cold: FloatArray, hot: FloatArray) -> float:
    """Log of Z(cold) / Z(hot), from draws of the log of the ratio of densities under both.

    The root of mean expit(x_hot - c) = mean expit(c - x_cold), for as many draws of both.
    """
    both = np.concatenate([cold, hot])
    finite = both[np.isfinite(both)]
    if len(finite) == 0:
        return -math.inf

    def excess(c: float) -> float:
        return float(np.mean(expit(hot - c)) - np.mean(expit(c - cold)))

    return float(brentq(excess, finite.min() - 40.0, finite.max() + 40.0, xtol=1e-10))
