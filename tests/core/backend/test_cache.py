"""Compiled code on disk, and processes that share it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hamiltree

from ...support.programs import run_program

SMALL = """
import sys
import numpy as np
from hamiltree.core.backend import cache
from hamiltree.core.tree.nodes import LEAF, count_kind, empty_tree, grow, n_leaves

kernels = (grow, count_kind, n_leaves)
tree = empty_tree(4, 0)
grow(tree, 0)
grow(tree, 2)
print(n_leaves(tree), count_kind(tree, LEAF), tree.size[:5].tolist(), cache.CAN_KEEP)
hits = sum(sum(k.stats.cache_hits.values()) for k in kernels)
misses = sum(sum(k.stats.cache_misses.values()) for k in kernels)
print(hits, misses)
"""


def test_a_second_process_loads_what_the_first_compiled(tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (run_program(SMALL, **folder).splitlines() for _ in range(2))
    assert first[0] == second[0] == "3 3 [5, 1, 3, 1, 1] True"
    assert first[1] == "0 3"
    assert second[1] == "3 0"
    (made,) = (tmp_path / "hamiltree").iterdir()
    assert any(made.rglob("*.nbc"))


def test_a_relative_folder_is_one_place_wherever_the_program_goes(tmp_path):
    program = "from hamiltree.core.backend.cache import CACHE; print(CACHE)"
    found = run_program(program, NUMBA_CACHE_DIR=os.path.relpath(tmp_path)).strip()
    assert os.path.isabs(found)
    assert os.path.realpath(found).startswith(os.path.realpath(tmp_path))


NOWHERE = os.path.join(os.devnull, "folder")


def test_where_nothing_can_be_written_a_process_has_a_folder_of_its_own(tmp_path):
    """And removes it."""
    assert run_program(SMALL, NUMBA_CACHE_DIR=NOWHERE, TMPDIR=str(tmp_path)).splitlines() == [
        "3 3 [5, 1, 3, 1, 1] True",
        "0 3",
    ]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_would_not_last_is_not_filled_ahead():
    program = """
from typer.testing import CliRunner
from hamiltree.cli import app
done = CliRunner().invoke(app, ["compile"])
print(done.exit_code, done.output, done.exception)
"""
    said = run_program(program, NUMBA_CACHE_DIR=NOWHERE)
    assert not said.startswith("0 ")
    assert f"{NOWHERE}" in said
    assert "set NUMBA_CACHE_DIR" in said


PLACE = "from hamiltree.core.backend.cache import CACHE; print(CACHE.name)"


@pytest.mark.parametrize(
    "change", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_CPU_FEATURES": "+sse4.2"}]
)
def test_code_for_another_processor_is_not_taken_for_ours(change, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run_program(PLACE, **folder) == run_program(PLACE, **folder)
    assert run_program(PLACE, **folder, **change) != run_program(PLACE, **folder)


def test_code_of_another_copy_of_the_package_is_not_taken_for_ours(tmp_path):
    """numba would not load it, and nobody would be told of a minute of compiling."""
    copy = tmp_path / "copy"
    shutil.copytree(Path(hamiltree.__file__).parent, copy / "hamiltree")
    found = {
        run_program(PLACE, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=str(path))
        for path in (copy, Path(hamiltree.__file__).parent.parent)
    }
    assert len(found) == 2


OWN_RECORD = """
from hamiltree.core.backend.records import Float1, Record
from hamiltree.core.tree.nodes import empty_tree
import numpy as np

class Mine(Record):
    values: Float1

print(Mine(values=np.ones(3)).values.sum(), empty_tree(2, 0).size.sum())
"""


def test_records_of_other_programs_are_none_of_ours(tmp_path):
    """A cache that holds a record of a program that is not there."""
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run_program(OWN_RECORD, **folder) == "3.0 3\n"
    assert run_program(SMALL, **folder).startswith("3 3 ")


FIT = """
import warnings
import numpy as np
import hamiltree
warnings.simplefilter("ignore")
X = np.random.default_rng(0).random((20, 2))
model = hamiltree.BayesianTreeClassifier(method="smc", random_state=0, n_chains=1, n_draws=50)
print(model.fit(X, X[:, 0] > 0.5).posterior_.log_posterior.tobytes().hex())
"""


@pytest.mark.parametrize(
    "program", [SMALL, pytest.param(FIT, marks=pytest.mark.long)], ids=["kernels", "fit"]
)
def test_two_processes_that_fill_one_cache_give_the_same_numbers(program, tmp_path):
    """A fit among the long tests only: its kernels take a minute of each core, these seconds."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=600) for process in running]
    for process, (_, errors) in zip(running, outputs, strict=True):
        assert process.returncode == 0, errors
    third = run_program(program, NUMBA_CACHE_DIR=str(tmp_path))  # from what the two left behind
    numbers = [output.splitlines()[0] for output in (outputs[0][0], outputs[1][0], third)]
    assert len(numbers[0]) > 20
    assert numbers[0] == numbers[1] == numbers[2]
    if program == SMALL:
        assert third.splitlines()[1] == "3 0"


def test_folders_of_sources_that_nobody_used_for_a_month_go(tmp_path):
    program = "from hamiltree.core.backend import cache; cache.remove_old_folders()"
    run_program(program, NUMBA_CACHE_DIR=str(tmp_path))
    (ours,) = (tmp_path / "hamiltree").iterdir()
    for name, days in (("old", 31), ("recent", 29), (ours.name, 31)):
        folder = ours.parent / name
        (folder / "inside").mkdir(parents=True, exist_ok=True)
        os.utime(folder, times=(time.time() - 86_400 * days,) * 2)
    run_program(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert {folder.name for folder in ours.parent.iterdir()} == {"recent", ours.name}
    assert time.time() - ours.stat().st_mtime < 3600, "ours is marked as used"


SOFT_FIT = """
import warnings
import numpy as np
import hamiltree
warnings.simplefilter("ignore")
X = np.random.default_rng(0).random((40, 2))
model = hamiltree.BayesianTreeRegressor(random_state=0, n_chains=1, n_warmup=50, n_draws=50)
print(model.fit(X, X[:, 0]).posterior_.log_posterior.tobytes().hex())
"""


@pytest.mark.long
def test_who_compiled_does_not_matter(tmp_path):
    """The draws of the first process, of a later one, and of one that cannot keep anything."""
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, later = run_program(SOFT_FIT, **folder), run_program(SOFT_FIT, **folder)
    assert len(first) > 20
    assert first == later == run_program(SOFT_FIT, NUMBA_CACHE_DIR=NOWHERE)


def test_numbas_folder_is_that_of_others_again():
    program = """
import numba
before = numba.config.CACHE_DIR
import hamiltree
from hamiltree.core.tree import nodes
assert numba.config.CACHE_DIR == before
assert nodes.grow._cache.cache_path != before
"""
    run_program(program)
