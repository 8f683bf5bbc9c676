"""Ctrl-C keeps the draws, twice it ends at once; SIGTERM ends the process, checkpoint written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hamiltree.running.chains import Chains
from hamiltree.running.checkpoints import read
from hamiltree.running.interrupts import Stop, Stopped

from .test_checkpoint import LONG, SHORT, fitted, same_runs

ROOT = Path(__file__).parents[2]
ENDED_BY_SIGTERM = 143
SIGNALS = (signal.SIGINT, signal.SIGTERM)

needs_signals = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")

# ------------------------------------------------------------------ other processes

BEGIN = """
import sys, time, warnings
sys.path.insert(0, "")
warnings.simplefilter("ignore")
from hamiltree.running import chains
from tests.running.test_checkpoint import LONG, fitted
chains.BATCH_SECONDS = 0.02
advance = chains.Chains._advance
def noted(self, *arguments):
    advance(self, *arguments)
    if self.done > 100:
        print("drawing", flush=True)
chains.Chains._advance = noted
path = sys.argv[1] if len(sys.argv) > 1 else None
"""

ONE = """
fitted(LONG, checkpoint=path)
print("returned", flush=True)
"""

IN_WARM_UP = """
fitted(LONG | {"n_warmup": 1_000_000}, checkpoint=path)
print("returned", flush=True)
"""

MANY = """
for k in range(10):
    print("fit", k, flush=True)
    try:
        fitted(LONG)
    except Exception as error:
        print("caught", error, flush=True)
"""

LONG_BATCHES = """
from hamiltree.samplers.rjhmc import RJHMCChain
def slow(self, n):
    print("drawing", flush=True)
    time.sleep(100)
RJHMCChain.advance = slow
fitted(LONG)
print("returned", flush=True)
"""


def ended(program: str, *signals: signal.Signals, path: Path | None = None) -> tuple[int, str, str]:
    """Status, output and errors of a process that gets signals once it draws."""
    command = [sys.executable, "-c", BEGIN + program, *([] if path is None else [str(path)])]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        said = ""
        while "drawing" not in said:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        for number in signals:
            process.send_signal(number)
            time.sleep(0.5)
        out, errors = process.communicate(timeout=20)
        watchdog.cancel()
    return process.returncode, said + out, errors


@needs_signals
@pytest.mark.parametrize("program", [ONE, IN_WARM_UP], ids=["drawing", "warm-up"])
def test_sigterm_writes_the_checkpoint_and_ends_the_process(program, tmp_path):
    path = tmp_path / "run.nc"
    status, out, errors = ended(program, signal.SIGTERM, path=path)
    assert status == ENDED_BY_SIGTERM, errors
    assert "returned" not in out
    assert f"ended by SIGTERM; the same call resumes from {path}" in errors
    assert os.listdir(tmp_path) == ["run.nc"]
    done = read(path).done
    assert done[0] == done[1] > 100, "the chains met"
    if program is ONE:
        lengths = {"n_draws": done[0] - SHORT["n_warmup"] + 20}
        assert same_runs(fitted(SHORT, checkpoint=path, **lengths), fitted(SHORT, **lengths))


@needs_signals
def test_sigterm_without_a_checkpoint_ends_the_process():
    status, out, errors = ended(ONE, signal.SIGTERM)
    assert status == ENDED_BY_SIGTERM, errors
    assert "returned" not in out
    assert "ended by SIGTERM; the run has no checkpoint" in errors


@needs_signals
def test_sigterm_ends_a_loop_of_fits():
    status, out, errors = ended(MANY, signal.SIGTERM)
    assert status == ENDED_BY_SIGTERM, errors
    assert "fit 0" in out
    assert "fit 1" not in out
    assert "caught" not in out


@needs_signals
def test_sigterm_ends_the_command_line(tmp_path):
    table, path = tmp_path / "table.csv", tmp_path / "run.nc"
    table.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(40)))
    arguments = ["fit", table, "-t", "y", "-o", tmp_path / "model.nc", "--checkpoint", path]
    arguments += ["--n-draws", "10000000"]
    command = [sys.executable, "-m", "hamiltree", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not path.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == ENDED_BY_SIGTERM, errors
    assert sorted(os.listdir(tmp_path)) == ["run.nc", "table.csv"]


@needs_signals
def test_a_second_ctrl_c_does_not_wait_for_the_batch_under_way():
    started = time.monotonic()
    status, out, errors = ended(LONG_BATCHES, signal.SIGINT, signal.SIGINT)
    assert status == -signal.SIGINT, errors
    assert "KeyboardInterrupt" in errors
    assert "returned" not in out
    assert time.monotonic() - started < 60


@needs_signals
def test_ctrl_c_and_then_sigterm_ends_the_process():
    status, out, errors = ended(LONG_BATCHES, signal.SIGINT, signal.SIGTERM, signal.SIGTERM)
    assert status == -signal.SIGTERM, errors
    assert "returned" not in out


# ------------------------------------------------------------------ this process


def signalled(number: signal.Signals, when) -> threading.Thread:
    """Sends itself a signal once ``when()`` is true."""

    def wait() -> None:
        while not when():
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def seen(monkeypatch):
    """Iterations that the chains of this test have made."""
    done = [0]
    advance = Chains._advance

    def noted(self, *arguments):
        advance(self, *arguments)
        done[0] = self.done

    monkeypatch.setattr(Chains, "_advance", noted)
    monkeypatch.setattr("hamiltree.running.chains.BATCH_SECONDS", 0.02)
    return done


def test_ctrl_c_keeps_draws_and_checkpoint(tmp_path, seen):
    path = tmp_path / "run.nc"
    handlers = [signal.getsignal(number) for number in SIGNALS]
    signalled(signal.SIGINT, lambda: seen[0] > 100)
    with pytest.warns(UserWarning, match=f"interrupted: kept the .* resumes from {path}"):
        stopped = fitted(LONG, checkpoint=path)
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
    assert stopped.info.interrupted
    n = stopped.n_draws
    assert read(path).done == [n + 40, n + 40], "the chains met"
    on = fitted(SHORT, checkpoint=path, n_draws=n + 20)
    assert same_runs(on, fitted(SHORT, n_draws=n + 20))


def test_handlers_are_restored_after_sigterm(seen):
    handlers = [signal.getsignal(number) for number in SIGNALS]
    signalled(signal.SIGTERM, lambda: seen[0] > 100)
    with pytest.raises(SystemExit) as ending:
        fitted(LONG)
    assert ending.value.code == ENDED_BY_SIGTERM
    assert [signal.getsignal(number) for number in SIGNALS] == handlers


def test_ctrl_c_in_warm_up_loses_nothing_with_a_checkpoint(tmp_path, seen):
    path = tmp_path / "run.nc"
    long = SHORT | {"n_warmup": 1_000_000}
    signalled(signal.SIGINT, lambda: seen[0] > 50)
    with pytest.raises(KeyboardInterrupt, match=f"during warm-up.* nothing is lost.*from {path}"):
        fitted(long, checkpoint=path)
    assert min(read(path).done) > 50
    seen[0] = 0
    signalled(signal.SIGINT, lambda: seen[0] > 60)
    with pytest.raises(KeyboardInterrupt, match="there is nothing to keep"):
        fitted(long)


def test_an_interrupt_of_somebody_elses_waits_for_the_batches_under_way(monkeypatch):
    """A handler that raises at once, in the middle of a batch: its draws are whole."""
    from hamiltree.samplers.rjhmc import RJHMCChain

    advance, started = RJHMCChain.advance, threading.Event()

    def slow(self, n):
        if self.iteration > 100:
            started.set()
            time.sleep(0.3)
        return advance(self, n)

    def raising(number, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr(RJHMCChain, "advance", slow)
    before = signal.signal(signal.SIGINT, raising)
    try:
        signalled(signal.SIGINT, started.is_set)
        with pytest.warns(UserWarning, match="interrupted: kept the"):
            stopped = fitted(LONG, n_jobs=2)
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    n = min(stopped.n_draws, 200)
    whole = fitted(SHORT, n_draws=n)
    assert (stopped.log_posterior[:, :n] == whole.log_posterior).all()


def test_handlers_of_others_are_left_alone(seen):
    received = []
    before = signal.signal(signal.SIGTERM, lambda *_: received.append(seen[0]))
    try:
        signalled(signal.SIGTERM, lambda: seen[0] > 50)
        posterior = fitted(SHORT, n_draws=2000)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(received) == 1
    assert posterior.info.stopped == "n_draws"


def test_a_fit_in_another_thread_leaves_signals_alone():
    found = []
    thread = threading.Thread(target=lambda: found.append(fitted(SHORT)))
    thread.start()
    thread.join()
    assert same_runs(found[0], fitted(SHORT))


def test_signals_act_at_once_only_where_they_may():
    with Stop() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)  # the handler runs between two steps of the interpreter
        assert stop.signal == signal.SIGINT
        with pytest.raises(Stopped), stop.at_once():
            raise AssertionError("it ends before it begins")
    started = time.monotonic()
    signalled(signal.SIGINT, lambda: time.monotonic() - started > 0.2)
    with Stop() as stop, pytest.raises(Stopped), stop.at_once():
        time.sleep(60)
    assert time.monotonic() - started < 30
