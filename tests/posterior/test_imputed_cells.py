"""What is made of draws whose rules impute missing cells, against rules applied one by one."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from hamiltree.inputs.columns import Column, coded
from hamiltree.inputs.preprocess import learn
from hamiltree.methods import CGM, HMCDF
from hamiltree.plots import plot_partial_dependence, plot_tree
from hamiltree.plots.partial_dependence import _curves
from hamiltree.posterior import Posterior
from hamiltree.posterior.draws import TrainingData
from hamiltree.posterior.prior import prior_trees
from hamiltree.posterior.shapley import sampled_values, shapley_values
from hamiltree.posterior.svg import tree_svg
from hamiltree.posterior.tree_text import rule_text

from ..support.fake_draws import fake_posterior
from .imputing import COLUMNS, KINDS, NAMES, imputing_posterior, imputing_rows, with_parts


def trees_of(post):
    return [post.tree(c, d) for c, d in np.ndindex(post.n_chains, post.n_draws)]


def splits_of(node):
    if "threshold" not in node:
        return []
    return [node, *splits_of(node["yes"]), *splits_of(node["no"])]


def chance_of_no(node, row, filled, scale):
    """By the text of ``to_dict``'s own documentation, in the user's units."""
    cell = row[node["column"]]
    if "levels" in node:
        if np.isnan(cell):
            return 0.5
        label = scale.columns[node["column"]].label(int(cell))
        return float(label in node["other_levels"])
    if np.isnan(cell):
        if node.get("missing") is None:
            return 0.5
        if node["missing"] != "imputed":
            return float(node["missing"] == "no")
        cell = filled[node["column"]]
    if node["threshold"] is None:
        return float(node["missing"] == "yes")
    if node["h"] == 0:
        return float(cell > node["threshold"])
    return 1 / (1 + np.exp(-(cell - node["threshold"]) / node["h"]))


def mean_of(node, row, filled, scale):
    if "threshold" not in node:
        return node["mean"]
    no = chance_of_no(node, row, filled, scale)
    yes, other = (mean_of(node[side], row, filled, scale) for side in ("yes", "no"))
    return (1 - no) * yes + no * other


# ------------------------------------------------------------------ rules


@pytest.mark.parametrize("h", [0.0, 0.05])
def test_predictions_are_those_of_the_rules(h, seed):
    post = imputing_posterior(seed, h=h, n_classes=0)
    rows = imputing_rows(40, seed + 1)
    rows[::5, 0] = np.nan  # missing in no training row: both ways
    filled = post.preprocessing.imputed(rows)
    drawn = post.predict_draws(rows)
    for c, d in np.ndindex(2, 20):
        tree = post.tree(c, d)
        root = tree.to_dict()
        expected = [
            mean_of(root, *pair, post.preprocessing) for pair in zip(rows, filled, strict=True)
        ]
        np.testing.assert_allclose(tree.predict(rows), expected, rtol=1e-9)
        np.testing.assert_allclose(drawn[c, d], expected, rtol=1e-9)


def number_in(rule):
    """The threshold."""
    return rule.split(" ")[2].rstrip(",")


@pytest.mark.parametrize("h", [0.0, 0.05])
def test_texts_say_where_missing_cells_go(h, seed):
    """One of each kind in all trees: a side, imputed, and "is missing"."""
    post = imputing_posterior(seed, h=h)
    found = set()
    for tree in trees_of(post):
        text, graph, drawing = tree.to_text(), tree.to_graphviz(), tree_svg(tree)
        for split in splits_of(tree.to_dict()):
            rule = rule_text(tree.preprocessing, split)
            assert f"{rule}  (" in text
            assert rule in graph
            if split["feature"] not in ("age", "count"):
                assert "missing" not in split
                continue
            cut = split["threshold"] is not None
            kind = (split["missing"], cut)
            found.add(kind)
            assert rule.startswith(f"{split['feature']} <= ") == cut
            assert rule.endswith(", imputed if missing") == (kind == ("imputed", True))
            assert rule.endswith(" or missing") == (kind == ("yes", True))
            if kind == ("imputed", True):
                assert "imputed" in drawing
            if kind[0] == "imputed" and split["feature"] == "count" and h == 0:
                shown, exact = (
                    rule_text(tree.preprocessing, split, exact=exact) for exact in (False, True)
                )
                assert float(number_in(shown)) == np.floor(split["threshold"])
                assert float(number_in(exact)) == pytest.approx(split["threshold"], abs=0.05)
    sides = {(side, cut) for side in ("yes", "no") for cut in (False, True)}
    assert found == sides | {("imputed", True)}


def test_trees_with_imputed_cells_are_drawn(seed):
    tree = max(trees_of(imputing_posterior(seed)), key=lambda tree: tree.n_leaves)
    texts = " ".join(text.get_text() for text in plot_tree(tree).texts)
    assert ("imputed" in texts) == ("imputed if missing" in tree.to_text())


def test_splits_are_alike_if_missing_cells_go_the_same_way(seed):
    """Stumps at one threshold: a third of the trees has each of the three."""
    n = 30
    base = imputing_posterior(seed, n_chains=1, n_draws=n)
    draws = dataclasses.replace(
        fake_posterior(0, n_chains=1, n_draws=n, n_leaves=np.full((1, n), 2)).draws,
        feature=np.full(n, 2, np.int32), threshold=np.full(n, 0.5), kinds=KINDS,
        levels=np.tile(np.arange(3, dtype=np.uint64), n // 3),
    )  # fmt: skip
    post = with_parts(base, draws=draws)
    for d in range(3):
        assert post.tree(0, d).certainty[0] == pytest.approx(1 / 3)
    shares = {shape.tree.to_dict().get("missing") for shape in post.shapes(3)}
    assert shares <= {"yes", "no", "imputed"}
    assert "age <= " in post.representative_tree().to_text()


# ------------------------------------------------------------------ explanations


def test_the_path_says_what_cells_were_imputed_as(seed):
    found = 0
    for number in range(10):
        post = imputing_posterior(seed + number)
        scale = post.preprocessing
        for row in imputing_rows(3, number)[:, None]:
            filled = scale.imputed(row)[0]
            tree = max(trees_of(post), key=lambda tree: (tree.levels == 2).sum())
            explanation = post.explain(row, tree=tree)
            node = tree.to_dict()
            for step in explanation.steps:
                no = chance_of_no(node, row[0], filled, scale)
                assert step.holds == (no <= 0.5)
                assert step.probability == pytest.approx(max(no, 1 - no))
                imputed = node.get("missing") == "imputed" and np.isnan(row[0, node["column"]])
                assert (step.imputed is not None) == imputed
                if imputed:
                    found += 1
                    value = filled[node["column"]]
                    assert step.value is None
                    assert step.imputed == pytest.approx(
                        value, abs=1e-3 * scale.span[node["column"]]
                    )
                    text = f"{step.rule}? {'yes' if step.holds else 'no'} (missing, imputed as "
                    assert f"{text}{step.imputed:.6g}" in str(explanation)
                    threshold = float(number_in(step.rule))
                    assert (step.imputed <= threshold) == step.holds or step.probability < 0.6
                node = node["yes" if step.holds else "no"]
            plain = explanation.to_dict()["steps"]
            assert [own["imputed"] for own in plain] == [s.imputed for s in explanation.steps]
            json.dumps(plain)
    assert found > 5


def test_ranks_that_were_imputed_are_told_as_ranks():
    """An imputed rank lies between two categories: neither of their names would be right."""
    column = Column(missing=True, whole=True, order=("low", "mid", "high"))
    X = np.column_stack([np.arange(12.0) % 3, np.arange(12.0)])
    X[5, 0] = np.nan
    scale = learn(X, ("grade", "size"), columns=(column, Column()), y=np.arange(12), impute=True)
    split = {"feature": "grade", "column": 0, "threshold": 1.6, "h": 0.0, "missing": "imputed"}
    assert rule_text(scale, split) == "grade <= mid, imputed if missing"
    exact = rule_text(scale, split, exact=True)
    assert exact == "grade <= 1.600 (rank; low is 0), imputed if missing"


@pytest.mark.parametrize("n_classes", [0, 3])
def test_effects_add_up_and_equal_their_estimates(n_classes, seed):
    """A missing cell takes its imputed number along, in exact and in sampled effects."""
    post = imputing_posterior(seed, n_chains=1, n_draws=4, n_classes=n_classes)
    row, base = imputing_rows(3, seed)[2], post.training.X[:1]
    alone = with_parts(post)
    alone.training = TrainingData(base, post.training.y[:1])
    columns, values, start = shapley_values(alone, row, 1)
    predicted = post.predict_draws(coded(np.vstack([row, base])))[0]
    predicted = predicted[..., 1] if n_classes else predicted
    np.testing.assert_allclose(values.sum(axis=1), predicted[:, 0] - predicted[:, 1], atol=1e-9)
    assert start == pytest.approx(predicted[:, 1].mean())
    drawn = np.array([sampled_values(post, row, base, 1, seed=k)[1] for k in range(200)])
    np.testing.assert_array_equal(sampled_values(post, row, base, 1)[0], columns)
    error = drawn.std(axis=0, ddof=1) / np.sqrt(200)
    limit = stats.t.isf(1e-4 / 2 / values.size, 199)
    assert (np.abs(drawn.mean(axis=0) - values) <= limit * error + 1e-9).all()


def test_partial_dependence_imputes_from_the_changed_cells(seed):
    """Each point is the mean prediction of rows with the value: what they lack is imputed anew."""
    post = imputing_posterior(seed, n_classes=0)
    rows, grid = imputing_rows(20, seed), np.array([-2.0, 6.0])
    curves = _curves(post, rows, 0, grid)
    for k, value in enumerate(grid):
        changed = rows.copy()
        changed[:, 0] = value
        np.testing.assert_allclose(curves[:, k, 0].mean(), post.predict_mean(changed).mean())
    before, after = (post.preprocessing.imputed(np.array([[v, 0, np.nan, np.nan]])) for v in grid)
    assert (after[0, 2:] > before[0, 2:]).all()
    assert plot_partial_dependence(post, "age") is not None


# ------------------------------------------------------------------ prior and export


def special_posterior(impute):
    post = imputing_posterior(1, n_classes=0)
    rows = post.training.X
    scale = learn(rows, NAMES, columns=COLUMNS, y=post.training.y, impute=impute)
    configuration = HMCDF(min_leaves=2, impute=impute).configured(regression=True, h=0.05)
    return Posterior(post.draws, post.info, scale, configuration, training=post.training)


@pytest.mark.parametrize(
    ("impute", "shares"),
    [(True, [0.4, 0.2, 0.2, 0.1, 0.1]), (False, [0.0, 0.4, 0.4, 0.1, 0.1])],
)
def test_rules_on_columns_with_missing_cells_follow_the_prior(impute, shares, rng):
    """Imputed, either side, and "is missing" in both directions; a false alarm in 100,000."""
    drawn = prior_trees(special_posterior(impute), 4000, rng).draws
    own = drawn.feature >= 2
    levels, cut = drawn.levels[own], np.isfinite(drawn.threshold[own])
    counts = [np.sum(cut & (levels == side)) for side in (2, 0, 1)]
    counts += [np.sum(~cut & (levels == side)) for side in (0, 1)]
    assert np.sum(counts) == own.sum() > 3000
    possible = np.array(shares) > 0
    expected = own.sum() * np.array(shares)
    assert (np.array(counts)[~possible] == 0).all()
    assert stats.chisquare(np.array(counts)[possible], expected[possible]).pvalue > 1e-5


def test_the_prior_predicts_rows_with_missing_cells(rng):
    found = special_posterior(True).sample_prior(imputing_rows(5, 3), 50, rng)
    assert found.shape == (50, 5)
    assert np.isfinite(found).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
def test_onnx_sends_imputed_cells_where_their_mean_goes(seed):
    """As if no column told of another, which a diagonal covariance says."""
    pytest.importorskip("onnx", reason="needs the optional group onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs the optional group onnx")
    post = imputing_posterior(seed, h=0.05)
    hard = dataclasses.replace(post.draws, h=np.zeros_like(post.draws.h))
    by = post.preprocessing.imputation
    alone = dataclasses.replace(by, covariance=np.diag(np.diag(by.covariance)))
    scale = dataclasses.replace(post.preprocessing, imputation=alone)
    rows = imputing_rows(500, seed + 1)
    model = post.to_onnx(hard=True)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, {"X": np.asarray(rows)})[0]
    expected = with_parts(post, draws=hard, scale=scale).predict_mean(rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    imputed = with_parts(post, draws=hard).predict_mean(rows)
    assert np.abs(found - imputed).max() > 1e-3  # where other cells tell more than the mean


def test_scikit_learn_has_no_such_splits(seed):
    post = imputing_posterior(seed, h=0.0)
    tree = max(trees_of(post), key=lambda tree: (tree.feature > 1).sum())
    with pytest.raises(ValueError, match="no splits on categories or missing cells"):
        tree.to_sklearn()


def test_only_soft_splits_on_one_feature_impute():
    assert HMCDF().imputes(None)
    assert HMCDF().imputes("learn")
    assert HMCDF().imputes((0.1, 0.2))
    assert not HMCDF().imputes(0)
    assert not HMCDF().imputes((0.0, 0.0))
    assert not HMCDF(impute=False).imputes(None)
    assert not CGM().imputes(None)
