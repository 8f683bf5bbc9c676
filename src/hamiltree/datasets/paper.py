"""The paper's data, split as the paper split them.

The real data are split by Python's own shuffle with the authors' seeds, which gives their rows;
the authors' synthetic data can only be had from their files, so those are generated anew unless a
folder holds them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris, load_wine

from ..utils.arrays import FloatArray
from .bundled import load_bcw
from .raisin import fetch_raisin
from .synthetic import make_cgm, make_wu

DATA_VARIABLE = "HAMILTREE_DATA"
"""Environment variable that names the folder with local copies."""

# Three cells in which the UCI file, which the authors used, differs from scikit-learn's copy.
UCI_IRIS_CELLS = {(34, 3): 0.1, (37, 1): 3.1, (37, 2): 1.5}

REGRESSION = ("cgm", "wu")


@dataclass(frozen=True)
class Split:
    """Training rows and test rows.

    Examples
    --------
    >>> from hamiltree.datasets import Split, load_paper_split
    >>> split = load_paper_split("wine")
    >>> isinstance(split, Split)
    True
    >>> split.X.shape, split.X_test.shape, split.n_classes
    ((142, 13), (36, 13), 3)
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    X_test: FloatArray
    y_test: NDArray[Any]
    source: str
    """A description of where the rows come from."""

    @property
    def n_classes(self) -> int:
        """0 for regression."""
        return 0 if self.name in REGRESSION else len(np.unique(self.y))


def _uci_iris() -> tuple[FloatArray, NDArray[Any]]:
    X, y = load_iris(return_X_y=True)
    for cell, value in UCI_IRIS_CELLS.items():
        X[cell] = value
    return X, y


def _bunch(load: Callable[..., Any]) -> Callable[..., tuple[FloatArray, NDArray[Any]]]:
    def rows(*arguments: Any) -> tuple[FloatArray, NDArray[Any]]:
        data = load(*arguments)
        return data.data, data.target

    return rows


# How to load all rows; the authors' seed; their share of rows to learn from; the source.
_REAL: dict[str, tuple[Callable[..., tuple[FloatArray, NDArray[Any]]], int, float, str]] = {
    "bcw": (_bunch(load_bcw), 123456789, 0.7, "shipped copy"),
    "iris": (_uci_iris, 123456789, 0.7, "scikit-learn's copy with UCI's three cells"),
    "wine": (_bunch(load_wine), 123456789, 0.8, "scikit-learn's copy"),
    "raisin": (_bunch(fetch_raisin), 1, 0.7, "UCI's archive"),
}
# Generator, rows to learn from and to test on each.
_SYNTHETIC: dict[str, tuple[Callable[..., Any], int]] = {
    "cgm": (make_cgm, 800),
    "wu": (make_wu, 300),
}
PAPER_DATASETS = ("cgm", *_REAL)
"""Those of the paper's tables; ``wu`` is there besides, for its authors' follow-up."""


def load_paper_split(name: str, data_dir: str | os.PathLike[str] | None = None) -> Split:
    """Load one of the paper's data sets with its split.

    Parameters
    ----------
    name : str
        cgm, bcw, iris, wine, raisin or wu.
    data_dir : path, optional
        A folder with ``NAME_train.csv`` and ``NAME_test.csv`` (a header, then features and the
        target last) or, for Raisin, ``raisin.zip``. None means the one that the environment
        variable HAMILTREE_DATA names, if any. What the folder lacks comes from its usual source.

    Raises
    ------
    MissingDataError
        An ``OSError``: for Raisin without a network and without a local copy.

    Examples
    --------
    >>> from hamiltree.datasets import PAPER_DATASETS, load_paper_split
    >>> PAPER_DATASETS
    ('cgm', 'bcw', 'iris', 'wine', 'raisin')
    >>> len(load_paper_split("iris").y_test)
    45
    """
    if name not in _REAL and name not in _SYNTHETIC:
        known = ", ".join([*_SYNTHETIC, *_REAL])
        raise ValueError(f"unknown data set {name!r}: there are {known}")
    folder = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE) or None
    if folder is not None and not Path(folder).is_dir():
        raise NotADirectoryError(f"the data folder {folder} does not exist")
    if folder is not None and (files := _files(Path(folder), name)):
        (X, y), (X_test, y_test) = (_read(path, name) for path in files)
        return Split(name, X, y, X_test, y_test, "the authors' files")
    if name in _SYNTHETIC:
        return generate_split(name, seed=0)
    load, seed, share, source = _REAL[name]
    X, y = load(folder) if name == "raisin" else load()
    order = list(range(len(X)))
    random.Random(seed).shuffle(order)
    n = int(share * len(X))
    return Split(name, X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]], source)


def generate_split(name: str, seed: int) -> Split:
    """Fresh synthetic data of the sizes in the paper, for "cgm" and "wu"."""
    make, n = _SYNTHETIC[name]
    rng = np.random.RandomState(seed)
    train, test = make(n, random_state=rng), make(n, random_state=rng)
    source = f"generated, seed {seed}"
    return Split(name, train.data, train.target, test.data, test.target, source)


def random_split(whole: Split, seed: int) -> Split:
    """The same rows, split anew at random into parts of the same sizes."""
    X, y = np.vstack([whole.X, whole.X_test]), np.concatenate([whole.y, whole.y_test])
    order, n = np.random.default_rng(seed).permutation(len(X)), len(whole.X)
    source = f"{whole.source}, random split {seed}"
    first, rest = order[:n], order[n:]
    return Split(whole.name, X[first], y[first], X[rest], y[rest], source)


def _files(folder: Path, name: str) -> list[Path]:
    """The two files of a split, or none; one without the other is a mistake."""
    paths = [folder / f"{name}_{part}.csv" for part in ("train", "test")]
    there = [path for path in paths if path.is_file()]
    if len(there) == 1:
        missing = next(path.name for path in paths if path not in there)
        raise FileNotFoundError(f"{folder} has {there[0].name} but not {missing}")
    return there


def _read(path: Path, name: str) -> tuple[FloatArray, NDArray[Any]]:
    try:
        rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except ValueError as error:
        raise ValueError(
            f"{path} must hold a header and rows of numbers, the target last: {error}"
        ) from None
    target = rows[:, -1]
    return rows[:, :-1], target if name in REGRESSION else target.astype(np.int64)
