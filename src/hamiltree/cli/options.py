"""Options of ``fit`` for the parameters of the estimators and of the methods, read from these."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import Field
from functools import cache
from typing import Annotated, Any

import typer

from ..estimators import BayesianTreeClassifier, BayesianTreeRegressor
from ..methods import METHODS, chosen
from ..methods.parameters import declared

ESTIMATORS: dict[str, Any] = {
    "classification": BayesianTreeClassifier,
    "regression": BayesianTreeRegressor,
}
OWN = (
    "random_state",
    "progress",
    "n_jobs",
    "checkpoint",
    "checkpoint_seconds",
    "warm_start",
    "categorical_features",
)
"""Parameters that the command line names, or sets, in its own way."""
HIDDEN = ("likelihood_power",)
METAVARS = {
    "(float, float)": "A,B",
    "(float, float, float)": "A,B,C",
    "array": "A,B,...",
    "sequence of str": "A,B,...",
    "float or array": "FLOAT",
    "float, array or str": "FLOAT",
    "str or Method": "NAME",
    "str": "NAME",
    "dict or str": "A=1,B=3",
    "int or str": "INT",
}
"""Types of parameters as they are typed."""
SEQUENCES = ("array", "sequence of str")
"""Types that are several values, even where only one is typed."""
RUN = "The run and the prior, for every method"
SEVERAL = "Several methods"
HMC = ("hmc-df", "hmc-dfi")
QUOTES = "'\""


def estimator_fields() -> dict[str, Field[Any]]:
    """Parameters of either estimator that are options."""
    found = {f.name: f for cls in ESTIMATORS.values() for f in declared(cls)}
    return {name: f for name, f in found.items() if name not in OWN}


def method_fields() -> dict[str, tuple[Field[Any], tuple[str, ...]]]:
    """Parameters of the methods that are options, and which methods have them."""
    found: dict[str, tuple[Field[Any], tuple[str, ...]]] = {}
    for method, cls in METHODS.items():
        for f in declared(cls):
            if f.name not in HIDDEN:
                first, owners = found.get(f.name, (f, ()))
                found[f.name] = (first, (*owners, method))
    return found


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each parameter; they arrive in ``**parameters``."""
    signature = inspect.signature(command, eval_str=True)
    given = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = {name: _option(f) for name, f in estimator_fields().items()}
    panels: dict[str, dict[str, Any]] = {SEVERAL: {}}
    for name, (f, owners) in method_fields().items():
        panel, text = _place(f.metadata["text"], owners)
        panels.setdefault(panel, {})[name] = _option(f, panel, text)
    for inside in panels.values():
        options |= inside
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[str | None, option],
        )
        for name, option in options.items()
    ]
    place = [p.name for p in given].index("seed")  # what most people change stands before it
    brief = {name for name, f in estimator_fields().items() if f.metadata["brief"]}
    everything = [*given[:place], *(p for p in added if p.name in brief), *given[place:]]
    everything += [p for p in added if p.name not in brief]
    command.__signature__ = signature.replace(parameters=everything)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in everything} | {"return": None}
    return command


def _place(text: str, owners: tuple[str, ...]) -> tuple[str, str]:
    """The panel of a method's parameter, and its text, with the methods where that says more."""
    if len(owners) == len(METHODS):
        return SEVERAL, f"All methods: {text}"
    if set(owners) <= set(HMC):
        only = "" if len(owners) == len(HMC) else f"{owners[0].upper()}: "
        return "HMC-DF and HMC-DFI", only + text
    if len(owners) == 1:
        return owners[0].upper(), text
    return SEVERAL, f"{', '.join(owners).upper()}: {text}"


def _option(f: Field[Any], panel: str = RUN, text: str = "") -> Any:
    if f.metadata["brief"]:
        panel, text = "Options", f.metadata["brief"]
    return typer.Option(
        flag(f.name),
        help=as_options(text or f.metadata["text"]),
        metavar=METAVARS.get(kind := f.metadata["limits"].kind, kind.upper()),
        rich_help_panel=panel,
        show_default=False,
    )


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@cache
def _names() -> tuple[str, ...]:
    """Every parameter of the estimators and methods, the longest names first."""
    return tuple(sorted({*estimator_fields(), *method_fields()}, key=len, reverse=True))


def as_options(text: str) -> str:
    """A text about parameters, such as an error, in options of the command line."""
    known = "|".join(_names())
    text = re.sub(rf"\bLeave ({known}) at None", lambda m: f"Leave out {flag(m[1])}", text)
    text = text.replace("Leave it at None", "Leave it out")
    value = r"=('[^']*'|\"[^\"]*\"|-?[\w.]*\w)"
    text = re.sub(
        rf"(?<![-\w])({known}){value}", lambda m: f"{flag(m[1])} {m[2].strip(QUOTES)}", text
    )
    # On its own only a word with an underscore must be a parameter: not "h", not "method".
    long = "|".join(name for name in _names() if "_" in name)
    return re.sub(rf"(?<![-\w'\"])({long})\b", lambda m: flag(m[1]), text)


def parameters_of(task: str, options: dict[str, str | None]) -> dict[str, Any]:
    """Parameters of the task's estimator from the options that were given.

    Refuses those of the other task, and those that the chosen method does not have.
    """
    of_methods = method_fields()
    fields = estimator_fields() | {name: f for name, (f, _) in of_methods.items()}
    given = {
        name: value_of(text, fields[name].metadata["limits"].kind)
        for name, text in options.items()
        if text is not None
    }
    usable = {f.name for f in declared(ESTIMATORS[task])}
    usable |= {n for n, (f, _) in of_methods.items() if f.metadata["task"] in (None, task)}
    for name in given:
        if name not in usable:
            raise ValueError(f"{flag(name)} does not belong to {task}")
    own = {name: given.pop(name) for name in list(given) if name in of_methods}
    if own:
        preset = given.get("preset")
        method = chosen(given.get("method", "hmc-df"), preset)
        for name in own:
            owners = of_methods[name][1]
            if method.name not in owners:
                raise ValueError(
                    f"{flag(name)} does not belong to --method {method.name}: it is an option of "
                    f"{', '.join(owners)}"
                )
        cls = type(method)
        given["method"] = cls.paper(**own) if preset == "paper" else cls(**own)
    return given


def value_of(text: str, kind: str = "") -> Any:
    """Numbers, true and false; several of them, or pairs A=1, with commas between; or the text.

    ``kind``: the type of the parameter. The names in pairs stay texts.
    """
    if "=" in text:
        pairs = [part.rpartition("=") for part in text.split(",")]
        return {name.strip(): value_of(value.strip()) for name, _, value in pairs}
    if "," in text or kind in SEQUENCES:
        return tuple(value_of(part.strip()) for part in text.split(","))
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
