"""Records by reference: the same names, the same values, and none of an earlier record."""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from hamiltree.core.jit import inlined, kernel, never_inline, opaque, replacing
from hamiltree.core.references import Reference, at_hand, refer


class Inner(NamedTuple):
    """All fields alike, which numba stores as an array."""

    a: int
    b: int


class Outer(NamedTuple):
    """Fields of every kind that the core has."""

    yes: bool
    n: int
    x: float
    inner: Inner
    values: np.ndarray
    table: np.ndarray


def record(n=3):
    return Outer(True, n, 0.5, Inner(7, 11), np.arange(4.0), np.arange(6).reshape(2, 3))


@inlined
def read_here(record):
    total = record.n + record.x + 10.0 * record.inner.b + record.values[2] + record.table[1, 1]
    return total if record.yes else -total


@kernel
def read(record):
    never_inline()
    return read_here(record)


def expected(record):
    return record.n + record.x + 10 * record.inner.b + record.values[2] + record.table[1, 1]


with_n = replacing("n")


@kernel
def both_ways(record):
    there = refer(record)
    return read(record), read(there), read(at_hand(there)), read(refer(there))


@kernel
def one_after_another(record, times):
    """One place on the stack, stored to again and again."""
    total = 0.0
    for k in range(times):
        there = refer(with_n(record, (k,)))
        total += read_here(there) - 0.5 * read(there)
    return 2.0 * total


@kernel
def with_another_n(record):
    changed = with_n(refer(record), (100,))
    return read(changed), read(refer(changed)), read(record)


@kernel
def write(record):
    there = refer(record)
    there.values[2] += 1.0
    return read(there)


@kernel
def apart(record, k):
    return read(record) + k


call, address_of = opaque(apart, returns=types.float64)


@kernel
def calls(address, record):
    return call(address, (record, 1)) + call(address, (refer(record), 2))


def test_fields():
    assert both_ways(record()) == (expected(record()),) * 4


def test_a_reference_is_to_the_record_of_the_moment():
    assert one_after_another(record(0), 5) == 5 * expected(record(0)) + 0 + 1 + 2 + 3 + 4


def test_replacing_what_is_behind_a_reference():
    plain = expected(record(0))
    assert with_another_n(record(3)) == (plain + 100, plain + 100, plain + 3)


def test_arrays_behind_a_reference_may_change():
    given = record()
    assert write(given) == expected(record()) + 1
    assert given.values[2] == 3.0


def test_calls_by_address():
    given = record()
    address = address_of(given, 0)
    assert calls(address, given) == 2 * expected(given) + 3


def test_only_named_tuples_and_no_references_within():
    with pytest.raises(TypeError, match="only named tuples"):
        Reference(types.float64)

    @kernel
    def nested(record):
        return read(refer(Outer(True, 1, 1.0, refer(record.inner), record.values, record.table)))

    with pytest.raises(TypeError, match="a reference to references"):
        nested(record())


def test_records_of_one_name_and_other_fields_are_told_apart():
    first, second = (namedtuple("Same", names) for names in ("low high", "high low"))

    @kernel
    def low(record):
        return refer(record).low

    assert (low(first(1.0, 2.0)), low(second(1.0, 2.0))) == (1.0, 2.0)
