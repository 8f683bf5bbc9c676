"""Where compiled code is kept: one folder per version of the sources, shared by all processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numba

OLD_SECONDS = 30 * 86_400
"""A folder of other sources that was not used for so long is removed."""


def _digest() -> str:
    """Of all compiled sources, and of what compiles them.

    numba looks for changes only in the file of the function itself: code compiled from a caller
    would survive a change of what it calls. A folder named after all sources cannot go stale.
    """
    package = Path(__file__).parent.parent.parent
    digest = hashlib.sha256(f"{numba.__version__}".encode())
    for folder in ("core", "samplers"):
        for source in sorted(package.glob(f"{folder}/**/*.py")):
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _root() -> Path:
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    return folder.absolute() / "hamiltree"  # a program may change its folder later


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


CACHE = _root() / _digest()
CAN_KEEP = _can_write(CACHE)
"""Otherwise nothing is kept, and each process compiles what it needs."""


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
