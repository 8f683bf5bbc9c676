"""The compiled core as plain Python, so that a mutant need not be compiled to be tested.

``HAMILTREE_INTERPRETED=1 pytest tests/core/moves/test_informed.py`` runs the same sources without
numba: hundreds of times slower per call, but without minutes of compilation. Meant for
``tests/mutants`` and for a debugger; sampling whole chains this way would take hours.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Self, get_type_hints

import numba
import numpy as np

BACKEND = "hamiltree.core.backend"


def install() -> None:
    """Put stand-ins for what knows numba; before hamiltree is imported."""
    if "hamiltree" in sys.modules:
        raise RuntimeError("hamiltree has been imported, and compiled, already")
    np.seterr(all="ignore")  # compiled code has infinities and NaN, and integers that wrap
    _stand_in(
        "cache",
        cached=_not_cached,
        CACHE=Path(),
        WANTED=Path(),
        LASTS=False,
        CAN_KEEP=False,
        remove_old_folders=_nothing,
    )
    _stand_in(
        "jit",
        kernel=_same,
        pointer_kernel=_same,
        row_kernel=_same,
        inlined=_same,
        never_inline=_nothing,
    )
    _stand_in(
        "units",
        unit=_nothing,
        unit_of=_same,
        all_units=list,
        missing=lambda kernels: [],
        compile_units=lambda units, say=None: 0.0,
        Unit=object,
    )
    _load_records().Record = PlainRecord  # type: ignore[attr-defined]
    threads = importlib.import_module(f"{BACKEND}.row_threads")
    threads.PartsRunner.__call__ = threads.PartsRunner._run


def _stand_in(name: str, **contents: Any) -> None:
    module = ModuleType(f"{BACKEND}.{name}")
    vars(module).update(contents)
    sys.modules[module.__name__] = module


def _load_records() -> ModuleType:
    """On its own: with its package all that declares records would be imported."""
    package = importlib.util.find_spec("hamiltree")
    assert package is not None
    assert package.submodule_search_locations is not None
    (folder,) = package.submodule_search_locations
    path = Path(folder, *BACKEND.split(".")[1:], "records.py")
    spec = importlib.util.spec_from_file_location(f"{BACKEND}.records", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


class PlainRecord:
    """A ``Record`` whose fields are attributes and no more; functions are functions of Python."""

    _fields: tuple[str, ...] = ()
    numba_type: Any

    def __init_subclass__(cls, role: str = "constant") -> None:
        records: Any = sys.modules[f"{BACKEND}.records"]
        hints = get_type_hints(cls, include_extras=True)
        cls._fields = tuple(cls.__annotations__)
        cls._roles = {name: records._role_of(hints[name], role) for name in cls._fields}
        cls.numba_type = numba.types.Opaque(cls.__name__)  # in signatures that nobody compiles

    def __init__(self, **fields: Any) -> None:
        if fields.keys() != set(self._fields):
            raise TypeError(f"{sorted(fields.keys() ^ set(self._fields))}")
        vars(self).update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"fields of a record do not change: {type(self).__name__}.{name}")

    def __iter__(self) -> Iterator[Any]:
        return iter(vars(self).values())

    def _asdict(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self._fields}

    def _replace(self, **changes: Any) -> Self:
        return type(self)(**{**self._asdict(), **changes})


@contextmanager
def _not_cached() -> Iterator[bool]:
    yield False


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _nothing(*given: Any, **named: Any) -> None:
    pass
