"""Ctrl-C and SIGTERM while chains run: the work under way is finished, then the run ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stop:
    """Whether the run was asked to end."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.must_wait = False

    def look(self) -> None:
        """End the run, if it was asked to."""
        if self.signal is not None:
            raise KeyboardInterrupt

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """What is done here is done whole, also where signals act at once."""
        self.must_wait = True
        try:
            yield
        finally:
            self.must_wait = False
        self.look()


@contextmanager
def gentle_stop(*, at_once: bool) -> Iterator[Stop]:
    """Notes the first signal; the next one does what it always does.

    Handlers that somebody else installed are left alone, and outside the main thread there are
    none to install.

    Parameters
    ----------
    at_once : raise KeyboardInterrupt right away, where what is under way takes too long
    """
    stop = Stop()
    before: dict[signal.Signals, Any] = {}

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        before.clear()

    def handle(number: int, frame: Any) -> None:
        stop.signal = signal.Signals(number)
        put_back()
        if at_once and not stop.must_wait:
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = handler
                signal.signal(number, handle)
    try:
        yield stop
    finally:
        put_back()
