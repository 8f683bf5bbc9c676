"""Chains weighed by how well they predict: stacking (Yao, Vehtari and Gelman 2022)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from ..utils.arrays import FloatArray

if TYPE_CHECKING:
    from .posterior import Posterior

PRIOR_ROWS = 0.001
"""Rows that each chain is given beforehand: weights that the data leave open are even."""
FEWEST = 25
"""Draws of a chain for PSIS, which smooths the largest fifth of the weights, and wants five."""
MOST_ROUNDS = 100_000
CLOSE = 1e-10
"""Change of every weight at which it ends."""


def stacked(posterior: Posterior) -> Posterior:
    """The same draws with the chains weighted by stacking (Yao, Vehtari and Gelman 2022).

    The weights of the chains, and so of all their draws, are those with which the mixture predicts
    the training rows best, each left out in turn (PSIS-LOO, ``loo``): they maximise the sum over
    rows of the log of the weighted mean of the chains' leave-one-out densities. Predictions,
    certainty and everything else use ``weights``.

    Stacking is for chains that do not agree. If they agree, equal weights are right, and those of
    stacking have no meaning. A stacked posterior is a mixture chosen to predict well, and no longer
    the posterior of the model: a chain in a mode of large mass that predicts no better than others
    may get no weight. The estimates also have an error, and rows of high Pareto k can distort them.

    Returns
    -------
    Posterior
        With new ``weights``; those of the chains are ``weights.sum(axis=1)``.

    Raises
    ------
    ValueError
        For particles (SMC), which have weights of their own; without training data; and, like
        ``loo``, with sample weights.
    """
    if posterior.has_particles:
        raise ValueError("particles have weights of their own: only chains can be stacked")
    if posterior.data("stacked").weights is not None:
        raise ValueError("stacked, like loo, does not support sample_weight yet")
    n_chains, n_draws = posterior.n_chains, posterior.n_draws
    chains = np.arange(n_chains * n_draws).reshape(n_chains, n_draws)
    elpd = np.stack([left_out(posterior.taken(chain)) for chain in chains], axis=1)
    weights = np.repeat(stacking_weights(elpd)[:, None] / n_draws, n_draws, axis=1)
    return posterior._with(draws=replace(posterior.draws, weights_of_draws=weights))


def left_out(chain: Posterior) -> FloatArray:
    """[row]; leave-one-out log densities of one chain.

    Where importance weights have no tail to smooth, as those of a few draws or of draws that are
    all the same, they are taken as they are.
    """
    if chain.n_draws >= FEWEST:
        try:
            return chain.loo().elpd_i
        except ValueError as error:
            if "tail" not in str(error):  # ArviZ's
                raise
    data, classes = chain.data("stacked"), chain.preprocessing.classes
    y = data.y if classes is None else classes[data.y]
    log_like = chain.pointwise_log_likelihood(data.X, y, 0)[0]
    densities: FloatArray = np.log(len(log_like)) - logsumexp(-log_like, axis=0)
    return densities


def stacking_weights(elpd: FloatArray) -> FloatArray:
    """[chain]; of leave-one-out log densities [row, chain]. They sum to 1.

    By expectation and maximisation: each row is shared out by what each chain says of it, and a
    chain's weight is its share of all rows. The sum is concave, so that there is one maximum.
    """
    density = np.exp(elpd - elpd.max(axis=1, keepdims=True))
    n_rows, n_chains = density.shape
    weights = np.full(n_chains, 1 / n_chains)
    for _ in range(MOST_ROUNDS):
        shares = density * weights
        rows = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0) + PRIOR_ROWS
        new = rows / (n_rows + n_chains * PRIOR_ROWS)
        close = bool(np.abs(new - weights).max() < CLOSE)
        weights = new / new.sum()
        if close:
            break
    return weights
