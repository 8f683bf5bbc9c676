"""Weights of rows in the core: a row of weight 2 is two rows, and one of 0.7 is 0.7 rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from hamiltree.core.hard.leaves import n_values
from hamiltree.core.hard.record import record_hard_tree, start_tree
from hamiltree.core.scan import columns as scan_columns
from hamiltree.core.scan.data import softness_matters
from hamiltree.core.scan.proposals import MODE_COLUMNS, MODE_PRIOR
from hamiltree.core.scan.rows import NEW_LEAF
from hamiltree.core.smc.gaps import make_scratch, score_gaps
from hamiltree.core.smc.node_pool import add_root, children_of, make_pool, rows_of
from hamiltree.core.soft import target
from hamiltree.core.soft.data import (
    CLASSES,
    COLLAPSED,
    DRAWN,
    EXPECTED,
    GRADIENT,
    LABELS,
    MEANS,
    REACHED,
    VALUE,
    make_data,
    make_work,
)
from hamiltree.core.soft.target import (
    dimension,
    evaluate,
    evaluate_at,
    log_density_and_gradient,
    unconstrain,
)
from hamiltree.core.tree.kinds import NO_LEVELS, plain_kinds
from hamiltree.core.tree.nodes import right_child
from hamiltree.core.tree.record import make_block
from hamiltree.core.tree.routing import BLOCK, LANES
from hamiltree.samplers.common import Problem
from hamiltree.samplers.hard import make_model, make_state
from hamiltree.samplers.smc import SMC

from ..reference.model import leaves, phi
from ..support.configuring import configured
from ..support.core_trees import PRIOR, random_model, random_tree, to_reference
from ..support.informed_battery import N_ROWS, Bench, make_binned

FAMILIES = {
    "classes": CLASSES,
    "labels": LABELS,
    "explicit": MEANS,
    "collapsed": COLLAPSED,
}


def weighted_reference(family, tree, X, y, weights, sigma, h, p):
    """Likelihoods with each row's factor to the power of its weight."""
    reach = phi(tree, X, h)
    if family == "classes":
        a = np.full(3, PRIOR.classes)
        counts = (weights * np.eye(3)[:, y]) @ reach
        leaf = gammaln(a.sum()) - gammaln(counts.sum(axis=0) + a.sum())
        return leaf.sum() + (gammaln(counts + a[:, None]) - gammaln(a)[:, None]).sum()
    if family == "labels":
        return weights @ np.log((reach @ p)[np.arange(len(y)), y])
    if family == "explicit":
        mean = reach @ np.array([leaf.mu for leaf in leaves(tree)])
        return weights @ stats.norm.logpdf(y, mean, sigma)
    # N(y; m, s^2)^w is N(y; m, s^2 / w) times what does not depend on m
    mean, sd = PRIOR.mu
    covariance = np.diag(sigma**2 / weights) + sd**2 * reach @ reach.T
    constant = 0.5 * ((1 - weights) * math.log(2 * math.pi * sigma**2) - np.log(weights)).sum()
    law = stats.multivariate_normal(mean * reach.sum(axis=1), covariance, allow_singular=False)
    return law.logpdf(y) + constant


@pytest.mark.parametrize("n_rows", [9, BLOCK + 11])
@pytest.mark.parametrize("h", [0.0, 0.05])
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_likelihood_matches_the_reference(family, oblique, h, n_rows, rng):
    for n_splits in (0, 1, 5):
        tree = random_tree(rng, 3, n_splits, oblique)
        weights = rng.uniform(0.1, 3.0, n_rows)
        model, work, X, y = random_model(
            rng, FAMILIES[family], tree, n_rows=n_rows, n_features=3, h=h, weights=weights
        )
        reference, sigma = to_reference(tree), float(tree.sigma[0])
        p = model.leaves.p[: n_splits + 1]
        expected = weighted_reference(family, reference, X, y, weights, sigma, h, p)
        for what in (VALUE, GRADIENT):
            value = evaluate(model, model.family, tree, work, what)
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def places(y, n_classes):
    """Where the core puts each row: by class, each class padded to whole LANES."""
    place, begin = np.empty(len(y), np.int64), 0
    for label in range(n_classes):
        own = np.flatnonzero(y == label)
        place[own] = begin + np.arange(len(own))
        begin += -(-len(own) // LANES) * LANES
    return place


@pytest.mark.parametrize("what", [REACHED, EXPECTED, DRAWN], ids=["reached", "expected", "drawn"])
def test_rows_by_leaf_and_class_are_weighed(what, rng):
    """Expected ones by the reference; drawn ones are whole rows with their weights."""
    n_rows = 40
    tree = random_tree(rng, 3, 4, False)
    weights = rng.uniform(0.1, 3.0, n_rows)
    model, work, X, y = random_model(
        rng, LABELS, tree, n_rows=n_rows, n_features=3, h=0.1, weights=weights
    )
    p = model.leaves.p
    work.uniform[:] = rng.random(len(work.uniform))
    evaluate_at(model, p, tree, work, what, False)
    counts = work.counts[0, :5]
    of_class = np.eye(3)[:, y] * weights
    reach = phi(to_reference(tree), X, 0.1)
    if what != REACHED:
        reach = reach * p[:5, y].T
        reach /= reach.sum(axis=1, keepdims=True)
    if what == DRAWN:  # to the first leaf up to which the shares exceed the row's uniform number
        own = work.uniform.ravel()[places(y, 3)]
        reach = np.eye(5)[(own[:, None] < np.cumsum(reach, axis=1)).argmax(axis=1)]
    np.testing.assert_allclose(counts, (of_class @ reach).T, rtol=1e-9)


@pytest.mark.parametrize("n_rows", [20, BLOCK + 11])
@pytest.mark.parametrize("rules", ["columns", "log ratios"])
@pytest.mark.parametrize("family", FAMILIES)
def test_twice_is_weight_two(family, rules, n_rows, rng):
    """Value and gradient, by all ways to a gradient: shallow trees and deep ones."""
    for n_splits in (1, 3, 8):
        tree = random_tree(rng, 3, n_splits, rules != "columns")
        weights = rng.integers(1, 4, n_rows).astype(float)
        sizes = {"n_rows": n_rows, "n_features": 3, "h": 0.05, "centred": rules != "columns"}
        state = rng.bit_generator.state
        both = []
        for given in (weights, None):
            rng.bit_generator.state = state
            model, work, X, y = random_model(rng, FAMILIES[family], tree, weights=given, **sizes)
            if given is None:
                times = weights.astype(int)
                columns = np.ascontiguousarray(np.repeat(X, times, axis=0).T)
                n_classes = 3 if family in ("classes", "labels") else 0
                p = model.leaves.p.copy()
                data = make_data(columns, np.repeat(y, times), n_classes)
                work = make_work(data, 12, n_classes, tree.weights.shape[1], FAMILIES[family])
                model = target.make_model(
                    FAMILIES[family], data, model.prior, model.leaf_prior, model.h, 1.0,
                    model.centre, work,
                )  # fmt: skip
                model.leaves.p[:] = p
            n = dimension(model, tree)
            u, grad = np.zeros(n), np.zeros(n)
            assert unconstrain(model, tree, u) == n
            both.append((log_density_and_gradient(u, grad, (model, tree, work)), grad))
        assert both[0][0] == pytest.approx(both[1][0], rel=1e-11)
        np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-8, atol=1e-9)


# ------------------------------------------------------------------ scans


def benches(method, h, n_classes, rng, weights):
    """The same data with weights, and with each row as often."""
    state = rng.bit_generator.state
    found = []
    for repeated in (False, True):
        rng.bit_generator.state = state
        found.append(Bench.build(method, h, n_classes, rng, weights=weights, repeated=repeated))
    return found


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize(
    ("method", "h", "max_bins"),
    [
        ("hmc-df", 0.0, 0),
        ("hmc-df", 0.1, 0),
        ("hmc-dfi", 0.1, 0),
        ("hmc-df", 0.1, 16),  # a bin for each value
        ("hmc-df", 0.1, 4),
        ("hmc-dfi", 0.1, 4),
    ],
)
def test_scans_see_a_row_of_weight_two_as_two(method, h, max_bins, n_classes, rng, monkeypatch):
    """Log weight of all rules of a node, and the density of one, for leaves and inner nodes."""
    if max_bins:
        make_binned(monkeypatch, max_bins)
    weights = rng.integers(1, 4, N_ROWS)
    if max_bins == 4:
        weights[:] = 2  # bins hold as many rows each, whatever their weights
    assert_scans_agree(*benches(method, h, n_classes, rng, weights), method)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_scans_see_weights_where_softness_is_judged_by_them(n_classes, rng):
    """Values of two columns occur once, too rarely for h to matter, but their weights suffice."""
    h, weights = 0.02, rng.integers(3, 6, N_ROWS)
    one, other = benches("hmc-df", h, n_classes, rng, weights)
    data = one.compiled.data
    softness = [softness_matters(h, data.n_levels[1], rows) for rows in (weights.sum(), N_ROWS)]
    assert softness == [True, False]
    assert_scans_agree(one, other, "hmc-df")


def assert_scans_agree(one, other, method):
    exact = 1e-5 if one.sees_means else 1e-9  # sums in single precision
    for n_splits in (1, 3, 5):
        tree = one.tree(n_splits)
        other.use(tree)
        for node in range(int(tree.n_nodes[0])):
            sides = [(NEW_LEAF, NEW_LEAF)]
            rule_of = 0
            if tree.size[node] > 1:
                sides.append((node + 1, right_child(tree, node)))
                rule_of = node
            for left, right in sides:
                for mode in (MODE_COLUMNS, MODE_PRIOR) if method == "hmc-dfi" else (MODE_COLUMNS,):
                    a = one.weigh(tree, node, left, right, mode, rule_of)
                    b = other.weigh(tree, node, left, right, mode, rule_of)
                    np.testing.assert_allclose(a, b, rtol=exact, atol=exact)


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("h", [0.0, 0.1])
def test_densities_of_draws_with_broken_weights(h, n_classes, rng):
    """A rule that was drawn has the density that it was drawn with."""
    weights = rng.uniform(0.05, 2.5, N_ROWS)
    bench = Bench.build("hmc-df", h, n_classes, rng, weights=weights)
    assert bench.compiled.data.units != 1.0
    np.testing.assert_allclose(bench.compiled.data.mass, weights.sum(), rtol=0.01)
    for n_splits in (1, 2, 4) * 5:
        tree = bench.tree(n_splits)
        bench.weigh(tree, 0, NEW_LEAF, NEW_LEAF, MODE_COLUMNS, -1)
        log_density = bench.draw(tree, 0, MODE_COLUMNS)
        _, again = bench.weigh(tree, 0, NEW_LEAF, NEW_LEAF, MODE_COLUMNS, 0)
        assert again == pytest.approx(log_density, rel=1e-9, abs=1e-9)


def test_units_of_weights():
    """Whole weights are exact; others are rounded, but their sums are right to a unit."""
    rows = np.arange(50)
    whole = scan_columns.amounts_of(rows, np.arange(1.0, 51.0))
    assert whole["units"] == 1.0
    assert (whole["amount"] == np.arange(1, 51)).all()
    broken = np.random.default_rng(0).gamma(0.7, 1e-4, 50)
    found = scan_columns.amounts_of(rows, broken)
    np.testing.assert_allclose(
        np.cumsum(found["weight"]), np.cumsum(broken), atol=0.51 / found["units"]
    )
    assert found["n_units"] == scan_columns.UNITS_PER_ROW * 50
    huge = scan_columns.amounts_of(rows, np.full(50, 1e6))
    assert huge["n_units"] <= scan_columns.TABLE_ROWS


# ------------------------------------------------------------------ hard trees and particles

TIMES = np.array([1, 3, 2, 1, 2, 4, 1, 2, 3, 1, 1, 2])


def tables(rng, n_classes):
    """(columns, y, weights) of rows with weights, and of the same rows repeated."""
    X = rng.uniform(size=(len(TIMES), 2)).round(1)
    y = rng.integers(0, n_classes, len(TIMES)) if n_classes else rng.normal(size=len(TIMES))
    repeated = np.ascontiguousarray(np.repeat(X, TIMES, axis=0).T)
    return (
        (np.ascontiguousarray(X.T), y, TIMES.astype(float)),
        (repeated, np.repeat(y, TIMES), None),
    )


@pytest.mark.parametrize("variance", ["leaf", "common"])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_hard_trees(n_classes, variance, rng, seed):
    """Marginal likelihood, sums of the leaves, and what is recorded, sigma among it."""
    found = []
    for columns, y, weights in tables(rng, n_classes):
        options = {} if n_classes else {"variance": variance}
        configuration = configured("cgm", rule_prior="uniform01", min_leaves=4, **options)
        model = make_model(Problem(columns, y, n_classes, weights), configuration, pinball=False)
        state, generator = make_state(model), np.random.default_rng(seed)
        assert start_tree(model, state, generator)
        block = make_block(256, 0, n_values(model.leaf))
        record_hard_tree(model, state, block, generator)
        nodes = int(state.tree.n_nodes[0])
        found.append(
            [state.log_like, state.cells.stats[:nodes], block.leaf[:4], block.scalars[0, :5]]
        )
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_particles(n_classes, broken, rng):
    """Marginal likelihoods of nodes and scores of gaps; ``broken``: weights that are not whole."""
    configuration = configured("smc", min_size=3)
    found = []
    for columns, y, weights in tables(rng, n_classes):
        if broken and weights is not None:
            weights = weights + 1e-12  # not looked up any more
        table = SMC.build(Problem(columns, y, n_classes, weights), configuration, 1).plan.table
        assert (table.terms.shape[1] == 0) == (broken and weights is not None)
        pool, work = make_pool(table, 64, 64 * len(y), True), make_scratch(table, plain_kinds(2))
        add_root(table, pool)
        scores = []
        for f in range(2):
            gaps, total = score_gaps(table, pool, 0, f, work)
            scores += [*work.score[:gaps], total]
        left = children_of(table, pool, 0, 0, int(table.rank[0].max()) // 2, 0.0, NO_LEVELS, None)
        both = [pool.log_marginal[left], pool.log_marginal[left + 1]]
        rows = [rows_of(table, pool, node) for node in (0, left)]
        can_split = [pool.varying[node] > 0 for node in (left, left + 1)]
        found.append([*scores, pool.log_marginal[0], *both, *rows, *can_split, table.mass])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)


def test_the_smallest_node_that_splits_is_counted_by_weight(rng):
    """Two rows of weight 2 are more than three rows."""
    configuration = configured("smc", min_size=3)
    columns = np.array([[0.2, 0.9]])
    for weights, can_split in ((None, False), (np.array([2.0, 2.0]), True)):
        problem = Problem(columns, np.array([0, 1]), 2, weights)
        table = SMC.build(problem, configuration, 1).plan.table
        pool = make_pool(table, 8, 64, False)
        add_root(table, pool)
        assert (pool.varying[0] > 0) == can_split
