"""Programs in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys


def run_program(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
