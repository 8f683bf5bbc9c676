"""Explanations against brute force: over draws, over subsets of features, over values."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.posterior import shapley
from hamiltree.posterior.draws import TrainingData
from hamiltree.posterior.shapley import sampled_values, shapley_values
from hamiltree.posterior.svg import tree_svg

from ..support.fake_draws import fake_posterior, fake_rows, with_learned_h

NAMES = ("length", "width", "mass (kg)", "age")


def posterior(seed, n_classes=3, **options):
    return fake_posterior(seed, n_classes=n_classes, n_training=40, n_draws=20, **options)


def trees_of(post):
    return [post.tree(c, d) for c, d in np.ndindex(post.n_chains, post.n_draws)]


@pytest.mark.parametrize("h", [0.0, 0.05])
def test_prediction_and_the_share_of_trees_that_agree(h, seed):
    post = posterior(seed, h=h)
    row = fake_rows(1, seed=3)
    found = post.explain(row)
    each = np.array([tree.predict(row)[0] for tree in trees_of(post)])
    mean = each.mean(axis=0)
    assert found.prediction == post.preprocessing.classes[mean.argmax()]
    assert found.probability == pytest.approx(mean.max())
    assert found.agreement == pytest.approx((each.argmax(axis=1) == mean.argmax()).mean())
    low, high = post.predict_probability_quantiles(row, [0.05, 0.95], 0)[:, 0, mean.argmax()]
    assert found.interval == (pytest.approx(low), pytest.approx(high))
    assert found.sd is None
    assert list(found.row) == list(NAMES)


def test_the_path_says_through_which_tree(seed):
    post, row = posterior(seed), fake_rows(1, seed=3)
    assert "Its path through the tree of highest posterior:" in str(post.explain(row))
    assert "Its path through the given tree:" in str(post.explain(row, tree=post.tree(0, 1)))


def test_regression_says_its_sd_and_interval(seed):
    post = posterior(seed, 0)
    row = fake_rows(1, seed=3)
    found = post.explain(row)
    mean, sd = post.predict_mean_std(row)
    means = np.array([tree.predict(row)[0] for tree in trees_of(post)])
    assert (found.prediction, found.sd) == (pytest.approx(mean[0]), pytest.approx(sd[0]))
    assert found.agreement == pytest.approx((np.abs(means - mean[0]) <= sd[0]).mean())
    assert found.probability is None
    assert "of a new observation" in str(found)
    assert "move the mean by one sd" in str(found)


@pytest.mark.parametrize("oblique", [False, True])
def test_the_path_ends_in_the_likeliest_way(oblique, seed):
    """Each step by the split's own formula, and its share counted draw by draw."""
    post = posterior(seed, oblique=oblique)
    row = fake_rows(1, seed=8)
    tree = post.best_tree()
    found = post.explain(row)
    node, product = tree.to_dict(), 1.0
    for step in found.steps:
        columns = np.atleast_1d(node["column"])
        value = row[0, columns] @ np.atleast_1d(node.get("weights", [1.0]))
        no = 1 / (1 + math.exp(-(value - node["threshold"]) / node["h"]))
        assert step.value == pytest.approx(value)
        assert step.holds == (no <= 0.5)
        assert step.probability == pytest.approx(max(no, 1 - no))
        assert step.share == node["certainty"]
        product *= step.probability
        node = node["yes" if step.holds else "no"]
    assert "threshold" not in node
    assert product <= tree.reach(row).max() + 1e-9
    assert f"; {node['rows']:.1f} rows" in found.leaf


def test_shares_of_splits_are_counted_over_the_draws(seed):
    post = posterior(seed)
    found = post.explain(fake_rows(1, seed=8))
    columns = post.preprocessing.to_unit(post.training.X)
    tree = post.best_tree()
    for step, split in zip(found.steps, _splits_on(tree, found), strict=True):
        feature, threshold = tree.feature[split], tree.threshold[split]
        rank = (columns[feature] <= threshold).mean()
        alike = [
            any(
                f == feature and abs((columns[f] <= t).mean() - rank) <= 0.05 + 1e-12
                for f, t in zip(other.feature, other.threshold, strict=True)
            )
            for other in trees_of(post)
        ]
        assert step.share == pytest.approx(np.mean(alike))


def _splits_on(tree, found):
    """Numbers of the splits on the path, in preorder of the splits."""
    node, number = 0, []
    for step in found.steps:
        number.append(int((tree.size[:node] > 1).sum()))
        node = node + 1 if step.holds else node + 1 + int(tree.size[node + 1])
    return number


def exact_shapley(predict, row, base, columns):
    """By the definition: over all subsets of the other features."""
    n = len(columns)
    values = np.zeros(n)
    for place in range(n):
        others = [k for k in range(n) if k != place]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for subset in itertools.combinations(others, size):
                with_it, without = base.copy(), base.copy()
                for k in subset:
                    with_it[columns[k]] = without[columns[k]] = row[columns[k]]
                with_it[columns[place]] = row[columns[place]]
                values[place] += weight * (predict(with_it) - predict(without))
    return values


@pytest.mark.parametrize("h", [0.0, 0.05, "learned"])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_effects_are_shapley_values(h, n_classes, seed):
    """Against the definition, averaged over the background rows."""
    options = {"n_chains": 1, "n_draws": 3, "n_training": 5, "n_leaves": np.full((1, 3), 6)}
    post = fake_posterior(seed, n_classes=n_classes, h=0.05 if h else 0.0, **options)
    if h == "learned":
        post = with_learned_h(post, 4)
    row = fake_rows(1, seed=5)[0]
    columns, values, start = shapley_values(post, row, 1)
    for number, tree in enumerate(trees_of(post)):

        def predict(x, tree=tree):
            return tree.predict(x[None])[0, 1] if n_classes else tree.predict(x[None])[0]

        exact = [exact_shapley(predict, row, base, columns) for base in post.training.X]
        np.testing.assert_allclose(values[number], np.mean(exact, axis=0), atol=1e-12, rtol=1e-9)
    mean = post.predict_mean(post.training.X)
    assert start == pytest.approx((mean[:, 1] if n_classes else mean).mean())


def test_background_means_have_the_probability_of_each_leaf_last(seed):
    """Of the empty set 1; of all columns together, the mean probability of reaching the leaf."""
    post = fake_posterior(seed, n_chains=1, n_draws=4, n_training=30)
    for t, table in enumerate(shapley.background_means(post, post.training.X)):
        orders = shapley.orders_of(post, t, shapley.ways_of(post, t))
        ends = np.cumsum([2 ** len(order) for order in orders])
        assert ends[-1] == len(table)
        reached = post.tree(0, t).reach(post.training.X).mean(axis=0)
        np.testing.assert_allclose(table[ends - 1], reached, atol=1e-12)
        np.testing.assert_array_equal(table[[0, *ends[:-1]]], 1.0)


@pytest.mark.parametrize("oblique", [False, True])
def test_sampled_orders_estimate_the_same(oblique, seed):
    """In standard errors over the random orders, of two background rows.

    A random order and its reverse are an unbiased estimate. Over 200 of them, one test for each
    feature, tree and row, together at a false-alarm rate of 1e-4.
    """
    options = {"n_chains": 1, "n_draws": 3, "n_training": 64, "n_leaves": np.full((1, 3), 6)}
    post = fake_posterior(seed, oblique=oblique, **options)
    row = fake_rows(1, seed=5)[0]
    limit = stats.t.isf(1e-4 / 2 / 24, 199)
    for base in post.training.X[:2]:
        own = [sampled_values(post, row, base[None], 1, seed=seed + k) for k in range(200)]
        columns, parts = own[0][0], np.array([values for _, values, _ in own])
        for number, tree in enumerate(trees_of(post)):

            def predict(x, tree=tree):
                return tree.predict(x[None])[0, 1]

            exact = exact_shapley(predict, row, base, columns)
            difference = parts[:, number] - exact
            error = difference.std(axis=0, ddof=1) / np.sqrt(200)
            assert (np.abs(difference.mean(axis=0)) <= limit * error + 1e-12).all()
            np.testing.assert_allclose(parts[:, number].sum(axis=1), exact.sum(), atol=1e-12)


def test_deep_trees_and_weighted_sums_are_sampled(monkeypatch, seed):
    post = fake_posterior(seed, n_chains=1, n_draws=3, n_training=20, n_leaves=np.full((1, 3), 7))
    assert shapley.exact(post)
    assert not shapley.exact(fake_posterior(seed, n_chains=1, n_training=20, oblique=True))
    row = fake_rows(1, seed=5)[0]
    _, values, _ = shapley_values(post, row, 1)
    monkeypatch.setattr(shapley, "MOST_COLUMNS", 1)
    assert not shapley.exact(post)
    _, estimated, _ = shapley_values(post, row, 1)
    np.testing.assert_allclose(estimated.sum(axis=1), values.sum(axis=1))
    assert not np.allclose(estimated, values, atol=1e-12)


@pytest.mark.parametrize("oblique", [False, True])
def test_the_background_is_averaged(oblique, seed):
    post = fake_posterior(seed, n_chains=1, n_draws=3, n_training=10, oblique=oblique)
    row = fake_rows(1, seed=5)[0]
    _, values, start = shapley_values(post, row, 1)
    means = post.predict_draws(post.training.X)[0, :, :, 1]
    assert start == pytest.approx(means.mean())
    at_row = post.predict_draws(row[None])[0, :, 0, 1]
    np.testing.assert_allclose(values.sum(axis=1), at_row - means.mean(axis=1))


def test_effects_add_up_to_the_prediction(seed):
    post = posterior(seed, 0)
    row = fake_rows(1, seed=2)
    found = post.explain(row)
    total = found.baseline + sum(effect.mean for effect in found.effects)
    assert total == pytest.approx(found.prediction)
    assert found.baseline == pytest.approx(post.predict_mean(post.training.X).mean())
    sizes = [abs(effect.mean) for effect in found.effects]
    assert sizes == sorted(sizes, reverse=True)
    assert all(effect.low <= effect.mean + 1e-9 for effect in found.effects)


def test_a_tree_without_splits_is_explained(seed):
    post = posterior(seed, n_leaves=np.ones((2, 20), int))
    found = post.explain(fake_rows(1), post.best_tree(polish=False))
    assert (found.steps, found.effects, found.changes) == ((), (), ())
    assert "nothing: no feature affects it" in str(found)
    assert "No change of one feature within its range would change the class." in str(found)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_no_smaller_change_to_a_training_value_would_do(n_classes, seed):
    """The change does it; a 64th of the way to the neighbour less does not; nor a nearer value."""
    options = {"n_training": 40, "n_leaves": np.full((1, 3), 6), "n_chains": 1, "n_draws": 3}
    post = fake_posterior(seed, n_classes=n_classes, **options)
    if not n_classes:  # little noise, so that one sd can be reached
        post.draws = replace(post.draws, sigma=np.full((1, 3), 0.01))
        post.draws.leaf[:] = np.tile(np.arange(6.0), 3)[:, None]
    n_changes = 0
    for row in fake_rows(8, seed=4):
        found = post.explain(row[None])

        def does(column, values, row=row, found=found):
            changed = np.repeat(row[None], len(values), axis=0)
            changed[:, column] = values
            mean = post.predict_mean(changed)
            if n_classes:
                return post.preprocessing.classes[mean.argmax(axis=1)] != found.prediction
            return np.abs(mean - found.prediction) >= found.sd

        own = {change.feature: change for change in found.changes}
        n_changes += len(own)
        for column, name in zip(post.preprocessing.used, NAMES, strict=True):
            values = np.unique(post.training.X[:, column])
            apart = np.abs(values - row[column])
            flips = does(column, values)
            if name not in own:
                assert not flips.any()
                continue
            change = own[name]
            size = abs(change.becomes - change.value)
            assert does(column, [change.becomes])[0]
            assert size <= apart[flips].min() + 1e-12
            assert change.share_of_range == pytest.approx(
                size / post.preprocessing.span[NAMES.index(name)]
            )
            towards = np.sign(change.value - change.becomes)
            gap = np.diff(np.sort([*values, row[column]])).max() / 64
            assert size <= gap or not does(column, [change.becomes + towards * gap])[0]
    assert n_changes


def test_whole_numbers_stay_whole(seed):
    post = posterior(seed)
    rows = post.training.X.copy()
    rows[:, post.preprocessing.used[0]] = np.round(rows[:, post.preprocessing.used[0]])
    post.training = TrainingData(rows, post.training.y)
    found = post.explain(rows[:1])
    own = [change for change in found.changes if change.feature == "length"]
    assert all(change.becomes == round(change.becomes) for change in own)


def test_it_is_plain_values_and_the_same_each_time(seed):
    post = posterior(seed)
    found = post.explain(fake_rows(1))
    values = json.loads(json.dumps(found.to_dict()))
    assert values["prediction"] == found.prediction
    assert values["effects"][0]["feature"] == found.effects[0].feature
    assert str(post.explain(fake_rows(1))) == str(found) == repr(found)
    html = found._repr_html_()
    assert "of the trees agree" in html
    assert "<svg" in html


def test_one_row_and_the_training_data_are_needed(seed):
    post = posterior(seed)
    with pytest.raises(ValueError, match="one row, got 2"):
        post.explain(fake_rows(2))
    with pytest.raises(ValueError, match="explain needs the training data"):
        post.without_data().explain(fake_rows(1))


def test_rows_in_every_form(seed):
    import pandas

    X = pandas.DataFrame(fake_rows(40, seed), columns=["a", "b", "c", "d", "e"])
    X["d"] = np.arange(40.0)
    y = np.where(X["a"] > 2, "up", "down")
    model = BayesianTreeClassifier(n_chains=2, n_warmup=20, n_draws=20, random_state=0).fit(X, y)
    expected = str(model.explain(X[:1]))
    row = X.iloc[0]
    for form in (row, row.to_dict(), row.to_numpy(), row.tolist(), row.to_numpy()[None], row[::-1]):
        assert str(model.explain(form)) == expected
    with pytest.raises(ValueError, match="the row lacks e"):
        model.explain({"a": 1, "b": 2, "c": 3, "d": 4})
    numbers = BayesianTreeRegressor(n_chains=2, n_warmup=20, n_draws=20, random_state=0)
    numbers.fit(X.to_numpy(), X["a"])
    assert numbers.explain(X.to_numpy()[0]).prediction == pytest.approx(
        numbers.predict(X.to_numpy()[:1])[0]
    )
    assert numbers.explain(row).sd > 0


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("oblique", [False, True])
def test_drawings_are_valid_and_hold_every_node(n_classes, oblique, seed):
    post = posterior(seed, n_classes, oblique=oblique)
    scale = replace(post.preprocessing, feature_names=("<a>", "b&", '"c"', "constant", "d" * 40))
    post.preprocessing = scale
    tree = post.best_tree()
    drawing = ElementTree.fromstring(tree_svg(tree, marked=[0]))
    name = "{http://www.w3.org/2000/svg}"
    assert len(drawing.findall(f"{name}rect")) == len(tree.size)
    assert len(drawing.findall(f"{name}line")) == len(tree.size) - 1
    dashed = [box for box in drawing.findall(f"{name}rect") if box.get("stroke-dasharray")]
    assert len(dashed) == np.sum(tree.certainty < 0.5)
    large = fake_posterior(seed, n_leaves=np.full((2, 5), 30)).best_tree()
    assert tree_svg(large) == ""
