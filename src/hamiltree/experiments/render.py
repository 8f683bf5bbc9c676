"""Tables for people: mean (sd), the best in bold, the paper's numbers in the line below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas
from rich.table import Table

from .configurations import METHODS, REFERENCES

ROUNDING = 1e-12
"""An sd below this is 0."""


@dataclass(frozen=True)
class Metric:
    """How a metric is called and written, and which way is better (0: neither)."""

    name: str
    label: str
    digits: int
    better: int
    sd: bool = True


PAPER_METRICS = (
    Metric("train_acc", "train accuracy, one tree", 3, +1),
    Metric("test_acc", "test accuracy, one tree", 3, +1),
    Metric("ensemble_train_acc", "train accuracy, all trees", 3, +1),
    Metric("ensemble_test_acc", "test accuracy, all trees", 3, +1),
    Metric("train_mse", "train MSE, one tree", 4, -1),
    Metric("test_mse", "test MSE, one tree", 4, -1),
    Metric("ensemble_train_mse", "train MSE, all trees", 4, -1),
    Metric("ensemble_test_mse", "test MSE, all trees", 4, -1),
    Metric("leaves", "leaves", 2, -1),
    Metric("leaves_without_constant", "leaves, authors' likelihood", 2, 0, sd=False),
    Metric("acceptance_pct", "acceptance, %", 2, +1, sd=False),
    Metric("acceptance_iteration_pct", "acceptance per iteration, %", 2, +1, sd=False),
)
FURTHER_METRICS = (
    Metric("log_score", "log score", 3, +1),
    Metric("brier", "Brier score", 3, -1),
    Metric("calibration_error", "calibration error", 3, -1),
    Metric("coverage_90", "coverage of 90% intervals", 3, 0),
    Metric("rhat_log_posterior", "R-hat, log posterior", 3, -1),
    Metric("rhat_leaves", "R-hat, leaves", 3, -1),
    Metric("rhat_worst_prediction", "R-hat, worst prediction", 3, -1),
    Metric("rhat_worst", "R-hat, worst (median)", 3, -1),
    Metric("seconds", "seconds per run", 2, -1),
)


def acceptance_metrics(summary: pandas.DataFrame) -> list[Metric]:
    """One for each type of move that any method proposed."""
    known = {metric.name for metric in PAPER_METRICS}
    moves = [
        name.removeprefix("acceptance_").removesuffix("_pct")
        for name in dict.fromkeys(summary["metric"])
        if name.startswith("acceptance_") and name not in known
    ]
    return [Metric(f"acceptance_{move}_pct", f"accepted {move}, %", 2, 0, False) for move in moves]


@dataclass(frozen=True)
class Cell:
    text: str
    short: str
    """Without the sd."""
    bold: bool


@dataclass(frozen=True)
class Line:
    """One line of a table: the data set, what it shows, whose numbers they are, the cells."""

    dataset: str
    metric: str
    source: str
    cells: tuple[Cell, ...]


def columns_of(summary: pandas.DataFrame) -> list[tuple[str, str]]:
    """(method, preset) in the order of the paper's tables."""
    there = set(zip(summary["method"], summary["preset"], strict=True))
    order = [
        (method, preset)
        for method in (*METHODS, *REFERENCES)
        for preset in ("exact", "paper", "reference")
    ]
    return [column for column in order if column in there]


def headings(columns: Sequence[tuple[str, str]]) -> list[str]:
    """HMC's presets are named where there are both."""
    methods = [method for method, _ in columns]
    return [
        f"{method.upper()} ({preset})" if methods.count(method) > 1 else method.upper()
        for method, preset in columns
    ]


def lines_of(summary: pandas.DataFrame, metrics: Iterable[Metric]) -> list[Line]:
    columns = columns_of(summary)
    indexed = summary.set_index(["dataset", "metric", "method", "preset"])
    lines = []
    for dataset in dict.fromkeys(summary["dataset"]):
        for metric in metrics:
            found = [
                indexed.loc[key] if (key := (dataset, metric.name, *column)) in indexed.index
                else None
                for column in columns
            ]  # fmt: skip
            if all(row is None for row in found):
                continue
            for source, prefix in (("ours", ""), ("paper", "paper_")):
                means = [np.nan if row is None else row[f"{prefix}mean"] for row in found]
                sds = [np.nan if row is None else row[f"{prefix}sd"] for row in found]
                if source == "ours" or not np.isnan(means).all():
                    cells = _cells(metric, means, sds)
                    lines.append(Line(dataset, metric.label, source, cells))
    return lines


def _cells(metric: Metric, means: Sequence[float], sds: Sequence[float]) -> tuple[Cell, ...]:
    values = np.array(means, dtype=float) * metric.better
    best = np.nanmax(values) if metric.better and not np.isnan(values).all() else np.nan
    return tuple(
        Cell(_text(metric, mean, sd), _text(metric, mean, np.nan), bool(value == best))
        for mean, sd, value in zip(means, sds, values, strict=True)
    )


def _text(metric: Metric, mean: float, sd: float) -> str:
    if np.isnan(mean):
        return ""
    text = f"{mean:.{metric.digits}f}"
    if not metric.sd or np.isnan(sd):
        return text
    small = ROUNDING < sd < 0.5 * 10.0**-metric.digits
    return f"{text} ({sd:.0e})" if small else f"{text} ({sd:.{metric.digits}f})"


def rows_of(
    lines: Sequence[Line], bold: Callable[[str], str], short: bool = False
) -> Iterator[tuple[bool, list[str]]]:
    """Each line as cells of text, nothing said twice, and whether its data set is new."""
    before: Line | None = None
    for line in lines:
        first = before is None or before.dataset != line.dataset
        again = before is not None and not first and before.metric == line.metric
        texts = [(cell.short if short else cell.text, cell.bold) for cell in line.cells]
        cells = [bold(text) if strong and text else text for text, strong in texts]
        yield first, [line.dataset if first else "", "" if again else line.metric, line.source,
                      *cells]  # fmt: skip
        before = line


def to_markdown(lines: Sequence[Line], titles: Sequence[str]) -> str:
    head = [["data", "", "", *titles], ["---"] * (3 + len(titles))]
    body = [row for _, row in rows_of(lines, lambda text: f"**{text}**")]
    return "\n".join("| " + " | ".join(row) + " |" for row in [*head, *body]) + "\n"


def to_latex(lines: Sequence[Line], titles: Sequence[str], caption: str) -> str:
    body: list[str] = []
    for first, row in rows_of(lines, lambda text: rf"\textbf{{{text}}}"):
        if first and body:
            body.append(r"\midrule")
        body.append(" & ".join(row).replace("%", r"\%") + r" \\")
    return "\n".join(
        [
            "% needs the packages booktabs and graphicx",
            r"\begin{table}",
            rf"\caption{{{caption}}}",
            r"\centering\resizebox{\textwidth}{!}{",
            rf"\begin{{tabular}}{{lll{'c' * len(titles)}}}",
            r"\toprule",
            " & ".join(["", "", "", *titles]) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def to_terminal(lines: Sequence[Line], titles: Sequence[str], title: str, width: int) -> Table:
    """A table for people at a screen; without the sds where that is too narrow for them."""
    titled = ["data", "", "", *titles]
    whole = [row for _, row in rows_of(lines, str)]
    widths = [max(map(len, column)) for column in zip(titled, *whole, strict=True)]
    short = sum(widths) + 3 * len(widths) + 1 > width
    table = Table(title=title, title_justify="left")
    for heading in titled:
        table.add_column(heading, no_wrap=True)
    for first, row in rows_of(lines, lambda text: f"[bold]{text}[/bold]", short):
        if first:
            table.add_section()
        table.add_row(*row, style="dim" if row[2] == "paper" else None)
    return table
