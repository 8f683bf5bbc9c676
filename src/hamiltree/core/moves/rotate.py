"""Rotations: a child's split and its parent's change places, and one subtree moves up with it.

    v(r){c(s){A, B}, X}  becomes  v(s){A, c(r){B, X}}  or  v(s){c(r){A, X}, B},

and the mirror images of these. Every subtree stays on the side of each split that it was on, so
most rows stay with the leaves that suit them: this is what changes the first splits of a tree.
Label: an internal node with a parent, and which of its children rises. Back: the node that came
down, and the subtree that came with it (X). The number of nodes with a parent stays the same and
nothing is drawn, so that the labels cancel.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..tree.nodes import (
    INTERNAL,
    copy_range,
    copy_rule,
    n_leaves,
    nth_kind,
    relink,
    right_child,
)


@kernel
def rotate_rules(tree, new, rng):
    """Edit ``new``, a copy of ``tree``; False where the tree is too small for it."""
    pairs = n_leaves(tree) - 2  # every internal node but the root has a parent
    if pairs < 1:
        return False
    child = nth_kind(tree, INTERNAL, 1 + pick(pairs, rng))
    parent = tree.parent[child]
    on_left = child == parent + 1
    left_rises = rng.random() < 0.5
    left, right = child + 1, right_child(tree, child)
    stays = right if left_rises else left
    sibling = right_child(tree, parent) if on_left else parent + 1
    first, second = (stays, sibling) if on_left else (sibling, stays)
    lower = copy_range(tree, left, new, parent + 1) if left_rises else parent + 1
    end = copy_range(tree, first, new, lower + 1)
    end = copy_range(tree, second, new, end)
    new.size[lower] = end - lower
    if not left_rises:
        copy_range(tree, right, new, end)
    copy_rule(tree, child, new, parent)
    copy_rule(tree, parent, new, lower)
    relink(new)
    return True


@kernel
def rotate(proposals, tree, new, mode, rng):
    return 0.0 if rotate_rules(tree, new, rng) else -np.inf
