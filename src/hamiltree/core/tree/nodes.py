"""One node layout for every sampler: preorder arrays, and the edits that keep them so.

Node 0 is the root. The left child of an internal node i is i + 1 and its right child is
i + 1 + size[i + 1], so a subtree is a contiguous range, parents stand before their children, and
a tree has exactly one representation. A leaf has size 1.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import inlined, kernel
from ..backend.records import Float1, Float2, Int1, Record, Word1


class Tree(Record, role="state"):
    """A tree and its parameters, in buffers with room for ``capacity`` nodes."""

    n_nodes: Int1
    """[1]; 2 n_leaves - 1. Entries beyond it are garbage."""
    size: Int1
    """[capacity]; nodes in the subtree, 1 for a leaf."""
    parent: Int1
    """[capacity]; -1 for the root."""
    depth: Int1
    """[capacity]; 0 for the root."""
    feature: Int1
    """[capacity]; the column an internal node splits on (HMC-DF), -1 elsewhere."""
    threshold: Float1
    """[capacity]; in (0, 1) at internal nodes, or infinite for the rule "is missing"."""
    levels: Word1
    """[capacity]; what goes right beside larger numbers, see ``kinds``."""
    weights: Float2
    """[capacity, p] for HMC-DFI, a point of the simplex at internal nodes; [capacity, 0] else."""
    value: Float1
    """[capacity]; the mean of a regression leaf where means are explicit."""
    sigma: Float1
    """[1]; noise sd of a regression tree."""


def empty_tree(max_leaves: int, n_weights: int) -> Tree:
    """A root-only tree; ``n_weights`` is p for HMC-DFI and 0 otherwise."""
    capacity = 2 * max_leaves - 1
    return Tree(
        n_nodes=np.ones(1, np.int64),
        size=np.ones(capacity, np.int64),
        parent=np.full(capacity, -1, np.int64),
        depth=np.zeros(capacity, np.int64),
        feature=np.full(capacity, -1, np.int64),
        threshold=np.zeros(capacity),
        levels=np.zeros(capacity, np.uint64),
        weights=np.zeros((capacity, n_weights)),
        value=np.zeros(capacity),
        sigma=np.ones(1),
    )


@kernel
def right_child(tree, i):
    return i + 1 + tree.size[i + 1]


@kernel
def n_leaves(tree):
    return (tree.n_nodes[0] + 1) // 2


@kernel
def tree_depth(tree):
    deepest = 0
    for i in range(tree.n_nodes[0]):
        deepest = max(deepest, tree.depth[i])
    return deepest


# ------------------------------------------------------------------ kinds of nodes
# np.int64, as all constants that are handed to kernels: for a literal they would be compiled again.

ZERO, ONE, TWO = np.int64(0), np.int64(1), np.int64(2)

LEAF = np.int64(0)
INTERNAL = np.int64(1)
PRUNABLE = np.int64(2)
"""Internal nodes whose two children are leaves; their subtrees have three nodes."""
DELETABLE = np.int64(3)
"""Internal nodes with one leaf child and one internal child."""
REMOVABLE = np.int64(4)
"""Internal nodes with a leaf child: PRUNABLE or DELETABLE."""
TRANSPOSABLE = np.int64(5)
"""Internal nodes whose children are both internal and split on the same feature (HMC-DF)."""


@inlined
def is_kind(size, feature, oblique, i, kind):
    if kind == LEAF:
        answer = size[i] == 1
    elif kind == INTERNAL:
        answer = size[i] > 1
    elif kind == PRUNABLE:
        answer = size[i] == 3
    elif size[i] == 1:
        answer = False
    else:
        left, right = i + 1, i + 1 + size[i + 1]
        some_leaf = size[left] == 1 or size[right] == 1
        if kind == REMOVABLE:
            answer = some_leaf
        elif kind == DELETABLE:
            answer = size[i] > 3 and some_leaf
        else:
            answer = not some_leaf and (oblique or feature[left] == feature[right])
    return answer


@kernel
def count_kind(tree, kind):
    """How many nodes of a kind there are."""
    size, feature, oblique = tree.size, tree.feature, tree.weights.shape[1] > 0
    count = 0
    for i in range(tree.n_nodes[0]):
        if is_kind(size, feature, oblique, i, kind):
            count += 1
    return count


@kernel
def nth_kind(tree, kind, k):
    """The k-th node of a kind in preorder."""
    size, feature, oblique = tree.size, tree.feature, tree.weights.shape[1] > 0
    for i in range(tree.n_nodes[0]):
        if is_kind(size, feature, oblique, i, kind):
            if k == 0:
                return i
            k -= 1
    return -1


@kernel
def same_rule(tree, i, other, j):
    """Whether node i of a tree has the rule that node j of another, or of the same, has."""
    if tree.feature[i] != other.feature[j] or tree.threshold[i] != other.threshold[j]:
        return False
    if tree.levels[i] != other.levels[j]:
        return False
    for f in range(tree.weights.shape[1]):  # noqa: SIM110 (no generators in compiled code)
        if tree.weights[i, f] != other.weights[j, f]:
            return False
    return True


@kernel
def same_subtree(tree, i, other, j):
    """Whether shape and rules below node i of a tree are those below node j of another."""
    if tree.size[i] != other.size[j]:
        return False
    for k in range(tree.size[i]):
        if tree.size[i + k] != other.size[j + k]:
            return False
        if tree.size[i + k] > 1 and not same_rule(tree, i + k, other, j + k):
            return False
    return True


@kernel
def changed_node(tree, other):
    """The lowest node below which all that differs between two trees is; -1 where they are alike.

    It has the same number in both, because nodes before it are alike.
    """
    i = 0
    while tree.size[i] > 1 and other.size[i] > 1 and same_rule(tree, i, other, i):
        right = right_child(tree, i)
        if same_subtree(tree, i + 1, other, i + 1):
            i = right
        elif same_subtree(tree, right, other, right_child(other, i)):
            i += 1
        else:
            return i
    return -1 if tree.size[i] == 1 and other.size[i] == 1 else i


@kernel
def path_to(tree, node, out):
    """Write the ancestors of a node, root first, into ``out``; return how many."""
    length = tree.depth[node]
    i = tree.parent[node]
    for place in range(length - 1, -1, -1):
        out[place] = i
        i = tree.parent[i]
    return length


@kernel
def copy_nodes(source, start, target, at, count):
    """Copy some nodes, in an order that lets them overlap; links are left to ``relink``."""
    size, new_size = source.size, target.size
    feature, new_feature = source.feature, target.feature
    threshold, new_threshold = source.threshold, target.threshold
    levels, new_levels = source.levels, target.levels
    value, new_value = source.value, target.value
    weights, new_weights = source.weights, target.weights
    for k in range(count):
        i, j = start + k, at + k
        if at > start:
            i, j = start + count - 1 - k, at + count - 1 - k
        new_size[j] = size[i]
        new_feature[j] = feature[i]
        new_threshold[j] = threshold[i]
        new_levels[j] = levels[i]
        new_value[j] = value[i]
        for f in range(weights.shape[1]):
            new_weights[j, f] = weights[i, f]


@kernel
def copy_rule(source, i, target, j):
    target.feature[j] = source.feature[i]
    target.threshold[j] = source.threshold[i]
    target.levels[j] = source.levels[i]
    for f in range(source.weights.shape[1]):
        target.weights[j, f] = source.weights[i, f]


@kernel
def copy_range(source, start, target, at):
    """Copy a subtree, its links left to ``relink``; returns where it ends."""
    size = source.size[start]
    copy_nodes(source, start, target, at, size)
    return at + size


@kernel
def copy_tree(source, target):
    n = source.n_nodes[0]
    target.n_nodes[0] = n
    target.sigma[0] = source.sigma[0]
    copy_nodes(source, ZERO, target, ZERO, n)
    parent, new_parent = source.parent, target.parent
    depth, new_depth = source.depth, target.depth
    for i in range(n):
        new_parent[i] = parent[i]
        new_depth[i] = depth[i]


@kernel
def open_gap(tree, at, width):
    """Move the nodes from ``at`` on ``width`` places up; links are left to ``relink``."""
    copy_nodes(tree, at, tree, at + width, tree.n_nodes[0] - at)
    tree.n_nodes[0] += width


@kernel
def close_gap(tree, at, width):
    """Drop the ``width`` nodes from ``at`` on; links are left to ``relink``."""
    copy_nodes(tree, at + width, tree, at, tree.n_nodes[0] - at - width)
    tree.n_nodes[0] -= width


@kernel
def resize_ancestors(tree, node, change):
    """Tell the ancestors of a node that its subtree grew by ``change`` nodes."""
    i = tree.parent[node]
    while i >= 0:
        tree.size[i] += change
        i = tree.parent[i]


@kernel
def relink(tree):
    """Derive parent and depth from the sizes."""
    size, parent, depth = tree.size, tree.parent, tree.depth
    parent[0] = -1
    depth[0] = 0
    for i in range(tree.n_nodes[0]):
        if size[i] > 1:
            left = i + 1
            right = left + size[left]
            parent[left] = i
            parent[right] = i
            depth[left] = depth[i] + 1
            depth[right] = depth[i] + 1


@kernel
def grow(tree, leaf):
    """Turn a leaf into an internal node with two leaves; its rule is for the caller to set."""
    resize_ancestors(tree, leaf, TWO)
    open_gap(tree, leaf + 1, TWO)
    tree.size[leaf] = 3
    for child in (leaf + 1, leaf + 2):
        tree.size[child] = 1
        tree.feature[child] = -1
        tree.value[child] = 0.0
    relink(tree)


@kernel
def prune(tree, node):
    """Turn an internal node with two leaves back into a leaf."""
    resize_ancestors(tree, node, -TWO)
    close_gap(tree, node + 1, TWO)
    tree.size[node] = 1
    tree.feature[node] = -1
    relink(tree)


@kernel
def insert_above(tree, node, leaf_left):
    """Put a split above a node, with a new leaf on one side; its rule is for the caller to set."""
    resize_ancestors(tree, node, TWO)
    size = tree.size[node]
    if leaf_left:
        open_gap(tree, node, TWO)
        leaf = node + 1
    else:
        open_gap(tree, node, ONE)
        leaf = node + 1 + size
        open_gap(tree, leaf, ONE)
    tree.size[node] = size + 2
    tree.size[leaf] = 1
    tree.feature[leaf] = -1
    tree.value[leaf] = 0.0
    relink(tree)


@kernel
def remove_above(tree, node, leaf_left):
    """Take out a split and its leaf on one side; what is on the other takes its place."""
    resize_ancestors(tree, node, -TWO)
    if leaf_left:
        close_gap(tree, node, TWO)
    else:
        close_gap(tree, node + 1 + tree.size[node + 1], ONE)
        close_gap(tree, node, ONE)
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
