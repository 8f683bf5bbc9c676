"""Data sets on which nothing was tuned, written down before anything was measured on them.

Tables are taken as they are found: texts are categories, empty cells are missing, rows without a
target are left out. Eight regressions of 234 to 5,000 rows, six classifications, and the hardest
case that is known, the CGM example with continuous inputs and h = .001.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

from hamiltree.datasets import make_cgm

from .data import packaged_table

MOST_ROWS = 5_000


@dataclass(frozen=True)
class WildSet:
    """A table, its target, and what is asked for beside the defaults."""

    name: str
    regression: bool
    package: str = ""
    item: str = ""
    target: str = ""
    dropped: tuple[str, ...] = ()
    """Columns that are another form of the target, or a name of the row."""
    values: dict[str, Any] = field(default_factory=dict)

    def load(self) -> tuple[Any, np.ndarray]:
        """Inputs and target."""
        if self.name == "diabetes":
            return load_diabetes(return_X_y=True)
        if self.name == "digits":
            return load_digits(return_X_y=True)
        if self.name == "cgm, continuous":
            drawn = make_cgm(800, integer=False, random_state=0)
            return drawn.data, drawn.target
        frame = packaged_table(self.package, self.item).dropna(subset=[self.target])
        if len(frame) > MOST_ROWS:
            frame = frame.sample(MOST_ROWS, random_state=0)
        frame = frame.drop(columns=list(self.dropped)).reset_index(drop=True)
        return frame, frame.pop(self.target).to_numpy()


WILD = (
    WildSet("diabetes", True),
    WildSet("hitters", True, "ISLR", "Hitters", "Salary"),
    WildSet("carseats", True, "ISLR", "Carseats", "Sales"),
    WildSet("college", True, "ISLR", "College", "Apps"),
    WildSet("wage", True, "ISLR", "Wage", "wage", ("logwage",)),
    WildSet("mpg", True, "ggplot2", "mpg", "hwy", ("cty", "model")),
    WildSet("computers", True, "Ecdat", "Computers", "price"),
    WildSet("concrete", True, "modeldata", "concrete", "compressive_strength"),
    WildSet("digits", False),
    WildSet("cells", False, "modeldata", "cells", "class", ("case",)),
    WildSet("orange juice", False, "ISLR", "OJ", "Purchase"),
    WildSet("spam", False, "DAAG", "spam7", "yesno"),
    WildSet("glass", False, "MASS", "fgl", "type"),
    WildSet("labour force", False, "carData", "Mroz", "lfp"),
    WildSet("cgm, continuous", True, values={"h": 0.001}),
)
