"""A run that can go on: where its chains stand, what they drew, and what its draws depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.soft.data import blocks_of
from ..core.tree.record import Piece
from ..files import library_version
from ..json_text import plain
from ..methods.base import Configuration, Problem
from .chain_state import State


@dataclass(frozen=True)
class Snapshot:
    """All that a run needs to go on as if it had never stopped, beside its data and settings."""

    identity: dict[str, Any]
    """What the draws depend on, see ``identify``."""
    states: Sequence[State]
    """Of each chain."""
    done: Sequence[int]
    """Iterations of each chain."""
    pieces: Sequence[Sequence[Piece]]
    """Draws of each chain."""
    seconds: float
    """The run took so far."""


def identify(
    problem: Problem,
    settings: Configuration[Any],
    *,
    n_chains: int,
    n_warmup: int,
    n_particles: int,
    seed: int,
) -> dict[str, Any]:
    """All that the draws depend on, as JSON has it; the number of draws only where it does too."""
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
        "settings": settings.to_dict(),
    }
    if settings.method.name == "smc":
        identity["n_draws"] = n_particles
    found: dict[str, Any] = json.loads(json.dumps(identity, default=plain))
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
        if name not in ("X", "y", "settings") and there.get(name) != here[name]
    ]
    shapes = ("rows", "columns", "n_classes")
    if all(there.get(name) == here[name] for name in shapes):
        found += [f"{name} has other values" for name in ("X", "y") if there[name] != here[name]]
    before, now = there["settings"], here["settings"]
    if before["method"] != now["method"]:  # then so are its parameters
        return [*found, f"method was {before['method']!r} and is {now['method']!r}"]
    found += [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    return found


def refuse_another_run(
    there: Mapping[str, Any], here: Mapping[str, Any], whose: str, advice: str
) -> None:
    """A ``ValueError`` that says what differs, unless nothing does, and then what to do."""
    found = differences(there, here)
    if found:
        raise ValueError(f"{whose}: {'; '.join(found)}. {advice}")
