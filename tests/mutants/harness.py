"""Find a term in the sources, break it in a copy of them, and run the tests that must then fail.

A term is found by its syntax tree, not by its text: formatting and comments do not matter. Tests
that call single functions run uncompiled (``interpreted.py``), because compiling a mutant takes
longer than anything else.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "hamiltree"

INTERPRETED = (
    "tests/core/moves/test_informed.py",
    "tests/core/soft/test_changed_leaves.py",
    "tests/core/soft/test_noise.py",
    "tests/core/soft/test_labels.py",
    "tests/core/soft/test_learned_h.py",
    "tests/core/scan/test_bins.py",
    "tests/core/scan/test_bits.py",
    "tests/core/scan/test_leaf_means.py",
    "tests/core/test_weights.py",
    "tests/core/test_imputed.py",
    "tests/core/test_special.py",
    "tests/core/test_special_scans.py",
    "tests/methods/test_smc_run.py",
    "tests/statistical/test_smc.py",
)
"""Tests that run uncompiled."""

NO_PROGRAM = (
    "NumbaError",
    "TypingError",
    "LoweringError",
    "UnsupportedError",
    "SyntaxError",
    "NameError",
    "UnboundLocalError",
    "TypeError",
    "AttributeError",
    "ImportError",
    "ModuleNotFoundError",
    "Warning",
)
"""What a test fails with that has not looked at a result."""


@dataclass(frozen=True)
class Mutant:
    """One term, what takes its place, and the tests that must then fail."""

    what: str
    """Which term; the name of the mutant."""
    module: str
    """Its file, below ``src/hamiltree``."""
    function: str
    """The function, or Class.method, that it is in."""
    old: str
    """An expression, or one or more statements."""
    new: str
    """The same; nothing takes a statement out."""
    tests: str
    """Files, then perhaps `` -k `` and words that the names of tests must all contain."""
    nth: int = 1
    """Which one, where it occurs several times, and how often that is."""
    of: int = 1


class AnchorError(Exception):
    """A mutant does not find its term as stated."""


# ------------------------------------------------------------------ finding and breaking


def as_expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def shape_of(node: ast.AST) -> str:
    """The same for equal code, whatever its formatting, and whether it is read or assigned to."""
    return re.sub(r"ctx=(Store|Del)\(\)", "ctx=Load()", ast.dump(node))


def function_in(module: ast.Module, name: str) -> ast.FunctionDef:
    found: ast.AST = module
    for part in name.split("."):
        named = [
            node
            for node in ast.iter_child_nodes(found)
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part
        ]
        if len(named) != 1:
            raise AnchorError(f"{len(named)} definitions of {part} in {name}")
        found = named[0]
    if not isinstance(found, ast.FunctionDef):
        raise AnchorError(f"{name} is not a function")
    return found


def bodies_in(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def expressions_like(function: ast.FunctionDef, wanted: ast.expr) -> list[tuple[ast.AST, ast.AST]]:
    shape = shape_of(wanted)
    return [
        (node, node)
        for node in ast.walk(function)
        if type(node) is type(wanted) and shape_of(node) == shape
    ]


def statements_like(
    function: ast.FunctionDef, wanted: list[ast.stmt]
) -> list[tuple[ast.AST, ast.AST]]:
    """First and last of each run of statements that are these."""
    shapes = [shape_of(node) for node in wanted]
    found: list[tuple[ast.AST, ast.AST]] = []
    for body in bodies_in(function):
        here = [shape_of(node) for node in body]
        for k in range(len(body) - len(shapes) + 1):
            if here[k : k + len(shapes)] == shapes:
                found.append((body[k], body[k + len(shapes) - 1]))
    return found


def mutate(mutant: Mutant, source: str) -> str:
    """The text of the module with the term broken."""
    function = function_in(ast.parse(source), mutant.function)
    old, new = as_expression(mutant.old), as_expression(mutant.new)
    if old is not None and new is not None:
        found = expressions_like(function, old)
    else:
        found = statements_like(function, ast.parse(textwrap.dedent(mutant.old)).body)
    where = f"{mutant.module}, {mutant.function}"
    if len(found) != mutant.of or not 1 <= mutant.nth <= mutant.of:
        raise AnchorError(
            f"{where}: {mutant.nth} of {mutant.of} wanted, {len(found)} found: {mutant.old}"
        )
    first, last = sorted(found, key=lambda pair: (pair[0].lineno, pair[0].col_offset))[  # type: ignore[attr-defined]
        mutant.nth - 1
    ]
    if old is not None and new is not None:
        text = f"({' '.join(mutant.new.split())})"
    else:
        text = textwrap.dedent(mutant.new).strip() or "pass"
        text = text.replace("\n", "\n" + " " * first.col_offset)  # type: ignore[attr-defined]
    return source[: place(source, first, "")] + text + source[place(source, last, "end_") :]


def place(source: str, node: ast.AST, end: str) -> int:
    """Where a node begins, or ends, in the text; Python counts columns in bytes."""
    lines = source.splitlines(keepends=True)
    line, column = getattr(node, f"{end}lineno") - 1, getattr(node, f"{end}col_offset")
    return sum(map(len, lines[:line])) + len(lines[line].encode()[:column].decode())


# ------------------------------------------------------------------ running


class Outcome(NamedTuple):
    """What pytest said."""

    passed: bool
    test: str
    """The test that failed, or the last line where none did."""
    why: str
    """What it failed with."""

    @property
    def killed(self) -> bool:
        """A test failed, and not because the mutant is no program: that shows nothing."""
        return "::" in self.test and not any(error in self.why for error in NO_PROGRAM)


def run_tests(tests: str, source: Path, cache: Path) -> Outcome:
    """Run tests against a copy of the sources."""
    paths, _, keyword = tests.partition(" -k ")
    marked = "long" if "calibration" in paths else "not long"
    command = [sys.executable, "-m", "pytest", "-m", marked, "-q", "-x", "-p", "no:cacheprovider"]
    command += paths.split()
    interpreted = paths in INTERPRETED
    if interpreted:
        command += ["-W", "ignore::RuntimeWarning"]  # of whole numbers that wrap
    if keyword:
        command += ["-k", " and ".join(keyword.split())]
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(cache),
        "HAMILTREE_INTERPRETED": "1" if interpreted else "",
        "COLUMNS": "400",  # pytest cuts reasons to the width of the terminal
    }
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    failed = re.search(r"^FAILED (.+?)(?: - (.*))?$", result.stdout, re.M)
    # 1: tests failed. Anything else (nothing collected, a crash) is not a kill.
    if result.returncode == 1 and failed:
        return Outcome(False, failed[1], failed[2] or "")
    said = (result.stdout + result.stderr).strip().splitlines() or ["nothing"]
    return Outcome(result.returncode == 0, said[-1], "")


def run_mutant(mutant: Mutant | None, tests: str) -> Outcome:
    """The same with a term broken, or with none, in a temporary copy of the sources."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(PACKAGE, copy / "hamiltree", ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            module = copy / "hamiltree" / mutant.module
            module.write_text(mutate(mutant, module.read_text("utf-8")), "utf-8")
        return run_tests(tests, copy, Path(folder) / "cache")


def run_all(mutants: list[Mutant], check_all: bool) -> int:
    """Print the table of docs/correctness.md; how many were not killed.

    Tests that run uncompiled, or with ``check_all`` all tests, must first pass with nothing broken.
    """
    left = 0
    sound: set[str] = set()
    print("| term removed | in | test that failed |\n|---|---|---|")
    for mutant in mutants:
        tests = mutant.tests
        if tests not in sound and (check_all or tests.startswith(INTERPRETED)):
            before = run_mutant(None, tests)
            if not before.passed:
                sys.exit(f"{tests} does not pass with nothing broken: {before.test} {before.why}")
            sound.add(tests)
        after = run_mutant(mutant, tests)
        left += not after.killed
        outcome = f"**SURVIVED**: {after.test} {after.why}".strip()
        if after.killed:
            outcome = f"`{after.test.split('::', 1)[-1]}`"
        print(f"| {mutant.what} | `{mutant.module}` | {outcome} |", flush=True)
    return left
