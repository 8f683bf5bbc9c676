"""The same bits everywhere: who calls a kernel of rows does not matter."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated, Any

import numpy as np
import pytest

from hamiltree.core.backend.jit import (
    inlined,
    kernel,
    never_inline,
    pointer_kernel,
    row_kernel,
)
from hamiltree.core.backend.records import (
    Float1,
    Record,
    function_type,
)


@inlined
def term(x, k):
    return x[k] * x[k] + 0.1


@row_kernel
def sum_of_terms(x, n):
    never_inline()
    total = 0.0
    for k in range(n):
        total += term(x, k)
    return total


@kernel
def in_order(x, n):
    total = 0.0
    for k in range(n):
        total += x[k] * x[k] + 0.1
    return total


@kernel
def from_a_kernel(x, n):
    return sum_of_terms(x, n)


SIXTEEN = np.int64(16)


@kernel
def with_known_length(x):
    """LLVM would unroll the loop, and add in another order, if it saw it from here."""
    return sum_of_terms(x, SIXTEEN)


@row_kernel
def from_a_row_kernel(x, n):
    return 0.0 + sum_of_terms(x, n)


@pointer_kernel
def behind_a_pointer(x, n):
    return sum_of_terms(x, n)


SUM = function_type(float, Float1, int)


class Sums(Record):
    """A kernel by pointer."""

    add: Annotated[Any, SUM]


@kernel
def by_pointer(sums, x, n):
    add = sums.add
    return add(x, n)


def test_a_row_kernel_gives_the_same_bits_whoever_calls_it(rng):
    sums, differ = Sums(add=behind_a_pointer), 0
    for n in [16] * 200 + list(range(100)):
        x = rng.normal(size=max(n, 1))
        value = sum_of_terms(x, n)
        assert from_a_kernel(x, n) == value
        assert from_a_row_kernel(x, n) == value
        assert by_pointer(sums, x, n) == value
        if n == 16:
            assert with_known_length(x) == value
        assert in_order(x, n) == pytest.approx(value, rel=1e-12)
        differ += in_order(x, n) != value
    assert differ > 20  # the compiler did reorder, or this test would prove nothing


REDUCTIONS = {
    "dot": 2,
    "total_of": 1,
    "total_and_two_dots": 3,
    "three_dots": 4,
    "dot_two_by_three": 5,
    "merge_adjoint": 6,
}
"""Row kernels of ``routing`` that return sums, and how many vectors they take."""

CALLERS = """
import sys
import numpy as np
from hamiltree.core.backend.jit import kernel
from hamiltree.core.tree import routing
"""

CALLER = """
{name}_0 = routing.{name}
@kernel
def {name}_1(rows{vectors}, n):
    return {name}_0(rows{vectors}, n)
@kernel
def {name}_2(rows{vectors}, n):
    return {name}_1(rows{vectors}, n)
@kernel
def {name}_3(rows{vectors}, n):
    return {name}_2(rows{vectors}, n)
"""

CALL_THEM = """
rng = np.random.default_rng(0)
for name, vectors in {reductions}.items():
    for call in range(20):
        given = rng.random((8, 64)), *map(np.int64, range(vectors)), np.int64(64)
        found = globals()[name + "_" + sys.argv[1]](*given)
        print(name, np.array(found).tobytes().hex())
"""


def test_sums_do_not_depend_on_how_deep_a_kernel_is_called(tmp_path):
    """Where a process loads callers alone: each has a copy that was optimised again, and again.

    What is optimised once may differ, which is why a process never runs what it compiled.
    """
    parts = [CALLERS]
    for name, count in REDUCTIONS.items():
        vectors = "".join(f", v{k}" for k in range(count))
        parts.append(CALLER.format(name=name, vectors=vectors))
    parts.append(CALL_THEM.format(reductions=REDUCTIONS))
    program = tmp_path / "callers.py"
    program.write_text("".join(parts))

    def sums(depth: int) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, str(program), str(depth)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    sums(3)  # compiles
    loaded = [sums(depth) for depth in (1, 2, 3)]
    assert len(loaded[0].splitlines()) == 20 * len(REDUCTIONS)
    assert loaded[0] == loaded[1] == loaded[2]


def test_a_kernel_adds_in_the_order_that_is_written(rng):
    x = rng.normal(size=100)
    expected = 0.0
    for value in x.tolist():
        expected += value * value + 0.1
    assert in_order(x, 100) == expected
