"""Write the measurements of ``python -m benchmarks comparison`` into README and docs/comparison.md.

``python docs/fill_comparison.py``, from the root of the repository, after the benchmark, which
leaves them in ``bench-output/comparison.md``. Models that were not run keep their numbers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEASURED = Path("bench-output") / "comparison.md"
READS = {
    "hamiltree": "trees with the certainty of each split, intervals",
    "CART": "one tree",
    "CART, smoothed": "one tree",
    "random forest": "importances",
    "logistic regression": "coefficients",
    "EBM": "a curve per feature",
    "BART (stochtree)": "intervals; importances",
    "boosting": "importances",
}
"""What a person can read off a fitted model."""
NAMES = {
    "hamiltree": "**hamiltree**",
    "CART": "CART as it comes",
    "CART, smoothed": "CART, pruned, leaves smoothed",
    "boosting": "gradient boosting (scikit-learn)",
    "EBM": "EBM (interpret)",
}
SECTION = re.compile(r"^###? (.+)\n\n((?:\|.*\n?)+)", re.MULTILINE)
SHORT = {
    "Accuracy": "accuracy",
    "Log score": "log score",
    "Calibration error": "calibration error",
    "Seconds for a fit and its predictions": "seconds",
}
Columns = dict[str, list[str]]
"""The cells below each heading of a table; those of the first column are the names of its rows."""


def read(text: str) -> dict[str, Columns]:
    """The tables of the measures, by their headings."""
    found = {}
    for heading, table in SECTION.findall(text):
        if heading in SHORT:
            rows = [cells(line) for line in table.strip().splitlines()]
            columns = zip(*(rows[:1] + rows[2:]), strict=True)
            found[heading] = {column[0]: list(column[1:]) for column in columns}
    return found


def cells(line: str) -> list[str]:
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def markdown(columns: Columns) -> str:
    rows = list(zip(*columns.values(), strict=True))
    lines = [list(columns), ["---", *["--:"] * (len(columns) - 1)], *rows[:-1]]
    lines.append([f"**{cell}**" for cell in rows[-1]])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def summary(tables: dict[str, Columns]) -> str:
    """Models as rows, the means over all tables as columns."""
    lines = [
        f"| | {' | '.join(SHORT.values())} | what you can read |",
        f"|---|{'--:|' * len(SHORT)}---|",
    ]
    for model in list(tables["Accuracy"])[1:]:
        means = " | ".join(tables[heading][model][-1] for heading in SHORT)
        lines.append(f"| {NAMES.get(model, model)} | {means} | {READS[model]} |")
    return "\n".join(lines)


def filled(page: Path, name: str, content: str) -> None:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.read_text("utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{page} has no marks {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{content}\n\n{end}{after}", "utf-8")


def main() -> None:
    page = ROOT / "docs" / "comparison.md"
    text = MEASURED.read_text("utf-8")
    tables, measured = read(page.read_text("utf-8")), read(text)
    for heading, columns in measured.items():  # models that were not run now keep their numbers
        tables[heading] = tables.get(heading, {}) | columns
    filled(ROOT / "README.md", "comparison", summary(tables))
    filled(page, "summary", summary(tables))
    sections = (f"### {heading}\n\n{markdown(columns)}" for heading, columns in tables.items())
    filled(page, "tables", "\n\n".join(sections))
    converged = re.search(r"fits of hamiltree whose chains agree.*?\|\s*(\d+ of \d+)", text)
    if converged:
        said = f"The chains agreed in {converged[1]} fits of hamiltree (R-hat at most 1.05)."
        filled(page, "converged", said)


if __name__ == "__main__":
    main()
