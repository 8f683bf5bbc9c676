"""Data drawn from known trees: of Chipman, George and McCulloch, and of Wu, Tjelmeland and West."""

from __future__ import annotations

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from ..utils.arrays import FloatArray

N_LEVELS = 10  # the inputs of the CGM data run from 1 to 10
CGM98_LEVELS = "abcd"


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

    Examples
    --------
    >>> from hamiltree.datasets import make_cgm
    >>> data = make_cgm(100, random_state=0)
    >>> data.data.shape, data.target.shape
    ((100, 2), (100,))
    """
    rng = _checked(n, noise, random_state)
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
    """Compute the noise-free target [n] of the true CGM tree for rows [n, 2].

    Examples
    --------
    >>> from hamiltree.datasets import cgm_mean, make_cgm
    >>> data = make_cgm(100, random_state=0)
    >>> bool(abs(data.target - cgm_mean(data.data)).max() < 1.0)
    True
    """
    x0, x1 = np.asarray(X, dtype=np.float64).T
    low = np.select([x0 <= 3, x0 <= 7], [1.0, 5.0], 8.0)
    high = np.where(x0 <= 5, 8.0, 2.0)
    return np.where(x1 <= 4, low, high)


def make_cgm98(n: int = 800, *, noise: float = 2.0, random_state: int | None = None) -> Bunch:
    """Draw data from the tree of Chipman, George and McCulloch as they had it, with a category.

    v1 is uniform on 0.5, 1.5, ..., 9.5 and v2 on a, b, c, d::

        v2 in {a, b}: v1 <= 5: 8       else: v1 <= 3: 1
                      else: 2                else: v1 <= 7: 5
                                                   else: 8

    Parameters
    ----------
    n : int, default=800
        Number of rows.
    noise : float, default=2.0
        Standard deviation of the normal noise.
    random_state : int or None, default=None
        Seed. 34647 gives the rows that published comparisons of samplers use.

    Returns
    -------
    Bunch
        ``data``, a pandas DataFrame with a column of numbers and a categorical one; ``target`` [n];
        ``mean`` [n], the target without noise; ``feature_names``; ``DESCR``.

    Examples
    --------
    >>> from hamiltree.datasets import make_cgm98
    >>> data = make_cgm98(100, random_state=0)
    >>> len(data.data), len(data.target)
    (100, 100)
    """
    _checked(n, noise, random_state)
    rng = np.random.default_rng(random_state)
    v1 = rng.integers(0, N_LEVELS, n) + 0.5
    v2 = rng.integers(0, len(CGM98_LEVELS), n)
    mean = np.where(
        v2 < 2,
        np.where(v1 <= 5, 8.0, 2.0),
        np.select([v1 <= 3, v1 <= 7], [1.0, 5.0], 8.0),
    )
    levels = pandas.Categorical.from_codes(v2, list(CGM98_LEVELS))
    return Bunch(
        data=pandas.DataFrame({"v1": v1, "v2": levels}),
        target=mean + noise * rng.standard_normal(n),
        mean=mean,
        feature_names=["v1", "v2"],
        DESCR="The synthetic tree of Chipman, George and McCulloch (1998), with their category.",
    )


def make_wu(
    n: int = 300,
    *,
    noise: float = 0.25,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Draw data from the three-leaf tree of Wu, Tjelmeland and West.

    Its two trees cannot be told apart by the data: x2 is high where x0 is low and low where x0 is
    high, so that either may carry the first split, with nothing between 0.4 and 0.6::

        x0 <= 0.5: x1 <= 0.5: 1        else: 5
                   else: 3

    Parameters
    ----------
    n : int, default=300
        Number of rows: a third in each leaf, in the order of the means (any remainder goes to
        the first leaves).
    noise : float, default=0.25
        Standard deviation of the normal noise.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    Bunch
        ``data`` [n, 3]; ``target`` [n]; ``mean`` [n], the target without noise;
        ``feature_names``; ``DESCR``.

    Examples
    --------
    >>> from hamiltree.datasets import make_wu
    >>> data = make_wu(100, random_state=0)
    >>> data.data.shape, data.target.shape
    ((100, 3), (100,))
    """
    rng = _checked(n, noise, random_state)
    leaf = np.sort(np.arange(n) % 3)
    low, high = rng.uniform(0.1, 0.4, size=(n, 3)), rng.uniform(0.6, 0.9, size=(n, 3))
    x0 = np.where(leaf == 2, high[:, 0], low[:, 0])
    x1 = np.select([leaf == 0, leaf == 1], [low[:, 1], high[:, 1]], rng.uniform(0.1, 0.9, size=n))
    x2 = np.where(leaf == 2, low[:, 2], high[:, 2])
    data = np.column_stack([x0, x1, x2])
    mean = wu_mean(data)
    return Bunch(
        data=data,
        target=mean + noise * rng.standard_normal(n),
        mean=mean,
        feature_names=["x0", "x1", "x2"],
        DESCR="The synthetic tree of Wu, Tjelmeland and West (2007).",
    )


def wu_mean(X: NDArray[np.floating]) -> FloatArray:
    """Compute the noise-free target [n] of the true tree of Wu's data for rows [n, 3].

    Examples
    --------
    >>> from hamiltree.datasets import make_wu, wu_mean
    >>> data = make_wu(100, random_state=0)
    >>> bool(abs(data.target - wu_mean(data.data)).max() < 2.0)
    True
    """
    x0, x1, _ = np.asarray(X, dtype=np.float64).T
    return np.where(x0 > 0.5, 5.0, np.where(x1 > 0.5, 3.0, 1.0))


def _checked(
    n: int, noise: float, random_state: int | np.random.RandomState | None
) -> np.random.RandomState:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if not noise >= 0:
        raise ValueError(f"noise must not be negative, got {noise}")
    rng: np.random.RandomState = check_random_state(random_state)
    return rng
