"""Plots: what is drawn is what the posterior says; each draws where it is told to."""

from __future__ import annotations

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from hamiltree import plots
from hamiltree.inputs.encoding import Column, Encoding, TrainingTable
from hamiltree.posterior import Posterior

from ..support.fake_draws import fake_posterior, fake_rows


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def post(seed):
    return fake_posterior(seed, n_chains=3, n_draws=40, n_training=30)


@pytest.fixture
def regression(seed):
    return fake_posterior(seed, n_chains=3, n_draws=40, n_classes=0, n_training=30)


def labels(post):
    return post.preprocessing.classes[post.training.y]


CALLS = {
    "plot_calibration": lambda p, ax: plots.plot_calibration(p, p.training.X, labels(p), ax=ax),
    "plot_inclusion": lambda p, ax: plots.plot_inclusion(p, ax=ax),
    "plot_leaves": lambda p, ax: plots.plot_leaves(p, ax=ax),
    "plot_partial_dependence": lambda p, ax: plots.plot_partial_dependence(p, "age", ax=ax),
    "plot_ppc": lambda p, ax: plots.plot_ppc(p, ax=ax),
    "plot_predictions": lambda p, ax: plots.plot_predictions(
        p, p.training.X, labels(p), label="oak" if p.n_classes > 3 else "ash", ax=ax
    ),
    "plot_rank": lambda p, ax: plots.plot_rank(p, ax=ax),
    "plot_similarity": lambda p, ax: plots.plot_similarity(p, ax=ax),
    "plot_thresholds": lambda p, ax: plots.plot_thresholds(p, "width", ax=ax),
    "plot_trace": lambda p, ax: plots.plot_trace(p, ax=ax),
    "plot_tree": lambda p, ax: plots.plot_tree(p.best_tree(), ax),
}


def test_every_plot_is_tried():
    assert sorted(CALLS) == sorted(plots.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_each_draws_into_the_given_axes_or_its_own(name, post):
    figure, ax = plt.subplots()
    assert CALLS[name](post, ax) is ax
    assert ax.has_data() or ax.texts
    figure.canvas.draw()
    own = CALLS[name](post, None)
    assert own.figure is not figure
    own.figure.canvas.draw()


@pytest.mark.parametrize("quantity", ["log_posterior", "log_likelihood", "n_leaves", "depth"])
def test_trace_and_rank(quantity, post):
    ax = plots.plot_trace(post, quantity)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), getattr(post, quantity)[1])
    ranks = plots.plot_rank(post, quantity)
    heights = np.array([bar.get_height() for bar in ranks.patches]).reshape(3, -1)
    bins = heights.shape[1]
    # a chain has as many draws as any other, and every bin of ranks is used up by all together
    np.testing.assert_allclose(heights.sum(axis=1), heights.sum() / 3)
    np.testing.assert_allclose(heights.sum(axis=0), heights.sum() / bins)


def test_ranks_of_a_chain_of_its_own(post):
    shifted = post.log_posterior.copy()
    shifted[2] += 100
    draws = dataclasses.replace(post.draws, log_posterior=shifted)
    apart = Posterior(draws, post.info, post.preprocessing, post.configuration)
    heights = [bar.get_height() for bar in plots.plot_rank(apart).patches]
    last = np.array(heights).reshape(3, -1)[2]
    first = len(last) * 2 // 3
    assert (last[:first] == 0).all()
    assert (last[first + 1 :] > 0).all()


def test_a_trace_of_long_chains_has_evenly_spaced_draws(post, monkeypatch):
    monkeypatch.setattr("hamiltree.plots.trace.MOST", 5)
    for chain, line in enumerate(plots.plot_trace(post, "n_leaves").get_lines()):
        draws = line.get_xdata()
        assert len(draws) == 5
        assert (draws[0], draws[-1]) == (0, post.n_draws - 1)
        np.testing.assert_array_equal(line.get_ydata(), post.n_leaves[chain, draws])


def test_what_trace_and_rank_cannot_show(post):
    with pytest.raises(ValueError, match="log_posterior, log_likelihood, n_leaves, depth"):
        plots.plot_trace(post, "sigma")
    with pytest.raises(ValueError, match="n_chains=4"):
        plots.plot_rank(fake_posterior(0, n_chains=1))
    particles = dataclasses.replace(post.info, stats={"log_weight": np.log(post.weights)})
    with pytest.raises(ValueError, match="particles"):
        plots.plot_rank(Posterior(post.draws, particles, post.preprocessing, post.configuration))


def test_inclusion_shows_the_importances(post):
    ax = plots.plot_inclusion(post)
    means = next(line for line in ax.lines if line.get_label() == "mean")
    names = [label.get_text() for label in ax.get_yticklabels()]
    shown = dict(zip(names, means.get_xdata(), strict=True))
    expected = post.feature_inclusion()
    for name, share in shown.items():
        assert share == pytest.approx(expected[post.preprocessing.feature_names.index(name)])
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert len(plots.plot_inclusion(post, max_features=2).get_yticklabels()) == 2


def test_inclusion_is_refused_where_it_means_nothing():
    with pytest.raises(ValueError, match="say nothing about importance"):
        plots.plot_inclusion(fake_posterior(0, oblique=True))
    with pytest.raises(ValueError, match="no tree splits"):
        plots.plot_inclusion(fake_posterior(0, n_leaves=np.ones((2, 5), int)))


def test_the_area_of_thresholds_is_splits_per_tree(post):
    ax = plots.plot_thresholds(post, "mass (kg)")
    bars = [p for p in ax.patches if hasattr(p, "get_height")]
    area = sum(bar.get_height() * bar.get_width() for bar in bars)
    assert area == pytest.approx(np.mean(post.draws.feature == 2) * len(post.draws.feature) / 120)
    with pytest.raises(ValueError, match="weighted sums"):
        plots.plot_thresholds(fake_posterior(0, oblique=True))


def test_features_are_found_by_name_or_number(post):
    named, numbered = (plots.plot_thresholds(post, feature) for feature in ("age", 4))
    assert named.get_xlabel() == numbered.get_xlabel() == "threshold on age"
    most = post.preprocessing.feature_names[post.feature_inclusion().argmax()]
    assert plots.plot_thresholds(post).get_xlabel() == f"threshold on {most}"
    for feature, complaint in {
        "weight": "no feature 'weight': there are length",
        7: "there are 5, counted from 0",
        "constant": "constant is constant",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            plots.plot_thresholds(post, feature)


def test_partial_dependence_is_the_mean_over_rows(regression):
    X = fake_rows(7, 3)
    ax = plots.plot_partial_dependence(regression, "width", X)
    line = ax.lines[0]
    for value, got in list(zip(line.get_xdata(), line.get_ydata(), strict=True))[::13]:
        rows = X.copy()
        rows[:, 1] = value
        assert got == pytest.approx(regression.predict_mean(rows).mean(), rel=1e-9)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() <= line.get_ydata().min()
    assert band.max() >= line.get_ydata().max()
    with pytest.raises(ValueError, match="needs the training data"):
        plots.plot_partial_dependence(regression.without_data(), "width")


def test_classes_of_a_picture(post, regression):
    assert len(plots.plot_partial_dependence(post, "age").get_legend().texts) == 3
    one = plots.plot_partial_dependence(post, "age", label="beech")
    assert one.get_ylabel() == "probability of beech"
    two = fake_posterior(0, n_classes=2, n_training=20)
    assert plots.plot_partial_dependence(two, "age").get_ylabel() == "probability of beech"
    with pytest.raises(ValueError, match="no class 'elm': there are ash, beech, cedar"):
        plots.plot_partial_dependence(post, "age", label="elm")
    with pytest.raises(ValueError, match="regression"):
        plots.plot_partial_dependence(regression, "age", label="ash")
    with pytest.raises(ValueError, match="say which by label="):
        plots.plot_predictions(post, post.training.X)


def test_similarity_is_only_reordered(post):
    ax = plots.plot_similarity(post, fake_rows(9))
    shown = ax.images[0].get_array()
    expected = post.similarity(fake_rows(9))
    np.testing.assert_allclose(np.sort(shown.ravel()), np.sort(expected.ravel()), atol=1e-12)
    np.testing.assert_allclose(shown, shown.T, atol=1e-12)
    assert plots.plot_similarity(post, fake_rows(2)).images[0].get_array().shape == (2, 2)


def test_calibration_of_classes(post):
    X, y = fake_rows(200, 5), np.array(["ash", "beech"] * 100)
    ax = plots.plot_calibration(post, X, y, label="ash")
    dots = next(line for line in ax.lines if line.get_label() == "ash")
    order = np.argsort(post.predict_mean(X)[:, 0], kind="stable")
    groups = np.array_split(order, 10)
    np.testing.assert_allclose(dots.get_ydata(), [np.mean(y[group] == "ash") for group in groups])
    with pytest.raises(ValueError, match="did not have: \\['elm'\\]"):
        plots.plot_calibration(post, X, np.array(["ash", "elm"] * 100))
    with pytest.raises(ValueError, match="as many rows"):
        plots.plot_calibration(post, X, y[:5])


def test_calibration_of_numbers(regression, rng):
    X = fake_rows(400, 5)
    y = regression.sample_predictive(X, 1).reshape(120, 400)
    y = y[rng.integers(0, 120, 400), np.arange(400)]  # from the predictive distribution itself
    line = plots.plot_calibration(regression, X, y).lines[-1]
    inside = line.get_ydata()
    nominal = line.get_xdata()
    # the largest deviation of 400 uniform numbers exceeds 0.14 once in 10^6 times
    assert np.abs(inside - nominal).max() < 0.14
    far = plots.plot_calibration(regression, X, np.full(400, 1e6))
    assert (far.lines[-1].get_ydata() == 0).all()


def test_predictions_are_in_order_with_their_intervals(post, regression):
    X = fake_rows(15, 2)
    ax = plots.plot_predictions(regression, X, np.arange(15.0), coverage=0.8)
    mean = next(line for line in ax.lines if line.get_label() == "mean")
    np.testing.assert_allclose(mean.get_ydata(), np.sort(regression.predict_mean(X)), rtol=1e-12)
    ends = np.sort([path.vertices[:, 1] for path in ax.collections[0].get_paths()], axis=0)
    np.testing.assert_allclose(
        ends, np.sort(regression.predict_quantiles(X, [0.1, 0.9]).T, axis=0), rtol=1e-9
    )
    plots.plot_predictions(post, X, label="ash")
    with pytest.raises(ValueError, match="1 to 2000 rows"):
        plots.plot_predictions(regression, fake_rows(2001))
    with pytest.raises(ValueError, match="as many rows"):
        plots.plot_predictions(regression, X, np.zeros(3))


class Fitted:
    """What a plot asks of a fitted model."""

    def __init__(self, posterior):
        self.posterior_ = posterior


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"plot_calibration", "plot_predictions"}))
def test_plots_take_fitted_models(name, post):
    draw = getattr(plots, name)
    one, other = draw(Fitted(post)), draw(post.best_tree() if name == "plot_tree" else post)
    assert [t.get_text() for t in one.texts] == [t.get_text() for t in other.texts]
    assert len(one.lines) == len(other.lines)
    with pytest.raises(TypeError, match="call fit first"):
        draw("nothing")


def test_a_list_of_features_gives_a_picture_each(post):
    axes = plots.plot_partial_dependence(post, ["age", 1, "mass (kg)", "length"])
    names = ["age", "width", "mass (kg)", "length"]
    assert [ax.get_xlabel() for ax in axes] == names
    alone = plots.plot_partial_dependence(post, "age")
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), alone.lines[0].get_ydata())
    assert len(axes[0].figure.axes) == 6
    with pytest.raises(ValueError, match="ax is for one feature"):
        plots.plot_partial_dependence(post, ["age", "width"], ax=alone)
    with pytest.raises(ValueError, match="empty"):
        plots.plot_partial_dependence(post, [])


def test_a_feature_with_categories_is_found_by_its_name(post):
    columns = (
        Column("site", "one-hot", ("east", "north", "west")),
        Column("constant", "number"),
        Column("sex", "one-hot", ("female", "male")),
    )
    names = ("site=east", "site=north", "site=west", "constant", "sex=male")
    post.preprocessing = dataclasses.replace(post.preprocessing, feature_names=names)
    post.table = TrainingTable(Encoding(columns, "outcome"), "table.csv")
    assert plots.plot_thresholds(post, "sex").get_xlabel() == "threshold on sex=male"
    axes = plots.plot_partial_dependence(post, "site")
    assert [ax.get_xlabel() for ax in axes] == list(names[:3])
    with pytest.raises(ValueError, match="name one: site=east, site=north, site=west"):
        plots.plot_thresholds(post, "site")
    with pytest.raises(ValueError, match="no feature 'age': there are site, constant, sex"):
        plots.plot_thresholds(post, "age")


def test_shares_of_classes_are_those_of_replicated_labels(post):
    ax = plots.plot_ppc(post, n_samples=30, seed=4)
    observed = [bar.get_height() for bar in ax.patches]
    assert observed == pytest.approx(np.bincount(post.training.y, minlength=3) / 30)
    new = post.equally_weighted(30).sample_predictive(post.training.X, 4)[0]
    shares = np.array([(new == label).mean(axis=1) for label in post.preprocessing.classes])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.median(shares, axis=1))
    ends = np.array(ax.collections[0].get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, np.quantile(shares, [0.05, 0.95], axis=1).T)


def test_densities_of_replicated_targets(regression):
    ax = plots.plot_ppc(regression, n_samples=7)
    assert len(ax.lines) == 8
    grid = ax.lines[-1].get_xdata()
    expected = stats.gaussian_kde(regression.training.y)(grid)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), expected)
    prior = plots.plot_ppc(regression, n_samples=5, prior=True, seed=1)
    assert len(prior.lines) == 6
    X = fake_rows(4)
    assert len(plots.plot_ppc(regression, X, np.ones(4)).lines) == 51
    with pytest.raises(ValueError, match="give y with X"):
        plots.plot_ppc(regression, X)
    with pytest.raises(ValueError, match="as many rows, got 4 and 3"):
        plots.plot_ppc(regression, X, np.ones(3))
    with pytest.raises(ValueError, match="plot_ppc needs the training data"):
        plots.plot_ppc(regression.without_data())
