"""Tables for people: mean (sd), the best in bold, the paper's numbers in the line below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas

from .configurations import METHODS


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
    Metric("acceptance_pct", "acceptance, %", 2, +1, sd=False),
    Metric("acceptance_iteration_pct", "acceptance an iteration, %", 2, +1, sd=False),
)
FURTHER_METRICS = (
    Metric("log_score", "log score", 3, +1),
    Metric("brier", "Brier score", 3, -1),
    Metric("calibration_error", "calibration error", 3, -1),
    Metric("coverage_90", "coverage of 90 % intervals", 3, 0),
    Metric("acceptance_grow_pct", "accepted grow, %", 2, 0, sd=False),
    Metric("acceptance_prune_pct", "accepted prune, %", 2, 0, sd=False),
    Metric("rhat_log_posterior", "R-hat, log posterior", 3, -1),
    Metric("rhat_leaves", "R-hat, leaves", 3, -1),
    Metric("rhat_worst_prediction", "R-hat, worst prediction", 3, -1),
    Metric("seconds", "seconds a run", 2, -1),
)


@dataclass(frozen=True)
class Cell:
    text: str
    bold: bool = False


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
    order = [(method, preset) for method in METHODS for preset in ("exact", "paper")]
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
        Cell(_text(metric, mean, sd), bool(value == best))
        for mean, sd, value in zip(means, sds, values, strict=True)
    )


def _text(metric: Metric, mean: float, sd: float) -> str:
    if np.isnan(mean):
        return ""
    text = f"{mean:.{metric.digits}f}"
    if not metric.sd or np.isnan(sd):
        return text
    small = 0 < sd < 0.5 * 10.0**-metric.digits
    return f"{text} ({sd:.0e})" if small else f"{text} ({sd:.{metric.digits}f})"


def to_markdown(lines: Sequence[Line], titles: Sequence[str]) -> str:
    rows = [["data", "", "", *titles], ["---"] * (3 + len(titles))]
    for line, first, again in with_context(lines):
        cells = [f"**{cell.text}**" if cell.bold else cell.text for cell in line.cells]
        rows.append([line.dataset if first else "", "" if again else line.metric, line.source,
                     *cells])  # fmt: skip
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def to_latex(lines: Sequence[Line], titles: Sequence[str], caption: str) -> str:
    body: list[str] = []
    for line, first, again in with_context(lines):
        if first and body:
            body.append(r"\midrule")
        cells = [rf"\textbf{{{cell.text}}}" if cell.bold else cell.text for cell in line.cells]
        row = [line.dataset.upper() if first else "", "" if again else line.metric, line.source]
        body.append(" & ".join([*row, *cells]).replace("%", r"\%") + r" \\")
    head = " & ".join(["", "", "", *titles]) + r" \\"
    return "\n".join(
        [
            "% needs the packages booktabs and graphicx",
            r"\begin{table}",
            rf"\caption{{{caption}}}",
            r"\centering\resizebox{\textwidth}{!}{",
            rf"\begin{{tabular}}{{lll{'c' * len(titles)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def with_context(lines: Sequence[Line]) -> Iterable[tuple[Line, bool, bool]]:
    """Each line, whether its data set is new, and whether its metric is the line before's."""
    before: Line | None = None
    for line in lines:
        first = before is None or before.dataset != line.dataset
        again = before is not None and not first and before.metric == line.metric
        yield line, first, again
        before = line
