"""stochtree (PyPI) held to one tree: chains of its own for the same time, in as many processes.

Regression with its normal model and, for two classes, its probit model; it has none for more. The
priors of the leaves are its own. Without stochtree (``pip install stochtree``) there is no peer.
"""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import joblib
import numpy as np
from scipy.special import log_ndtr, ndtr

from hamiltree.datasets.paper import Split

from .agreement import N_CHAINS, N_THREADS, THROWN_AWAY, Outcome, outcome, points_of
from .data import is_regression

PILOT = 100
"""Iterations that tell how many fit into the time."""
MAX_KEPT = 2000
"""Trees kept of a chain; the others are thinned out evenly."""


def one_tree_outcome(split: Split, prior: tuple[float, float], seconds: float) -> Outcome | str:
    """Its outcome with this (alpha, beta) of the topology prior, or why there is none."""
    if importlib.util.find_spec("stochtree") is None:
        return "not installed"
    if not is_regression(split.name) and len(np.unique(split.y)) > 2:
        return "no model for more than two classes"
    share = seconds * N_THREADS / N_CHAINS
    results = joblib.Parallel(N_THREADS)(
        joblib.delayed(_chain)(split, prior, share, seed) for seed in range(1, N_CHAINS + 1)
    )
    shortest = min(len(result[1]) for result in results)
    log_likelihood, leaves, predictions = (
        np.stack([result[part][:shortest] for result in results]) for part in range(3)
    )
    spent = sum(result[3] for result in results) / N_THREADS
    return outcome(log_likelihood, leaves, predictions, spent)


def _chain(
    split: Split, prior: tuple[float, float], seconds: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Log-likelihood [draw], leaves [draw], predictions [draw, point] and seconds of one chain."""
    import stochtree  # noqa: F401  loading it is not counted

    points = points_of(split)
    begun = time.perf_counter()
    _sample(split, points, prior, seed, burn_in=0, kept=PILOT, every=1)
    seconds_per_iteration = (time.perf_counter() - begun) / PILOT
    n = max(PILOT, int((seconds - (time.perf_counter() - begun)) / seconds_per_iteration))
    burn_in = int(THROWN_AWAY * n)
    every = max(1, -(-(n - burn_in) // MAX_KEPT))
    kept = (n - burn_in) // every
    model = _sample(split, points, prior, seed, burn_in=burn_in, kept=kept, every=every)
    spent = time.perf_counter() - begun
    trees = model.forest_container_mean
    leaves = np.array([trees.num_forest_leaves(draw) for draw in range(kept)])
    fitted, predictions = model.y_hat_train.T, model.y_hat_test.T
    if is_regression(split.name):
        variance = model.global_var_samples[:, None]
        terms = -0.5 * ((split.y - fitted) ** 2 / variance + np.log(2 * np.pi * variance))
    else:
        terms = log_ndtr(np.where(split.y == split.y.max(), fitted, -fitted))
        predictions = ndtr(predictions)
    return terms.sum(axis=1), leaves, predictions, spent


def _sample(
    split: Split,
    points: np.ndarray,
    prior: tuple[float, float],
    seed: int,
    *,
    burn_in: int,
    kept: int,
    every: int,
) -> Any:
    from stochtree import BARTModel, OutcomeModel

    general: dict[str, Any] = {"num_threads": 1, "keep_every": every, "random_seed": seed}
    if not is_regression(split.name):
        probit = OutcomeModel(outcome="binary", link="probit")
        general |= {"sample_sigma2_global": False, "outcome_model": probit}
    model = BARTModel()
    model.sample(
        X_train=split.X,
        y_train=(split.y if is_regression(split.name) else split.y == split.y.max()).astype(float),
        X_test=points,
        num_gfr=0,
        num_burnin=burn_in,
        num_mcmc=kept,
        general_params=general,
        mean_forest_params={
            "num_trees": 1,
            "alpha": prior[0],
            "beta": prior[1],
            "min_samples_leaf": 1,
            "sample_sigma2_leaf": False,
        },
    )
    return model
