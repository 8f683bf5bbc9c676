"""Atomic replacement of files: written under another name, flushed, then renamed."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

PathLike = str | os.PathLike[str]

_one_at_a_time = threading.RLock()


def check_writable(path: PathLike, what: str) -> Path:
    """The file to write, links followed; an ``OSError`` now rather than after hours of sampling."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot save {what} to {path}: it is a folder")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save {what} to {path}: no folder {target.parent}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot save {what} to {path}: its folder is not writable")
    return target


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A file to write, which takes the target's place at the very end if nothing went wrong.

    Whatever happens to the process or the machine, the target is the old file or the new one.
    """
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        _flush(part, os.O_RDWR)
        os.replace(part, target)
        with suppress(OSError):  # not every system can flush a folder
            _flush(target.parent, os.O_RDONLY)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def netcdf(path: PathLike, mode: Literal["r", "w"]) -> Iterator[Any]:
    """A NetCDF file; one at a time, for the library below crashes where threads meet in it."""
    import netCDF4

    with _one_at_a_time, netCDF4.Dataset(path, mode) as file:
        yield file


def remove_leftovers(target: Path) -> None:
    """Unfinished files that a killed process left beside the target."""
    for part in target.parent.glob(f".{_literal(target.name)}.????????.part"):
        part.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """For a glob pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _flush(path: Path, flags: int) -> None:
    """Wait until the disk has it."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def library_version() -> str:
    try:
        return version("hamiltree")
    except PackageNotFoundError:
        return "unknown"
