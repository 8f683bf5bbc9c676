"""Scans of numbers with missing cells and of categories, and the moves that use them.

Rows are held one by one, as bits, and in bins, some of which have several values.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.moves.propose import NAMES, propose_informed
from hamiltree.core.scan.proposals import MODE_COLUMNS, draw_weighed, put_rule, weigh
from hamiltree.core.scan.rows import NEW_LEAF
from hamiltree.core.scan.scores import fill_known_tables
from hamiltree.core.tree.nodes import copy_tree, empty_tree, right_child
from hamiltree.core.tree.priors import log_rule
from hamiltree.samplers import rjhmc_state
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC

from ..reference.special import IMPUTED, rules_of, sides_of, subsets
from ..reference.special import bits as bits_of
from ..support.configuring import configured
from ..support.special import (
    COLUMNS,
    IMPUTING,
    as_columns,
    kinds_of,
    random_rows,
    random_special_tree,
    rule_at,
)

TAU = (1.3, 2.0)
WAYS = ("rows", "bits", "bins", "single-bins")
IMPUTED_OR_NOT = pytest.mark.parametrize("columns", [COLUMNS, IMPUTING], ids=["sides", "imputed"])


def classes_and_ways(ways):
    """Numbers of classes, and how rows are held; those of regression are not held as bits."""
    cases = [(n, way) for n in (0, 3) for way in ways if n or way != "bits"]
    return pytest.mark.parametrize(("n_classes", "way"), cases)


def held(bench):
    """How the rows of a bench are held."""
    data = bench.proposals.scan.data
    if data.code.size:
        return "bins" if data.grid.shape[1] == 4 else "single-bins"
    return "bits" if data.bits.of_value.size else "rows"


# ------------------------------------------------------------------ scans


class Bench:
    """A chain's scans, of HMC-DF."""

    def __init__(self, rng, h, n_classes, columns=COLUMNS, n=24, absent=None, tau=TAU, X=None):
        """``absent``: a level of the first column that no row has; ``X``: random where None."""
        self.columns, self.rng = columns, rng
        self.X = random_rows(rng, n, columns) if X is None else X
        if absent is not None:
            self.X[self.X[:, 0] == absent, 0] = 0
        y = rng.integers(0, 3, len(self.X)) if n_classes else rng.normal(size=len(self.X))
        configuration = configured(
            "hmc-df", h=h, tau_prior=tau, likelihood_power=0.7, max_leaves=12
        )
        problem = Problem(as_columns(self.X), y, n_classes, kinds=kinds_of(columns))
        sampler = RJHMC.build(problem, configuration, 0)
        self.chain = sampler.start(rng)
        self.proposals = self.chain.state.proposals
        self.prior = self.chain.state.model.prior
        self.n_classes = n_classes

    def tree(self, n_splits):
        tree = random_special_tree(self.rng, self.prior, n_splits)
        tree.value[:] = 0.0
        if not self.n_classes:
            fill_known_tables(self.proposals.scan, tree.sigma[0])
        return tree

    def density(self, tree, node, left, right, rule):
        """Of a rule at a node: what ``tree`` has there does not matter."""
        other = empty_tree(12, 0)
        copy_tree(tree, other)
        spare = int(other.n_nodes[0])  # a place that no node has
        f, threshold, levels = rule
        other.feature[spare], other.threshold[spare] = f, threshold
        other.levels[spare] = bits_of(levels)
        self.everything, log_density = weigh(
            self.proposals, other, node, spare, left, right, MODE_COLUMNS
        )
        return math.exp(log_density)


@pytest.mark.parametrize("h", [0.0, 0.1])
@classes_and_ways(WAYS[:3])
@pytest.mark.parametrize(
    "columns", [COLUMNS, [(0, False), (0, IMPUTED), (3, False)]], ids=["sides", "imputed"]
)
def test_densities_of_scans_add_up(columns, n_classes, h, way, rng, hold):
    """Over all rules, of a leaf with many rows, of one with few, and of an inner node."""
    hold(way)
    bench = Bench(rng, h, n_classes, columns)
    assert held(bench) == way
    tree = bench.tree(5)
    inner = [i for i in range(int(tree.n_nodes[0])) if tree.size[i] > 1]
    grid = (np.arange(400) + 0.5) / 400
    for node in (0, inner[-1], int(tree.n_nodes[0]) - 1):
        sides = (NEW_LEAF, NEW_LEAF)
        if tree.size[node] > 1:
            sides = (node + 1, right_child(tree, node))
        total = 0.0
        for rule, _ in rules_of(bench.X, columns, (grid, np.full(400, 1 / 400))):
            number = columns[rule[0]][0] == 0 and np.isfinite(rule[1])
            total += bench.density(tree, node, *sides, rule) / (400 if number else 1)
        assert total == pytest.approx(1.0, abs=0.03)  # of the sums over thresholds


@classes_and_ways(WAYS[:3])
def test_densities_of_categories_add_up(n_classes, way, rng, hold):
    """Exactly, for a column whose levels are all there, in part, or not at all."""
    hold(way)
    bench = Bench(rng, 0.0, n_classes, columns=[(3, False), (5, False)], n=14)
    for n_splits in (0, 2, 4, 6):
        tree = bench.tree(n_splits)
        for node in range(int(tree.n_nodes[0])):
            sides = (NEW_LEAF, NEW_LEAF)
            if tree.size[node] > 1:  # subtrees that are kept: then left and right differ
                sides = (node + 1, right_child(tree, node))
            total = sum(
                bench.density(tree, node, *sides, (f, 0.5, s))
                for f, (levels, _) in enumerate(bench.columns)
                for s in subsets(list(range(levels)))
            )
            assert total == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    "columns",
    [COLUMNS, [(0, True)], IMPUTING, [(0, IMPUTED)]],
    ids=["all", "missing", "imputing", "imputed"],
)
@pytest.mark.parametrize("h", [0.0, 0.1])
@classes_and_ways(WAYS[:3])
def test_a_drawn_rule_has_the_density_it_was_drawn_with(n_classes, h, columns, way, rng, hold):
    """Of leaves, and of inner nodes whose subtrees are kept: there left and right differ."""
    hold(way)
    bench = Bench(rng, h, n_classes, columns=columns)
    for _ in range(40):
        tree = bench.tree(3)
        node = int(rng.integers(tree.n_nodes[0]))
        sides = (NEW_LEAF, NEW_LEAF)
        if tree.size[node] > 1:
            sides = (node + 1, right_child(tree, node))
        weigh(bench.proposals, tree, node, -1, *sides, MODE_COLUMNS)
        log_density = draw_weighed(bench.proposals, MODE_COLUMNS, rng)
        drawn = bench.tree(1)
        fresh = float(tree.sigma[0])
        put_rule(bench.proposals.scan, drawn, 0)
        if not n_classes:
            fill_known_tables(bench.proposals.scan, fresh)
        again = bench.density(tree, node, *sides, rule_at(drawn, 0))
        assert math.log(again) == pytest.approx(log_density, rel=1e-9, abs=1e-9)


@classes_and_ways(WAYS[:3])
def test_draws_follow_their_densities(n_classes, way, rng, hold):
    """Sets of a category with an absent level, sides, and "is missing": by a chi-squared test."""
    hold(way)
    columns = [(4, False), (0, True)]
    bench = Bench(rng, 0.0, n_classes, columns=columns, n=10, absent=3)
    tree = bench.tree(0)
    rules = [(0, 0.5, s) for s in subsets([0, 1, 2, 3])]
    rules += [(1, math.inf, frozenset({0})), (1, -math.inf, frozenset())]
    expected = [bench.density(tree, 0, NEW_LEAF, NEW_LEAF, rule) for rule in rules]
    weigh(bench.proposals, tree, 0, -1, NEW_LEAF, NEW_LEAF, MODE_COLUMNS)
    n, counts, sides = 3000, dict.fromkeys(rules, 0), [0, 0]
    share = bench.proposals.scan.cells.share.copy()
    for _ in range(n):
        bench.proposals.scan.cells.share[:] = share
        draw_weighed(bench.proposals, MODE_COLUMNS, rng)
        put_rule(bench.proposals.scan, tree, 0)
        rule = rule_at(tree, 0)
        if rule in counts:
            counts[rule] += 1
        else:
            sides[len(rule[2])] += 1
    observed = np.array([*counts.values(), sum(sides)])
    mass = np.array([*expected, 1 - sum(expected)])
    _, p_value = stats.chisquare(observed, mass * n)
    assert p_value > 1e-4


def scanned(seed, h, n_classes, way, columns, nodes, hold):
    """The first nodes of some trees scanned, their subtrees kept and not; rows held one way.

    Weights and densities, by trees, of one rule that the node has and of some that it does not.
    """
    hold(way)
    rng = np.random.default_rng(seed)
    bench = Bench(rng, h, n_classes, columns=[*columns, (0, True)], n=60, tau=(1.0, 1.0))
    assert held(bench) == way
    found = []
    for n_splits in (0, 2, 4, 5):
        tree = bench.tree(n_splits)
        for node in range(min(int(tree.n_nodes[0]), nodes)):
            sides = [(NEW_LEAF, NEW_LEAF)]
            if tree.size[node] > 1:
                own = (node + 1, right_child(tree, node))
                sides += [own, (NEW_LEAF, node), (node, NEW_LEAF)]
            for left, right in sides:
                for k in range(4):
                    rule = rule_at(bench.tree(1), 0)
                    if k == 0:
                        rule = (1, math.inf, frozenset({0}))
                    density = bench.density(tree, node, left, right, rule)
                    share = bench.proposals.scan.cells.share
                    found.append([bench.everything, density, *share])
    return np.array(found)


@pytest.mark.parametrize("h", [0.0, 0.2])
@classes_and_ways(["bits", "single-bins"])
@IMPUTED_OR_NOT
def test_scans_agree_however_rows_are_held(columns, n_classes, h, way, rng, hold, monkeypatch):
    """Bins that have a value each, and bits, say what the rows say one by one.

    Thresholds are uniform: another prior is taken as constant in each cell, and bins have more.
    Scans that see the other leaves are left out: with bins of rows there are none.
    """
    monkeypatch.setattr(rjhmc_state, "scores_leaf_means", lambda sampler: False)
    seed = int(rng.integers(2**31))
    # of soft splits the pieces of a gap differ where rows between two values are elsewhere
    nodes = 1 if h > 0 and way == "single-bins" else 100
    expected = scanned(seed, h, n_classes, "rows", columns, nodes, hold)
    found = scanned(seed, h, n_classes, way, columns, nodes, hold)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("h", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("move", NAMES)
@IMPUTED_OR_NOT
def test_moves_carry_whole_rules(columns, move, n_classes, h, rng):
    """Rules stay rules of their columns, and the ratio of a change is that of its densities."""
    bench = Bench(rng, h, n_classes, columns, n=16)
    number = NAMES.index(move)
    found = 0
    for _ in range(60):
        tree = bench.tree(int(rng.integers(1, 5)))
        new = empty_tree(12, 0)
        copy_tree(tree, new)
        log_q = propose_informed(bench.proposals, tree, new, number, MODE_COLUMNS, rng)
        if log_q == -math.inf:
            continue
        found += 1
        assert math.isfinite(log_q)
        for i in range(int(new.n_nodes[0])):
            if new.size[i] > 1:
                f, threshold, levels = rule_at(new, i)
                n_levels, holes = columns[f]
                if n_levels:
                    assert levels in subsets(list(range(n_levels)))
                else:
                    assert levels in sides_of(holes)
                    assert 0 < threshold < 1 or (holes and abs(threshold) == math.inf)
                    if math.isinf(threshold):
                        assert levels == ({0} if threshold > 0 else set())
                assert math.isfinite(log_rule(bench.prior, new, i))
        if move == "change":
            changed = [i for i in range(int(tree.n_nodes[0])) if not same(tree, new, i)]
            if not changed:
                continue  # the same rule was drawn
            (node,) = changed
            left, right = node + 1, right_child(tree, node)
            back = bench.density(tree, node, left, right, rule_at(tree, node))
            forth = bench.density(tree, node, left, right, rule_at(new, node))
            assert log_q == pytest.approx(math.log(back) - math.log(forth), abs=1e-9)
    assert found > 0 or move == "transpose"


def same(tree, new, i):
    return tree.size[i] == 1 or rule_at(tree, i) == rule_at(new, i)
