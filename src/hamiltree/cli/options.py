"""The estimators' parameters as options of ``fit``, read from their own table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any

import typer

from ..estimators import BayesianTreeClassifier, BayesianTreeRegressor
from ..parameters import DOCS

ESTIMATORS = {"classification": BayesianTreeClassifier, "regression": BayesianTreeRegressor}
OWN = ("random_state", "progress", "n_jobs", "checkpoint", "checkpoint_seconds", "warm_start")
"""Parameters that the command line names, or sets, in its own way."""
FIRST = ("method", "preset", "n_chains", "n_warmup", "n_draws", "h", "target_rhat", "max_draws")
"""What most people change; the others stand in a panel below."""


def names_of(task: str) -> list[str]:
    """Parameters of the task's estimator that are options."""
    return [field.name for field in fields(ESTIMATORS[task]) if field.name not in OWN]


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each parameter of either estimator; they arrive in ``**parameters``."""
    signature = inspect.signature(command, eval_str=True)
    given = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = dict.fromkeys([*names_of("classification"), *names_of("regression")])
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, _option(name)],
        )
        for name in names
    ]
    everything = given + added
    command.__signature__ = signature.replace(parameters=everything)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in everything} | {"return": None}
    return command


def _option(name: str) -> Any:
    kind, text = DOCS[name]
    panel = "Run" if name in FIRST else "Model and sampler, in detail"
    flag = f"--{name.replace('_', '-')}"
    return typer.Option(
        flag, help=text, metavar=kind.upper(), rich_help_panel=panel, show_default=False
    )


def chosen(task: str, parameters: dict[str, str | None]) -> dict[str, Any]:
    """The values that were given, as Python values; refuses those of the other task."""
    given = {name: value for name, value in parameters.items() if value is not None}
    for name in given:
        if name not in names_of(task):
            raise ValueError(f"--{name.replace('_', '-')} does not belong to {task}")
    return {name: value_of(text) for name, text in given.items()}


def value_of(text: str) -> Any:
    """Numbers, true and false, and several of them with commas between; otherwise the text."""
    if "," in text:
        return tuple(value_of(part.strip()) for part in text.split(","))
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
