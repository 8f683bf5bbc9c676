"""What the experiments measure, and the burn-in that they watch."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import trapezoid

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import load_paper_split
from hamiltree.datasets.paper import Split, generate_split
from hamiltree.experiments import measures, restarts
from hamiltree.experiments.configurations import HMC
from hamiltree.methods import HMCDF
from hamiltree.posterior.draws import RunInfo
from hamiltree.running.chains import Chains

from ..support.configuring import parameters


def test_calibration_error_by_hand():
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.4, 0.6], [0.2, 0.8]])
    hits = np.array([[True, False], [False, True], [False, True], [False, True]])
    # bins: two rows at .95 of which one is right; .6 right; .8 right
    expected = (2 * abs(0.95 - 0.5) + abs(0.6 - 1) + abs(0.8 - 1)) / 4
    assert measures.calibration_error(probabilities, hits) == pytest.approx(expected)
    sure = np.eye(2)[[0, 1, 0]]
    assert measures.calibration_error(sure, sure.astype(bool)) == 0


def test_probability_measures_by_hand():
    values = measures.probability_measures(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([0, 1]), np.arange(3)
    )
    assert values["log_score"] == pytest.approx((math.log(0.7) + math.log(0.1)) / 2)
    assert values["brier"] == pytest.approx((0.09 + 0.04 + 0.01 + 0.01 + 0.81 + 0.64) / 2)


def test_acceptance_counts_the_whole_chain_and_staying():
    def counts(accepted, proposed):
        return np.array([accepted]), np.array([proposed])

    info = RunInfo(
        acceptance={
            "warmup": {"grow": counts(1, 2), "stay": counts(3, 3), "feature": counts(0, 90)},
            "sampling": {"grow": counts(0, 5), "stay": counts(10, 10), "iteration": counts(1, 1)},
        },
        stats={}, seconds=0.0, stopped="n_draws",
    )  # fmt: skip
    values = measures.acceptance_measures(info)
    assert values["acceptance_pct"] == pytest.approx(100 * 14 / 20)
    assert values["acceptance_grow_pct"] == pytest.approx(100 / 7)
    assert values["acceptance_iteration_pct"] == 100


def test_leaves_without_the_constant_are_those_of_the_posterior_without_it():
    leaves = np.array([[2, 3, 3, 5]])
    posterior = SimpleNamespace(
        n_classes=3, n_leaves=leaves, weights=np.full((1, 4), 0.25),
        configuration=HMCDF(class_prior=1.0).configured(),
    )  # fmt: skip
    # Gamma(3) = 2 a leaf: draws weigh 2^-leaves
    weights = 0.5 ** leaves[0]
    expected = weights @ leaves[0] / weights.sum()
    assert measures.leaves_without_constant(posterior) == pytest.approx(expected)


@pytest.fixture(scope="module")
def regression() -> Split:
    whole = generate_split("cgm", seed=3)
    return Split("cgm", whole.X[:80], whole.y[:80], whole.X_test[:30], whole.y_test[:30], "part")


def fit_regressor(split, method, **changes):
    model = BayesianTreeRegressor(
        **parameters(
            method=method, n_chains=1, n_warmup=20, n_draws=30, random_state=0, n_jobs=1,
            standardize=False, **changes,
        )
    )  # fmt: skip
    return model.fit(split.X, split.y).posterior_


@pytest.mark.parametrize("method", ["hmc-df", "cgm", "smc"])
def test_log_density_integrates_to_one_and_agrees_with_the_quantiles(regression, method):
    posterior = fit_regressor(regression, method)
    row = regression.X_test[:1]
    y = np.linspace(-60, 80, 140_001)
    density = np.exp(measures.log_density(posterior, np.repeat(row, len(y), axis=0), y))
    assert trapezoid(density, y) == pytest.approx(1, abs=1e-3)
    (low,), (high,) = posterior.predict_quantiles(row, [0.2, 0.7], n_jobs=1)
    inside = (y >= low) & (y <= high)
    assert trapezoid(density[inside], y[inside]) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("method", ["cgm", "wu", "smc"])
def test_leaves_of_hard_trees_predict_their_posterior_means(regression, method):
    prior_mean, prior_rows = 2.0, 0.7
    posterior = fit_regressor(regression, method, mean_prior=(prior_mean, prior_rows))
    found = measures.leaf_mean_predictions(posterior, regression, regression.X_test)
    # Rows share a leaf of a tree where they share its drawn mean.
    for draw in (0, 17, 29):
        drawn = posterior.predict_single_trees(np.vstack([regression.X_test, regression.X]))
        test, train = np.split(drawn.reshape(-1, drawn.shape[-1])[draw], [30])
        for row in range(30):
            ys = regression.y[train == test[row]]
            mean = (ys.sum() + prior_rows * prior_mean) / (len(ys) + prior_rows)
            assert found[draw, row] == pytest.approx(mean)


def test_measures_agree_with_the_estimators_own_scores():
    split = load_paper_split("iris")
    model = BayesianTreeClassifier(
        method="smc", n_chains=2, n_draws=50, random_state=1, n_jobs=1
    ).fit(split.X, split.y)
    values, arrays = measures.measure(model.posterior_, split)
    assert values["test_acc"] == pytest.approx(model.single_tree_score(split.X_test, split.y_test))
    assert values["ensemble_test_acc"] == pytest.approx(model.score(split.X_test, split.y_test))
    assert values["train_acc"] == pytest.approx(model.single_tree_score(split.X, split.y))
    assert arrays["score_by_row"].mean() == pytest.approx(values["test_acc"])
    assert arrays["monitor"].shape == (100, 20)


# ------------------------------------------------------------------ burn-in


@pytest.mark.parametrize("method", HMC)
@pytest.mark.parametrize("preset", ["exact", "paper"])
def test_burn_in_is_watched_on_the_same_chain(method, preset):
    split = load_paper_split("iris")
    ((config, _),) = restarts.restart_configs([split], [method], preset, 1, shorten=40)
    config = restarts.burn_in_config(config)
    if preset == "paper":
        config["parameters"]["method__adapt_steps"] = 20
    posterior = restarts.fitted(config, split)
    watched = restarts.watch_burn_in(posterior, split)
    assert watched.n_draws == config["parameters"]["n_warmup"] == 5
    # ``watch_burn_in`` itself refuses a chain that made other moves than the fit. Besides, one more
    # iteration of the burn-in's chain is the fit's only draw: a jump of the paper's changes the
    # number of leaves by one at most. (Informed moves may regrow whole subtrees.)
    if preset == "paper":
        assert abs(int(watched.n_leaves[0, -1]) - int(posterior.n_leaves[0, 0])) <= 1


def test_the_burn_in_of_another_chain_is_refused():
    split = load_paper_split("iris")
    ((config, _),) = restarts.restart_configs([split], ["hmc-df"], "exact", 1, shorten=2)
    posterior = restarts.fitted(restarts.burn_in_config(config), split)
    restarts.watch_burn_in(posterior, split)
    posterior.info = replace(posterior.info, seed=posterior.info.seed + 1)
    with pytest.raises(RuntimeError, match="not the chain's own"):
        restarts.watch_burn_in(posterior, split)


def test_a_long_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    split = load_paper_split("iris")
    ((config, _),) = restarts.restart_configs([split], ["hmc-df"], "paper", 1, shorten=20)
    config["parameters"]["method__adapt_steps"] = 20
    whole = restarts.run_restart(config, split)
    advance = Chains._advance

    def impatient(self, *arguments):
        advance(self, *arguments)
        if self.done > 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("hamiltree.running.chains.BATCHES_PER_ROUND", 1)
    monkeypatch.setattr(Chains, "_advance", impatient)
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        restarts.run_restart(config, split, tmp_path)
    assert len(list(tmp_path.glob("*.nc"))) == 1
    monkeypatch.undo()
    on = restarts.run_restart(config, split, tmp_path)
    assert not list(tmp_path.iterdir())
    for result in (whole, on):
        del result.values["seconds"]
    assert on.values == whole.values
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(on.arrays[name], array)
