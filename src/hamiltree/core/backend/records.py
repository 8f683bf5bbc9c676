"""Records: groups of arrays and numbers that compiled code receives as one pointer.

A record is declared like a dataclass, one annotated field after the other, and made in Python::

    class Tree(Record):
        size: Int1
        threshold: Float1

    tree = Tree(size=np.ones(3, np.int64), threshold=np.zeros(3))

Python and compiled code see the same arrays: ``tree.size[0]`` works in both. Fields never change;
what changes is in the arrays, numbers that change too. A record has one type, its fields' types are
those declared, so a kernel is compiled once whatever the data are.

Built on ``numba.experimental.structref``. Named tuples would be taken apart at every call, which
took minutes to compile. Reading a field costs a few nanoseconds, so loops take the arrays they
use into local variables first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Self, dataclass_transform, get_args, get_type_hints

import numpy as np
from numba import carray, njit, typeof, types
from numba.experimental import structref
from numba.extending import overload
from numpy.typing import NDArray

from .cache import cached

Int1 = Annotated[NDArray[np.int64], types.int64[::1]]
Int2 = Annotated[NDArray[np.int64], types.int64[:, ::1]]
Int3 = Annotated[NDArray[np.int64], types.int64[:, :, ::1]]
Short1 = Annotated[NDArray[np.int32], types.int32[::1]]
Short2 = Annotated[NDArray[np.int32], types.int32[:, ::1]]
Unsigned2 = Annotated[NDArray[np.uint32], types.uint32[:, ::1]]
Byte1 = Annotated[NDArray[np.uint8], types.uint8[::1]]
Byte2 = Annotated[NDArray[np.uint8], types.uint8[:, ::1]]
Word1 = Annotated[NDArray[np.uint64], types.uint64[::1]]
Word2 = Annotated[NDArray[np.uint64], types.uint64[:, ::1]]
Word3 = Annotated[NDArray[np.uint64], types.uint64[:, :, ::1]]
Bool1 = Annotated[NDArray[np.bool_], types.boolean[::1]]
Float1 = Annotated[NDArray[np.float64], types.float64[::1]]
Float2 = Annotated[NDArray[np.float64], types.float64[:, ::1]]
Float3 = Annotated[NDArray[np.float64], types.float64[:, :, ::1]]
Single2 = Annotated[NDArray[np.float32], types.float32[:, ::1]]

RNG = typeof(np.random.default_rng(0))
"""The type of ``numpy.random.Generator`` in compiled code."""

_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}


class _RecordType(types.StructRef):
    """What numba knows of a record; there is one for each record class."""

    def __init__(self, record: type[Record], fields: list[tuple[str, Any]]) -> None:
        super().__init__(fields)
        # Short, because it becomes a part of the name of every function that takes a record.
        self.name = f"hamiltree.{record.__name__}"
        self.record = record

    def __reduce__(self) -> Any:
        return _type_of, (self.record,)


def _type_of(record: type[Record]) -> Any:
    return record.numba_type


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record(structref.StructRefProxy):
    """Base class of records; see the module. ``_replace`` makes a changed copy, as of a tuple.

    ``role`` says what the fields of a record are to a chain, unless their annotation says
    otherwise: "state" is what its next draws depend on, "scratch" is filled before it is read, and
    "constant" does not change. What is state is written into checkpoints.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _roles: ClassVar[dict[str, str]] = {}
    numba_type: ClassVar[Any]

    def __init_subclass__(cls, role: str = "constant") -> None:
        hints = get_type_hints(cls, include_extras=True)
        fields = {name: hints[name] for name in cls.__annotations__}
        cls._fields = tuple(fields)
        cls._roles = {name: _role_of(hint, role) for name, hint in fields.items()}
        kind = type(f"{cls.__name__}Type", (_RecordType,), {"__reduce__": _RecordType.__reduce__})
        structref.register(kind)
        cls.numba_type = kind(cls, [(name, as_type(hint)) for name, hint in fields.items()])
        _define_constructor(cls)
        structref.define_boxing(kind, cls)

    def __new__(cls, **fields: Any) -> Self:
        if fields.keys() != set(cls._fields):
            odd = sorted(fields.keys() ^ set(cls._fields))
            raise TypeError(f"{cls.__name__} was given too many or too few fields: {odd}")
        for name, value in fields.items():
            if isinstance(value, np.ndarray) and not value.flags.writeable:
                fields[name] = value.copy()  # of another type to numba: memory-mapped, or shared
        made: Self = builder(cls)((0, *(fields[name] for name in cls._fields)))
        made.__dict__.update(fields)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fields:
            raise AttributeError(f"fields of a record do not change: {type(self).__name__}.{name}")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return (vars(self)[name] for name in self._fields)

    def _asdict(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self._fields}

    def _replace(self, **changes: Any) -> Self:
        return type(self)(**{**self._asdict(), **changes})

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self._asdict())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._fields)})"


def _rebuilt(record: type[Record], fields: dict[str, Any]) -> Record:
    return record(**fields)


class _Marked(str):
    """A role as a part of an annotation."""


STATE, SCRATCH, CONSTANT = _Marked("state"), _Marked("scratch"), _Marked("constant")
"""``name: Annotated[Float1, STATE]``; see ``Record``."""


def _role_of(hint: Any, role: str) -> str:
    return next((str(part) for part in get_args(hint)[1:] if isinstance(part, _Marked)), role)


def as_type(hint: Any) -> Any:
    """The numba type of an annotation, a record class, or a numba type itself."""
    if isinstance(hint, types.Type):
        return hint
    if hint in _NUMBERS:
        return _NUMBERS[hint]
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.numba_type
    for part in get_args(hint)[1:]:
        if isinstance(part, types.Type):
            return part
    if get_args(hint):
        return as_type(get_args(hint)[0])
    raise TypeError(f"a record has no field of type {hint!r}")


def function_type(returns: Any, *arguments: Any) -> Any:
    """The type of compiled functions as values: what a kernel that is called by pointer has.

    Code of a callee is optimised again inside each of its callers. A function that comes in as a
    value is not; this is how the heavy kernels are compiled once.
    """
    signature = as_type(returns)(*(as_type(argument) for argument in arguments))
    return types.FunctionType(signature)


def _define_constructor(record: type[Record]) -> None:
    """Let compiled code make a record of its fields, as ``structref.define_constructor`` does.

    The difference: of arrays it stores views that have no owner. Whoever touches a field would else
    count references to the owner up and down. The record in Python owns the arrays. And there is a
    number before the fields: of tuples that begin with a function numba warns.
    """
    names = ", ".join(record._fields)
    # names that no field has
    scope: dict[str, Any] = {"_new": structref.new, "_kind": record.numba_type, "_view": _view}
    views, fields = "", ""
    for name, kind in record.numba_type._fields:
        value = name
        if isinstance(kind, types.Array):
            views += f"    _view_{name} = _view({name})\n"
            value = f"_view_{name}({name}.ctypes, {name}.shape)"
        fields += f"        _made.{name} = {value}\n"
    source = (
        f"def constructor(_first, {names}):\n{views}"
        f"    def make(_first, {names}):\n        _made = _new(_kind)\n{fields}"
        "        return _made\n    return make\n"
    )
    exec(source, scope)
    overload(record)(scope["constructor"])


@cache
def _view(kind: Any) -> Any:
    """A kernel that makes an array of this type of a pointer."""

    def view(start, shape):
        return carray(start, shape)

    return njit(kind(types.CPointer(kind.dtype), types.UniTuple(types.intp, kind.ndim)))(view)


_builders: dict[Any, Any] = {}


def builder(record: type[Record]) -> Any:
    """A kernel that makes a record of a tuple: any number, then its fields."""
    if record in _builders:
        return _builders[record]

    def build(fields):
        return record(*fields)

    # A file of its own in the cache: one for all would load the modules of all records ever made.
    build.__qualname__ = f"build_{record.__module__}.{record.__qualname__}"
    kinds = types.Tuple([types.int64, *(kind for _, kind in record.numba_type._fields)])
    with cached() as cache:
        _builders[record] = njit(record.numba_type(kinds), cache=cache)(build)
    return _builders[record]
