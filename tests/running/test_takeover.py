"""replicas="auto": when replicas take over, how many, and that the draws stay what they are."""

from __future__ import annotations

from dataclasses import replace

import joblib
import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import CGM, HMCDF, SMC, WU
from hamiltree.running import takeover
from hamiltree.running.run import Problem, build_sampler
from hamiltree.samplers.tempering import arrays_of

from ..reference.exact import exact_toy
from ..reference.model import TOYS
from ..statistical.battery import assert_exact, run_toy
from ..support.configuring import configured, parameters
from ..support.fake_draws import fake_draws
from ..support.resuming import arrays_of as arrays_of_draws
from ..support.resuming import data_of, same_arrays

ESTIMATORS = {"classification": BayesianTreeClassifier, "regression": BayesianTreeRegressor}
SHORT = {"n_chains": 2, "n_warmup": 40, "n_draws": 50, "max_leaves": 6, "random_state": 1}
KINDS = {
    "hmc-df": {"method": "hmc-df"},
    "learned h": {"method": "hmc-df", "h": "learn"},
    "hmc-dfi": {"method": "hmc-dfi"},
    "cgm": {"method": "cgm"},
    "wu": {"method": "wu", "triples": 2},
}


@pytest.fixture
def always(monkeypatch):
    """Any chains are taken to be in different modes, after 20 draws."""
    monkeypatch.setattr(takeover, "LOOKS", ((20, 0.0),))
    monkeypatch.setattr(takeover, "FEWEST_WARMUP", 1)


def fitted(kind: str, task: str = "classification", **more):
    X, y = data_of(task)
    return ESTIMATORS[task](**parameters(**(SHORT | KINDS[kind] | more))).fit(X, y)


def draws_of(model) -> dict:
    return arrays_of_draws(model.posterior_.draws)


# ------------------------------------------------------------------ the decision


def judged(log_likelihood: np.ndarray, n_leaves: np.ndarray | None = None, **values):
    n_chains, n_draws = log_likelihood.shape
    leaves = np.full(log_likelihood.shape, 2) if n_leaves is None else n_leaves
    draws = replace(
        fake_draws(0, n_chains=n_chains, n_draws=n_draws),
        log_likelihood=log_likelihood,
        n_leaves=leaves,
    )
    seeds = np.random.SeedSequence(0).spawn(n_chains)
    decided = takeover.Takeover(None, configured(**values), 500, seeds)
    assert decided.is_open
    return decided.decide(draws), decided


def test_chains_that_mix_need_no_replicas(rng):
    replicas, decided = judged(rng.normal(size=(4, 250)))
    assert (replicas, decided.reason, decided.n_judged) == (1, "", 1_000)


def test_a_run_that_goes_on_is_judged_once_more(rng):
    """By more draws, which leave slowness less to explain."""
    levels = np.array([-20.0, -21.0, -20.0, -22.0])[:, None]
    noise = rng.normal(size=(4, 1_000))
    replicas, decided = judged((levels + noise)[:, :250])
    assert replicas == 1
    draws = replace(
        fake_draws(0, n_chains=4, n_draws=1_000),
        log_likelihood=levels + noise,
        n_leaves=np.full((4, 1_000), 2),
    )
    assert decided.decide(draws) >= takeover.FEWEST
    assert not decided.is_open
    assert "over the first 1000 draws" in decided.reason


def test_chains_that_mix_are_judged_at_each_look_and_then_no_more(rng):
    _, decided = judged(rng.normal(size=(4, 250)))
    for n, _ in takeover.LOOKS[1:]:
        assert (decided.is_open, decided.n_judged) == (True, n)
        draws = replace(
            fake_draws(0, n_chains=4, n_draws=n),
            log_likelihood=rng.normal(size=(4, n)),
            n_leaves=np.full((4, n), 2),
        )
        assert decided.decide(draws) == 1
    assert not decided.is_open


def test_levels_that_do_not_mix_are_modes(rng):
    levels = np.array([-93.0, -113.0, -125.0, -125.0])
    replicas, decided = judged(levels[:, None] + 4.0 * rng.normal(size=(4, 250)))
    assert replicas >= takeover.FEWEST
    assert "R-hat of the log-likelihood over the first 250 draws of 4 chains was" in decided.reason


def test_sizes_that_do_not_mix_are_modes(rng):
    leaves = np.array([11, 11, 13, 17])[:, None] + rng.integers(0, 2, size=(4, 250))
    replicas, decided = judged(rng.normal(size=(4, 250)), leaves)
    assert replicas >= takeover.FEWEST
    assert "R-hat of the number of leaves" in decided.reason


def test_wider_log_likelihoods_need_more_replicas(rng):
    """Normal with sd s: the barrier per unit of log power is s / sqrt(pi)."""
    found = [takeover.replicas_for(s * rng.normal(size=(4, 4_000))) for s in (0.1, 1.0, 2.0, 1e3)]
    wanted = [1 + np.ceil(s / np.sqrt(np.pi) * np.log(10.0) / 0.5) for s in (1.0, 2.0)]
    assert found == [takeover.FEWEST, *wanted, takeover.MOST]


@pytest.mark.parametrize(
    ("method", "open_at_all"),
    [
        (HMCDF(), True),
        (CGM(), True),
        (WU(), True),
        (HMCDF(replicas=1), False),
        (HMCDF(replicas=3), False),
        (HMCDF(moves="prior"), False),
        (CGM(moves="prior"), False),
        (HMCDF(likelihood_power=0.0), False),
        (HMCDF.paper(), False),
        (WU.paper(), False),
        (SMC(), False),
    ],
    ids=repr,
)
def test_which_methods_add_replicas(method, open_at_all):
    assert method.adds_replicas == open_at_all


def test_one_chain_and_little_warm_up_cannot_be_judged():
    seeds = np.random.SeedSequence(0).spawn(2)
    assert not takeover.Takeover(None, configured(), 500, seeds[:1]).is_open
    assert not takeover.Takeover(None, configured(), 99, seeds).is_open


def test_a_warm_up_is_as_short_as_the_time_left_asks_for():
    """At .01 s an iteration and six replicas, one of their warm-up is taken to need .06 s."""
    for left, expected in ((1e9, 500), (60.0, 333), (18.1, 100)):
        decided = takeover.Takeover(None, configured(), 500, np.random.SeedSequence(0).spawn(2))
        assert decided.fits(6, 0.01, left)
        assert (decided.n_warmup, decided.reason) == (expected, "")
    late = takeover.Takeover(None, configured(), 500, np.random.SeedSequence(0).spawn(2))
    assert not late.fits(6, 0.01, 17.9)
    assert (late.n_warmup, late.reason) == (500, ", but max_seconds leaves no time for them")
    assert late.fits(6, 0.01, np.inf)
    assert late.n_warmup == 500


# ------------------------------------------------------------------ the draws


def test_where_chains_agree_nothing_changes():
    X, y = data_of("classification")
    long = {"n_chains": 2, "n_warmup": 100, "n_draws": 300, "random_state": 0}
    auto, none = (
        BayesianTreeClassifier(method=HMCDF(replicas=replicas), **long).fit(X, y)
        for replicas in ("auto", 1)
    )
    assert auto.posterior_.info.powers == ()
    assert same_arrays(draws_of(auto), draws_of(none))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", KINDS)
def test_draws_do_not_depend_on_threads_stops_or_files(kind, tmp_path):
    whole = fitted(kind)
    info = whole.posterior_.info
    assert len(info.powers) >= takeover.FEWEST
    assert info.n_warmup == 40 + 20 + 40
    assert "were added to each chain, because R-hat of" in whole.posterior_.diagnose().sentence
    assert same_arrays(draws_of(whole), draws_of(fitted(kind, n_jobs=2)))
    path = tmp_path / "run.nc"
    for n_draws in (10, 20, 30, 50):  # before the takeover, at it, and twice after it
        part = fitted(kind, n_draws=n_draws, checkpoint=path)
    assert same_arrays(draws_of(whole), draws_of(part))
    assert part.posterior_.info.why_replicas == info.why_replicas
    assert part.posterior_.info.powers == info.powers


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("kind", ["hmc-df", "wu"])
def test_so_they_do_not_where_time_allows_a_shorter_warm_up_alone(kind, tmp_path, monkeypatch):
    whole = fitted(kind)

    def shorter(self, *_):
        self.n_warmup = 25
        return True

    with monkeypatch.context() as patch:
        patch.setattr(takeover.Takeover, "fits", shorter)
        short = fitted(kind)
        with joblib.parallel_config("loky", n_jobs=2):
            assert same_arrays(draws_of(short), draws_of(fitted(kind)))
        path = tmp_path / "run.nc"
        for n_draws in (10, 30):  # before the takeover, and after it
            fitted(kind, n_draws=n_draws, checkpoint=path)
    assert same_arrays(draws_of(short), draws_of(fitted(kind, checkpoint=path)))
    assert (whole.posterior_.info.n_warmup, short.posterior_.info.n_warmup) == (100, 85)
    assert not same_arrays(draws_of(short), draws_of(whole))


@pytest.mark.usefixtures("always")
def test_warm_start_goes_on_beyond_it():
    X, y = data_of("regression")
    model = BayesianTreeRegressor(**(SHORT | {"n_draws": 10}), h=0.1, warm_start=True).fit(X, y)
    assert model.posterior_.info.powers == ()
    for n_draws in (30, 50):
        model.set_params(n_draws=n_draws).fit(X, y)
    whole = BayesianTreeRegressor(**SHORT, h=0.1).fit(X, y)
    assert same_arrays(draws_of(model), draws_of(whole))


def test_a_run_goes_on_that_has_enough_draws_to_be_judged_twice(monkeypatch):
    """At once, when it is resumed."""
    monkeypatch.setattr(takeover, "LOOKS", ((10, np.inf), (20, np.inf)))
    monkeypatch.setattr(takeover, "FEWEST_WARMUP", 1)
    X, y = data_of("regression")
    model = BayesianTreeRegressor(**(SHORT | {"n_draws": 20}), h=0.1, warm_start=True).fit(X, y)
    for n_draws in (30, 50):
        model.set_params(n_draws=n_draws).fit(X, y)
    whole = BayesianTreeRegressor(**SHORT, h=0.1).fit(X, y)
    assert whole.posterior_.info.powers == ()
    assert same_arrays(draws_of(model), draws_of(whole))


@pytest.mark.usefixtures("always")
def test_other_processes_make_the_same_draws():
    here = fitted("hmc-df")
    with joblib.parallel_config("loky", n_jobs=2):
        there = fitted("hmc-df")
    assert there.posterior_.info.powers == here.posterior_.info.powers
    assert same_arrays(draws_of(there), draws_of(here))


@pytest.mark.usefixtures("always")
def test_the_posterior_is_exact_after_it(seed):
    sampled = run_toy(
        TOYS["regression"](),
        method="hmc-df",
        h=0.1,
        n_draws=4_000,
        seed=seed,
        configuration="informed",
        replicas="auto",
    )
    assert "exchange" in sampled.acceptance
    assert_exact(sampled, exact_toy("regression", "hmc-df", 0.1), level=1e-4)


@pytest.mark.parametrize("method", ["hmc-df", "cgm"])
def test_replicas_begin_where_the_chain_was(method):
    toy = TOYS["two-classes"]()
    problem = Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)
    configuration = configured(method)
    sampler = build_sampler(problem, configuration, 30, 0)
    seeds = np.random.SeedSequence(1).spawn(2)
    chains = [sampler.start(np.random.default_rng(seed)) for seed in seeds]
    for chain in chains:
        chain.advance(60)
    taken = takeover.Takeover(sampler, configuration, 30, seeds)
    taken.n_warmup = 12  # as where the time is limited
    for new, old in zip(taken.start(5, 60, chains), chains, strict=True):
        assert len(new.rungs) == 5
        assert new.n_warmup == new.rungs[0].plan.n_warmup == 12, "or rungs would adapt in sampling"
        for rung in new.rungs:
            for there, here in zip(arrays_of(rung), arrays_of(old), strict=True):
                np.testing.assert_array_equal(there, here)
                assert there is not here
            assert rung.log_likelihood() == pytest.approx(old.log_likelihood(), rel=1e-10)
    assert (taken.replicas, taken.at, taken.configuration.method.replicas) == (5, 60, 5)
