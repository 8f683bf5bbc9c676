"""The jump's proposal ratio, term by term, against a calculation by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hamiltree.core.soft.data import CLASSES, COLLAPSED, MEANS
from hamiltree.core.soft.prior_jumps import GROW, PRUNE, STAY, propose_jump
from hamiltree.core.tree.nodes import PRUNABLE, copy_tree, count_kind, empty_tree, n_leaves

from ...support.core_trees import MAX_LEAVES, PRIOR, random_model, random_tree

PROBS = np.array([0.5, 0.2, 0.3])


def rule_density(tree, node, n_features):
    """log prior density of a node's rule; by the first p - 1 weights for HMC-DFI."""
    total = stats.beta(*PRIOR.tau).logpdf(tree.threshold[node])
    if tree.weights.shape[1]:
        return total + stats.dirichlet([PRIOR.weight] * n_features).logpdf(tree.weights[node])
    return total - np.log(n_features)


def shares(leaves: int, min_leaves: int) -> tuple[float, float]:
    """(grow, prune): prune's share goes to grow where the tree is as small as allowed."""
    return (0.7, 0.0) if leaves == min_leaves else (0.5, 0.2)


@pytest.mark.parametrize("min_leaves", [1, 2])
@pytest.mark.parametrize("family", [CLASSES, MEANS, COLLAPSED])
@pytest.mark.parametrize("oblique", [False, True])
def test_ratio(oblique, family, min_leaves, rng):
    seen = set()
    for _ in range(400):
        n_splits = int(rng.integers(min_leaves - 1, 6))
        tree = random_tree(rng, 3, n_splits, oblique)
        model, _, _, _ = random_model(rng, family, tree, n_rows=5, n_features=3, h=0.1)
        model = model._replace(prior=model.prior._replace(min_leaves=min_leaves))
        before = empty_tree(MAX_LEAVES, tree.weights.shape[1])
        copy_tree(tree, before)
        leaves = n_leaves(before)
        move, log_q = propose_jump(model, tree, PROBS, rng)
        seen.add(move)
        if move == STAY:
            assert log_q == 0.0
            assert n_leaves(tree) == leaves
            continue
        small, large = (before, tree) if move == GROW else (tree, before)
        assert n_leaves(large) == n_leaves(small) + 1
        node = changed_node(small, large)
        grow_share = shares(n_leaves(small), min_leaves)[0]
        prune_share = shares(n_leaves(large), min_leaves)[1]
        log_grow = np.log(grow_share / n_leaves(small)) + rule_density(large, node, 3)
        if family == MEANS:
            children = large.value[[node + 1, node + 2]]
            heirs = np.flatnonzero(children == small.value[node])
            assert heirs.size == 1  # one child has the small tree's mean, the other was drawn
            drawn = children[1 - heirs[0]]
            log_grow += stats.norm(*PRIOR.mu).logpdf(drawn)
        log_prune = np.log(prune_share / count_kind(large, PRUNABLE))
        expected = log_prune - log_grow if move == GROW else log_grow - log_prune
        assert log_q == pytest.approx(expected, rel=1e-10)
    assert seen == {GROW, PRUNE, STAY}


def changed_node(small, large) -> int:
    n = int(small.n_nodes[0])
    for i in range(n):
        if small.size[i] == 1 and large.size[i] == 3:
            rest_small = small.size[i + 1 : n].tolist()
            rest_large = large.size[i + 3 : n + 2].tolist()
            same_before = small.threshold[:i].tolist() == large.threshold[:i].tolist()
            if rest_small == rest_large and same_before:
                return i
    raise AssertionError("the trees do not differ by one grown leaf")


def test_coin_is_fair_and_both_children_inherit(rng):
    left = 0
    root = random_tree(rng, 2, 0, oblique=False)
    model, _, _, _ = random_model(rng, MEANS, root, n_rows=5, n_features=2, h=0.1)
    for _ in range(2000):
        tree = empty_tree(MAX_LEAVES, 0)
        tree.value[0] = 7.0
        move, _ = propose_jump(model, tree, np.array([1.0, 0.0, 0.0]), rng)
        assert move == GROW
        left += tree.value[1] == 7.0
        assert (tree.value[1] == 7.0) != (tree.value[2] == 7.0)
    assert abs(left - 1000) < 4.5 * np.sqrt(500)


def test_largest_tree_refuses_to_grow(rng):
    tree = random_tree(rng, 2, MAX_LEAVES - 1, oblique=False)
    model, _, _, _ = random_model(rng, CLASSES, tree, n_rows=5, n_features=2, h=0.1)
    move, log_q = propose_jump(model, tree, np.array([1.0, 0.0, 0.0]), rng)
    assert move == GROW
    assert log_q == -np.inf
    assert n_leaves(tree) == MAX_LEAVES
