"""Where compiled code is kept: one folder per version of the sources, shared by all processes.

Processes must load what they run, even where it cannot be kept. LLVM optimises a function once for
itself and again inside the code of each caller, and sums over rows may come out of the second time
in another order (never out of a third: tests/core/backend/test_row_kernels.py). A process that
compiles finds the former by its name, one that loads a caller has the latter alone: a seed would
give draws that differ in their last digits.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import llvmlite.binding  # what the processor is called, which numba does not say
import numba

OLD_SECONDS = 30 * 86_400
"""A folder of other sources that was not used for so long is removed."""


def _digest() -> str:
    """Of all compiled sources, where they are, and what compiles them for which processor.

    numba looks for changes only in the file of the function itself: code compiled from a caller
    would survive a change of what it calls. A folder named after all sources cannot go stale. The
    rest is what numba asks for before it loads: whatever is marked as compiled must be loaded.
    """
    package = Path(__file__).parent.parent.parent
    processor = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = numba.config.CPU_FEATURES or llvmlite.binding.get_host_cpu_features().flatten()
    place = (numba.__version__, sys.implementation.cache_tag, processor, features, str(package))
    digest = hashlib.sha256(repr(place).encode())
    for folder in ("core", "samplers"):
        for source in sorted(package.glob(f"{folder}/**/*.py")):
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _root() -> Path:
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    return folder.absolute()  # a program may change its folder later


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


_NAME = Path("hamiltree", _digest())
WANTED = _root() / _NAME
"""Where code is kept for later processes, if that can be written to."""


def _find_root() -> Path:
    """The folder of the user, or one that this process removes when it ends."""
    if _can_write(WANTED):
        return _root()
    with suppress(OSError):
        temporary = Path(tempfile.mkdtemp(prefix="hamiltree-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary
    return _root()


ROOT = _find_root()
"""``NUMBA_CACHE_DIR`` of a process that is to use the same folder."""
CACHE = ROOT / _NAME
CAN_KEEP = _can_write(CACHE)
"""Otherwise there is not even a temporary folder, and each process compiles what it needs."""
LASTS = CAN_KEEP and CACHE == WANTED
"""Whether later processes find what this one kept."""


@contextmanager
def cached() -> Iterator[bool]:
    """Functions that are declared here are cached in our folder; whether they can be.

    numba reads the folder when a function is declared, which happens while our modules are
    imported. The setting is put back at once, for whoever else uses numba.
    """
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE)
    try:
        yield CAN_KEEP
    finally:
        numba.config.CACHE_DIR = before


def remove_old_folders() -> None:
    """Remove folders of other sources that nobody has used for a month; mark ours as used."""
    if not CAN_KEEP:
        return
    with suppress(OSError):
        os.utime(CACHE)
        for folder in CACHE.parent.iterdir():
            if folder != CACHE and time.time() - folder.stat().st_mtime > OLD_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
