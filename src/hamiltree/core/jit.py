"""The one way this package compiles: no GIL, no allocation checks in the way, cached on disk."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, inline_closurecall
from numba.core import ir as numba_ir
from numba.extending import intrinsic


class _CopySharingScopes:
    """Stands in for the module ``copy`` inside numba's inliner.

    To inline a function, numba copies its code block by block, and with each block the table of
    all variables of the function, which takes more than half the time of compiling this package.
    The table is not changed by what follows, so the copies may share it.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(copy, name)

    @staticmethod
    def deepcopy(x: Any, memo: dict[int, Any] | None = None) -> Any:
        if memo is None and isinstance(x, numba_ir.Block):
            memo = {id(x.scope): x.scope}
        return copy.deepcopy(x, memo)


if getattr(inline_closurecall, "copy", None) is copy:
    inline_closurecall.copy = _CopySharingScopes()

# Everything but "nnan" and "ninf": infinities are real values here, and NaN must be seen.
FAST = {"contract", "reassoc", "arcp", "nsz", "afn"}


def _cache_directory() -> str:
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
    return str(root / "hamiltree" / digest.hexdigest()[:16])


_CACHE = _cache_directory()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile: nogil, NumPy's division, nothing allocated, cached on disk, IEEE arithmetic.

    No fast-math here: numba keeps a copy of a function in each of its callers, optimised again,
    and which copy runs depends on what else was loaded. With IEEE semantics all copies give the
    same bits, so a seed gives the same draws whether the code was compiled just now or before.
    """
    return _compile(function, inline="never")


def inner_kernel(function: Callable[..., Any]) -> Any:
    """The same for what only compiled code calls: without the way in from Python.

    Taking apart a chain's state, a hundred arrays, is a good part of the code of a small kernel.
    Calling it from Python crashes the process.
    """
    return _compile(function, inline="never", no_cpython_wrapper=True, no_cfunc_wrapper=True)


def row_kernel(function: Callable[..., Any]) -> Any:
    """The same with vectorisable sums, for the loops over rows.

    Must be self-contained, that is call only ``inlined`` functions, and be reached through
    ``opaque``: then there is one copy of it, and its bits are as reproducible.
    """
    return _compile(function, inline="never", fastmath=FAST)


def inlined(function: Callable[..., Any]) -> Any:
    """For parts of a kernel that deserve a name; they take on the arithmetic of their caller."""
    return _compile(function, inline="always")


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _CACHE  # read when the decorator runs, then put back for others
    try:
        # _nrt=False: no reference counts, hence no allocation; the compiler refuses it
        return numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False, **options)(
            function
        )
    finally:
        numba.config.CACHE_DIR = before


@intrinsic
def float_from_bits(typingctx: Any, bits: Any) -> Any:
    """Read the 64 bits of an int64 as a float64: 2**k costs one shift."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


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


def opaque(function: Any) -> tuple[Any, Callable[..., int]]:
    """Cut a compiled function loose from its callers: (call, address_of).

    numba optimises a function's code again inside each of its callers, which for the likelihood
    costs more than compiling all the rest. ``call(address, (arguments,))`` jumps to an address
    that comes in as data; ``address_of(*arguments)`` compiles for such arguments, or loads from
    the cache, and returns that address. The address is good for this process only.
    """

    @intrinsic
    def call(typingctx: Any, address: Any, arguments: Any) -> Any:
        callee = types.Dispatcher(function).get_call_type(typingctx, tuple(arguments), {})

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(callee.return_type, callee.args)
            pointer = builder.inttoptr(args[0], kind.as_pointer())
            values = cgutils.unpack_tuple(builder, args[1])
            values = [
                context.cast(builder, value, given, wanted)
                for value, given, wanted in zip(values, arguments, callee.args, strict=True)
            ]
            status, result = convention.call_function(
                builder, pointer, callee.return_type, callee.args, values
            )
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return callee.return_type(types.int64, arguments), codegen

    def address_of(*arguments: Any) -> int:
        signature = tuple(numba.typeof(a) for a in arguments)
        function.compile(signature)
        compiled = function.overloads[signature]
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    return call, address_of
