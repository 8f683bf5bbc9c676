"""Terms of the informed moves that keep the number of leaves, judged one move at a time."""

from __future__ import annotations

from .harness import Mutant

CHANGE = "core/moves/change.py"
ROTATE = "core/moves/rotate.py"
TRANSPOSE = "core/moves/transpose.py"
SWAP = "core/moves/swap.py"
RELOCATE = "core/moves/relocate.py"

RATIO = "tests/core/moves/test_informed.py -k test_ratio"
CHOICES = "tests/core/moves/test_informed.py -k test_choices"

MUTANTS = [
    # ------------------------------------------------------------------ change
    Mutant(
        "change: density back",
        CHANGE,
        "change_informed",
        "log_back - log_forth",
        "-log_forth",
        RATIO,
    ),
    Mutant(
        "change: density forth",
        CHANGE,
        "change_informed",
        "log_back - log_forth",
        "log_back",
        RATIO,
    ),
    # ------------------------------------------------------------------ rotate
    Mutant(
        "rotate: a ratio of proposals where labels cancel",
        ROTATE,
        "rotate",
        "0.0 if rotate_rules(tree, new, rng) else -np.inf",
        "np.log(2.0) if rotate_rules(tree, new, rng) else -np.inf",
        RATIO,
    ),
    Mutant(
        "rotate: the left child rises more often than the right",
        ROTATE,
        "rotate_rules",
        "rng.random() < 0.5",
        "rng.random() < 0.8",
        CHOICES,
    ),
    Mutant(
        "rotate: some nodes more often than others",
        ROTATE,
        "rotate_rules",
        "pick(pairs, rng)",
        "int(rng.random() ** 2 * pairs)",
        CHOICES,
    ),
    Mutant(
        "rotate: what moves up lands on the other side",
        ROTATE,
        "rotate_rules",
        "(stays, sibling) if on_left else (sibling, stays)",
        "(sibling, stays) if on_left else (stays, sibling)",
        RATIO,
    ),
    Mutant(
        "rotate: the node that comes down loses its rule",
        ROTATE,
        "rotate_rules",
        "copy_rule(tree, parent, new, lower)",
        "",
        RATIO,
    ),
    # ------------------------------------------------------------------ transpose
    Mutant(
        "transpose: density back",
        TRANSPOSE,
        "transpose_informed",
        "log_back - log_forth",
        "-log_forth",
        RATIO,
    ),
    Mutant(
        "transpose: density forth",
        TRANSPOSE,
        "transpose_informed",
        "log_back - log_forth",
        "log_back",
        RATIO,
    ),
    Mutant(
        "transpose: number of nodes forth",
        TRANSPOSE,
        "transpose_informed",
        "math.log(candidates)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "transpose: number of nodes back",
        TRANSPOSE,
        "transpose_informed",
        "math.log(count_kind(new, TRANSPOSABLE))",
        "0.0",
        RATIO,
    ),
    Mutant(
        "transpose: back, the rule that rises instead of the one that is dropped",
        TRANSPOSE,
        "transpose_informed",
        "log_one_rule(proposals, tree, dropped, mode)",
        "log_one_rule(proposals, tree, riser, mode)",
        RATIO,
    ),
    Mutant(
        "transpose: coin of the riser not fair",
        TRANSPOSE,
        "transpose_informed",
        "left_rises = rng.random() < 0.5",
        "left_rises = rng.random() < 0.7",
        CHOICES,
    ),
    Mutant(
        "transpose: coin of the heir not fair",
        TRANSPOSE,
        "transpose_informed",
        "left_inherits = rng.random() < 0.5",
        "left_inherits = rng.random() < 0.7",
        CHOICES,
    ),
    # ------------------------------------------------------------------ swap
    Mutant(
        "swap: only the child's rule moves",
        SWAP,
        "swap_rules",
        "copy_rule(tree, parent, new, child)",
        "",
        RATIO,
    ),
    Mutant(
        "swap: the first child always",
        SWAP,
        "swap_rules",
        "pick(pairs, rng)",
        "0 * pick(pairs, rng)",
        CHOICES,
    ),
    # ------------------------------------------------------------------ relocate
    Mutant(
        "relocate: density back",
        RELOCATE,
        "relocate_informed",
        "log_back - log_forth",
        "-log_forth",
        RATIO,
    ),
    Mutant(
        "relocate: density forth",
        RELOCATE,
        "relocate_informed",
        "log_back - log_forth",
        "log_back",
        RATIO,
    ),
    Mutant(
        "relocate: number of splits forth",
        RELOCATE,
        "relocate_informed",
        "math.log(candidates)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "relocate: number of splits back",
        RELOCATE,
        "relocate_informed",
        "math.log(count_kind(new, REMOVABLE))",
        "0.0",
        RATIO,
    ),
    Mutant(
        "relocate: coin for the side back",
        RELOCATE,
        "relocate_informed",
        "remove_rule(proposals, new, node, mode) - math.log(2.0)",
        "remove_rule(proposals, new, node, mode)",
        RATIO,
    ),
    Mutant(
        "relocate: coin for the side forth",
        RELOCATE,
        "relocate_informed",
        "insert_rule(proposals, new, target, mode, rng) - math.log(2.0)",
        "insert_rule(proposals, new, target, mode, rng)",
        RATIO,
    ),
]
