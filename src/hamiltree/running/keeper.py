"""Keeps a run: checkpoints by time while it goes on, and where it stood at its end.

A checkpoint is written at the end of a block of iterations, so the file is the last complete one at
any moment, and a killed run loses the time since then and nothing else.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..files import PathLike, check_writable, remove_leftovers
from . import checkpoint
from .snapshot import Snapshot, refuse_another_run

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
        self._written: list[int] = []
        """Iterations of each chain in the file."""
        self._found: Snapshot | None = None
        if self.target is not None:
            remove_leftovers(self.target)
            if self.target.exists():
                self._found = checkpoint.read(self.target)

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
            self._written = list(self._found.done)
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
                self._write(snapshot)
            except FAILURES as error:
                raise OSError(self._sorry(error)) from error
        self._found = None  # its draws are the run's now

    def is_time(self) -> bool:
        """Whether a checkpoint should be written now."""
        wait = max(self.seconds, self._cost / MAX_SHARE)
        return self.target is not None and time.perf_counter() - self._last >= wait

    def look(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write a checkpoint if it is time to."""
        if self.is_time():
            self._try(snapshot)

    def end(self, snapshot: Callable[[], Snapshot]) -> None:
        """Keep where the run ended, in any case."""
        held = self.held = snapshot()
        if self.target is not None and list(held.done) != self._written:
            self._try(lambda: held)

    def _try(self, snapshot: Callable[[], Snapshot]) -> None:
        """A checkpoint that cannot be written is not worth a run."""
        known = self.failure is not None
        try:
            self._write(snapshot)
        except FAILURES as error:
            self.failure = self._sorry(error)
            if not known:
                print(
                    f"hamiltree: {self.failure}. The run goes on and tries again; the file is as "
                    "it was before.",
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
            checkpoint.write(self.target, taken)
            self._written = list(taken.done)
        finally:
            self._last = time.perf_counter()
            self._cost = self._last - begun

    def _sorry(self, error: Exception) -> str:
        """What went wrong, in words; the libraries do not say that a disk is full."""
        assert self.target is not None
        text = f"cannot write the checkpoint {self.path}: {error}"
        with suppress(OSError):
            text += f" ({shutil.disk_usage(self.target.parent).free / 1e6:,.1f} MB free there)"
        return text
