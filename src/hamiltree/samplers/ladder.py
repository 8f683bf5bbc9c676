"""Where the rungs of a replica exchange stand: powers of the likelihood from 1 down to the hot end.

What neighbours cost is measured by the communication barrier of Syed, Bouchard-Côté, Deligiannidis
and Doucet (2022): the share of refused exchanges per unit of power, in the limit of close
neighbours. It adds up along the ladder, and rungs at equal distances in it exchange equally often.
Between two rungs it is taken to fall like 1 / power, as it does where the log-likelihood is a sum
of squares.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfinv

FloatArray = NDArray[np.float64]

LOWEST = 0.05
"""Power of the hottest rung, where the data do not ask for another one."""
FIRST_ABOVE_ZERO = 0.01
"""Power of the last rung but one at the start, where the hottest has power 0."""
GAP_WANTED = 0.5
"""Barrier between neighbours: about half of the exchanges are accepted."""
GAP_MOST = 0.65
"""The same where rungs are few: two fifths. Fewer cost more than a hotter end brings."""
AGREES = 1.1
"""R-hat up to which a rung is taken to mix without its neighbours."""
MOST_REFUSED = 0.99
"""An estimate of a larger share of refused exchanges says no more than this."""


def first_powers(n: int, hottest: float | None) -> FloatArray:
    """Where rungs start: by equal factors."""
    lowest = LOWEST if hottest is None else hottest
    if lowest > 0.0:
        return np.geomspace(1.0, lowest, n)
    return np.append(np.geomspace(1.0, FIRST_ABOVE_ZERO, n - 1) if n > 2 else [1.0], 0.0)


# ------------------------------------------------------------------ the barrier


def refused_share(gap: FloatArray | float) -> FloatArray:
    """Of exchanges across a barrier, for log-likelihoods that are normal."""
    return np.asarray(erf(0.5 * math.sqrt(math.pi) * np.asarray(gap)))


def gap_of_refused(share: FloatArray) -> FloatArray:
    """Its inverse."""
    found = 2.0 / math.sqrt(math.pi) * erfinv(np.clip(share, 0.0, MOST_REFUSED))
    return np.asarray(found, np.float64)


def gaps_of_rungs(powers: FloatArray, log_likes: FloatArray) -> FloatArray:
    """[rungs - 1]; barriers between rungs that ran apart, from log-likelihoods [draws, rungs].

    At each rung the barrier is half of the mean difference of two draws. Down to power 0, where
    this need not exist, it is what exchanges between draws of both rungs would have been refused.
    """
    m = len(log_likes)
    rank = 2.0 * np.arange(1, m + 1) - m - 1.0
    local = rank @ np.sort(log_likes, axis=0) / (m * (m - 1))  # half of the mean difference
    with np.errstate(invalid="ignore"):
        slope = local * powers  # by log power
    gaps = 0.5 * (slope[:-1] + slope[1:]) * -np.diff(places(powers))
    if powers[-1] == 0.0:
        a, b = log_likes[:, -2], log_likes[:, -1]
        log_ratio = powers[-2] * (b[None, :] - a[:, None])
        gaps[-1] = gap_of_refused(1.0 - np.exp(np.minimum(log_ratio, 0.0)).mean())
    return np.asarray(gaps)


def places(powers: FloatArray) -> FloatArray:
    """Log powers, shifted where the last one is 0: along these the barrier is taken as linear."""
    shift = 0.3 * powers[-2] if powers[-1] == 0.0 else 0.0
    return np.log(powers + shift)


# ------------------------------------------------------------------ the rungs


def agreeing_power(powers: FloatArray, rhat: FloatArray) -> float:
    """The highest power at which rungs mix by themselves, as do all hotter ones.

    Between a rung that does and one that does not, log powers are interpolated by R-hat - 1; the
    hottest where none does.
    """
    disagree = np.flatnonzero(~(rhat <= AGREES))
    if len(disagree) == 0:
        return 1.0
    last = disagree[-1]
    if last == len(powers) - 1:
        return float(powers[-1])
    apart, together = rhat[last] - 1.0, max(rhat[last + 1] - 1.0, 1e-3)
    if not math.isfinite(apart):
        return float(powers[last + 1])
    share = math.log(apart / (AGREES - 1.0)) / math.log(apart / together)
    low, high = np.log(powers[last + 1]), np.log(powers[last])
    return float(np.exp(high + share * (low - high)))


def place_rungs(
    powers: FloatArray, gaps: FloatArray, n: int, *, mixes_at: float, hottest: float | None
) -> FloatArray:
    """[n]; new powers at equal barriers, given the barriers between the present ones.

    The hot end is ``hottest``, or where rungs mix by themselves: hotter, down to LOWEST, where
    there are rungs to spare, and colder where so few rungs would hardly exchange.
    """
    along, at = np.concatenate([[0.0], np.cumsum(gaps)]), places(powers)
    if not (np.isfinite(along).all() and along[-1] > 0.0):
        return powers if len(powers) == n else first_powers(n, hottest)
    if hottest is None:
        beyond = min(math.log(LOWEST), at[-1]) - 1e-9
        slope = max(gaps[-1], 1e-3) / (at[-2] - at[-1])
        along = np.append(along, along[-1] + slope * (at[-1] - beyond))
        at = np.append(at, beyond)
        with_ease, at_most = np.interp([GAP_WANTED * (n - 1), GAP_MOST * (n - 1)], along, at)
        end = max(min(math.log(mixes_at), with_ease), at_most, math.log(LOWEST))
    else:
        end = at[-1]
    # increasing, however flat the barrier is
    along = along + 1e-9 * np.arange(len(along))
    total = np.interp(-end, -at, along)
    new = np.exp(np.interp(np.linspace(0.0, total, n), along, at))
    if powers[-1] == 0.0:
        new -= 0.3 * powers[-2]
        new[-1] = 0.0
    new[0] = 1.0
    return np.asarray(new)


def split_rhat(values: FloatArray) -> FloatArray:
    """[...]; of draws [chain, draw, ...], each chain cut into halves; 1 where nothing moves."""
    half = values.shape[1] // 2
    parts = np.concatenate([values[:, :half], values[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sqrt((half - 1) / half + between / within)
    return np.where(between == 0.0, 1.0, found)
