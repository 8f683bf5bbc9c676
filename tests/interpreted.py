"""The compiled core as plain Python, so that a mutant need not be compiled to be tested.

``HAMILTREE_INTERPRETED=1 pytest tests/test_informed.py`` runs the same sources without numba:
hundreds of times slower a call, but there in a second. Meant for ``tests/mutations.py`` and for a
debugger; sampling whole chains this way would take hours.
"""

from __future__ import annotations

import contextlib
import importlib
import pathlib
import struct
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def install() -> None:
    """Put stand-ins for what knows numba; before hamiltree is imported."""
    if "hamiltree" in sys.modules:
        raise RuntimeError("hamiltree has been imported, and compiled, already")
    stand_in = types.ModuleType("hamiltree.core.jit")
    vars(stand_in).update(
        kernel=_as_it_is,
        row_kernel=_as_it_is,
        inlined=_as_it_is,
        never_inline=lambda: None,
        float_from_bits=lambda bits: struct.unpack("d", struct.pack("q", int(bits)))[0],
        opaque=_direct,
        replacing=_replacing,
        count_ones=lambda bits: int(bits).bit_count(),
        first_one=lambda bits: (int(bits) & -int(bits)).bit_length() - 1,
        CACHE=pathlib.Path(),
        CAN_KEEP=True,
        compile_side_by_side=lambda *_: None,
        leaving_out=lambda names: contextlib.nullcontext(),
    )
    sys.modules["hamiltree.core.jit"] = stand_in
    references = types.ModuleType("hamiltree.core.references")
    vars(references).update(refer=_as_it_is, at_hand=_as_it_is)
    sys.modules["hamiltree.core.references"] = references
    crew = types.ModuleType("hamiltree.core.crew")
    vars(crew).update(
        PARCEL=0,
        shared=_one_by_one,
        make_crew=lambda: np.zeros(1, np.int64),
        helpers=lambda crew, n: contextlib.nullcontext(),
    )
    sys.modules["hamiltree.core.crew"] = crew
    importlib.import_module("hamiltree.core.routing")  # and with it all the others
    for name, module in list(sys.modules.items()):
        for intrinsic, plain in (("window", _window), ("column_block", _column_block)):
            if name.startswith("hamiltree.") and hasattr(module, intrinsic):
                setattr(module, intrinsic, plain)


def _window(buffer: Any, start: int, n: int) -> Any:
    return buffer[start : start + n]


def _column_block(columns: Any, f: int, start: int, stop: int, spare: Any) -> Any:
    return columns[f, start:stop].astype(spare.dtype, copy=False)


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _replacing(*names: str) -> Callable[..., Any]:
    return lambda record, values: record._replace(**dict(zip(names, values, strict=True)))


def _one_by_one(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., int]]:
    def run(crew: Any, n: int, address: int, arguments: tuple[Any, ...]) -> None:
        for part in range(n):
            function(*arguments, part, 0)

    return run, lambda *arguments: 0


def _direct(
    function: Callable[..., Any], returns: Any = None
) -> tuple[Callable[..., Any], Callable[..., int]]:
    def call(address: int, arguments: tuple[Any, ...]) -> Any:
        return function(*arguments)

    def address_of(*arguments: Any) -> int:
        return 0

    return call, address_of
