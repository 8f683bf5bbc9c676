"""Kernels that are compiled ahead of the first call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hamiltree.core.backend import units
from hamiltree.core.backend.units import Unit, all_units
from hamiltree.estimators import BayesianTreeClassifier  # noqa: F401  which registers all kernels


def test_a_compiling_process_knows_every_kernel(tmp_path):
    names = [found.name for found in all_units()]
    for name in names:  # as if another process had taken them
        (tmp_path / name.replace(":", ".")).touch()
    done = subprocess.run(
        [sys.executable, "-m", "hamiltree.core.backend.units", str(tmp_path), *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert len(names) > 30


def test_slow_kernels_are_compiled_first(monkeypatch):
    made = [Unit(f"module:{seconds}", lambda: None, seconds) for seconds in (1.0, 9.0, 3.0)]
    orders = []
    monkeypatch.setattr(units, "_start_helper", lambda order, claims: orders.append(list(order)))
    monkeypatch.setattr(Unit, "prepare", lambda self: None)
    units.compile_units(made)
    assert [[found.seconds for found in order] for order in orders] == [[9.0, 3.0, 1.0]]


def test_each_kernel_is_claimed_once(tmp_path):
    made = []
    listed = [Unit(f"module:{k}", lambda k=k: made.append(k), 1.0) for k in range(3)]
    (tmp_path / "module.1").touch()
    with_marks = [found for found in listed if Path(found.mark).exists()]
    assert not with_marks
    try:
        units._take(listed, tmp_path)
        units._take(listed, tmp_path)
    finally:
        for found in listed:
            found.mark.unlink(missing_ok=True)
    assert made == [0, 2]
