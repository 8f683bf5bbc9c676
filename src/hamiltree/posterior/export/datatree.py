"""A posterior as an ``xarray.DataTree`` with ArviZ's groups and names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from ...utils.files import library_version
from ...utils.json_text import plain

if TYPE_CHECKING:
    from ..posterior import Posterior

ARVIZ_NAMES = {
    "divergent": "diverging",
    "nuts_depth": "tree_depth",
    "accept_stat": "acceptance_rate",
}
SEED = 0
"""Leaf probabilities and new observations are drawn: the same ones each time."""

DRAW = ("chain", "draw")


def to_datatree(posterior: Posterior, *, pointwise: bool) -> xarray.DataTree:
    """See ``Posterior.to_datatree``.

    ArviZ knows no weights: draws of a weighted posterior (SMC) are resampled to equal ones, which
    the attribute ``resampled`` says, and what was recorded of single particles stays behind.
    """
    weighted = posterior.weighted
    trees = posterior.equally_weighted() if weighted else posterior
    groups = {
        "posterior": _quantities(posterior, trees, weighted),
        "sample_stats": _sample_stats(posterior, trees, weighted),
        "trees": _flat_trees(trees),
    }
    if posterior.training is not None:
        groups |= _about_rows(posterior, trees, pointwise)
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs = {
        "inference_library": "hamiltree",
        "inference_library_version": library_version(),
        "sampling_time": posterior.info.seconds,
        "resampled": int(weighted),
        "configuration": json.dumps(posterior.configuration.to_dict(), default=plain),
        "run": json.dumps(posterior.info.requested(), default=plain),
        "provenance": json.dumps(posterior.provenance, default=plain),
    }
    return tree


def likelihood_tree(posterior: Posterior) -> xarray.DataTree:
    """The groups that ArviZ's ``loo`` reads, and no other."""
    weighted = posterior.weighted
    trees = posterior.equally_weighted() if weighted else posterior
    groups = {
        "posterior": _quantities(posterior, trees, weighted),
        "log_likelihood": _log_likelihood(posterior, trees),
    }
    return xarray.DataTree.from_dict(groups)


def _coordinates(trees: Posterior) -> dict[str, Any]:
    return {"chain": np.arange(trees.n_chains), "draw": np.arange(trees.n_draws)}


def _quantities(posterior: Posterior, trees: Posterior, weighted: bool) -> xarray.Dataset:
    """What has the same meaning in every draw, whatever the size of its tree."""
    draws = trees.draws
    quantities: dict[str, Any] = {
        name: (DRAW, getattr(draws, name)) for name in ("log_posterior", "n_leaves", "depth")
    }
    if not trees.n_classes:
        quantities["sigma"] = (DRAW, trees.preprocessing.sd_to_user(draws.sigma))
    coordinates = _coordinates(trees)
    if draws.h_learned:
        by_column = posterior.h.ndim == 3
        quantities["h"] = ((*DRAW, "column") if by_column else DRAW, posterior.h)
        if by_column:
            coordinates["column"] = list(trees.preprocessing.used_names)
    if posterior.monitor is not None and not weighted:
        quantities["monitor"] = ((*DRAW, "point"), posterior.monitor)
        coordinates["point"] = np.arange(posterior.monitor.shape[2])
    return xarray.Dataset(quantities, coordinates)


def _sample_stats(posterior: Posterior, trees: Posterior, weighted: bool) -> xarray.Dataset:
    stats: dict[str, Any] = {
        "lp": (DRAW, trees.draws.log_posterior),
        "log_likelihood": (DRAW, trees.draws.log_likelihood),
    }
    if not weighted:
        stats |= {
            ARVIZ_NAMES.get(name, name): (DRAW, values) for name, values in posterior.stats.items()
        }
    return xarray.Dataset(stats, _coordinates(trees))


def _about_rows(
    posterior: Posterior, trees: Posterior, pointwise: bool
) -> dict[str, xarray.Dataset]:
    training = posterior.data("to_datatree")
    classes = posterior.preprocessing.classes
    row = np.arange(len(training.y))
    observed = xarray.Dataset({"y": ("row", training.y)}, {"row": row})
    if training.weights is not None:
        observed["weight"] = ("row", training.weights)
    if classes is not None:
        observed["y"].attrs["classes"] = [str(label) for label in classes]
    groups = {"observed_data": observed}
    if not pointwise:
        return groups
    coordinates = {**_coordinates(trees), "row": row}
    groups["log_likelihood"] = _log_likelihood(posterior, trees)
    new = trees.sample_predictive(training.X, SEED)
    if classes is not None:
        new = np.searchsorted(classes, new)
    predictive = xarray.Dataset({"y": ((*DRAW, "row"), new)}, coordinates)
    predictive["y"].attrs = dict(observed["y"].attrs)
    groups["posterior_predictive"] = predictive
    return groups


def _log_likelihood(posterior: Posterior, trees: Posterior) -> xarray.Dataset:
    """Of each training row, given a draw."""
    training, classes = posterior.data("the log-likelihood"), posterior.preprocessing.classes
    y = training.y if classes is None else classes[training.y]
    values = trees.pointwise_log_likelihood(training.X, y, SEED)
    coordinates = {**_coordinates(trees), "row": np.arange(len(training.y))}
    return xarray.Dataset({"y": ((*DRAW, "row"), values)}, coordinates)


def _flat_trees(trees: Posterior) -> xarray.Dataset:
    """The arrays of ``Draws``, under their names; trees are numbered chain * n_draws + draw."""
    draws, scale = trees.draws, trees.preprocessing
    outputs = ["mean", "sd"][: draws.leaf.shape[1]]
    if scale.classes is not None:
        outputs = [str(label) for label in scale.classes]
    h = draws.h
    if draws.h_learned:
        h = np.broadcast_to(h, (len(h), len(scale.used)))
    variables: dict[str, Any] = {
        "node_offset": ("bounds", draws.node_offset),
        "size": ("nodes", draws.size),
        "feature": ("splits", draws.feature),
        "threshold": ("splits", draws.threshold),
        "leaf": (("leaves", "outputs"), draws.leaf),
        "h": (("trees", "columns") if draws.h_learned else "columns", h),
        "minimum": ("columns", scale.minimum),
        "span": ("columns", scale.span),
    }
    if draws.split_weights.shape[1]:
        variables["weights"] = (("splits", "columns"), draws.split_weights)
    return xarray.Dataset(variables, {"columns": list(scale.used_names), "outputs": outputs})
