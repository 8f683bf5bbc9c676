"""Small random choices that all samplers share."""

from __future__ import annotations

import math

from .backend.jit import kernel

LEAST_GAIN = 1e-9
"""Of a log posterior in a search for its maximum; less is rounding."""


@kernel
def pick(count, rng):
    """One of so many, all alike."""
    return int(rng.random() * count)


@kernel
def accept(log_ratio, rng):
    """Metropolis: whether to accept at this log ratio; no number is drawn where it is certain."""
    return log_ratio >= 0.0 or math.log(rng.random()) < log_ratio


@kernel
def accept_gain(gain, log_q, coldness, rng):
    """Metropolis for a target to the power of ``coldness``; at infinity, only what improves it."""
    if math.isinf(coldness):
        return gain > LEAST_GAIN
    return accept(coldness * gain + log_q, rng)


@kernel
def tempered(power, log_like):
    """The log-likelihood to a power; 0 where that is 0, whatever the likelihood is."""
    return 0.0 if power == 0.0 else power * log_like


@kernel
def draw_between(low, high, rng):
    """Uniform on [low, high), whatever rounding says."""
    value = low + rng.random() * (high - low)
    return value if value < high else low


@kernel
def draw_by_weight(weight, total, rng):
    """An index in proportion to its weight, never one of weight 0; -1 where all are."""
    u = rng.random() * total
    last = -1
    for k in range(weight.shape[0]):
        if weight[k] > 0.0:
            last = k
            u -= weight[k]
            if u < 0.0:
                break
    return last
