"""h for people: numbers, one per column, "auto" and "learn", through every part of the library."""

from __future__ import annotations

import json
from dataclasses import replace

import netCDF4
import numpy as np
import pandas
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from typer.testing import CliRunner

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior
from hamiltree.cli import app
from hamiltree.posterior.predictions import values_of_leaves
from hamiltree.samplers.softness import LARGEST, SHARE_OF_GAP, SMALLEST, auto_softness

from ..support.configuring import parameters
from ..support.fake_draws import fake_posterior, with_learned_h

SHORT = {"n_chains": 2, "n_warmup": 60, "n_draws": 40, "random_state": 0, "n_jobs": 2}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def iris():
    X, y = load_iris(return_X_y=True)
    return np.column_stack([X[:, :2], np.ones(len(X)), X[:, 2:]]), y  # a constant column inside


@pytest.fixture(autouse=True)
def quiet_constant_column(recwarn):
    yield
    assert all(
        issubclass(w.category, ConvergenceWarning) or "constant" in str(w.message) for w in recwarn
    )


def targets(task):
    X, y = iris()
    return X, y if task == "classification" else X[:, 0] * 3.0 + y


def estimator(task, **options):
    cls = BayesianTreeClassifier if task == "classification" else BayesianTreeRegressor
    return cls(**parameters(**{**SHORT, **options}))


# ------------------------------------------------------------------ auto


def test_auto_is_a_share_of_the_median_gap():
    rng = np.random.default_rng(0)
    dense = rng.uniform(size=100_000)
    integers = rng.integers(0, 21, 500) / 20
    measured = np.round(rng.uniform(size=400), 2) + rng.choice([0.0, 1e-16], 400)  # rounding
    binary = rng.integers(0, 2, 500).astype(float)
    for column, expected in (
        (dense, SMALLEST),
        (integers, SHARE_OF_GAP / 20),
        (measured, SHARE_OF_GAP / 100),
        (binary, LARGEST),
        (np.array([0.0, 0.5, 1.0]), LARGEST),
    ):
        (found,) = auto_softness(column[None], by_feature=True)
        assert found == pytest.approx(expected), expected


def test_one_auto_h_is_the_median_of_columns_that_have_a_spacing():
    grid = np.linspace(0, 1, 101)
    columns = np.stack([grid, np.round(grid * 20) / 20, *[(grid > 0.5).astype(float)] * 5])
    each = auto_softness(columns, by_feature=True)
    one = auto_softness(columns, by_feature=False)
    assert (each[2:] == LARGEST).all()
    np.testing.assert_allclose(one, np.median(each[:2]))
    assert (auto_softness(columns[2:], by_feature=False) == LARGEST).all()


def test_auto_says_what_it_chose():
    X, y = iris()
    one = estimator("classification", h="auto").fit(X, y)
    each = estimator("classification", h="auto", h_by_feature=True).fit(X, y)
    assert np.isnan([one.h_[2], each.h_[2]]).all()
    assert len(set(one.h_[[0, 1, 3, 4]])) == 1
    assert len(set(each.h_[[0, 1, 3, 4]])) > 1
    assert f"{one.h_[0]:.3g}, by the data's spacing" in one.posterior_.summary()
    assert "(x" in each.posterior_.summary().split("  h  ")[1].splitlines()[0]
    assert one.posterior_.configuration.h == "auto"
    np.testing.assert_array_equal(each.posterior_.tree(0, 0).h, each.h_[[0, 1, 3, 4]])
    same = estimator("classification", h=one.h_[0]).fit(X, y)
    np.testing.assert_array_equal(same.posterior_.log_posterior, one.posterior_.log_posterior)
    assert "  h  " not in same.posterior_.summary()


# ------------------------------------------------------------------ one per column


def test_equal_numbers_are_one_number():
    X, y = iris()
    one = estimator("classification", h=0.03, h_init=0.2).fit(X, y)
    each = estimator("classification", h=[0.03] * 5, h_init=np.full(5, 0.2)).fit(X, y)
    np.testing.assert_array_equal(one.posterior_.log_posterior, each.posterior_.log_posterior)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_numbers_follow_the_columns(task, tmp_path):
    """In the user's order, constant columns included; and through a file."""
    X, y = targets(task)
    h = [0.01, 0.02, 0.5, 0.03, 0.2]
    model = estimator(task, h=h, h_init=[0.3, 0.3, 0.3, 0.1, 0.2]).fit(X, y)
    np.testing.assert_array_equal(model.posterior_.draws.h, [0.01, 0.02, 0.03, 0.2])
    np.testing.assert_array_equal(model.h_, [0.01, 0.02, np.nan, 0.03, 0.2])
    for split in splits_of(model.posterior_.best_tree().to_dict()):
        column = split["column"]
        assert split["h"] == pytest.approx(h[column] * np.ptp(X[:, column]))
    model.posterior_.save(tmp_path / "trees.nc")
    loaded = Posterior.load(tmp_path / "trees.nc")
    np.testing.assert_array_equal(loaded.predict_mean(X), model.posterior_.predict_mean(X))
    assert loaded.configuration.h == (0.01, 0.02, 0.03, 0.2)


def splits_of(node):
    if "threshold" in node:
        yield node
        for side in ("yes", "no"):
            yield from splits_of(node[side])


# ------------------------------------------------------------------ learn


def naive_prediction(posterior, x):
    """Each draw's prediction at one row of unit-scale values, by its own h."""
    out = []
    values = values_of_leaves(posterior)
    for t in range(posterior.weights.size):
        tree = posterior.tree(t // posterior.n_draws, t % posterior.n_draws)
        first_leaf = (posterior.draws.node_offset[t] + t) // 2
        split, leaf = 0, 0

        def visit(node, tree=tree, first_leaf=first_leaf):
            nonlocal split, leaf
            if tree.size[node] == 1:
                leaf += 1
                return values[first_leaf + leaf - 1]
            if tree.weights.shape[1]:
                value, h = tree.weights[split] @ x, tree.h[0]
            else:
                value, h = x[tree.feature[split]], tree.h[tree.feature[split]]
            right = expit((value - tree.threshold[split]) / h)
            split += 1
            left_value = visit(node + 1)
            return (1 - right) * left_value + right * visit(node + 1 + tree.size[node + 1])

        out.append(visit(0))
    return np.array(out)


@pytest.mark.parametrize(
    "options", [{}, {"h_by_feature": True}, {"method": "hmc-dfi"}], ids=["one", "each", "oblique"]
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_learned_h_goes_everywhere(task, options, tmp_path):
    X, y = targets(task)
    model = estimator(task, h="learn", **options).fit(X, y)
    posterior = model.posterior_
    by_feature = "h_by_feature" in options
    assert posterior.h.shape == ((2, 40, 4) if by_feature else (2, 40))
    assert ((posterior.h >= 1e-4) & (posterior.h <= 0.5)).all()
    assert len(np.unique(posterior.h)) > 40
    tree = posterior.tree(1, 3)
    np.testing.assert_array_equal(tree.h, np.broadcast_to(posterior.h[1, 3], 4))
    mean = np.broadcast_to(posterior.h.mean(axis=(0, 1)), 4)
    np.testing.assert_allclose(model.h_[[0, 1, 3, 4]], mean)
    assert "learned" in posterior.summary()
    assert "h" in posterior.diagnose().rhat
    unit = posterior.preprocessing.to_unit(X[70:71])[:, 0]
    drawn = posterior.predict_draws(X[70:71])[:, :, 0]
    naive = naive_prediction(posterior, unit).reshape(2, 40, -1)
    if task == "regression":
        naive = posterior.preprocessing.y_to_user(naive[..., 0])
    np.testing.assert_allclose(drawn, naive, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tree.predict(X[70:71])[0], drawn[1, 3], rtol=1e-9)

    posterior.save(tmp_path / "trees.nc")
    loaded = Posterior.load(tmp_path / "trees.nc")
    np.testing.assert_array_equal(loaded.h, posterior.h)
    np.testing.assert_array_equal(loaded.predict_mean(X), posterior.predict_mean(X))
    assert loaded.configuration == posterior.configuration

    few = posterior.taken([3, 50])
    np.testing.assert_array_equal(few.draws.h, posterior.draws.h[[3, 50]])
    data = posterior.to_datatree()
    np.testing.assert_array_equal(data["posterior"]["h"], posterior.h)
    assert data["trees"]["h"].shape == (80, 4)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_blocks_and_threads_do_not_change_the_draws(task):
    X, y = targets(task)
    first = estimator(task, h="learn", n_jobs=1).fit(X, y).posterior_
    longer = estimator(task, h="learn", n_draws=300).fit(X, y).posterior_
    np.testing.assert_array_equal(first.log_posterior, longer.log_posterior[:, :40])
    np.testing.assert_array_equal(first.h, longer.h[:, :40])


def test_counts_of_a_learned_classifier_are_rows():
    X, y = targets("classification")
    draws = estimator("classification", h="learn").fit(X, y).posterior_.draws
    assert (draws.leaf == np.round(draws.leaf)).all()
    first = (draws.node_offset[:-1] + np.arange(80)) // 2
    np.testing.assert_array_equal(np.add.reduceat(draws.leaf, first), np.full((80, 3), 50))


def test_files_of_format_1_load(tmp_path):
    """They know nothing of an h of each tree, nor of its settings, nor of imputed cells."""
    posterior, path = fake_posterior(), tmp_path / "old.nc"
    posterior.save(path)
    with netCDF4.Dataset(path, "r+") as file:
        file.hamiltree_format = 1
        metadata = json.loads(str(file.variables["metadata"][...]))
        del metadata["softnesses"]
        flat = metadata["settings"] = metadata.pop("configuration")
        for name in ("h_by_feature", "h_prior", "impute"):
            del flat[name]
        flat["class_prior"] = 1.0  # such files always say it
        file.variables["metadata"][...] = json.dumps(metadata)
    loaded = Posterior.load(path)
    np.testing.assert_array_equal(loaded.h, posterior.h)
    method = replace(posterior.configuration.method, class_prior=1.0, impute=False)
    assert loaded.configuration == replace(posterior.configuration, method=method)


def test_a_damaged_h_is_refused(tmp_path):
    posterior = with_learned_h(fake_posterior(), 3)  # of four columns
    posterior.save(tmp_path / "bad.nc")
    with pytest.raises(ValueError, match="h has the wrong shape"):
        Posterior.load(tmp_path / "bad.nc")


def test_grid_search_and_clone():
    X, y = iris()
    search = GridSearchCV(
        estimator("classification", h_by_feature=True), {"h": ["auto", "learn", 0.02]}, cv=2
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = clone(estimator("classification", h=np.full(5, 0.1), h_init=0.2))
    np.testing.assert_array_equal(model.h, np.full(5, 0.1))
    learning = clone(estimator("classification", h="learn", h_prior=(0.02, 1)))
    assert learning.method.h_prior == (0.02, 1)


def test_the_prior_matters():
    X, y = iris()
    narrow = estimator("classification", h="learn", h_prior=(0.2, 0.01)).fit(X, y)
    assert np.abs(np.log(narrow.posterior_.h / 0.2)).max() < 0.06


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"h": "wide"}, "h must be a number .* 'auto', 'learn'"),
        ({"h": [0.1, 0.2]}, "one for each of the 5 columns"),
        ({"h": [0.1, 0.2, 0.1, 0.1, -0.1]}, "none negative"),
        ({"h": [0.1, 0.2, 0.1, 0.1, "x"]}, "none negative"),
        ({"h": [0.1, 0.0, 0.1, 0.1, 0.1]}, "all 0 .* or all positive"),
        ({"h": [0.1, 1e-12, 0.1, 0.1, 0.1]}, "at least 1e-09"),
        ({"h_init": [0.1]}, "h_init must be a number, or one for each"),
        ({"h": [0.1] * 5, "method": "hmc-dfi"}, "must be one number"),
        ({"h": "learn", "preset": "paper"}, 'preset="paper"'),
        ({"h": "learn", "moves": "prior"}, 'moves="informed"'),
        ({"h": "learn", "h_prior": (0.0, 1.0)}, "median of h between 0.0001 and 0.5"),
        ({"h": "learn", "h_prior": (0.1, 0.0)}, "positive sd"),
        ({"h": "learn", "h_prior": (0.1,)}, "h_prior must be"),
        ({"h": "learn", "h_init": 0.9}, "h_init must be between"),
    ],
)
def test_refusals(options, complaint):
    X, y = iris()
    with pytest.raises(ValueError, match=complaint):
        estimator("classification", **options).fit(X, y)


def test_command_line(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    pandas.concat([X, y], axis=1).to_csv(tmp_path / "iris.csv", index=False)
    for h in ("auto", "learn"):
        out = tmp_path / f"{h}.nc"
        arguments = ["fit", str(tmp_path / "iris.csv"), "--target", "target", "-o", str(out)]
        arguments += ["--h", h, "--h-by-feature", "true", "--n-chains", "2"]
        result = CliRunner().invoke(app, [*arguments, "--n-warmup", "30", "--n-draws", "30"])
        assert result.exit_code == 0, result.output
        posterior = Posterior.load(out)
        assert posterior.configuration.h == h
        assert posterior.h.shape == ((4,) if h == "auto" else (2, 30, 4))
