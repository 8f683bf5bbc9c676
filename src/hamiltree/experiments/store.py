"""Finished runs in one file, each written in one transaction, so that a stopped run can go on.

The key of a run is a hash of everything that its result depends on: its configuration, its data,
the version of the library and all its sources, for a list of those that decide the numbers would
be incomplete sooner or later. A run that was made by other code is made again, never mistaken for
this one's.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..datasets import Split

FILE = "runs.sqlite"
PACKAGE = Path(__file__).parent.parent

Config = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What is kept of a run."""

    values: dict[str, float]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@cache
def sources_digest(package: Path = PACKAGE) -> str:
    """Of every module of the library, read once per process (a few milliseconds)."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}:{len(source)}:".encode())
        digest.update(source)
    return digest.hexdigest()[:16]


def data_digest(split: Split) -> str:
    digest = hashlib.sha256()
    for array in (split.X, split.y, split.X_test, split.y_test):
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()[:16]


def key_of(config: Mapping[str, Any]) -> str:
    whole = {**config, "version": __version__, "sources": sources_digest()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


class Store:
    """Results by configuration."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self._database = sqlite3.connect(self.path)
        try:
            with self._database:
                self._database.execute(
                    "CREATE TABLE IF NOT EXISTS runs "
                    "(key TEXT PRIMARY KEY, config TEXT, result TEXT, arrays BLOB)"
                )
        except sqlite3.DatabaseError as error:
            raise OSError(
                f"{self.path} cannot be used ({error}): remove it, or choose another --out"
            ) from None

    def save(self, config: Config, result: Result) -> None:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **result.arrays)  # type: ignore[arg-type]
        row = (key_of(config), json.dumps(config), json.dumps(result.values), buffer.getvalue())
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", row)

    def load(self, config: Config) -> Result | None:
        """None where there is none yet."""
        query = "SELECT result, arrays FROM runs WHERE key = ?"
        row = self._database.execute(query, (key_of(config),)).fetchone()
        if row is None:
            return None
        with np.load(io.BytesIO(row[1]), allow_pickle=False) as stored:
            return Result(json.loads(row[0]), {name: stored[name] for name in stored.files})

    def keys(self) -> set[str]:
        return {key for (key,) in self._database.execute("SELECT key FROM runs")}

    def close(self) -> None:
        self._database.close()
