"""The draws of any sampler as a posterior: predict, summarise, judge, save."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import storage
from .core.predict import (
    Forest,
    mixture_quantiles,
    most_likely_leaf,
    prediction_moments,
    tree_predictions,
)
from .diagnostics import Diagnosis, diagnose, mean_sd, summarise, to_datatree
from .draws import Draws, FloatArray, IntArray, RunInfo, take
from .preprocess import Preprocessing
from .settings import Settings
from .tree import Tree, leaf_values

if TYPE_CHECKING:
    import xarray

MEMORY_LIMIT = 4 * 2**30
"""Bytes; a result larger than this is refused with advice instead of made."""
SCRATCH = 256 * 2**20
"""Bytes; arrays over draws and rows that only serve a result are made in pieces of this size."""

Seed = int | np.random.Generator | np.random.SeedSequence | None


class Posterior:
    """Sampled trees with their weights, and what was recorded at each draw.

    Arrays over draws have shape [chain, draw]. Rows go in, and predictions come out, in the
    user's units.

    Parameters
    ----------
    draws, info : what the run returned
    preprocessing : what was learned from the training data
    settings : the settings of the run
    monitor : ndarray of shape (chain, draw, point), optional
        Predictions at fixed rows, by which ``diagnose`` compares the chains; see ``monitored_at``.
    provenance : mapping, optional
        Plain values worth keeping with the file, such as ``n_warmup`` and ``seed``.
    """

    def __init__(
        self,
        draws: Draws,
        info: RunInfo,
        preprocessing: Preprocessing,
        settings: Settings,
        *,
        monitor: FloatArray | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.draws = draws
        self.info = info
        self.preprocessing = preprocessing
        self.settings = settings
        self.monitor = monitor
        self.provenance = dict(provenance or {})

    # ------------------------------------------------------------------ what was recorded

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
    def n_leaves(self) -> IntArray:
        return self.draws.n_leaves

    @property
    def depth(self) -> IntArray:
        """Splits on the longest path; 0 for a root on its own."""
        return self.draws.depth

    @property
    def log_likelihood(self) -> FloatArray:
        return self.draws.log_likelihood

    @property
    def log_posterior(self) -> FloatArray:
        """Unnormalised, on the constrained scale."""
        return self.draws.log_posterior

    @property
    def weights(self) -> FloatArray:
        """Sum to 1; uniform for Markov chains."""
        return self.draws.weights_of_draws

    @property
    def sigma(self) -> FloatArray:
        """Standard deviation of the noise, in the user's units; regression only."""
        return self.preprocessing.sd_to_user(self._noise_sd())

    @property
    def log_evidence(self) -> float | None:
        """Log marginal likelihood where the sampler estimates it, None for Markov chains.

        Of the target in the model's units, as is the log-likelihood.
        """
        return self.info.log_evidence

    @property
    def log_evidence_of_chains(self) -> FloatArray | None:
        """[chain]; each island's own estimate, of whose exponentials the above is the mean."""
        if "log_weight" not in self.stats:
            return None
        return np.logaddexp.reduce(self.stats["log_weight"], axis=1)

    @property
    def stats(self) -> dict[str, NDArray[Any]]:
        """What the sampler recorded at each draw, such as "divergent"."""
        return self.info.stats

    @property
    def acceptance(self) -> dict[str, float]:
        """Accepted share of the proposals after warm-up by move; NaN if never proposed."""
        moves = self.info.acceptance.get("sampling", {})
        return {move: _share(*counts) for move, counts in moves.items()}

    def acceptance_table(self) -> str:
        """Accepted share by move, in warm-up and in sampling, as text."""
        phases = self.info.acceptance
        lines = [f"{'move':<16}" + "".join(f"{phase:>22}" for phase in phases)]
        for move in dict.fromkeys(move for moves in phases.values() for move in moves):
            line = f"{move:<16}"
            for moves in phases.values():
                accepted, proposed = moves.get(move, (np.zeros(1), np.zeros(1)))
                share = _share(accepted, proposed)
                percent = "-" if np.isnan(share) else f"{share:.1%}"
                line += f"{f'{percent} of {int(proposed.sum())}':>22}"
            lines.append(line)
        return "\n".join(lines)

    def tree(self, chain: int, draw: int) -> Tree:
        """The tree of one draw; negative numbers count from the end."""
        for name, index, length in (("chain", chain, self.n_chains), ("draw", draw, self.n_draws)):
            if not -length <= index < length:
                raise IndexError(f"{name} {index} is out of range: there are {length}")
        d, t = self.draws, (chain % self.n_chains) * self.n_draws + draw % self.n_draws
        first, last = int(d.node_offset[t]), int(d.node_offset[t + 1])
        splits = slice((first - t) // 2, (last - t - 1) // 2)
        leaves = slice((first + t) // 2, (last + t + 1) // 2)
        return Tree(
            size=d.size[first:last],
            feature=d.feature[splits],
            threshold=d.threshold[splits],
            weights=d.weights[splits],
            leaf=d.leaf[leaves],
            h=d.h,
            preprocessing=self.preprocessing,
            settings=self.settings,
        )

    # ------------------------------------------------------------------ predictions

    def predict_mean(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """Posterior mean over the draws: class probabilities [row, class], or means [row].

        ``n_jobs`` threads (None: all cores) change the time and nothing else, here and below.
        """
        columns = self.preprocessing.to_unit(X)
        mean, _ = prediction_moments(
            self._forest, self._leaf_values(), self.weights.ravel(), columns, n_jobs=n_jobs
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
        values, weights = self._leaf_values(), self.weights.ravel()
        columns = self.preprocessing.to_unit(X)
        centre = values.mean()  # squares are summed about it, so that large means cancel nothing
        first, second = prediction_moments(
            self._forest,
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
            variance, _ = prediction_moments(self._forest, own**2, weights, columns, n_jobs=n_jobs)
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
        out = tree_predictions(self._forest, self._leaf_values(), columns, n_jobs)
        out = out.reshape(self.n_chains, self.n_draws, *out.shape[1:])
        return out if self.n_classes else self.preprocessing.y_to_user(out[..., 0])

    def predict_single_trees(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Each draw as one hard tree, as the paper scores it, [chain, draw, row].

        A row goes to its most likely leaf, and gets that leaf's most likely class (or mean); of
        equals the first counts.
        """
        columns = self.preprocessing.to_unit(X)
        self._refuse_if_large(columns.shape[1] * 8)
        values = self._leaf_values()
        classes = self.preprocessing.classes
        if classes is None:
            answer = self.preprocessing.y_to_user(values[:, 0])
        else:
            answer = classes[values.argmax(axis=1)]
        leaf = most_likely_leaf(self._forest, columns, n_jobs)
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
        values, weights = self._leaf_values(), self.weights.ravel()
        out = np.empty((len(levels), columns.shape[1]))
        for rows in self._pieces(columns.shape[1], 4 * 8):
            part = np.ascontiguousarray(columns[:, rows])
            means = tree_predictions(self._forest, values, part, n_jobs)[..., 0]
            if own is not None:
                sigma = tree_predictions(self._forest, own, part, n_jobs)[..., 0].T
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
        values = self._sampled_probabilities(np.random.default_rng(seed))
        columns = self.preprocessing.to_unit(X)
        out = np.empty((len(levels), columns.shape[1], self.n_classes))
        for rows in self._pieces(columns.shape[1], 3 * 8 * self.n_classes):
            part = np.ascontiguousarray(columns[:, rows])
            draws = tree_predictions(self._forest, values, part, n_jobs)
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
        values = self.draws.leaf if classes is None else self._sampled_probabilities(rng)
        n_trees = self.weights.size
        dtype = np.dtype(np.float64) if classes is None else classes.dtype
        out = np.empty((n_trees, n_rows), dtype=dtype)
        for rows in self._pieces(n_rows, 8 * (values.shape[1] + 2)):
            part = np.ascontiguousarray(columns[:, rows])
            prediction = tree_predictions(self._forest, values, part, n_jobs)
            if classes is None:
                noise = rng.standard_normal(prediction.shape[:2])
                own = prediction.shape[2] > 1
                noise *= prediction[..., 1] if own else self.draws.sigma.reshape(-1, 1)
                out[:, rows] = self.preprocessing.y_to_user(prediction[..., 0] + noise)
            else:
                np.cumsum(prediction, axis=2, out=prediction)
                u = rng.random(prediction.shape[:2]) * prediction[..., -1]
                label = (u[..., None] >= prediction).sum(axis=2)
                out[:, rows] = classes[np.minimum(label, len(classes) - 1)]
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
        if d.weights.shape[1]:
            used: FloatArray = per_split @ d.weights
        else:
            used = np.bincount(d.feature, weights=per_split, minlength=p).astype(np.float64)
        inclusion = np.zeros(len(self.preprocessing.feature_names))
        total = used.sum()
        inclusion[self.preprocessing.used] = used / total if total > 0 else 0.0
        return inclusion

    def taken(self, index: ArrayLike) -> Posterior:
        """The trees of these numbers (chain * n_draws + draw), with equal weights, as one chain.

        What was recorded of the run stays with the original.
        """
        draws = take(self.draws, np.asarray(index, dtype=np.int64))
        info = RunInfo({}, {}, self.info.seconds, self.info.stopped)
        return Posterior(draws, info, self.preprocessing, self.settings)

    def monitored_at(self, X: ArrayLike, *, n_jobs: int | None = None) -> Posterior:
        """A copy that keeps its predictions at the rows ``X`` for ``diagnose``.

        A row's prediction is its mean, or the probability of the class that is likeliest there
        over all draws. Twenty rows are plenty.
        """
        predictions = self.predict_draws(X, n_jobs=n_jobs)
        if self.n_classes:
            over_draws = np.einsum("cd,cdrk->rk", self.weights, predictions)
            likeliest = over_draws.argmax(axis=1)
            predictions = np.take_along_axis(predictions, likeliest[None, None, :, None], axis=3)[
                ..., 0
            ]
        return Posterior(
            self.draws, self.info, self.preprocessing, self.settings,
            monitor=np.ascontiguousarray(predictions), provenance=self.provenance,
        )  # fmt: skip

    # ------------------------------------------------------------------ for people and files

    def diagnose(self) -> Diagnosis:
        """Do the chains agree? See ``Diagnosis``."""
        return diagnose(self)

    def summary(self) -> str:
        """The posterior on one screen."""
        return summarise(self)

    def to_datatree(self) -> xarray.DataTree:
        """An ArviZ-style ``DataTree`` with groups posterior and sample_stats."""
        return to_datatree(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one NetCDF file, replacing it only once it is complete."""
        storage.write(
            path, self.draws, self.info, self.preprocessing, self.settings, self.monitor,
            self.provenance,
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read what ``save`` wrote; the file is checked and nothing in it is run."""
        contents = storage.read(path)
        return cls(
            contents.draws, contents.info, contents.preprocessing, contents.settings,
            monitor=contents.monitor, provenance=contents.provenance,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"<Posterior of {self.settings.method.upper()} trees: {self.n_chains} chains x "
            f"{self.n_draws} draws, {mean_sd(self.n_leaves, self.weights)} leaves>"
        )

    # ------------------------------------------------------------------ details

    @property
    def _forest(self) -> Forest:
        d = self.draws
        return Forest(d.node_offset, d.size, d.feature, d.threshold, d.weights, d.h)

    def _leaf_values(self) -> FloatArray:
        """[leaves, K] class probabilities, or means in the model's units."""
        return leaf_values(self.draws.leaf, self.settings, self.n_classes)

    def _leaf_sds(self) -> FloatArray | None:
        """[leaves, 1] noise sd of each leaf, or None where a tree has one for all of them."""
        leaf = self.draws.leaf
        return np.ascontiguousarray(leaf[:, 1:]) if leaf.shape[1] > 1 else None

    def _noise_sd(self) -> FloatArray:
        """[chain, draw] sigma in the model's units."""
        if self.n_classes:
            raise AttributeError("sigma belongs to regression; this is a classification posterior")
        return self.draws.sigma

    def _sampled_probabilities(self, rng: np.random.Generator) -> FloatArray:
        """[leaves, K]; class probabilities of the leaves drawn from their Dirichlet."""
        parameters = self.draws.leaf + np.asarray(self.settings.class_prior, dtype=np.float64)
        gammas = rng.standard_gamma(parameters)
        total = gammas.sum(axis=1, keepdims=True)
        # With tiny parameters all gammas can underflow; the mean keeps each label's probability.
        mean = parameters / parameters.sum(axis=1, keepdims=True)
        probabilities: FloatArray = np.where(total > 0, gammas / np.maximum(total, 1e-300), mean)
        return probabilities

    def _refuse_if_large(self, bytes_a_tree: int) -> None:
        needed = bytes_a_tree * self.weights.size
        if needed > MEMORY_LIMIT:
            raise ValueError(
                f"the predictions of all draws would take {needed / 2**30:.1f} GiB, more than "
                f"{MEMORY_LIMIT / 2**30:.0f}: predict fewer rows at a time, or use predict_mean"
            )

    def _pieces(self, n_rows: int, bytes_a_value: int) -> Iterator[slice]:
        """Slices of rows whose arrays over all draws stay within the scratch size."""
        step = max(1, SCRATCH // (bytes_a_value * self.weights.size))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))


def _levels(probabilities: ArrayLike) -> FloatArray:
    levels = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError("probabilities must lie strictly between 0 and 1")
    return levels


def _share(accepted: NDArray[Any], proposed: NDArray[Any]) -> float:
    total = int(np.sum(proposed))
    return float(np.sum(accepted)) / total if total else float("nan")
