"""The shortcuts through numba leave what it computes as it was, for this package and for others."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba import types
from numba.core import compiler, ir, ssa

from hamiltree.core import compiling, jit
from hamiltree.samplers import rjhmc
from hamiltree.settings import Settings


@jit.inlined
def _step(x, up):
    y = x
    if up:
        y = y + 1.0
    else:
        for k in range(3):
            y = y - k
    return y


@jit.kernel
def _walk(x, values):
    for i in range(values.shape[0]):
        x = _step(x, values[i] > 0.5)
        if x > 2.0:
            x = _step(_step(x, False), True)
    return x


@jit.kernel
def _walk_twice(x, values):
    return _walk(_walk(x, values), values)


_call_walk, _walk_address = jit.opaque(_walk)


@jit.kernel
def _walk_by_address(address, x, values):
    return _call_walk(address, (x, values))


def _expected(x, values):
    step = _step.py_func
    for value in values:
        x = step(x, value > 0.5)
        if x > 2.0:
            x = step(step(x, False), True)
    return x


def test_a_kernel_is_the_same_from_python_from_a_kernel_and_by_address():
    values = np.random.default_rng(0).random(50)
    once = _expected(0.3, values)
    assert _walk(0.3, values) == once
    assert _walk_twice(0.3, values) == _expected(once, values)
    assert _walk_by_address(_walk_address(0.3, values), 0.3, values) == once


def test_what_a_kernel_calls_has_no_machine_code_of_its_own():
    _walk.get_call_template((types.float64, types.float64[::1]), {})  # as a caller asks
    (overload,) = _walk.get_call_template.__self__.overloads.values()
    assert isinstance(overload.library, compiling._Translated)


def test_a_second_process_helps_once(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "CACHE", tmp_path)
    monkeypatch.setattr(jit.os, "cpu_count", lambda: 2)
    made = tmp_path / "made"
    addresses = []
    program = f"import hamiltree, pathlib; pathlib.Path({str(made)!r}).touch()"
    for _ in range(2):
        jit.compile_side_by_side(
            lambda: addresses.append(_walk_address(0.3, np.ones(2))), program, {"_walk"}
        )
    assert made.exists()
    assert addresses == [0]  # left to the other process, and not asked for again
    assert _walk_address(0.3, np.ones(2)) != 0


def test_both_halves_of_the_sampler_are_all_of_it():
    """Each kernel that is cut loose is compiled by one process or the other, none by both."""
    assert not rjhmc.OURS & rjhmc.THEIRS
    columns, labels = np.array([[0.0, 0.4, 0.6, 1.0]]), np.array([0, 0, 1, 1])
    sampler = rjhmc.RJHMC.build(columns, labels, 2, Settings(), 10)
    with jit.leaving_out(rjhmc.OURS | rjhmc.THEIRS):
        state = rjhmc.RJHMCChain(sampler, np.random.default_rng(0)).state
    assert {*state.calls, *state.scan_model.calls, state.model.likelihood_address} == {0}


def test_a_folder_that_cannot_be_written_to_costs_time_and_nothing_else():
    program = """
import numpy as np
import hamiltree.core.jit as jit
from hamiltree.progress import announced_compilation
assert not jit.CAN_KEEP
jit.compile_side_by_side(lambda: 1 / 0, "", set())  # nobody to share the work with
double = jit.kernel(lambda x: 2 * x)
print(double(21))
"""
    nowhere = os.path.join(os.devnull, "folder")
    environment = {**os.environ, "NUMBA_CACHE_DIR": nowhere}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "42\n"


def test_others_that_inline_still_can():
    @numba.njit(inline="always")
    def twice(x):
        y = x
        for _ in range(2):
            y = y + x
        return y

    @numba.njit
    def both(x):
        return twice(x) + twice(2 * x)

    assert both(3) == 27
    assert twice.py_func not in compiling.INLINED


OPTIONS = [
    {},
    {"nrt": True},
    {"nrt": False},
    {"no_cpython_wrapper": True},
    {"no_cpython_wrapper": False, "nrt": True},
    {"error_model": "numpy"},
    {"error_model": "python"},
]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(OPTIONS, OPTIONS)))
def test_options_are_equal_when_all_their_values_are(left, right):
    first, second = compiler.Flags(), compiler.Flags()
    for flags, values in ((first, left), (second, right)):
        for name, value in values.items():
            setattr(flags, name, value)
    assert (first == second) == (first.values() == second.values())
    assert first != second or hash(first) == hash(second)


def test_variables_of_a_statement_are_those_numba_lists():
    blocks = compiler.run_frontend(_walk.py_func).blocks
    listed = 0
    for statement in itertools.chain.from_iterable(block.body for block in blocks.values()):
        content = statement.__dict__
        names = [v.name for v in compiling._listed_one_by_one(statement, content)]
        assert [v.name for v in statement._rec_list_vars(content)] == names
        listed += len(names)
    assert listed > 20


def test_single_assignments_are_those_of_numba(monkeypatch):
    def rewritten():
        source = compiler.run_frontend(_walk.py_func)
        lines = ssa.reconstruct_ssa(source).blocks.items()
        return {label: [str(statement) for statement in block.body] for label, block in lines}

    def every_block(blocks, states, handler):
        new = {}
        for label, block in blocks.items():
            states["label"], states["block"] = label, block
            new[label] = ir.Block(scope=block.scope, loc=block.loc)
            new[label].body = list(ssa._run_ssa_block_pass(states, block, handler))
        return new

    ours = rewritten()
    monkeypatch.setattr(ssa, "_run_block_rewrite", every_block)
    assert ours == rewritten()
    assert any("phi" in line for lines in ours.values() for line in lines)
