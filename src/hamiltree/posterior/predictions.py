"""What the trees of a posterior predict: means, intervals, new observations, likelihoods.

These functions are methods of ``Posterior``. Rows go in, and predictions come out, in the user's
units; arrays over draws have shape [chain, draw].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.predict import (
    mixture_quantiles,
    most_likely_leaf,
    prediction_moments,
    tree_predictions,
)
from ..utils.arrays import FloatArray
from .representative_tree import co_leaf
from .tree import leaf_values

if TYPE_CHECKING:
    from .posterior import Posterior

MEMORY_LIMIT = 4 * 2**30
"""Bytes; a result larger than this is refused with advice instead of made."""
SCRATCH = 256 * 2**20
"""Bytes; arrays over draws and rows that only serve a result are made in pieces of this size."""
SIMILARITY_DRAWS = 2000
LOG_2PI = float(np.log(2 * np.pi))

Seed = int | np.random.Generator | np.random.SeedSequence | None


def predict_mean(posterior: Posterior, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
    """Posterior mean over the draws: class probabilities [row, class], or means [row].

    ``n_jobs``: threads, as in scikit-learn (None: 1, unless joblib.parallel_config says otherwise);
    results do not depend on it.
    """
    columns = posterior.preprocessing.to_unit(X)
    mean, _ = prediction_moments(
        posterior.draws.forest,
        values_of_leaves(posterior),
        posterior.weights.ravel(),
        columns,
        n_jobs=n_jobs,
    )
    if posterior.n_classes:
        # Rounding, and nothing else, keeps the sums from 1.
        return np.ascontiguousarray(mean / mean.sum(axis=1, keepdims=True))
    return posterior.preprocessing.y_to_user(mean[:, 0])


def predict_mean_std(
    posterior: Posterior, X: ArrayLike, *, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of a new observation, [row] each; regression only.

    The variance is that of the predictions over the draws plus the mean noise variance.
    """
    sigma, own = noise_sd(posterior), _leaf_sds(posterior)
    values, weights = values_of_leaves(posterior), posterior.weights.ravel()
    columns = posterior.preprocessing.to_unit(X)
    centre = values.mean()  # squares are summed about it, so that large means cancel nothing
    first, second = prediction_moments(
        posterior.draws.forest,
        values - centre,
        weights,
        columns,
        second=True,
        n_jobs=n_jobs,
    )
    spread = np.maximum(second[:, 0] - first[:, 0] ** 2, 0.0)
    if own is None:
        noise = weights @ sigma.ravel() ** 2
    else:
        variance, _ = prediction_moments(
            posterior.draws.forest, own**2, weights, columns, n_jobs=n_jobs
        )
        noise = variance[:, 0]
    std = np.sqrt(spread + noise)
    user = posterior.preprocessing
    return user.y_to_user(first[:, 0] + centre), user.sd_to_user(std)


def predict_draws(posterior: Posterior, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
    """Each draw's prediction: means [chain, draw, row], or probabilities with [..., class].

    Raises
    ------
    ValueError
        If the result would take more than 4 GiB.
    """
    columns = posterior.preprocessing.to_unit(X)
    _refuse_if_large(posterior.weights.size * columns.shape[1] * max(1, posterior.n_classes) * 8)
    out = tree_predictions(posterior.draws.forest, values_of_leaves(posterior), columns, n_jobs)
    out = out.reshape(posterior.n_chains, posterior.n_draws, *out.shape[1:])
    return out if posterior.n_classes else posterior.preprocessing.y_to_user(out[..., 0])


def predict_single_trees(
    posterior: Posterior, X: ArrayLike, *, n_jobs: int | None = None
) -> NDArray[Any]:
    """Each draw as one hard tree, as the paper scores it, [chain, draw, row].

    A row goes to its most probable leaf and gets the most probable class (or the mean) there; ties
    go to the first.
    """
    columns = posterior.preprocessing.to_unit(X)
    _refuse_if_large(posterior.weights.size * columns.shape[1] * 8)
    values = values_of_leaves(posterior)
    classes = posterior.preprocessing.classes
    if classes is None:
        answer = posterior.preprocessing.y_to_user(values[:, 0])
    else:
        answer = classes[values.argmax(axis=1)]
    leaf = most_likely_leaf(posterior.draws.forest, columns, n_jobs)
    first_leaf = (posterior.draws.node_offset[:-1] + np.arange(len(leaf))) // 2
    of_trees: NDArray[Any] = answer[first_leaf[:, None] + leaf]
    return of_trees.reshape(posterior.n_chains, posterior.n_draws, -1)


def predict_quantiles(
    posterior: Posterior, X: ArrayLike, probabilities: ArrayLike, *, n_jobs: int | None = None
) -> FloatArray:
    """Quantiles of a new observation, [probability, row]; regression only.

    Exact for the sampled trees: the predictive distribution of a row is a mixture of one
    normal per draw, and its distribution function is inverted.
    """
    sigma, own = noise_sd(posterior).reshape(1, -1), _leaf_sds(posterior)
    levels = _levels(probabilities)
    columns = posterior.preprocessing.to_unit(X)
    values, weights = values_of_leaves(posterior), posterior.weights.ravel()
    out = np.empty((len(levels), columns.shape[1]))
    for rows in _pieces(posterior, columns.shape[1], 4 * 8):
        part = np.ascontiguousarray(columns[:, rows])
        means = tree_predictions(posterior.draws.forest, values, part, n_jobs)[..., 0]
        if own is not None:
            sigma = tree_predictions(posterior.draws.forest, own, part, n_jobs)[..., 0].T
        out[:, rows] = mixture_quantiles(
            levels, np.ascontiguousarray(means.T), np.ascontiguousarray(sigma), weights, n_jobs
        )
    return posterior.preprocessing.y_to_user(out)


def predict_probability_quantiles(
    posterior: Posterior,
    X: ArrayLike,
    probabilities: ArrayLike,
    seed: Seed = None,
    *,
    n_jobs: int | None = None,
) -> FloatArray:
    """Quantiles of the class probabilities, [probability, row, class]; classification only.

    They include the spread over the sampled trees and the uncertainty of the leaf probabilities,
    which are drawn once per tree.
    """
    if not posterior.n_classes:
        raise AttributeError("class probabilities belong to classification")
    levels = _levels(probabilities)
    values = sampled_probabilities(posterior, np.random.default_rng(seed))
    columns = posterior.preprocessing.to_unit(X)
    out = np.empty((len(levels), columns.shape[1], posterior.n_classes))
    for rows in _pieces(posterior, columns.shape[1], 3 * 8 * posterior.n_classes):
        part = np.ascontiguousarray(columns[:, rows])
        draws = tree_predictions(posterior.draws.forest, values, part, n_jobs)
        out[:, rows] = np.quantile(
            draws, levels, axis=0, weights=posterior.weights.ravel(), method="inverted_cdf"
        )
    return out


def sample_predictive(
    posterior: Posterior, X: ArrayLike, seed: Seed = None, *, n_jobs: int | None = None
) -> NDArray[Any]:
    """One new observation per draw and row, [chain, draw, row].

    Regression: the prediction plus normal noise with that draw's sd there. Classification:
    class probabilities of each leaf drawn from their Dirichlet posterior, once per draw for all
    rows, then a label. Draws of a weighted posterior keep their weights.
    """
    columns = posterior.preprocessing.to_unit(X)
    n_rows = columns.shape[1]
    _refuse_if_large(posterior.weights.size * n_rows * 8)
    rng = np.random.default_rng(seed)
    classes = posterior.preprocessing.classes
    values = posterior.draws.leaf if classes is None else sampled_probabilities(posterior, rng)
    n_trees = posterior.weights.size
    dtype = np.dtype(np.float64) if classes is None else classes.dtype
    out = np.empty((n_trees, n_rows), dtype=dtype)
    for rows in _pieces(posterior, n_rows, 8 * (values.shape[1] + 2)):
        part = np.ascontiguousarray(columns[:, rows])
        prediction = tree_predictions(posterior.draws.forest, values, part, n_jobs)
        if classes is None:
            noise = rng.standard_normal(prediction.shape[:2]) * _sd_of(posterior, prediction)
            out[:, rows] = posterior.preprocessing.y_to_user(prediction[..., 0] + noise)
        else:
            np.cumsum(prediction, axis=2, out=prediction)
            u = rng.random(prediction.shape[:2]) * prediction[..., -1]
            label = (u[..., None] >= prediction).sum(axis=2)
            out[:, rows] = classes[np.minimum(label, len(classes) - 1)]
    return out.reshape(posterior.n_chains, posterior.n_draws, n_rows)


def pointwise_log_likelihood(
    posterior: Posterior,
    X: ArrayLike,
    y: ArrayLike,
    seed: Seed = None,
    *,
    n_jobs: int | None = None,
) -> FloatArray:
    """Log probability, or density in y's units, of each observation, [chain, draw, row].

    Given a draw with its leaf parameters. Regression: normal about the draw's prediction with
    its noise sd there. Classification: log sum_k phi_k p_k[y], where p_k are class
    probabilities drawn, once per draw, from the leaf's Dirichlet posterior.
    """
    columns = posterior.preprocessing.to_unit(X)
    n_rows = columns.shape[1]
    _refuse_if_large(posterior.weights.size * n_rows * 8)
    classes = posterior.preprocessing.classes
    out = np.empty((posterior.weights.size, n_rows))
    if classes is None:
        target = posterior.preprocessing.y_to_model(y)
        values = posterior.draws.leaf
    else:
        codes = _codes(np.asarray(y), classes)
        values = sampled_probabilities(posterior, np.random.default_rng(seed))
    for rows in _pieces(posterior, n_rows, 8 * (values.shape[1] + 2)):
        part = np.ascontiguousarray(columns[:, rows])
        prediction = tree_predictions(posterior.draws.forest, values, part, n_jobs)
        if classes is None:
            sd = _sd_of(posterior, prediction)
            z = (target[rows] - prediction[..., 0]) / sd
            out[:, rows] = -0.5 * (z**2 + LOG_2PI) - np.log(sd * posterior.preprocessing.y_sd)
        else:
            own = np.take_along_axis(prediction, codes[None, rows, None], axis=2)[..., 0]
            # where a probability underflows, its logarithm stays finite
            out[:, rows] = np.log(np.maximum(own, np.finfo(np.float64).tiny))
    return out.reshape(posterior.n_chains, posterior.n_draws, n_rows)


def similarity(posterior: Posterior, X: ArrayLike) -> FloatArray:
    """Probability that two rows end in the same leaf, over at most 2,000 draws, [row, row]."""
    chosen = posterior.equally_weighted(SIMILARITY_DRAWS)
    columns = posterior.preprocessing.to_unit(X)
    n_rows = columns.shape[1]
    largest = int(posterior.draws.n_leaves.max())
    _refuse_if_large(chosen.weights.size * n_rows * largest * 16 + n_rows**2 * 8)
    return co_leaf(chosen.draws.forest, chosen.weights.ravel(), columns)


def monitored_at(posterior: Posterior, X: ArrayLike, *, n_jobs: int | None = None) -> Posterior:
    """A copy that keeps its predictions at the rows ``X`` for ``diagnose``.

    The prediction of a row is its mean, or the probability of the class that is most probable
    there over all draws. Twenty rows are enough.
    """
    predicted = posterior.predict_draws(X, n_jobs=n_jobs)
    if posterior.n_classes:
        over_draws = np.einsum("cd,cdrk->rk", posterior.weights, predicted)
        likeliest = over_draws.argmax(axis=1)
        predicted = np.take_along_axis(predicted, likeliest[None, None, :, None], axis=3)[..., 0]
    return posterior._with(monitor=np.ascontiguousarray(predicted))


def values_of_leaves(posterior: Posterior) -> FloatArray:
    """[leaves, K] class probabilities, or means in the model's units."""
    return leaf_values(posterior.draws.leaf, posterior.configuration.method, posterior.n_classes)


def _leaf_sds(posterior: Posterior) -> FloatArray | None:
    """[leaves, 1] noise sd of each leaf, or None where a tree has one for all of them."""
    leaf = posterior.draws.leaf
    return np.ascontiguousarray(leaf[:, 1:]) if leaf.shape[1] > 1 else None


def noise_sd(posterior: Posterior) -> FloatArray:
    """[chain, draw] sigma in the model's units."""
    if posterior.n_classes:
        raise AttributeError("sigma belongs to regression; this is a classification posterior")
    return posterior.draws.sigma


def sampled_probabilities(posterior: Posterior, rng: np.random.Generator) -> FloatArray:
    """[leaves, K]; class probabilities of the leaves drawn from their Dirichlet."""
    parameters = posterior.draws.leaf + np.asarray(
        posterior.configuration.method.class_concentration(posterior.n_classes)
    )
    gammas = rng.standard_gamma(parameters)
    total = gammas.sum(axis=1, keepdims=True)
    # With tiny parameters all gammas can underflow; the mean keeps each label's probability.
    mean = parameters / parameters.sum(axis=1, keepdims=True)
    probabilities: FloatArray = np.where(total > 0, gammas / np.maximum(total, 1e-300), mean)
    return probabilities


def _sd_of(posterior: Posterior, prediction: FloatArray) -> FloatArray:
    """Noise sd in the model's units, [tree, row or 1], beside predictions of ``draws.leaf``."""
    return prediction[..., 1] if prediction.shape[2] > 1 else posterior.draws.sigma.reshape(-1, 1)


def _pieces(posterior: Posterior, n_rows: int, bytes_per_value: int) -> Iterator[slice]:
    """Slices of rows whose arrays over all draws stay within the scratch size."""
    step = max(1, SCRATCH // (bytes_per_value * posterior.weights.size))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _refuse_if_large(n_bytes: int) -> None:
    """A ``ValueError`` with advice for results beyond the limit."""
    if n_bytes > MEMORY_LIMIT:
        raise ValueError(
            f"the predictions of all draws would take {n_bytes / 2**30:.1f} GiB, more than "
            f"{MEMORY_LIMIT / 2**30:.0f}: predict fewer rows at a time, or use predict_mean"
        )


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers of the labels in the sorted classes."""
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = labels[classes[codes] != labels]
    if len(unknown):
        raise ValueError(f"y has a class that training did not have: {unknown[0]!r}")
    return codes


def _levels(probabilities: ArrayLike) -> FloatArray:
    levels = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError("probabilities must lie strictly between 0 and 1")
    return levels
