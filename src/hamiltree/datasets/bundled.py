"""The data set that is shipped with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas
from sklearn.utils import Bunch

BCW_FILE = "breast_cancer_wisconsin_original.csv"


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
