"""``hamiltree fit``: a table in, a model file out."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas
import typer
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from ..inputs.encoding import (
    MAX_CATEGORIES,
    Encoding,
    TrainingTable,
    learn_encoding,
    meant,
    names_with_hints,
)
from ..inputs.suspects import holds_dates, numbers_rows
from ..inputs.tables import (
    SeveralTableError,
    TableError,
    as_text,
    detect_task,
    is_numeric,
    labels,
    listed,
    raise_all,
    read_table,
    refuse_infinite,
    told_apart,
)
from ..utils.files import check_writable
from .options import ESTIMATORS, parameters_of, with_parameters
from .screen import Json, Seed, examples, note, out, print_json, warnings_as_notes
from .summary import facts, print_summary


class Task(StrEnum):
    classification = "classification"
    regression = "regression"


def mount(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "hamiltree fit patients.csv --target outcome",
            "hamiltree fit patients.csv --target outcome --drop patient_id -o trees.nc --seed 1",
            "hamiltree fit trial.csv --target response --ordinal 'grade=low,medium,high'",
            "hamiltree fit houses.parquet --target price --method cgm --n-draws 2000",
            "hamiltree fit houses.parquet --target price --n-draws 100000 --checkpoint run.nc",
        )
    )(with_parameters(fit))


TABLE = "The table"
RUN = "Long runs, and the model file"


def fit(
    data: Annotated[
        Path, typer.Argument(help="The table: CSV, Excel or Parquet.", show_default=False)
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="NAME", help="Column to predict.", show_default=False
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.")
    ] = Path("model.nc"),
    task: Annotated[
        Task | None,
        typer.Option(
            metavar="NAME",
            help="classification or regression.",
            show_default=False,
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Column to leave out; repeat for more.")
    ] = None,
    seed: Seed = 0,
    n_jobs: Annotated[int, typer.Option(metavar="INT", help="Threads; -1: all cores.")] = -1,
    as_json: Json = False,
    ordinal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B,C",
            help="Ordered categories, from low to high; repeat for more columns.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Column whose numbers are codes of categories; repeat for more.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    max_categories: Annotated[
        int,
        typer.Option(help="Most categories of a text column.", min=2, rich_help_panel=TABLE),
    ] = MAX_CATEGORIES,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text that means missing, such as '?'; repeat for more.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Leave out rows with missing cells.",
            rich_help_panel=TABLE,
        ),
    ] = False,
    decimal: Annotated[
        str, typer.Option(help="Decimal mark of the CSV.", rich_help_panel=TABLE)
    ] = ".",
    without_data: Annotated[
        bool,
        typer.Option(
            "--without-data",
            help="Leave the training rows out of the model file; parts of tree, plot and report "
            "need them.",
            rich_help_panel=RUN,
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Store the run in this file; the same command then resumes it.",
            show_default=False,
            rich_help_panel=RUN,
        ),
    ] = None,
    checkpoint_seconds: Annotated[
        float,
        typer.Option(help="Time between two checkpoints.", min=0.0, rich_help_panel=RUN),
    ] = 60.0,
    **parameters: str | None,
) -> None:
    """Sample decision trees that predict one column of a table from the others."""
    check_writable(output, "the posterior")
    if checkpoint is not None and checkpoint.resolve() == output.resolve():
        raise ValueError(f"--checkpoint and --output are the same file, {output}: give two files")
    frame = read_table(data, missing=missing or (), decimal=decimal)
    frame, problems = _usable(frame, target, drop or [], drop_missing)
    y = frame[target]
    detected, reason = detect_task(y.dropna())
    kind = task.value if task else detected
    if task:
        reason = "as requested"
    elif is_numeric(y):
        other = next(name for name in ESTIMATORS if name != kind)
        reason = f"{reason}; if that is not what you want, --task {other}"
    numbers: Any = told_apart(y)
    if not is_numeric(y) and holds_dates(y.dropna().map(as_text)):
        problems.append(
            TableError(
                f"the target {target!r} holds dates or times: turn it into a number, such as days "
                "since a date"
            )
        )
    elif kind == "regression" and told_apart(y.dropna()) is None:
        problems.append(
            TableError(
                f"the target {target!r} holds text: use --task classification",
                instead={"regression": "classification"},
            )
        )
    try:
        encoding = learn_encoding(
            frame,
            target,
            ordinal=_orders(ordinal or []),
            categorical=categorical or [],
            max_categories=max_categories,
        )
    except SeveralTableError as several:
        raise_all([*problems, *several.problems])
    raise_all(problems)
    known = numbers if kind == "regression" else labels(y)
    given = parameters_of(kind, parameters)
    if isinstance(weights := given.get("class_weight"), dict):
        by_text = {str(label): label for label in np.unique(known).tolist()}
        given["class_weight"] = {by_text.get(name, name): w for name, w in weights.items()}
    model = ESTIMATORS[kind](
        random_state=seed,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        **given,
    )
    if not as_json:
        _print_table(data, frame, encoding, kind, reason)
    started = time.perf_counter()
    with warnings_as_notes(ConvergenceWarning):  # the summary says it
        model.fit(encoding.encode(frame), known)
    posterior = model.posterior_.without_data() if without_data else model.posterior_
    posterior.table = TrainingTable(encoding, data.name, len(frame), tuple(missing or ()), decimal)
    posterior.save(output)
    if as_json:
        decided = {column.name: column.describe() for column in encoding.columns}
        found = {"model": str(output), "reason": reason, "encoding": decided}
        print_json({**found, **facts(posterior)})
        return
    out.print(f"Sampled in {time.perf_counter() - started:.1f} s.\n")
    print_summary(posterior)
    out.print(f"\nSaved to {output}. What next:", markup=False)
    for line in ("summary {}", "tree {}", "report {} -o report.html", "predict {} new_rows.csv"):
        out.print(f"  hamiltree {line.format(output)}", markup=False)


def _usable(
    frame: pandas.DataFrame, target: str, drop: list[str], drop_missing: bool
) -> tuple[pandas.DataFrame, list[TableError]]:
    """The table without what is to be left out, and what is wrong with it; columns are named."""
    absent = [name for name in dict.fromkeys([target, *drop]) if name not in frame]
    if absent:
        known = listed([repr(column) for column in frame.columns], 20)
        raise TableError(
            f"there is no column {listed(names_with_hints(absent, frame.columns))}; "
            f"the columns are {known}",
            instead=meant(absent, frame.columns),
        )
    sheets = frame.attrs["sheets"]
    if len(sheets) > 1:
        note(f"read the sheet {sheets[0]!r}, the first of {len(sheets)}")
    if frame.attrs["unnamed_columns"]:
        note(f"left out {frame.attrs['unnamed_columns']} column(s) without a name")
    frame = frame.drop(columns=drop)
    if target not in frame:
        raise TableError(f"{target!r} is the target: it cannot be dropped")
    if drop_missing:
        complete = frame.dropna()
        if complete.empty:
            raise TableError("every row has a missing cell: leave out columns with --drop")
        if len(complete) < len(frame):
            note(f"left out {len(frame) - len(complete)} of {len(frame)} rows: missing cells")
        frame = complete.reset_index(drop=True)
    unknown, problems = int(frame[target].isna().sum()), []
    if unknown == len(frame):
        raise TableError(f"the target {target!r} is missing in every row")
    if unknown:
        problems.append(
            TableError(
                f"the target {target!r} is missing in {unknown} of {len(frame)} rows: leave these "
                "rows out of the file"
            )
        )
    try:
        refuse_infinite(frame)
    except TableError as problem:
        problems.append(problem)
    for name in frame.columns:
        if name != target and is_numeric(frame[name]) and numbers_rows(frame[name]):
            low, high = as_text(frame[name].min()), as_text(frame[name].max())
            note(
                f"{name!r} numbers the rows from {low} to {high}: if that says nothing about "
                f"them, leave it out: --drop {name!r}"
            )
    return frame, problems


def _orders(texts: list[str]) -> dict[str, list[str]]:
    """Parse NAME=A,B,C; the name may hold an equals sign itself."""
    orders = {}
    for text in texts:
        name, equals, categories = text.rpartition("=")
        ranks = [category.strip() for category in categories.split(",")]
        if not equals or len(ranks) < 2 or len(set(ranks)) < len(ranks):
            raise TableError(
                f"--ordinal needs NAME=LOW,...,HIGH with different names, got {text!r}"
            )
        orders[name.strip()] = ranks
    return orders


def _print_table(
    data: Path, frame: pandas.DataFrame, encoding: Encoding, task: str, reason: str
) -> None:
    out.print(
        f"{data.name}: {len(frame)} rows, {len(encoding.columns)} columns to learn from.",
        markup=False,
    )
    out.print(f"Task: {task} of {encoding.target!r}: {reason}.\n", markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("column", "goes into the trees"):
        table.add_column(title, overflow="fold")
    for column in encoding.columns:
        table.add_row(_plain(column.name), _plain(column.describe()))
    out.print(table, "")


def _plain(text: Any) -> Any:
    """Text that rich shows as it is, brackets included."""
    from rich.text import Text

    return Text(str(text))
