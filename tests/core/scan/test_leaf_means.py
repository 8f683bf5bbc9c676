"""Scans that see the likelihood of the whole tree: special columns, and the same forth and back.

Columns of numbers, and moves, are beside the reference in ``moves/test_informed.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from hamiltree.core.moves.regrow import log_regrown, pick_small, sum_of_picks
from hamiltree.core.scan.leaf_means import OUTSIDE_NODE
from hamiltree.core.scan.mean_columns import score_bins, score_missing, score_points
from hamiltree.core.scan.proposals import MODE_COLUMNS, make_proposals, prepare
from hamiltree.core.scan.rows import NEW_LEAF
from hamiltree.core.tree.nodes import (
    DELETABLE,
    PRUNABLE,
    changed_node,
    copy_tree,
    count_kind,
    empty_tree,
    grow,
    insert_above,
    n_leaves,
    right_child,
    same_subtree,
)

from ...reference.special import is_gone, psi_of
from ...support.informed_battery import Bench
from ...support.special import COLUMNS, IMPUTING, phi_of, rule_at
from .. import test_special_scans

H = 0.25
ROUNDING = 0.01
"""Single precision, and leaves that hardly overlap with the node."""


# ------------------------------------------------------------------ scores of special columns


def with_split(tree, node, left, right):
    """The tree in which a node, or one above it, has a new split with these sides."""
    new = empty_tree(12, 0)
    copy_tree(tree, new)
    if left == node or right == node:
        insert_above(new, node, right == node)
    elif tree.size[node] == 1:
        grow(new, node)
    return new


def log_marginal(bench, tree, node, goes_right):
    """Of y, where the rule of a node sends so much of each row right."""
    inner = [i for i in range(int(tree.n_nodes[0])) if tree.size[i] > 1]
    psi = {i: psi_of(rule_at(tree, i), bench.X, bench.columns, H) for i in inner if i != node}
    phi = phi_of(tree, {**psi, node: goes_right}, len(bench.X))
    scan = bench.proposals.scan
    rows, sigma = scan.data.rows, scan.tables.sigma[0]
    covariance = sigma**2 * np.eye(len(rows)) + scan.model.mean_variance * phi @ phi.T
    return float(stats.multivariate_normal.logpdf(scan.data.y[rows], None, covariance))


def scored(bench, f):
    """Scores of some rules of a column, and what of each row these send right."""
    scan, x = bench.proposals.scan, bench.X[:, f]
    means = scan.means
    n_levels, _ = bench.columns[f]
    if n_levels:
        for _ in range(3):
            levels = bench.rng.integers(0, 2, n_levels).astype(float)
            means.goes_right[: len(levels)] = levels
            yield score_bins(scan, f), levels[x.astype(int)]
        return
    gone = is_gone(x)
    points = score_points(scan, f, H)
    for g in range(0, points + 1, 3):
        there = expit((x - g / points) / H)
        for side in (0, 1):
            yield means.known[side, g], np.where(gone, 1.0 - side, there)
    score_missing(scan, f, 0)
    for side, goes_right in enumerate((gone, ~gone)):
        yield scan.cells.weight[side], goes_right.astype(float)


@pytest.mark.parametrize("columns", [COLUMNS, IMPUTING], ids=["sides", "imputed"])
def test_scores_of_special_columns(columns, rng):
    """Cuts with missing cells on either side, "is missing", and sets of levels: by dense algebra.

    Scores have a constant in common, here that of the rule that sends all right.
    """
    bench = test_special_scans.Bench(rng, H, 0, columns)
    of_few_values = [f for f, (levels, _) in enumerate(columns) if levels or f % 2]
    for n_splits in (0, 1, 3, 5, 6):
        tree = bench.tree(n_splits)
        for node in {0, int(tree.n_nodes[0]) // 2, int(tree.n_nodes[0]) - 1}:
            sides = [(NEW_LEAF, NEW_LEAF)]
            if tree.size[node] > 1:
                sides = [(node + 1, right_child(tree, node)), (NEW_LEAF, node), (node, NEW_LEAF)]
            for left, right in sides:
                prepare(bench.proposals.scanner, tree, node, left, right)
                start = bench.proposals.scan.sides.start[0]
                assert bench.proposals.scan.means.is_on[0]
                new = with_split(tree, node, left, right)
                all_right = log_marginal(bench, new, node, np.ones(len(bench.X)))
                for f in of_few_values:  # values of the others are joined
                    for score, goes_right in scored(bench, f):
                        exact = log_marginal(bench, new, node, goes_right) - all_right
                        assert score - start == pytest.approx(exact, abs=ROUNDING), (node, f)


# ------------------------------------------------------------------ forth and back


def with_room(bench, vectors, terms):
    """A bench whose scans of large trees do not fit, and are made as if splits were hard."""
    scan = bench.compiled
    means = scan.means._replace(
        rows=scan.means.rows[:vectors].copy(), moved=scan.means.moved[:, :terms].copy()
    )
    proposals = make_proposals(scan._replace(means=means))
    bench.chain.state = bench.chain.state._replace(proposals=proposals)
    return bench


def grown_node(tree, new):
    """The leaf of a tree that has a split in the other."""
    node = changed_node(tree, new)
    while tree.size[node] > 1:
        same = same_subtree(tree, node + 1, new, node + 1)
        node = right_child(tree, node) if same else node + 1
    return node


def log_ratio_from_new(bench, move, tree, new, rng):
    """log q(back) - log q(forth), the densities of what was drawn by scans of the new tree."""
    leaves = n_leaves(tree)
    if move == "grow":
        node = grown_node(tree, new)
        _, log_rule = bench.weigh(new, node, NEW_LEAF, NEW_LEAF, MODE_COLUMNS, node)
        return math.log(leaves) - math.log(count_kind(new, PRUNABLE)) - log_rule
    if move == "insert":
        node = changed_node(tree, new)
        left_is_new = new.size[node + 1] == 1
        left = NEW_LEAF if left_is_new else node + 1
        right = right_child(new, node) if left_is_new else NEW_LEAF
        _, log_rule = bench.weigh(new, node, left, right, MODE_COLUMNS, node)
        return math.log(2.0 * (leaves - 1)) - math.log(count_kind(new, DELETABLE)) - log_rule
    node, picks = pick_small(tree, rng)
    frame = bench.compiled.means.frame
    frame[0] = node
    log_back, log_forth = (log_regrown(bench.proposals, one, node) for one in (tree, new))
    frame[0] = OUTSIDE_NODE
    log_back -= math.log(new.size[node] * sum_of_picks(new))
    return log_back - log_forth + math.log(tree.size[node] * picks)


@pytest.mark.parametrize(("vectors", "terms"), [(99, 999), (18, 999), (99, 8)])
@pytest.mark.parametrize("move", ["grow", "insert", "regrow"])
def test_scans_are_the_same_on_the_way_back(move, vectors, terms, rng):
    """Of the larger tree, too, and where there is room for some of the scans only."""
    bench = with_room(Bench.build("hmc-df", 0.2, 0, rng), vectors, terms)
    seen = Counter()
    for k in range(80):
        tree = bench.tree(k % 8)
        before = deepcopy(bench.rng)
        new, log_q = bench.propose(move, tree, MODE_COLUMNS)
        if log_q > -np.inf:
            again = log_ratio_from_new(bench, move, tree, new, before)
            assert again == pytest.approx(log_q, abs=1e-10)
            seen[int(bench.compiled.means.is_on[0])] += 1
    assert seen[1] > 5
    assert (seen[0] > 5) == (vectors < 99 or terms < 999), "both kinds of scans were made"
