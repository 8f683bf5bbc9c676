"""Terms of the informed moves once more: statistical tests of whole chains see them, too."""

from __future__ import annotations

from .harness import Mutant

GROW_PRUNE = "core/moves/grow_prune.py"
INSERT_DELETE = "core/moves/insert_delete.py"
CHANGE = "core/moves/change.py"
REGROW = "core/moves/regrow.py"
ROTATE = "core/moves/rotate.py"
SWAP = "core/moves/swap.py"
RELOCATE = "core/moves/relocate.py"
SWEEP = "core/soft/sweep.py"

POSTERIOR = "tests/statistical/test_informed_posterior.py -k test_posterior"
PRIOR = "tests/statistical/test_informed_posterior.py -k test_prior"
RECOVERY = "tests/statistical/test_prior_recovery.py"

GROWN = "math.log(leaves) - math.log(count_kind(new, PRUNABLE)) - log_rule"
PICK_BACK = "log_back -= math.log(new.size[node] * sum_of_picks(new))"

MUTANTS = [
    Mutant(
        "sweep: a sweep's GROW is not a fair coin between grow and prune",
        "core/moves/propose.py",
        "move_of",
        "rng.random() < 0.5",
        "rng.random() < 0.3",
        f"{PRIOR} 3-hmc-df-0.1-grow",
    ),
    Mutant(
        "sweep: log posterior not renewed after an accepted move",
        SWEEP,
        "sweep_integrated",
        "current, log_like = proposed, new_like",
        "log_like = new_like",
        f"{POSTERIOR} hmc-df-0.1-grow",
    ),
    Mutant(
        "sweep: explicit means not drawn anew after the moves",
        SWEEP,
        "sweep_integrated",
        "work.draws[k]",
        "tree.value[i]",
        f"{RECOVERY} -k 0-hmc-df-0.0-informed-explicit-1",
    ),
    Mutant(
        "grow in chains: density of the rule",
        GROW_PRUNE,
        "grow_informed",
        GROWN,
        GROWN.removesuffix(" - log_rule"),
        f"{PRIOR} 3-hmc-df-0.1-grow",
    ),
    Mutant(
        "prune in chains: number of nodes to prune",
        GROW_PRUNE,
        "prune_informed",
        "math.log(candidates)",
        "0.0",
        f"{PRIOR} 3-hmc-df-0.1-grow",
    ),
    Mutant(
        "insert in chains: coin for the side",
        INSERT_DELETE,
        "insert_informed",
        "2.0 * (leaves - 1)",
        "leaves - 1",
        f"{PRIOR} hmc-dfi-0.0-insert",
    ),
    Mutant(
        "regrow in chains: pick of the node back",
        REGROW,
        "regrow_informed",
        PICK_BACK,
        "",
        f"{PRIOR} hmc-df-0.0-regrow",
    ),
    Mutant(
        "change in chains: density forth",
        CHANGE,
        "change_informed",
        "log_back - log_forth",
        "log_back",
        f"{POSTERIOR} three-classes-hmc-df-0.1-change",
    ),
    Mutant(
        "relocate in chains: density back",
        RELOCATE,
        "relocate_informed",
        "log_back - log_forth",
        "-log_forth",
        f"{POSTERIOR} two-classes-hmc-df-0.1-relocate",
    ),
    Mutant(
        "relocate in chains: density forth",
        RELOCATE,
        "relocate_informed",
        "log_back - log_forth",
        "log_back",
        f"{POSTERIOR} two-classes-hmc-df-0.1-relocate",
    ),
    Mutant(
        "swap in chains: a ratio of proposals where labels cancel",
        SWAP,
        "swap",
        "0.0 if swap_rules(tree, new, rng) >= 0 else -np.inf",
        "np.log(3.0) if swap_rules(tree, new, rng) >= 0 else -np.inf",
        f"{POSTERIOR} two-classes-hmc-df-0.0-swap",
    ),
    Mutant(
        "rotate in chains: a ratio of proposals where labels cancel",
        ROTATE,
        "rotate",
        "0.0 if rotate_rules(tree, new, rng) else -np.inf",
        "np.log(3.0) if rotate_rules(tree, new, rng) else -np.inf",
        f"{POSTERIOR} three-classes-hmc-df-0.0-rotate",
    ),
]
