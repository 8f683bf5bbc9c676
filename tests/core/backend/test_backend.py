"""What is beneath the kernels: records, the cache on disk, and numba, which is left as it is."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from numba.core.errors import TypingError

import hamiltree
from hamiltree.core.backend.jit import inlined, kernel, never_inline, row_kernel
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

SOURCES = sorted(Path(hamiltree.__file__).parent.rglob("*.py"))

# ------------------------------------------------------------------ numba as others know it

LEAVES_NUMBA_ALONE = """
import inspect, sys, warnings
import numpy as np
import numba

def compile_something():
    def total(x, rng):
        return x.sum() + rng.random()
    numba.njit(total)(np.ones(3), np.random.default_rng(0))

def attributes():
    "Of all modules of numba, and of their classes."
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "numba":
            for key, value in list(vars(module).items()):
                found[name, key] = value
                if inspect.isclass(value) and value.__module__.split(".")[0] == "numba":
                    for inner, part in list(vars(value).items()):
                        found[value.__module__, value.__qualname__, inner] = part
    # pickle notes in a class which fields it found there; numba pickles what it caches
    return {key: value for key, value in found.items() if key[-1] != "__slotnames__"}

compile_something()  # numba loads the rest of itself, and fills tables, when it first compiles
before = attributes()
assert len(before) > 10_000

if sys.argv[1] == "hamiltree":
    import hamiltree
    from sklearn.exceptions import ConvergenceWarning
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = np.random.default_rng(0).random((20, 2))
    for model, y in (
        (hamiltree.BayesianTreeClassifier, X[:, 0] > 0.5),
        (hamiltree.BayesianTreeRegressor, X[:, 0]),
    ):
        model(n_chains=1, n_warmup=5, n_draws=5, random_state=0, n_jobs=1).fit(X, y)
elif sys.argv[1] == "patch":
    from numba.core import compiler
    compiler.Flags.__hash__ = lambda flags: 0
    compiler.compile_extra = None
else:
    compile_something()

after = attributes()
for key, value in before.items():
    if after.get(key) is not value:
        print("changed:", *key)
modules = {key[0] for key in before}
for key, value in after.items():
    if key not in before and key[0] in modules and not inspect.ismodule(value):
        print("new:", *key)
"""


def run_program(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("who", ["hamiltree", "plain"])
def test_nothing_of_numba_is_changed(who):
    """Nor of its classes; a submodule that is loaded later is new to its package, no more."""
    assert run_program(LEAVES_NUMBA_ALONE, who) == ""


def test_a_change_would_be_seen():
    changed = run_program(LEAVES_NUMBA_ALONE, "patch")
    assert "changed: numba.core.compiler compile_extra\n" in changed
    assert "new: numba.core.compiler Flags __hash__\n" in changed


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


# The base class for what ``numba.extending.infer_getattr`` decorates; numba.extending lacks it.
ALLOWED = {"numba.core.typing.templates", "numba.core.typing.templates.AttributeTemplate"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_only_what_numba_documents_is_imported(path):
    allowed = ALLOWED if path.name == "records.py" else set()
    for name in imported_modules(path) - allowed:
        top, *rest = name.split(".")
        assert top != "llvmlite"
        if top == "numba":
            assert not {"core", "np", "cpython"} & set(rest), name
            assert not any(part.startswith("_") for part in rest if part != "__version__"), name


# ------------------------------------------------------------------ records


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


@kernel
def double(x):
    return 2.0 * x


@kernel
def halve(x):
    return 0.5 * x


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


# ------------------------------------------------------------------ the same bits everywhere


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


SUM = function_type(float, Float1, int)


class Sums(Record):
    """A row kernel by pointer."""

    add: Annotated[Any, SUM]


@kernel
def by_pointer(sums, x, n):
    add = sums.add
    return add(x, n)


def test_a_row_kernel_gives_the_same_bits_whoever_calls_it(rng):
    sums, differ = Sums(add=sum_of_terms), 0
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


# ------------------------------------------------------------------ the cache on disk

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


def test_a_folder_that_cannot_be_written_to_costs_time_and_nothing_else():
    nowhere = os.path.join(os.devnull, "folder")
    assert run_program(SMALL, NUMBA_CACHE_DIR=nowhere).splitlines() == [
        "3 3 [5, 1, 3, 1, 1] False",
        "0 3",
    ]


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


def test_two_processes_that_fill_one_cache_give_the_same_numbers(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", FIT],
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
    third = run_program(FIT, NUMBA_CACHE_DIR=str(tmp_path))  # from what the two left behind
    assert len(third) > 100
    assert outputs[0][0] == outputs[1][0] == third


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
