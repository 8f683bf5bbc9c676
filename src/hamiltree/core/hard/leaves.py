"""Conjugate leaves of hard trees: sums over a leaf's rows in, marginal likelihood or a draw out.

Classification: class counts with a Dirichlet prior. Regression: normal with an inverse gamma
variance, a leaf's own ("mean-variance shift") or one shared by all leaves, and a normal mean whose
prior is worth a number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import inlined, kernel
from ..backend.records import Float1, Record
from ..densities import (
    LOG_2PI,
    dirichlet_constant,
    half_spread,
    log_dirichlet_multinomial,
    log_normal_leaf,
)

N_MOMENTS = 3
"""Sums kept of a regression leaf: rows, y and y^2. Classification keeps the K class counts."""


class LeafModel(Record):
    """Hyper-parameters of the leaves; make it with ``make_leaf_model``."""

    class_prior: Float1
    """[K] Dirichlet parameters; [0] for regression."""
    mass: float
    """Their sum."""
    shape: float
    """variance ~ inverse gamma(shape, rate)"""
    rate: float
    mean: float
    """mu | variance ~ N(mean, variance / prior_rows); on the scale of the centred y."""
    prior_rows: float
    """Rows that the prior of the mean counts for."""
    centre: float
    """Was taken off y before the sums, so that they lose no digits; ``draw_leaf`` adds it again."""
    common: bool
    """One variance for all leaves; then only ``leaf_parts`` and ``combine`` apply."""
    constant: float
    """What ``leaf_log_marginal`` has whatever the sums are; of the leaves alone where common."""


def make_leaf_model(
    y: NDArray[np.generic],
    n_classes: int,
    *,
    class_prior: float | Sequence[float],
    variance_prior: tuple[float, float],
    mean_prior: tuple[float, float],
    common: bool = False,
    weights: NDArray[np.float64] | None = None,
) -> tuple[LeafModel, NDArray[np.float64], NDArray[np.int64]]:
    """The model, the centred target ([0] for classification) and the class codes ([0] else)."""
    alpha = np.broadcast_to(np.asarray(class_prior, np.float64), (n_classes,)).copy()
    shape, rate = (float(v) for v in variance_prior)
    mean, count = (float(v) for v in mean_prior)
    if n_classes:
        target, codes, centre = np.empty(0), np.asarray(y, np.int64), 0.0
        constant = dirichlet_constant(alpha)
    else:
        raw = np.asarray(y, np.float64)
        centre = float(raw.mean() if weights is None else np.average(raw, weights=weights))
        target, codes = raw - centre, np.empty(0, np.int64)
        constant = 0.5 * math.log(count)
        if not common:
            constant += shape * math.log(rate) - math.lgamma(shape)
    model = LeafModel(
        class_prior=alpha,
        mass=float(alpha.sum()),
        shape=shape,
        rate=rate,
        mean=mean - centre,
        prior_rows=count,
        centre=centre,
        common=bool(common) and not n_classes,
        constant=constant,
    )
    return model, target, codes


def n_stats(leaf_model: LeafModel) -> int:
    """Length of a leaf's sums."""
    return len(leaf_model.class_prior) or N_MOMENTS


def n_values(leaf_model: LeafModel) -> int:
    """Numbers ``draw_leaf`` writes: class counts, or mean and standard deviation."""
    return len(leaf_model.class_prior) or 2


@inlined
def add_row(stats, leaf, y, codes, weights, row):
    """Add a row to a leaf's sums; ``y`` and ``codes`` as made by ``make_leaf_model``.

    ``weights`` [n], or [0] where all rows count as one.
    """
    weight = weights[row] if weights.shape[0] > 0 else 1.0
    if codes.shape[0] > 0:
        stats[leaf, codes[row]] += weight
    else:
        stats[leaf, 0] += weight
        stats[leaf, 1] += weight * y[row]
        stats[leaf, 2] += weight * (y[row] * y[row])


@kernel
def spread_of(leaf_model, stats):
    """``half_spread`` of a leaf's sums."""
    return half_spread(stats[0], stats[1], stats[2], leaf_model.mean, leaf_model.prior_rows)


@kernel
def leaf_log_marginal(leaf_model, stats):
    """Log marginal likelihood of one leaf, all constants kept; 0 without rows.

    Not for a common variance, which does not add over leaves.
    """
    if leaf_model.class_prior.shape[0] > 0:
        return log_dirichlet_multinomial(
            stats, leaf_model.class_prior, leaf_model.mass, leaf_model.constant
        )
    return log_normal_leaf(
        stats[0],
        spread_of(leaf_model, stats),
        leaf_model.shape,
        leaf_model.rate,
        leaf_model.prior_rows,
        leaf_model.constant,
    )


@kernel
def leaf_parts(leaf_model, stats):
    """(part, spread) of one leaf; ``combine`` makes a log marginal of their sums over leaves."""
    if not leaf_model.common:
        return leaf_log_marginal(leaf_model, stats), 0.0
    part = leaf_model.constant - 0.5 * math.log(leaf_model.prior_rows + stats[0])
    return part, spread_of(leaf_model, stats)


@kernel
def combine(leaf_model, part, spread, n_rows):
    """Log marginal likelihood of a tree from the sums of its leaves' parts."""
    if not leaf_model.common:
        return part
    shape = leaf_model.shape + 0.5 * n_rows
    total = part + leaf_model.shape * math.log(leaf_model.rate) - math.lgamma(leaf_model.shape)
    total += math.lgamma(shape) - shape * math.log(leaf_model.rate + spread)
    return total - 0.5 * n_rows * LOG_2PI


@kernel
def draw_variance(shape, rate, rng):
    return rate / max(rng.standard_gamma(shape), 1e-300)


@kernel
def draw_mean_given(leaf_model, stats, sd, rng):
    """A leaf's mean given its standard deviation, in the units of the y that came in."""
    weight = leaf_model.prior_rows + stats[0]
    mean = (leaf_model.prior_rows * leaf_model.mean + stats[1]) / weight
    return leaf_model.centre + mean + sd / math.sqrt(weight) * rng.standard_normal()


@kernel
def draw_leaf(leaf_model, stats, out, rng):
    """Write a leaf's values: class counts, or a posterior draw of mean and standard deviation."""
    n_classes = leaf_model.class_prior.shape[0]
    if n_classes > 0:
        for m in range(n_classes):
            out[m] = stats[m]
        return
    shape = leaf_model.shape + 0.5 * stats[0]
    rate = leaf_model.rate + spread_of(leaf_model, stats)
    sd = math.sqrt(draw_variance(shape, rate, rng))
    out[0] = draw_mean_given(leaf_model, stats, sd, rng)
    out[1] = sd


@kernel
def draw_leaf_given(leaf_model, stats, sd, out, rng):
    """The same for regression with a standard deviation that all leaves share."""
    out[0] = draw_mean_given(leaf_model, stats, sd, rng)
    out[1] = sd
