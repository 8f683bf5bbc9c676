"""The programs of the documentation: they are run, and what they print is written below them.

``python -m tests.support.examples [PAGE ...]`` runs every page's Python blocks in order and puts
what they printed into the ``text output`` blocks that follow them. ``test_docs.py`` runs them too,
with short chains, and those of the first pages in full where processor and numba are the same.

The tutorials are notebooks, which ``make docs`` executes: what they print stands in no file. Their
cells are run by ``test_docs.py`` as other pages' programs are, with short chains.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .draws import place

ROOT = Path(__file__).parents[2]
WRITTEN = ROOT / "tests" / "data" / "examples.json"
"""The processor and numba by which the outputs were written last: draws depend on them."""
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```text output\n(.*?)^```\n)?", re.DOTALL | re.M)
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n((?:---\n.*?^---\n|(?::[^\n]*\n)+\n)?)(.*?)^```\n",
    re.DOTALL | re.M,
)
HIDDEN = "remove-cell"
"""Marks cells that check what the text says of the outputs: true of the chains of the build."""
WALKTHROUGH = "command-line.md"
"""Has a test of its own."""


def pages() -> list[Path]:
    """Those with programs in them."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in found if page.name != WALKTHROUGH and programs(page)]


def programs(page: Path, *, hidden: bool = False) -> list[tuple[str, str | None]]:
    """Each program of a page, or cell of a notebook, with what the page says it prints."""
    text = page.read_text("utf-8")
    found_cells = CELL.finditer(text)
    cells = [(found[2], None) for found in found_cells if hidden or HIDDEN not in found[1]]
    return cells or [(found[1], found[2]) for found in PROGRAM.finditer(text)]


def run_page(page: Path) -> Iterator[tuple[str, str, str | None]]:
    """Each program of a page with what it prints, and what the page says it prints.

    They share their names, as in one session, and a folder for their files, thrown away after.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for program, shown in programs(page):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(program, f"<{page.name}>", "exec"), names)
            yield program, printed.getvalue(), shown


def written(program: str, printed: str, shown: str | None) -> str:
    """The program with what it printed below it, where the page shows that."""
    lines = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    output = "" if shown is None else f"\n```text output\n{lines}\n```\n"
    return f"```python\n{program}```\n{output}"


def main() -> None:
    os.environ.setdefault("MPLBACKEND", "Agg")
    chosen = {Path(name).name for name in sys.argv[1:]}
    for page in pages():
        if (chosen and page.name not in chosen) or not PROGRAM.search(page.read_text("utf-8")):
            continue
        parts = iter([written(*found) for found in run_page(page)])
        text = PROGRAM.sub(lambda _, parts=parts: next(parts), page.read_text("utf-8"))
        page.write_text(text, "utf-8")
        print(page.relative_to(ROOT))
    WRITTEN.write_text(json.dumps(place(), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
