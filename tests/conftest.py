"""Shared by all tests: seeds come from the test's name, so that no test picks a lucky one."""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator

import matplotlib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from .support import interpreted

matplotlib.use("Agg")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Jobs in the background of a shell are deaf to Ctrl-C, and so would be the tests of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("HAMILTREE_INTERPRETED"):
    interpreted.install()


for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # of the processes that tests start


@pytest.fixture(autouse=True, scope="session")
def one_thread_of_linear_algebra() -> Iterator[None]:
    """Processes that test side by side, each with a thread per core, wait for each other.

    A reference that takes a fifth of a second then takes ten.
    """
    with threadpool_limits(1):
        yield


@pytest.fixture
def seed(request) -> int:
    """An integer that depends on the test's name and parameters alone."""
    return zlib.crc32(request.node.nodeid.split("::", 1)[-1].encode())


@pytest.fixture
def rng(seed) -> np.random.Generator:
    return np.random.default_rng(seed)
