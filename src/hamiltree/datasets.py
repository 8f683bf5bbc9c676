"""Data to try the library on: one real data set, shipped, and the paper's synthetic tree."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from .draws import FloatArray

BCW_FILE = "breast_cancer_wisconsin_original.csv"
N_LEVELS = 10  # the inputs of the CGM data run from 1 to 10


def load_bcw(*, drop_missing: bool = True, as_frame: bool = False) -> Bunch:
    """Load Breast Cancer Wisconsin (Original): 9 cytological grades, benign or malignant.

    Wolberg and Mangasarian (1990), UCI data set 15, CC BY 4.0; shipped with the package.

    Parameters
    ----------
    drop_missing : bool, default=True
        Drop the 16 of 699 rows whose ``bare_nuclei`` is missing (NaN otherwise).
    as_frame : bool, default=False
        Give ``data`` as a pandas DataFrame, so that estimators know the names of the features.

    Returns
    -------
    Bunch
        ``data`` [683, 9], grades 1 to 10; ``target`` [683], 0 benign and 1 malignant, in the
        order of the UCI file; ``feature_names``; ``target_names``; ``DESCR``.

    Examples
    --------
    >>> from hamiltree.datasets import load_bcw
    >>> load_bcw().data.shape
    (683, 9)
    """
    folder = files("hamiltree") / "data"
    header, *lines = (folder / BCW_FILE).read_text("utf-8").split()
    cells = [line.split(",") for line in lines]
    data = np.array([[float(cell or "nan") for cell in row[:-1]] for row in cells])
    target_names = np.array(["benign", "malignant"])
    target = np.searchsorted(target_names, [row[-1] for row in cells])
    if drop_missing:
        complete = ~np.isnan(data).any(axis=1)
        data, target = data[complete], target[complete]
    feature_names = header.split(",")[:-1]
    return Bunch(
        data=pandas.DataFrame(data, columns=feature_names) if as_frame else data,
        target=target,
        feature_names=feature_names,
        target_names=target_names,
        DESCR=(folder / "README.md").read_text("utf-8"),
    )


def make_cgm(
    n: int = 800,
    *,
    noise: float = 0.2,
    integer: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Draw data from the five-leaf tree of Chipman, George and McCulloch, as the paper adapts it.

    The inputs are uniform and the splits act as ``<=``, on the integers as in the authors' data::

        x1 <= 4: x0 <= 3: 1            else: x0 <= 5: 8
                 else: x0 <= 7: 5                 else: 2
                       else: 8

    Parameters
    ----------
    n : int, default=800
        Number of rows.
    noise : float, default=0.2
        Standard deviation of the normal noise.
    integer : bool, default=True
        Inputs uniform on 1, 2, ..., 10; otherwise on the interval (0, 10), which gives every
        leaf the same share of the rows.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    Bunch
        ``data`` [n, 2]; ``target`` [n]; ``mean`` [n], the target without noise;
        ``feature_names``; ``DESCR``.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if not noise >= 0:
        raise ValueError(f"noise must not be negative, got {noise}")
    rng = check_random_state(random_state)
    if integer:
        data = rng.randint(1, N_LEVELS + 1, size=(n, 2)).astype(np.float64)
    else:
        data = rng.uniform(0, N_LEVELS, size=(n, 2))
    mean = cgm_mean(data)
    return Bunch(
        data=data,
        target=mean + noise * rng.standard_normal(n),
        mean=mean,
        feature_names=["x0", "x1"],
        DESCR="The synthetic tree of Chipman, George and McCulloch (1998), numerical inputs.",
    )


def cgm_mean(X: NDArray[np.floating]) -> FloatArray:
    """Compute the noise-free target [n] of the true CGM tree for rows [n, 2]."""
    x0, x1 = np.asarray(X, dtype=np.float64).T
    low = np.select([x0 <= 3, x0 <= 7], [1.0, 5.0], 8.0)
    high = np.where(x0 <= 5, 8.0, 2.0)
    return np.where(x1 <= 4, low, high)
