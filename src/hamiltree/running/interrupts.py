"""What ends a run early: Ctrl-C, SIGTERM, or its time. The work under way is finished first."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class Stopped(KeyboardInterrupt):
    """The run was asked to end, and can be kept as it is."""


class TimeIsOver(Stopped):
    """The run has taken as long as it may."""


class Stop:
    """Whether the run was asked to end: a context manager that listens for signals.

    ``seconds``: how long the run may take from ``start_clock`` on.

    The first signal of a kind is noted; the second has its usual effect. Handlers that other code
    installed are left alone. Outside the main thread, Python cannot install any.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._end = math.inf
        self.signal: signal.Signals | None = None
        """The signal received; if both kinds were, SIGTERM, which ends the process."""
        self._before: dict[int, Any] = {}
        self._at_once = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def start_clock(self) -> None:
        """From now on the time of the run counts."""
        self._end = time.perf_counter() + self.seconds

    @property
    def is_due(self) -> bool:
        """Whether the run is to end."""
        return self.signal is not None or time.perf_counter() >= self._end

    @property
    def seconds_left(self) -> float:
        """Of the time of the run; infinite where it is not limited."""
        return self._end - time.perf_counter()

    def look(self) -> None:
        """End the run, if it was asked to or its time is over."""
        if self.signal is not None:
            raise Stopped
        if self.is_due:
            raise TimeIsOver

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within this context a signal ends the work at once: it takes long, and may be lost."""
        self._at_once = True
        try:
            self.look()
            yield
        finally:
            self._at_once = False

    def _handle(self, number: int, frame: Any) -> None:
        if self.signal != signal.SIGTERM:
            self.signal = signal.Signals(number)
        signal.signal(number, self._before.pop(number))
        if self._at_once:
            raise Stopped
