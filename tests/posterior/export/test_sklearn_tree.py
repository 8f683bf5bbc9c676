"""Trees handed to scikit-learn: the same predictions, and everything that works on such trees.

scikit-learn's state of a tree is private; if these fail after an upgrade, look there first.
"""

from __future__ import annotations

import dataclasses
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text, plot_tree

from hamiltree.posterior.draws import TrainingData

from ...support.fake_draws import fake_posterior, fake_preprocessing, fake_rows


def one_tree(seed, n_classes, h=0.0, n_leaves=6, n_training=60):
    return fake_posterior(
        seed,
        n_chains=1,
        n_draws=1,
        n_leaves=np.array([[n_leaves]]),
        n_classes=n_classes,
        h=h,
        n_training=n_training,
    ).tree(0, 0)


def frame(rows):
    return pd.DataFrame(rows, columns=list(fake_preprocessing().feature_names))


@pytest.mark.parametrize("n_leaves", [1, 2, 7])
def test_classifier_predicts_the_same(n_leaves, seed):
    tree = one_tree(seed, 3, n_leaves=n_leaves)
    model = tree.to_sklearn()
    assert isinstance(model, DecisionTreeClassifier)
    for rows in (tree.training.X, fake_rows(500, seed + 1)):
        np.testing.assert_allclose(model.predict_proba(frame(rows)), tree.predict(rows), rtol=1e-12)
    best = tree.preprocessing.classes[tree.predict(tree.training.X).argmax(axis=1)]
    assert (model.predict(frame(tree.training.X)) == best).all()
    assert (model.get_n_leaves(), model.get_depth()) == (tree.n_leaves, tree.depth)
    assert model.tree_.n_node_samples[0] == 60
    # values above the leaves are means of those below, by rows
    nodes = model.tree_
    for i in np.flatnonzero(nodes.children_left >= 0):
        below = [nodes.children_left[i], nodes.children_right[i]]
        counts = nodes.n_node_samples[below]
        if counts.min() > 0:
            mean = counts @ nodes.value[below, 0] / counts.sum()
            np.testing.assert_allclose(nodes.value[i, 0], mean, rtol=1e-6)


def test_regressor_predicts_the_same(seed):
    tree = one_tree(seed, 0)
    model = tree.to_sklearn()
    assert isinstance(model, DecisionTreeRegressor)
    rows = fake_rows(500, seed + 1)
    np.testing.assert_allclose(model.predict(frame(rows)), tree.predict(rows), rtol=1e-12)


def test_what_works_on_scikit_learns_trees_works(seed):
    model = one_tree(seed, 3).to_sklearn()
    text = export_text(model, feature_names=list(model.feature_names_in_))
    assert text.count("<=") == 5
    plot_tree(model)
    plt.close("all")
    copy = pickle.loads(pickle.dumps(model))
    rows = frame(fake_rows(20))
    assert (copy.predict_proba(rows) == model.predict_proba(rows)).all()
    assert model.decision_path(rows).shape == (20, 11)
    assert np.isclose(model.feature_importances_.sum(), 1) or model.tree_.impurity[0] == 0


def test_soft_splits_must_be_given_up_expressly(seed):
    tree = one_tree(seed, 3, h=0.05)
    with pytest.raises(ValueError, match="hard=True"):
        tree.to_sklearn()
    hard = dataclasses.replace(tree, h=np.zeros(4))
    rows = fake_rows(300, seed)
    got = tree.to_sklearn(hard=True).predict_proba(frame(rows))
    np.testing.assert_allclose(got, hard.predict(rows), rtol=1e-12)
    root = one_tree(seed, 3, h=0.05, n_leaves=1)  # has no split to be soft
    root.to_sklearn()


def test_what_scikit_learn_cannot_have_is_refused(seed):
    oblique = fake_posterior(seed, oblique=True, h=0.0, n_training=20).best_tree()
    with pytest.raises(ValueError, match="hmc-dfi"):
        oblique.to_sklearn()
    without = dataclasses.replace(one_tree(seed, 3), training=None)
    with pytest.raises(ValueError, match="training data"):
        without.to_sklearn()


def narrow(values, threshold, seed=0):
    """A stump on the first column, whose training values are these."""
    tree = one_tree(seed, 2, n_leaves=2)
    scale = dataclasses.replace(
        tree.preprocessing,
        minimum=np.array([values.min(), 0, 0, 0]),
        span=np.array([np.ptp(values), 1, 1, 1]),
    )
    rows = np.zeros((len(values), 5))
    rows[:, 0] = values
    y = np.arange(len(values)) % 2
    unit = scale.to_unit(np.array([[threshold, 0, 0, 0, 0]]))[0, 0]
    return dataclasses.replace(
        tree,
        feature=np.array([0], np.int32),
        threshold=np.array([unit]),
        preprocessing=scale,
        training=TrainingData(rows, y),
    )


def test_float32_moves_no_training_row(rng):
    """Cut at every value of a column that float32 rounds up or down: x <= x must stay true."""
    values = np.sort(rng.uniform(1, 2, 50))
    assert (values.astype(np.float32) > values).any()
    moved = 0
    for cut in values[:-1]:
        tree = narrow(values, cut)
        model = tree.to_sklearn()
        rows = frame(tree.training.X)
        np.testing.assert_allclose(model.predict_proba(rows), tree.predict(rows), rtol=1e-12)
        moved += model.tree_.threshold[0] != tree.to_dict()["threshold"]
    assert moved > 0


def test_values_that_float32_cannot_tell_apart_are_reported():
    values = np.array([1.0, 1.0 + 1e-12, 2.0])
    with pytest.warns(UserWarning, match="float32, which cannot distinguish 1 of the training"):
        narrow(values, values[0]).to_sklearn()
