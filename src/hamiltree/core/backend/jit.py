"""The ways this package compiles, all by numba's documented options: no GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import intrinsic

from .cache import cached

FAST = {"contract", "reassoc", "arcp", "nsz", "afn"}
"""Arithmetic of the loops over rows. Everything but "nnan" and "ninf": infinities are real values
here, and NaN must be seen."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile with IEEE arithmetic: the same bits whatever the caller.

    ``fastmath=False`` is said, because numba lets a function that does not say so take after
    whoever calls it first. What numba needs of functions that are values costs a fifteenth of the
    time to compile, so only ``pointer_kernel`` has it.
    """
    return _compile(function, fastmath=False, no_cfunc_wrapper=True)


def pointer_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that is also a value: a field of a record, by a ``function_type``."""
    return _compile(function, fastmath=False)


def row_kernel(function: Callable[..., Any]) -> Any:
    """The same with sums that the compiler may reorder, for loops over the rows of a block.

    Such a function is one loop, begins with ``never_inline()`` and calls nothing but ``inlined``
    functions: then it is optimised on its own, and gives the same bits whoever calls it.
    """
    return _compile(function, fastmath=FAST, no_cfunc_wrapper=True)


@intrinsic
def never_inline(typingctx: Any) -> Any:
    """Called first in a function, keeps LLVM from copying it into its callers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), codegen


def inlined(function: Callable[..., Any]) -> Any:
    """For parts of a kernel that deserve a name but are called from one or two places.

    They are copied into the caller before it is compiled, and take on its arithmetic. For functions
    that many call, ``kernel`` is faster to compile.
    """
    return _compile(function, inline="always")


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    with cached() as cache:
        return njit(nogil=True, error_model="numpy", cache=cache, **options)(function)
