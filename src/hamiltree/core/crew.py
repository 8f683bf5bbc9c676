"""Threads that help a chain with its rows, where there are more threads than chains.

Work over all rows is a task in parts, chosen by the data alone. Whoever is free takes the next
part: the chain's own thread, and those of its crew, which sit in compiled code and look into the
memory that they share. Sums go into a slot of their part and are added in the order of the parts,
also by a chain without a crew, so that draws do not depend on the number of threads.

One word says which task it is, how many parts it has and which is next. It is changed only by
comparing it first: who gets a part gets it of the task at hand, and the task stays in place until
all its parts are done. A helper that comes late, or never, finds nothing left to do.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from .jit import call_at, inlined, kernel, never_inline, opaque, plain_types

# Words of a crew. Those that several threads write at a time have 128 bytes each, a cache line or
# two, so that they do not take them from one another.
NEXT, DONE, LEAVE, CODE, GIVEN, HELPERS, YIELD, PARCEL = 0, 16, 32, 48, 49, 50, 51, 52
"""NEXT: number of the task, its parts, and the next one, see ``word_of``. DONE: parts that are
done. LEAVE: not 0 where helpers are to end. CODE, GIVEN: addresses of the task and its arguments.
HELPERS: how many threads there are beside the chain's. YIELD: address of ``sched_yield``, or 0.
PARCEL: address of the likelihood's task."""
WORDS = 64
PARTS_BITS = 20
MOST_PARTS = (1 << PARTS_BITS) - 1
SPINS = 10_000
"""Looks, a tenth of a millisecond or so in all, before a helper without work takes a nap."""
SPINS_A_YIELD = 32
NAPS = 50e-6, 500e-6
"""Seconds: the first, and the longest; each is twice the one before."""


def make_crew() -> NDArray[np.int64]:
    """What a chain and its helpers share; of nobody but the chain, until ``helpers`` are there."""
    crew = np.zeros(WORDS, np.int64)
    if os.name == "posix":
        crew[YIELD] = ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    return crew


# ------------------------------------------------------------------ memory that threads share


def _word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    crew = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(crew.data, [args[1]])


@intrinsic
def look(typingctx: Any, crew: Any, place: Any) -> Any:
    """Read a word, and with it all that was written before it was."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(context, builder, signature, args), "acquire", 8)

    return types.int64(crew, types.int64), codegen


@intrinsic
def put(typingctx: Any, crew: Any, place: Any, value: Any) -> Any:
    """Write a word, after all that was written before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _word(context, builder, signature, args)
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.none(crew, types.int64, types.int64), codegen


@intrinsic
def swap(typingctx: Any, crew: Any, place: Any, old: Any, new: Any) -> Any:
    """Write a word if it still is what it was; whether it was."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _word(context, builder, signature, args)
        found = builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(crew, types.int64, types.int64, types.int64), codegen


@intrinsic
def add_one(typingctx: Any, crew: Any, place: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _word(context, builder, signature, args)
        return builder.atomic_rmw("add", place, ir.IntType(64)(1), "acq_rel")

    return types.int64(crew, types.int64), codegen


@intrinsic
def jump(typingctx: Any, address: Any, given: Any, part: Any, who: Any) -> Any:
    """Do a part of a task that ``shared`` has prepared."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.none(*[types.int64] * 4), codegen


@intrinsic
def call_plainly(typingctx: Any, address: Any) -> Any:
    """A function of the C library, without arguments, that returns an int."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.none(types.int64), codegen


# ------------------------------------------------------------------ tasks


@inlined
def word_of(task, parts, following):
    return (((task & 0x7FFFFF) << PARTS_BITS | parts) << PARTS_BITS) | following


@inlined
def take_parts(crew, who):
    """Do parts of the task at hand until none is left; how many."""
    done = 0
    while True:
        word = look(crew, NEXT)
        part = word & MOST_PARTS
        if part >= (word >> PARTS_BITS) & MOST_PARTS:
            return done
        if swap(crew, NEXT, word, word + 1):
            jump(crew[CODE], crew[GIVEN], part, who)
            add_one(crew, DONE)
            done += 1


@inlined
def give_way(crew, spins):
    """Now and then, let others have the processor."""
    if spins % SPINS_A_YIELD == 0 and crew[YIELD] != 0:
        call_plainly(crew[YIELD])


@kernel
def in_parts(crew, n, code, given):
    """Do all parts of a task, 0 to n - 1; who is free helps."""
    never_inline()
    if crew[HELPERS] == 0 or n == 1 or n > MOST_PARTS:
        for part in range(n):
            jump(code, given, part, 0)
        return
    crew[CODE], crew[GIVEN] = code, given
    put(crew, DONE, 0)
    task = look(crew, NEXT) >> (2 * PARTS_BITS)
    put(crew, NEXT, word_of(task + 1, n, 0))
    take_parts(crew, 0)
    spins = 0
    while look(crew, DONE) < n:
        spins += 1
        give_way(crew, spins)


@kernel
def help_out(crew, who, patience):
    """Take parts until there was none for so many looks; how many, or -1 where it is time to go."""
    done, idle = 0, 0
    while idle < patience:
        if look(crew, LEAVE) != 0:
            return -1
        taken = take_parts(crew, who)
        done += taken
        idle = 0 if taken > 0 else idle + 1
        give_way(crew, idle)
    return done


def shared(function: Any) -> tuple[Any, Callable[..., int]]:
    """Cut a task loose from those who set it: (run, address_of), see ``jit.opaque``.

    ``run(crew, n, address, (arguments,))`` calls the function n times, with these arguments, the
    number of the part, and that of the thread, 0 for the chain's own. It returns nothing and must
    not raise, and what it writes is the part's or the thread's alone.
    """
    _, address_of = opaque(function, returns=types.none)

    @intrinsic
    def prepare(typingctx: Any, address: Any, arguments: Any) -> Any:
        """Put arguments where other threads find them: (code that calls with them, where)."""
        given = [*arguments, types.int64, types.int64]
        callee = types.none(*plain_types(given))

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            kept = ir.LiteralStructType([word, args[1].type])
            place = cgutils.alloca_once(builder, kept)  # until the function at hand returns
            for k, value in enumerate(args):
                builder.store(value, cgutils.gep_inbounds(builder, place, 0, k))
            kind = ir.FunctionType(ir.VoidType(), [word] * 3)
            name = builder.module.get_unique_name(f"part_of_{function.py_func.__name__}")
            code = ir.Function(builder.module, kind, name)
            code.linkage = "internal"
            inside = ir.IRBuilder(code.append_basic_block())
            where, part, who = code.args
            found = inside.inttoptr(where, kept.as_pointer())
            to, values = (inside.load(cgutils.gep_inbounds(inside, found, 0, k)) for k in range(2))
            values = [*cgutils.unpack_tuple(inside, values), part, who]
            call_at(context, inside, to, callee, given, values)
            inside.ret_void()
            pair = [builder.ptrtoint(code, word), builder.ptrtoint(place, word)]
            return context.make_tuple(builder, signature.return_type, pair)

        return types.UniTuple(types.int64, 2)(types.int64, arguments), codegen

    @inlined
    def run(crew, n, address, arguments):
        code, given = prepare(address, arguments)
        in_parts(crew, n, code, given)

    return run, address_of


# ------------------------------------------------------------------ the threads


@contextmanager
def helpers(crew: NDArray[np.int64], n: int) -> Iterator[None]:
    """So many threads help whoever shares tasks by way of ``crew``, until the block is left."""
    threads = [
        threading.Thread(target=_help, args=(crew, who), name=f"hamiltree-rows-{who}", daemon=True)
        for who in range(1, n + 1)
    ]
    help_out(crew, 0, 0)  # compiles, or loads what was compiled before
    crew[LEAVE] = 0
    crew[HELPERS] = n
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        crew[LEAVE] = 1
        crew[HELPERS] = 0
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _help(crew: NDArray[np.int64], who: int) -> None:
    patience, nap = SPINS, NAPS[0]
    while (done := help_out(crew, who, patience)) >= 0:
        # between naps a glance, until there is work again
        patience, nap = (SPINS, NAPS[0]) if done else (1, min(2 * nap, NAPS[1]))
        time.sleep(nap)
