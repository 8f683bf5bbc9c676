"""What hypothesis makes for the property tests: columns, tables and targets, tame and wild.

A property is written once and runs twice: with few cases by default, with many in the long run.
Both are derandomised, so that a failure comes back with the same cases.
"""

from __future__ import annotations

import datetime
import decimal
import faulthandler
import fractions
import sys
from collections.abc import Callable

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

HANG_SECONDS = 600.0
"""A case takes milliseconds, and minutes if it compiles; beyond this it hangs, and ends the run."""


def holds_for(case: st.SearchStrategy, *, few: int, many: int) -> Callable:
    """Make a test of a property of one case; ``many`` cases in the long run."""

    def decorate(check: Callable) -> Callable:
        @pytest.mark.parametrize(
            "n_cases",
            [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.long)],
        )
        def test(n_cases: int) -> None:
            property_of_cases = settings(
                max_examples=n_cases,
                derandomize=True,
                deadline=None,  # the first case may compile; the clock below catches a hang
                database=None,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            )(given(case)(_watched(check)))
            property_of_cases()

        test.__name__ = check.__name__
        test.__doc__ = check.__doc__
        return test

    return decorate


def _watched(check: Callable) -> Callable:
    def run(case: object) -> None:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=sys.__stderr__)
        try:
            check(case)
        finally:
            faulthandler.cancel_dump_traceback_later()

    run.__name__ = run.__qualname__ = check.__name__  # hypothesis draws its seed from the name
    return run


# ---------------------------------------------------------------------- columns

FINITE = st.floats(allow_nan=False, allow_infinity=False)
INT64 = st.integers(-(2**63), 2**63 - 1)
BEYOND_2_53 = st.integers(0, 9).map(lambda step: 2**60 + step)
DATES = st.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1))

USABLE = {
    "unit": st.floats(0, 1),
    "grid": st.integers(-3, 3).map(float),
    "tiny": st.floats(-1e-300, 1e-300),
    "huge": st.floats(-8e307, 8e307),
    "both ends": st.sampled_from([1e-300, -1e-300, 1e300, -1e300, 0.0, -0.0, 1.0]),
    "offset": st.integers(0, 9).map(lambda step: 1e15 + step),
    "int64": INT64,
    "beyond 2**53": BEYOND_2_53,
    "bool": st.booleans(),
}
"""Elements of columns that the estimators must take."""

ODD = {
    "overflowing": FINITE,
    "beyond int64": st.integers(2**63, 2**70),
    "beyond floats": st.integers(10**307, 10**400),
    "missing": st.sampled_from([0.5, 1.0, np.nan]),
    "infinite": st.sampled_from([0.5, 1.0, np.inf, -np.inf]),
    "none": st.sampled_from([0.5, 1.0, None]),
    "NA": st.sampled_from([0.5, 1.0, pandas.NA]),
    "text": st.text(max_size=3),
    "numeric text": st.integers(0, 9).map(str),
    "bytes": st.binary(max_size=3),
    "date": DATES,
    "datetime": st.datetimes(),
    "timestamp": DATES.map(pandas.Timestamp),
    "not a time": st.sampled_from([pandas.NaT, pandas.Timestamp("2020-01-01")]),
    "timedelta": st.integers(0, 99).map(lambda days: datetime.timedelta(days=days)),
    "complex": st.complex_numbers(allow_nan=False, max_magnitude=9),
    "decimal": st.integers(0, 9).map(decimal.Decimal),
    "fraction": st.integers(1, 9).map(lambda n: fractions.Fraction(1, n)),
    "mixed": st.sampled_from([1, 2.5, "a", True, None]),
    "nested": st.sampled_from([[1.0], [1.0, 2.0], (3,)]),
}
"""Elements that a clear word may refuse."""

DTYPES = {
    "bool": ["boolean", "float32", "int8"],
    "grid": ["int8", "int64", "Int64", "Float64", "float32", "float16", "category"],
    "unit": ["Float64", "float32", "float16"],
    "int64": ["int64", "Int64"],
    "beyond 2**53": ["int64", "uint64", "UInt64"],
    "beyond int64": ["uint64"],
    "missing": ["Float64"],
    "NA": ["Float64", "category"],
    "none": ["Float64", "category"],
    "text": ["category", "string"],
    "numeric text": ["category", "string"],
    "timestamp": ["datetime64[ns]", "datetime64[s]", "category"],
    "not a time": ["datetime64[ns]"],
    "timedelta": ["timedelta64[ns]"],
}
"""Column types worth having beside NumPy's choice and ``object``."""


@st.composite
def columns(draw, n: int, kinds: dict) -> pandas.Series:
    """A column of n cells, of one kind."""
    kind = draw(st.sampled_from(sorted(kinds)))
    elements = kinds[kind]
    if draw(st.integers(0, 7)) == 0:
        elements = st.just(draw(elements))
    cells = draw(st.lists(elements, min_size=n, max_size=n))
    dtype = draw(st.sampled_from([None, object, *DTYPES.get(kind, [])]))
    try:
        return pandas.Series(cells, dtype=dtype)
    except (TypeError, ValueError, OverflowError):  # pandas itself refuses the type
        return pandas.Series(cells, dtype=object)


# ---------------------------------------------------------------------- tables

NAMES = st.sampled_from(["a", "b", "c", "x0", "x1", "", " ", "a b", "ä", "日本", "[bold]", "a\nb"])


@st.composite
def frames(draw, n: int, kinds: dict, *, unique: bool = False) -> pandas.DataFrame:
    """A frame of n rows with an index in any order, repeats included."""
    parts = draw(st.lists(columns(n, kinds), min_size=1, max_size=3))
    frame = pandas.DataFrame(dict(enumerate(parts)))
    naming = draw(st.sampled_from(["numbers", "texts", "any texts"]))
    if naming == "texts":
        frame.columns = [f"column {place}" for place in range(len(parts))]
    elif naming == "any texts":
        names = st.lists(NAMES, min_size=len(parts), max_size=len(parts), unique=unique)
        frame.columns = draw(names)
    frame.index = draw(indexes(n))
    return frame


@st.composite
def indexes(draw, n: int) -> pandas.Index:
    kind = draw(st.sampled_from(["range", "unsorted", "repeated", "texts", "dates"]))
    if kind == "unsorted":
        return pandas.Index(draw(st.permutations(range(n))))
    if kind == "repeated":
        return pandas.Index([7] * n)
    if kind == "texts":
        return pandas.Index([f"row {place % 3}" for place in range(n)])
    if kind == "dates":
        return pandas.date_range("2020-01-01", periods=n)[::-1]
    return pandas.RangeIndex(n)


def strided(X: np.ndarray) -> np.ndarray:
    """The same numbers in every second row and column of a larger array."""
    wide = np.zeros(tuple(2 * length for length in X.shape), X.dtype)
    wide[tuple(slice(None, None, 2) for _ in X.shape)] = X
    return wide[tuple(slice(None, None, 2) for _ in X.shape)]


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


SAME_NUMBERS = {
    "array": lambda X: X,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
    "rows of tuples": lambda X: [tuple(row) for row in X.tolist()],
    "long double": lambda X: X.astype(np.longdouble),
    "texts": lambda X: X.astype(object).astype(str).astype(object),
    "frame": lambda X: pandas.DataFrame(X, index=[3] * len(X)),
    "nullable": lambda X: pandas.DataFrame(X, index=np.arange(len(X))[::-1]).astype("Float64"),
    "pyarrow": lambda X: pandas.DataFrame(X).astype("double[pyarrow]"),
    "masked": np.ma.masked_array,
    "list of Series": lambda X: [pandas.Series(row, index=[9] * len(row)) for row in X],
}
"""Containers in which the same numbers must give the same draws."""

ODD_CONTAINERS = {
    **SAME_NUMBERS,
    "1-d": lambda X: X.ravel(),
    "3-d": lambda X: X[:, :, None],
    "0-d": lambda X: np.array(1.0),
    "sparse": sparse.csr_array,
    "sparse matrix": sparse.coo_matrix,
    "sparse frame": lambda X: pandas.DataFrame(X).astype(pandas.SparseDtype(float, 0.0)),
    "series": lambda X: pandas.Series(X.ravel()),
    "ragged": lambda X: [*X.tolist(), []],
    "empty": lambda X: [],
    "no columns": lambda X: X[:, :0],
    "no rows": lambda X: X[:0],
    "one row": lambda X: X[:1],
    "None": lambda X: None,
    "text": lambda X: "table.csv",
    "mapping": lambda X: {"a": X[:, 0]},
    "set": lambda X: {1.0, 2.0},
    "iterator": lambda X: iter(X.tolist()),
    "structured": lambda X: np.zeros(len(X), dtype=[("a", float), ("b", int)]),
    "dates": lambda X: (np.arange(X.size).reshape(X.shape)).astype("M8[D]"),
    "durations": lambda X: (np.arange(X.size).reshape(X.shape)).astype("m8[s]"),
    "complex": lambda X: X.astype(complex),
    "masked cells": lambda X: np.ma.masked_array(X, mask=X[0, 0] == X),
    "several levels": lambda X: pandas.DataFrame(
        X, columns=pandas.MultiIndex.from_tuples([("a", k) for k in range(X.shape[1])])
    ),
    "names of two types": lambda X: pandas.DataFrame(
        X, columns=["a", *range(1, X.shape[1])] if X.shape[1] > 1 else [("a", 1)]
    ),
}


# ---------------------------------------------------------------------- targets

LABELS = {
    "numbers": [0, 1, 2],
    "texts": ["no", "yes", "yes, but"],
    "odd texts": ["", " ", "ä\n"],
    "bools": [False, True],
    "whole floats": [-1.0, 0.0, 1e6],
    "int64": [-(2**63), 0, 2**63 - 1],
    "neighbours beyond 2**53": [2**60, 2**60 + 1, 2**60 + 2],
    "uint64": [2**63, 2**63 + 1],
    "int8": np.array([-128, 5, 127], dtype=np.int8),
    "objects": np.array(["b", "c", "d"], dtype=object),
}
"""Labels, ascending, that a classifier must take."""

ODD_LABELS = {
    "beyond int64": [2**70, 2**71],
    "fractions": [0.5, 1.25],
    "huge floats": [1e300, -1e300],
    "neither int64 nor uint64": [-1, 2**63, 2**63 + 1],
    "infinite": [0.0, np.inf],
    "missing": [1.0, 2.0, np.nan],
    "none": ["a", "b", None],
    "none and numbers": [1, 2, None],
    "NA": [1, 2, pandas.NA],
    "two types": ["a", 1],
    "bytes": [b"a", b"b"],
    "dates": [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
    "timestamps": [pandas.Timestamp("2020-01-01"), pandas.Timestamp("2021-01-01")],
    "not a time": [pandas.Timestamp("2020-01-01"), pandas.NaT],
    "durations": [datetime.timedelta(1), datetime.timedelta(2)],
    "intervals": [pandas.Interval(0, 1), pandas.Interval(1, 2)],
    "complex": [1j, 2j],
    "nested": [[1], [2]],
    "tuples": [(1, 2), (3, 4)],
    "decimals": [decimal.Decimal(1), decimal.Decimal(2)],
}

TARGET_CONTAINERS = {
    "list": list,
    "array": np.asarray,
    "object": lambda y: _objects(y),
    "series": lambda y: pandas.Series(y, index=[1] * len(y)),
    "category": lambda y: pandas.Series(pandas.Categorical(y)),
    "convert": lambda y: pandas.Series(y).convert_dtypes(),
    "strided": lambda y: strided(np.asarray(y)),
    "read-only": lambda y: read_only(np.asarray(y)),
    "column": lambda y: np.asarray(y).reshape(-1, 1),
    "2-d": lambda y: np.column_stack([y, y]),
    "too long": lambda y: [*y, y[0]],
    "too short": lambda y: list(y)[1:],
    "scalar": lambda y: y[0],
    "None": lambda y: None,
    "sparse": lambda y: sparse.csr_array(np.arange(len(y)).reshape(-1, 1)),
    "frame": lambda y: pandas.DataFrame({"y": y}),
}


def _objects(y: list) -> np.ndarray:
    out = np.empty(len(y), dtype=object)
    out[:] = y
    return out


@st.composite
def odd_targets(draw, n: int) -> object:
    """A target of n cells of any type, in any container."""
    if draw(st.booleans()):
        labels = draw(st.sampled_from([*LABELS.values(), *ODD_LABELS.values()]))
        cells = [labels[place % len(labels)] for place in range(n)]
    else:
        cells = draw(columns(n, {**USABLE, **ODD})).tolist()
    wrap = TARGET_CONTAINERS[draw(st.sampled_from(sorted(TARGET_CONTAINERS)))]
    try:
        return wrap(cells)
    except (TypeError, ValueError, OverflowError, IndexError):  # NumPy or pandas cannot make it
        return cells
