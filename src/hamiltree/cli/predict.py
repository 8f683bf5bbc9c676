"""``hamiltree predict``: new rows in, predictions with their uncertainty out, as CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas
import typer

from ..estimators.classifier import INTERVAL_SEED
from ..inputs.encoding import encoding_of
from ..inputs.tables import TableError, listed, read_table
from ..posterior import Posterior
from .screen import ModelFile, examples, load, note, writable


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree predict model.nc new_patients.csv",
            "hamiltree predict model.nc new_patients.csv --keep patient_id -o predicted.csv",
        )
    )(predict)


def predict(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="New rows: CSV or Parquet.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV file; standard output if left out."),
    ] = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals.", min=0.01, max=0.999)] = 0.9,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column of the table to copy along; repeat for more."),
    ] = None,
    decimal: Annotated[str, typer.Option(help="Decimal mark of the CSV.")] = ".",
    n_jobs: Annotated[int, typer.Option(help="Threads; -1 for all.")] = -1,
) -> None:
    """Predict new rows; their columns may stand in any order.

    Classification: the likeliest class and, of each class, its probability with the ends of a
    credible interval. Regression: the mean, the standard deviation of a new observation, and the
    ends of its predictive interval.
    """
    levels = ((1 - coverage) / 2, (1 + coverage) / 2)
    if output is not None:
        writable(output)
    posterior = load(model)
    frame = read_table(data, decimal=decimal)
    encoding = encoding_of(posterior)
    unknown = [repr(name) for name in keep or [] if name not in frame]
    if unknown:
        raise TableError(f"there is no column to keep named {listed(unknown)}")
    rows = encoding.encode(frame)
    known = {column.name for column in encoding.columns} | set(keep or [])
    ignored = [repr(name) for name in frame.columns if name not in known]
    if ignored:
        note(f"ignored {listed(ignored)}: the model does not use it")
    predicted = predictions(posterior, rows, levels, n_jobs)
    table = pandas.concat([frame[keep or []], predicted], axis=1)
    if output is None:
        table.to_csv(sys.stdout, index=False)
    else:
        table.to_csv(output, index=False)
        note(f"wrote {len(table)} rows to {output}")


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
