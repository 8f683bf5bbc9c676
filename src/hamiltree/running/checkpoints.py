"""A run that can go on: where its chains stand and what they drew, in a file or in memory.

The file is NetCDF without pickle: one group per chain, with its state and its draws as plain
arrays; everything else is one JSON text. A digest of it all finds what a damaged disk has changed.
It is written at the end of a batch of iterations and replaced at the very end, so it is the last
complete one at any moment, and a killed run loses the time since then and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.soft.data import blocks_of
from ..core.tree.kinds import coded_kinds
from ..core.tree.record import Piece
from ..methods.base import Configuration
from ..samplers.chain_state import State
from ..samplers.common import Problem
from ..utils.files import (
    PathLike,
    check_writable,
    library_version,
    netcdf,
    remove_leftovers,
    replacing,
)
from ..utils.json_text import plain

FORMAT = 4
"""Raised by one whenever the layout changes. 2: values of the method alone, and shared ones. 3:
sets of levels. 4: "configuration", no longer "settings"."""
MAX_SHARE = 0.01
"""Writing takes at most this share of a run: many draws are written less often."""
FAILURES = (OSError, RuntimeError)
"""What a full or vanished disk makes the libraries below raise."""

Identity = dict[str, Any]
"""All that the draws of a run depend on, as JSON has it; see ``identify``."""


@dataclass(frozen=True)
class Snapshot:
    """All that a run needs to go on as if it had never stopped, but its data and configuration."""

    identity: Identity
    states: Sequence[State]
    """Of each chain."""
    done: Sequence[int]
    """Iterations of each chain."""
    draws: Sequence[Piece | None]
    """Of each chain; None before the first."""
    seconds: float
    """The run took so far."""
    replicas: int = 1
    """Of each chain, where replicas="auto" made them necessary."""
    taken_over_at: int = 0
    """Iterations of each chain before that."""
    why_replicas: str = ""
    replica_warmup: int = 0
    """Iterations of warm-up after it; 0 in files of before 0.2.0: those of the run."""


class Checkpoints:
    """Keeps a run: in a file while it goes on, where one is asked for, or at its end in memory.

    Parameters
    ----------
    path : of the file, or None for none
    seconds : between two checkpoints, more where writing takes long
    held : a run that ended earlier, to go on from
    hold : whether to keep the end of this one in memory; one that was interrupted is kept anyway
    """

    def __init__(
        self,
        path: PathLike | None = None,
        seconds: float = 60.0,
        held: Snapshot | None = None,
        *,
        hold: bool = False,
    ) -> None:
        self.target = None if path is None else check_writable(path, "the checkpoint")
        self.path = path
        self.seconds = seconds
        self.held = held
        self.failure: str | None = None
        """Why the last attempt to write failed; None where the file is up to date."""
        self._hold = hold
        self._last = time.perf_counter()
        self._cost = 0.0
        self._written: list[int] = []
        """Iterations of each chain in the file."""
        self._found: Snapshot | None = None
        if self.target is not None:
            remove_leftovers(self.target)
            if self.target.exists():
                self._found = read(self.target)

    @property
    def seed(self) -> int | None:
        """Of the run to go on from."""
        found = self._found or self.held
        return None if found is None else int(found.identity["random_state"])

    def resume(self, identity: Callable[[], Identity]) -> Snapshot | None:
        """The run to go on from, if there is one; refuses another's."""
        found = self._found or self.held
        if found is None:
            return None
        if found is self._found:
            self._written = list(found.done)
            whose = f"the checkpoint {self.path} belongs to another run"
            advice = (
                "To continue it, call fit as it was called then; to start anew, delete the file "
                "or name another"
            )
        else:
            whose = "warm_start=True continues the chains of the last fit, which was another"
            advice = (
                "To continue, call fit as it was called then, except for a larger n_draws; to "
                "start again, set warm_start=False"
            )
        if different := differences(found.identity, identity()):
            raise ValueError(f"{whose}: {'; '.join(different)}. {advice}")
        return found

    def begin(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write the first checkpoint; here alone a failure is an error, before any work is lost."""
        if self.target is not None and self._found is None:
            try:
                self._write(snapshot)
            except FAILURES as error:
                raise OSError(self._words(error)) from error
        self._found = self.held = None  # its draws are the run's now

    def is_time(self) -> bool:
        """Whether a checkpoint should be written now."""
        wait = max(self.seconds, self._cost / MAX_SHARE)
        return self.target is not None and time.perf_counter() - self._last >= wait

    def look(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write a checkpoint if it is time to."""
        if self.is_time():
            self._try(snapshot)

    def end(self, snapshot: Callable[[], Snapshot], *, interrupted: bool) -> None:
        """Keep where the run ended, if it should be kept."""
        if self.target is None and not (self._hold or interrupted):
            return
        last = snapshot()
        if self._hold or interrupted:
            self.held = last
        if self.target is not None and list(last.done) != self._written:
            self._try(lambda: last)

    def _try(self, snapshot: Callable[[], Snapshot]) -> None:
        """A checkpoint that cannot be written is not worth a run."""
        known = self.failure is not None
        try:
            self._write(snapshot)
        except FAILURES as error:
            self.failure = self._words(error)
            if not known:
                print(
                    f"hamiltree: {self.failure}. The run continues and tries again; the file is "
                    "unchanged.",
                    file=sys.stderr,
                    flush=True,
                )
        else:
            self.failure = None

    def _write(self, snapshot: Callable[[], Snapshot]) -> None:
        assert self.target is not None
        begun = time.perf_counter()
        try:
            taken = snapshot()
            write(self.target, taken)
            self._written = list(taken.done)
        finally:
            self._last = time.perf_counter()
            self._cost = self._last - begun

    def _words(self, error: Exception) -> str:
        """What went wrong; the libraries do not say that a disk is full."""
        assert self.target is not None
        text = f"cannot write the checkpoint {self.path}: {error}"
        with suppress(OSError):
            text += f" ({shutil.disk_usage(self.target.parent).free / 1e6:,.1f} MB free there)"
        return text


# ------------------------------------------------------------------ whose run it is


def identify(
    problem: Problem,
    configuration: Configuration[Any],
    *,
    n_chains: int,
    n_warmup: int,
    n_particles: int,
    seed: int,
) -> Identity:
    """All that the draws depend on; the number of draws only where it is one of these things."""
    identity = {
        "hamiltree": library_version(),
        "rows": problem.columns.shape[1],
        "columns": problem.columns.shape[0],
        "n_classes": problem.n_classes,
        "X": _digest(block for _, block in blocks_of(problem.columns)),
        "y": _digest([problem.y]),
        "n_chains": n_chains,
        "n_warmup": n_warmup,
        "random_state": seed,
        "configuration": configuration.to_dict(),
    }
    kinds = coded_kinds(problem.kinds)
    if kinds is not None:
        identity["kinds"] = kinds.tolist()
    if problem.weights is not None:
        identity["sample_weight"] = _digest([problem.weights])
    if configuration.method.makes_particles:
        identity["n_draws"] = n_particles
    found: Identity = json.loads(json.dumps(identity, default=plain))
    return found


def _digest(parts: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """In words, what differs between two identities; empty where nothing does."""
    words = {
        "hamiltree": "the version of hamiltree",
        "rows": "the number of rows",
        "columns": "the number of columns that are not constant",
        "n_classes": "the number of classes",
        "random_state": "the seed that random_state gives",
    }
    found = [
        f"{words.get(name, name)} was {there.get(name)!r} and is {here.get(name)!r}"
        for name in here
        if name not in ("X", "y", "configuration") and there.get(name) != here[name]
    ]
    shapes = ("rows", "columns", "n_classes")
    if all(there.get(name) == here[name] for name in shapes):
        found += [f"{name} has other values" for name in ("X", "y") if there[name] != here[name]]
    before, now = there["configuration"], here["configuration"]
    if before["method"] != now["method"]:  # then so are its parameters
        return [*found, f"method was {before['method']!r} and is {now['method']!r}"]
    found += [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    return found


# ------------------------------------------------------------------ the file


def write(target: Path, snapshot: Snapshot) -> None:
    """Write a file that ``read`` understands in the place of what is there."""
    digest = hashlib.blake2b(digest_size=16)
    special: dict[str, Any] = {}
    with replacing(target) as part, netcdf(part, "w") as file:
        file.title = "hamiltree checkpoint"
        file.hamiltree_checkpoint = FORMAT
        file.hamiltree_version = snapshot.identity["hamiltree"]
        for number, (state, draws) in enumerate(zip(snapshot.states, snapshot.draws, strict=True)):
            made = {} if draws is None else draws._asdict()
            for place, arrays in (("state", state), ("draws", made)):
                group = file.createGroup(f"chain_{number}/{place}")
                for name, array in sorted(arrays.items()):
                    if array.size == 0 or array.dtype == bool:
                        shape = list(array.shape)
                        special[f"chain_{number}/{place}/{name}"] = [array.dtype.str, shape]
                    if array.size > 0:
                        _put(file, group, name, array, digest)
        text = json.dumps(
            {
                "identity": snapshot.identity,
                "done": list(snapshot.done),
                "seconds": snapshot.seconds,
                "replicas": snapshot.replicas,
                "taken_over_at": snapshot.taken_over_at,
                "why_replicas": snapshot.why_replicas,
                "replica_warmup": snapshot.replica_warmup,
                "special": special,
            }
        )
        digest.update(text.encode())
        file.createVariable("metadata", str)[...] = text
        file.digest = digest.hexdigest()


def _put(file: Any, group: Any, name: str, array: NDArray[Any], digest: Any) -> None:
    data = np.asarray(array.view(np.int8) if array.dtype == bool else array, order="C")
    dimensions = tuple(f"of_{length}" for length in data.shape)
    for dimension, length in zip(dimensions, data.shape, strict=True):
        if dimension not in file.dimensions:
            file.createDimension(dimension, length)
    group.createVariable(name, data.dtype, dimensions, fill_value=False)[...] = data
    _add(digest, name, data)


def _add(digest: Any, name: str, array: NDArray[Any]) -> None:
    digest.update(name.encode())
    digest.update(array.reshape(-1).view(np.uint8).data)


def read(path: Path) -> Snapshot:
    """Read a checkpoint; a ``ValueError`` where the file is none, or is damaged."""
    advice = "To start anew, delete the file or name another"
    try:
        with netcdf(path, "r") as file:
            if "hamiltree_checkpoint" not in file.ncattrs():
                raise ValueError(f"{path} exists and is no checkpoint; name another file")
            if int(file.hamiltree_checkpoint) != FORMAT:
                raise ValueError(
                    f"the checkpoint {path} was written by hamiltree {file.hamiltree_version}, "
                    f"which writes them in another way. {advice}"
                )
            file.set_auto_maskandscale(False)
            return _parse(file)
    except ValueError:
        raise
    except Exception as error:  # a damaged file can make the libraries below raise anything
        raise ValueError(f"cannot read the checkpoint {path}: {error}. {advice}") from error


def _parse(file: Any) -> Snapshot:
    text = str(file.variables["metadata"][...])
    metadata = json.loads(text)
    digest = hashlib.blake2b(digest_size=16)

    def arrays(number: int, place: str) -> dict[str, NDArray[Any]]:
        group = file[f"chain_{number}/{place}"]
        found = {}
        for name in sorted(group.variables):
            found[name] = np.array(group.variables[name][...], order="C")
            _add(digest, name, found[name])
        for key, (dtype, shape) in metadata["special"].items():
            *where, name = key.split("/")
            if where == [f"chain_{number}", place]:
                empty = 0 in shape
                found[name] = np.empty(shape, dtype) if empty else found[name].astype(dtype)
        return found

    states, pieces = [], []
    for number in range(len(metadata["done"])):
        states.append(arrays(number, "state"))
        draws = arrays(number, "draws")
        pieces.append(Piece(**draws) if draws else None)
    digest.update(text.encode())
    if digest.hexdigest() != file.digest:
        raise OSError("its contents have changed since it was written")
    return Snapshot(
        metadata["identity"],
        states,
        metadata["done"],
        pieces,
        float(metadata["seconds"]),
        int(metadata.get("replicas", 1)),
        int(metadata.get("taken_over_at", 0)),
        str(metadata.get("why_replicas", "")),
        int(metadata.get("replica_warmup", 0)),
    )
