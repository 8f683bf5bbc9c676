"""The parameters of an estimator as plain values, for the file of its posterior, and back."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from sklearn.base import is_regressor

from ..methods import METHODS, Method
from ..methods.base import SHARED
from ..methods.parameters import declared, plain
from ..posterior import Posterior
from ..posterior.files.checks import FileFormatError, require
from ..posterior.files.model_record import ModelRecord

CLASSIFIER, REGRESSOR = "BayesianTreeClassifier", "BayesianTreeRegressor"


def record_of(model: Any) -> ModelRecord:
    """An estimator's parameters in plain values.

    None stand for a ``RandomState``, which has no plain values, and for the checkpoint, a file of
    the machine that the model was fitted on.
    """
    parameters: dict[str, Any] = {}
    for f in declared(model):
        value = getattr(model, f.name)
        if isinstance(value, Method):
            value = {
                "name": value.name,
                "paper": value.is_paper,
                "fields": {name: plain(part) for name, part in value.get_params().items()},
            }
        elif f.name == "class_weight" and isinstance(value, Mapping):
            value = {"labels": [plain(k) for k in value], "weights": list(value.values())}
        elif f.name == "random_state":
            value = int(value) if isinstance(value, Integral) else None
        parameters[f.name] = None if f.name == "checkpoint" else plain(value)
    named = hasattr(model, "feature_names_in_")
    return ModelRecord(REGRESSOR if is_regressor(model) else CLASSIFIER, parameters, named)


def values_of(record: ModelRecord) -> dict[str, Any]:
    """The arguments of the estimator; those of a method are checked."""
    values = {name: _tuples(value) for name, value in record.parameters.items()}
    if isinstance(values.get("method"), dict):
        values["method"] = _method(values["method"])
    if isinstance(stored := values.get("class_weight"), dict):
        require(stored.keys() == {"labels", "weights"}, "its class_weight is incomplete")
        values["class_weight"] = dict(zip(stored["labels"], stored["weights"], strict=True))
    return values


def of_the_run(posterior: Posterior) -> ModelRecord:
    """What is known of the estimator where the file has only its posterior."""
    configuration, info, scale = posterior.configuration, posterior.info, posterior.preprocessing
    method = configuration.method
    of_columns = {f.name for f in declared(method) if f.metadata["of_used"] is not None}
    own = {
        name: _of_all(value, posterior) if name in of_columns else plain(value)
        for name, value in method.get_params().items()
    }
    values = {name: getattr(configuration, name) for name in SHARED}
    values["h"] = _of_all(values["h"], posterior)
    values |= {"n_chains": posterior.n_chains, "n_draws": posterior.n_draws}
    values |= {"n_warmup": info.n_warmup}
    values |= {"target_rhat": info.target_rhat, "max_draws": info.max_draws}
    values |= {"max_seconds": info.max_seconds, "dtype": scale.dtype}
    values = {name: v for name, v in values.items() if name not in method.unused}
    if scale.classes is None:
        values["standardize"] = (scale.y_mean, scale.y_sd) != (0.0, 1.0)
    values["method"] = {"name": method.name, "paper": False, "fields": own}
    numbered = tuple(f"x{column}" for column in range(len(scale.feature_names)))
    kind = REGRESSOR if scale.classes is None else CLASSIFIER
    return ModelRecord(kind, values, scale.feature_names != numbered)


def _method(stored: dict[str, Any]) -> Method:
    require(stored.keys() == {"name", "paper", "fields"}, "its method is incomplete")
    name, paper, own = stored["name"], stored["paper"], stored["fields"]
    require(name in METHODS, f"this version has no method {name!r}")
    cls = METHODS[name]
    require(
        isinstance(paper, bool)
        and isinstance(own, dict)
        and set(own) <= {f.name for f in declared(cls)},
        f"it has parameters of {name} that this version does not know",
    )
    try:
        return cls(**{key: _tuples(value) for key, value in own.items()}, _paper=paper)
    except ValueError as error:
        raise FileFormatError(str(error)) from None


def _of_all(value: Any, posterior: Posterior) -> Any:
    """A value per used column as one per column; constant ones get the first, which counts not."""
    if not isinstance(value, tuple | list):
        return value
    scale = posterior.preprocessing
    everywhere = [value[0]] * len(scale.feature_names)
    for place, own in zip(scale.used, value, strict=True):
        everywhere[int(place)] = own
    return everywhere


def _tuples(value: Any) -> Any:
    """JSON has lists where the parameters have tuples."""
    if isinstance(value, list):
        return tuple(_tuples(part) for part in value)
    return value
