"""Tables that read well in a terminal and are Markdown in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

OUTPUT = Path("bench-output")
Claim = tuple[str, str, str, bool | None]
"""Claim, measured, goal, and whether it is met (None where there is nothing to compare)."""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with columns of even width; the first is text, the others are numbers."""
    cells = [headings, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        padded = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        return "| " + " | ".join([row[0].ljust(widths[0]), *padded[1:]]) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(headings), line(rule), *(line(row) for row in rows)])


class Report:
    """Text that goes to the terminal at once and to a file of bench-output at the end."""

    def __init__(self, console: Console, name: str) -> None:
        self.console = console
        self.path = OUTPUT / f"{name}.md"
        self.parts: list[str] = []

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.console.print(f"\n{text}", markup=False, highlight=False, soft_wrap=True)

    def save(self, claims: Sequence[Claim]) -> None:
        """With the goals at the end; the terminal shows those of all benchmarks together."""
        outcomes = {True: "met", False: "missed", None: "-"}
        rows = [(claim, found, goal, outcomes[met]) for claim, found, goal, met in claims]
        self.parts.append(table(("claim", "measured", "goal", ""), rows))
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("\n\n".join(self.parts) + "\n", "utf-8")
        self.console.print(f"\nwritten to {self.path}", markup=False)


def asked_for(variable: str, names: Sequence[str]) -> list[str]:
    """Those of these names that an environment variable lists, with ; between them; or all."""
    given = os.environ.get(variable)
    return [name for name in names if given is None or name in given.split(";")]
