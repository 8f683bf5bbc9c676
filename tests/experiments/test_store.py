"""The store of finished runs, and the runner that fills it."""

from __future__ import annotations

import pickle
import shutil

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend
from rich.console import Console

from hamiltree.datasets import load_paper_split
from hamiltree.experiments import restarts, splits, store
from hamiltree.experiments.configurations import METHODS
from hamiltree.experiments.runner import Job, StoppedError, complete
from hamiltree.experiments.store import Result, Store, key_of

QUIET = Console(quiet=True)


def test_store_keeps_values_and_arrays(tmp_path):
    kept = Store(tmp_path / "new")
    config = {"kind": "x", "parameters": {"h": 0.1}}
    assert kept.load(config) is None
    kept.save(config, Result({"a": 0.1, "b": float("inf")}, {"v": np.arange(3)}))
    kept.close()
    again = Store(tmp_path / "new").load({"parameters": {"h": 0.1}, "kind": "x"})
    assert again.values == {"a": 0.1, "b": float("inf")}
    np.testing.assert_array_equal(again.arrays["v"], np.arange(3))


def test_keys_know_the_configuration_the_version_and_the_code(monkeypatch):
    config = {"kind": "x", "seed": 1}
    keys = {key_of(config), key_of({**config, "seed": 2})}
    monkeypatch.setattr(store, "__version__", "99")
    keys.add(key_of(config))
    monkeypatch.setattr(store, "sources_digest", lambda: "other")
    keys.add(key_of(config))
    assert len(keys) == 4


def test_every_source_counts(tmp_path):
    """Also those in folders of folders, as the compiled code is, and new ones."""
    package = tmp_path / "package"
    shutil.copytree(store.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "data"))

    def digest():
        store.sources_digest.cache_clear()
        return store.sources_digest(package)

    seen = {store.sources_digest()}
    assert digest() in seen, "where the library stands does not matter"
    for name in ("core/tree/priors.py", "samplers/cgm.py", "running/chains.py", "ensemble.py"):
        with open(package / name, "a") as file:
            file.write("# other code")
        assert digest() not in seen
        seen.add(digest())
    (package / "core" / "new.py").touch()
    assert digest() not in seen
    store.sources_digest.cache_clear()


def test_data_digest_sees_every_cell():
    split = load_paper_split("iris")
    before = store.data_digest(split)
    split.y_test[3] += 1
    assert store.data_digest(split) != before


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / store.FILE).write_text("not a database, and long enough to be taken for one" * 50)
    with pytest.raises(OSError, match="choose another --out"):
        Store(tmp_path)


def doubled(config, split):
    return Result({"twice": 2.0 * config["n"]})


def test_runner_runs_what_is_missing_and_stops_clean(tmp_path):
    split = load_paper_split("iris")
    calls = []

    def function(config, split):
        if config["n"] == 3 and 3 not in calls:
            calls.append(3)
            raise KeyboardInterrupt
        calls.append(config["n"])
        return doubled(config, split)

    jobs = [Job({"n": n}, split, function) for n in range(6)]
    kept = Store(tmp_path)
    with pytest.raises(StoppedError, match="3 of 6 are kept"):
        complete(jobs, kept, 1, QUIET, "things")
    complete(jobs, kept, 1, QUIET, "things")
    assert calls == [0, 1, 2, 3, 3, 4, 5]
    assert [kept.load(job.config).values["twice"] for job in jobs] == [0, 2, 4, 6, 8, 10]


def test_runner_uses_the_backend_of_the_context(tmp_path):
    """As with Dask or Ray: theirs is used, though threads are what we prefer."""
    used = []

    class Watched(ThreadingBackend):
        def submit(self, *arguments, **options):
            used.append(1)
            return super().submit(*arguments, **options)

    joblib.register_parallel_backend("watched", Watched)
    jobs = [Job({"n": n}, load_paper_split("iris"), doubled) for n in range(3)]
    with joblib.parallel_config("watched"):
        complete(jobs, Store(tmp_path), 2, QUIET, "things")
    assert len(used) == 3
    assert len(Store(tmp_path).keys()) == 3


def test_jobs_can_be_sent_to_other_machines():
    split = load_paper_split("iris")
    configs = restarts.restart_configs([split], METHODS, "both", 1)
    jobs = [*restarts.restart_jobs(configs), *restarts.burn_in_jobs(configs)]
    for job in (*jobs, *splits.split_jobs([split], METHODS, 1, 2)):
        assert pickle.loads(pickle.dumps(job)).config == job.config


def test_progress_lines_say_what_is_left(tmp_path, capsys):
    jobs = [Job({"n": n}, load_paper_split("iris"), doubled) for n in range(2)]
    complete(jobs, Store(tmp_path), 1, Console(), "things")
    complete(jobs, Store(tmp_path), 1, Console(), "things")
    text = capsys.readouterr().out
    assert "things: 2 of 2" in text
    assert "all 2 are there already" in text
