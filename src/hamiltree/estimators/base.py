"""What both estimators share: the run, and what can be asked of both kinds of posterior."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..inputs.columns import as_frame, learn_table, names_of, read_table, without_na
from ..inputs.columns import coded as coded_rows
from ..inputs.preprocess import Preprocessing
from ..inputs.refusals import only_numbers, refuse_missing, refuse_text_target
from ..inputs.weights import counted, sampled_order, weights_of
from ..methods import Method, chosen
from ..methods.base import LENGTHS, SHARED, Configuration
from ..methods.common import softness_of_used
from ..methods.parameters import checked, declared
from ..posterior import Posterior
from ..posterior.diagnostics import agree
from ..posterior.draws import Draws, RunInfo, TrainingData, systematic
from ..running import run
from ..running.checkpoints import Checkpoints, Snapshot
from ..utils.arrays import FloatArray
from .fitted import Fitted
from .parameters import MAX_DRAWS_FACTOR, EstimatorParameters, RandomState
from .record import record_of

ENDLESS = sys.maxsize
"""Draws of a chain that only its time limits."""
N_MONITORED = 20  # training rows at which the chains' predictions are compared


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTree(Fitted, EstimatorParameters, ABC):
    """What both estimators share."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Sample trees from the posterior given the training data.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            Numbers, of which some may be missing (NaN, None); columns of a pandas, polars or
            pyarrow table may also be categories, see ``categorical_features``. Constant columns are
            ignored, with a warning.
        y : array-like of shape (n_samples,)
            Class labels of any type, or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each row counts for: a row of weight 2 counts as two rows, one of weight 0
            is ignored. Any finite, non-negative numbers. Whole-number weights of up to 4 on average
            give exactly the draws of the repeated rows.

        Returns
        -------
        self
            With ``posterior_``. A ConvergenceWarning is issued if the chains do not agree. After
            Ctrl-C the draws made so far are kept, with a warning that says how to continue; a
            second Ctrl-C ends the fit at once. SIGTERM ends the process with status 143, after the
            checkpoint, if there is one, is written. ``posterior_.info.stopped`` says what ended the
            run: "n_draws", "target", "max_draws", "max_seconds" or "interrupted".
        """
        values = {f.name: checked(self, f) for f in declared(self)}
        method = chosen(self.method, self.preset)
        method.refuse_unused(values)
        numbers, columns = learn_table(X, values["categorical_features"])
        if is_regressor(self):
            refuse_text_target(y)
        with only_numbers(X=numbers, y=y):
            rows, target = validate_data(
                self,
                numbers,
                y,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                y_numeric=is_regressor(self),
            )
        refuse_missing(target)
        rows, target, weights, columns = counted(
            rows,
            target,
            self._with_class_weights(weights_of(sample_weight, len(rows)), target),
            columns,
        )
        rows, names = coded_rows(rows), _names_of(numbers)
        about = {
            "feature_names": names,
            "columns": columns,
            "dtype": self.dtype,
            "expand": method.takes_numbers_only,
            "impute": method.imputes(values["h"]),
        }
        # What the sampler sees; all that is told of the training rows is told in the user's order.
        order = sampled_order(rows, target, weights)
        if order is None:
            sampled = TrainingData(rows, target, weights)
        else:
            sampled = TrainingData(rows[order], target[order])
        preprocessing, coded, n_classes = self._learn(sampled, about)
        configuration = self._configuration(method, values, preprocessing, n_classes)
        lengths = method.filled({name: values[name] for name in LENGTHS})
        lengths["n_warmup"] = lengths["n_warmup"] or 0
        checkpoints = Checkpoints(
            self.checkpoint, self.checkpoint_seconds, self._held(), hold=self.warm_start
        )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if checkpoints.seed is not None and not isinstance(self.random_state, Integral):
            seed = checkpoints.seed  # the user left it to us, and this is what it was
        limit = _most_draws(
            lengths["n_draws"], self.target_rhat, self.max_draws, self.max_seconds is not None
        )
        known = np.asarray(target, np.float64) if n_classes == 0 else coded
        if n_classes and order is not None:
            known = np.empty(len(rows), coded.dtype)
            known[order] = coded
        training = TrainingData(rows, known, weights)
        monitored = np.linspace(0, len(rows) - 1, min(N_MONITORED, len(rows))).round()

        def posterior_of(draws: Draws, info: RunInfo) -> Posterior:
            if self.max_seconds is not None:
                info = replace(info, max_seconds=float(self.max_seconds))
            if self.target_rhat is not None:
                most = None if limit == ENDLESS else int(limit)
                info = replace(info, target_rhat=float(self.target_rhat), max_draws=most)
            posterior = Posterior(draws, info, preprocessing, configuration, training=training)
            return posterior.monitored_at(rows[monitored.astype(int)], n_jobs=self.n_jobs)

        goal = None
        if (max_rhat := self.target_rhat) is not None:
            goal = run.Goal(lambda *drawn: agree(posterior_of(*drawn), max_rhat), limit)
        drawn = run.sample(
            run.Problem(
                preprocessing.columns_of(sampled.X),
                coded,
                n_classes,
                sampled.weights,
                preprocessing.kinds,
                preprocessing.used_names,
            ),
            configuration,
            n_chains=lengths["n_chains"],
            n_warmup=lengths["n_warmup"],
            n_draws=lengths["n_draws"],
            goal=goal,
            max_seconds=self.max_seconds,
            n_jobs=self.n_jobs,
            seed=seed,
            progress=self.progress,
            checkpoints=checkpoints,
        )
        # A copy, whatever becomes of the caller's; now that the sampler's memory is free again.
        training = TrainingData(rows.copy(), known.copy(), weights)
        self.posterior_ = posterior_of(*drawn)
        self.posterior_.model = record_of(self)
        self._chains = checkpoints.held
        self._tell_of_the_run(limit, checkpoints)
        return self

    def single_tree_score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Score each draw as a single tree, then average, as the paper does.

        Each row goes to its most probable leaf. The score is accuracy for classification and mean
        squared error for regression. In contrast, ``score`` judges the average of all trees.
        """
        check_is_fitted(self)
        numbers = self._read(X)
        with only_numbers(X=numbers, y=y):
            rows, target = validate_data(
                self,
                numbers,
                y,
                reset=False,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                y_numeric=is_regressor(self),
            )
        refuse_missing(target)
        rows = coded_rows(rows)
        row_weights = weights_of(sample_weight, len(rows))
        posterior = self.posterior_
        total = 0.0
        step = max(1, 10_000_000 // posterior.weights.size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            trees = posterior.predict_single_trees(rows[part], n_jobs=self.n_jobs)
            loss = self._tree_score(trees, np.asarray(target)[part])
            total += float(np.sum(posterior.weights * (loss @ row_weights[part])))
        return total / float(row_weights.sum())

    def sample_predictive(
        self, X: ArrayLike, n_samples: int | None = None, random_state: RandomState = None
    ) -> NDArray[Any]:
        """Draw new observations from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, optional
            By default as many as there are draws; draws are used as evenly as possible.
        random_state : int or RandomState, optional

        Returns
        -------
        ndarray of shape (n_samples, n_rows)
            Labels or targets. Those of one sample come from the same tree.
        """
        rows = self._rows(X)
        weights = self.posterior_.weights.ravel()
        n_samples = len(weights) if n_samples is None else n_samples
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        # equal weights and n_samples = draws use every draw once, in order
        draw = systematic(weights, n_samples, rng.random())
        chosen = self.posterior_.taken(draw)
        samples: NDArray[Any] = chosen.sample_predictive(rows, rng, n_jobs=self.n_jobs)[0]
        return samples

    @property
    def feature_importances_(self) -> FloatArray:
        """Posterior inclusion, [n_features_in_]: the share of splits on each column; sums to 1.

        Zero for constant columns, and for all columns if no tree splits. Not defined for HMC-DFI,
        whose splits use every column.
        """
        check_is_fitted(self)
        if self.posterior_.draws.split_weights.shape[1]:
            raise AttributeError(
                "every split of hmc-dfi uses all columns, with weights that say nothing about "
                "importance: use sklearn.inspection.permutation_importance"
            )
        return self.posterior_.feature_inclusion()

    @property
    def h_(self) -> FloatArray:
        """Softness of a split on each column as a share of its range, [n_features_in_].

        The given ``h``; with h="auto", the chosen one; with h="learn", the posterior mean.
        NaN for constant columns.
        """
        check_is_fitted(self)
        posterior = self.posterior_
        h = np.full(len(posterior.preprocessing.feature_names), np.nan)
        mean = posterior.draws.h.mean(axis=0) if posterior.draws.h_learned else posterior.draws.h
        h[posterior.preprocessing.used] = mean
        return h

    def _with_class_weights(self, weights: FloatArray, y: NDArray[Any]) -> FloatArray:
        """Only classification has classes."""
        return weights

    @abstractmethod
    def _learn(
        self, training: TrainingData, about: dict[str, Any]
    ) -> tuple[Preprocessing, NDArray[Any], int]:
        """Preprocessing, the target as the model sees it, and the number of classes or 0.

        ``training.y`` are the user's labels or numbers; ``about`` goes to ``preprocess.learn``.
        """

    @abstractmethod
    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        """Score of each [chain, draw, row] on its own."""

    def _rows(self, X: ArrayLike) -> FloatArray:
        """Rows to predict, checked against the training columns."""
        check_is_fitted(self)
        numbers = self._read(X)
        with only_numbers(X=numbers):
            rows: FloatArray = validate_data(
                self,
                numbers,
                reset=False,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=0,
            )
        return coded_rows(rows)

    def _read(self, X: Any) -> Any:
        """New rows as numbers, where training had categories or the rows are a table."""
        scale, frame = self.posterior_.preprocessing, as_frame(X)
        if frame is None and not scale.columns:
            return without_na(X)
        if frame is not None and not hasattr(self, "feature_names_in_"):
            scale.check_names(names_of(frame))  # which scikit-learn does where all are texts
        return read_table(X, scale.columns, scale.feature_names)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _configuration(
        self, method: Method, values: dict[str, Any], used: Preprocessing, n_classes: int
    ) -> Configuration[Any]:
        """The method with its shared values, for the columns that are not constant; checked."""
        columns, n_features = used.used.tolist(), len(used.feature_names)
        shared = {name: values[name] for name in SHARED}
        shared["h"] = softness_of_used("h", shared["h"], columns, n_features)
        configuration = method.for_columns(columns, n_features).configured(
            regression=n_classes == 0, **shared
        )
        configuration.method.check(configuration, n_classes)
        return configuration

    def _held(self) -> Snapshot | None:
        """The run that ``warm_start`` goes on from; None for the first fit."""
        if not self.warm_start or not hasattr(self, "posterior_"):
            return None
        held: Snapshot | None = getattr(self, "_chains", None)
        if held is None and self.checkpoint is None:
            raise ValueError(
                "warm_start=True has no chains to continue, because the last fit did not keep "
                "them: set it before the first fit, or start again with clone(estimator)"
            )
        return held

    def _tell_of_the_run(self, limit: int, checkpoints: Checkpoints) -> None:
        posterior = self.posterior_
        stale = checkpoints.failure is not None
        if posterior.info.interrupted:
            most = f"at most {limit}" if self.target_rhat is not None else f"{limit}"
            how = "fit again with warm_start=True to continue"
            if checkpoints.target is not None and not stale:
                how = f"the same call resumes from {self.checkpoint}"
            elif "warm_start" in posterior.configuration.method.unused:
                how = "this method cannot continue a run"
            warnings.warn(
                f"interrupted: kept the {posterior.n_draws} of {most} draws per chain that "
                f"were made so far; {how}",
                UserWarning,
                stacklevel=3,
            )
        if stale:
            warnings.warn(
                f"{checkpoints.failure}. It is not up to date; the model has all draws: save them "
                "with posterior_.save",
                UserWarning,
                stacklevel=3,
            )
        diagnosis = posterior.diagnose()
        if not diagnosis.converged:
            warnings.warn(diagnosis.sentence, ConvergenceWarning, stacklevel=3)
        elif self.progress:
            print(diagnosis.sentence, file=sys.stderr)


def _names_of(rows: Any) -> tuple[str, ...] | None:
    """Names of the columns as texts, of a table whatever their type is."""
    columns = getattr(rows, "columns", None)
    return None if columns is None else tuple(str(name) for name in columns)


def _most_draws(
    n_draws: int, target_rhat: float | None, max_draws: int | None, in_time: bool
) -> int:
    """The most draws that a chain may make; refuses limits that contradict each other.

    ``in_time``: whether the time of the run is limited.
    """
    if target_rhat is None:
        if max_draws is not None:
            raise ValueError(
                f"max_draws={max_draws} only limits a run with target_rhat: set target_rhat too "
                "(such as 1.01), or n_draws instead"
            )
        return n_draws
    if max_draws is None:
        return ENDLESS if in_time else MAX_DRAWS_FACTOR * n_draws
    if max_draws < n_draws:
        raise ValueError(f"max_draws={max_draws} is smaller than n_draws={n_draws}")
    return max_draws


def tails_of(coverage: float) -> tuple[float, float]:
    """Lower and upper tail of a central interval."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}")
    return (1 - coverage) / 2, (1 + coverage) / 2
