"""``hamiltree plot``: the library's plots to files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..posterior import Posterior
from .figures import save_figure
from .rows import Target, rows_of
from .screen import ModelFile, examples, load, note, writable

KINDS = (
    "calibration", "inclusion", "leaves", "partial-dependence", "ppc", "predictions", "rank",
    "similarity", "thresholds", "trace",
)  # fmt: skip
"""Named here and not read from the plots: loading matplotlib takes a second, and --help waits."""
Kind = Enum("Kind", {name: name for name in KINDS}, type=str)  # type: ignore[misc]


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree plot model.nc leaves",
            "hamiltree plot model.nc trace --quantity n_leaves -o leaves.svg",
            "hamiltree plot model.nc partial-dependence --feature age -o age.png",
            "hamiltree plot model.nc calibration --data held_out.csv",
        )
    )(plot)


def plot(
    model: ModelFile,
    kind: Annotated[Kind, typer.Argument(help="The plot.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File: png, svg or pdf; by default KIND.png."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Column of the table; by default the one used most. Repeat it for several "
            "plots of partial-dependence.",
        ),
    ] = None,
    quantity: Annotated[
        str | None,
        typer.Option(help="For trace and rank: log_posterior, log_likelihood, n_leaves or depth."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Class whose probability is shown.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Table of rows to show, with the target where a plot needs it."),
    ] = None,
    target: Target = None,
) -> None:
    """Draw one plot of the posterior into a file."""
    name: str = kind.value
    file = writable(output or Path(f"{name}.png"))
    posterior = load(model)
    draw = _function(name)
    known = inspect.signature(draw).parameters
    given: dict[str, Any] = {"feature": _features(name, feature), "quantity": quantity}
    given["label"] = None if label is None else _class(posterior, label)
    if data is not None:
        given |= rows_of(posterior, data, with_target="y" in known, target=target)
    given = {option: value for option, value in given.items() if value is not None}
    unused = [option for option in given if option not in known]
    if unused:
        raise ValueError(f"{name} has no {' or '.join(_option(option) for option in unused)}")
    for option, parameter in known.items():
        if parameter.default is parameter.empty and option not in ("posterior", *given):
            raise ValueError(f"{name} needs {_option(option)}: held-out rows")
    save_figure(lambda: draw(posterior, **given), file)
    note(f"wrote {file}")


def _features(kind: str, given: list[str] | None) -> Any:
    """None, one name, or several where the plot takes them."""
    if not given:
        return None
    if len(given) > 1 and kind != "partial-dependence":
        raise ValueError(f"{kind} shows one feature, got {len(given)}")
    return given if len(given) > 1 else given[0]


def _function(kind: str) -> Callable[..., Any]:
    from .. import plots

    draw: Callable[..., Any] = getattr(plots, f"plot_{kind.replace('-', '_')}")
    return draw


def _option(parameter: str) -> str:
    names = {"X": "--data", "y": "--data with the target's column (see --target)"}
    return names.get(parameter, f"--{parameter}")


def _class(posterior: Posterior, text: str) -> Any:
    """The class label that is written so."""
    classes = posterior.preprocessing.classes
    found = [label for label in ([] if classes is None else classes) if str(label) == text]
    if not found:
        raise ValueError(f"there is no class {text!r}")
    return found[0]
