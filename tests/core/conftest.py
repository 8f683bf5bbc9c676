"""Shared by the tests of scans."""

from __future__ import annotations

import pytest

from hamiltree.core.backend import row_threads
from hamiltree.core.scan import bins, bits
from hamiltree.samplers import rjhmc, rjhmc_state


@pytest.fixture
def hold(monkeypatch):
    """Have rows held in one of these ways."""

    def change(way):
        monkeypatch.setattr(bits, "MAX_ROWS", 2048 if way == "bits" else 0)
        for module in (row_threads, rjhmc, rjhmc_state):
            monkeypatch.setattr(module, "BINNED_ROWS", 0 if "bins" in way else 8192)
        monkeypatch.setattr(bins, "MAX_BINS", 4 if way == "bins" else 256)

    return change
