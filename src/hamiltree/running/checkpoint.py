"""A checkpoint: a run that is under way in one NetCDF file, written atomically; no pickle.

One group a chain, with its state and its draws as plain arrays; everything else is one JSON text.
A digest of it all finds what a damaged disk has changed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.tree.record import Piece
from ..files import netcdf, replacing
from .gathering import joined
from .snapshot import Snapshot

FORMAT = 2
"""Raised by one whenever the layout changes. 2: values of the method alone, and shared ones."""


def write(target: Path, snapshot: Snapshot) -> None:
    """Write a file that ``read`` understands in the place of what is there."""
    digest = hashlib.blake2b(digest_size=16)
    special: dict[str, Any] = {}
    with replacing(target) as part, netcdf(part, "w") as file:
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
        pieces.append([Piece(**draws)] if draws else [])
    digest.update(text.encode())
    if digest.hexdigest() != file.digest:
        raise OSError("its contents have changed since it was written")
    return Snapshot(
        metadata["identity"], states, metadata["done"], pieces, float(metadata["seconds"])
    )
