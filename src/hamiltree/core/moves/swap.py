"""Swap: a parent and a child exchange rules.

Label: an internal node with a parent. Its own reverse. Where both children have the same rule, both
get the parent's. Where the other child has the parent's rule, the exchange would not be undone by
another one, so it is refused.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..tree.nodes import INTERNAL, copy_rule, n_leaves, nth_kind, right_child, same_rule


@kernel
def swap_rules(tree, new, rng):
    """Edit ``new``, a copy of ``tree``; the parent, or -1 where it is not possible."""
    pairs = n_leaves(tree) - 2  # every internal node but the root is a child
    if pairs < 1:
        return -1
    child = nth_kind(tree, INTERNAL, 1 + pick(pairs, rng))
    parent = tree.parent[child]
    right = right_child(tree, parent)
    other = right if child == parent + 1 else parent + 1
    if tree.size[other] > 1:
        if same_rule(tree, other, tree, parent):
            return -1
        if same_rule(tree, other, tree, child):
            copy_rule(tree, parent, new, other)
    copy_rule(tree, child, new, parent)
    copy_rule(tree, parent, new, child)
    return parent


@kernel
def swap(proposals, tree, new, mode, rng):
    return 0.0 if swap_rules(tree, new, rng) >= 0 else -np.inf
