"""Every method on every kind of target: fit, predict, save and reload, and the two agree."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.methods import CGM, HMCDF, HMCDFI, METHODS, SMC, WU
from hamiltree.posterior import Posterior

from ..support.configuring import parameters

SHORT = {"n_chains": 2, "n_warmup": 30, "n_draws": 40, "random_state": 3}
TARGETS = ("binary", "multi-class", "regression")


def data(target: str):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(90, 3))
    group = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3) * (X[:, 0] > 0)
    if target == "binary":
        return X, np.array(["no", "yes"])[np.minimum(group, 1)]
    if target == "multi-class":
        return X, np.array([10, 20, 30])[group]
    return X, 100.0 + 5.0 * group + rng.normal(scale=0.5, size=90)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("method", METHODS)
def test_fits_predicts_saves_and_reloads(method, target, tmp_path):
    X, y = data(target)
    estimator = BayesianTreeRegressor if target == "regression" else BayesianTreeClassifier
    model = estimator(**parameters(method=method, **SHORT)).fit(X, y)
    posterior = model.posterior_
    assert model.score(X, y) > 0.75
    assert posterior.weights.shape == (2, 40)
    np.testing.assert_allclose(posterior.weights.sum(), 1.0)
    assert np.isfinite(posterior.log_posterior).all()
    tree = posterior.tree(0, -1)
    assert tree.n_leaves == posterior.n_leaves[0, -1]
    assert tree.to_text()
    assert posterior.summary()
    samples = model.sample_predictive(X[:5], n_samples=7, random_state=0)
    assert samples.shape == (7, 5)
    interval = model.predict_interval(X[:5])
    if target == "regression":
        mean, sd = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (sd > 0).all()
        assert ((interval[:, 0] < mean[:5]) & (mean[:5] < interval[:, 1])).all()
        assert np.isfinite(posterior.sigma).all()
    else:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert set(np.unique(samples)) <= set(np.unique(y))

    path = tmp_path / "posterior.nc"
    posterior.save(path)
    again = Posterior.load(path)
    np.testing.assert_array_equal(again.predict_mean(X), posterior.predict_mean(X))
    np.testing.assert_array_equal(again.predict_single_trees(X), posterior.predict_single_trees(X))
    assert again.configuration == posterior.configuration
    assert again.acceptance.keys() == posterior.acceptance.keys()
    if target == "regression":
        before, after = (p.predict_quantiles(X[:5], [0.1, 0.9]) for p in (posterior, again))
        np.testing.assert_array_equal(before, after)


# ------------------------------------------------------------------ leaves with their own noise


@pytest.mark.parametrize("method", ["cgm", "wu", "smc"])
def test_each_leafs_own_noise_is_used(method):
    X, y = data("regression")
    y = y + np.where(X[:, 0] > 0, 4.0, 0.1) * np.random.default_rng(2).normal(size=len(y))
    model = BayesianTreeRegressor(**parameters(method=method, **SHORT)).fit(X, y)
    posterior = model.posterior_
    weight = posterior.weights.ravel()[:, None]
    trees = [posterior.tree(c, d) for c in range(2) for d in range(40)]
    found = [[leaves_of(tree, row) for row in X[:8]] for tree in trees]
    means, sds = np.moveaxis(np.array(found), 2, 0)
    mean, sd = model.predict(X[:8], return_std=True)
    np.testing.assert_allclose(mean, (weight * means).sum(axis=0))
    second = (weight * (means**2 + sds**2)).sum(axis=0)
    np.testing.assert_allclose(sd**2, second - mean**2, rtol=1e-6)
    lower, upper = model.predict_interval(X[:8], coverage=0.8).T
    for bound, share in ((lower, 0.1), (upper, 0.9)):
        np.testing.assert_allclose(
            (weight * ndtr((bound - means) / sds)).sum(axis=0), share, atol=1e-6
        )
    n = 4_000
    samples = model.sample_predictive(X[:8], n_samples=n, random_state=1)
    # Five standard errors; with the draws used evenly the spread can only be smaller.
    assert (np.abs(samples.mean(axis=0) - mean) < 5 * sd / np.sqrt(n)).all()
    noisy, calm = X[:8, 0] > 0.5, X[:8, 0] < -0.5
    assert sd[noisy].min() > 2 * sd[calm].max()


def leaves_of(tree, row):
    """Mean and sd of the leaf of a row, by the rules a person reads."""
    node = tree.to_dict()
    while "threshold" in node:
        node = node["yes"] if row[node["column"]] <= node["threshold"] else node["no"]
    return node["mean"], node["sd"]


def test_one_variance_for_all_leaves_on_request():
    X, y = data("regression")
    for method in ("cgm", "wu"):
        leaf = (
            BayesianTreeRegressor(method=METHODS[method](variance="common"), **SHORT)
            .fit(X, y)
            .posterior_.draws
        )
        first = (leaf.node_offset[:-1] + np.arange(80)) // 2
        sd = np.repeat(leaf.leaf[first, 1], leaf.n_leaves.ravel())
        np.testing.assert_array_equal(leaf.leaf[:, 1], sd)
        np.testing.assert_allclose(leaf.sigma.ravel(), leaf.leaf[first, 1])


# ------------------------------------------------------------------ hyper-parameters


def test_the_total_mass_is_spread_over_the_classes():
    X, y = data("multi-class")

    def fitted(**parameters):
        return BayesianTreeClassifier(**SHORT, **parameters).fit(X, y).posterior_.configuration

    spread = fitted(method=CGM(class_mass=1.5)).method
    assert spread.class_concentration(3) == (0.5, 0.5, 0.5)
    paper = fitted(method="cgm", preset="paper").method
    assert paper.class_concentration(3) == (1 / 3, 1 / 3, 1 / 3)
    assert (paper.proposals, paper.min_leaves) == (1, 1)
    assert fitted(method=CGM.paper(class_prior=2.0)).method.class_concentration(3) == (2.0,) * 3
    with pytest.raises(ValueError, match="class_prior or class_mass, not both"):
        fitted(method=CGM(class_mass=1.0, class_prior=1.0))


def test_priors_of_leaves_are_ours_or_the_papers():
    """One row in each leaf, spread over the classes; the papers have other values."""
    for cls in METHODS.values():
        assert cls().class_concentration(4) == (0.25,) * 4
        assert cls(class_prior=0.5).class_concentration(4) == (0.5,) * 4
        assert cls.paper(class_mass=2.0).class_concentration(4) == (0.5,) * 4
    assert WU.paper().class_concentration(2) == (2.0, 2.0)
    assert SMC.paper().class_concentration(2) == (0.25, 0.25)
    for cls in (HMCDF, HMCDFI):
        assert cls.paper().class_concentration(3) == (1.0,) * 3
        assert cls().sigma_prior == (1.5, 0.1)
        assert cls.paper().sigma_prior == (1.5, 1.5)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (CGM, {"variance_prior": (1.0,)}),
        (CGM, {"variance_prior": (1.0, -1.0)}),
        (CGM, {"mean_prior": (0.0, 0.0)}),
        (CGM, {"mean_prior": (np.inf, 1.0)}),
        (WU, {"expected_splits": 0.0}),
        (WU, {"left_share": 1.0}),
        (CGM, {"rule_prior": "flat"}),
        (CGM, {"variance": "shared"}),
        (CGM, {"proposals": 0}),
        (WU, {"triples": 0}),
    ],
)
def test_impossible_hyper_parameters_are_refused(method, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        method(**wrong)


# ------------------------------------------------------------------ docs/symbols.md

SYMBOLS = (Path(__file__).parents[2] / "docs" / "symbols.md").read_text("utf-8")


def test_the_table_of_symbols_names_parameters_that_exist():
    owners = (BayesianTreeClassifier, BayesianTreeRegressor, *METHODS.values())
    known = {f.name for owner in owners for f in fields(owner)}
    tables = [line.split("|") for line in SYMBOLS.splitlines() if line.startswith("|")]
    named = {
        name
        for cells in tables
        for cell in (cells[3] if len(cells) == 6 else cells[1],)
        for name in re.findall(r"`([a-z_]+)[`=]", cell)
    }
    assert len(named) > 20
    assert named <= known, named - known


def test_table_4_as_code_can_be_constructed():
    (code,) = re.findall(r"```python\n(.*?)```", SYMBOLS, re.S)
    exec(compile(code, "symbols.md", "exec"), {})
