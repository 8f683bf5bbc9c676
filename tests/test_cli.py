"""The commands as a user types them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import hamiltree
from hamiltree.cli import app


def test_version():
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0
    assert result.output.startswith(f"hamiltree {hamiltree.__version__} (Python ")


def test_demo_ends_with_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    for expected in ("478 biopsies", "R-hat", "one tree at a time", "cell_size <= ", "tree.png"):
        assert expected in result.output
    pictures = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert pictures == ["leaves.png", "trace.png", "tree.png"]


@pytest.mark.parametrize("arguments", [["unknown"], ["demo", "--seed", "x"]])
def test_wrong_usage_fails(arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2
