"""Leave-one-out and comparisons, against ArviZ's own and against formulas."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas
import pytest

import hamiltree
from hamiltree.posterior import Posterior, compare
from hamiltree.posterior.comparison import Comparison
from hamiltree.posterior.loo import Loo, loo

from ..support.fake_draws import fake_posterior

az = pytest.importorskip("arviz_stats")


def posterior(seed, n_classes, n_training=40, n_draws=60):
    """With noise of about the size of the targets: the trees have nothing to do with those."""
    post = fake_posterior(seed, n_classes=n_classes, n_training=n_training, n_draws=n_draws)
    if not n_classes:
        post.draws = dataclasses.replace(post.draws, sigma=np.full_like(post.draws.sigma, 1.5))
    return post


@pytest.mark.filterwarnings("ignore")  # ArviZ warns of Pareto k, and uses what pandas deprecates
@pytest.mark.parametrize("n_classes", [0, 3])
def test_loo_is_arvizs_on_the_datatree(n_classes, seed):
    post = posterior(seed, n_classes)
    own, theirs = post.loo(), az.loo(post.to_datatree(), pointwise=True)
    assert own.elpd == pytest.approx(theirs.elpd, rel=1e-12)
    assert own.se == pytest.approx(theirs.se, rel=1e-12)
    assert own.p == pytest.approx(theirs.p, rel=1e-12)
    np.testing.assert_allclose(own.pareto_k, theirs.pareto_k, rtol=1e-12)
    assert own.elpd == pytest.approx(own.elpd_i.sum())
    assert own.n_rows == 40
    assert own.good_k == theirs.good_k


@pytest.mark.filterwarnings("ignore")
def test_compare_is_arvizs(seed):
    a, b, c = (posterior(seed + k, 0) for k in range(3))
    b.training = c.training = a.training
    own = compare({"a": a, "b": b, "c": c})
    trees = {"a": a.to_datatree(), "b": b.to_datatree(), "c": c.to_datatree()}
    theirs = az.compare(trees)
    assert list(own.table.index) == list(theirs.index)
    np.testing.assert_allclose(own.table["elpd"], theirs["elpd"], rtol=1e-9)
    np.testing.assert_allclose(-own.table["elpd_diff"], theirs["elpd_diff"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(own.table["diff_se"], theirs["dse"], rtol=1e-9, atol=1e-9)
    assert list(own.loo) == list(own.table.index)
    assert "elpd_diff" in str(own)
    assert isinstance(own.table, pandas.DataFrame)


def weighted(post, weights):
    draws = dataclasses.replace(post.draws, weights_of_draws=weights)
    return Posterior(
        draws, post.info, post.preprocessing, post.configuration, training=post.training
    )


def test_weighted_draws_are_resampled(seed, rng):
    post = posterior(seed, 0)
    heavy = weighted(post, rng.dirichlet(np.full(120, 0.5)).reshape(2, 60))
    assert heavy.loo().elpd == pytest.approx(heavy.equally_weighted().loo().elpd)


def made(pareto_k, n=100):
    k = np.full(n, 0.1)
    k[: len(pareto_k)] = pareto_k
    return Loo(-50.0, 5.0, 3.0, np.full(n, -0.5), k, 0.7)


def test_pareto_k_is_told_in_words():
    assert made([]).sentence == "All 100 rows are reliable (Pareto k at most 0.70)."
    one = made([0.1, 0.9])
    assert one.unreliable.tolist() == [1]
    assert one.sentence.startswith("1 of 100 rows is unreliable (Pareto k above 0.70: row 1)")
    assert "depend on it so strongly" in one.sentence
    assert "Look at this row, and check it by" in one.sentence
    many = made([0.8, 0.9, 1.0, np.inf, np.nan, 0.75, 0.71])
    assert set(many.unreliable.tolist()) == set(range(7))
    assert "7 of 100 rows are unreliable" in many.sentence
    assert "depend on them so strongly" in many.sentence
    assert "Do not rely on the sum" in many.sentence
    assert str(one) == repr(one)
    assert "elpd  -50.0 (standard error 5.0), -0.500 per row" in str(one)
    assert ">1 unreliable row<" in one._repr_html_()
    assert ">7 unreliable rows<" in many._repr_html_()


def test_what_is_compared_must_be_of_the_same_rows(seed):
    post = posterior(seed, 3)
    with pytest.raises(ValueError, match="at least two"):
        compare([post])
    with pytest.raises(ValueError, match="model 1 was not fitted to the same targets"):
        compare([post, posterior(seed + 1, 3)])
    with pytest.raises(ValueError, match="model 1 was not fitted to the same targets"):
        compare([post, posterior(seed, 3, n_training=30)])
    with pytest.raises(ValueError, match="needs the training data"):
        compare([post.without_data(), post])
    with pytest.raises(TypeError, match="call fit first"):
        compare([hamiltree.BayesianTreeClassifier(), post])
    with pytest.raises(ValueError, match="loo needs the training data"):
        loo(post.without_data())


def test_what_could_not_be_computed_comes_last(seed, monkeypatch):
    a, b = posterior(seed, 0), posterior(seed, 0)
    results = iter([dataclasses.replace(made([]), elpd=np.nan), made([])])
    monkeypatch.setattr("hamiltree.posterior.comparison.loo", lambda _: next(results))
    assert list(compare([a, b]).table.index) == ["model 1", "model 0"]


def test_the_sentence_of_a_comparison():
    good, bad = made([]), made([])
    table = pandas.DataFrame(
        {"elpd": [-50.0, -52.0, -90.0], "se": 5.0, "elpd_diff": [0.0, -2.0, -40.0],
         "diff_se": [0.0, 1.0, 6.0], "p": 3.0, "unreliable": 0},
        index=["a", "b", "c"],
    )  # fmt: skip
    found = Comparison(table, {"a": good, "b": bad, "c": made([0.9])})
    assert found.sentence.startswith(
        '"a" predicts better than "c"; "a" and "b" cannot be told apart'
    )
    assert 'unreliable estimates for "c"' in found.sentence
