"""What a notebook shows while chains run."""

from __future__ import annotations

import sys
import threading
import types

import pytest

from hamiltree.running import progress
from hamiltree.utils import notebook as bars


class Handle:
    """Stands for the place in a notebook that a display was given."""

    def __init__(self, first):
        self.shown = [first]

    def update(self, html):
        self.shown.append(html)


@pytest.fixture
def notebook(monkeypatch):
    """IPython as far as the bar needs it, with a kernel; returns the displays."""
    handles = []

    def display(html, display_id):
        assert display_id is True
        handles.append(Handle(html))
        return handles[-1]

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    parts = types.ModuleType("IPython.display")
    parts.HTML, parts.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    monkeypatch.setattr(bars, "SECONDS", 0.0)
    return handles


def test_a_notebook_shows_a_bar_and_clears_it(notebook, capsys):
    with progress.progress_bar(None, unit="iterations") as report:
        report(100, 400)
        report(50, 400)
    (handle,) = notebook
    assert "sampling <progress aria-label" in handle.shown[0]
    assert "100 of 400 iterations" in handle.shown[1]
    assert 'value="150" max="400"' in handle.shown[2]
    assert handle.shown[-1] == ""
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_threads_report_together(notebook):
    with progress.progress_bar(True, unit="iterations") as report:
        threads = [
            threading.Thread(target=lambda: [report(1, 400) for _ in range(100)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report(0, 400)
    assert "400 of 400 iterations" in notebook[0].shown[-2]


def test_updates_are_rare(notebook, monkeypatch):
    monkeypatch.setattr(bars, "SECONDS", 60.0)
    with progress.progress_bar(None, unit="iterations") as report:
        for _ in range(50):
            report(1, 50)
    assert len(notebook[0].shown) == 3  # the first, one update, and the end


def test_false_shows_nothing(notebook):
    with progress.progress_bar(False, unit="iterations") as report:
        report(1, 2)
    assert notebook == []


def test_compiling_is_shown_in_a_notebook(notebook, monkeypatch, capsys):
    def compile_units(units, say):
        say(1, len(units), "a:b")
        return 2.5

    monkeypatch.setattr(progress, "compile_units", compile_units)
    assert progress.compile_with_bar([1, 2, 3]) == 2.5
    assert "compiling 3 kernels for this machine, once" in notebook[0].shown[0]
    assert 'value="1" max="3"' in notebook[0].shown[1]
    assert capsys.readouterr().err == ""


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch):
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not bars.in_notebook()
    ipython.get_ipython = lambda: None
    assert not bars.in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not bars.in_notebook()
