"""Missing cells and categories in the core: routing, gradients and priors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from hamiltree.core.forest import Forest
from hamiltree.core.hard.moves import settle
from hamiltree.core.hard.rules import draw_rule_at, log_draw_at, log_rule_at, some_rule
from hamiltree.core.predict import most_likely_leaf, tree_predictions
from hamiltree.core.scan.data import make_scan_data
from hamiltree.core.scan.rows import goes_right
from hamiltree.core.soft.data import (
    CLASSES,
    COLLAPSED,
    GRADIENT,
    LABELS,
    MEANS,
    VALUE,
    make_data,
    make_leaf_prior,
    make_work,
)
from hamiltree.core.soft.target import (
    dimension,
    evaluate,
    log_density_and_gradient,
    make_model,
    unconstrain,
)
from hamiltree.core.tree.kinds import (
    MISSING,
    all_levels,
    coded_kinds,
    decoded_kinds,
    draw_levels,
    log_subsets,
    make_kinds,
)
from hamiltree.core.tree.nodes import copy_tree, empty_tree
from hamiltree.core.tree.priors import log_rule, make_tree_prior
from hamiltree.posterior.draws import special_arrays
from hamiltree.samplers import hard
from hamiltree.samplers.common import Problem

from ..reference.special import (
    IMPUTED,
    IS_MISSING,
    TAKEN_AS_IMPUTED,
    bits,
    psi_of,
    rules_of,
    sides_of,
    subsets,
)
from ..support.configuring import configured
from ..support.special import (
    COLUMNS,
    IMPUTING,
    as_columns,
    as_rows,
    kinds_of,
    phi_of,
    random_rows,
    random_special_tree,
    rule_at,
    set_of,
)

FAMILIES = {
    "classes": CLASSES,
    "labels": LABELS,
    "explicit": MEANS,
    "collapsed": COLLAPSED,
}
MAX_LEAVES = 12
ALPHA, MU, TAU = 0.7, (0.3, 1.2), (1.3, 2.0)
IMPUTED_OR_NOT = pytest.mark.parametrize("columns", [COLUMNS, IMPUTING], ids=["sides", "imputed"])


def prior_of(columns=COLUMNS, tau=TAU, feature=None):
    return make_tree_prior(
        len(columns),
        alpha_split=0.9,
        beta_split=1.5,
        min_leaves=1,
        max_leaves=MAX_LEAVES,
        tau_prior=tau,
        feature_prior=feature,
        weight_prior=1.0,
        kinds=kinds_of(columns),
    )


def model_of(rng, family, X, h, prior, dtype=np.float64):
    n_classes = 3 if family in ("classes", "labels") else 0
    y = rng.integers(0, 3, len(X)) if n_classes else rng.normal(size=len(X))
    data = make_data(as_columns(X).astype(dtype), y, n_classes, kinds=prior.kinds)
    work = make_work(data, MAX_LEAVES, n_classes, 0, FAMILIES[family])
    leaf_prior = make_leaf_prior(np.full(n_classes, ALPHA), MU, (1.5, 1.3))
    softness = np.full(X.shape[1], h)
    model = make_model(FAMILIES[family], data, prior, leaf_prior, softness, 1.0, np.zeros(0), work)
    if family == "labels":
        model.leaves.p[:] = rng.dirichlet(np.ones(n_classes), size=MAX_LEAVES)
    return model, work, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("h", [0.0, 0.05])
@pytest.mark.parametrize("family", FAMILIES)
@IMPUTED_OR_NOT
def test_likelihood_matches_the_reference(columns, family, h, dtype, rng):
    prior = prior_of(columns)
    for n_splits in (1, 4, 8):
        X = as_rows(as_columns(random_rows(rng, 30, columns)).astype(dtype))
        tree = random_special_tree(rng, prior, n_splits)
        model, work, y = model_of(rng, family, X, h, prior, dtype)
        inner = [i for i in range(int(tree.n_nodes[0])) if tree.size[i] > 1]
        phi = phi_of(tree, {i: psi_of(rule_at(tree, i), X, columns, h) for i in inner}, len(X))
        sigma = float(tree.sigma[0])
        if family == "classes":
            counts = np.eye(3)[:, y] @ phi
            expected = (gammaln(3 * ALPHA) - gammaln(counts.sum(axis=0) + 3 * ALPHA)).sum()
            expected += (gammaln(counts + ALPHA) - gammaln(ALPHA)).sum()
        elif family == "labels":
            p = model.leaves.p[: n_splits + 1]
            expected = np.log((phi @ p)[np.arange(len(y)), y]).sum()
        elif family == "explicit":
            leaf = tree.size[: tree.n_nodes[0]] == 1
            mean = phi @ tree.value[: tree.n_nodes[0]][leaf]
            expected = stats.norm.logpdf(y, mean, sigma).sum()
        else:
            covariance = sigma**2 * np.eye(len(X)) + MU[1] ** 2 * phi @ phi.T
            expected = stats.multivariate_normal.logpdf(y, MU[0] * phi.sum(axis=1), covariance)
        for what in (VALUE, GRADIENT):
            value = evaluate(model, model.family, tree, work, what)
            assert value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family", FAMILIES)
@IMPUTED_OR_NOT
def test_gradient_matches_central_differences(columns, family, dtype, rng):
    """Only thresholds of numbers have coordinates, and missing rows push none with a side."""
    prior = prior_of(columns)
    for n_splits in (1, 3, 6, 9):
        X = random_rows(rng, 40, columns)
        tree = random_special_tree(rng, prior, n_splits)
        model, work, _ = model_of(rng, family, X, 0.05, prior, dtype)
        n = dimension(model, tree)
        moving = sum(
            columns[tree.feature[i]][0] == 0 and np.isfinite(tree.threshold[i])
            for i in range(int(tree.n_nodes[0]))
            if tree.size[i] > 1
        )
        others = {"explicit": n_splits + 2, "collapsed": 1}
        assert n == moving + others.get(family, 0)
        u, grad, ignored = np.zeros(n), np.zeros(n), np.zeros(n)
        assert unconstrain(model, tree, u) == n
        log_density_and_gradient(u, grad, (model, tree, work))
        for j in range(n):
            step = np.zeros(n)
            step[j] = 1e-5
            ends = [
                log_density_and_gradient(u + sign * step, ignored, (model, tree, work))
                for sign in (1, -1)
            ]
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(grad[j], rel=1e-4, abs=1e-5)


def test_sets_of_levels(rng):
    assert set_of(int(all_levels(64))) == frozenset(range(64))
    assert math.exp(log_subsets(3)) == pytest.approx(6)
    drawn = {int(draw_levels(3, rng)) for _ in range(200)}
    assert drawn == {bits(s) for s in subsets([0, 1, 2])}
    for columns, code in ((COLUMNS, [0, -1, 3, 5]), (IMPUTING, [0, -2, 3, -2, -1])):
        kinds = kinds_of(columns)
        np.testing.assert_array_equal(coded_kinds(kinds), code)
        again = decoded_kinds(coded_kinds(kinds))
        np.testing.assert_array_equal(again.levels, kinds.levels)
        np.testing.assert_array_equal(again.missing, kinds.missing)
    with pytest.raises(ValueError, match="at most 64"):
        make_kinds([65], [False])


@IMPUTED_OR_NOT
def test_prior_of_rules_adds_up(columns, rng):
    """Over sets, sides and thresholds, by quadrature."""
    prior = prior_of(columns)
    node, weight = np.polynomial.legendre.leggauss(40)
    tree = empty_tree(2, 0)
    total = np.zeros(len(columns))
    for rule, _ in rules_of(random_rows(rng, 9, columns), columns, ((node + 1) / 2, weight / 2)):
        f, threshold, levels = rule
        tree.feature[0], tree.threshold[0], tree.levels[0] = f, threshold, bits(levels)
        number = columns[f][0] == 0 and np.isfinite(threshold)
        width = weight[np.argmin(np.abs((node + 1) / 2 - threshold))] / 2 if number else 1.0
        total[f] += math.exp(log_rule(prior, tree, 0)) * width
    np.testing.assert_allclose(total, 1 / len(columns), rtol=1e-4)


# ------------------------------------------------------------------ predictions


@IMPUTED_OR_NOT
def test_predictions(columns, rng):
    """New rows: levels never seen, and missing cells where training had none, go both ways."""
    prior = prior_of(columns)
    for h, n_splits in itertools.product((0.0, 0.05), (1, 4, 7)):
        tree = random_special_tree(rng, prior, n_splits)
        X = random_rows(rng, 300, columns)
        unknown = rng.random(X.shape) < 0.1
        hole = np.where(
            [missing == IMPUTED for _, missing in columns], -1 - rng.random(X.shape), np.nan
        )
        inner = [i for i in range(int(tree.n_nodes[0])) if tree.size[i] > 1]
        psi = {}
        for i in inner:
            f = int(tree.feature[i])
            hidden = X.copy()
            hidden[unknown[:, f], f] = 0.0 if columns[f][0] else hole[unknown[:, f], f]
            psi[i] = psi_of(rule_at(tree, i), hidden, columns, h)
            if not columns[f][1]:
                psi[i][unknown[:, f]] = 0.5
        phi = phi_of(tree, psi, len(X))
        n = int(tree.n_nodes[0])
        inside = tree.size[:n] > 1
        values = rng.normal(size=(n_splits + 1, 2))
        forest = Forest(
            node_offset=np.array([0, n]),
            size=tree.size[:n].astype(np.int32),
            feature=tree.feature[:n][inside].astype(np.int32),
            threshold=tree.threshold[:n][inside].copy(),
            weights=np.zeros((n_splits, 0)),
            h=np.full((1, 1), h),
            **special_arrays(tree.levels[:n][inside].copy(), coded_kinds(prior.kinds), n_splits),
        )
        new = as_columns(np.where(unknown, hole, X))
        found = tree_predictions(forest, values, new)[0]
        np.testing.assert_allclose(found, phi @ values, atol=1e-12)
        np.testing.assert_array_equal(
            most_likely_leaf(forest, new)[0], (phi - 1e-9 * np.arange(n_splits + 1)).argmax(1)
        )


# ------------------------------------------------------------------ hard trees


def test_rows_of_hard_trees_go_where_rules_send_them(rng):
    """CGM's partition of the rows, and what scans take for it."""
    X = random_rows(rng, 40)
    configuration = configured("cgm", rule_prior="uniform01")
    kinds = kinds_of()
    problem = Problem(as_columns(X), rng.integers(0, 2, 40), 2, kinds=kinds)
    model = hard.make_model(problem, configuration, pinball=False)
    scan = make_scan_data(as_columns(X), np.arange(40), np.zeros(40), np.zeros(0), kinds=kinds)
    prior, state = prior_of(tau=(1.0, 1.0)), hard.make_state(model)
    for _ in range(12):
        tree = random_special_tree(rng, prior, 4)
        copy_tree(tree, state.tree)
        cells = state.cells
        cells.start[0], cells.stop[0] = 0, 40
        cells.rows[:] = np.arange(40)
        assert settle(model, state.tree, cells, 0, np.nan, state.spare, state.rule_work)
        n = int(tree.n_nodes[0])
        psi = {i: psi_of(rule_at(tree, i), X, COLUMNS, 0.0) for i in range(n) if tree.size[i] > 1}
        phi = phi_of(tree, psi, 40)
        leaves = [i for i in range(n) if tree.size[i] == 1]
        for k, i in enumerate(leaves):
            rows = cells.rows[cells.start[i] : cells.stop[i]]
            assert set(rows) == set(np.flatnonzero(phi[:, k]))
        for i, right in psi.items():
            assert [goes_right(scan, tree, i, row) for row in range(40)] == list(right == 1)


# ------------------------------------------------------------------ rule priors of hard trees


@pytest.mark.parametrize("kind", ["uniform", "gap", "uniform01", "wu"])
def test_rule_priors_of_hard_trees_add_up(kind, rng):
    """By quadrature over thresholds; WU's prior is not normalised, but what it draws is."""
    columns = [(0, True), (3, False), (0, False), (4, False)]
    X = random_rows(rng, 12, columns)
    X[:, 0] = np.where(np.isnan(X[:, 0]), np.nan, X[:, 0].round(1))
    method = "wu" if kind == "wu" else "cgm"
    options = {} if kind == "wu" else {"rule_prior": kind}
    problem = Problem(as_columns(X), rng.integers(0, 2, 12), 2, kinds=kinds_of(columns))
    model = hard.make_model(problem, configured(method, **options), pinball=kind == "wu")
    state = hard.make_state(model)
    grid = (np.arange(2000) + 0.5) / 2000
    tree = empty_tree(2, 0)
    for size in (12, 5, 3):
        rows = rng.permutation(12).astype(np.int64)
        if not some_rule(model.rules, model.data, rows, 0, size):
            continue
        place = (model.rules, model.data, state.rule_work, rows, 0, size)

        def log_prior(rule, place=place):
            tree.feature[0], tree.threshold[0], tree.levels[0] = rule[0], rule[1], bits(rule[2])
            return log_rule_at(*place, tree, 0)

        total, drawn = 0.0, 0.0
        for f, (levels, holes) in enumerate(columns):
            if kind == "uniform" and not levels:
                cuts, width = np.unique(model.data.cuts[f][X[:, f] == X[:, f]]), 1.0
            else:
                cuts, width = (np.array([0.5]), 1.0) if levels else (grid, 1 / 2000)
            sets = subsets(list(range(levels))) if levels else [frozenset()]
            if holes:
                sets = [frozenset(), frozenset({0})]
            rules = [(f, float(t), s, width) for t in cuts for s in sets]
            if holes:
                rules += [(f, math.inf, frozenset({0}), 1.0), (f, -math.inf, frozenset(), 1.0)]
            for *rule, w in rules:
                log_p = log_prior(rule)
                if log_p > -math.inf:
                    total += math.exp(log_p) * w
                    arguments = (model.rules, model.data, rows, 0, size, tree, 0, log_p)
                    drawn += math.exp(log_draw_at(*arguments)) * w
        assert drawn == pytest.approx(1.0, abs=0.01)
        if kind != "wu":
            assert total == pytest.approx(1.0, abs=0.01)
        for _ in range(50):
            f, threshold, levels, log_density, log_p = draw_rule_at(*place, rng)
            again = log_prior((f, threshold, set_of(levels)))
            assert again == pytest.approx(log_p, abs=1e-9)
            arguments = (model.rules, model.data, rows, 0, size, tree, 0, log_p)
            assert log_draw_at(*arguments) == pytest.approx(log_density, abs=1e-9)


@pytest.mark.parametrize("missing", [True, IMPUTED], ids=["sides", "imputed"])
def test_draws_follow_the_prior_of_rules(missing, rng):
    """On a column with holes: "is missing" on either side, and cuts by what becomes of these."""
    prior = prior_of([(0, missing)], tau=(1.0, 1.0))
    mass = {(-math.inf, frozenset()): IS_MISSING / 2, (math.inf, frozenset({0})): IS_MISSING / 2}
    mass |= {(0.0, side): (1 - IS_MISSING) * share for side, share in sides_of(missing).items()}
    n, count = 2000, dict.fromkeys(mass, 0)
    for _ in range(n):
        _, threshold, side = rule_at(random_special_tree(rng, prior, 1), 0)
        count[threshold if math.isinf(threshold) else 0.0, side] += 1
    test = stats.chisquare(list(count.values()), n * np.array(list(mass.values())))
    assert test.pvalue > 1e-4
    assert (0.0, TAKEN_AS_IMPUTED) in mass or missing is True
    assert MISSING < -1e34
