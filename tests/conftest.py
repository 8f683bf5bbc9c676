"""Shared by all tests: seeds come from the test's name, so that no test picks a lucky one."""

from __future__ import annotations

import os
import signal
import zlib

import matplotlib
import numpy as np
import pytest

from .support import interpreted

matplotlib.use("Agg")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Jobs in the background of a shell are deaf to Ctrl-C, and so would be the tests of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("HAMILTREE_INTERPRETED"):
    interpreted.install()


@pytest.fixture
def seed(request) -> int:
    """An integer that depends on the test's name and parameters alone."""
    return zlib.crc32(request.node.nodeid.split("::", 1)[-1].encode())


@pytest.fixture
def rng(seed) -> np.random.Generator:
    return np.random.default_rng(seed)
