"""Commands, as a test runs them."""

from __future__ import annotations

from typer.testing import CliRunner

from hamiltree.cli import app

SHORT = ["--n-chains", "2", "--n-warmup", "150", "--n-draws", "120"]


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result
