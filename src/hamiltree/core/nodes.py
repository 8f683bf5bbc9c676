"""One node layout for every sampler: preorder arrays, and the edits that keep them so.

Node 0 is the root. The left child of an internal node i is i + 1 and its right child is
i + 1 + size[i + 1], so a subtree is a contiguous range, parents stand before their children, and
a tree has exactly one representation. A leaf has size 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import inlined, kernel


class Tree(NamedTuple):
    """A tree and its parameters, in buffers with room for ``capacity`` nodes."""

    n_nodes: NDArray[np.int64]
    """[1]; 2 n_leaves - 1. Entries beyond it are garbage."""
    size: NDArray[np.int64]
    """[capacity]; nodes in the subtree, 1 for a leaf."""
    parent: NDArray[np.int64]
    """[capacity]; -1 for the root."""
    depth: NDArray[np.int64]
    """[capacity]; 0 for the root."""
    feature: NDArray[np.int64]
    """[capacity]; the column an internal node splits on (HMC-DF), -1 elsewhere."""
    threshold: NDArray[np.float64]
    """[capacity]; in (0, 1) at internal nodes."""
    weights: NDArray[np.float64]
    """[capacity, p] for HMC-DFI, a point of the simplex at internal nodes; [capacity, 0] else."""
    value: NDArray[np.float64]
    """[capacity]; the mean of a regression leaf where means are explicit."""
    sigma: NDArray[np.float64]
    """[1]; noise sd of a regression tree."""


def empty_tree(max_leaves: int, n_weights: int) -> Tree:
    """A root-only tree; ``n_weights`` is p for HMC-DFI and 0 otherwise."""
    capacity = 2 * max_leaves - 1
    tree = Tree(
        n_nodes=np.ones(1, np.int64),
        size=np.ones(capacity, np.int64),
        parent=np.full(capacity, -1, np.int64),
        depth=np.zeros(capacity, np.int64),
        feature=np.full(capacity, -1, np.int64),
        threshold=np.zeros(capacity),
        weights=np.zeros((capacity, n_weights)),
        value=np.zeros(capacity),
        sigma=np.ones(1),
    )
    return tree


@inlined
def is_leaf(tree, i):
    return tree.size[i] == 1


@inlined
def right_child(tree, i):
    return i + 1 + tree.size[i + 1]


@inlined
def n_leaves(tree):
    return (tree.n_nodes[0] + 1) // 2


@kernel
def tree_depth(tree):
    deepest = 0
    for i in range(tree.n_nodes[0]):
        deepest = max(deepest, tree.depth[i])
    return deepest


@kernel
def nth_leaf(tree, k):
    """The k-th leaf in preorder."""
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 1:
            if k == 0:
                return i
            k -= 1
    return -1


@kernel
def nth_internal(tree, k):
    """The k-th internal node in preorder."""
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1:
            if k == 0:
                return i
            k -= 1
    return -1


@kernel
def count_prunable(tree):
    """Internal nodes whose two children are leaves; their subtrees have three nodes."""
    count = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 3:
            count += 1
    return count


@kernel
def nth_prunable(tree, k):
    for i in range(tree.n_nodes[0]):
        if tree.size[i] == 3:
            if k == 0:
                return i
            k -= 1
    return -1


@kernel
def path_to(tree, node, out):
    """Write the ancestors of a node, root first, into ``out``; return how many."""
    length = tree.depth[node]
    i = tree.parent[node]
    for place in range(length - 1, -1, -1):
        out[place] = i
        i = tree.parent[i]
    return length


@inlined
def copy_node(source, i, target, j):
    target.size[j] = source.size[i]
    target.parent[j] = source.parent[i]
    target.depth[j] = source.depth[i]
    target.feature[j] = source.feature[i]
    target.threshold[j] = source.threshold[i]
    target.value[j] = source.value[i]
    for f in range(source.weights.shape[1]):
        target.weights[j, f] = source.weights[i, f]


@inlined
def copy_rule(source, i, target, j):
    target.feature[j] = source.feature[i]
    target.threshold[j] = source.threshold[i]
    for f in range(source.weights.shape[1]):
        target.weights[j, f] = source.weights[i, f]


@inlined
def copy_range(source, start, target, at):
    """Copy a subtree, its links left to ``relink``; returns where it ends."""
    size = source.size[start]
    for k in range(size):
        copy_node(source, start + k, target, at + k)
    return at + size


@kernel
def copy_tree(source, target):
    target.n_nodes[0] = source.n_nodes[0]
    target.sigma[0] = source.sigma[0]
    for i in range(source.n_nodes[0]):
        copy_node(source, i, target, i)


@inlined
def open_gap(tree, at, width):
    """Move the nodes from ``at`` on ``width`` places up; links are left to ``relink``."""
    for i in range(tree.n_nodes[0] - 1, at - 1, -1):
        copy_node(tree, i, tree, i + width)
    tree.n_nodes[0] += width


@inlined
def close_gap(tree, at, width):
    """Drop the ``width`` nodes from ``at`` on; links are left to ``relink``."""
    for i in range(at + width, tree.n_nodes[0]):
        copy_node(tree, i, tree, i - width)
    tree.n_nodes[0] -= width


@inlined
def resize_ancestors(tree, node, change):
    """Tell the ancestors of a node that its subtree grew by ``change`` nodes."""
    i = tree.parent[node]
    while i >= 0:
        tree.size[i] += change
        i = tree.parent[i]


@kernel
def relink(tree):
    """Derive parent and depth from the sizes."""
    tree.parent[0] = -1
    tree.depth[0] = 0
    for i in range(tree.n_nodes[0]):
        if tree.size[i] > 1:
            left = i + 1
            right = left + tree.size[left]
            tree.parent[left] = i
            tree.parent[right] = i
            tree.depth[left] = tree.depth[i] + 1
            tree.depth[right] = tree.depth[i] + 1


@kernel
def grow(tree, leaf):
    """Turn a leaf into an internal node with two leaves; its rule is for the caller to set."""
    resize_ancestors(tree, leaf, 2)
    open_gap(tree, leaf + 1, 2)
    tree.size[leaf] = 3
    for child in (leaf + 1, leaf + 2):
        tree.size[child] = 1
        tree.feature[child] = -1
        tree.value[child] = 0.0
    relink(tree)


@kernel
def prune(tree, node):
    """Turn an internal node with two leaves back into a leaf."""
    resize_ancestors(tree, node, -2)
    close_gap(tree, node + 1, 2)
    tree.size[node] = 1
    tree.feature[node] = -1
    relink(tree)


@kernel
def insert_above(tree, node, leaf_left):
    """Put a split above a node, with a new leaf on one side; its rule is for the caller to set."""
    resize_ancestors(tree, node, 2)
    size = tree.size[node]
    if leaf_left:
        open_gap(tree, node, 2)
        leaf = node + 1
    else:
        open_gap(tree, node, 1)
        leaf = node + 1 + size
        open_gap(tree, leaf, 1)
    tree.size[node] = size + 2
    tree.size[leaf] = 1
    tree.feature[leaf] = -1
    tree.value[leaf] = 0.0
    relink(tree)


@kernel
def remove_above(tree, node, leaf_left):
    """Take out a split and its leaf on one side; what is on the other takes its place."""
    resize_ancestors(tree, node, -2)
    if leaf_left:
        close_gap(tree, node, 2)
    else:
        close_gap(tree, node + 1 + tree.size[node + 1], 1)
        close_gap(tree, node, 1)
    relink(tree)


@kernel
def prune_all(tree, node):
    """Turn any node into a leaf."""
    removed = tree.size[node] - 1
    resize_ancestors(tree, node, -removed)
    close_gap(tree, node + 1, removed)
    tree.size[node] = 1
    tree.feature[node] = -1
    relink(tree)
