"""Inputs to the unit interval, targets to standard units, and back to the user's units."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from ..utils.arrays import FloatArray, IntArray

FAR = 1e100  # stands for "infinitely far outside": finite, so that 0 * FAR is not NaN
FAR_32 = 1e30  # the same for float32
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

    @property
    def used_names(self) -> tuple[str, ...]:
        """Names of the used columns, [p]."""
        return tuple(self.feature_names[column] for column in self.used)

    def to_unit(self, X: ArrayLike) -> FloatArray:
        """Rows [n, all columns] to columns [p, n]: the training data fill [0, 1] exactly.

        Rows outside the training range go outside [0, 1], at most to +-1e100.
        """
        columns = self._scaled(self.rows(X))
        if self.dtype != "float64":
            columns = columns.astype(self.dtype).astype(np.float64)
        return columns

    def columns_of(self, X: FloatArray) -> UnitColumns:
        """The same of the training data, for the sampler to fetch in parts."""
        return UnitColumns(self, X)

    def _scaled(self, rows: FloatArray) -> FloatArray:
        columns = np.ascontiguousarray(rows[:, self.used].T)
        far = FAR if self.dtype == "float64" else FAR_32
        with np.errstate(over="ignore"):
            columns -= self.minimum[:, None]
            columns /= self.span[:, None]
        return np.clip(columns, -far, far, out=columns)

    def rows(self, X: ArrayLike) -> FloatArray:
        """A table as [n, all columns], checked against the training columns."""
        names = getattr(X, "columns", None)
        if names is not None and not _match(names, self.feature_names):
            raise ValueError(
                f"the columns must be {list(self.feature_names)} in this order, got {list(names)}"
            )
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
        if not np.isfinite(rows[:, self.used]).all():
            raise ValueError("the rows to predict contain NaN or infinity")
        return rows

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
    feature_names: Sequence[str] | None,
    *,
    classes: NDArray[Any] | None = None,
    y: FloatArray | None = None,
    standardize: bool = True,
    dtype: str = "float64",
) -> Preprocessing:
    """Learn the preprocessing from finite training data.

    Parameters
    ----------
    X : [n, all columns], finite
    feature_names : one name per column, or None
    classes : [K] the labels, for classification
    y : [n] the target, for regression
    standardize : whether ``y`` is brought to mean 0 and sd 1
    dtype : that inputs are rounded to on the unit interval

    Raises
    ------
    ValueError
        If every column is constant, or a column or raw target is too wide for floating point.
    """
    names = tuple(feature_names) if feature_names is not None else ()
    names = names or tuple(f"x{column}" for column in range(X.shape[1]))
    lowest, highest = X.min(axis=0), X.max(axis=0)
    used = np.flatnonzero(highest > lowest)
    constant = [names[column] for column in np.flatnonzero(highest == lowest)]
    if used.size == 0:
        raise ValueError("every column of X is constant: there is nothing to split on")
    if constant:
        warnings.warn(
            f"ignoring constant columns: {', '.join(constant)}", UserWarning, stacklevel=4
        )
    with np.errstate(over="ignore"):
        span = highest[used] - lowest[used]
    if not np.isfinite(span).all():
        wide = [names[column] for column in used[~np.isfinite(span)]]
        raise ValueError(f"the range of these columns overflows, rescale them: {', '.join(wide)}")
    y_mean, y_sd = (0.0, 1.0) if y is None else _target_scale(y, standardize)
    return Preprocessing(
        feature_names=names,
        used=used.astype(np.int64),
        minimum=np.ascontiguousarray(lowest[used]),
        span=span,
        classes=classes,
        y_mean=y_mean,
        y_sd=y_sd,
        dtype=dtype,
    )


def _target_scale(y: FloatArray, standardize: bool) -> tuple[float, float]:
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
    mean = small.mean()
    residual = small - mean
    size = np.abs(residual).max()
    sd = size * np.sqrt(np.mean((residual / size) ** 2))
    # Among the smallest denormals the sd can round to 0: such a target is constant.
    return float(np.ldexp(mean, exponent)), float(np.ldexp(sd, exponent)) or 1.0


@contextmanager
def only_numbers(**data: Any) -> Iterator[None]:
    """Refuse, by name, what would become numbers without a word, and numbers that are none.

    Times count from 1970 and a missing one is -9.2e18; complex numbers lose a part; masked cells
    come back from under their mask; of columns that share a name nobody knows which is meant.
    """
    for name, values in data.items():
        columns = getattr(values, "columns", None)
        if columns is not None and not columns.is_unique:
            twice = ", ".join(repr(column) for column in columns[columns.duplicated()].unique())
            raise ValueError(f"several columns of {name} have the same name, rename them: {twice}")
        kinds = {getattr(dtype, "kind", "O") for dtype in _dtypes(values)}
        if kinds & set("mM"):
            raise ValueError(
                f"{name} holds times: turn them into numbers, such as days since a date"
            )
        if "c" in kinds:
            raise ValueError(f"Complex data not supported: {name} holds complex numbers")
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has masked cells: fill them in, or leave these rows out")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge numbers, to find NaN
            yield
    except OverflowError:  # integers of Python know no limit
        raise ValueError(
            f"{' or '.join(data)} holds whole numbers beyond the range of floating point: "
            "rescale them"
        ) from None
    except TypeError as error:
        if "NA is ambiguous" not in str(error):  # pandas' word for a missing value, compared
            raise
        name = "y" if "y" in data else "X"
        raise ValueError(f"{name} has missing or infinite values: leave these rows out") from None


def refuse_missing(y: NDArray[Any]) -> None:
    """Refuse a target with None or NaN, which may come of None only when it becomes numbers."""
    kind = y.dtype.kind
    known = pandas.notna(y) if kind == "O" else np.isfinite(y) if kind == "f" else True
    if not np.all(known):
        raise ValueError("y has missing or infinite values: leave these rows out")


def _dtypes(values: Any) -> Sequence[Any]:
    """The types of a table's columns, or of an array; of categories, that of their values."""
    if hasattr(values, "dtypes") and hasattr(values, "columns"):
        kinds = list(values.dtypes)
    else:
        kinds = [getattr(values, "dtype", None)]
    return [getattr(getattr(kind, "categories", None), "dtype", kind) for kind in kinds]


def _match(names: Any, expected: tuple[str, ...]) -> bool:
    """Whether the columns of a table are the training columns; unnamed training accepts any."""
    unnamed = all(name == f"x{column}" for column, name in enumerate(expected))
    return unnamed or tuple(str(name) for name in names) == expected
