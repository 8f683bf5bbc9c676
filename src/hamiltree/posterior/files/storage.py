"""A posterior in one NetCDF file, and back; checked on the way in, no pickle, nothing is run.

Layout: the arrays of ``Draws`` under their own names, those of ``Preprocessing`` beside them,
the group "stats" for what the sampler recorded, and one JSON text, ``metadata``, for everything
that is not a large array. Arrays without entries are left out. Nothing is compressed, so an array
cannot claim to be larger than its file. A fitted model is the same file: the parameters of its
estimator stand under ``model`` in the metadata.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...inputs.imputation import Imputation
from ...inputs.preprocess import Preprocessing
from ...methods.base import Configuration
from ...utils.arrays import FloatArray
from ...utils.files import check_writable, library_version, netcdf, replacing
from ...utils.json_text import plain
from ..draws import STOPPED, Draws, RunInfo, TrainingData
from .checks import (
    FileFormatError,
    check_columns,
    check_draws,
    check_preprocessing,
    require,
    unpack_acceptance,
    unpack_configuration,
    unpack_labels,
    unpack_run,
    unpack_table,
    unpack_training,
    without_free_keys,
)
from .columns import pack_columns, unpack_columns
from .model_record import ModelRecord

if TYPE_CHECKING:
    from ...inputs.encoding import TrainingTable

FORMAT = 7
"""Raised by one whenever older versions of the library could not read the file. 2: h of each
tree, where it was learned. 3: the method's own parameters instead of those of all methods. 4: the
run and the table under keys of their own, no longer among the provenance. 5: weights of rows,
missing cells and categories. 6: where the configuration leaves class_prior and class_mass at None,
the sum of the prior is 1, where it was 1 for each class. 7: missing cells are imputed."""

ARRAYS: dict[str, tuple[type[np.generic], tuple[str, ...]]] = {
    "node_offset": (np.int64, ("bounds",)),
    "size": (np.int32, ("nodes",)),
    "feature": (np.int32, ("splits",)),
    "threshold": (np.float64, ("splits",)),
    "weights": (np.float64, ("splits", "rule_columns")),
    "levels": (np.uint64, ("special_splits",)),
    "kinds": (np.int64, ("special_columns",)),
    "indicator": (np.int64, ("expanded_columns",)),
    "fill": (np.float64, ("expanded_columns",)),
    "imputation_place": (np.int64, ("imputed_columns",)),
    "imputation_code": (np.int64, ("imputed_columns",)),
    "imputation_mean": (np.float64, ("imputed_columns",)),
    "imputation_covariance": (np.float64, ("imputed_columns", "imputed_columns")),
    "leaf": (np.float64, ("leaves", "outputs")),
    "h": (np.float64, ("columns",)),
    "n_leaves": (np.int64, ("chain", "draw")),
    "depth": (np.int64, ("chain", "draw")),
    "log_likelihood": (np.float64, ("chain", "draw")),
    "log_posterior": (np.float64, ("chain", "draw")),
    "sigma": (np.float64, ("chain", "draw")),
    "weights_of_draws": (np.float64, ("chain", "draw")),
    "used": (np.int64, ("columns",)),
    "minimum": (np.float64, ("columns",)),
    "span": (np.float64, ("columns",)),
    "monitor": (np.float64, ("chain", "draw", "points")),
    "training_x": (np.float64, ("rows", "inputs")),
    "training_y": (np.float64, ("rows",)),
    "training_weights": (np.float64, ("weighted_rows",)),
}
"""Type and dimensions of each array in the file; ``rule_columns`` is 0 but for HMC-DFI."""
LEARNED: dict[str, tuple[type[np.generic], tuple[str, ...]]] = {
    **ARRAYS,
    "h": (np.float64, ("trees", "softnesses")),
}
"""The same where each tree has an h of its own."""


@dataclass(frozen=True)
class Contents:
    """What a file holds: the arguments of ``Posterior``."""

    draws: Draws
    info: RunInfo
    preprocessing: Preprocessing
    configuration: Configuration[Any]
    monitor: FloatArray | None
    training: TrainingData | None
    table: TrainingTable | None
    provenance: dict[str, Any]
    model: ModelRecord | None


def write(
    path: str | os.PathLike[str],
    draws: Draws,
    info: RunInfo,
    preprocessing: Preprocessing,
    configuration: Configuration[Any],
    monitor: FloatArray | None,
    training: TrainingData | None,
    table: TrainingTable | None,
    provenance: Mapping[str, Any],
    model: ModelRecord | None,
) -> None:
    """Write a file that ``read`` understands; an existing one is replaced at the very end."""
    target = check_writable(path, "the posterior")
    imputation = preprocessing.imputation
    metadata = json.dumps(
        {
            "configuration": configuration.to_dict(),
            "rule_columns": draws.split_weights.shape[1],
            "softnesses": draws.h.shape[1] if draws.h_learned else 0,
            "points": 0 if monitor is None else monitor.shape[2],
            "rows": 0 if training is None else len(training.y),
            "columns": pack_columns(preprocessing.columns),
            "special": draws.kinds is not None,
            "expanded": preprocessing.indicator is not None,
            "imputed_columns": 0 if imputation is None else len(imputation.place),
            "weighted": training is not None and training.weights is not None,
            "feature_names": preprocessing.feature_names,
            "classes": _pack_labels(preprocessing.classes),
            "y_mean": preprocessing.y_mean,
            "y_sd": preprocessing.y_sd,
            "dtype": preprocessing.dtype,
            "acceptance": info.acceptance,
            "seconds": info.seconds,
            "stopped": info.stopped,
            "log_evidence": info.log_evidence,
            "log_evidence_error": info.log_evidence_error,
            "powers": info.powers,
            "why_replicas": info.why_replicas,
            "boolean_stats": [name for name, stat in info.stats.items() if stat.dtype == bool],
            "run": info.requested(),
            "table": None if table is None else table.to_dict(),
            "provenance": dict(provenance),
            "model": None if model is None else model.to_dict(),
        },
        default=plain,
    )
    layout = LEARNED if draws.h_learned else ARRAYS
    available = {**vars(preprocessing), **vars(draws), "weights": draws.split_weights}
    if imputation is not None:
        available |= {f"imputation_{name}": value for name, value in vars(imputation).items()}
    if monitor is not None:
        available["monitor"] = monitor
    if training is not None:
        available |= {"training_x": training.X, "training_y": training.y}
        if training.weights is not None:
            available["training_weights"] = training.weights
    arrays = {
        name: np.asarray(available[name], dtype=dtype)
        for name, (dtype, _) in layout.items()
        if available.get(name) is not None and np.size(available[name]) > 0
    }
    with replacing(target) as part, netcdf(part, "w") as file:
        file.title = "hamiltree posterior"
        file.hamiltree_format = FORMAT
        file.hamiltree_version = library_version()
        for name, array in arrays.items():
            for dimension, length in zip(layout[name][1], array.shape, strict=True):
                if dimension not in file.dimensions:
                    file.createDimension(dimension, length)
            _put(file, name, layout[name][1], array)
        stats = file.createGroup("stats")
        for name, stat in info.stats.items():
            _put(stats, name, ("chain", "draw"), stat)
        file.createVariable("metadata", str)[...] = metadata


def _put(group: Any, name: str, dimensions: tuple[str, ...], array: NDArray[Any]) -> None:
    data = array.astype(np.int8) if array.dtype == bool else array
    group.createVariable(name, data.dtype, dimensions, fill_value=False)[...] = data


def read(path: str | os.PathLike[str]) -> Contents:
    """Read and check a file.

    Raises
    ------
    OSError
        If there is no such file, or it may not be read.
    FileFormatError
        A ``ValueError``: if it is not a complete and consistent posterior.
    """
    with open(path, "rb"):  # the system's own error where there is no file to look into
        pass
    try:
        with netcdf(path, "r") as file:
            file.set_auto_maskandscale(False)
            return _parse(file, os.path.getsize(path))
    except FileFormatError as error:
        raise FileFormatError(f"cannot load {path}: {error}") from None
    except Exception as error:  # a damaged file can make the libraries below raise anything
        raise FileFormatError(
            f"cannot load {path}: not a readable NetCDF file ({error})"
        ) from error


def _parse(file: Any, file_size: int) -> Contents:
    unfinished = "it is the checkpoint of a run: call fit with it again, and save what that gives"
    require("hamiltree_checkpoint" not in file.ncattrs(), unfinished)
    require("hamiltree_format" in file.ncattrs(), "it was not written by hamiltree")
    stored = int(file.hamiltree_format)
    if stored > FORMAT:
        raise FileFormatError(
            f"it has format {stored} and was written by hamiltree "
            f"{getattr(file, 'hamiltree_version', '?')}; this version reads up to format "
            f"{FORMAT}: upgrade"
        )

    def get(variables: Any, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        if 0 in shape:
            return np.empty(shape, dtype)
        require(name in variables, f"{name} is missing")
        variable = variables[name]
        found = np.dtype(variable.dtype)
        right = variable.shape == shape and (found == dtype if dtype else found.kind in "iuf")
        require(right, f"{name} has the wrong shape or type")
        require(found.itemsize * math.prod(shape) <= file_size, f"{name} is incomplete")
        return np.ascontiguousarray(variable[...])

    for name in ("metadata", "n_leaves", "used"):
        require(name in file.variables, f"{name} is missing")
    metadata = json.loads(str(file.variables["metadata"][...]))
    if stored < 4:
        metadata |= without_free_keys(metadata["provenance"])
    chain, draw = file.variables["n_leaves"].shape
    lengths = {"chain": chain, "draw": draw, "bounds": chain * draw + 1}
    require(chain > 0 and draw > 0, "it holds no draws")
    offset = get(file.variables, "node_offset", np.int64, (lengths["bounds"],))
    require(
        bool(offset[0] == 0 and (np.diff(offset) > 0).all() and (np.diff(offset) % 2 == 1).all()),
        "node_offset does not describe trees",
    )
    classes = unpack_labels(metadata["classes"])
    nodes = int(offset[-1])
    lengths["nodes"] = nodes
    lengths["splits"], lengths["leaves"] = (nodes - chain * draw) // 2, (nodes + chain * draw) // 2
    (lengths["columns"],) = file.variables["used"].shape
    lengths["rule_columns"] = int(metadata["rule_columns"])
    lengths["trees"], lengths["softnesses"] = chain * draw, int(metadata.get("softnesses", 0))
    layout = LEARNED if lengths["softnesses"] else ARRAYS
    lengths["outputs"] = len(classes) if classes is not None else _leaf_width(file)
    lengths["points"], lengths["rows"] = int(metadata["points"]), int(metadata["rows"])
    special = bool(metadata.get("special"))
    lengths["special_splits"] = lengths["splits"] if special else 0
    lengths["special_columns"] = lengths["columns"] if special else 0
    expanded = bool(metadata.get("expanded"))
    lengths["expanded_columns"] = lengths["columns"] if expanded else 0
    lengths["imputed_columns"] = int(metadata.get("imputed_columns", 0))
    lengths["weighted_rows"] = lengths["rows"] if metadata.get("weighted") else 0
    lengths["inputs"] = len(metadata["feature_names"])
    arrays = {
        name: get(file.variables, name, dtype, tuple(lengths[d] for d in dimensions))
        for name, (dtype, dimensions) in layout.items()
    }
    preprocessing = Preprocessing(
        feature_names=tuple(metadata["feature_names"]),
        used=arrays["used"],
        minimum=arrays["minimum"],
        span=arrays["span"],
        classes=classes,
        y_mean=float(metadata["y_mean"]),
        y_sd=float(metadata["y_sd"]),
        dtype=str(metadata.get("dtype", "float64")),
        columns=unpack_columns(metadata.get("columns", ())),
        indicator=arrays["indicator"] if expanded else None,
        fill=arrays["fill"] if expanded else None,
        imputation=_imputation(arrays) if lengths["imputed_columns"] else None,
    )
    arrays["split_weights"] = arrays.pop("weights")  # the file's name for them
    names = {field.name for field in fields(Draws)} & set(arrays)
    if not special:
        names -= {"levels", "kinds"}
    draws = Draws(n_chains=chain, n_draws=draw, **{name: arrays[name] for name in names})
    stats = {}
    for name in file.groups["stats"].variables:
        stat = get(file.groups["stats"].variables, name, None, (chain, draw))
        stats[name] = stat.astype(bool) if name in metadata["boolean_stats"] else stat
    require(metadata["stopped"] in STOPPED, "it does not say what ended the run")
    evidence, error = metadata["log_evidence"], metadata.get("log_evidence_error")
    info = RunInfo(
        acceptance=unpack_acceptance(metadata["acceptance"], chain),
        stats=stats,
        seconds=float(metadata["seconds"]),
        stopped=metadata["stopped"],
        log_evidence=None if evidence is None else float(evidence),
        log_evidence_error=None if error is None else float(error),
        powers=tuple(float(power) for power in metadata.get("powers", ())),
        why_replicas=str(metadata.get("why_replicas", "")),
        **unpack_run(metadata["run"]),
    )
    old = stored < 3
    configuration = unpack_configuration(
        metadata["settings" if old else "configuration"],
        0 if classes is None else len(classes),
        stored,
    )
    check_preprocessing(preprocessing)
    check_draws(draws, classes is not None, lengths["columns"])
    check_columns(draws, preprocessing)
    monitor = arrays["monitor"] if lengths["points"] else None
    require(monitor is None or bool(np.isfinite(monitor).all()), "monitor is not finite")
    training = unpack_training(arrays, classes) if lengths["rows"] else None
    return Contents(
        draws, info, preprocessing, configuration, monitor, training,
        unpack_table(metadata["table"]), dict(metadata["provenance"]),
        ModelRecord.from_dict(metadata.get("model")),
    )  # fmt: skip


def _imputation(arrays: dict[str, NDArray[Any]]) -> Imputation:
    return Imputation(**{f.name: arrays[f"imputation_{f.name}"] for f in fields(Imputation)})


def _leaf_width(file: Any) -> int:
    """Numbers per regression leaf: its mean and, for hard splits, its noise sd."""
    require("leaf" in file.variables, "leaf is missing")
    width = file.variables["leaf"].shape[-1:]
    require(width in ((1,), (2,)), "leaf has the wrong shape or type")
    return int(width[0])


def _pack_labels(classes: NDArray[Any] | None) -> dict[str, Any] | None:
    """Class labels with their type; JSON keeps every digit of a float."""
    if classes is None:
        return None
    values = classes.astype(np.int64) if classes.dtype.kind in "mM" else classes
    packed = [v.decode("latin-1") if isinstance(v, bytes) else v for v in values.tolist()]
    if not all(isinstance(value, str | int | float) for value in packed):
        raise TypeError("only class labels that are text or numbers can be saved")
    return {"dtype": "object" if classes.dtype == object else classes.dtype.str, "values": packed}
