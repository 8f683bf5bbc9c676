"""Mutants are edits of the sources: each must find the term that it breaks, and break it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache

import pytest

from . import MUTANTS
from .harness import INTERPRETED, PACKAGE, ROOT, AnchorError, Mutant, function_in, mutate

SOURCE = '''
def f(a, b):
    """Text."""
    if a > b:  # ü, which is two bytes
        a = b; c = "é" + g(a,
              b)
        return a - b
    return (a
            - b)
'''


def broken(old, new, nth=1, of=1):
    return mutate(Mutant("", "", "f", old, new, "", nth, of), SOURCE)


@cache
def module_of(path):
    source = (PACKAGE / path).read_text("utf-8")
    return source, ast.parse(source)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_mutant_finds_its_term(mutant):
    source, before = module_of(mutant.module)
    after = ast.parse(mutate(mutant, source))
    compile(after, mutant.module, "exec")
    functions = [function_in(module, mutant.function) for module in (before, after)]
    assert ast.dump(functions[0]) != ast.dump(functions[1])


def test_their_tests_are_there():
    paths = {path for mutant in MUTANTS for path in mutant.tests.partition(" -k ")[0].split()}
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_what_runs_uncompiled_can_be_imported():
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    environment = {**os.environ, "HAMILTREE_INTERPRETED": "1"}
    done = subprocess.run(
        [*command, *INTERPRETED],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_names_are_unique():
    names = [mutant.what for mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_the_documented_table_names_them_and_their_files():
    text = (ROOT / "docs" / "correctness.md").read_text("utf-8")
    table = text.partition("| term removed | in | test that failed |\n|---|---|---|\n")[2]
    rows = [row.split(" | ")[:2] for row in table.partition("\n\n")[0].splitlines()]
    files = {f"| {mutant.what}": f"`{mutant.module}`" for mutant in MUTANTS}
    assert rows
    assert [row for row in rows if files.get(row[0]) != row[1]] == []


def test_formatting_does_not_matter():
    assert broken("g( a,b )", "0") == SOURCE.replace("g(a,\n              b)", "(0)")
    assert broken("a-b", "a", 2, 2) == SOURCE.replace("a\n            - b", "(a)")
    assert broken("a - b", "a", 1, 2) == SOURCE.replace("return a - b", "return (a)")


def test_statements():
    assert broken("a = b", "") == SOURCE.replace("a = b;", "pass;")
    after = broken("return a - b", "if a:\n    return 0\nreturn 1", 1, 2)
    assert after == SOURCE.replace("return a - b", "if a:\n            return 0\n        return 1")


@pytest.mark.parametrize(
    ("old", "nth", "of"), [("a + b", 1, 1), ("a - b", 1, 1), ("g(a, b)", 2, 1)]
)
def test_a_term_that_is_not_there_as_stated(old, nth, of):
    with pytest.raises(AnchorError):
        broken(old, "0", nth, of)
