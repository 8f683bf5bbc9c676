"""Terms of CGM's and WU's ratios."""

from __future__ import annotations

from .harness import Mutant

CGM = "tests/statistical/test_cgm.py"
WU = "tests/statistical/test_wu.py"
MOVES = "core/hard/moves.py"
LEAVES = "core/hard/leaves.py"
RESTRUCTURE = "core/hard/restructure.py"
ACCEPT = "log_ratio += log_prior - state.log_prior[0]"
WIDTHS = "math.log(count) + math.log(high - low)"
PINBALL_OF_ANCESTORS = """
if move == GROW or move == PRUNE:
    for sign, shape in ((-1.0, new_tree), (1.0, tree)):
        for i in range(shape.n_nodes[0]):
            if shape.size[i] > 1:
                n = (shape.size[i] + 1) // 2 - 2
                k = (shape.size[i + 1] + 1) // 2 - 1
                choose = model.shape.log_factorial[n] - model.shape.log_factorial[k]
                choose -= model.shape.log_factorial[n - k]
                choose += k * model.shape.log_p + (n - k) * model.shape.log_not_p
                log_ratio += sign * choose
"""

MUTANTS = [
    Mutant(
        "CGM grow: number of open leaves left out of the way forth",
        MOVES,
        "propose_grow",
        "log_density - math.log(n_open)",
        "log_density",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM grow: number of prunable nodes left out of the way back",
        MOVES,
        "propose_grow",
        "-math.log(count_kind(tree, PRUNABLE))",
        "0.0",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM grow: density of the drawn rule left out",
        MOVES,
        "propose_grow",
        "log_density - math.log(n_open)",
        "-math.log(n_open)",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM prune: number of open leaves left out of the way back",
        MOVES,
        "propose_prune",
        "log_density - math.log(count_open(tree, cells))",
        "log_density",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM prune: density of the rule left out of the way back",
        MOVES,
        "propose_prune",
        "log_density - math.log(count_open(tree, cells))",
        "-math.log(count_open(tree, cells))",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM: a leaf that cannot split stops with 1 - p_split instead of 1",
        "core/hard/shapes.py",
        "log_tree_prior",
        "cells.can_split[i] and not shape.pinball",
        "not shape.pinball",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM change: prior of the rules and stops below left out",
        MOVES,
        "accept_or_refuse",
        ACCEPT,
        "log_ratio = 0.0 if move == CHANGE else log_ratio + log_prior - state.log_prior[0]",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM change: density of drawing the node's own rule left out",
        MOVES,
        "propose_change",
        "log_back - log_forth",
        "0.0",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "change, swap: a rule that is no longer available is not refused",
        MOVES,
        "settle",
        "if log_rule == -np.inf:\n    return False",
        "if log_rule == -np.inf:\n    log_rule = 0.0",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM change: likelihood left out",
        MOVES,
        "accept_or_refuse",
        "move != RESTRUCTURE",
        "move != RESTRUCTURE and move != CHANGE",
        f"{CGM} -k test_exact_posterior",
    ),
    Mutant(
        "CGM swap: prior of the parent's new rule left out",
        MOVES,
        "accept_or_refuse",
        ACCEPT,
        f"{ACCEPT}\nif move == SWAP:\n    log_ratio -= new_cells.log_rule[at] - cells.log_rule[at]",
        f"{CGM} -k test_exact_prior",
    ),
    Mutant(
        "CGM swap: likelihood left out",
        MOVES,
        "accept_or_refuse",
        "move != RESTRUCTURE",
        "move != RESTRUCTURE and move != SWAP",
        f"{CGM} -k test_exact_posterior",
    ),
    Mutant(
        "WU grow: density of the drawn rule without its normalisation",
        "core/hard/rules.py",
        "draw_rule_at",
        "return f, threshold, NO_LEVELS, log_feature - math.log(mass), log_prior",
        "return f, threshold, NO_LEVELS, log_feature, log_prior",
        f"{WU} -k test_exact_prior",
    ),
    Mutant(
        "WU grow, prune: the ancestors' pinball left out",
        MOVES,
        "accept_or_refuse",
        ACCEPT,
        ACCEPT + PINBALL_OF_ANCESTORS,
        f"{WU} -k test_exact_prior",
    ),
    Mutant(
        "WU: Poisson prior of the number of leaves left out",
        "core/hard/shapes.py",
        "log_tree_prior",
        "shape.log_leaves[leaves]",
        "0.0",
        f"{WU} -k test_exact_prior",
    ),
    Mutant(
        "WU change: density of drawing the node's own rule left out",
        MOVES,
        "propose_change",
        "log_back - log_forth",
        "0.0",
        f"{WU} -k test_exact_prior",
    ),
    Mutant(
        "WU swap: likelihood left out",
        MOVES,
        "accept_or_refuse",
        "move != RESTRUCTURE",
        "move != RESTRUCTURE and move != SWAP",
        f"{WU} -k test_exact_posterior",
    ),
    Mutant(
        "WU restructure: numbers of choices left out",
        RESTRUCTURE,
        "restructure",
        WIDTHS,
        "math.log(high - low)",
        f"{WU} -k test_restructure_alone",
    ),
    Mutant(
        "WU restructure: widths of the intervals left out",
        RESTRUCTURE,
        "restructure",
        WIDTHS,
        "math.log(count)",
        f"{WU} -k test_restructure_alone",
    ),
    Mutant(
        "WU restructure: density of the way back left out",
        RESTRUCTURE,
        "restructure",
        "log_back - log_forth",
        "-log_forth",
        f"{WU} -k test_restructure_alone",
    ),
    Mutant(
        "WU restructure: prior ratio (pinball and rules) left out",
        MOVES,
        "accept_or_refuse",
        ACCEPT,
        "log_ratio += 0.0 if move == RESTRUCTURE else log_prior - state.log_prior[0]",
        f"{WU} -k test_exact_prior",
    ),
    Mutant(
        "classes: the constant of each leaf left out",
        LEAVES,
        "make_leaf_model",
        "dirichlet_constant(alpha)",
        "0.0",
        f"{CGM} -k test_exact_posterior",
    ),
    Mutant(
        "regression: the prior's rows left out of a leaf's marginal",
        LEAVES,
        "make_leaf_model",
        "0.5 * math.log(count)",
        "0.0",
        f"{CGM} -k test_exact_posterior",
    ),
    Mutant(
        "regression: leaf means drawn without their prior",
        LEAVES,
        "draw_mean_given",
        "(leaf_model.prior_rows * leaf_model.mean + stats[1]) / weight",
        "stats[1] / max(stats[0], 1.0)",
        f"{CGM} -k test_exact_posterior",
    ),
]
