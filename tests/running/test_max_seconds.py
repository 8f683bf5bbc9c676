"""max_seconds: a run ends in time, with the first draws of a longer one."""

from __future__ import annotations

import time

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import make_cgm
from hamiltree.methods import SMC
from hamiltree.posterior import Posterior
from hamiltree.running import chains as chains_module
from hamiltree.running import interrupts, takeover

from ..support.resuming import data_of

SHORT = {"n_chains": 2, "n_warmup": 60, "random_state": 1, "progress": False}


class Clock:
    """A clock that stands still until it is moved on."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Each batch of a chain, of five iterations, takes one second of the limit's clock."""
    clock = Clock()
    monkeypatch.setattr(interrupts, "time", clock)

    def pace(self, n, seconds):
        clock.now += 1.0
        self.batch = 5

    monkeypatch.setattr(chains_module.Chains, "_pace", pace)
    return clock


def test_the_draws_are_the_first_of_a_longer_run(clock):
    X, y = data_of("classification")
    model = BayesianTreeClassifier(n_draws=400, max_seconds=60, **SHORT).fit(X, y)
    posterior = model.posterior_
    assert posterior.info.stopped == "max_seconds"
    assert 50 <= posterior.n_draws <= 120
    whole = BayesianTreeClassifier(n_draws=400, **SHORT).fit(X, y).posterior_
    first = whole.log_posterior[:, : posterior.n_draws]
    np.testing.assert_array_equal(posterior.log_posterior, first)


def test_it_says_how_far_it_got(clock, tmp_path):
    X, y = data_of("classification")
    run = {"n_draws": 100, "target_rhat": 1.0001, "max_seconds": 200}
    model = BayesianTreeClassifier(**run, **SHORT).fit(X, y)
    posterior = model.posterior_
    assert posterior.info.stopped == "max_seconds"
    assert posterior.n_draws > 20, "time is the only limit"
    sentence = posterior.diagnose().sentence
    assert f"max_seconds=200 ended the run at {posterior.n_draws} draws per chain" in sentence
    assert "allow more time: max_seconds=800" in sentence
    assert "ended by max_seconds" in posterior.summary()
    posterior.save(tmp_path / "model.nc")
    read = Posterior.load(tmp_path / "model.nc")
    assert (read.info.stopped, read.info.max_seconds) == ("max_seconds", 200.0)
    assert read.diagnose().sentence == sentence


def test_a_run_that_is_done_in_time_is_as_without(clock):
    X, y = data_of("regression")
    in_time = BayesianTreeRegressor(n_draws=30, max_seconds=1e6, **SHORT).fit(X, y).posterior_
    without = BayesianTreeRegressor(n_draws=30, **SHORT).fit(X, y).posterior_
    assert in_time.info.stopped == "n_draws"
    np.testing.assert_array_equal(in_time.log_posterior, without.log_posterior)


def test_an_end_in_warm_up_says_how_long_it_takes(clock, tmp_path):
    X, y = data_of("classification")
    model = BayesianTreeClassifier(n_draws=30, max_seconds=6, **SHORT)
    message = r"ended during warm-up, after \d+ of 60 iterations.*raise max_seconds \(warm-up alone"
    with pytest.raises(RuntimeError, match=message):
        model.fit(X, y)
    model.set_params(checkpoint=tmp_path / "run.nc")
    with pytest.raises(RuntimeError, match="the same call resumes from"):
        model.fit(X, y)
    model.set_params(max_seconds=1e6).fit(X, y)
    whole = BayesianTreeClassifier(n_draws=30, **SHORT).fit(X, y)
    np.testing.assert_array_equal(model.posterior_.log_posterior, whole.posterior_.log_posterior)


def test_an_end_in_the_warm_up_of_replicas_keeps_the_draws_before(clock, monkeypatch):
    monkeypatch.setattr(takeover, "LOOKS", ((20, 0.0),))
    monkeypatch.setattr(takeover, "FEWEST_WARMUP", 1)
    monkeypatch.setattr(takeover, "WARMUP_SHARE", 2.0)
    X, y = data_of("classification")
    model = BayesianTreeClassifier(n_draws=100, max_seconds=40, **SHORT).fit(X, y)
    posterior = model.posterior_
    assert (posterior.n_draws, posterior.info.n_warmup, posterior.info.powers) == (20, 60, ())
    assert posterior.info.why_replicas.endswith("the run ended before they had made a draw")
    assert "Replicas were to be added" in posterior.diagnose().sentence
    assert posterior.predict_mean(X).shape == (len(X), 3)


def test_replicas_that_would_not_be_done_in_time_are_not_added(monkeypatch):
    monkeypatch.setattr(takeover, "LOOKS", ((20, 0.0),))
    monkeypatch.setattr(takeover, "FEWEST_WARMUP", 1)
    X, y = data_of("classification")
    in_time = BayesianTreeClassifier(n_draws=60, max_seconds=600, **SHORT).fit(X, y).posterior_
    assert len(in_time.info.powers) >= takeover.FEWEST
    monkeypatch.setattr(takeover, "WARMUP_SHARE", 1e-9)
    late = BayesianTreeClassifier(n_draws=60, max_seconds=600, **SHORT).fit(X, y).posterior_
    assert (late.info.powers, late.info.n_warmup, late.n_draws) == ((), 60, 60)
    assert late.info.why_replicas.endswith("but max_seconds leaves no time for them")
    always = BayesianTreeClassifier(n_draws=60, **SHORT).fit(X, y).posterior_
    assert always.info.powers == in_time.info.powers, "without a limit there is time"


def test_it_ends_in_time():
    """By the real clock, within a batch of each chain, with room for a busy machine."""
    data = make_cgm(400, random_state=0)
    model = BayesianTreeRegressor(h=0, n_draws=10**6, max_seconds=1.5, random_state=0)
    model.set_params(n_draws=50).fit(data.data, data.target)  # compiles
    begun = time.perf_counter()
    model.set_params(n_draws=10**6).fit(data.data, data.target)
    assert model.posterior_.info.stopped == "max_seconds"
    assert 1.5 <= model.posterior_.info.seconds <= time.perf_counter() - begun < 8.0


def test_chains_on_other_machines_come_back_in_time():
    data = make_cgm(200, random_state=0)
    model = BayesianTreeRegressor(
        h=0, n_chains=2, n_warmup=50, n_draws=50, max_seconds=4.0, random_state=0
    )
    with joblib.parallel_config("loky", n_jobs=2):
        clone(model).set_params(max_seconds=None).fit(data.data, data.target)  # starts them
        model.set_params(n_draws=10**6).fit(data.data, data.target)
    assert model.posterior_.info.stopped == "max_seconds"
    assert model.posterior_.n_draws > 50


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), "long"])
def test_it_is_a_positive_number(wrong):
    X, y = data_of("classification")
    with pytest.raises(ValueError, match="max_seconds"):
        BayesianTreeClassifier(max_seconds=wrong).fit(X, y)


def test_particles_have_nothing_to_keep():
    X, y = data_of("classification")
    with pytest.raises(ValueError, match="does not use max_seconds"):
        BayesianTreeClassifier(method=SMC(), max_seconds=10).fit(X, y)
