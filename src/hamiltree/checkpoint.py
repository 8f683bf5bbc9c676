"""Checkpoints: a running fit in one NetCDF file, so that a killed one can go on where it was.

Written by time, at the end of a block of iterations, and atomically: the file is the last complete
checkpoint at any moment. No pickle. One group a chain, with its state and its draws as plain
arrays; everything else is one JSON text. A digest of it all finds what a damaged disk has changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .core.record import Block
from .files import PathLike, check_writable, remove_leftovers, replacing
from .gathering import joined
from .snapshot import Snapshot, refuse_another_run

FORMAT = 1
"""Raised by one whenever the layout changes."""
MAX_SHARE = 0.01
"""Writing takes at most this share of a run: many draws are written less often."""
FAILURES = (OSError, RuntimeError)
"""What a full or vanished disk makes the libraries below raise."""


class Keeper:
    """Keeps a run: in a file while it goes on, where one is asked for, and at its end in memory.

    Parameters
    ----------
    path : of the checkpoint, or None for none
    seconds : between two checkpoints, more where writing takes long
    held : a run that ended earlier, to go on from
    """

    def __init__(
        self,
        path: PathLike | None = None,
        seconds: float = 60.0,
        held: Snapshot | None = None,
    ) -> None:
        self.target = None if path is None else check_writable(path, "the checkpoint")
        self.path = path
        self.seconds = seconds
        self.held = held
        self.failure: str | None = None
        """Why the last attempt to write failed; None where the file is up to date."""
        self._last = time.perf_counter()
        self._cost = 0.0
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

    def resume(self, identity: dict[str, Any]) -> Snapshot | None:
        """The run to go on from, if there is one; refuses another's."""
        if self._found is not None:
            refuse_another_run(
                self._found.identity,
                identity,
                f"the checkpoint {self.path} belongs to another run",
                "To go on with it, call fit as it was called then; to start anew, delete the file "
                "or name another",
            )
            return self._found
        if self.held is not None:
            refuse_another_run(
                self.held.identity,
                identity,
                "warm_start=True goes on with the chains of the last fit, which was another",
                "To go on, call fit as it was called then, but for a larger n_draws; to start "
                "anew, set warm_start=False",
            )
        return self.held

    def begin(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write the first checkpoint; here alone a failure is an error, before any work is lost."""
        if self.target is not None and self._found is None:
            try:
                self._timed(snapshot())
            except FAILURES as error:
                raise OSError(f"cannot write the checkpoint {self.path}: {error}") from error
        self._found = None  # its draws are the run's now

    def look(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write a checkpoint if it is time to."""
        wait = max(self.seconds, self._cost / MAX_SHARE)
        if self.target is not None and time.perf_counter() - self._last >= wait:
            self._try(snapshot())

    def end(self, snapshot: Callable[[], Snapshot]) -> None:
        """Keep where the run ended, in any case."""
        self.held = snapshot()
        if self.target is not None:
            self._try(self.held)

    def _try(self, snapshot: Snapshot) -> None:
        """A checkpoint that cannot be written is not worth a run."""
        known = self.failure is not None
        try:
            self._timed(snapshot)
        except FAILURES as error:
            self._last = time.perf_counter()
            self.failure = str(error)
            if not known:
                print(
                    f"hamiltree: cannot write the checkpoint {self.path}: {error}. The run goes on "
                    "and tries again; the file is as it was before.",
                    file=sys.stderr,
                    flush=True,
                )
        else:
            self.failure = None

    def _timed(self, snapshot: Snapshot) -> None:
        assert self.target is not None
        begun = time.perf_counter()
        write(self.target, snapshot)
        self._last = time.perf_counter()
        self._cost = self._last - begun


# ------------------------------------------------------------------ the file


def write(target: Path, snapshot: Snapshot) -> None:
    """Write a file that ``read`` understands in the place of what is there."""
    import netCDF4

    digest = hashlib.blake2b(digest_size=16)
    special: dict[str, Any] = {}
    with replacing(target) as part, netCDF4.Dataset(part, "w") as file:
        file.title = "hamiltree checkpoint"
        file.hamiltree_checkpoint = FORMAT
        file.hamiltree_version = snapshot.identity["hamiltree"]
        for number, (state, pieces) in enumerate(
            zip(snapshot.states, snapshot.pieces, strict=True)
        ):
            draws = joined(pieces)._asdict() if pieces else {}
            for place, arrays in (("state", state), ("draws", draws)):
                group = file.createGroup(f"chain_{number}/{place}")
                for name, array in sorted(arrays.items()):
                    key = f"chain_{number}/{place}/{name}"
                    if array.size == 0 or array.dtype == bool:
                        special[key] = [array.dtype.str, list(array.shape)]
                    if array.size > 0:
                        _put(file, group, name, array, digest)
        text = json.dumps(
            {
                "identity": snapshot.identity,
                "done": list(snapshot.done),
                "seconds": snapshot.seconds,
                "special": special,
            }
        )
        digest.update(text.encode())
        file.createVariable("metadata", str)[...] = text
        file.digest = digest.hexdigest()


def _put(file: Any, group: Any, name: str, array: NDArray[Any], digest: Any) -> None:
    data = np.asarray(array.view(np.int8) if array.dtype == bool else array, order="C")
    dimensions = []
    for length in data.shape:
        dimensions.append(f"of_{length}")
        if dimensions[-1] not in file.dimensions:
            file.createDimension(dimensions[-1], length)
    group.createVariable(name, data.dtype, tuple(dimensions), fill_value=False)[...] = data
    _add(digest, name, data)


def _add(digest: Any, name: str, array: NDArray[Any]) -> None:
    digest.update(name.encode())
    digest.update(array.reshape(-1).view(np.uint8).data)


def read(path: Path) -> Snapshot:
    """Read a checkpoint; a ``ValueError`` where the file is none, or is damaged."""
    import netCDF4

    advice = "To start anew, delete the file or name another"
    try:
        with netCDF4.Dataset(path, "r") as file:
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
        pieces.append([Block(**draws)] if draws else [])
    digest.update(text.encode())
    if digest.hexdigest() != file.digest:
        raise OSError("its contents have changed since it was written")
    return Snapshot(
        metadata["identity"], states, metadata["done"], pieces, float(metadata["seconds"])
    )
