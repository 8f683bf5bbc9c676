"""The draws of any sampler as a posterior: predict, summarise, judge, save."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inputs.preprocess import Preprocessing
from ..methods.base import Configuration
from ..utils.arrays import FloatArray, IntArray
from ..utils.deprecation import renamed
from ..utils.notebook import Text
from . import predictions
from .describe import acceptance_table, accepted_share, mean_sd, summary
from .diagnostics import diagnose
from .draws import Draws, RunInfo, TrainingData, places, softness, systematic, take
from .explain import explain
from .files import storage
from .polish import best_tree, polished_tree
from .prior import sample_prior
from .representative_tree import (
    Shape,
    SplitCensus,
    feature_inclusion,
    likeliest_shapes,
    representative_draw,
    shape_text,
    split_chains,
)
from .stacking import stacked
from .tree import Tree

if TYPE_CHECKING:
    import xarray

    from ..inputs.encoding import TrainingTable
    from .files.model_record import ModelRecord
    from .loo import Loo


class Posterior:
    """Sampled trees with their weights, and the quantities recorded at each draw.

    Arrays over draws have shape [chain, draw]. Rows and predictions are in the user's units.

    Parameters
    ----------
    draws, info : the results of the run
    preprocessing : the scaling and coding learned from the training data
    configuration : the method of the run, with its parameters
    monitor : ndarray of shape (chain, draw, point), optional
        Predictions at fixed rows, by which ``diagnose`` compares the chains; see ``monitored_at``.
    training : TrainingData, optional
        The rows that the trees were sampled from; see ``without_data``.
    table : TrainingTable, optional
        The table that the rows came from, and how it is encoded.
    provenance : mapping, optional
        Plain values to store in the file; nothing depends on them.
    model : ModelRecord, optional
        The estimator that sampled the trees, for ``hamiltree.load``.
    """

    def __init__(
        self,
        draws: Draws,
        info: RunInfo,
        preprocessing: Preprocessing,
        configuration: Configuration[Any],
        *,
        monitor: FloatArray | None = None,
        training: TrainingData | None = None,
        table: TrainingTable | None = None,
        provenance: Mapping[str, Any] | None = None,
        model: ModelRecord | None = None,
    ) -> None:
        self.draws = draws
        self.preprocessing = preprocessing
        self.configuration = configuration
        self.info = info
        self.monitor = monitor
        self.training = training
        self.table = table
        self.provenance = dict(provenance or {})
        self.model = model

    settings = renamed("configuration", removed_in="0.3.0")

    # ------------------------------------------------------------------ what was recorded

    @property
    def n_chains(self) -> int:
        """Number of chains; for SMC, of islands."""
        return self.draws.n_chains

    @property
    def n_draws(self) -> int:
        """Number of draws per chain."""
        return self.draws.n_draws

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for regression."""
        classes = self.preprocessing.classes
        return 0 if classes is None else len(classes)

    @property
    def weights(self) -> FloatArray:
        """Weights of the draws, which sum to 1; equal for chains unless they are ``stacked``."""
        return self.draws.weights_of_draws

    @property
    def weighted(self) -> bool:
        """Whether some draws count more than others."""
        return not np.allclose(self.weights, 1 / self.weights.size, rtol=1e-6)

    @property
    def n_leaves(self) -> IntArray:
        """Number of leaves of each tree."""
        return self.draws.n_leaves

    @property
    def depth(self) -> IntArray:
        """Number of splits on the longest path of each tree; 0 for a single leaf."""
        return self.draws.depth

    @property
    def log_likelihood(self) -> FloatArray:
        """Log-likelihood of the training rows, on the scale of the model."""
        return self.draws.log_likelihood

    @property
    def log_posterior(self) -> FloatArray:
        """Unnormalised log posterior, of the constrained parameters."""
        return self.draws.log_posterior

    @property
    def sigma(self) -> FloatArray:
        """Standard deviation of the noise, in the user's units; regression only."""
        return self.preprocessing.sd_to_user(predictions.noise_sd(self))

    @property
    def h(self) -> FloatArray:
        """Softness of the splits as a share of a column's range, 0 for hard ones.

        [used column]; where it was learned, [chain, draw] or, by feature, [chain, draw, column].
        """
        if not self.draws.h_learned:
            return self.draws.h
        one = self.draws.h.shape[1] == 1 and not self.configuration.method.h_by_feature
        return self.draws.h.reshape(self.n_chains, self.n_draws, *[] if one else [-1])

    @property
    def log_evidence(self) -> float | None:
        """Log evidence of y in the model's units, for SMC or ``hottest_power=0``; else None."""
        return self.info.log_evidence

    @property
    def log_evidence_error(self) -> float | None:
        """Standard error of ``log_evidence``; NaN for a single island of SMC."""
        return self.info.log_evidence_error

    @property
    def has_particles(self) -> bool:
        """Whether the draws are weighted particles of SMC."""
        return "log_weight" in self.stats

    @property
    def log_evidence_of_chains(self) -> FloatArray | None:
        """Estimate of each island, [chain]; ``log_evidence`` is the log of their mean evidence."""
        weights = self.stats.get("log_weight")
        return None if weights is None else np.logaddexp.reduce(weights, axis=1)

    @property
    def stats(self) -> dict[str, NDArray[Any]]:
        """Quantities that the sampler recorded at each draw, such as "divergent"."""
        return self.info.stats

    @property
    def acceptance(self) -> dict[str, float]:
        """Accepted share of the proposals after warm-up by move; NaN if never proposed."""
        moves = self.info.acceptance.get("sampling", {})
        return {move: accepted_share(*counts) for move, counts in moves.items()}

    def acceptance_table(self) -> Text:
        """Accepted share by move, in warm-up and in sampling, as text that prints itself."""
        return Text(acceptance_table(self.info))

    def tree(self, chain: int, draw: int) -> Tree:
        """The tree of one draw; negative numbers count from the end."""
        for name, index, length in (("chain", chain, self.n_chains), ("draw", draw, self.n_draws)):
            if not -length <= index < length:
                raise IndexError(f"{name} {index} is out of range: there are {length}")
        return self._tree((chain % self.n_chains) * self.n_draws + draw % self.n_draws)

    # ------------------------------------------------------------------ predictions

    # Functions of a posterior: as attributes of the class they are its methods.
    predict_mean = predictions.predict_mean
    predict_mean_std = predictions.predict_mean_std
    predict_draws = predictions.predict_draws
    predict_single_trees = predictions.predict_single_trees
    predict_quantiles = predictions.predict_quantiles
    predict_probability_quantiles = predictions.predict_probability_quantiles
    sample_predictive = predictions.sample_predictive
    pointwise_log_likelihood = predictions.pointwise_log_likelihood
    similarity = predictions.similarity
    monitored_at = predictions.monitored_at
    feature_inclusion = feature_inclusion

    def taken(self, index: ArrayLike) -> Posterior:
        """The trees with these numbers (chain * n_draws + draw), with equal weights, as one chain.

        Records of the chains are left out: statistics, acceptance, evidence, monitor.
        """
        draws = take(self.draws, np.asarray(index, dtype=np.int64))
        return self._with(draws=draws, info=self.info.of_other_draws(), monitor=None)

    def equally_weighted(self, most: int | None = None) -> Posterior:
        """The trees as one chain of equal weights, evenly spaced, at most ``most`` of them.

        Trees of a weighted posterior are repeated, or left out, according to their weights.
        """
        n = self.weights.size if most is None else min(most, self.weights.size)
        return self.taken(systematic(self.weights, n))

    # ------------------------------------------------------------------ one tree to read

    best_tree = best_tree
    split_chains = split_chains

    def representative_tree(self) -> Tree:
        """The draw whose predictions are nearest to the posterior mean.

        The distance of two trees is the mean squared difference of their predictions (class
        probabilities, or means as drawn) at up to 256 training rows, evenly spaced; all draws
        are used, with their weights.

        Raises
        ------
        ValueError
            If the training data were left out of the posterior.
        """
        columns = self.preprocessing.to_unit(self.data("representative_tree").X)
        values = predictions.values_of_leaves(self)
        return self._tree(representative_draw(self, values, columns)).settled()

    def shapes(self, n: int = 5) -> list[Shape]:
        """The ``n`` most probable shapes of tree, likeliest first, each with its best tree.

        A shape is the topology and the feature of each split, ignoring thresholds; for HMC-DFI the
        topology alone. Probabilities are weighted shares of the draws.
        """
        found = []
        for probability, numbers in likeliest_shapes(self, n):
            best = numbers[self.log_posterior.ravel()[numbers].argmax()]
            tree = self._tree(int(best)).settled()
            found.append(Shape(probability, len(numbers), tree, shape_text(tree)))
        return found

    def data(self, purpose: str) -> TrainingData:
        """The training data; a ``ValueError`` that names the purpose where they were left out."""
        if self.training is None:
            raise ValueError(
                f"{purpose} needs the training data, which were left out of this posterior"
            )
        return self.training

    def without_data(self) -> Posterior:
        """A copy without the training rows, for files that others may see.

        Predictions and diagnostics are the same; what needs the rows raises an error that says so.
        """
        return self._with(training=None)

    # ------------------------------------------------------------------ summaries and files

    diagnose = diagnose
    sample_prior = sample_prior
    explain = explain
    stacked = stacked

    def summary(self) -> Text:
        """The posterior on one screen, as text that prints itself."""
        return Text(summary(self))

    def loo(self) -> Loo:
        """Leave-one-out cross-validation and its reliability; prints as text.

        ``hamiltree.compare`` compares several models by it.
        """
        from .loo import loo

        return loo(self)

    def to_datatree(self, *, pointwise: bool = True) -> xarray.DataTree:
        """A ``DataTree`` that ArviZ understands; see docs/plots.md for its groups.

        Parameters
        ----------
        pointwise : bool
            Whether to make the groups over draws and training rows: log_likelihood (which ``loo``
            and ``compare`` need) and posterior_predictive. They, and observed_data, need the
            training data, and are left out without them.

        Raises
        ------
        ValueError
            If the pointwise groups would take more than 4 GiB.
        """
        from .export.datatree import to_datatree  # loads xarray, which nothing else here needs

        return to_datatree(self, pointwise=pointwise)

    def to_onnx(self, *, hard: bool = False) -> Any:
        """The posterior mean as an ONNX model (an ``onnx.ModelProto``); needs the extra "onnx".

        Parameters
        ----------
        hard : bool
            Needed for soft splits: each row then follows the more probable side of every split, so
            predictions change near thresholds, and imputed cells are means of their columns.

        Returns
        -------
        onnx.ModelProto
            Input ``X``: float64 rows of all columns in training order, NaN for missing cells and
            numbers for levels, see docs/tables.md. Output, float32: ``probabilities``
            [row, class], or ``mean_of_y`` [row, 1] in y's units.

        Raises
        ------
        ValueError
            For soft splits without ``hard``, and for weighted splits (HMC-DFI).
        """
        from .export.onnx_model import to_onnx

        return to_onnx(self, hard=hard)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one NetCDF file, replacing it only once it is complete."""
        storage.write(
            path, self.draws, self.info, self.preprocessing, self.configuration, self.monitor,
            self.training, self.table, self.provenance, self.model,
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read a file that ``save`` wrote; it is checked, and nothing in it is run."""
        return cls(**vars(storage.read(path)))

    def __repr__(self) -> str:
        method, leaves = self.configuration.method.name, mean_sd(self.n_leaves, self.weights)
        size = f"{self.n_chains} chains x {self.n_draws} draws"
        return f"<Posterior of {method.upper()} trees: {size}, {leaves} leaves>"

    def _repr_html_(self) -> str:
        from .notebook import posterior_html

        return posterior_html(self)

    def _with(self, **parts: Any) -> Posterior:
        """A copy with other parts in their place."""
        names = (field.name for field in fields(storage.Contents))
        return Posterior(**{name: getattr(self, name) for name in names} | parts)

    def _tree(self, t: int) -> Tree:
        """Tree number t of all chains together."""
        nodes, splits, leaves = places(self.draws, t)
        return Tree(
            size=self.draws.size[nodes],
            feature=self.draws.feature[splits],
            threshold=self.draws.threshold[splits],
            levels=None if self.draws.levels is None else self.draws.levels[splits],
            kinds=self.draws.kinds,
            weights=self.draws.split_weights[splits],
            leaf=self.draws.leaf[leaves],
            h=softness(self.draws, t, len(self.preprocessing.used)),
            preprocessing=self.preprocessing,
            method=self.configuration.method,
            sigma=float(self.draws.sigma.ravel()[t]),
            training=self.training,
            census=self._census,
            log_posterior=float(self.draws.log_posterior.ravel()[t]),
        )

    @cached_property
    def _best(self) -> Tree:
        return polished_tree(self) or self.best_tree(polish=False)

    @cached_property
    def _census(self) -> SplitCensus | None:
        if self.training is None:
            return None
        return SplitCensus(self.draws, self.preprocessing.to_unit(self.training.X))
