"""The posterior over decision trees as scikit-learn estimators."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    _fit_context,
    is_regressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import run
from .diagnostics import agree
from .draws import Draws, FloatArray, RunInfo, TrainingData, systematic
from .gathering import parted
from .keeper import Keeper
from .parameters import (
    CONSTRAINTS,
    SETTING_NAMES,
    check,
    check_length,
    check_positive,
    check_warm_start,
    documented,
)
from .posterior import Posterior
from .preprocess import Preprocessing, learn, only_numbers, refuse_missing
from .settings import RUN_LENGTHS, Settings, resolve
from .snapshot import Snapshot

N_MONITORED = 20  # training rows at which the chains' predictions are compared
INTERVAL_SEED = 0  # intervals are part of the answer: the same each time they are asked for

EXACT_FLOATS = 2.0**53  # up to here a float64 keeps every whole number apart

Pair = Sequence[float]
RandomState = int | np.random.RandomState | None


@dataclass(kw_only=True, eq=False, repr=False)
class _BayesianTree(BaseEstimator, ABC):
    """What both estimators share; a dataclass, because ``__init__`` may only store."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    method: str = "hmc-df"
    preset: str | None = None
    n_chains: int | None = None
    n_warmup: int | None = None
    n_draws: int | None = None
    target_rhat: float | None = None
    max_draws: int | None = None
    h: float | Sequence[float] | str | None = None
    h_by_feature: bool = False
    h_prior: Pair | None = None
    alpha_split: float | None = None
    beta_split: float | None = None
    min_leaves: int | None = None
    max_leaves: int | None = None
    tau_prior: Pair | None = None
    feature_prior: Sequence[float] | None = None
    weight_prior: float | None = None
    rule_prior: str | None = None
    expected_splits: float | None = None
    left_share: float | None = None
    proposals: int | None = None
    triples: int | None = None
    split_proposal: str | None = None
    resampling: str | None = None
    ess_threshold: float | None = None
    min_size: int | None = None
    moves: str | None = None
    h_init: float | Sequence[float] | None = None
    informed_moves: Sequence[str] | None = None
    replicas: int | None = None
    index_update: str | None = None
    scheme: str | None = None
    adapt: str | None = None
    inner_steps: int | None = None
    adapt_steps: int | None = None
    move_probs: Sequence[float] | None = None
    warmup_move_probs: Sequence[float] | None = None
    acceptance: str | None = None
    warmup_acceptance: str | None = None
    target_accept: float | None = None
    max_nuts_depth: int | None = None
    warm_start: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 60.0
    dtype: str = "float64"
    n_jobs: int | None = None
    random_state: RandomState = None
    progress: bool | None = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Sample trees from the posterior given the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Constant columns are ignored, with a warning.
        y : array-like of shape (n_samples,)
            Class labels of any type, or numbers.

        Returns
        -------
        self
            With ``posterior_``. A ConvergenceWarning says when the chains do not agree; after
            Ctrl-C or SIGTERM the draws made so far are kept, with a warning that says how to go
            on. ``posterior_.info.stopped`` says what ended the run: "n_draws", "target",
            "max_draws" or "interrupted".
        """
        check_warm_start(self.method, self.warm_start)
        with only_numbers(X=X, y=y):
            rows, target = validate_data(
                self, X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=is_regressor(self)
            )
        refuse_missing(target)
        preprocessing, coded, n_classes = self._learn(rows, target)
        settings = self._settings(preprocessing, n_classes)
        lengths = dict(RUN_LENGTHS[self.preset])
        lengths.update((name, n) for name in lengths if (n := getattr(self, name)) is not None)
        keeper = Keeper(self.checkpoint, self.checkpoint_seconds, self._held())
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if keeper.seed is not None and not isinstance(self.random_state, Integral):
            seed = keeper.seed  # the user left it to us, and this is what it was
        limit = check_length(self.method, lengths["n_draws"], self.target_rhat, self.max_draws)
        provenance: dict[str, Any] = {**lengths, "seed": seed}
        known = np.asarray(target, np.float64) if n_classes == 0 else coded
        training = TrainingData(rows, known)
        monitored = np.linspace(0, len(rows) - 1, min(N_MONITORED, len(rows))).round()

        def posterior_of(draws: Draws, info: RunInfo) -> Posterior:
            posterior = Posterior(
                draws, info, preprocessing, settings, provenance=provenance, training=training
            )
            return posterior.monitored_at(rows[monitored.astype(int)], n_jobs=self.n_jobs)

        goal = None
        if (max_rhat := self.target_rhat) is not None:
            provenance |= {"target_rhat": float(max_rhat), "max_draws": int(limit)}
            goal = run.Goal(lambda *drawn: agree(posterior_of(*drawn), max_rhat), limit)
        drawn = run.sample(
            run.Problem(columns=preprocessing.columns_of(rows), y=coded, n_classes=n_classes),
            settings,
            n_chains=lengths["n_chains"],
            n_warmup=lengths["n_warmup"],
            n_draws=lengths["n_draws"],
            goal=goal,
            n_jobs=self.n_jobs,
            seed=seed,
            progress=self.progress,
            keeper=keeper,
        )
        # A copy, whatever becomes of the caller's; now that the sampler's memory is free again.
        training = TrainingData(rows.copy(), known.copy())
        self.posterior_ = posterior_of(*drawn)
        self._chains = _without_what_is_kept(keeper.held, self.posterior_.n_draws)
        self._tell_of_the_run(limit, keeper)
        return self

    def single_tree_score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Score each draw as one tree, then average, as the paper does.

        Each row goes to its most likely leaf. Accuracy for classification, mean squared error for
        regression: a single tree's, where ``score`` judges the average of all trees.
        """
        check_is_fitted(self)
        with only_numbers(X=X, y=y):
            rows, target = validate_data(
                self, X, y, reset=False, dtype=np.float64, y_numeric=is_regressor(self)
            )
        refuse_missing(target)
        posterior = self.posterior_
        total = 0.0
        step = max(1, 10_000_000 // posterior.weights.size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            trees = posterior.predict_single_trees(rows[part], n_jobs=self.n_jobs)
            loss = self._tree_score(trees, np.asarray(target)[part])
            total += float(np.sum(posterior.weights * loss.sum(axis=2)))
        return total / len(rows)

    def sample_predictive(
        self, X: ArrayLike, n_samples: int | None = None, random_state: RandomState = None
    ) -> NDArray[Any]:
        """Draw new observations from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, optional
            As many as there are draws, unless given; draws are used as evenly as possible.
        random_state : int or RandomState, optional

        Returns
        -------
        ndarray of shape (n_samples, n_rows)
            Labels or targets. Those of one sample come from one tree, so they belong together.
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
        return chosen.sample_predictive(rows, rng, n_jobs=self.n_jobs)[0]

    @property
    def feature_importances_(self) -> FloatArray:
        """Posterior inclusion, [n_features_in_]: the share of splits on each column; sums to 1.

        Zero for constant columns, and everywhere if no tree splits. Not defined for HMC-DFI,
        whose splits use every column.
        """
        check_is_fitted(self)
        if self.posterior_.settings.method == "hmc-dfi":
            raise AttributeError(
                "every split of hmc-dfi uses all columns, with weights barely sharper than their "
                "prior: use sklearn.inspection.permutation_importance"
            )
        return self.posterior_.feature_inclusion()

    @property
    def h_(self) -> FloatArray:
        """Softness of a split on each column as a share of its range, [n_features_in_].

        What ``h`` said or, with h="auto", what was chosen; with h="learn", its posterior mean.
        NaN for constant columns.
        """
        check_is_fitted(self)
        posterior = self.posterior_
        h = np.full(len(posterior.preprocessing.feature_names), np.nan)
        mean = posterior.draws.h.mean(axis=0) if posterior.draws.h_learned else posterior.draws.h
        h[posterior.preprocessing.used] = mean
        return h

    @abstractmethod
    def _learn(self, X: FloatArray, y: NDArray[Any]) -> tuple[Preprocessing, NDArray[Any], int]:
        """Preprocessing, the target as the model sees it, and the number of classes or 0."""

    @abstractmethod
    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        """Score of each [chain, draw, row] on its own."""

    def _rows(self, X: ArrayLike) -> FloatArray:
        """Rows to predict, checked against the training columns."""
        check_is_fitted(self)
        with only_numbers(X=X):
            rows: FloatArray = validate_data(
                self, X, reset=False, dtype=np.float64, ensure_min_samples=0
            )
        return rows

    def _settings(self, preprocessing: Preprocessing, n_classes: int) -> Settings:
        """The preset, with what the user set; the prior of the features for the used columns."""
        overrides = {
            name: _plain(getattr(self, name)) for name in SETTING_NAMES if hasattr(self, name)
        }
        n_features = len(preprocessing.feature_names)
        prior = overrides["feature_prior"]
        if prior is not None:
            check_positive("feature_prior", prior, n_features, f"{n_features} positive numbers")
            overrides["feature_prior"] = tuple(prior[column] for column in preprocessing.used)
        for name in ("h", "h_init"):
            if isinstance(overrides[name], tuple):
                overrides[name] = _of_used(name, overrides[name], preprocessing)
        filled = resolve(self.preset, overrides, regression=n_classes == 0)
        settings = _spread_mass(filled, overrides, n_classes)
        check(settings, n_classes)
        return settings

    def _held(self) -> Snapshot | None:
        """The run that ``warm_start`` goes on from."""
        chains: Snapshot | None = getattr(self, "_chains", None)
        if not self.warm_start or chains is None or chains.pieces:
            return chains if self.warm_start else None
        return replace(chains, pieces=parted(self.posterior_.draws, self.posterior_.info.stats))

    def _tell_of_the_run(self, limit: int, keeper: Keeper) -> None:
        posterior = self.posterior_
        stale = keeper.failure is not None
        if posterior.info.interrupted:
            most = f"at most {limit}" if self.target_rhat is not None else f"{limit}"
            how = "fit again with warm_start=True to go on"
            if keeper.target is not None and not stale:
                how = f"the same call goes on from {self.checkpoint}"
            elif self.method == "smc":
                how = "they are all there are"
            warnings.warn(
                f"interrupted: kept the {posterior.n_draws} of {most} draws a chain that were "
                f"made so far; {how}",
                UserWarning,
                stacklevel=4,
            )
        if stale:
            warnings.warn(
                f"{keeper.failure}. It is not up to date; the draws are all here, keep them with "
                "posterior_.save",
                UserWarning,
                stacklevel=4,
            )
        diagnosis = posterior.diagnose()
        if not diagnosis.converged:
            warnings.warn(diagnosis.sentence, ConvergenceWarning, stacklevel=4)
        elif self.progress:
            print(diagnosis.sentence, file=sys.stderr)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTreeClassifier(ClassifierMixin, _BayesianTree):
    """Classify by the posterior distribution over decision trees.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    posterior_ : Posterior
        Every sampled tree, diagnostics, files and plots.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of splits on each column.
    h_ : ndarray of shape (n_features_in_,)
        Softness on each column: as given, as chosen, or the posterior mean.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string names.

    Examples
    --------
    >>> from hamiltree import BayesianTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianTreeClassifier(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> model.predict_proba(X[:1]).round(2)  # doctest: +SKIP
    array([[0.96, 0.02, 0.02]])
    """

    class_prior: float | Sequence[float] | None = None
    class_mass: float | None = None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of highest posterior mean probability, [n]."""
        probabilities = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior mean of the class probabilities, [n, n_classes] in the order of classes_."""
        rows = self._rows(X)
        return self.posterior_.predict_mean(rows, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Logarithm of ``predict_proba``."""
        return np.log(self.predict_proba(X))

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> FloatArray:
        """Credible intervals of the class probabilities, [n, n_classes, 2].

        Central, over the sampled trees and the uncertainty of the probabilities in their leaves.
        """
        tails = _tails(coverage)
        rows = self._rows(X)
        quantiles = self.posterior_.predict_probability_quantiles(
            rows, tails, INTERVAL_SEED, n_jobs=self.n_jobs
        )
        return np.moveaxis(quantiles, 0, 2)

    def _learn(self, X: FloatArray, y: NDArray[Any]) -> tuple[Preprocessing, NDArray[Any], int]:
        if y.dtype.kind == "f" and np.abs(y).max() >= EXACT_FLOATS:
            raise ValueError(
                "class labels of 2**53 and more cannot be told apart as floating-point numbers: "
                "give y as texts, or as an array of integers"
            )
        try:
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise TypeError(f"class labels of different types have no order: {error}") from None
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes; got 1 class")
        names = getattr(self, "feature_names_in_", None)
        return learn(X, names, classes=self.classes_, dtype=self.dtype), codes, len(self.classes_)

    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        return (trees == y).astype(np.float64)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BayesianTreeRegressor(RegressorMixin, _BayesianTree):
    """Regress by the posterior distribution over decision trees.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    posterior_ : Posterior
        Every sampled tree, diagnostics, files and plots.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of splits on each column.
    h_ : ndarray of shape (n_features_in_,)
        Softness on each column: as given, as chosen, or the posterior mean.
    n_features_in_ : int
        Number of columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string names.

    Examples
    --------
    >>> from hamiltree import BayesianTreeRegressor
    >>> from hamiltree.datasets import make_cgm
    >>> data = make_cgm(200, random_state=0)
    >>> model = BayesianTreeRegressor(random_state=0).fit(data.data, data.target)  # doctest: +SKIP
    >>> mean, sd = model.predict(data.data, return_std=True)  # doctest: +SKIP
    """

    mu_prior: Pair | None = None
    sigma_prior: Pair | None = None
    variance: str | None = None
    variance_prior: Pair | None = None
    mean_prior: Pair | None = None
    leaf_means: str | None = None
    standardize: bool = True

    def predict(
        self, X: ArrayLike, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Posterior mean of the target, [n], in its units.

        With ``return_std`` also the sd of a new observation: disagreement of the trees and noise.
        """
        rows = self._rows(X)
        if return_std:
            return self.posterior_.predict_mean_std(rows, n_jobs=self.n_jobs)
        return self.posterior_.predict_mean(rows, n_jobs=self.n_jobs)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> FloatArray:
        """Central posterior predictive intervals of new observations, noise included, [n, 2]."""
        tails = _tails(coverage)
        rows = self._rows(X)
        return self.posterior_.predict_quantiles(rows, tails, n_jobs=self.n_jobs).T

    def _learn(self, X: FloatArray, y: NDArray[Any]) -> tuple[Preprocessing, NDArray[Any], int]:
        names = getattr(self, "feature_names_in_", None)
        target = y.astype(np.float64)
        preprocessing = learn(X, names, y=target, standardize=self.standardize, dtype=self.dtype)
        return preprocessing, preprocessing.y_to_model(target), 0

    def _tree_score(self, trees: NDArray[Any], y: NDArray[Any]) -> FloatArray:
        squares: FloatArray = (trees - y) ** 2
        return squares


def _tails(coverage: float) -> tuple[float, float]:
    """Lower and upper tail of a central interval."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}")
    return (1 - coverage) / 2, (1 + coverage) / 2


def _of_used(name: str, value: tuple[Any, ...], preprocessing: Preprocessing) -> tuple[float, ...]:
    """Softness of the used columns from that of all."""
    n = len(preprocessing.feature_names)
    numbers = np.array([v if isinstance(v, Real) else np.nan for v in value], np.float64)
    if len(numbers) != n or not ((numbers >= 0) & np.isfinite(numbers)).all():
        raise ValueError(
            f"{name} must be a number, or one for each of the {n} columns, none negative; "
            f"got {value!r}"
        )
    return tuple(float(numbers[column]) for column in preprocessing.used)


def _spread_mass(settings: Settings, overrides: dict[str, Any], n_classes: int) -> Settings:
    """Make class_prior of class_mass; the user's own class_prior wins over a preset's mass."""
    if not n_classes or settings.class_mass is None:
        return replace(settings, class_mass=None)
    if overrides["class_prior"] is not None:
        if overrides["class_mass"] is not None:
            raise ValueError("set class_prior or class_mass, not both")
        return replace(settings, class_mass=None)
    return replace(settings, class_prior=(settings.class_mass / n_classes,) * n_classes)


def _without_what_is_kept(held: Snapshot | None, n_draws: int) -> Snapshot | None:
    """The chains' draws are those of the posterior, unless some have made more."""
    if held is None:
        return None
    made = {int(piece.filled[0]) for pieces in held.pieces for piece in pieces}
    return replace(held, pieces=()) if made == {n_draws} else held


def _plain(value: Any) -> Any:
    """NumPy's values as Python's and sequences as tuples, which settings keep and files store."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(value) if isinstance(value, list) else value
