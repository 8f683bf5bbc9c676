"""Inputs to the unit interval, targets to standard units, and back to the user's units."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from ..core.tree.kinds import IMPUTED_UNIT, MISSING, Kinds
from ..utils.arrays import FloatArray, IntArray
from .columns import CodedRows, Column, as_frame, coded, kinds_of, number_column, read_table
from .imputation import Imputation, learn_imputation
from .refusals import only_numbers

FAR = 1e30  # stands for "infinitely far outside": finite, so that 0 * FAR is not NaN
ROWS_PER_BLOCK = 4096
RAW_LIMIT = 1e100  # squares of larger raw targets overflow
TARGET_LIMIT = 1e300  # predictions a million sd away must still be finite


@dataclass(frozen=True)
class Preprocessing:
    """What was learned from the training data to put rows and targets on the model's scale."""

    feature_names: tuple[str, ...]
    """All columns of the input; x0, x1, ... where the user gave no names."""
    used: IntArray
    """[p]; the input columns that are not constant, ascending. The model sees only these."""
    minimum: FloatArray
    """[p]; of the used columns in the training data."""
    span: FloatArray
    """[p]; maximum - minimum, finite and positive."""
    classes: NDArray[Any] | None
    """[K] sorted labels of the user's own type; None for regression."""
    y_mean: float = 0.0
    """In the user's units; 0 for classification and for raw targets."""
    y_sd: float = 1.0
    """Population sd (ddof 0) in the user's units; 1 where ``y_mean`` is 0 by definition."""
    dtype: str = "float64"
    """Of the inputs on the unit interval: what is not a float32 is rounded to one, or not."""
    columns: tuple[Column, ...] = ()
    """What each column of the input was; () where all are numbers without missing cells. A category
    has minimum 0 and span 1: its codes stay what they are."""
    indicator: IntArray | None = None
    """[p] for methods that take numbers only: of a category there is a column for each level (for
    the second of two), 1 where a row has it, and this is its code; -1 for numbers. ``used`` then
    has an entry for each of them, and missing cells are filled in. None for other methods."""
    fill: FloatArray | None = None
    """[p], with ``indicator``: means of the training data on the unit interval, which stand for
    missing cells and levels never seen."""
    imputation: Imputation | None = None
    """How missing numbers are imputed for rules that ask for it; None where no rule does."""

    @property
    def kinds(self) -> Kinds | None:
        """What the used columns are, for the samplers; None where all are plain numbers."""
        if self.indicator is not None:
            return None
        return kinds_of(self.columns, self.used, self.imputation is not None)

    @property
    def has_missing(self) -> NDArray[np.bool_]:
        """[p]; used columns of numbers that had missing cells in training."""
        columns = [self.column(place) for place in range(len(self.used))]
        return np.array([column.missing and column.levels is None for column in columns])

    def column(self, place: int) -> Column:
        """What the used column of this number was in training."""
        return self.columns[self.used[place]] if self.columns else Column()

    @property
    def used_names(self) -> tuple[str, ...]:
        """Names of the used columns, [p]."""
        if self.indicator is None:
            return tuple(self.feature_names[column] for column in self.used)
        return tuple(
            self.feature_names[column]
            + ("" if code < 0 else f"={self.columns[column].label(int(code))}")
            for column, code in zip(self.used, self.indicator, strict=True)
        )

    def to_unit(self, X: ArrayLike) -> FloatArray:
        """Rows [n, all columns] to columns [p, n]: the training data fill [0, 1] exactly.

        Rows outside the training range go outside [0, 1], at most to +-1e30; cells that are missing
        are ``MISSING`` or imputed, and categories codes, see ``core.tree.kinds``.
        """
        columns = self._scaled(self.rows(X))
        if self.dtype != "float64":
            columns = columns.astype(self.dtype).astype(np.float64)
        return columns

    def columns_of(self, X: FloatArray) -> UnitColumns:
        """The same of the training data, for the sampler to fetch in parts."""
        return UnitColumns(self, X)

    def imputed(self, X: ArrayLike) -> FloatArray:
        """Rows [n, all columns] in the user's units, missing cells that are imputed filled in.

        Those are cells of numbers that had missing cells in training; others stay NaN.
        """
        rows = self.rows(X)
        filled = rows.copy()
        if self.imputation is not None:
            columns = self.imputation.fill(self._on_unit_interval(rows))
            values = (columns * self.span[:, None] + self.minimum[:, None]).T
            gone = np.isnan(rows[:, self.used]) & self.has_missing
            filled[:, self.used] = np.where(gone, values, rows[:, self.used])
        return filled

    def _scaled(self, rows: FloatArray) -> FloatArray:
        columns = self._on_unit_interval(rows)
        missing = np.isnan(columns)
        if not missing.any():
            return columns
        if self.fill is not None:
            return np.where(missing, self.fill[:, None], columns)
        stored = np.where(missing, MISSING, columns)
        if self.imputation is not None:
            imputed = IMPUTED_UNIT * (1.0 + self.imputation.fill(columns))
            stored = np.where(missing & self.has_missing[:, None], imputed, stored)
        return stored

    def _on_unit_interval(self, rows: FloatArray) -> FloatArray:
        """[p, n], with NaN where cells are missing."""
        columns = np.array(rows[:, self.used].T, order="C")
        if self.indicator is not None:
            of_level = self.indicator >= 0
            gone = np.isnan(columns[of_level])
            columns[of_level] = columns[of_level] == self.indicator[of_level, None]
            columns[of_level] = np.where(gone, np.nan, columns[of_level])
        with np.errstate(over="ignore"):
            columns -= self.minimum[:, None]
            columns /= self.span[:, None]
        np.clip(columns, -FAR, FAR, out=columns)
        return columns

    def rows(self, X: ArrayLike) -> FloatArray:
        """A table as [n, all columns], checked against the training columns."""
        if isinstance(X, CodedRows):
            return X
        if as_frame(X) is not None or self.columns:
            X = read_table(X, self.columns, self.feature_names)
        names = getattr(X, "columns", None)
        if names is not None:
            self.check_names(names)
        with only_numbers(X=X):
            rows: FloatArray = check_array(
                X,
                dtype=np.float64,
                ensure_2d=False,
                allow_nd=True,
                ensure_all_finite=False,  # below, and of the used columns alone
                ensure_min_samples=0,
                input_name="X",
            )
        if rows.ndim != 2 or rows.shape[1] != len(self.feature_names):
            raise ValueError(
                f"expected {len(self.feature_names)} columns in a 2-d table, got shape {rows.shape}"
            )
        if np.isinf(rows[:, self.used]).any():
            raise ValueError("the rows to predict contain infinity")
        return coded(rows)

    def check_names(self, names: Iterable[Any]) -> None:
        """Refuse other columns than those of training; if these had no names, any are allowed."""
        found = [str(name) for name in names]
        unnamed = all(name == f"x{column}" for column, name in enumerate(self.feature_names))
        if not unnamed and found != list(self.feature_names):
            raise ValueError(
                f"the columns must be {list(self.feature_names)} in this order, got {found}"
            )

    def threshold_to_user(self, column: int, tau: float) -> float:
        """A threshold on used column ``column`` from the unit interval to the user's units."""
        return float(self.minimum[column] + tau * self.span[column])

    def y_to_model(self, y: ArrayLike) -> FloatArray:
        """Targets in the user's units to the model's: mean 0 and sd 1 over the training data."""
        return (np.asarray(y, dtype=np.float64) - self.y_mean) / self.y_sd

    def y_to_user(self, v: ArrayLike) -> FloatArray:
        """Means in the model's units to the user's."""
        return np.asarray(v, dtype=np.float64) * self.y_sd + self.y_mean

    def sd_to_user(self, s: ArrayLike) -> FloatArray:
        """Standard deviations in the model's units to the user's."""
        return np.asarray(s, dtype=np.float64) * self.y_sd


@dataclass(frozen=True)
class UnitColumns:
    """Training data on the unit interval, [p, n], made in parts: a sampler keeps its own copy."""

    preprocessing: Preprocessing
    X: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.preprocessing.used), len(self.X)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.preprocessing.dtype)

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Rows in their order, and their columns."""
        for start in range(0, len(self.X), ROWS_PER_BLOCK):
            part = slice(start, start + ROWS_PER_BLOCK)
            block = self.preprocessing._scaled(self.X[part])
            yield part, block.astype(self.dtype, copy=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.preprocessing.to_unit(self.X).astype(dtype or self.dtype, copy=False)


def learn(
    X: FloatArray,
    feature_names: Sequence[str] | None = None,
    *,
    classes: NDArray[Any] | None = None,
    y: FloatArray | None = None,
    weights: FloatArray | None = None,
    standardize: bool = True,
    dtype: str = "float64",
    columns: Sequence[Column] = (),
    expand: bool = False,
    impute: bool = False,
) -> Preprocessing:
    """Learn the preprocessing from training data.

    Parameters
    ----------
    X : [n, all columns]; NaN where cells are missing, categories as codes
    feature_names : one name per column, or None
    classes : [K] the labels, for classification
    y : [n] the target, for regression
    weights : [n] of the rows; None where all are 1
    standardize : whether ``y`` is brought to mean 0 and sd 1
    dtype : that inputs are rounded to on the unit interval
    columns : what each column is; found from X where left out, all numbers
    expand : whether the method takes numbers only, see ``Preprocessing.indicator``
    impute : whether the method wants missing numbers imputed

    Raises
    ------
    ValueError
        If every column is constant, or a column or raw target is too wide for floating point.
    """
    names = tuple(feature_names) if feature_names is not None else ()
    names = names or tuple(f"x{column}" for column in range(X.shape[1]))
    gone = np.isnan(X)
    columns = tuple(columns) or tuple(number_column(column) for column in X.T)
    there = ~gone.all(axis=0)
    lowest, highest = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for column in np.flatnonzero(there):  # one by one: a copy of large data would not fit
        lowest[column], highest[column] = np.nanmin(X[:, column]), np.nanmax(X[:, column])
    # numbers that are all equal, where they are there, can still be told from missing ones
    varies = (highest > lowest) | (gone.any(axis=0) & there)
    used = np.flatnonzero(varies)
    constant = [names[column] for column in np.flatnonzero(~varies)]
    if used.size == 0:
        raise ValueError("every column of X is constant: there is nothing to split on")
    if constant:
        warnings.warn(
            f"ignoring constant columns: {', '.join(constant)}", UserWarning, stacklevel=4
        )
    with np.errstate(over="ignore"):
        span = highest[used] - lowest[used]
        span[span == 0] = 1.0
    if not np.isfinite(span).all():
        wide = [names[column] for column in used[~np.isfinite(span)]]
        raise ValueError(f"the range of these columns overflows, rescale them: {', '.join(wide)}")
    category = np.array([columns[column].levels is not None for column in used])
    lowest, span = np.where(category, 0.0, lowest[used]), np.where(category, 1.0, span)
    plain = not any(column.n_levels or column.missing or column.whole for column in columns)
    y_mean, y_sd = (0.0, 1.0) if y is None else _target_scale(y, weights, standardize)
    learned = Preprocessing(
        feature_names=names,
        used=used.astype(np.int64),
        minimum=np.ascontiguousarray(lowest),
        span=span,
        classes=classes,
        y_mean=y_mean,
        y_sd=y_sd,
        dtype=dtype,
        columns=() if plain else columns,
    )
    if expand and learned.kinds is not None:
        return _expanded(learned, X, weights)
    if impute and learned.has_missing.any():
        return _imputing(learned, X, weights)
    return learned


def _expanded(scale: Preprocessing, X: FloatArray, weights: FloatArray | None) -> Preprocessing:
    """The same for methods that take numbers only."""
    places, codes = [], []
    for place in range(len(scale.used)):
        levels = scale.column(place).n_levels
        own = [-1] if levels == 0 else [1] if levels == 2 else list(range(levels))
        places += [place] * len(own)
        codes += own
    wide = replace(
        scale,
        used=scale.used[places],
        minimum=scale.minimum[places],
        span=scale.span[places],
        indicator=np.array(codes, np.int64),
        fill=np.full(len(codes), np.nan),
    )
    columns = wide._scaled(X)
    there = ~np.isnan(columns)
    weight = np.ones(len(X)) if weights is None else weights
    fill = np.where(there, columns, 0.0) @ weight / (there @ weight)
    return replace(wide, fill=fill)


def _imputing(scale: Preprocessing, X: FloatArray, weights: FloatArray | None) -> Preprocessing:
    """The same for methods that impute missing numbers."""
    n_levels = np.array([scale.column(place).n_levels for place in range(len(scale.used))])
    columns = scale._on_unit_interval(X)
    return replace(scale, imputation=learn_imputation(columns, n_levels, weights))


def _target_scale(
    y: FloatArray, weights: FloatArray | None, standardize: bool
) -> tuple[float, float]:
    """Mean and population sd of the target, without overflow; a constant target has sd 1."""
    limit = TARGET_LIMIT if standardize else RAW_LIMIT
    if np.abs(y).max() > limit:
        raise ValueError(f"|y| must be at most {limit:g} with standardize={standardize}")
    if not standardize:
        return 0.0, 1.0
    if y.min() == y.max():
        warnings.warn("the target is constant: every prediction will be near it", stacklevel=5)
        return float(y[0]), 1.0
    # Powers of two are exact, so scaling by one keeps every digit of mean and sd.
    exponent = int(np.frexp(np.abs(y).max())[1])
    small = np.ldexp(y, -exponent)
    mean = small.mean() if weights is None else np.average(small, weights=weights)
    residual = small - mean
    size = np.abs(residual).max()
    sd = size * np.sqrt(np.average((residual / size) ** 2, weights=weights))
    # Among the smallest denormals the sd can round to 0: such a target is constant.
    return float(np.ldexp(mean, exponent)), float(np.ldexp(sd, exponent)) or 1.0
