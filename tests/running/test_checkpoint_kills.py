"""Killed at random moments, a run goes on from its checkpoint and ends with the same draws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ..support.resuming import METHODS, TASKS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def killed(*arguments: str, timeout: int) -> list[dict]:
    """What ``tests.support.killing`` found, run by run."""
    command = [sys.executable, "-m", "tests.support.killing", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for run in found:
        assert run["same draws"], run
        assert run["same statistics"], run
        assert run["same tallies"], run
        assert run["left"] == ["draws", "run.nc"], "what a killed process left is cleared away"
    return found


def test_runs_go_on_after_kills(seed):
    runs = ["hmc-df:regression", "cgm:classification"]
    found = killed(*runs, "--kills", "2", "--seed", f"{seed}", timeout=300)
    assert [sum(run["kills"].values()) for run in found] == [2, 2]


@pytest.mark.long
def test_every_kind_of_run_goes_on_after_twenty_kills(seed):
    """In warm-up, in sampling, and while a checkpoint is written: all of these must occur."""
    found = killed("--kills", "20", "--seed", f"{seed}", timeout=1800)
    assert len(found) == len(METHODS) * len(TASKS)
    moments: Counter[str] = Counter()
    for run in found:
        moments.update(run["kills"])
        assert sum(run["kills"].values()) == 20, "it ended too soon"
    assert set(moments) == {"warm-up", "warm-up, writing", "sampling", "sampling, writing"}
    assert min(moments.values()) >= 10
