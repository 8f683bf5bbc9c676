"""Terms of the informed moves that change the number of leaves, judged one move at a time."""

from __future__ import annotations

from .harness import Mutant

GROW_PRUNE = "core/moves/grow_prune.py"
INSERT_DELETE = "core/moves/insert_delete.py"
REGROW = "core/moves/regrow.py"

RATIO = "tests/core/moves/test_informed.py -k test_ratio"
CHOICES = "tests/core/moves/test_informed.py -k test_choices"
UNIT = "tests/core/moves/test_informed.py"

GROWN = "math.log(leaves) - math.log(count_kind(new, PRUNABLE)) - log_rule"
PRUNED = "log_rule + math.log(candidates) - math.log(leaves - 1)"
INSERTED = "math.log(2.0 * (leaves - 1)) - math.log(count_kind(new, DELETABLE)) - log_rule"
DELETED = "log_rule + math.log(candidates) - math.log(2.0 * (leaves - 2))"
PICK_BACK = "log_back -= math.log(new.size[node] * sum_of_picks(new))"

MUTANTS = [
    # ------------------------------------------------------------------ grow, prune
    Mutant(
        "grow: number of leaves",
        GROW_PRUNE,
        "grow_informed",
        "math.log(leaves)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "grow: number of nodes to prune",
        GROW_PRUNE,
        "grow_informed",
        "math.log(count_kind(new, PRUNABLE))",
        "0.0",
        RATIO,
    ),
    Mutant(
        "grow: density of the rule",
        GROW_PRUNE,
        "grow_informed",
        GROWN,
        GROWN.removesuffix(" - log_rule"),
        RATIO,
    ),
    Mutant(
        "prune: density of the rule",
        GROW_PRUNE,
        "prune_informed",
        PRUNED,
        PRUNED.removeprefix("log_rule + "),
        RATIO,
    ),
    Mutant(
        "prune: number of nodes to prune",
        GROW_PRUNE,
        "prune_informed",
        "math.log(candidates)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "prune: number of leaves",
        GROW_PRUNE,
        "prune_informed",
        "math.log(leaves - 1)",
        "0.0",
        RATIO,
    ),
    # ------------------------------------------------------------------ insert, delete
    Mutant(
        "insert: coin for the side",
        INSERT_DELETE,
        "insert_informed",
        "2.0 * (leaves - 1)",
        "leaves - 1",
        RATIO,
    ),
    Mutant(
        "insert: number of nodes",
        INSERT_DELETE,
        "insert_informed",
        "2.0 * (leaves - 1)",
        "2.0",
        RATIO,
    ),
    Mutant(
        "insert: number of splits to delete",
        INSERT_DELETE,
        "insert_informed",
        "math.log(count_kind(new, DELETABLE))",
        "0.0",
        RATIO,
    ),
    Mutant(
        "insert: density of the rule",
        INSERT_DELETE,
        "insert_informed",
        INSERTED,
        INSERTED.removesuffix(" - log_rule"),
        RATIO,
    ),
    Mutant(
        "delete: coin for the side",
        INSERT_DELETE,
        "delete_informed",
        "2.0 * (leaves - 2)",
        "leaves - 2",
        RATIO,
    ),
    Mutant(
        "delete: number of nodes",
        INSERT_DELETE,
        "delete_informed",
        "2.0 * (leaves - 2)",
        "2.0",
        RATIO,
    ),
    Mutant(
        "delete: number of splits to delete",
        INSERT_DELETE,
        "delete_informed",
        "math.log(candidates)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "delete: density of the rule",
        INSERT_DELETE,
        "delete_informed",
        DELETED,
        DELETED.removeprefix("log_rule + "),
        RATIO,
    ),
    Mutant(
        "insert: a coin that is not fair",
        INSERT_DELETE,
        "insert_rule",
        "rng.random() < 0.5",
        "rng.random() < 0.7",
        CHOICES,
    ),
    # ------------------------------------------------------------------ regrow
    Mutant(
        "regrow: stops back",
        REGROW,
        "log_regrown",
        "math.log1p(-split)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "regrow: splits back",
        REGROW,
        "log_regrown",
        "math.log(split) + log_rule",
        "log_rule",
        RATIO,
    ),
    Mutant(
        "regrow: rules back",
        REGROW,
        "log_regrown",
        "math.log(split) + log_rule",
        "math.log(split)",
        RATIO,
    ),
    Mutant(
        "regrow: stops forth",
        REGROW,
        "regrow_informed",
        "math.log1p(-split)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "regrow: splits forth",
        REGROW,
        "regrow_informed",
        "math.log(split)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "regrow: rules forth",
        REGROW,
        "regrow_informed",
        "draw_weighed(proposals, MODE_COLUMNS, rng)",
        "0.0 * draw_weighed(proposals, MODE_COLUMNS, rng)",
        RATIO,
    ),
    Mutant(
        "regrow: pick of the node back",
        REGROW,
        "regrow_informed",
        PICK_BACK,
        "",
        RATIO,
    ),
    Mutant(
        "regrow: pick of the node forth",
        REGROW,
        "regrow_informed",
        "log_forth -= math.log(tree.size[node] * all_forth)",
        "",
        RATIO,
    ),
    Mutant(
        "regrow: splits by the prior, but counted as by the scan",
        REGROW,
        "regrow_informed",
        "rng.random() < split",
        "rng.random() < split_probability(prior, new.depth[i])",
        f"{UNIT} -k test_regrow",
    ),
]
