"""Records passed by reference: one word, instead of all that is in them.

numba passes a named tuple to a function as the sum of its parts: seven words for each array,
hundreds for what a scan needs, copied from stack to stack at every call. On small data a good part
of a sweep was nothing else. Here a record is stored once, and who gets a reference to it reads what
it uses, by the same names: ``work.rows`` works on both.

What lies behind a reference never changes while there is one, although the arrays do that it names:
so LLVM may read it whenever it likes, and once.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model

_BYTES = ir.IntType(8).as_pointer()
_offsets: dict[tuple[str, int], int] = {}


class Reference(types.Type):
    """To a named tuple, on the stack of a function that has not returned yet."""

    def __init__(self, record: Any) -> None:
        if not isinstance(record, types.BaseNamedTuple):
            raise TypeError(f"only named tuples have references, not {record}")
        if any(isinstance(field, Reference) for field in record):
            raise TypeError(f"a reference to references: {record}")
        self.record = record
        super().__init__(name=f"reference({record})")

    @property
    def key(self) -> Any:
        """What makes two of them equal: a name does not tell fields, but the record does."""
        return self.record


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _BYTES)


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        if name not in reference.record.fields:
            return None
        field = reference.record[reference.record.fields.index(name)]
        return Reference(field) if isinstance(field, types.BaseNamedTuple) else field


@lower_getattr_generic(Reference)
def _read_field(context: Any, builder: Any, reference: Any, value: Any, name: str) -> Any:
    k = reference.record.fields.index(name)
    field = reference.record[k]
    offset = ir.IntType(64)(_offset(context, reference.record, k))
    place = builder.gep(value, [offset], inbounds=True)
    if isinstance(field, types.BaseNamedTuple):
        return place
    return _read(context, builder, field, place)


def _offset(context: Any, record: Any, k: int) -> int:
    key = (record.name, k)
    if key not in _offsets:
        layout = context.get_data_type(record)
        if isinstance(layout, ir.ArrayType):  # all fields alike
            _offsets[key] = k * layout.element.get_abi_size(context.target_data)
        else:
            _offsets[key] = layout.get_element_offset(context.target_data, k)
    return _offsets[key]


def _read(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    block = builder.block
    before = len(block.instructions)
    typed = builder.bitcast(place, context.get_data_type(kind).as_pointer())
    value = context.unpack_value(builder, kind, typed)
    nothing = builder.module.add_metadata([])
    for instruction in block.instructions[before:]:
        if instruction.opname == "load":
            instruction.set_metadata("invariant.load", nothing)
    return value


def read_record(context: Any, builder: Any, reference: Any, place: Any) -> Any:
    """All of it, as numba has it."""
    return _read(context, builder, reference.record, place)


def store_record(context: Any, builder: Any, record: Any, value: Any) -> Any:
    """Store a named tuple until the function at hand returns; the reference."""
    place = cgutils.alloca_once(builder, context.get_data_type(record))
    data = context.data_model_manager.lookup(record).as_data(builder, value)
    _store(builder, data, place)
    # An empty instruction hides that this is the place that was just written: what is read
    # through the reference counts as unchanging, and must not be read before.
    return builder.asm(
        ir.FunctionType(_BYTES, [_BYTES]),
        "",
        "=r,0,~{memory}",
        [builder.bitcast(place, _BYTES)],
        side_effect=True,
    )


def _store(builder: Any, value: Any, place: Any) -> None:
    if isinstance(value.type, ir.BaseStructType | ir.ArrayType):
        for k in range(len(value.type)):
            part = cgutils.gep_inbounds(builder, place, 0, k)
            _store(builder, builder.extract_value(value, k), part)
    else:
        builder.store(value, place)


@intrinsic
def refer(typingctx: Any, record: Any) -> Any:
    """A reference to a record, for the functions that are called from here.

    Good until the function returns that stored the record, so not to be returned itself.
    """
    if isinstance(record, Reference):
        return record(record), lambda context, builder, signature, args: args[0]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return store_record(context, builder, record, args[0])

    return Reference(record)(record), codegen


@intrinsic
def at_hand(typingctx: Any, record: Any) -> Any:
    """The record behind a reference, for loops that go to it again and again."""
    if not isinstance(record, Reference):
        return record(record), lambda context, builder, signature, args: args[0]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return read_record(context, builder, record, args[0])

    return record.record(record), codegen
