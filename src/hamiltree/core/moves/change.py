"""Change: a new rule for an internal node.

Label: the node and a rule. One scan serves both ways: it does not see the node's rule.
"""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..sampling import pick
from ..scan.proposals import draw_weighed, put_rule, weigh
from ..tree.nodes import INTERNAL, n_leaves, nth_kind, right_child


@kernel
def change_informed(proposals, tree, new, mode, rng):
    leaves = n_leaves(new)
    if leaves == 1:
        return -np.inf
    node = nth_kind(new, INTERNAL, pick(leaves - 1, rng))
    left, right = node + 1, right_child(new, node)
    _, log_back = weigh(proposals, new, node, node, left, right, mode)
    log_forth = draw_weighed(proposals, mode, rng)
    put_rule(proposals.scan, new, node)
    return log_back - log_forth
