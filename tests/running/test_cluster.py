"""Chains in other processes, through joblib: the draws of a run here, also if a worker dies."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import make_cgm
from hamiltree.running import chains, cluster
from hamiltree.running.checkpoints import read

from ..support.configuring import parameters
from ..support.resuming import METHODS, arrays_of, data_of, same_arrays

ESTIMATORS = {"classification": BayesianTreeClassifier, "regression": BayesianTreeRegressor}
SHORT = {"n_chains": 3, "n_warmup": 40, "n_draws": 30, "max_leaves": 6, "random_state": 1}


def draws_of(model) -> dict:
    return arrays_of(model.posterior_.draws)


def test_only_a_backend_that_was_chosen_takes_the_chains_elsewhere():
    assert not cluster.is_asked_for(None)
    with joblib.parallel_config(n_jobs=2):
        assert not cluster.is_asked_for(None)
    with joblib.parallel_config("threading"):
        assert not cluster.is_asked_for(2)
    with joblib.parallel_config("loky"):
        assert cluster.is_asked_for(None)
        assert cluster.is_asked_for(2)
        assert not cluster.is_asked_for(1), "a fit inside a task stays there"


def test_processes_make_the_same_draws(tmp_path, monkeypatch):
    """Towards a goal, which sends states back and forth, and with checkpoints."""
    monkeypatch.setattr(chains, "FIRST_ROUND", 25)
    X, y = data_of("classification")
    goal = {"target_rhat": 1.0001, "max_draws": 60}
    path = tmp_path / "run.nc"
    with joblib.parallel_config("loky", n_jobs=2):
        there = BayesianTreeClassifier(**SHORT, **goal, checkpoint=path).fit(X, y)
    here = BayesianTreeClassifier(**SHORT, **goal).fit(X, y)
    assert there.posterior_.info.stopped == "max_draws"
    assert same_arrays(draws_of(there), draws_of(here))
    # and what was begun there goes on here
    longer = SHORT | {"n_draws": 80}
    on = BayesianTreeClassifier(**longer, checkpoint=path).fit(X, y)
    assert same_arrays(draws_of(on), draws_of(BayesianTreeClassifier(**longer).fit(X, y)))


@pytest.mark.long
@pytest.mark.parametrize("task", ESTIMATORS)
@pytest.mark.parametrize("kind", METHODS)
def test_processes_make_the_same_draws_by_every_method(kind, task):
    X, y = data_of(task)
    model = ESTIMATORS[task](**parameters(**SHORT, **METHODS[kind]))
    here = draws_of(model.fit(X, y))
    with joblib.parallel_config("loky", n_jobs=2):
        assert same_arrays(draws_of(model.fit(X, y)), here)


def test_an_error_of_a_chain_is_told_and_not_tried_again(monkeypatch):
    X, y = data_of("classification")
    wrong = SHORT | {"method": "cgm", "max_leaves": 20, "min_leaves": 19}
    with (
        joblib.parallel_config("loky", n_jobs=2),
        pytest.raises(ValueError, match="min_leaves"),
    ):
        BayesianTreeClassifier(**parameters(**wrong)).fit(X[:6], y[:6])


def test_workers_that_keep_dying_end_the_run_in_the_end(monkeypatch):
    """A few losses in a row are made good, but not for ever."""
    X, y = data_of("classification")
    tried = []

    class Dying:
        def __init__(self, **options):
            pass

        def __call__(self, tasks):
            tried.append([call[1][-3] for call in tasks])  # numbers of the chains
            raise RuntimeError("the worker died")

    monkeypatch.setattr(cluster, "Parallel", Dying)
    with joblib.parallel_config("loky"), pytest.raises(RuntimeError, match="the worker died"):
        BayesianTreeClassifier(**SHORT).fit(X, y)
    assert tried == [[0, 1, 2]] * cluster.ATTEMPTS


def test_an_interrupt_keeps_what_has_come_back(tmp_path, monkeypatch):
    """Ctrl-C when one chain is back and two are not: the checkpoint has each where it was."""
    X, y = data_of("classification")
    monkeypatch.setattr(chains, "FIRST_ROUND", 60)
    back = chains.advance_on_cluster

    def impatient(*arguments):
        for chain in back(*arguments):
            yield chain
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(chains, "advance_on_cluster", impatient)
    path = tmp_path / "run.nc"
    model = BayesianTreeClassifier(**SHORT | {"n_draws": 40}, checkpoint=path)
    with (
        joblib.parallel_config("loky", n_jobs=2),
        pytest.raises(KeyboardInterrupt, match="lost"),
    ):
        model.fit(X, y)
    assert sorted(read(path).done) == [0, 0, 60]
    monkeypatch.undo()
    whole = BayesianTreeClassifier(**SHORT | {"n_draws": 40}).fit(X, y)
    assert same_arrays(draws_of(model.fit(X, y)), draws_of(whole))


# ------------------------------------------------------------------ Dask


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # a killed worker makes Dask warn of many things
def test_a_dask_cluster_that_loses_a_worker_makes_the_same_draws():
    """8 chains on 3 worker processes, one of which is killed while it runs a chain."""
    distributed = pytest.importorskip("distributed", reason="pip install dask distributed")
    data = make_cgm(200, random_state=0)
    parameters = SHORT | {"n_chains": 8, "n_draws": 1500, "max_leaves": 16}
    here = BayesianTreeRegressor(**parameters).fit(data.data, data.target)
    killed, sent = [], []

    def kill_one(client, pids) -> None:
        """The first worker that has been busy for a second."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not killed:
            for address, tasks in client.processing().items():
                if address in pids and any("_advance" in str(task) for task in tasks):
                    time.sleep(1.0)
                    if client.processing().get(address):
                        os.kill(pids[address], signal.SIGKILL)
                        killed.append(address)
                        break
            time.sleep(0.05)

    def counted(value, **options):
        sent.append(np.shape(value))
        return scatter(value, **options)

    dask = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with dask, dask.get_client() as client:
        client.wait_for_workers(3)
        pids = client.run(os.getpid)
        assert len(set(pids.values()) | {os.getpid()}) == 4
        scatter, client.scatter = client.scatter, counted
        killer = threading.Thread(target=kill_one, args=(client, pids))
        with joblib.parallel_config("dask"):
            killer.start()
            there = BayesianTreeRegressor(**parameters).fit(data.data, data.target)
        killer.join()
        assert killed, "no worker was killed while it ran a chain"
    assert same_arrays(draws_of(there), draws_of(here))
    # the data went out once; twice if the only worker that had them was the one that died
    assert 1 <= sent.count(data.data.T.shape) <= 2
