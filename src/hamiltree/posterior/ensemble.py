"""Weighted trees that predict: means, intervals, new observations, likelihoods of seen ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.predict import (
    Forest,
    mixture_quantiles,
    most_likely_leaf,
    prediction_moments,
    tree_predictions,
)
from ..inputs.preprocess import Preprocessing
from ..methods.base import Configuration
from ..utils.arrays import FloatArray
from .draws import Draws, systematic, take
from .representative_tree import co_leaf
from .tree import leaf_values

MEMORY_LIMIT = 4 * 2**30
"""Bytes; a result larger than this is refused with advice instead of made."""
SCRATCH = 256 * 2**20
"""Bytes; arrays over draws and rows that only serve a result are made in pieces of this size."""
SIMILARITY_DRAWS = 2000
LOG_2PI = float(np.log(2 * np.pi))

Seed = int | np.random.Generator | np.random.SeedSequence | None


class Ensemble:
    """Trees with their weights, and what brings rows and targets to their scale.

    Arrays over draws have shape [chain, draw]. Rows go in, and predictions come out, in the
    user's units.
    """

    def __init__(
        self, draws: Draws, preprocessing: Preprocessing, configuration: Configuration[Any]
    ) -> None:
        self.draws = draws
        self.preprocessing = preprocessing
        self.configuration = configuration

    @property
    def n_chains(self) -> int:
        return self.draws.n_chains

    @property
    def n_draws(self) -> int:
        """Draws a chain."""
        return self.draws.n_draws

    @property
    def n_classes(self) -> int:
        """0 for regression."""
        classes = self.preprocessing.classes
        return 0 if classes is None else len(classes)

    @property
    def weights(self) -> FloatArray:
        """Sum to 1; uniform for Markov chains."""
        return self.draws.weights_of_draws

    @property
    def weighted(self) -> bool:
        """Whether some draws count more than others."""
        return not np.allclose(self.weights, 1 / self.weights.size, rtol=1e-6)

    def predict_mean(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Posterior mean over the draws: class probabilities [row, class], or means [row].

        ``n_jobs`` threads, as scikit-learn counts them (None: 1, unless joblib.parallel_config says
        otherwise), change the time and nothing else, here and below.
        """
        columns = self.preprocessing.to_unit(X)
        mean, _ = prediction_moments(
            self.forest, self.leaf_values(), self.weights.ravel(), columns, n_jobs=n_jobs
        )
        if self.n_classes:
            # Rounding, and nothing else, keeps the sums from 1.
            return np.ascontiguousarray(mean / mean.sum(axis=1, keepdims=True))
        return self.preprocessing.y_to_user(mean[:, 0])

    def predict_mean_std(
        self, X: ArrayLike, *, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a new observation, [row] each; regression only.

        The variance is that of the tree's prediction over the draws plus the mean of the noise's.
        """
        sigma, own = self._noise_sd(), self._leaf_sds()
        values, weights = self.leaf_values(), self.weights.ravel()
        columns = self.preprocessing.to_unit(X)
        centre = values.mean()  # squares are summed about it, so that large means cancel nothing
        first, second = prediction_moments(
            self.forest,
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
            variance, _ = prediction_moments(self.forest, own**2, weights, columns, n_jobs=n_jobs)
            noise = variance[:, 0]
        std = np.sqrt(spread + noise)
        user = self.preprocessing
        return user.y_to_user(first[:, 0] + centre), user.sd_to_user(std)

    def predict_draws(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Each draw's prediction: means [chain, draw, row], or probabilities with [..., class].

        Raises
        ------
        ValueError
            If the result would take more than 4 GiB.
        """
        columns = self.preprocessing.to_unit(X)
        self._refuse_if_large(columns.shape[1] * max(1, self.n_classes) * 8)
        out = tree_predictions(self.forest, self.leaf_values(), columns, n_jobs)
        out = out.reshape(self.n_chains, self.n_draws, *out.shape[1:])
        return out if self.n_classes else self.preprocessing.y_to_user(out[..., 0])

    def predict_single_trees(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Each draw as one hard tree, as the paper scores it, [chain, draw, row].

        A row goes to its most likely leaf, and gets that leaf's most likely class (or mean); of
        equals the first counts.
        """
        columns = self.preprocessing.to_unit(X)
        self._refuse_if_large(columns.shape[1] * 8)
        values = self.leaf_values()
        classes = self.preprocessing.classes
        if classes is None:
            answer = self.preprocessing.y_to_user(values[:, 0])
        else:
            answer = classes[values.argmax(axis=1)]
        leaf = most_likely_leaf(self.forest, columns, n_jobs)
        n_trees = len(leaf)
        first_leaf = (self.draws.node_offset[:-1] + np.arange(n_trees)) // 2
        return answer[first_leaf[:, None] + leaf].reshape(self.n_chains, self.n_draws, -1)

    def predict_quantiles(
        self, X: ArrayLike, probabilities: ArrayLike, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Quantiles of a new observation, [probability, row]; regression only.

        Exact for the sampled trees: the predictive distribution of a row is a mixture of one
        normal a draw, and its distribution function is inverted.
        """
        sigma, own = self._noise_sd().reshape(1, -1), self._leaf_sds()
        levels = _levels(probabilities)
        columns = self.preprocessing.to_unit(X)
        values, weights = self.leaf_values(), self.weights.ravel()
        out = np.empty((len(levels), columns.shape[1]))
        for rows in self._pieces(columns.shape[1], 4 * 8):
            part = np.ascontiguousarray(columns[:, rows])
            means = tree_predictions(self.forest, values, part, n_jobs)[..., 0]
            if own is not None:
                sigma = tree_predictions(self.forest, own, part, n_jobs)[..., 0].T
            out[:, rows] = mixture_quantiles(
                levels, np.ascontiguousarray(means.T), np.ascontiguousarray(sigma), weights, n_jobs
            )
        return self.preprocessing.y_to_user(out)

    def predict_probability_quantiles(
        self,
        X: ArrayLike,
        probabilities: ArrayLike,
        seed: Seed = None,
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Quantiles of the class probabilities, [probability, row, class]; classification only.

        Over the sampled trees and, drawn once a tree, the uncertainty of the probabilities in its
        leaves.
        """
        if not self.n_classes:
            raise AttributeError("class probabilities belong to classification")
        levels = _levels(probabilities)
        values = self.sampled_probabilities(np.random.default_rng(seed))
        columns = self.preprocessing.to_unit(X)
        out = np.empty((len(levels), columns.shape[1], self.n_classes))
        for rows in self._pieces(columns.shape[1], 3 * 8 * self.n_classes):
            part = np.ascontiguousarray(columns[:, rows])
            draws = tree_predictions(self.forest, values, part, n_jobs)
            out[:, rows] = np.quantile(
                draws, levels, axis=0, weights=self.weights.ravel(), method="inverted_cdf"
            )
        return out

    def sample_predictive(
        self, X: ArrayLike, seed: Seed = None, *, n_jobs: int | None = None
    ) -> NDArray[Any]:
        """One new observation a draw and row, [chain, draw, row].

        Regression: the prediction plus normal noise with that draw's sd there. Classification:
        class probabilities of each leaf drawn from their Dirichlet posterior, once a draw for all
        rows, then a label. Draws of a weighted posterior keep their weights.
        """
        columns = self.preprocessing.to_unit(X)
        n_rows = columns.shape[1]
        self._refuse_if_large(n_rows * 8)
        rng = np.random.default_rng(seed)
        classes = self.preprocessing.classes
        values = self.draws.leaf if classes is None else self.sampled_probabilities(rng)
        n_trees = self.weights.size
        dtype = np.dtype(np.float64) if classes is None else classes.dtype
        out = np.empty((n_trees, n_rows), dtype=dtype)
        for rows in self._pieces(n_rows, 8 * (values.shape[1] + 2)):
            part = np.ascontiguousarray(columns[:, rows])
            prediction = tree_predictions(self.forest, values, part, n_jobs)
            if classes is None:
                noise = rng.standard_normal(prediction.shape[:2]) * self._sd_of(prediction)
                out[:, rows] = self.preprocessing.y_to_user(prediction[..., 0] + noise)
            else:
                np.cumsum(prediction, axis=2, out=prediction)
                u = rng.random(prediction.shape[:2]) * prediction[..., -1]
                label = (u[..., None] >= prediction).sum(axis=2)
                out[:, rows] = classes[np.minimum(label, len(classes) - 1)]
        return out.reshape(self.n_chains, self.n_draws, n_rows)

    def pointwise_log_likelihood(
        self, X: ArrayLike, y: ArrayLike, seed: Seed = None, *, n_jobs: int | None = None
    ) -> FloatArray:
        """Log probability, or density in y's units, of each observation, [chain, draw, row].

        Given a draw with its leaf parameters. Regression: normal about the draw's prediction with
        its noise sd there. Classification: log sum_k phi_k p_k[y], where p_k are class
        probabilities drawn, once a draw, from the leaf's Dirichlet posterior.
        """
        columns = self.preprocessing.to_unit(X)
        n_rows = columns.shape[1]
        self._refuse_if_large(n_rows * 8)
        classes = self.preprocessing.classes
        out = np.empty((self.weights.size, n_rows))
        if classes is None:
            target = self.preprocessing.y_to_model(y)
            values = self.draws.leaf
        else:
            codes = _codes(np.asarray(y), classes)
            values = self.sampled_probabilities(np.random.default_rng(seed))
        for rows in self._pieces(n_rows, 8 * (values.shape[1] + 2)):
            part = np.ascontiguousarray(columns[:, rows])
            prediction = tree_predictions(self.forest, values, part, n_jobs)
            if classes is None:
                sd = self._sd_of(prediction)
                z = (target[rows] - prediction[..., 0]) / sd
                out[:, rows] = -0.5 * (z**2 + LOG_2PI) - np.log(sd * self.preprocessing.y_sd)
            else:
                own = np.take_along_axis(prediction, codes[None, rows, None], axis=2)[..., 0]
                # where a probability underflows, its logarithm stays finite
                out[:, rows] = np.log(np.maximum(own, np.finfo(np.float64).tiny))
        return out.reshape(self.n_chains, self.n_draws, n_rows)

    def feature_inclusion(self) -> FloatArray:
        """Share of the splits that use each input column, [column]; sums to 1.

        The share is taken tree by tree and averaged with the weights of the draws over the trees
        that split at all; all zeros where none does. Constant columns get 0.

        For HMC-DFI it is the mean weight of a column in the rules. Those weights are barely
        sharper than their prior: do not read them as importance.
        """
        d, p = self.draws, len(self.preprocessing.used)
        n_splits = d.n_leaves.ravel() - 1
        # Every split of a tree counts alike, and every tree counts by its weight alone.
        per_split = np.repeat(self.weights.ravel() / np.maximum(n_splits, 1), n_splits)
        if d.split_weights.shape[1]:
            used: FloatArray = per_split @ d.split_weights
        else:
            used = np.bincount(d.feature, weights=per_split, minlength=p).astype(np.float64)
        inclusion = np.zeros(len(self.preprocessing.feature_names))
        total = used.sum()
        inclusion[self.preprocessing.used] = used / total if total > 0 else 0.0
        return inclusion

    def taken(self, index: ArrayLike) -> Ensemble:
        """The trees of these numbers (chain * n_draws + draw), with equal weights, as one chain."""
        draws = take(self.draws, np.asarray(index, dtype=np.int64))
        return Ensemble(draws, self.preprocessing, self.configuration)

    def equally_weighted(self, most: int | None = None) -> Ensemble:
        """The trees as one chain of equal weights, evenly spaced, at most ``most`` of them.

        Trees of a weighted posterior are repeated, or left out, by their weights.
        """
        n = self.weights.size if most is None else min(most, self.weights.size)
        return self.taken(systematic(self.weights, n))

    def similarity(self, X: ArrayLike) -> FloatArray:
        """Probability that two rows end in the same leaf, over at most 2,000 draws, [row, row]."""
        chosen = self.equally_weighted(SIMILARITY_DRAWS)
        columns = self.preprocessing.to_unit(X)
        n_rows = columns.shape[1]
        largest = int(self.draws.n_leaves.max())
        refuse_if_large(chosen.weights.size * n_rows * largest * 16 + n_rows**2 * 8)
        return co_leaf(chosen.forest, chosen.weights.ravel(), columns)

    # ------------------------------------------------------------------ details

    @property
    def forest(self) -> Forest:
        """The trees as routing takes them."""
        return self.draws.forest

    def leaf_values(self) -> FloatArray:
        """[leaves, K] class probabilities, or means in the model's units."""
        return leaf_values(self.draws.leaf, self.configuration.method, self.n_classes)

    def _leaf_sds(self) -> FloatArray | None:
        """[leaves, 1] noise sd of each leaf, or None where a tree has one for all of them."""
        leaf = self.draws.leaf
        return np.ascontiguousarray(leaf[:, 1:]) if leaf.shape[1] > 1 else None

    def _noise_sd(self) -> FloatArray:
        """[chain, draw] sigma in the model's units."""
        if self.n_classes:
            raise AttributeError("sigma belongs to regression; this is a classification posterior")
        return self.draws.sigma

    def sampled_probabilities(self, rng: np.random.Generator) -> FloatArray:
        """[leaves, K]; class probabilities of the leaves drawn from their Dirichlet."""
        parameters = self.draws.leaf + np.asarray(
            self.configuration.method.class_concentration(self.n_classes)
        )
        gammas = rng.standard_gamma(parameters)
        total = gammas.sum(axis=1, keepdims=True)
        # With tiny parameters all gammas can underflow; the mean keeps each label's probability.
        mean = parameters / parameters.sum(axis=1, keepdims=True)
        probabilities: FloatArray = np.where(total > 0, gammas / np.maximum(total, 1e-300), mean)
        return probabilities

    def _sd_of(self, prediction: FloatArray) -> FloatArray:
        """Noise sd in the model's units, [tree, row or 1], beside predictions of ``draws.leaf``."""
        return prediction[..., 1] if prediction.shape[2] > 1 else self.draws.sigma.reshape(-1, 1)

    def _refuse_if_large(self, bytes_a_tree: int) -> None:
        refuse_if_large(bytes_a_tree * self.weights.size)

    def _pieces(self, n_rows: int, bytes_a_value: int) -> Iterator[slice]:
        """Slices of rows whose arrays over all draws stay within the scratch size."""
        step = max(1, SCRATCH // (bytes_a_value * self.weights.size))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))


def refuse_if_large(n_bytes: int) -> None:
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
        raise ValueError(f"y has a class that the trees do not know: {unknown[0]!r}")
    return codes


def _levels(probabilities: ArrayLike) -> FloatArray:
    levels = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError("probabilities must lie strictly between 0 and 1")
    return levels
