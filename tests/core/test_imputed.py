"""Missing cells that are imputed: where rows go, what scans make of them, and small steps.

What these have in common with other columns is in ``test_special`` and ``test_special_scans``.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.scan.by_bits import list_rows
from hamiltree.core.scan.proposals import MODE_COLUMNS, draw_weighed, put_rule, weigh
from hamiltree.core.scan.rows import NEW_LEAF, goes_right
from hamiltree.core.scan.scores import fill_known_tables
from hamiltree.core.soft.feature_updates import nudge_special
from hamiltree.core.tree.kinds import IMPUTED_UNIT, MISSING_BELOW, imputed_number
from hamiltree.core.tree.nodes import right_child
from hamiltree.methods.prior_trees import RuleDraws
from hamiltree.samplers import rjhmc_state

from ..reference.special import (
    IMPUTED,
    IS_MISSING,
    TAKEN_AS_IMPUTED,
    is_gone,
    psi_of,
    rules_of,
    sides_of,
)
from ..support.configuring import configured
from ..support.special import (
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
from .test_special import model_of, prior_of
from .test_special_scans import WAYS, Bench, classes_and_ways, held

NOT_IMPUTING = [(levels, bool(missing)) for levels, missing in IMPUTING]
"""The same columns where missing cells have a side, as hard trees see them."""


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_imputed_numbers_are_stored(dtype):
    """To the precision of a column, and apart from all that is no missing cell."""
    u = np.linspace(0.0, 1.0, 1001)
    stored = (IMPUTED_UNIT * (1.0 + u)).astype(dtype)
    assert (stored < MISSING_BELOW).all()
    found = [imputed_number(float(x)) for x in stored]
    np.testing.assert_allclose(found, u, rtol=0, atol=4 * float(np.finfo(dtype).eps))


# ------------------------------------------------------------------ rows, as if splits were hard


@classes_and_ways(WAYS)
def test_rows_go_where_their_imputed_numbers_send_them(n_classes, way, rng, hold, monkeypatch):
    """Of each node of a tree, the rows that its scan looks at."""
    monkeypatch.setattr(rjhmc_state, "scores_leaf_means", lambda sampler: False)
    hold(way)
    bench = Bench(rng, 0.0, n_classes, IMPUTING, n=60, tau=(1.0, 1.0))
    assert held(bench) == way
    scan = bench.proposals.scan
    cells = scan.data.columns if scan.data.columns.size else scan.data.singles
    X, imputing = as_rows(cells), 0
    for _ in range(12):
        tree = bench.tree(4)
        inner = [i for i in range(int(tree.n_nodes[0])) if tree.size[i] > 1]
        psi = {i: psi_of(rule_at(tree, i), X, IMPUTING, 0.0) for i in inner}
        imputing += sum(rule_at(tree, i)[2] == TAKEN_AS_IMPUTED for i in inner)
        phi = phi_of(tree, psi, len(X))
        n = int(tree.n_nodes[0])
        leaf = np.cumsum([tree.size[i] == 1 for i in range(n)])  # up to each node
        for i in range(n):
            first = leaf[i] - (tree.size[i] == 1)
            reach = phi[:, first : leaf[i + int(tree.size[i]) - 1]].sum(axis=1)
            weigh(bench.proposals, tree, i, -1, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
            if way == "bits":
                list_rows(scan)
            found = scan.node.rows[: scan.node.n_rows[0]]
            assert set(found) == {row for row in scan.data.rows if reach[row] == 1}
            if i in psi:
                sent = [goes_right(scan.data, tree, i, row) for row in scan.data.rows]
                assert sent == list(psi[i][scan.data.rows] == 1)
    assert imputing > 5


# ------------------------------------------------------------------ scans


@pytest.mark.parametrize("h", [0.0, 0.1])
@classes_and_ways(WAYS)
def test_scans_as_if_none_were_imputed(n_classes, h, way, rng, hold):
    """Sides have half the density that they have without, and IMPUTED half of both together."""
    hold(way)
    X = random_rows(rng, 60, IMPUTING)
    seed = int(rng.integers(2**31))
    plain, bench = (
        Bench(np.random.default_rng(seed), h, n_classes, columns, X=x, tau=(1.0, 1.0))
        for columns, x in ((NOT_IMPUTING, np.where(is_gone(X), np.nan, X)), (IMPUTING, X))
    )
    assert held(bench) == held(plain) == way
    for n_splits in (0, 2, 5):
        tree = plain.tree(n_splits)
        if not n_classes:
            fill_known_tables(bench.proposals.scan, tree.sigma[0])
        for node in {0, int(tree.n_nodes[0]) // 2}:
            sides = (NEW_LEAF, NEW_LEAF)
            if tree.size[node] > 1:
                sides = (node + 1, right_child(tree, node))

            def density(of, *rule, tree=tree, node=node, sides=sides):
                return of.density(tree, node, *sides, rule)

            for f, threshold in itertools.product((1, 3), rng.uniform(size=4)):
                both = [density(plain, f, threshold, s) for s in (frozenset(), frozenset({0}))]
                found = [density(bench, f, threshold, s) for s in sides_of(IMPUTED)]
                expected = [0.5 * both[0], 0.5 * both[1], 0.5 * sum(both)]
                np.testing.assert_allclose(found, expected, rtol=1e-9)
            unchanged = [(1, math.inf, frozenset({0})), (3, -math.inf, frozenset())]
            unchanged += [(4, 0.4, frozenset({0})), (0, 0.6, frozenset()), (2, 0.5, {0, 2})]
            for rule in unchanged:
                assert density(bench, *rule) == pytest.approx(density(plain, *rule), rel=1e-9)


@classes_and_ways(WAYS[:2])
def test_draws_follow_densities_where_cells_are_imputed(n_classes, way, rng, hold):
    """Tenths of the thresholds, where the values are, by what becomes of missing cells."""
    hold(way)
    columns = [(3, False), (0, IMPUTED)]
    bench = Bench(rng, 0.0, n_classes, columns, n=16, tau=(1.0, 1.0))
    tree = bench.tree(0)
    # a density is constant between two values, which are tenths
    cuts = [(1, (k + 0.5) / 10, side) for side in sides_of(IMPUTED) for k in range(10)]
    rules = [*cuts, (1, math.inf, frozenset({0})), (1, -math.inf, frozenset())]
    mass = [bench.density(tree, 0, NEW_LEAF, NEW_LEAF, rule) for rule in rules]
    mass = np.array([m / 10 if rule in cuts else m for m, rule in zip(mass, rules, strict=True)])
    weigh(bench.proposals, tree, 0, -1, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
    n, counts = 4000, dict.fromkeys(rules, 0)
    share = bench.proposals.scan.cells.share.copy()
    for _ in range(n):
        bench.proposals.scan.cells.share[:] = share
        draw_weighed(bench.proposals, MODE_COLUMNS, rng)
        put_rule(bench.proposals.scan, tree, 0)
        f, threshold, side = rule_at(tree, 0)
        if f == 1:
            at = threshold if math.isinf(threshold) else (math.floor(threshold * 10) + 0.5) / 10
            counts[f, at, side] += 1
    observed = np.array([*counts.values(), n - sum(counts.values())])
    expected = n * np.array([*mass, 1 - mass.sum()])
    many = expected > 5
    observed = [*observed[many], observed[~many].sum()]
    test = stats.chisquare(observed, [*expected[many], max(expected[~many].sum(), 1e-9)])
    assert test.pvalue > 1e-4


# ------------------------------------------------------------------ small steps, and the prior


def test_a_nudge_keeps_the_prior_of_sides(rng):
    """Between two kinds of cuts it goes forth as often as back, in proportion to their prior."""
    prior = prior_of([(0, IMPUTED)])
    X = random_rows(rng, 20, [(0, IMPUTED)])
    model, _, _ = model_of(rng, "classes", X, 0.05, prior)
    tree = random_special_tree(rng, prior, 1)
    mass, n = sides_of(IMPUTED), 3000
    went = dict.fromkeys(itertools.product(mass, mass), 0)
    for start in mass:
        for _ in range(n):
            tree.threshold[0], tree.levels[0] = 0.4, sum(1 << k for k in start)
            log_ratio = nudge_special(model, tree, 0, rng)
            if tree.threshold[0] == 0.4:
                assert log_ratio == 0.0
                went[start, set_of(tree.levels[0])] += 1
            else:
                assert set_of(tree.levels[0]) == start
    for a, b in itertools.combinations(mass, 2):
        flows = went[a, b] * mass[a], went[b, a] * mass[b]
        assert min(flows) > 0
        sd = math.sqrt(went[a, b] * mass[a] ** 2 + went[b, a] * mass[b] ** 2)
        assert abs(flows[0] - flows[1]) < 4 * sd


def test_rules_of_trees_from_the_prior(rng):
    """Those that the library draws without its kernels."""
    columns = [(0, IMPUTED)]
    X = random_rows(rng, 20, columns)
    method = configured("hmc-df", h=0.1, tau_prior=(1.0, 1.0)).method
    rules = RuleDraws(method, as_columns(X), kinds_of(columns), rng)
    n, count = 4000, {}
    for _ in range(n):
        rule = rules.anywhere(None)
        key = (rule.threshold if math.isinf(rule.threshold) else 0.0, set_of(rule.levels))
        count[key] = count.get(key, 0) + 1
    mass = {(-math.inf, frozenset()): IS_MISSING / 2, (math.inf, frozenset({0})): IS_MISSING / 2}
    mass |= {(0.0, side): (1 - IS_MISSING) * share for side, share in sides_of(IMPUTED).items()}
    assert set(count) == set(mass)
    test = stats.chisquare([count[key] for key in mass], n * np.array(list(mass.values())))
    assert test.pvalue > 1e-4
    assert sum(own for _, own in rules_of(X, columns, None)) == pytest.approx(1.0)
