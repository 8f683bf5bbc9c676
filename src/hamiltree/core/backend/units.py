"""Kernels that are compiled ahead of the first call, side by side where there are two cores.

A unit is a kernel with the types of its arguments. Which units a sampler needs, it says itself; the
first time on a machine they are compiled and kept (``cache``), later they are loaded. Two other
processes compile them: they are started with the interpreter that runs us, take the slow ones
first, have a time limit, and what they leave undone is done here. The process that asks loads
them, as all later ones do: ``cache`` says why.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numba import types

from .cache import CACHE, CAN_KEEP, ROOT, remove_old_folders
from .records import as_type, function_writer

TIME_LIMIT = 600.0
"""Seconds that these processes may take."""
FEWEST_TO_SHARE = 4
"""Units for which it is worth starting two."""

Say = Callable[[int, int, str], None]
"""Told (units done, units in all, what is compiled now)."""


@dataclass(frozen=True)
class Unit:
    """A kernel and the types of its arguments."""

    name: str
    """module:kernel"""
    compile: Callable[[], object]
    seconds: float
    """About what it takes; only the order of compiling follows from it."""

    @property
    def mark(self) -> Path:
        return CACHE / "compiled" / self.name

    @property
    def is_compiled(self) -> bool:
        return self.mark.exists()

    def prepare(self) -> None:
        """Compile, or load what was compiled before."""
        self.compile()
        if CAN_KEEP:
            self.mark.parent.mkdir(exist_ok=True)
            self.mark.touch()


_units: dict[str, Unit] = {}


def unit(kernel: Any, *arguments: Any, seconds: float = 1.0) -> None:
    """Register a kernel with the types of its arguments, or with its function type.

    ``seconds``: about what it takes to compile, where that is more than one.
    """
    name = _name_of(kernel)
    if len(arguments) == 1 and isinstance(arguments[0], types.FunctionType):

        def compile() -> None:
            # with what it returns: so numba looks for it in the cache
            kernel.compile(arguments[0].signature)
            function_writer(arguments[0])
    else:
        kinds = tuple(as_type(argument) for argument in arguments)

        def compile() -> None:
            kernel.compile(kinds)

    _units[name] = Unit(name, compile, seconds)


def _name_of(kernel: Any) -> str:
    return f"{kernel.py_func.__module__}:{kernel.py_func.__name__}"


def unit_of(kernel: Any) -> Unit:
    """The unit of a registered kernel."""
    return _units[_name_of(kernel)]


def all_units() -> list[Unit]:
    """Every registered kernel of the modules that are imported."""
    return list(_units.values())


def missing(kernels: Iterable[Any]) -> list[Unit]:
    """Of these kernels, what has never been compiled on this machine."""
    return [found for found in map(unit_of, kernels) if not (CAN_KEEP and found.is_compiled)]


def compile_units(units: Sequence[Unit], say: Say = lambda *_: None) -> float:
    """Compile in other processes, one for each of two cores; returns the seconds it took."""
    begun = time.perf_counter()
    remove_old_folders()
    with tempfile.TemporaryDirectory(prefix="hamiltree-") as claims:
        share = len(units) >= FEWEST_TO_SHARE and (os.cpu_count() or 1) > 1
        order = sorted(units, key=lambda found: -found.seconds)  # so that both end together
        for helper in [_start_helper(order, claims) for _ in range(2 if share else 1)]:
            if helper is not None:
                _wait_for(helper, units, say)
    for left in units:  # all of them, where nothing can be kept or no process can be started
        if not (CAN_KEEP and left.is_compiled):
            say(_count(units) if CAN_KEEP else 0, len(units), left.name)
            left.prepare()
    return time.perf_counter() - begun


def _count(units: Sequence[Unit]) -> int:
    return sum(found.is_compiled for found in units)


def _take(units: Sequence[Unit], claims: Path) -> None:
    """Compile what nobody has claimed yet."""
    for found in units:
        if _claim(claims / found.name.replace(":", ".")):
            found.prepare()


def _claim(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _start_helper(units: Sequence[Unit], claims: str) -> subprocess.Popen[str] | None:
    """A process that compiles, unless nothing could be kept or there is no interpreter to start."""
    frozen = getattr(sys, "frozen", False) or not sys.executable
    if not CAN_KEEP or frozen:
        return None
    return subprocess.Popen(
        [sys.executable, "-m", __name__, claims, *(found.name for found in units)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "NUMBA_CACHE_DIR": str(ROOT),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for(helper: subprocess.Popen[str], units: Sequence[Unit], say: Say) -> None:
    begun = time.perf_counter()
    try:
        while helper.poll() is None and time.perf_counter() - begun < TIME_LIMIT:
            say(_count(units), len(units), "")
            time.sleep(0.1)
    finally:
        if helper.poll() is None:
            helper.kill()
        _, errors = helper.communicate()
    if helper.returncode != 0:
        last = (errors.strip().splitlines() or ["no message"])[-1]
        print(
            f"hamiltree: a compiling process failed ({last}); its part is compiled here",
            file=sys.stderr,
        )


def main(claims: str, names: Sequence[str]) -> None:
    """What such a process does."""
    for folder in ("hamiltree.core", "hamiltree.samplers"):
        package = importlib.import_module(folder)
        for module in pkgutil.walk_packages(package.__path__, f"{folder}."):
            importlib.import_module(module.name)  # they register their kernels
    _take([_units[name] for name in names], Path(claims))


if __name__ == "__main__":
    # The module of this name, not the one that runs as __main__, has the list of units.
    importlib.import_module("hamiltree.core.backend.units").main(sys.argv[1], sys.argv[2:])
