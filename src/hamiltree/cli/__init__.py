"""The command line; ``hamiltree --help`` says what there is. One small file per command."""

from __future__ import annotations

from . import bench, compile, demo, fit, paper, plot, predict, report, summary, tree, version
from .screen import app

for command in (fit, predict, summary, tree, plot, report, demo, paper, bench, compile, version):
    command.mount(app)

__all__ = ["app"]
