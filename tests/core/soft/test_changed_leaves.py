"""What a proposal changed, evaluated alone, against trees as a whole and against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree.core.moves.rotate import rotate_rules
from hamiltree.core.moves.swap import swap_rules
from hamiltree.core.soft import kept_routing
from hamiltree.core.soft.changed_labels import propose_changed
from hamiltree.core.soft.changed_means import keep_sums, put_kept_sums, take_sums
from hamiltree.core.soft.data import COLLAPSED, LABELS, MEANS, make_data, make_work
from hamiltree.core.soft.kept_routing import RESERVED, commit_change, keep_routing
from hamiltree.core.soft.leaf_probabilities import take_probabilities
from hamiltree.core.soft.sweep import likelihood_of_change, node_of_change
from hamiltree.core.soft.target import likelihood, likelihood_as
from hamiltree.core.tree.nodes import (
    DELETABLE,
    INTERNAL,
    LEAF,
    PRUNABLE,
    changed_node,
    copy_tree,
    count_kind,
    grow,
    insert_above,
    n_leaves,
    nth_kind,
    prune,
    remove_above,
)
from hamiltree.core.tree.routing import BLOCK

from ...reference.leaf_proposal import LeafProposal, log_dirichlet
from ...reference.model import log_likelihood_labels, phi
from ...support.core_trees import MAX_LEAVES, random_model, random_tree, to_reference

FEATURES = 3
EDITS = ("grow", "prune", "insert", "delete", "rule", "swap", "rotate")
PRIOR = np.full(3, 0.7)  # of random_model's leaves


@pytest.fixture(autouse=True)
def also_small_trees(monkeypatch):
    monkeypatch.setattr(kept_routing, "FEWEST_LEAVES", 1)


def draw_rule(tree, node, rng):
    tree.threshold[node] = rng.uniform(0.05, 0.95)
    if tree.weights.shape[1]:
        tree.weights[node] = rng.dirichlet(np.ones(FEATURES))
    else:
        tree.feature[node] = rng.integers(FEATURES)


def edited(tree, rng):
    """A copy of a tree, edited as one of the moves does."""
    new = random_tree(rng, FEATURES, 0, tree.weights.shape[1] > 0)
    copy_tree(tree, new)
    while True:
        edit = EDITS[rng.integers(len(EDITS))]
        kind = {"grow": LEAF, "prune": PRUNABLE, "delete": DELETABLE}.get(edit, INTERNAL)
        among = count_kind(tree, kind)
        if among == 0 or (edit in ("grow", "insert") and n_leaves(tree) == MAX_LEAVES):
            continue
        node = nth_kind(tree, kind, int(rng.integers(among)))
        possible = True
        if edit == "grow":
            grow(new, node)
            draw_rule(new, node, rng)
        elif edit == "prune":
            prune(new, node)
        elif edit == "insert":
            insert_above(new, node, bool(rng.random() < 0.5))
            draw_rule(new, node, rng)
        elif edit == "delete":
            remove_above(new, node, tree.size[node + 1] == 1)
        elif edit == "rule":
            draw_rule(new, node, rng)
        elif edit == "swap":
            possible = swap_rules(tree, new, rng) >= 0
        else:
            possible = rotate_rules(tree, new, rng)
        if possible:
            return new


def nested(tree, i=0):
    """(number of the node, what is below it)."""
    if tree.size[i] == 1:
        return i, None
    rule = (int(tree.feature[i]), float(tree.threshold[i]), *tree.weights[i].tolist())
    left = i + 1
    return i, (rule, nested(tree, left), nested(tree, left + int(tree.size[left])))


def without_numbers(tree):
    _, content = tree
    return content and (content[0], *(without_numbers(child) for child in content[1:]))


def lowest_difference(one, other):
    if without_numbers(one) == without_numbers(other):
        return -1
    number, content = one
    if content and other[1] and content[0] == other[1][0]:
        found = [lowest_difference(a, b) for a, b in zip(content[1:], other[1][1:], strict=True)]
        if -1 in found:
            return max(found)
    return number


@pytest.mark.parametrize("oblique", [False, True])
def test_the_node_below_which_all_change_is(oblique, rng):
    for k in range(120):
        tree = random_tree(rng, FEATURES, k % MAX_LEAVES, oblique)
        assert changed_node(tree, tree) == -1
        new = edited(tree, rng)
        for _ in range(k % 3):
            new = edited(new, rng)
        expected = lowest_difference(nested(tree), nested(new))
        assert changed_node(tree, new) == changed_node(new, tree) == expected


def setting(rng, family, *, h=0.1, power=1.0, oblique=False, weighted=False, n_rows=BLOCK + 11):
    weights = rng.uniform(0.3, 3.0, n_rows) if weighted else None
    tree = random_tree(rng, FEATURES, 6, oblique)
    sizes = {"n_rows": n_rows, "n_features": FEATURES}
    as_work = COLLAPSED if family == MEANS else family  # scratch for means integrated out
    model, work, X, y = random_model(rng, as_work, tree, **sizes, h=h, power=power, weights=weights)
    model = model._replace(family=family)
    return tree, model, work, X, y


@pytest.mark.parametrize(
    ("family", "power", "h", "oblique", "weighted"),
    [
        (COLLAPSED, 1.0, 0.1, False, False),
        (COLLAPSED, 1.0, 0.0, False, True),
        (COLLAPSED, 1.0, 0.1, True, True),
        (MEANS, 0.3, 0.1, False, False),
    ],
)
def test_means_of_what_changed(family, power, h, oblique, weighted, rng):
    """The likelihood is that of the whole tree, after many changes kept and refused, too."""
    tree, model, work, _, _ = setting(
        rng, family, h=h, power=power, oblique=oblique, weighted=weighted
    )
    keep_routing(model.data, model.h, tree, work.kept)
    keep_sums(model.data, tree, work)
    changed = 0
    for k in range(40):
        new = edited(tree, rng)
        node = node_of_change(model, tree, new, work)
        assert node == changed_node(tree, new)
        if node < 0:
            continue
        changed += 1
        by_change = likelihood_of_change(model, tree, new, work, node)
        if k % 3:
            commit_change(tree, new, work.kept, node)
            take_sums(work, n_leaves(new))
        whole = likelihood_as(model, COLLAPSED, new, work)
        assert by_change == pytest.approx(whole, rel=1e-12, abs=1e-9)
        if k % 3:
            tree = new
    assert changed > 30
    likelihood_as(model, COLLAPSED, tree, work)
    expected = work.sums[0].copy()
    put_kept_sums(work, n_leaves(tree))
    np.testing.assert_allclose(work.sums[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("room", [0, 11, 14, 20])
def test_what_is_evaluated_alone_is_so_on_the_way_back(room, rng):
    """Where there is little room, or trees have few leaves."""
    tree, model, work, _, _ = setting(rng, LABELS, n_rows=7)
    limited = work.kept._replace(n_places=RESERVED + room, fewest=4)
    work = work._replace(kept=limited)
    found = set()
    for k in range(150):
        tree = random_tree(rng, FEATURES, 2 + k % 8, oblique=False)
        new = edited(tree, rng)
        forth, back = (node_of_change(model, *pair, work) for pair in ((tree, new), (new, tree)))
        assert forth == back
        found.add(forth >= 0)
    assert found == ({False} if room == 0 else {False, True})


@pytest.mark.parametrize(("power", "oblique"), [(1.0, False), (0.4, False), (1.0, True)])
def test_probabilities_of_what_changed(power, oblique, rng):
    """q is fitted with the others' probabilities as they are, and w' - w is made of it."""
    tree, model, work, X, y = setting(rng, LABELS, power=power, oblique=oblique, n_rows=BLOCK + 30)
    kept = work.kept
    model.leaves.log_likes[0] = likelihood(model, tree, work)
    keep_routing(model.data, model.h, tree, kept)
    some_stay = 0
    for k in range(30):
        new = edited(tree, rng)
        node = node_of_change(model, tree, new, work)
        if node < 0:
            continue
        difference = propose_changed(model, tree, new, work, node, rng)
        before = sum(tree.size[:node] == 1)
        expected, stayed = 0.0, np.zeros(0)
        for sign, one, p in ((-1, tree, model.leaves.p), (1, new, model.leaves.new_p)):
            p = p[: n_leaves(one)].copy()
            share = phi(to_reference(one), X, 0.1)
            changed = np.zeros(len(p), bool)
            changed[before : before + (one.size[node] + 1) // 2] = True
            others = (share[:, ~changed] * p[~changed][:, y].T).sum(axis=1)
            q = LeafProposal(share[:, changed], y, PRIOR, power, others=others)
            like = log_likelihood_labels(to_reference(one), X, y, p, 0.1)
            prior = sum(log_dirichlet(PRIOR, row) for row in p[changed])
            expected += sign * (prior + power * like - q.log_density(p[changed]))
            if sign > 0:
                found = model.leaves.centre[: changed.sum()]
                np.testing.assert_allclose(found, q.centre, rtol=1e-8)
                assert model.leaves.log_likes[1] == pytest.approx(like, rel=1e-9)
                np.testing.assert_array_equal(p[~changed], stayed)
                some_stay += len(stayed) > 0
            stayed = p[~changed]
        assert difference == pytest.approx(expected, rel=1e-8, abs=1e-8)
        if k % 3:
            commit_change(tree, new, kept, node)
            copy_tree(new, tree)
            now = take_probabilities(model, tree)
            assert now == pytest.approx(likelihood(model, tree, work), rel=1e-9)
    assert some_stay > 5


@pytest.mark.parametrize(("copies", "weight"), [(1, 1.0), (2, 2.0)])
def test_a_row_counts_as_often_as_its_weight_says(copies, weight, rng):
    seed = rng.integers(1 << 30)
    found = []
    for repeats, weights in ((copies, None), (1, np.full(40, weight))):
        own = np.random.default_rng(seed)
        tree = random_tree(own, FEATURES, 5, oblique=False)
        new = edited(tree, own)
        X, y = own.uniform(size=(40, FEATURES)), own.integers(0, 3, 40)
        p = own.dirichlet(np.ones(3), size=MAX_LEAVES)
        given = {"n_rows": 40 * repeats, "n_features": FEATURES, "h": 0.1, "weights": weights}
        model, _, _, _ = random_model(own, LABELS, tree, **given)
        columns = np.ascontiguousarray(np.repeat(X, repeats, axis=0).T)
        data = make_data(columns, np.repeat(y, repeats), 3, weights)
        work = make_work(data, MAX_LEAVES, 3, 0, LABELS)
        model = model._replace(data=data)
        model.leaves.p[:] = p
        model.leaves.log_likes[0] = likelihood(model, tree, work)
        keep_routing(data, model.h, tree, work.kept)
        node = changed_node(tree, new)
        found.append(propose_changed(model, tree, new, work, node, np.random.default_rng(seed)))
    assert found[0] == pytest.approx(found[1], rel=1e-9)
