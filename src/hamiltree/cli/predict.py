"""``hamiltree predict``: new rows in, predictions with their uncertainty out, as CSV or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas
import typer

from ..estimators.classifier import INTERVAL_SEED
from ..inputs.encoding import encoding_of, read_like_training
from ..inputs.tables import TableError, listed
from ..posterior import Posterior
from ..utils.json_text import json_text
from .screen import Json, ModelFile, examples, load, note, out, writable


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree predict model.nc new_patients.csv",
            "hamiltree predict model.nc new_patients.csv --keep patient_id -o predicted.csv",
            "hamiltree predict model.nc new_patients.csv --json",
        )
    )(predict)


def predict(
    model: ModelFile,
    data: Annotated[
        Path, typer.Argument(help="New rows: CSV, Excel or Parquet.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV or JSON file; by default standard output."),
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Coverage of the intervals.", min=0.01, max=0.999)
    ] = 0.9,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column to copy to the output; repeat for more."),
    ] = None,
    as_json: Json = False,
    full: Annotated[
        bool, typer.Option("--full-precision", help="All digits, without rounding.")
    ] = False,
    decimal: Annotated[
        str | None,
        typer.Option(help="Decimal mark of the CSV; by default that of the training table."),
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Threads; -1: all cores.")] = -1,
) -> None:
    """Predict new rows; their columns may be in any order.

    Classification: the most probable class and, for each class, its probability with the limits of
    a credible interval. Regression: the mean, the standard deviation of a new observation, and the
    limits of its predictive interval.
    """
    levels = ((1 - coverage) / 2, (1 + coverage) / 2)
    if output is not None:
        writable(output)
    posterior = load(model)
    frame = read_like_training(data, posterior, decimal)
    encoding = encoding_of(posterior)
    unknown = [repr(name) for name in keep or [] if name not in frame]
    if unknown:
        raise TableError(f"there is no column to keep named {listed(unknown)}")
    rows = encoding.encode(frame)
    known = {column.name for column in encoding.columns} | set(keep or [])
    ignored = [repr(name) for name in frame.columns if name not in known]
    if ignored:
        note(f"ignored {listed(ignored)}, which the model does not use")
    predicted = predictions(posterior, rows, levels, n_jobs)
    if not full:
        predicted = predicted.round(_places(posterior))
    table = pandas.concat([frame[keep or []], predicted], axis=1)
    if as_json:
        text = json_text(table.to_dict(orient="records"), indent=2)
        if output is None:
            out.file.write(f"{text}\n")
        else:
            output.write_text(f"{text}\n", "utf-8")
    elif output is None:
        table.to_csv(sys.stdout, index=False)
    else:
        table.to_csv(output, index=False)
    if output is not None:
        note(f"wrote {len(table)} rows to {output}")


def _places(posterior: Posterior) -> int:
    """Decimals to show: four of a probability; three digits of the target's sd."""
    if posterior.n_classes:
        return 4
    return max(0, 2 - int(np.floor(np.log10(posterior.preprocessing.y_sd))))


def predictions(
    posterior: Posterior, rows: pandas.DataFrame, levels: tuple[float, float], n_jobs: int
) -> pandas.DataFrame:
    classes = posterior.preprocessing.classes
    if classes is None:
        mean, sd = posterior.predict_mean_std(rows, n_jobs=n_jobs)
        low, high = posterior.predict_quantiles(rows, levels, n_jobs=n_jobs)
        return pandas.DataFrame({"prediction": mean, "sd": sd, "low": low, "high": high})
    mean = posterior.predict_mean(rows, n_jobs=n_jobs)
    low, high = posterior.predict_probability_quantiles(rows, levels, INTERVAL_SEED, n_jobs=n_jobs)
    columns = {"prediction": np.asarray(classes)[mean.argmax(axis=1)]}
    for k, label in enumerate(classes):
        columns |= {
            f"probability_{label}": mean[:, k],
            f"low_{label}": low[:, k],
            f"high_{label}": high[:, k],
        }
    return pandas.DataFrame(columns)
