"""What a user of the estimators sees: results, conventions, reproducibility."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import make_cgm
from hamiltree.methods import HMCDF, METHODS
from hamiltree.posterior import Posterior
from hamiltree.running import run

from ..support.configuring import parameters

SHORT = {"n_chains": 2, "n_warmup": 50, "n_draws": 30, "random_state": 7}
ESTIMATORS = [BayesianTreeClassifier, BayesianTreeRegressor]


def grid_data(n=60, columns=2):
    """Rows on a dyadic grid, so that exact changes of units are exact; y follows column 0."""
    rng = np.random.default_rng(20)
    X = rng.integers(0, 64, size=(n, columns)) / 16.0
    return X, (X[:, 0] > 2.0).astype(int)


def target_for(estimator, labels):
    """Class codes for a classifier, numbers around them for a regressor."""
    if issubclass(estimator, BayesianTreeClassifier):
        return labels
    return 3.0 * labels + np.random.default_rng(21).normal(0, 0.1, size=len(labels))


@pytest.fixture(scope="module")
def classifier():
    X, y = grid_data()
    labels = np.array(["apple", "pear"])[y]
    return BayesianTreeClassifier(**SHORT).fit(X, labels), X, labels


@pytest.fixture(scope="module")
def regressor():
    data = make_cgm(200, random_state=1)
    return BayesianTreeRegressor(**SHORT).fit(data.data, data.target), data.data, data.target


# ---------------------------------------------------------------------- results


def test_classifier_predicts_labels_of_any_type(classifier):
    model, X, labels = classifier
    probabilities = model.predict_proba(X)
    assert model.classes_.tolist() == ["apple", "pear"]
    assert probabilities.shape == (60, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(probabilities))
    assert model.score(X, labels) > 0.9  # one noiseless split


def test_regressor_predicts_in_the_users_units(regressor):
    model, X, y = regressor
    mean, sd = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, model.predict(X), rtol=1e-12)
    assert model.score(X, y) > 0.5
    draws = model.posterior_.predict_draws(X).reshape(-1, len(X))
    sigma = model.posterior_.sigma.ravel()
    np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(sd**2, draws.var(axis=0) + np.mean(sigma**2), rtol=1e-8)


def test_regression_intervals_hold_their_share_of_the_predictive_mixture(regressor):
    model, X, _ = regressor
    lower, upper = model.predict_interval(X[:20], coverage=0.8).T
    means = model.posterior_.predict_draws(X[:20]).reshape(-1, 20)
    sigma = model.posterior_.sigma.reshape(-1, 1)
    np.testing.assert_allclose(ndtr((lower - means) / sigma).mean(axis=0), 0.1, atol=1e-6)
    np.testing.assert_allclose(ndtr((upper - means) / sigma).mean(axis=0), 0.9, atol=1e-6)


def test_classification_intervals_are_ordered_and_repeatable(classifier):
    model, X, _ = classifier
    interval = model.predict_interval(X, coverage=0.9)
    assert interval.shape == (60, 2, 2)
    assert (interval[..., 0] <= interval[..., 1]).all()
    assert (interval >= 0).all()
    assert (interval <= 1).all()
    np.testing.assert_array_equal(interval, model.predict_interval(X, coverage=0.9))
    narrow = model.predict_interval(X, coverage=0.5)
    assert (narrow[..., 0] >= interval[..., 0]).all()
    assert (narrow[..., 1] <= interval[..., 1]).all()
    # Leaves of some 30 rows leave their class probability uncertain even when all trees agree.
    assert (interval[..., 1] - interval[..., 0]).mean() > 0.02


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 90, float("nan")])
def test_coverage_must_be_a_probability(classifier, regressor, coverage):
    for model, X, _ in (classifier, regressor):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            model.predict_interval(X, coverage)


def test_predictive_samples_have_the_predictive_moments(regressor, classifier):
    model, X, _ = regressor
    X, n = X[:30], 6000
    samples = model.sample_predictive(X, n_samples=n, random_state=3)
    assert samples.shape == (n, 30)
    mean, sd = model.predict(X, return_std=True)
    # Five standard errors over 30 rows: a false alarm in 50,000 runs.
    assert (np.abs(samples.mean(axis=0) - mean) < 5 * sd / np.sqrt(n)).all()
    np.testing.assert_array_equal(samples, model.sample_predictive(X, n, random_state=3))
    model, X, _ = classifier
    labels = model.sample_predictive(X, n_samples=n, random_state=3)
    p = model.predict_proba(X)[:, 1]
    # Draws are used equally often, which can only lower the variance of independent labels.
    error = np.sqrt(p * (1 - p) / n)
    assert (np.abs((labels == "pear").mean(axis=0) - p) < 5 * error + 1e-12).all()


def test_predictive_samples_use_every_draw_once_by_default(regressor, classifier):
    for model, X, _ in (regressor, classifier):
        assert model.sample_predictive(X[:3]).shape == (60, 3)
        assert model.sample_predictive(X[:3], n_samples=7).shape == (7, 3)
        with pytest.raises(ValueError, match="n_samples"):
            model.sample_predictive(X, n_samples=0)


def test_single_tree_score_is_the_mean_over_trees(regressor, classifier):
    model, X, y = regressor
    trees = model.posterior_.predict_single_trees(X)
    assert model.single_tree_score(X, y) == pytest.approx(np.mean((trees - y) ** 2), rel=1e-12)
    model, X, labels = classifier
    trees = model.posterior_.predict_single_trees(X)
    assert model.single_tree_score(X, labels) == pytest.approx(np.mean(trees == labels), rel=1e-12)


def test_importances_name_the_column_that_matters():
    X, y = grid_data(columns=3)
    X = np.column_stack([np.ones(60), X])
    with pytest.warns(UserWarning, match="constant columns: x0") as caught:
        model = BayesianTreeClassifier(**SHORT).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}
    importances = model.feature_importances_
    assert importances.shape == (4,)
    assert importances[0] == 0
    assert importances.argmax() == 1
    model = BayesianTreeClassifier(method="hmc-dfi", **SHORT).fit(X[:, 1:], y)
    assert not hasattr(model, "feature_importances_")


# ---------------------------------------------------------------------- conventions


def test_pandas_names_are_kept_and_checked():
    pandas = pytest.importorskip("pandas")
    X, y = grid_data()
    table = pandas.DataFrame(X, columns=["age", "dose"])
    model = BayesianTreeClassifier(**SHORT).fit(table, pandas.Series(y, name="outcome"))
    assert model.feature_names_in_.tolist() == ["age", "dose"]
    assert model.posterior_.preprocessing.feature_names == ("age", "dose")
    assert "age" in model.posterior_.tree(0, -1).to_text()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[["dose", "age"]])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_pickle_and_preset(estimator):
    X, labels = grid_data()
    model = estimator(
        **SHORT, method=HMCDF(moves="prior", move_probs=[0.3, 0.3, 0.4]), h=np.float64(0.05)
    )
    model.fit(X, target_for(estimator, labels))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert clone(model).get_params() == model.get_params()
    configuration = model.posterior_.configuration
    assert (configuration.h, configuration.method.move_probs) == (0.05, (0.3, 0.3, 0.4))
    assert type(configuration.h) is float


def test_grid_search_and_pipeline():
    X, y = grid_data()
    search = GridSearchCV(BayesianTreeClassifier(**SHORT), {"h": [0.0, 0.05]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    pipeline = make_pipeline(StandardScaler(), BayesianTreeRegressor(**SHORT))
    assert pipeline.fit(X, 1.0 * y).score(X, y) > 0.8


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_draws_whatever_n_jobs(estimator, method):
    X, labels = grid_data()
    y = target_for(estimator, labels)
    models = [
        estimator(**parameters(**SHORT | {"n_chains": 3}, method=method, n_jobs=n_jobs)).fit(X, y)
        for n_jobs in (1, 3)
    ]
    first, second = (model.posterior_ for model in models)
    np.testing.assert_array_equal(first.log_posterior, second.log_posterior)
    np.testing.assert_array_equal(first.draws.threshold, second.draws.threshold)
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
    others = parameters(**SHORT | {"n_chains": 3, "random_state": 8}, method=method)
    other = estimator(**others).fit(X, y)
    assert not np.array_equal(first.log_posterior, other.posterior_.log_posterior)
    state = np.random.RandomState(5)
    assert estimator(**{**SHORT, "random_state": state}).fit(X, y).posterior_.n_chains == 2


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("method", METHODS)
def test_predictions_do_not_change_with_the_units_of_the_inputs(estimator, method):
    X, labels = grid_data()
    y = target_for(estimator, labels)
    scale, shift = np.array([2.0**30, 2.0**-20]), np.array([0.0, 3.0])
    given = parameters(**SHORT, method=method)
    before = estimator(**given).fit(X, y)
    after = estimator(**given).fit(X * scale + shift, y)
    np.testing.assert_array_equal(before.predict(X), after.predict(X * scale + shift))
    np.testing.assert_array_equal(
        before.predict_interval(X), after.predict_interval(X * scale + shift)
    )


def test_predictions_follow_the_units_of_the_target():
    X, labels = grid_data()
    y = target_for(BayesianTreeRegressor, labels)
    before = BayesianTreeRegressor(**SHORT).fit(X, y)
    after = BayesianTreeRegressor(**SHORT).fit(X, 2.0**20 * y)
    np.testing.assert_array_equal(2.0**20 * before.predict(X), after.predict(X))
    np.testing.assert_array_equal(2.0**20 * before.posterior_.sigma, after.posterior_.sigma)


@pytest.mark.parametrize("magnitude", [1e-300, 1e300])
def test_extreme_magnitudes_give_finite_answers(magnitude):
    X, labels = grid_data()
    y = target_for(BayesianTreeRegressor, labels)
    model = BayesianTreeRegressor(**SHORT).fit(X / 4 * magnitude, y / 4 * magnitude)
    for answer in (*model.predict(X / 4 * magnitude, return_std=True), model.predict_interval(X)):
        assert np.isfinite(answer).all()


def test_raw_targets_on_request():
    X, labels = grid_data()
    y = target_for(BayesianTreeRegressor, labels)
    model = BayesianTreeRegressor(**SHORT, standardize=False).fit(X, y)
    assert (model.posterior_.preprocessing.y_mean, model.posterior_.preprocessing.y_sd) == (0, 1)
    assert model.score(X, y) > 0.5


def test_a_constant_target_is_predicted():
    X, _ = grid_data()
    with pytest.warns(UserWarning, match="target is constant") as caught:
        model = BayesianTreeRegressor(**SHORT).fit(X, np.full(60, 1e6))
    assert {warning.filename for warning in caught} == {__file__}
    # Standardised with sd 1 and 60 rows of 0 against a prior of sd 1.
    assert np.abs(model.predict(X) - 1e6).max() < 1.0


# ---------------------------------------------------------------------- a word on the run


def test_a_run_that_is_far_too_short_warns():
    X, y = grid_data()
    with pytest.warns(ConvergenceWarning, match="far too few; run longer: n_warmup="):
        BayesianTreeClassifier(**SHORT).fit(X, y)


def test_an_interrupted_run_keeps_its_draws_and_says_so(monkeypatch):
    from dataclasses import replace

    def interrupted(*args, **kwargs):
        draws, info = sample(*args, **{**kwargs, "n_draws": 5})
        return draws, replace(info, stopped="interrupted")

    sample = run.sample
    monkeypatch.setattr(run, "sample", interrupted)
    X, y = grid_data()
    with pytest.warns(UserWarning, match="interrupted: kept the 5 of 30 draws per chain"):
        model = BayesianTreeClassifier(**SHORT).fit(X, y)
    assert model.predict(X).shape == (60,)


def test_fit_goes_on_until_the_chains_agree(tmp_path):
    X, y = grid_data()
    lengths = {"n_chains": 4, "n_warmup": 100, "random_state": 7}
    goal = {"target_rhat": 1.02, "max_draws": 3_000}
    until = BayesianTreeClassifier(**lengths, n_draws=40, **goal).fit(X, y)
    posterior = until.posterior_
    assert posterior.info.stopped == "target"
    assert 100 <= posterior.n_draws < 3_000  # one noiseless split: the chains agree soon
    diagnosis = posterior.diagnose()
    assert diagnosis.converged
    assert max(diagnosis.rhat.values()) <= 1.02
    assert min(diagnosis.ess.values()) >= 400
    met = f"target_rhat=1.02 is met with {posterior.n_draws} draws per chain"
    assert met in diagnosis.sentence
    assert "ended when target_rhat was met" in posterior.summary()
    longer = BayesianTreeClassifier(**lengths, n_draws=posterior.n_draws + 50).fit(X, y).posterior_
    assert longer.info.stopped == "n_draws"
    np.testing.assert_array_equal(
        posterior.log_posterior, longer.log_posterior[:, : posterior.n_draws]
    )
    posterior.save(tmp_path / "a.nc")
    back = Posterior.load(tmp_path / "a.nc")
    assert (back.info.stopped, back.info.max_draws) == ("target", 3_000)
    assert met in back.diagnose().sentence


def test_fit_says_that_the_limit_came_first():
    X, y = grid_data()
    limits = {"target_rhat": 1.0001, "max_draws": 150}
    advice = (
        r"max_draws=150 was reached before target_rhat=1.0001; run longer: n_warmup=\d+, max_draws="
    )
    with pytest.warns(ConvergenceWarning, match=advice):
        model = BayesianTreeClassifier(**SHORT, **limits).fit(X, y)
    assert (model.posterior_.info.stopped, model.posterior_.n_draws) == ("max_draws", 150)
    assert "ended at max_draws" in model.posterior_.summary()


def test_impossible_goals_are_refused():
    X, y = grid_data()
    for wrong, message in (
        ({"max_draws": 100}, "set target_rhat too"),
        ({"target_rhat": 1.1, "max_draws": 20}, "max_draws=20 is smaller than n_draws=30"),
        (
            {"target_rhat": 1.1, "method": "smc", "n_warmup": None},
            "method='smc' does not use target_rhat.* has no R-hat",
        ),
        ({"target_rhat": 1.0}, "target_rhat"),
        ({"target_rhat": 1.1, "max_draws": 0}, "max_draws"),
    ):
        with pytest.raises(ValueError, match=message):
            BayesianTreeClassifier(**SHORT | wrong).fit(X, y)


def test_the_diagnosis_is_printed_where_progress_was_asked_for(capsys):
    X, y = grid_data()
    lengths = {"n_chains": 4, "n_warmup": 100, "n_draws": 300, "random_state": 7}
    for progress, said in ((None, False), (True, True)):
        model = BayesianTreeClassifier(**lengths, progress=progress).fit(X, y)
        assert model.posterior_.diagnose().converged
        printed = capsys.readouterr().err
        assert (model.posterior_.diagnose().sentence in printed) == said


def test_nothing_is_predicted_before_fit():
    for model in (BayesianTreeClassifier(), BayesianTreeRegressor()):
        for call in (model.predict, model.predict_interval, model.sample_predictive):
            with pytest.raises(NotFittedError):
                call([[1.0]])
        assert not hasattr(model, "feature_importances_")


def test_priors_reach_the_sampler():
    X, y = grid_data()
    X = np.column_stack([X[:, :1], np.zeros(60), X[:, 1:]])
    method = HMCDF(feature_prior=[1.0, 5.0, 3.0], class_prior=np.array([1.0, 2.0]))
    with pytest.warns(UserWarning, match="constant"):
        model = BayesianTreeClassifier(**SHORT, method=method).fit(X, y)
    method = model.posterior_.configuration.method
    assert method.feature_prior == (1.0, 3.0)  # the constant column is not the model's
    assert method.class_prior == (1.0, 2.0)


# ---------------------------------------------------------------------- documentation


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented_with_its_defaults(estimator):
    for name in estimator().get_params():
        assert f"    {name} : " in estimator.__doc__
    assert "{parameters}" not in estimator.__doc__
