"""Checkpoints: a run goes on from its file, and the file never stands in the way of a run."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior
from hamiltree.running import run
from hamiltree.running.chains import Chains
from hamiltree.running.checkpoints import MAX_SHARE, Checkpoints, Snapshot, read, write
from hamiltree.utils import files

from ..support.resuming import arrays_of, data_of, same_arrays

SHORT = {"n_chains": 2, "n_warmup": 40, "n_draws": 30, "max_leaves": 6, "random_state": 1}
LONG = SHORT | {"n_draws": 1_000_000}


def fitted(parameters, task="classification", **more):
    estimator = BayesianTreeClassifier if task == "classification" else BayesianTreeRegressor
    return estimator(**{**parameters, **more}).fit(*data_of(task)).posterior_


def tallies_of(posterior: Posterior) -> dict[str, np.ndarray]:
    return {
        f"{phase} {move}": np.array(counts)
        for phase, moves in posterior.info.acceptance.items()
        for move, counts in moves.items()
    }


def same_runs(a: Posterior, b: Posterior) -> bool:
    """Draws, statistics and tallies."""
    return (
        same_arrays(arrays_of(a.draws), arrays_of(b.draws))
        and same_arrays(a.info.stats, b.info.stats)
        and same_arrays(tallies_of(a), tallies_of(b))
    )


# ------------------------------------------------------------------ going on


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi", "cgm"])
def test_a_longer_run_goes_on_from_the_file_of_a_shorter_one(method, tmp_path):
    parameters = SHORT | {"method": method, "checkpoint": tmp_path / "run.nc"}
    fitted(parameters, "regression")
    spent = read(parameters["checkpoint"]).seconds
    longer = fitted(parameters, "regression", n_draws=80, n_jobs=2)
    whole = fitted(parameters | {"checkpoint": None}, "regression", n_draws=80)
    assert same_runs(longer, whole)
    assert longer.info.seconds > spent
    assert os.listdir(tmp_path) == ["run.nc"]


def test_the_same_call_again_gives_the_same_draws_and_leaves_the_file(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    first = fitted(SHORT, checkpoint=path)
    before = path.stat().st_mtime_ns
    monkeypatch.setattr(Chains, "_advance", None)  # nothing is left to do
    assert same_runs(fitted(SHORT, checkpoint=str(path)), first)
    assert path.stat().st_mtime_ns == before


def test_a_run_towards_a_goal_ends_where_it_would_have(tmp_path, monkeypatch):
    """Stopped between two judgements, it is judged again at the lengths at which it was."""
    goal = {"target_rhat": 1.0001, "max_draws": 200}
    whole = fitted(SHORT, **goal)
    path = tmp_path / "run.nc"
    enough = run.Goal
    judged = []

    def impatient(look, limit):
        def looks(draws, info):
            judged.append(draws.n_draws)
            if draws.n_draws == 102:
                raise KeyboardInterrupt
            return look(draws, info)

        return enough(looks, limit)

    monkeypatch.setattr(run, "Goal", impatient)
    with pytest.warns(UserWarning, match="the same call resumes from"):
        assert fitted(SHORT, **goal, checkpoint=path).info.interrupted
    monkeypatch.undo()
    assert judged == [30, 45, 68, 102]
    on = fitted(SHORT, **goal, checkpoint=path)
    assert (on.info.stopped, on.n_draws) == ("max_draws", 200)
    assert same_runs(on, whole)


def test_a_seed_left_to_chance_is_kept(tmp_path):
    path = tmp_path / "run.nc"
    first = fitted(SHORT, random_state=None, checkpoint=path)
    on = fitted(SHORT, random_state=None, checkpoint=path, n_draws=50)
    assert on.info.seed == first.info.seed
    np.testing.assert_array_equal(on.log_posterior[:, :30], first.log_posterior)


# ------------------------------------------------------------------ another run's file


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"alpha_split": 0.5}, "alpha_split was 0.95 and is 0.5. To continue it, call fit as"),
        ({"n_chains": 3}, "n_chains was 2 and is 3"),
        ({"n_warmup": 41, "h": 0.2}, "n_warmup was 40 and is 41; h was 'learn' and is 0.2"),
        ({"random_state": 2}, r"the seed that random_state gives was \d+ and is \d+"),
        ({"method": "cgm"}, "method was 'hmc-df' and is 'cgm'"),
        ({"n_draws": 20}, "has 30 draws per chain already, more than n_draws=20"),
    ],
)
def test_another_run_is_refused_and_told_what_differs(other, message, tmp_path):
    path = tmp_path / "run.nc"
    fitted(SHORT, checkpoint=path)
    kept = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        fitted(SHORT, checkpoint=path, **other)
    assert path.read_bytes() == kept


def test_other_data_and_another_version_are_refused(tmp_path):
    path = tmp_path / "run.nc"
    model = BayesianTreeClassifier(**SHORT, checkpoint=path)
    X, y = data_of("classification")
    model.fit(X, y)
    changed = X.copy()
    changed[0, 0] += 0.01
    for rows, target, message in (
        (changed, y, "belongs to another run: X has other values"),
        (X, np.roll(y, 1), "another run: y has other values"),
        (X[:-1], y[:-1], f"the number of rows was {len(X)} and is {len(X) - 1}"),
        (X[:, :1], y, "the number of columns that are not constant was 2 and is 1"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, target)
    old = read(path)
    write(path, dataclasses.replace(old, identity=old.identity | {"hamiltree": "0.0.9"}))
    with pytest.raises(ValueError, match=r"version of hamiltree was '0\.0\.9' and is"):
        model.fit(X, y)


def test_what_is_no_checkpoint_is_not_overwritten(tmp_path):
    path = tmp_path / "run.nc"
    posterior = fitted(SHORT, checkpoint=path)
    with pytest.raises(ValueError, match="it is the checkpoint of a run: call fit with it again"):
        Posterior.load(path)
    model = tmp_path / "model.nc"
    posterior.save(model)
    text = tmp_path / "notes.txt"
    text.write_text("not NetCDF")
    for wrong, message in ((model, "is no checkpoint; name another"), (text, "cannot read the")):
        kept = wrong.read_bytes()
        with pytest.raises(ValueError, match=message):
            fitted(SHORT, checkpoint=wrong)
        assert wrong.read_bytes() == kept


def test_a_damaged_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "run.nc"
    fitted(SHORT, checkpoint=path)
    whole = path.read_bytes()
    with netCDF4.Dataset(path, "a") as file:
        file["chain_1/draws/threshold"][0] += 1e-12
    with pytest.raises(ValueError, match="its contents have changed since it was written"):
        fitted(SHORT, checkpoint=path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"cannot read the checkpoint .* delete the file"):
        fitted(SHORT, checkpoint=path)
    path.write_bytes(whole)
    with netCDF4.Dataset(path, "a") as file:
        file.hamiltree_checkpoint = 99
    with pytest.raises(ValueError, match="which writes them in another way"):
        fitted(SHORT, checkpoint=path)


# ------------------------------------------------------------------ disks


def test_a_place_that_cannot_be_written_to_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Chains, "_advance", None)  # nothing may be sampled before
    for wrong, error, message in (
        (tmp_path, IsADirectoryError, "cannot save the checkpoint to .* it is a folder"),
        (tmp_path / "no" / "run.nc", FileNotFoundError, "no folder"),
    ):
        with pytest.raises(error, match=message):
            fitted(SHORT, checkpoint=wrong)

    def full(path, flags):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_flush", full)
    with pytest.raises(OSError, match=r"cannot write the checkpoint .*No space left.* MB free"):
        fitted(SHORT, checkpoint=tmp_path / "run.nc")
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_up_does_not_end_the_run(tmp_path, monkeypatch, capsys):
    path = tmp_path / "run.nc"
    writes = []

    def full_after_the_first(file, flags):
        writes.append(file)
        if len(writes) > 2:  # the file and its folder
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_flush", full_after_the_first)
    monkeypatch.setattr("hamiltree.running.checkpoints.MAX_SHARE", np.inf)
    with pytest.warns(UserWarning, match="No space left.* not up to date; the model has all draws"):
        posterior = fitted(SHORT, checkpoint=path, checkpoint_seconds=0.0)
    assert len(writes) > 3
    assert capsys.readouterr().err.count("cannot write the checkpoint") == 1
    assert same_runs(posterior, fitted(SHORT))
    assert os.listdir(tmp_path) == ["run.nc"]
    monkeypatch.undo()
    assert read(path).done == [0, 0]  # the last one that could be written
    assert same_runs(fitted(SHORT, checkpoint=path), posterior)


LIMITED = """
import resource, signal, sys
from hamiltree.running import checkpoints
sys.path.insert(0, "")
from tests.running.test_checkpoint import SHORT, fitted
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
checkpoints.MAX_SHARE = float("inf")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
posterior = fitted(SHORT, checkpoint=sys.argv[1], checkpoint_seconds=0.0, n_draws=3000)
print(posterior.n_draws)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit on the size of files")
def test_a_write_that_fails_in_the_library_below_does_not_end_the_run(tmp_path):
    """The system refuses to write more than so many bytes, in the middle of a file."""
    path = tmp_path / "run.nc"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True, text=True, timeout=120, cwd=root,
    )  # fmt: skip
    assert done.stdout == "3000\n", done.stderr
    assert "The run continues and tries again" in done.stderr
    assert "It is not up to date" in done.stderr
    assert os.listdir(tmp_path) == ["run.nc"]
    on = fitted(SHORT, checkpoint=path, n_draws=3000)
    assert same_runs(on, fitted(SHORT, n_draws=3000))


SIDE_BY_SIDE = """
import sys, threading
sys.path.insert(0, "")
from hamiltree.running import checkpoints
from tests.running.test_checkpoint import SHORT, fitted
checkpoints.MAX_SHARE = float("inf")
common = {"checkpoint_seconds": 0.0, "n_draws": 400, "n_jobs": 1}
threads = [
    threading.Thread(target=fitted, args=(SHORT,), kwargs={"checkpoint": path, **common})
    for path in sys.argv[1:]
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_runs_in_threads_of_one_process_write_side_by_side(tmp_path, monkeypatch):
    """In a process of its own: the library below would take it down, not raise."""
    paths = [tmp_path / f"run{k}.nc" for k in range(3)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SIDE_BY_SIDE, *map(str, paths)],
        capture_output=True, text=True, timeout=300, cwd=root,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    whole = fitted(SHORT, n_draws=400)
    monkeypatch.setattr(Chains, "_advance", None)  # nothing is left to do
    for path in paths:
        assert same_runs(fitted(SHORT, checkpoint=path, n_draws=400), whole)


def test_writing_takes_a_hundredth_of_the_time(tmp_path, monkeypatch):
    """A slow disk makes checkpoints rarer; otherwise they come as often as asked for."""
    clock = [0.0]
    monkeypatch.setattr("hamiltree.running.checkpoints.time.perf_counter", lambda: clock[0])
    written = []

    def slow_write(target, snapshot):
        written.append(clock[0])
        clock[0] += 2.0

    monkeypatch.setattr("hamiltree.running.checkpoints.write", slow_write)
    checkpoints = Checkpoints(tmp_path / "run.nc", seconds=60.0)
    snapshot = Snapshot({}, [], [], [], 0.0)
    checkpoints.begin(lambda: snapshot)
    while clock[0] < 1000:
        clock[0] += 0.25
        checkpoints.look(lambda: snapshot)
    spent = 2.0 * len(written) / clock[0]
    assert np.diff(written) == pytest.approx(2.0 / MAX_SHARE + 2.0)
    assert spent <= 1.5 * MAX_SHARE  # the first one has no run before it


# ------------------------------------------------------------------ what a run without one does


def test_a_run_that_is_not_kept_is_neither_hashed_nor_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("nobody asked for it")

    for name in ("checkpoints._digest", "chains.capture", "chains.joined"):
        monkeypatch.setattr(f"hamiltree.running.{name}", refuse)
    fitted(SHORT)
    fitted(SHORT, target_rhat=1.0001, max_draws=60)
    for kept in ({"warm_start": True}, {"checkpoint": tmp_path / "run.nc"}):
        monkeypatch.setattr(Checkpoints, "begin", lambda *_: None)
        with pytest.raises(AssertionError, match="nobody asked for it"):
            fitted(SHORT, **kept)
