"""The walk-through of the documentation still runs, and still says what the page says it does."""

from __future__ import annotations

import re

from .support.walkthrough import PAGE, code_of, run, sessions


def steady(output: str) -> set[str]:
    """Lines that no draw of the sampler and no clock changes: those without a digit."""
    return {line for line in output.splitlines() if not re.search(r"\d", line)}


def test_the_walk_through_runs_as_it_is_written(tmp_path):
    page = PAGE.read_text("utf-8")
    (tmp_path / "make_patients.py").write_text(code_of(page), "utf-8")
    steps = [step for session in sessions(page) for step in session]
    assert len(steps) > 8
    for step in steps:
        printed = run(step.command, tmp_path)
        assert "Traceback" not in printed
        if "error: " in step.output or step.command.startswith(("head", "python")):
            assert printed == step.output, step.command
        else:
            assert steady(step.output) <= steady(printed), step.command
            assert bool(printed) == bool(step.output), step.command
    assert (tmp_path / "report.html").stat().st_size > 10_000
    predicted = (tmp_path / "predicted.csv").read_text("utf-8").splitlines()
    assert len(predicted) == 7
