"""What the data say about the leaves of a tree, given the tree.

Classification: the probabilities of a leaf are Dirichlet(counts + prior), so each is Beta.
Regression by HMC-DF and HMC-DFI, given the sampled sigma: y = Phi mu + noise is linear and
Gaussian, so each mean is normal. Regression by CGM, WU and SMC, whose variances are integrated
out: each mean is Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..methods.base import Method
from ..utils.arrays import FloatArray


@dataclass(frozen=True)
class MeanPosterior:
    """Posterior of the leaf means of a tree, each [leaves], in the model's units."""

    centre: FloatArray
    scale: FloatArray
    df: FloatArray
    """Degrees of freedom of Student's t; infinite for the normal."""
    noise: FloatArray | None
    """Noise sd of each leaf, at the posterior mean of its precision; None where sigma is given."""

    def intervals(self, coverage: float) -> FloatArray:
        """Central intervals, [leaves, 2]."""
        reach = stats.t.isf((1 - coverage) / 2, self.df) * self.scale
        return np.stack([self.centre - reach, self.centre + reach], axis=1)


def class_intervals(counts: FloatArray, method: Method, coverage: float) -> FloatArray:
    """Central intervals of the class probabilities of each leaf, [leaves, K, 2]."""
    own = counts + np.asarray(method.class_concentration(counts.shape[1]))
    others = own.sum(axis=1, keepdims=True) - own
    tails = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
    intervals: FloatArray = stats.beta.ppf(tails, own[..., None], others[..., None])
    return intervals


def mean_posterior(
    phi: FloatArray,
    y: FloatArray,
    sigma: float,
    method: Any,
    weights: FloatArray | None = None,
) -> MeanPosterior:
    """Posterior of the leaf means from routing ``phi`` [n, leaves] and targets ``y`` [n].

    A row of weight 2, of ``weights`` [n], is two rows; without them all are 1.

    ``y`` and ``sigma`` are in the model's units; ``sigma`` counts for HMC-DF and HMC-DFI only.
    """
    weighted = phi if weights is None else phi * weights[:, None]
    rows, sums = weighted.sum(axis=0), weighted.T @ y
    if method.conjugate_leaves:
        return _own_or_common_variance(rows, sums, weighted.T @ y**2, method)
    prior_mean, prior_sd = method.mu_prior
    precision = weighted.T @ phi / sigma**2 + np.eye(len(rows)) / prior_sd**2
    covariance = np.linalg.inv(precision)
    centre = covariance @ (sums / sigma**2 + prior_mean / prior_sd**2)
    return MeanPosterior(centre, np.sqrt(np.diag(covariance)), np.full(len(rows), np.inf), None)


def _own_or_common_variance(
    rows: FloatArray, sums: FloatArray, squares: FloatArray, method: Any
) -> MeanPosterior:
    """The conjugate leaf of ``core/hard/leaves.py``: normal mean, inverse gamma variance."""
    shape, rate = method.variance_prior
    prior_mean, prior_rows = method.mean_prior
    mean = sums / np.maximum(rows, 1e-300)
    spread = squares - sums * mean
    spread += rows * prior_rows / (rows + prior_rows) * (mean - prior_mean) ** 2
    half_rows, half_spread = rows / 2, np.maximum(spread, 0.0) / 2
    if method.variance == "common":
        half_rows, half_spread = (np.full_like(v, v.sum()) for v in (half_rows, half_spread))
    shapes, rates = shape + half_rows, rate + half_spread
    variance = rates / shapes
    centre = (prior_rows * prior_mean + sums) / (prior_rows + rows)
    return MeanPosterior(
        centre, np.sqrt(variance / (prior_rows + rows)), 2 * shapes, np.sqrt(variance)
    )


def soft_rows(size: NDArray[np.int32], leaf_rows: FloatArray) -> FloatArray:
    """Rows at every node, [nodes] in preorder, from those at the leaves."""
    before = np.concatenate([[0.0], np.cumsum(leaf_rows)])
    first = np.concatenate([[0], np.cumsum(size == 1)])  # leaves that stand before each node
    node = np.arange(len(size))
    rows: FloatArray = before[first[node + size]] - before[first[node]]
    return rows
