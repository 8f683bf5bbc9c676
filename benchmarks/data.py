"""The data of the benchmarks, as features, target and a note on where they come from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from hamiltree.datasets import load_bcw, make_cgm


def load(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """The paper's training split where HAMILTREE_DATA names its folder, else the like of it."""
    folder = os.environ.get("HAMILTREE_DATA")
    if folder:
        rows = np.loadtxt(Path(folder) / f"{name}_train.csv", delimiter=",", skiprows=1)
        return rows[:, :-1], rows[:, -1], "the paper's training split"
    if name == "iris":
        return *load_iris(return_X_y=True), "scikit-learn's copy"
    if name == "bcw":
        data = load_bcw()
        return data.data, data.target, "all complete rows"
    data = make_cgm(800, random_state=0)
    return data.data, data.target, "generated, seed 0"
