"""Checks of what a file holds: trees, parameters, labels, training data.

The compiled kernels do not check their indices, so every invariant that they rely on is checked
here, before any of the arrays is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.tree.kinds import IMPUTED, coded_kinds
from ...inputs.preprocess import Preprocessing
from ...methods import METHODS
from ...methods.base import H_WORDS, SHARED, Configuration
from ...methods.parameters import declared
from ..draws import REQUESTED, Draws, TrainingData

if TYPE_CHECKING:
    from ...inputs.encoding import TrainingTable


class FileFormatError(ValueError):
    """The file is not a posterior that this version can read."""


def check_preprocessing(preprocessing: Preprocessing) -> None:
    names, used = preprocessing.feature_names, preprocessing.used
    require(all(isinstance(name, str) for name in names), "a feature name is not text")
    require(
        bool((np.diff(used) > 0).all() and (used >= 0).all() and (used < len(names)).all())
        if preprocessing.indicator is None
        else bool((np.diff(used) >= 0).all() and (used >= 0).all() and (used < len(names)).all()),
        "used does not number the columns",
    )
    _check_expansion(preprocessing)
    _check_imputation(preprocessing)
    require(
        bool(np.isfinite(preprocessing.minimum).all() and _positive(preprocessing.span)),
        "minimum and span do not describe ranges",
    )
    scale = np.array([preprocessing.y_sd])
    require(bool(np.isfinite(preprocessing.y_mean) and _positive(scale)), "y has no scale")


def _check_expansion(preprocessing: Preprocessing) -> None:
    """Columns of 0 and 1 that stand for levels."""
    indicator, fill, columns = preprocessing.indicator, preprocessing.fill, preprocessing.columns
    if indicator is None or fill is None:
        return
    require(bool(np.isfinite(fill).all()), "what stands for missing cells is not finite")
    require(len(columns) == len(preprocessing.feature_names), "columns are not described")
    most = np.array([columns[column].n_levels for column in preprocessing.used])
    known = np.where(most > 0, (indicator >= 0) & (indicator < most), indicator == -1)
    require(bool(known.all()), "an indicator has no level")


def _check_imputation(preprocessing: Preprocessing) -> None:
    """A normal distribution of used columns, among them all that have missing numbers."""
    if (by := preprocessing.imputation) is None:
        return
    require(preprocessing.indicator is None, "missing cells have two meanings")
    place, p = by.place, len(preprocessing.used)
    require(bool(((place >= 0) & (place < p)).all()), "imputation does not number the columns")
    n_levels = np.array([preprocessing.column(column).n_levels for column in range(p)])
    number, most = by.code == -1, n_levels[place]
    known = np.where(number, most == 0, (by.code >= 0) & (by.code < most))
    require(bool(known.all()), "imputation has unknown levels")
    numbers = np.array_equal(np.sort(place[number]), np.flatnonzero(n_levels == 0))
    require(bool(numbers), "imputation lacks a column")
    require(bool(np.isfinite(by.mean).all()), "imputation has no mean")
    require(bool(np.isfinite(by.covariance).all()), "imputation has no covariance")
    require(np.allclose(by.covariance, by.covariance.T), "imputation has no covariance")
    variance = np.diag(by.covariance)
    require(bool((variance > 0).all()), "imputation has no covariance")
    correlation = by.covariance / np.sqrt(np.outer(variance, variance))
    require(bool((np.linalg.eigvalsh(correlation) > 0).all()), "imputation has no covariance")


def check_draws(draws: Draws, classification: bool, p: int) -> None:
    """Every invariant that the kernels rely on: they do not check their indices.

    ``p``: how many columns the trees know.
    """
    size, offset = draws.size.astype(np.int64), draws.node_offset
    node = np.flatnonzero(size > 1)
    require(bool((size >= 1).all() and (size[offset[:-1]] == np.diff(offset)).all()), "bad sizes")
    end = np.repeat(offset[1:], np.diff(offset))[node]
    require(bool((node + 1 < end).all()), "a split has no children")
    right = node + 1 + size[node + 1]
    require(bool((right < end).all()), "a split has no right child")
    require(bool((size[node] == 1 + size[node + 1] + size[right]).all()), "sizes do not add up")
    # A node adds one level to the rest of its subtree.
    steps = np.bincount(node + 1, minlength=len(size) + 1) - np.bincount(
        node + size[node], minlength=len(size) + 1
    )
    depth = np.maximum.reduceat(np.cumsum(steps)[: len(size)], offset[:-1])
    require(bool((draws.depth.ravel() == depth).all()), "depth does not match the trees")
    leaves = (np.diff(offset) + 1) // 2
    require(bool((draws.n_leaves.ravel() == leaves).all()), "n_leaves does not match the trees")

    require(bool(np.isfinite(draws.h).all() and (draws.h >= 0).all()), "h is not a softness")
    require(not draws.h_learned or draws.h.shape[1] in (1, p), "h has the wrong shape")
    require(draws.split_weights.shape[1] in (0, p), "weights have the wrong shape")
    if draws.split_weights.shape[1] == 0:
        inside = (draws.feature >= 0) & (draws.feature < p)
        require(bool(inside.all()), "a feature does not exist")
    elif len(draws.split_weights):
        sums = draws.split_weights.sum(axis=1)  # NaN and infinities fail here too
        require(
            bool((draws.split_weights >= 0).all() and np.allclose(sums, 1)),
            "weights are no simplex",
        )
    plain = np.ones(len(draws.threshold), bool)
    if draws.kinds is not None:
        plain = draws.kinds[draws.feature] >= 0
    require(bool(np.isfinite(draws.threshold[plain]).all()), "a threshold is not finite")
    require(not np.isnan(draws.threshold).any(), "a threshold is not a number")
    require(bool(np.isfinite(draws.leaf).all()), "a leaf is not finite")
    if classification:
        require(bool((draws.leaf >= 0).all()), "a class count is negative")
    else:
        require(_positive(draws.sigma), "sigma is not positive")
        require(_positive(draws.leaf[:, 1:]), "a leaf's sd is not positive")
    weights = draws.weights_of_draws
    require(bool((weights >= 0).all() and np.isclose(weights.sum(), 1)), "weights of draws")
    for values in (draws.log_likelihood, draws.log_posterior):
        require(not np.isnan(values).any(), "a log probability is NaN")


def unpack_configuration(
    stored: Mapping[str, Any], n_classes: int, file_format: int
) -> Configuration[Any]:
    """The method and the shared values; before format 3 a file has the values of every method."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    name = values.pop("method", None)
    require(name in METHODS, f"this version has no method {name!r}")
    cls = METHODS[name]
    known = {f.name for f in declared(cls)}
    if file_format < 3:
        values = {name: v for name, v in values.items() if name in known or name in SHARED}
        values |= dict.fromkeys(set(cls.unused) & set(SHARED))
        values["class_mass"] = None  # the class_prior beside it was made from it
    silent = values.get("class_prior") is None and values.get("class_mass") is None
    if n_classes and file_format < 6 and silent:
        values["class_prior"] = 1.0  # the default then
    if n_classes and "likelihood" in known - set(values) and values.get("h") != "learn":
        values["likelihood"] = "paper"  # the only one of a given h before there was a choice
    if "impute" in known and file_format < 7:
        values["impute"] = False
    unknown = set(values) - known - set(SHARED)
    require(not unknown, f"it has parameters that this version does not know: {sorted(unknown)}")
    require(set(values) >= set(SHARED), "its configuration is incomplete")
    shared = {name: values.pop(name) for name in SHARED}
    for name, value in shared.items():
        kinds = {"max_leaves": int, "h": int | float | tuple | None}.get(name, int | float | None)
        right = isinstance(value, kinds) or (name == "h" and value in H_WORDS)
        require(right, f"{name} is wrong")
    try:
        method = cls(**values)
    except ValueError as error:
        raise FileFormatError(str(error)) from None
    if n_classes:
        prior = np.asarray(method.class_concentration(n_classes), dtype=np.float64)
        require(prior.shape == (n_classes,) and _positive(prior), "class_prior is wrong")
    return Configuration(method, **shared)


def unpack_acceptance(stored: Mapping[str, Any], n_chains: int) -> dict[str, Any]:
    acceptance: dict[str, Any] = {}
    for phase, moves in stored.items():
        acceptance[phase] = {}
        for move, counts in moves.items():
            accepted, proposed = (np.array(count, dtype=np.int64) for count in counts)
            require(accepted.shape == proposed.shape == (n_chains,), "acceptance is incomplete")
            acceptance[phase][move] = (accepted, proposed)
    return acceptance


def unpack_run(stored: Mapping[str, Any]) -> dict[str, Any]:
    """How the run was asked for: fields of ``RunInfo``."""
    stored = {"max_seconds": None, **stored}  # which is younger than format 4
    require(stored.keys() == set(REQUESTED), "it does not say how the run was asked for")
    for name, value in stored.items():
        kind = int | float | None if name in ("target_rhat", "max_seconds") else int | None
        require(isinstance(value, kind), f"{name} is wrong")
    return dict(stored)


def unpack_table(stored: Mapping[str, Any] | None) -> TrainingTable | None:
    if stored is None:
        return None
    from ...inputs.encoding import TrainingTable  # loads pandas, which most posteriors do not need

    try:
        return TrainingTable.from_dict(stored)
    except ValueError as error:
        raise FileFormatError(str(error)) from None


def without_free_keys(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Formats 1 to 3 had the run and the table among the provenance: the keys they have now."""
    notes = {k: v for k, v in provenance.items() if k not in ("n_chains", "n_draws")}
    run = {name: notes.pop(name, None) for name in REQUESTED}
    name, n_rows, encoding = (notes.pop(key, None) for key in ("data", "n_rows", "table"))
    table = None
    if encoding is not None:
        table = {"encoding": encoding, "name": name or "", "n_rows": n_rows}
    return {"run": run, "table": table, "provenance": notes}


def check_columns(draws: Draws, preprocessing: Preprocessing) -> None:
    """What the kernels rely on of special columns, and that trees and columns agree."""
    kinds = coded_kinds(preprocessing.kinds)
    require(
        not preprocessing.columns or len(preprocessing.columns) == len(preprocessing.feature_names),
        "columns are not described",
    )
    require((kinds is None) == (draws.kinds is None), "kinds of columns do not match")
    if kinds is None or draws.kinds is None or draws.levels is None:
        return
    require(bool((kinds == draws.kinds).all()), "kinds of columns do not match")
    n_levels = kinds[draws.feature]
    most = np.where(n_levels > 0, 2.0 ** np.maximum(n_levels, 0) - 1, np.maximum(-n_levels, 0))
    require(bool((draws.levels.astype(np.float64) <= most).all()), "a set has unknown levels")
    imputed = (n_levels < 0) & (draws.levels == IMPUTED)
    require(bool(np.isfinite(draws.threshold[imputed]).all()), 'a rule "is missing" is imputed')


def unpack_training(
    arrays: Mapping[str, NDArray[Any]], classes: NDArray[Any] | None
) -> TrainingData:
    X, y = arrays["training_x"], arrays["training_y"]
    require(bool(not np.isinf(X).any() and np.isfinite(y).all()), "training data are not finite")
    weights = arrays["training_weights"] if len(arrays["training_weights"]) else None
    require(weights is None or _positive(weights), "weights of training rows are not positive")
    if classes is None:
        return TrainingData(X, y, weights)
    codes = y.astype(np.int64)
    known = (codes == y) & (codes >= 0) & (codes < len(classes))
    require(bool(known.all()), "training data have a class that does not exist")
    return TrainingData(X, codes, weights)


def unpack_labels(stored: Mapping[str, Any] | None) -> NDArray[Any] | None:
    if stored is None:
        return None
    dtype, values = np.dtype(stored["dtype"]), list(stored["values"])
    require(dtype.kind in "biufUSOmM" and dtype.names is None, "class labels have an odd type")
    require(len(values) > 0, "there are no class labels")
    require(all(isinstance(v, str | int | float) for v in values), "a class label is odd")
    if dtype.kind == "S":
        values = [value.encode("latin-1") for value in values]
    if dtype.kind in "mM":
        return np.array(values, dtype=np.int64).astype(dtype)
    return np.array(values, dtype=dtype)


def _positive(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all() and (values > 0).all())


def require(condition: bool, complaint: str) -> None:
    if not condition:
        raise FileFormatError(complaint)
