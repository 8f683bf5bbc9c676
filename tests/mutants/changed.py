"""Terms of proposals of which only what changed is evaluated."""

from __future__ import annotations

from .harness import Mutant

LABELS = "core/soft/changed_labels.py"
MEANS = "core/soft/changed_means.py"
KEPT = "core/soft/kept_routing.py"
NODES = "core/tree/nodes.py"
SWEEP = "core/soft/sweep.py"
UNIT = "tests/core/soft/test_changed_leaves.py"
OF_LABELS = f"{UNIT} -k probabilities_of_what_changed"
OF_MEANS = f"{UNIT} -k means_of_what_changed"
BACK = f"{UNIT} -k on_the_way_back"
POSTERIOR = "tests/statistical/test_label_posterior.py -k what_changed_alone"

MUTANTS = [
    Mutant(
        "changed leaves: density of the state's probabilities left out",
        LABELS,
        "propose_changed",
        "weight -= log_fitted(leaves, were, was)",
        "",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: density of the drawn probabilities left out",
        LABELS,
        "propose_changed",
        "new_weight -= log_fitted(leaves, changed, drawn)",
        "",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: prior of the state's probabilities left out",
        LABELS,
        "propose_changed",
        "log_prior_of_probabilities(leaves, was, were)",
        "0.0",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: prior of the drawn probabilities left out",
        LABELS,
        "propose_changed",
        "log_prior_of_probabilities(leaves, drawn, changed)",
        "0.0",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: power of the likelihood left out",
        LABELS,
        "propose_changed",
        "tempered(power, log_like)",
        "log_like",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: leaves behind them keep the probabilities of their old places",
        LABELS,
        "propose_changed",
        "old_p[k - changed + were, m]",
        "old_p[k, m]",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: the share of leaves behind them by other probabilities",
        LABELS,
        "mix_others",
        "before + were",
        "before",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: fitted as if there were no others",
        LABELS,
        "mix_changed",
        "scale_into(rows, to, 1.0, first + OTHERS, n)",
        "scale_into(rows, to, 0.0, first + OTHERS, n)",
        OF_LABELS,
    ),
    Mutant(
        "changed leaves: weights of rows left out",
        LABELS,
        "mix_changed",
        "data.root.shape[1] > 0",
        "False",
        f"{UNIT} -k as_its_weight_says",
    ),
    Mutant(
        "changed leaves: kept sums of leaves behind them",
        MEANS,
        "put_sums_of_change",
        "(k + changed, k + were)",
        "(k + changed, k + changed)",
        OF_MEANS,
    ),
    Mutant(
        "changed leaves: their products with the leaves behind them",
        MEANS,
        "put_sums_of_change",
        "j if j < before else j + changed",
        "j",
        OF_MEANS,
    ),
    Mutant(
        "changed leaves: only every other product",
        MEANS,
        "products_of_change",
        "min(a + 1, changed - 1)",
        "a",
        OF_MEANS,
    ),
    Mutant(
        "kept routing: that of the tree before an accepted move",
        KEPT,
        "commit_change",
        "kept.place[i] = kept.new_place[i]",
        "pass",
        OF_MEANS,
    ),
    Mutant(
        "kept routing: places of nodes that are there are given away",
        KEPT,
        "commit_change",
        "kept.n_free[0] -= new.size[node] - 1",
        "",
        OF_MEANS,
    ),
    Mutant(
        "evaluated alone: room asked for on the way forth only",
        SWEEP,
        "node_of_change",
        "has_room(kept, tree, new, node)",
        "True",
        BACK,
    ),
    Mutant(
        "evaluated alone: leaves of the tree before the move only",
        SWEEP,
        "node_of_change",
        "n_leaves(new) < kept.fewest",
        "False",
        BACK,
    ),
    Mutant(
        "changed node: a difference on the right taken for one on both sides",
        NODES,
        "changed_node",
        "i = right",
        "return i",
        f"{UNIT} -k node_below",
    ),
    Mutant(
        "changed node: rules of a subtree not compared",
        NODES,
        "same_subtree",
        "not same_rule(tree, i + k, other, j + k)",
        "False",
        f"{UNIT} -k node_below",
    ),
    Mutant(
        "sweep: weight of all leaves kept after a change of some",
        SWEEP,
        "sweep_labels",
        "is_weighed = False",
        "",
        POSTERIOR,
        2,
        2,
    ),
    Mutant(
        "sweep: routing of another tree kept",
        SWEEP,
        "sweep_labels",
        "kept.is_kept[0] = 0",
        "",
        POSTERIOR,
        2,
        2,
    ),
]
