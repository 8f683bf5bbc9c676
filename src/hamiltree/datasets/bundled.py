"""The data sets that are shipped with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas
from sklearn.utils import Bunch

BCW_FILE = "breast_cancer_wisconsin_original.csv"
HEART_FILE = "heart_disease_cleveland.csv"
PENGUINS_FILE = "penguins.csv"
Table = tuple[pandas.DataFrame, pandas.Series]


def load_bcw(*, drop_missing: bool = True, as_frame: bool = False) -> Bunch:
    """Load Breast Cancer Wisconsin (Original): 9 cytological grades, benign or malignant.

    Wolberg and Mangasarian (1990), UCI data set 15, CC BY 4.0; shipped with the package.

    Parameters
    ----------
    drop_missing : bool, default=True
        Drop the 16 of 699 rows whose ``bare_nuclei`` is missing (NaN otherwise).
    as_frame : bool, default=False
        Return ``data`` as a pandas DataFrame, from which estimators read the feature names.

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


def load_heart(*, return_X_y: bool = False) -> Bunch | Table:
    """Load Heart Disease (Cleveland): 303 patients, with text columns and missing cells.

    Janosi, Steinbrunn, Pfisterer and Detrano (1989), UCI data set 45, CC BY 4.0; shipped with the
    package. The question: does angiography show a coronary artery narrowed by more than half
    (``diseased``), judged by what is known before it?

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``data``, a DataFrame of 303 rows and 13 columns: ages and measurements are numbers, seven
        columns such as sex and chest pain are text; ``vessels`` is missing in 4 rows and
        ``thallium`` in 2. ``target``, a Series of ``healthy`` and ``diseased``;
        ``feature_names``; ``target_names``; ``DESCR``.

    Examples
    --------
    >>> from hamiltree.datasets import load_heart
    >>> X, y = load_heart(return_X_y=True)
    >>> X.shape, int(X.isna().sum().sum())
    ((303, 13), 6)
    >>> y.value_counts().to_dict()
    {'healthy': 164, 'diseased': 139}
    """
    data = _read(HEART_FILE)
    return _as_asked(data, data.pop("diagnosis"), return_X_y, np.array(["diseased", "healthy"]))


def load_penguins(*, target: str = "body_mass_g", return_X_y: bool = False) -> Bunch | Table:
    """Load the Palmer penguins: 344 birds of three species, with text and missing cells.

    Gorman, Williams and Fraser (2014); Horst, Hill and Gorman (2020), package palmerpenguins, CC0;
    shipped with the package.

    Parameters
    ----------
    target : str, default="body_mass_g"
        The column to predict: a measurement, ``"species"``, ``"island"`` or ``"sex"``. Rows in
        which it is missing are left out.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        ``data``, a DataFrame of all other columns but the year; ``target``, a Series;
        ``feature_names``; ``target_names``, where the target is text; ``DESCR``.

    Examples
    --------
    >>> from hamiltree.datasets import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> X.shape, y.name
    ((342, 6), 'body_mass_g')
    """
    data = _read(PENGUINS_FILE).drop(columns="year")
    if target not in data:
        raise ValueError(f"target must be one of {', '.join(data)}, got {target!r}")
    data = data.dropna(subset=[target]).reset_index(drop=True)
    values = data.pop(target)
    names = np.unique(values) if values.dtype.kind not in "iuf" else None
    return _as_asked(data, values, return_X_y, names)


def _read(name: str) -> pandas.DataFrame:
    with (files("hamiltree") / "data" / name).open(encoding="utf-8") as lines:
        return pandas.read_csv(lines)


def _as_asked(
    data: pandas.DataFrame,
    target: pandas.Series,
    return_X_y: bool,
    target_names: np.ndarray | None,
) -> Bunch | Table:
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(data.columns),
        target_names=target_names,
        DESCR=(files("hamiltree") / "data" / "README.md").read_text("utf-8"),
    )
