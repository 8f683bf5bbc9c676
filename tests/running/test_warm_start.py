"""``warm_start``: more draws of the same chains, equal to one longer run; nothing else goes on."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor

from ..support.configuring import parameters
from ..support.resuming import METHODS, data_of
from .test_checkpoint import SHORT, same_runs


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("hmc-df", "hmc-dfi", "cgm") else pytest.param(kind, marks=pytest.mark.long)
        for kind in METHODS
        if kind != "smc"
    ],
)
def test_more_draws_equal_one_longer_run(kind):
    X, y = data_of("regression")
    given = parameters(**SHORT | METHODS[kind])
    model = BayesianTreeRegressor(**given, warm_start=True).fit(X, y)
    seconds = model.posterior_.info.seconds
    for n_draws in (45, 70):
        model.set_params(n_draws=n_draws).fit(X, y)
    whole = BayesianTreeRegressor(**given | {"n_draws": 70}).fit(X, y)
    assert same_runs(model.posterior_, whole.posterior_)
    assert model.posterior_.info.seconds > seconds


def test_it_survives_a_pickle_and_not_a_clone():
    X, y = data_of("classification")
    whole = BayesianTreeClassifier(**SHORT | {"n_draws": 60}).fit(X, y)
    model = BayesianTreeClassifier(**SHORT, warm_start=True).fit(X, y)
    back = pickle.loads(pickle.dumps(model)).set_params(n_draws=60).fit(X, y)
    assert same_runs(back.posterior_, whole.posterior_)
    fresh = clone(model).set_params(random_state=5).fit(X, y)  # another seed: it starts anew
    assert not np.array_equal(fresh.posterior_.log_posterior, model.posterior_.log_posterior)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_a_seed_left_to_others_stays(random_state):
    X, y = data_of("classification")
    model = BayesianTreeClassifier(**SHORT | {"random_state": random_state}, warm_start=True)
    first = model.fit(X, y).posterior_
    on = model.set_params(n_draws=50).fit(X, y).posterior_
    np.testing.assert_array_equal(on.log_posterior[:, :30], first.log_posterior)
    assert on.n_draws == 50


def test_another_run_is_refused_in_words():
    X, y = data_of("classification")
    model = BayesianTreeClassifier(**SHORT, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"which was another: y has other values\. To continue"):
        clone_of(model).fit(X, np.roll(y, 1))
    for other, message in (
        ({"beta_split": 1.5}, "beta_split was 2.0 and is 1.5.*set warm_start=False"),
        ({"n_warmup": 50}, "n_warmup was 40 and is 50"),
        ({"random_state": 2}, "random_state"),
        ({"n_draws": 10}, "has 30 draws per chain already, more than n_draws=10"),
        (
            {"method": "smc", "n_warmup": None},
            "method='smc' does not use warm_start.* has no chains to continue",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            clone_of(model).set_params(**other).fit(X, y)
    anew = clone_of(model).set_params(warm_start=False, n_draws=10).fit(X, y)
    assert anew.posterior_.n_draws == 10


def clone_of(model):
    """With what it has fitted."""
    return pickle.loads(pickle.dumps(model))


def test_a_run_towards_a_goal_can_go_on():
    X, y = data_of("classification")
    goal = {"target_rhat": 1.0001, "max_draws": 60}
    model = BayesianTreeClassifier(**SHORT, **goal, warm_start=True).fit(X, y)
    assert model.posterior_.info.stopped == "max_draws"
    model.set_params(max_draws=None, target_rhat=None, n_draws=90).fit(X, y)
    whole = BayesianTreeClassifier(**SHORT | {"n_draws": 90}).fit(X, y)
    assert same_runs(model.posterior_, whole.posterior_)
    # back to fewer draws than the chains have made: the draws beyond are kept for later
    model.set_params(n_draws=30, target_rhat=1.0001, max_draws=60).fit(X, y)
    assert model.posterior_.n_draws == 60
    model.set_params(n_draws=90, target_rhat=None, max_draws=None).fit(X, y)
    np.testing.assert_array_equal(model.posterior_.log_posterior, whole.posterior_.log_posterior)


def test_an_interrupted_run_can_go_on(monkeypatch):
    X, y = data_of("classification")
    model = BayesianTreeClassifier(**SHORT | {"n_draws": 300})
    from hamiltree.running.chains import Chains

    advance = Chains._advance

    def impatient(self, *arguments):
        advance(self, *arguments)
        if self.n_draws > 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("hamiltree.running.chains.BATCH_SECONDS", 0.001)
    monkeypatch.setattr(Chains, "_advance", impatient)
    with pytest.warns(UserWarning, match="fit again with warm_start=True to continue"):
        model.fit(X, y)
    assert 20 < model.posterior_.n_draws < 300
    monkeypatch.undo()
    whole = BayesianTreeClassifier(**SHORT | {"n_draws": 300}).fit(X, y)
    model.set_params(warm_start=True).fit(X, y)
    assert same_runs(model.posterior_, whole.posterior_)


def test_a_fit_that_kept_no_chains_is_not_begun_anew_in_silence():
    X, y = data_of("classification")
    model = BayesianTreeClassifier(**SHORT).fit(X, y)
    with pytest.raises(
        ValueError, match="no chains to continue, because the last fit did not keep"
    ):
        model.set_params(warm_start=True).fit(X, y)
    assert clone(model).fit(X, y).posterior_.n_draws == 30
