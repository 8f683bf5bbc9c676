"""Configurations and estimators from flat values, those of the method and the shared ones alike."""

from __future__ import annotations

from typing import Any

from hamiltree.methods import METHODS, chosen
from hamiltree.methods.base import SHARED, Configuration
from hamiltree.methods.parameters import declared

from ..reference.model import Prior


def fields_of(method: str) -> set[str]:
    return {f.name for f in declared(METHODS[method])}


def configured(
    method: str = "hmc-df", preset: str | None = None, *, regression: bool = False, **values: Any
) -> Configuration[Any]:
    """The method of this name with its fields and the shared values among ``values``."""
    shared = {name: values.pop(name) for name in SHARED if name in values}
    made = chosen(method, preset).set_params(**values)
    return made.configured(regression=regression, **shared)


def values_of(prior: Prior) -> dict[str, Any]:
    """The parameters that a prior of the reference stands for, whatever the method."""
    return {
        "alpha_split": prior.alpha_split,
        "beta_split": prior.beta_split,
        "min_leaves": prior.min_leaves,
        "max_leaves": prior.max_leaves,
        "class_prior": prior.classes,
        "sigma_prior": prior.sigma,
    }


def usable(method: str, values: dict[str, Any]) -> dict[str, Any]:
    """Those of the values that the method uses."""
    known = (fields_of(method) | set(SHARED)) - set(METHODS[method].unused)
    return {name: value for name, value in values.items() if name in known}


def changed(configuration: Configuration[Any], **changes: Any) -> Configuration[Any]:
    """The same but for these values; those that another method does not use are dropped."""
    values = {**configuration.to_dict(), **changes}
    method = values.pop("method")
    return configured(method, **usable(method, values))


def parameters(**values: Any) -> dict[str, Any]:
    """Parameters of an estimator, those of the method put into its object.

    What the method does not use, such as SMC n_warmup, is dropped.
    """
    method, preset = values.get("method", "hmc-df"), values.get("preset")
    values = {name: v for name, v in values.items() if name not in METHODS[method].unused}
    known = set().union(*(fields_of(name) for name in METHODS))
    fields = {name: values.pop(name) for name in list(values) if name in known}
    if fields:
        cls = METHODS[method]
        values["method"] = cls.paper(**fields) if preset == "paper" else cls(**fields)
    return values
