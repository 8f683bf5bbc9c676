"""The node layout survives any sequence of edits."""

from __future__ import annotations

import itertools

import numpy as np

from hamiltree.core.tree.nodes import (
    INTERNAL,
    LEAF,
    PRUNABLE,
    Tree,
    copy_tree,
    count_kind,
    empty_tree,
    grow,
    n_leaves,
    nth_kind,
    path_to,
    prune,
    right_child,
    tree_depth,
)

from ...support.core_trees import MAX_LEAVES, random_tree


def check(tree: Tree, node: int = 0, parent: int = -1, depth: int = 0) -> int:
    """Walk the tree by its child rule; returns the node after this subtree."""
    assert tree.parent[node] == parent
    assert tree.depth[node] == depth
    if tree.size[node] == 1:
        return node + 1
    left_end = check(tree, node + 1, node, depth + 1)
    assert right_child(tree, node) == left_end
    end = check(tree, left_end, node, depth + 1)
    assert tree.size[node] == end - node
    return end


def rules_by_path(tree: Tree) -> dict[tuple[str, ...], tuple[int, float]]:
    """Each internal node's rule under its path of turns, which edits elsewhere must not touch."""
    found: dict[tuple[str, ...], tuple[int, float]] = {}

    def walk(node: int, path: tuple[str, ...]) -> None:
        if tree.size[node] > 1:
            found[path] = (int(tree.feature[node]), float(tree.threshold[node]))
            walk(node + 1, (*path, "left"))
            walk(right_child(tree, node), (*path, "right"))

    walk(0, ())
    return found


def test_edits_keep_the_layout_and_all_other_rules(rng):
    tree = empty_tree(MAX_LEAVES, 0)
    for _ in range(400):
        before = rules_by_path(tree)
        can_grow = n_leaves(tree) < MAX_LEAVES
        if can_grow and (rng.random() < 0.55 or n_leaves(tree) == 1):
            node = nth_kind(tree, LEAF, int(rng.integers(n_leaves(tree))))
            grow(tree, node)
            tree.feature[node], tree.threshold[node] = rng.integers(5), rng.uniform()
            after = rules_by_path(tree)
            assert len(after) == len(before) + 1
        else:
            prune(tree, nth_kind(tree, PRUNABLE, int(rng.integers(count_kind(tree, PRUNABLE)))))
            after = rules_by_path(tree)
            assert len(after) == len(before) - 1
        assert check(tree) == tree.n_nodes[0]
        common = before.keys() & after.keys()
        assert len(common) == min(len(before), len(after))
        assert all(before[path] == after[path] for path in common)


def test_growing_and_pruning_a_leaf_gives_the_tree_back(rng):
    tree = random_tree(rng, 3, 6, oblique=False)
    twin = empty_tree(MAX_LEAVES, 0)
    for k in range(n_leaves(tree)):
        copy_tree(tree, twin)
        node = nth_kind(twin, LEAF, k)
        grow(twin, node)
        prune(twin, node)
        n = tree.n_nodes[0]
        assert twin.n_nodes[0] == n
        for name in ("size", "parent", "depth", "feature"):
            np.testing.assert_array_equal(getattr(tree, name)[:n], getattr(twin, name)[:n])


def test_path_depth_and_counts(rng):
    tree = random_tree(rng, 3, 8, oblique=False)
    out = np.zeros(MAX_LEAVES, np.int64)
    depths = []
    for k in range(n_leaves(tree)):
        leaf = nth_kind(tree, LEAF, k)
        length = path_to(tree, leaf, out)
        depths.append(length)
        nodes = [*out[:length], leaf]
        assert nodes[0] == 0
        for parent, child in itertools.pairwise(nodes):
            assert child in (parent + 1, right_child(tree, parent))
    assert tree_depth(tree) == max(depths)
    inner = [nth_kind(tree, INTERNAL, k) for k in range(n_leaves(tree) - 1)]
    assert sorted(inner) == inner
    assert count_kind(tree, PRUNABLE) == sum(tree.size[i] == 3 for i in inner)
