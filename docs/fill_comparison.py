"""Write the measurements of ``python -m benchmarks comparison`` into README and docs/comparison.md.

``python docs/fill_comparison.py``, from the root of the repository, after the benchmark, which
leaves them in ``bench-output/comparison.md``.
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
SECTION = re.compile(r"^## (.+)\n\n((?:\|.*\n?)+)", re.MULTILINE)


def cells(line: str) -> list[str]:
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def summary(text: str) -> str:
    """Models as rows, the means over all tables as columns."""
    sections = {name: table.splitlines() for name, table in SECTION.findall(text)}
    short = {
        "Accuracy": "accuracy",
        "Log score": "log score",
        "Calibration error": "calibration error",
        "Seconds for a fit and its predictions": "seconds",
    }
    models = cells(sections["Accuracy"][0])[1:]
    means = {heading: cells(sections[heading][-1])[1:] for heading in short}
    lines = [
        f"| | {' | '.join(short.values())} | what you can read |",
        f"|---|{'--:|' * len(short)}---|",
    ]
    for k, model in enumerate(models):
        found = " | ".join(means[heading][k] for heading in short)
        lines.append(f"| {NAMES.get(model, model)} | {found} | {READS[model]} |")
    return "\n".join(lines)


def filled(page: Path, name: str, content: str) -> None:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.read_text("utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{page} has no marks {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{content}\n\n{end}{after}", "utf-8")


def main() -> None:
    text = MEASURED.read_text("utf-8")
    sections = [f"### {name}\n\n{table.strip()}" for name, table in SECTION.findall(text)]
    converged = re.search(r"fits of hamiltree whose chains agree.*?\|\s*(\d+ of \d+)", text)
    assert converged
    said = f"Chains of {converged[1]} fits of hamiltree agreed (R-hat at most 1.05)."
    filled(ROOT / "README.md", "comparison", summary(text))
    filled(ROOT / "docs" / "comparison.md", "summary", f"{summary(text)}\n\n{said}")
    filled(ROOT / "docs" / "comparison.md", "tables", "\n\n".join(sections))


if __name__ == "__main__":
    main()
