"""Records: groups of arrays and numbers that compiled code receives as one pointer.

A record is declared like a dataclass, one annotated field after the other, and made in Python::

    class Tree(Record):
        size: Int1
        threshold: Float1

    tree = Tree(size=np.ones(3, np.int64), threshold=np.zeros(3))

Python and compiled code see the same arrays: ``tree.size[0]`` works in both. Fields never change;
what changes is in the arrays, numbers that change too. A record has one type, its fields' types are
those declared, so a kernel is compiled once whatever the data are.

To compiled code a record is the address of a row of words, which Python fills when the record is
made: a number is one word, an array its address and its shape, a record its address. Python owns
the memory, so that compiled code counts no references, and nothing has to be compiled to make one.
All of it stands on numba's extension interface. Named tuples would be taken apart at every call,
which took minutes to compile; ``numba.experimental.structref`` counts references at every call and
every access to a record inside a record (docs/benchmarks.md has the measurements).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Self, dataclass_transform, get_args, get_type_hints

import numpy as np
from numba import njit, typeof, types
from numba.core.typing.templates import AttributeTemplate  # the base that infer_getattr needs
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
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
Single1 = Annotated[NDArray[np.float32], types.float32[::1]]
Single2 = Annotated[NDArray[np.float32], types.float32[:, ::1]]

RNG = typeof(np.random.default_rng(0))
"""The type of ``numpy.random.Generator`` in compiled code."""

_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}
_FUNCTION_WORDS = 4
"""Room for a function as a value: numba needs two or three words."""


class _RecordType(types.Type):
    """What numba knows of a record: the type of each field, and where its words begin."""

    def __init__(self, record: type[Record], fields: dict[str, Any]) -> None:
        self.record, self.fields = record, fields
        self.starts: dict[str, int] = {}
        self.n_words = 0
        for name, kind in fields.items():
            self.starts[name] = self.n_words
            self.n_words += _words_of(kind)
        # Short, because it becomes a part of the name of every function that takes a record.
        super().__init__(name=f"hamiltree.{record.__name__}")

    @property
    def key(self) -> Any:
        return self.record

    def __reduce__(self) -> Any:
        return _type_of, (self.record,)


def _type_of(record: type[Record]) -> Any:
    return record.numba_type


def _words_of(kind: Any) -> int:
    if isinstance(kind, types.Array):
        return 1 + kind.ndim
    return _FUNCTION_WORDS if isinstance(kind, types.FunctionType) else 1


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
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
        cls.numba_type = _RecordType(cls, {name: as_type(hint) for name, hint in fields.items()})

    def __init__(self, **fields: Any) -> None:
        if fields.keys() != set(self._fields):
            odd = sorted(fields.keys() ^ set(self._fields))
            raise TypeError(f"{type(self).__name__} was given too many or too few fields: {odd}")
        kind = self.numba_type
        words = np.zeros(kind.n_words, np.uint64)
        for name in self._fields:
            fields[name] = self._write(words, kind.starts[name], name, fields[name])
        vars(self).update(
            {name: fields[name] for name in self._fields}, _words=words, _address=words.ctypes.data
        )

    def _write(self, words: NDArray[np.uint64], at: int, name: str, value: Any) -> Any:
        """Put a field into its words; returns what the record holds on to."""
        kind = self.numba_type.fields[name]
        if not _fits(kind, value):
            raise TypeError(f"{type(self).__name__}.{name} must be {kind}, not {type(value)}")
        if isinstance(kind, types.Array):
            if self._roles[name] != "constant" and not value.flags.writeable:
                value = value.copy()  # memory-mapped, or shared by processes
            words[at : at + 1 + kind.ndim] = value.ctypes.data, *value.shape
        elif isinstance(kind, _RecordType):
            words[at] = value._address
        elif isinstance(kind, types.FunctionType):
            self._write_function(words, at, name, value)
        else:
            words.view(np.float64 if kind is types.float64 else np.int64)[at] = value
        return value

    def _write_function(self, words: NDArray[np.uint64], at: int, name: str, value: Any) -> None:
        try:
            function_writer(self.numba_type.fields[name])(words, at, value)
        except ValueError as error:  # numba has no address for it
            raise TypeError(
                f"{type(self).__name__}.{name} is called by pointer: compile {value} with "
                "backend.jit.pointer_kernel"
            ) from error

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


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value can be a field of this type; functions are checked where they are written."""
    if isinstance(kind, types.Array):
        is_array = isinstance(value, np.ndarray) and value.flags.c_contiguous
        return is_array and (value.dtype, value.ndim) == (_dtype_of(kind), kind.ndim)
    if isinstance(kind, _RecordType):
        return isinstance(value, kind.record)
    if isinstance(kind, types.FunctionType):
        return True
    whole = isinstance(value, int | np.integer | np.bool_)
    return whole or (kind is types.float64 and isinstance(value, float | np.floating))


@cache
def _dtype_of(kind: Any) -> np.dtype[Any]:
    return np.dtype(str(kind.dtype).replace("boolean", "bool"))


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


# ------------------------------------------------------------------ what numba is told of records


register_model(_RecordType)(models.OpaqueModel)  # an address


@typeof_impl.register(Record)
def _typeof(record: Record, context: Any) -> Any:
    return record.numba_type


@unbox(_RecordType)
def _unbox(kind: Any, record: Any, c: Any) -> Any:
    """The address that a record in Python has noted; it keeps its memory during the call."""
    number = c.pyapi.object_getattr_string(record, "_address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address, is_error=c.pyapi.c_api_error())


@infer_getattr
class _FieldTypes(AttributeTemplate):
    key = _RecordType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return kind.fields.get(name)


@lower_getattr_generic(_RecordType)
def _read_field(context: Any, builder: Any, kind: Any, record: Any, name: str) -> Any:
    """The value of a field. Arrays are views without an owner, whose references nobody counts."""
    field, start = kind.fields[name], kind.starts[name]

    def place(at: int, of: Any) -> Any:
        words = builder.bitcast(record, context.get_value_type(types.CPointer(types.uint64)))
        word = builder.gep(words, [context.get_constant(types.intp, at)])
        return builder.bitcast(word, context.get_value_type(types.CPointer(of)))

    if isinstance(field, _RecordType):
        return builder.load(place(start, types.voidptr))
    if not isinstance(field, types.Array):
        return context.unpack_value(builder, field, place(start, field))
    shape = [builder.load(place(start + 1 + k, types.intp)) for k in range(field.ndim)]
    size = context.get_constant(types.intp, _dtype_of(field).itemsize)
    strides, items = [size], shape[-1]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    for length in shape[:-1]:
        items = builder.mul(items, length)
    array = context.make_array(field)(context, builder)
    array.meminfo = context.get_constant_null(types.MemInfoPointer(types.voidptr))
    array.parent = context.get_constant_null(types.pyobject)
    array.nitems, array.itemsize = items, size
    array.data = builder.load(place(start, types.CPointer(field.dtype)))
    lengths = types.UniTuple(types.intp, field.ndim)
    array.shape = context.make_tuple(builder, lengths, shape)
    array.strides = context.make_tuple(builder, lengths, strides)
    return array._getvalue()


@intrinsic
def _put(typing: Any, words: Any, at: Any, value: Any) -> Any:
    """Write a value of any type into words, from this one on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words_type, _, value_type = signature.args
        data = context.make_array(words_type)(context, builder, arguments[0]).data
        word = builder.gep(data, [arguments[1]])
        target = builder.bitcast(word, context.get_value_type(types.CPointer(value_type)))
        context.pack_value(builder, value_type, arguments[2], target)
        return context.get_dummy_value()

    return types.none(words, at, value), codegen


@cache
def function_writer(kind: Any) -> Any:
    """A kernel that puts a function of this type into the words of a record.

    How numba represents functions as values is its own business, so this is compiled.
    """

    def write(words, at, function):
        _put(words, at, function)

    # A file of its own in the cache: one for all would load all that were ever made.
    write.__qualname__ = f"write_{sha256(str(kind).encode()).hexdigest()[:16]}"
    with cached() as cache_it:
        return njit(types.none(types.uint64[::1], types.int64, kind), cache=cache_it)(write)
