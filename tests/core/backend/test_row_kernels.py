"""The same bits everywhere: who calls a kernel of rows does not matter."""

from __future__ import annotations

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


def test_a_kernel_adds_in_the_order_that_is_written(rng):
    x = rng.normal(size=100)
    expected = 0.0
    for value in x.tolist():
        expected += value * value + 0.1
    assert in_order(x, 100) == expected
