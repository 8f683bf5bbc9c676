"""Threads that share the rows of large data, where there are more threads than chains.

Work over all rows is a task in parts, chosen by the data alone. Compiled code that has such a task
calls back into Python (a first-class function of numba, whose address is a ctypes callback), and
Python runs the parts by kernels that release the GIL: in one call, or shared out over a pool of
threads. Sums of a part go into a slot of their own and are added in the order of the parts, so that
draws do not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Annotated, Any

from numba import types

from .records import function_type

PART_ROWS, MAX_PARTS = 4096, 64
"""Parts have so many rows, or more where there would be more parts than these."""
BINNED_ROWS = 8192
"""Beyond so many rows work over the rows is done in parts, and scans count in bins."""
SHARES_PER_THREAD = 4
"""Contiguous shares of the parts that each thread gets, so that a slow one can be waited for."""

RUN_PARTS = function_type(int, int, int)
"""(task, parts) -> 1, or 0 where a part failed."""
RunParts = Annotated[Any, RUN_PARTS]

Task = Callable[[int, int, int], object]
"""Does the parts from the first to the second number, as the thread of the third."""


def n_parts(n_rows: int) -> int:
    """How many parts work over so many rows has; 0 where they are not that many."""
    if n_rows <= BINNED_ROWS:
        return 0
    return -(-n_rows // max(PART_ROWS, -(-n_rows // MAX_PARTS)))


class PartsRunner(types.WrapperAddressProtocol):
    """What compiled code calls to have a task done; one for each chain.

    Where data are small nothing ever calls it, and it has no tasks. Nothing here may refer back to
    the runner or to the record it is in: the memory of large data would be freed only when Python
    next looks for cycles.
    """

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self.error: BaseException | None = None
        """Of a part that failed; callbacks cannot raise."""
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 1
        run = weakref.WeakMethod(self._run)
        self._callback = _CALLBACK(lambda task, parts: run()(task, parts))  # type: ignore[misc]

    def __wrapper_address__(self) -> int:
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def signature(self) -> Any:
        return RUN_PARTS.signature

    @contextmanager
    def helped(self, threads: int) -> Iterator[None]:
        """Share tasks over so many threads, the caller's included, until the block is left."""
        if threads <= 1 or not self.tasks:
            yield
            self._raise_error()
            return
        with ThreadPoolExecutor(threads - 1, thread_name_prefix="hamiltree-rows") as pool:
            self._pool, self._threads = pool, threads
            try:
                yield
            finally:
                self._pool, self._threads = None, 1
        self._raise_error()

    def _raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error

    def _run(self, task: int, parts: int) -> int:
        try:
            do = self.tasks[task]
            if self._pool is None or parts == 1:
                do(0, parts, 0)
                return 1
            shares = min(SHARES_PER_THREAD * self._threads, parts)
            bounds = iter([(k * parts // shares, (k + 1) * parts // shares) for k in range(shares)])

            def work(who: int) -> None:
                for first, stop in bounds:  # an iterator of a list: threads take turns
                    do(first, stop, who)

            others = [self._pool.submit(work, who) for who in range(1, self._threads)]
            try:
                work(0)
            finally:
                wait(others)  # whatever happens, nobody is at work when the caller goes on
            for other in others:
                other.result()
        except BaseException as error:  # whatever it is, it must not get lost in the callback
            self.error = error
            return 0
        return 1


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
