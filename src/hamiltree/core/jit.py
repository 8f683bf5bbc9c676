"""The one way this package compiles: no GIL, no allocation checks in the way, cached on disk."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .compiling import INLINED, AsAWhole, ForCallers
from .references import Reference, read_record, store_record

# Everything but "nnan" and "ninf": infinities are real values here, and NaN must be seen.
FAST = {"contract", "reassoc", "arcp", "nsz", "afn"}


def _cache_directory() -> Path:
    """A directory of compiled code for exactly these sources.

    numba looks for changes only in the file of the function itself: code compiled from a caller
    would survive a change of what it calls. A directory named after all compiled sources cannot
    go stale.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for source in sorted(package.glob("core/*.py")) + sorted(package.glob("samplers/*.py")):
        digest.update(source.read_bytes())
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base else Path.home() / ".cache"
    return root / "hamiltree" / digest.hexdigest()[:16]


def _can_write(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)


CACHE = _cache_directory()
CAN_KEEP = _can_write(CACHE)
"""Otherwise nothing is filed, and each process compiles what it needs. numba would look for other
places, where code of other sources may lie."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile: nogil, NumPy's division, nothing allocated, cached on disk, IEEE arithmetic.

    No fast-math here: a function is optimised together with its caller, and with fast-math which
    bits it gives would depend on the caller. With IEEE semantics they are the same everywhere.

    Compiled twice at most, each when asked for: for callers in compiled code, as a part of theirs,
    and for callers in Python.
    """
    outer = _compile(function, **EXACT, pipeline_class=AsAWhole)
    inner = _compile(function, **EXACT, pipeline_class=ForCallers, cache=False, **NO_WAY_IN)
    outer.get_call_template = inner.get_call_template
    outer.get_overload = inner.get_overload
    return outer


def row_kernel(function: Callable[..., Any]) -> Any:
    """The same with vectorisable sums, for the loops over rows.

    Must be self-contained, that is call only ``inlined`` functions, and be reached through
    ``opaque``: then there is one copy of it, and its bits are as reproducible.
    """
    return _compile(function, inline="never", fastmath=FAST)


def inlined(function: Callable[..., Any]) -> Any:
    """For parts of a kernel that deserve a name; they take on the arithmetic of their caller."""
    INLINED.add(function)
    return _compile(function, inline="always")


EXACT: dict[str, Any] = {"inline": "never", "fastmath": False}
"""Said, because numba lets a function that does not say so take after whoever calls it first."""
NO_WAY_IN: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Taking apart a chain's state, a hundred arrays, is a good part of the code of a small kernel."""


def _compile(function: Callable[..., Any], *, cache: bool = True, **options: Any) -> Any:
    before = numba.config.CACHE_DIR
    # Read when the decorator runs, then put back for others. numba files code under the name of
    # its function alone: what has no way in from Python must not be found by who looks for one.
    numba.config.CACHE_DIR = str(CACHE / "inside" if "no_cpython_wrapper" in options else CACHE)
    options["cache"] = cache and CAN_KEEP
    try:
        # _nrt=False: no reference counts, hence no allocation; the compiler refuses it
        return numba.njit(nogil=True, error_model="numpy", _nrt=False, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


@intrinsic
def float_from_bits(typingctx: Any, bits: Any) -> Any:
    """Read the 64 bits of an int64 as a float64: 2**k costs one shift."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def count_ones(typingctx: Any, bits: Any) -> Any:
    """How many bits of a uint64 are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def first_one(typingctx: Any, bits: Any) -> Any:
    """Place of the lowest bit of a uint64 that is set; there must be one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), codegen


@intrinsic
def never_inline(typingctx: Any) -> Any:
    """Called first in a function, keeps LLVM from copying it into every caller.

    For the large kernels: each copy would be optimised again, and compiling the sampler would take
    minutes.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def replacing(*names: str) -> Any:
    """``replace(record, values)``: a named tuple with other values of these fields.

    Of one behind a reference, too; what comes back is the tuple itself.
    """

    @intrinsic
    def replace(typingctx: Any, record: Any, values: Any) -> Any:
        given, referred = record, isinstance(record, Reference)
        if referred:
            record = record.record
        places = [record.fields.index(name) for name in names]
        for place, kind in zip(places, values, strict=True):
            if record[place] != kind:
                raise TypeError(f"{record.fields[place]} is {record[place]}, not {kind}")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            changed = read_record(context, builder, given, args[0]) if referred else args[0]
            for place, value in zip(places, cgutils.unpack_tuple(builder, args[1]), strict=True):
                changed = builder.insert_value(changed, value, place)
            return changed

        return record(given, values), codegen

    return replace


_left_out: set[str] = set()


def compile_side_by_side(ours: Callable[[], object], theirs: str, names: set[str]) -> None:
    """Compile on a machine that never did, with the help of a second process.

    ``theirs``, a program, compiles the kernels of these names, which are cut loose (``opaque``),
    and files them; ``ours`` meets all others here, and gets addresses 0 for those. Where code has
    been filed before, or cannot be, or there is one core, nothing is done: who needs a kernel
    compiles it then.
    """
    done = CACHE / "compiled"
    if not CAN_KEEP or done.exists() or (os.cpu_count() or 1) < 2 or not sys.executable:
        return
    path = os.pathsep.join(sys.path)
    quiet = subprocess.DEVNULL
    helper = subprocess.Popen(
        [sys.executable, "-c", theirs],
        env={**os.environ, "PYTHONPATH": path},
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
    )
    try:
        with leaving_out(names):
            ours()
        helper.wait()
        done.touch()
    finally:
        helper.kill()
        helper.wait()


@contextmanager
def leaving_out(names: set[str]) -> Iterator[None]:
    """Kernels of these names get address 0, and are not compiled."""
    _left_out.update(names)
    try:
        yield
    finally:
        _left_out.difference_update(names)


def plain_types(given: Any) -> list[Any]:
    """Types of arguments as a function behind an address has them."""
    return [_plain_type(types.unliteral(kind)) for kind in given]


def _plain_type(kind: Any) -> Any:
    if isinstance(kind, types.Integer):
        return types.int64
    return Reference(kind) if isinstance(kind, types.BaseNamedTuple) else kind


def _as_wanted(context: Any, builder: Any, value: Any, kind: Any, wanted: Any) -> Any:
    if isinstance(wanted, Reference) and kind != wanted:
        return store_record(context, builder, kind, value)
    return context.cast(builder, value, kind, wanted)


def call_at(
    context: Any, builder: Any, address: Any, callee: Any, given: Any, values: list[Any]
) -> tuple[Any, Any]:
    """Code that calls a compiled function of this signature at an address: (status, result)."""
    convention = context.call_conv
    kind = convention.get_function_type(callee.return_type, callee.args)
    pointer = builder.inttoptr(address, kind.as_pointer())
    values = [
        _as_wanted(context, builder, value, its, wanted)
        for value, its, wanted in zip(values, given, callee.args, strict=True)
    ]
    status, result = convention.call_function(
        builder, pointer, callee.return_type, callee.args, values
    )
    return status, result


def opaque(function: Any, returns: Any = None) -> tuple[Any, Callable[..., int]]:
    """Cut a compiled function loose from its callers: (call, address_of).

    Otherwise its code is optimised again inside each of its callers, which for the likelihood
    costs more than compiling all the rest. ``call(address, (arguments,))`` jumps to an address
    that comes in as data; ``address_of(*arguments)`` compiles for such arguments, or loads from
    the cache, and returns that address. The address is good for this process only.

    Where its type is given, by ``returns``, the function is not compiled for the sake of its
    callers: only where ``address_of`` is asked for. Among the arguments, integers are then int64,
    and named tuples go by reference.
    """
    fast = function.targetoptions.get("fastmath")
    how = {"inline": "never", "fastmath": fast} if fast else {**EXACT, "pipeline_class": AsAWhole}
    function = _compile(function.py_func, **how, **NO_WAY_IN)

    @intrinsic
    def call(typingctx: Any, address: Any, arguments: Any) -> Any:
        if returns is None:
            callee = types.Dispatcher(function).get_call_type(typingctx, tuple(arguments), {})
        else:
            callee = returns(*plain_types(arguments))

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = cgutils.unpack_tuple(builder, args[1])
            status, result = call_at(context, builder, args[0], callee, arguments, values)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return result

        return callee.return_type(types.int64, arguments), codegen

    def address_of(*arguments: Any) -> int:
        if function.py_func.__name__ in _left_out:
            return 0
        signature = tuple(numba.typeof(a) for a in arguments)
        if returns is not None:
            signature = tuple(plain_types(signature))
        function.compile(signature)
        compiled = function.overloads[signature]
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    return call, address_of
