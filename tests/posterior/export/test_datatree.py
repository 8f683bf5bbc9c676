"""A posterior as ArviZ sees it."""

from __future__ import annotations

import dataclasses
import json

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.posterior import Posterior, predictions

from ...reference.stats import standard_error
from ...support.fake_draws import fake_posterior, fake_rows

az = pytest.importorskip("arviz_stats")


def all_probabilities(post, values, X):
    """Given what is in the leaves, what each draw predicts; leaf by leaf, tree by tree."""
    out = []
    first = 0
    for chain, draw in np.ndindex(post.n_chains, post.n_draws):
        tree = post.tree(chain, draw)
        out.append(tree.reach(X) @ values[first : first + tree.n_leaves])
        first += tree.n_leaves
    return np.array(out).reshape(post.n_chains, post.n_draws, len(X), -1)


def test_groups_dimensions_and_names(seed):
    post = fake_posterior(seed, n_training=12).monitored_at(fake_rows(3))
    tree = post.to_datatree()
    assert set(tree.children) == {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "posterior_predictive",
        "observed_data",
        "trees",
    }
    assert tree["log_likelihood"]["y"].dims == ("chain", "draw", "row")
    assert tree["posterior_predictive"]["y"].shape == (2, 5, 12)
    assert tree["observed_data"]["y"].values.tolist() == post.training.y.tolist()
    assert tree["observed_data"]["y"].attrs["classes"] == ["ash", "beech", "cedar"]
    assert tree["posterior"]["monitor"].dims == ("chain", "draw", "point")
    assert (tree["sample_stats"]["lp"].values == post.log_posterior).all()
    assert tree["sample_stats"]["tree_depth"].dtype == np.int64
    flat = tree["trees"]
    assert flat["leaf"].dims == ("leaves", "outputs")
    assert flat.coords["outputs"].values.tolist() == ["ash", "beech", "cedar"]
    assert flat.coords["columns"].values.tolist() == ["length", "width", "mass (kg)", "age"]
    assert len(flat["size"]) == flat["node_offset"].values[-1]
    assert json.loads(tree.attrs["configuration"])["method"] == "hmc-df"
    assert json.loads(tree.attrs["run"])["seed"] == 7


def test_groups_that_need_training_data_are_left_out(seed):
    post = fake_posterior(seed, n_training=12, n_classes=0, oblique=True)
    assert set(post.without_data().to_datatree().children) == {"posterior", "sample_stats", "trees"}
    slim = post.to_datatree(pointwise=False)
    assert "observed_data" in slim.children
    assert "log_likelihood" not in slim.children
    assert slim["trees"]["weights"].dims == ("splits", "columns")
    assert (slim["posterior"]["sigma"].values == post.sigma).all()


def test_too_large_groups_are_refused(seed, monkeypatch):
    post = fake_posterior(seed, n_training=12)
    monkeypatch.setattr(predictions, "MEMORY_LIMIT", 10 * 12 * 8 - 1)
    with pytest.raises(ValueError, match="GiB"):
        post.to_datatree()
    post.to_datatree(pointwise=False)


@pytest.mark.parametrize("h", [0.0, 0.1])
def test_likelihood_of_classes_is_that_of_the_drawn_probabilities(h, seed):
    post = fake_posterior(seed, n_training=15, h=h)
    y = post.preprocessing.classes[post.training.y]
    got = post.pointwise_log_likelihood(post.training.X, y, 5)
    drawn = predictions.sampled_probabilities(post, np.random.default_rng(5))
    p = all_probabilities(post, drawn, post.training.X)
    for row, code in enumerate(post.training.y):
        np.testing.assert_allclose(got[:, :, row], np.log(p[:, :, row, code]), rtol=1e-9)
    with pytest.raises(ValueError, match="'elm'"):
        post.pointwise_log_likelihood(post.training.X[:1], ["elm"], 5)


def test_likelihood_of_numbers_is_a_density_in_their_units(seed):
    post = fake_posterior(seed, n_training=15, n_classes=0)
    got = post.pointwise_log_likelihood(post.training.X, post.training.y)
    means = post.predict_draws(post.training.X)
    expected = stats.norm.logpdf(post.training.y, means, post.sigma[..., None])
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    own = np.hstack([post.draws.leaf, 0.1 + post.draws.leaf**2])  # leaves with their own sd
    draws = dataclasses.replace(post.draws, leaf=own, h=np.zeros(4))
    hard = Posterior(draws, post.info, post.preprocessing, post.configuration)
    got = hard.pointwise_log_likelihood(post.training.X, post.training.y)
    both = all_probabilities(hard, own, post.training.X)
    expected = stats.norm.logpdf(post.training.y, 40 + 12 * both[..., 0], 12 * both[..., 1])
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_pieces_change_nothing(seed, monkeypatch):
    post = fake_posterior(seed, n_training=15)
    y = post.preprocessing.classes[post.training.y]
    whole = post.pointwise_log_likelihood(post.training.X, y, 5)
    monkeypatch.setattr(predictions, "SCRATCH", 10 * 8 * 5 * 4)
    np.testing.assert_allclose(
        post.pointwise_log_likelihood(post.training.X, y, 5), whole, rtol=1e-12
    )


def test_weighted_draws_are_resampled(seed, rng):
    post = fake_posterior(seed, n_training=8, n_classes=0)
    weights = rng.dirichlet(np.full(10, 0.3)).reshape(2, 5)
    draws = dataclasses.replace(post.draws, weights_of_draws=weights)
    post = Posterior(
        draws, post.info, post.preprocessing, post.configuration, training=post.training
    )
    tree = post.to_datatree()
    assert tree.attrs["resampled"] == 1
    values, counts = np.unique(tree["posterior"]["log_posterior"].values, return_counts=True)
    expected = dict(zip(post.log_posterior.ravel(), 10 * weights.ravel(), strict=True))
    assert counts.sum() == 10
    assert all(abs(n - expected[value]) < 1 + 1e-9 for value, n in zip(values, counts, strict=True))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = np.where(X[:, 0] > 0.5, "right", "left")
    noisy = np.where(rng.uniform(size=60) < 0.1, "left", y)
    options = {"n_warmup": 200, "n_draws": 300, "random_state": 0}
    good = BayesianTreeClassifier(h=0, **options).fit(X, noisy)
    poor = BayesianTreeClassifier(h=0, **options).fit(X[:, 1:], noisy)
    return good.posterior_.to_datatree(), poor.posterior_.to_datatree()


@pytest.mark.filterwarnings("ignore")  # ArviZ warns of Pareto k, and uses what pandas deprecates
def test_summary_loo_and_compare(fitted):
    good, poor = fitted
    summary = az.summary(good, var_names=["log_posterior", "n_leaves", "depth"])
    assert summary.loc["n_leaves", "mean"] == pytest.approx(
        float(good["posterior"]["n_leaves"].mean()), abs=0.01
    )
    assert az.loo(good).n_data_points == 60
    table = az.compare({"with the signal": good, "without": poor})
    assert table.index[0] == "with the signal"
    assert table["elpd"].iloc[0] > table["elpd"].iloc[1] + 5


# What the dependency group "test" holds matplotlib back for.
TOO_NEW = tuple(int(part) for part in matplotlib.__version__.split(".")[:2]) >= (3, 11)


@pytest.mark.skipif(TOO_NEW, reason="arviz-plots 0.8 does not import with matplotlib 3.11 or newer")
@pytest.mark.filterwarnings("ignore")
def test_arviz_draws_traces_and_ranks(fitted):
    arviz_plots = pytest.importorskip("arviz_plots", reason="pip install arviz-plots")
    arviz_plots.plot_trace(fitted[0], var_names=["log_posterior"], backend="matplotlib")
    arviz_plots.plot_rank(fitted[0], var_names=["log_posterior"], backend="matplotlib")
    plt.close("all")


def log_mean(logs):
    """Logarithm of the mean of exp(logs) over [chain, draw], and its standard error."""
    values = np.exp(logs - logs.max())
    error = standard_error(values) / values.mean()  # by the delta method
    return np.log(values.mean()) + logs.max(), error


@pytest.mark.filterwarnings("ignore")  # ArviZ warns of Pareto k, and uses what pandas deprecates
def test_loo_agrees_with_leaving_rows_out(rng):
    """elpd of each row by PSIS against a fit without it, in Monte Carlo standard errors.

    The density of a left-out row is a mean over the draws of a fit without it, and 1 / mean(1 / p)
    over those of the whole fit, of which PSIS smooths the tail. Both errors follow from the
    effective sample sizes. Above a Pareto k of 0.5 the variance of 1 / p is infinite and there is
    no standard error: such rows are left aside, and must be few. The limit is that of a normal
    variable, for a false alarm in one of 10,000 runs over all rows.
    """
    n, level = 25, 1e-4
    inner = np.arange(n - 2)  # the ends stay, so that the scale of x does
    X = np.vstack([rng.uniform(size=(n - 2, 1)), [[0.0], [1.0]]])
    y = np.where(X[:, 0] > 0.4, 0.5, -0.5) + 0.5 * rng.normal(size=n)
    options = {
        "h": 0.05, "standardize": False, "n_chains": 4, "n_warmup": 300, "n_draws": 500,
    }  # fmt: skip
    tree = BayesianTreeRegressor(random_state=n, **options).fit(X, y).posterior_.to_datatree()
    loo = az.loo(tree, pointwise=True)
    known = inner[np.asarray(loo.pareto_k)[inner] < 0.5]
    assert len(known) >= 0.8 * len(inner)
    limit = stats.norm.isf(level / 2 / len(known))
    for out in known:
        rest = np.arange(n) != out
        post = BayesianTreeRegressor(random_state=out, **options).fit(X[rest], y[rest]).posterior_
        density = post.pointwise_log_likelihood(X[[out]], y[[out]])[..., 0]
        exact, error = log_mean(density)
        _, error_of_loo = log_mean(-tree["log_likelihood"]["y"].values[..., out])
        difference = float(np.asarray(loo.elpd_i)[out]) - exact
        assert abs(difference) < limit * np.hypot(error, error_of_loo), out
