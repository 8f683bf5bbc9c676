"""Measures of a fitted posterior: the paper's, and others that it does not report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from scipy.stats import norm
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error

from ..core.predict import most_likely_leaf, tree_predictions
from ..datasets import Split
from ..posterior import Posterior
from ..posterior.draws import RunInfo
from ..utils.arrays import FloatArray
from .configurations import HMC

COVERAGE = 0.9
N_BINS = 10
"""Of the calibration error."""
N_MONITORED = 20
"""Test rows at which restarts are compared."""
WITHIN_A_TREE = ("feature", "redraw", "nudge")
"""Updates of rules that leave the tree's shape alone; the paper does not count them."""


def score_name(n_classes: int) -> str:
    return "acc" if n_classes else "mse"


def single_tree_scores(posterior: Posterior, split: Split, part: str = "test") -> FloatArray:
    """Right or wrong, or the squared error, of each draw as one tree: [draw, row]."""
    X, y = (split.X_test, split.y_test) if part == "test" else (split.X, split.y)
    if posterior.n_classes:
        labels = posterior.predict_single_trees(X, n_jobs=1).reshape(-1, len(y))
        right: NDArray[np.bool_] = labels == y
        return right.astype(np.float64)
    if posterior.configuration.method.name in HMC:
        means = posterior.predict_single_trees(X, n_jobs=1).reshape(-1, len(y))
    else:
        means = leaf_mean_predictions(posterior, split, X)
    errors: FloatArray = (means - y) ** 2
    return errors


def leaf_mean_predictions(posterior: Posterior, split: Split, X: FloatArray) -> FloatArray:
    """Predictions [draw, row] of hard trees by the posterior means of their leaves.

    The classical methods integrate the means out, so that a tree has them, not draws of them.
    """
    to_unit, user = posterior.preprocessing.to_unit, posterior.preprocessing.y_to_user
    forest = posterior.draws.forest
    n_trees, most = posterior.weights.size, int(posterior.n_leaves.max())
    first = most * np.arange(n_trees)[:, None]
    leaf = first + most_likely_leaf(forest, to_unit(split.X), 1)
    rows = np.bincount(leaf.ravel(), minlength=n_trees * most)
    total = np.bincount(leaf.ravel(), np.tile(split.y, n_trees), n_trees * most)
    prior_mean, prior_rows = posterior.configuration.method.mean_prior
    prior_mean = float(user(np.array([prior_mean]))[0])
    means: FloatArray = (total + prior_rows * prior_mean) / (rows + prior_rows)
    predicted: FloatArray = means[first + most_likely_leaf(forest, to_unit(X), 1)]
    return predicted


def measure(posterior: Posterior, split: Split) -> tuple[dict[str, float], dict[str, Any]]:
    """Values of the run, and arrays for figures and for comparing restarts.

    A draw's score is that of one tree: ``train_acc`` or ``train_mse``, ``test_...``; their ``_sd``
    is over the draws. ``ensemble_...`` and all that follows is of the posterior mean.
    """
    weights = posterior.weights.ravel()
    name = score_name(split.n_classes)
    values: dict[str, float] = {}
    arrays: dict[str, Any] = {}
    for part, X, y in (("train", split.X, split.y), ("test", split.X_test, split.y_test)):
        scores = single_tree_scores(posterior, split, part)
        by_draw = scores.mean(axis=1)
        mean, sd = weighted_moments(by_draw, weights)
        values |= {f"{part}_{name}": mean, f"{part}_{name}_sd": sd}
        values[f"ensemble_{part}_{name}"] = ensemble_score(posterior, X, y)
        if part == "test":
            arrays["score_by_row"] = weights @ scores
    values["leaves"], values["leaves_sd"] = weighted_moments(posterior.n_leaves.ravel(), weights)
    if posterior.n_classes > 2 and posterior.configuration.method.name in HMC:
        values["leaves_without_constant"] = leaves_without_constant(posterior)
    values |= predictive_measures(posterior, split.X_test, split.y_test)
    rows = np.linspace(0, len(split.y_test) - 1, min(N_MONITORED, len(split.y_test))).round()
    arrays["monitor"] = _monitored(posterior, split.X_test[rows.astype(int)])
    arrays["log_posterior"] = posterior.log_posterior.ravel()
    arrays["n_leaves"] = posterior.n_leaves.ravel()
    arrays["weights"] = weights
    return values, arrays


def weighted_moments(values: NDArray[Any], weights: FloatArray) -> tuple[float, float]:
    mean = float(weights @ values)
    return mean, float(np.sqrt(weights @ (values - mean) ** 2))


def leaves_without_constant(posterior: Posterior) -> float:
    """Mean leaves of the posterior that the authors' code samples, by weighting the draws anew.

    Its likelihood of classes leaves out log Gamma(A) - sum log Gamma(alpha_m), once per leaf.
    """
    prior = np.array(posterior.configuration.method.class_concentration(posterior.n_classes))
    constant = gammaln(prior.sum()) - gammaln(prior).sum()
    leaves = posterior.n_leaves.ravel()
    weights = posterior.weights.ravel() * np.exp(-constant * (leaves - leaves.min()))
    return float(weights @ leaves / weights.sum())


def ensemble_score(posterior: Posterior, X: FloatArray, y: NDArray[Any]) -> float:
    mean = posterior.predict_mean(X, n_jobs=1)
    if not posterior.n_classes:
        return float(mean_squared_error(y, mean))
    classes = posterior.preprocessing.classes
    assert classes is not None
    return float(accuracy_score(y, classes[mean.argmax(axis=1)]))


def predictive_measures(posterior: Posterior, X: FloatArray, y: NDArray[Any]) -> dict[str, float]:
    """Log score per row (higher is better) and more of the posterior predictive."""
    if posterior.n_classes:
        classes = posterior.preprocessing.classes
        assert classes is not None
        return probability_measures(posterior.predict_mean(X, n_jobs=1), y, classes)
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    low, high = posterior.predict_quantiles(X, tails, n_jobs=1)
    return {
        "log_score": float(log_density(posterior, X, y).mean()),
        "coverage_90": float(np.mean((low <= y) & (y <= high))),
    }


def probability_measures(
    probabilities: FloatArray, y: NDArray[Any], classes: NDArray[Any]
) -> dict[str, float]:
    """Of class probabilities [row, class]; Brier's score is summed over the classes."""
    hits = y[:, None] == classes
    return {
        "log_score": -float(log_loss(y, probabilities, labels=classes)),
        "brier": float(np.mean(np.sum((probabilities - hits) ** 2, axis=1))),
        "calibration_error": calibration_error(probabilities, hits),
    }


def calibration_error(probabilities: FloatArray, hits: NDArray[np.bool_]) -> float:
    """Mean gap between confidence and accuracy of the predicted class, over ten equal bins."""
    best = probabilities.argmax(axis=1)
    row = np.arange(len(best))
    confidence, right = probabilities[row, best], hits[row, best]
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(best))


def log_density(posterior: Posterior, X: FloatArray, y: NDArray[Any]) -> FloatArray:
    """Log predictive density of a new observation, [row]: a mixture of one normal per draw."""
    columns = posterior.preprocessing.to_unit(X)
    means = posterior.predict_draws(X, n_jobs=1).reshape(-1, len(y))
    own = np.ascontiguousarray(posterior.draws.leaf[:, 1:])  # the leaves' sds, where they have any
    if own.shape[1] == 0:
        sd = posterior.sigma.reshape(-1, 1)
    else:
        in_model = tree_predictions(posterior.draws.forest, own, columns, 1)[..., 0]
        sd = posterior.preprocessing.sd_to_user(in_model)
    with np.errstate(divide="ignore"):  # particles may have no weight at all
        log_weights = np.log(posterior.weights.reshape(-1, 1))
    density: FloatArray = logsumexp(log_weights + norm.logpdf(y, means, sd), axis=0)
    return density


def _monitored(posterior: Posterior, X: FloatArray) -> NDArray[np.float32]:
    """[draw, row]: the mean, or the probability of the last class."""
    draws = posterior.predict_draws(X, n_jobs=1)
    draws = draws[..., -1] if posterior.n_classes else draws
    kept: NDArray[np.float32] = draws.reshape(-1, len(X)).astype(np.float32)
    return kept


def acceptance_measures(info: RunInfo) -> dict[str, float]:
    """Accepted per cent of the proposals over the whole chain, together and by move.

    ``acceptance_pct`` counts what the paper counts: moves between trees, staying included.
    """
    counts: dict[str, list[int]] = {}
    for moves in info.acceptance.values():
        for move, (accepted, proposed) in moves.items():
            total = counts.setdefault(move, [0, 0])
            total[0] += int(np.sum(accepted))
            total[1] += int(np.sum(proposed))
    jumps = [n for move, n in counts.items() if move not in (*WITHIN_A_TREE, "iteration")]
    counts[""] = [sum(n[0] for n in jumps), sum(n[1] for n in jumps)]
    return {
        f"acceptance_{move}_pct".replace("__", "_"): 100 * accepted / proposed
        for move, (accepted, proposed) in counts.items()
        if proposed
    }
