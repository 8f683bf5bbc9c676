"""The walk-through of docs/command-line.md: its commands are run, and its outputs written.

``python -m tests.support.walkthrough`` runs every command of the page in an empty folder and puts
what it printed into the page. ``test_walkthrough.py`` runs them too, and compares.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import hamiltree

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
SESSION = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)

COMPILE = (
    "printf 'x,y\\n1,0\\n2,1\\n' > .one.csv && hamiltree fit .one.csv -t y -o .one.nc --n-draws 1"
)
"""The first fit on a machine compiles for a minute; the page shows the second."""


class Step(NamedTuple):
    """A command and what it printed."""

    command: str
    output: str


def sessions(page: str) -> Iterator[list[Step]]:
    """The console sessions of a page."""
    for found in SESSION.finditer(page):
        parts = re.split(r"^\$ (.*)\n", found[0], flags=re.MULTILINE)[1:]
        yield [Step(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


def run(command: str, folder: Path) -> str:
    """What a command prints in a folder, as on a terminal 100 letters wide."""
    shim = folder / ".bin"
    shim.mkdir(exist_ok=True)
    for name, program in {"hamiltree": "-m hamiltree", "python": ""}.items():
        script = shim / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {program} "$@"\n')
        script.chmod(0o755)
    variables = {
        "PATH": f"{shim}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(hamiltree.__file__).parents[1]),
        "COLUMNS": "100",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, text=True, timeout=300, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=os.environ | variables,
    )  # fmt: skip
    # Rich pads tables to their width; nobody sees these spaces.
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n" * bool(done.stdout)


def code_of(page: str) -> str:
    """The Python program of the page, which makes the tables."""
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found, "the page has no program"
    return found[1]


def main() -> None:
    page = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "make_patients.py").write_text(code_of(page), "utf-8")
        run(COMPILE, Path(folder))
        written = iter(
            "".join(f"$ {step.command}\n{run(step.command, Path(folder))}" for step in session)
            for session in list(sessions(page))
        )
        page = SESSION.sub(lambda _: next(written), page)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
