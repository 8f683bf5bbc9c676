"""The walk-through of docs/extending.md: a move and a method, written down there, pass the battery.

The blocks of the page are applied to a copy of the sources, so that the page cannot drift. The copy
runs uncompiled (``interpreted.py``), which takes seconds where compiling takes minutes; compiled,
with HMC-DF and its whole sweep, it runs among the long tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .mutants.harness import PACKAGE, ROOT

BLOCK = re.compile(r"^```(python|diff) file=(\S+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
MOVE, METHOD = "core/moves/redraw.py", "methods/grow_prune.py"

LEVEL = 1e-5
"""Of each of some 15 tests in the battery, which runs twice: a false alarm in 3,000 runs."""
BATTERY = """
from tests.support import interpreted
if {interpreted}:
    interpreted.install()
from tests.statistical.battery import run_toy
from tests.statistical.prior_battery import OPTIONS, assert_prior, toy

sampled = run_toy(
    toy(3, {min_leaves}), h=0.1, n_draws={n_draws}, n_warmup=100, seed={seed},
    configuration="informed", likelihood=False, **{values}, **OPTIONS
)
assert_prior(sampled, method="hmc-df", n_classes=3, min_leaves={min_leaves}, level={level})
"""
"""hmc-df stands for rules of one feature each, which the toys have, too."""


def blocks() -> list[tuple[str, str, str]]:
    """Language, file and text of each."""
    return BLOCK.findall((ROOT / "docs" / "extending.md").read_text("utf-8"))


def edited(text: str, diff: str) -> str:
    """The text with hunks applied, each of which must fit in one place."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, f"does not fit:\n{hunk}"
        text = text.replace(old, new)
    return text


@pytest.fixture
def extended(tmp_path) -> Path:
    """A folder with the extended package."""
    package = tmp_path / "hamiltree"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for language, name, text in blocks():
        file = package / name
        if language == "python":
            assert not file.exists(), name
            file.write_text(text, "utf-8")
        else:
            file.write_text(edited(file.read_text("utf-8"), text), "utf-8")
    return tmp_path


def run_battery(folder: Path, *, interpreted: bool = True, **case: object) -> None:
    program = BATTERY.format(interpreted=interpreted, level=LEVEL, **case)
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_move_and_a_method_are_a_file_each_and_a_few_lines():
    files = {name: text for language, name, text in blocks() if language == "python"}
    assert set(files) == {MOVE, METHOD}
    assert len(files[MOVE].splitlines()) <= 30
    added = {
        name: sum(line.startswith("+") for line in text.splitlines())
        for language, name, text in blocks()
        if language == "diff"
    }
    assert set(added) == {"core/moves/propose.py", "samplers/common.py", "methods/__init__.py"}
    assert added["core/moves/propose.py"] == 2
    assert added["samplers/common.py"] == 1


def test_the_drawing_names_folders_that_exist():
    drawn = (ROOT / "docs" / "images" / "way.svg").read_text("utf-8")
    places = re.findall(r">([a-z/_]+(?:/|\.py))</text>", drawn)
    assert len(places) > 8
    assert [place for place in places if not (PACKAGE / place).exists()] == []


def test_the_move_recovers_the_prior(extended, seed):
    """In chains of CGM, whose own moves change the shapes, and would outnumber it otherwise."""
    values = {
        "method": "cgm",
        "rule_prior": "uniform01",
        "moves": "prior",
        "proposals": 2,
        "informed_moves": ("redraw",) * 6,
    }
    run_battery(extended, seed=seed, values=values, min_leaves=2, n_draws=2500)


def test_the_method_recovers_the_prior(extended, seed):
    values = {"method": "grow-prune", "proposals": 4}
    run_battery(extended, seed=seed, values=values, min_leaves=1, n_draws=1500)


@pytest.mark.long
@pytest.mark.parametrize("method", ["hmc-df", "grow-prune"])
def test_compiled_they_recover_the_prior(method, extended, seed):
    """The move in the default sweep of HMC-DF."""
    run_battery(
        extended, interpreted=False, seed=seed, values={"method": method}, min_leaves=1,
        n_draws=2000,
    )  # fmt: skip
