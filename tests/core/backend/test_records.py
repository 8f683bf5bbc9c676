"""Records: fields that Python fills and kernels read."""

from __future__ import annotations

import pickle
from typing import Annotated, Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from hamiltree.core.backend.jit import kernel, pointer_kernel
from hamiltree.core.backend.records import (
    Bool1,
    Float1,
    Float2,
    Float3,
    Int2,
    Record,
    Single2,
    function_type,
)
from hamiltree.core.tree.nodes import Tree, empty_tree


class Inner(Record):
    """Fields of one kind."""

    a: int
    b: int


APPLY = function_type(float, float)


class Outer(Record, role="state"):
    """Fields of every kind that the core has."""

    apply: Annotated[Any, APPLY]
    yes: bool
    n: int
    x: float
    inner: Inner
    values: Float1
    table: Float2


class Functions(Record):
    """Functions alone, of which numba's tuples would warn."""

    one: Annotated[Any, APPLY]
    other: Annotated[Any, APPLY]


@pointer_kernel
def double(x):
    return 2.0 * x


@pointer_kernel
def halve(x):
    return 0.5 * x


@kernel
def square(x):
    return x * x


@kernel
def read(record):
    apply = record.apply
    total = record.n + apply(record.x) + 10.0 * record.inner.b
    total += record.values[2] + record.table[1, 1]
    return total if record.yes else -total


@kernel
def write(record):
    record.values[2] += 1.0
    record.table[1, 1] = -5.0


@kernel
def both(functions, x):
    one, other = functions.one, functions.other
    return one(x) + other(x)


def make(**changes: Any) -> Outer:
    fields = {
        "apply": double,
        "yes": True,
        "n": 3,
        "x": 0.5,
        "inner": Inner(a=7, b=11),
        "values": np.arange(4.0),
        "table": np.arange(6.0).reshape(2, 3),
    }
    return Outer(**{**fields, **changes})


def test_kernels_read_the_fields():
    assert read(make()) == 3 + 1.0 + 110 + 2 + 4
    assert read(make(yes=False, apply=halve)) == -(3 + 0.25 + 110 + 2 + 4)
    assert read(make(inner=Inner(a=0, b=1))) == 3 + 1.0 + 10 + 2 + 4
    assert both(Functions(one=double, other=halve), 4.0) == 10.0


class Arrays(Record):
    flags: Bool1
    small: Single2
    deep: Float3
    empty: Int2


@kernel
def shapes_and_sums(record):
    """Sums by index, and of slices, which know only the strides."""
    total = 0.0
    for k in range(record.deep.shape[0]):
        total += record.deep[k].sum() + 100.0 * record.deep[k, :, 1].sum()
    total += 1e4 * record.small[1:, ::2].sum() + 1e6 * record.flags.sum()
    return total, record.deep.shape, record.small.T.shape, record.empty.shape, record.deep.size


def test_kernels_know_the_shapes_and_strides():
    deep = np.arange(24.0).reshape(2, 3, 4)
    small = np.arange(8, dtype=np.float32).reshape(2, 4)
    flags = np.array([True, False, True])
    record = Arrays(flags=flags, small=small, deep=deep, empty=np.zeros((0, 5), np.int64))
    total = deep.sum() + 100 * deep[:, :, 1].sum() + 1e4 * small[1:, ::2].sum() + 1e6 * flags.sum()
    assert shapes_and_sums(record) == (total, (2, 3, 4), (4, 2), (0, 5), 24)


class Constant(Record):
    x: Float1


class Changing(Record, role="state"):
    x: Float1


def test_what_cannot_be_written_is_copied_where_a_chain_writes():
    x = np.arange(3.0)
    x.flags.writeable = False
    assert Constant(x=x).x is x
    assert Changing(x=x).x is not x
    assert Changing(x=x).x.flags.writeable


def test_arrays_are_shared_with_python():
    values = np.arange(4.0)
    record = make(values=values)
    assert record.values is values
    write(record)
    assert values[2] == 3.0
    assert record.table[1, 1] == -5.0
    values[2] = 100.0
    assert read(record) == 3 + 1.0 + 110 + 100 - 5


def test_a_record_holds_its_arrays():
    """Kernels see views without an owner: it must be the record that keeps the memory."""
    records = [make(values=np.full(1000, float(k))) for k in range(50)]
    for k, record in enumerate(records):
        assert read(record) == 3 + 1.0 + 110 + k + 4
    inside = [Outer(**{**make()._asdict(), "inner": Inner(a=k, b=k)}) for k in range(50)]
    assert [read(record) for record in inside] == [3 + 1.0 + 10 * k + 2 + 4 for k in range(50)]


def test_fields_as_of_a_tuple():
    record = make()
    assert Outer._fields == ("apply", "yes", "n", "x", "inner", "values", "table")
    assert list(record) == [getattr(record, name) for name in Outer._fields]
    assert list(record._asdict()) == list(Outer._fields)
    assert repr(record) == "Outer(apply, yes, n, x, inner, values, table)"
    changed = record._replace(n=100)
    assert (record.n, changed.n) == (3, 100)
    assert changed.values is record.values
    assert read(changed) - read(record) == 97
    with pytest.raises(AttributeError, match=r"do not change: Outer\.n"):
        record.n = 4


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"more": 1}, r"too many or too few fields: \['more'\]"),
        ({"values": np.arange(4)}, r"values must be array\(float64, 1d, C\)"),
        ({"values": np.arange(4.0).reshape(2, 2)}, r"values must be array\(float64, 1d, C\)"),
        ({"values": np.arange(8.0)[::2]}, r"values must be array\(float64, 1d, C\)"),
        ({"table": np.asfortranarray(np.ones((2, 3)))}, "table must be array"),
        ({"inner": Functions(one=double, other=halve)}, r"inner must be hamiltree\.Inner"),
        ({"inner": None}, r"inner must be hamiltree\.Inner"),
        ({"n": "three"}, "n must be int64"),
        ({"n": 3.5}, "n must be int64"),
        ({"x": "half"}, "x must be float64"),
        ({"apply": 3.0}, "No matching definition"),
        ({"apply": square}, r"apply is called by pointer: .*square.*pointer_kernel"),
    ],
)
def test_wrong_fields_are_refused(change, error):
    with pytest.raises(TypeError, match=error):
        make(**change)


def test_missing_fields_are_refused():
    with pytest.raises(TypeError, match=r"too many or too few fields: \['b'\]"):
        Inner(a=1)
    fields = empty_tree(2, 0)._asdict()
    size = fields.pop("size")
    with pytest.raises(TypeError, match=r"too many or too few fields: \['n', 'size'\]"):
        Tree(n=size, **fields)
    with pytest.raises(TypeError, match="no field of type"):

        class Bad(Record):
            names: list[str]


def test_kernels_take_the_records_that_they_name():
    @kernel
    def size(tree):
        return tree.size[0]

    assert size(empty_tree(2, 0)) == 1
    with pytest.raises(TypingError, match="Unknown attribute 'size'"):
        size(Inner(a=1, b=2))


def test_records_can_be_pickled():
    tree = empty_tree(3, 2)
    tree.threshold[:] = np.arange(5)
    again = pickle.loads(pickle.dumps(tree))
    assert type(again) is Tree
    for name in Tree._fields:
        np.testing.assert_array_equal(getattr(again, name), getattr(tree, name))
    assert again.threshold is not tree.threshold
    assert pickle.loads(pickle.dumps(Tree.numba_type)) is Tree.numba_type


def test_roles_are_those_of_the_class_unless_said():
    assert set(Outer._roles.values()) == {"state"}
    assert set(Inner._roles.values()) == {"constant"}
