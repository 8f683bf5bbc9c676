"""What the tests of going on share: every kind of run, small, and how to compare two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hamiltree.posterior.draws import Draws

from ..reference.model import TOYS

METHODS: dict[str, dict[str, Any]] = {
    "hmc-df": {"method": "hmc-df"},
    "hmc-df prior": {"method": "hmc-df", "moves": "prior", "h_init": 0.3},
    "hmc-df paper": {"method": "hmc-df", "preset": "paper", "adapt_steps": 30},
    "hmc-df replicas": {"method": "hmc-df", "replicas": 3},
    "hmc-df learn": {"method": "hmc-df", "h": "learn", "h_by_feature": True},
    "hmc-dfi": {"method": "hmc-dfi"},
    "hmc-dfi paper": {"method": "hmc-dfi", "preset": "paper", "adapt_steps": 30},
    "cgm": {"method": "cgm"},
    "cgm prior": {"method": "cgm", "moves": "prior", "proposals": 3},
    "cgm replicas": {"method": "cgm", "replicas": 3},
    "wu": {"method": "wu", "triples": 2},
    "wu replicas": {"method": "wu", "triples": 2, "replicas": 3, "hottest_power": 0.0},
    "smc": {"method": "smc"},
}
"""Parameters of an estimator, by kind of run."""
TASKS = {"classification": "three-classes", "regression": "regression"}
"""Toy data of each task."""


def data_of(task: str) -> tuple[np.ndarray, np.ndarray]:
    toy = TOYS[TASKS[task]]()
    return toy.X, toy.y


def same_arrays(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Bit for bit, NaN equal to itself."""
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype
        and a[name].shape == b[name].shape
        and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


def arrays_of(draws: Draws) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in vars(draws).items()}
