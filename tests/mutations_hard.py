"""Terms of CGM's and WU's ratios to break on purpose; data for ``mutations``, which runs them."""

from __future__ import annotations

CGM = "tests/test_cgm.py"
WU = "tests/test_wu.py"
MOVES = "core/hard_moves.py"
ACCEPT = "    log_ratio += log_prior - state.log_prior[0]\n"
PINBALL_OF_ANCESTORS = """\
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

# (term removed, file, text, what replaces it, tests that must fail)
MUTANTS: list[tuple[str, str, str, str, str]] = [
    (
        "CGM grow: number of open leaves left out of the way forth",
        MOVES,
        "log_forth = log_density - math.log(n_open)",
        "log_forth = log_density",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM grow: number of prunable nodes left out of the way back",
        MOVES,
        "log_back = -math.log(count_prunable(tree))",
        "log_back = 0.0",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM grow: density of the drawn rule left out",
        MOVES,
        "log_forth = log_density - math.log(n_open)",
        "log_forth = -math.log(n_open)",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM prune: number of open leaves left out of the way back",
        MOVES,
        "log_back = log_density - math.log(count_open(tree, cells))",
        "log_back = log_density",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM prune: density of the rule left out of the way back",
        MOVES,
        "log_back = log_density - math.log(count_open(tree, cells))",
        "log_back = -math.log(count_open(tree, cells))",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM: a leaf that cannot split stops with 1 - p_split instead of 1",
        "core/shapes.py",
        "elif cells.can_split[i] and not shape.pinball:",
        "elif not shape.pinball:",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM change: prior of the rules and stops below left out",
        MOVES,
        ACCEPT,
        "    log_ratio = 0.0 if move == CHANGE else log_ratio + log_prior - state.log_prior[0]\n",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM change: density of drawing the node's own rule left out",
        MOVES,
        "    return log_back - log_forth, node, log_rule\n",
        "    return 0.0, node, log_rule\n",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "change, swap: a rule that is no longer available is not refused",
        MOVES,
        "            if log_rule == -np.inf:\n                return False\n",
        "            if log_rule == -np.inf:\n                log_rule = 0.0\n",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM change: likelihood left out",
        MOVES,
        "    if move != RESTRUCTURE:",
        "    if move != RESTRUCTURE and move != CHANGE:",
        f"{CGM} -k test_exact_posterior",
    ),
    (
        "CGM swap: prior of the parent's new rule left out",
        MOVES,
        ACCEPT,
        ACCEPT + "    if move == SWAP:\n"
        "        log_ratio -= new_cells.log_rule[at] - cells.log_rule[at]\n",
        f"{CGM} -k test_exact_prior",
    ),
    (
        "CGM swap: likelihood left out",
        MOVES,
        "    if move != RESTRUCTURE:",
        "    if move != RESTRUCTURE and move != SWAP:",
        f"{CGM} -k test_exact_posterior",
    ),
    (
        "WU grow: density of the drawn rule without its normalisation",
        "core/hard_rules.py",
        "return f, threshold, log_feature - math.log(mass), log_prior",
        "return f, threshold, log_feature, log_prior",
        f"{WU} -k test_exact_prior",
    ),
    (
        "WU grow, prune: the ancestors' pinball left out",
        MOVES,
        ACCEPT,
        ACCEPT + PINBALL_OF_ANCESTORS,
        f"{WU} -k test_exact_prior",
    ),
    (
        "WU: Poisson prior of the number of leaves left out",
        "core/shapes.py",
        "total = shape.log_leaves[leaves]",
        "total = 0.0",
        f"{WU} -k test_exact_prior",
    ),
    (
        "WU change: density of drawing the node's own rule left out",
        MOVES,
        "    return log_back - log_forth, node, log_rule\n",
        "    return 0.0, node, log_rule\n",
        f"{WU} -k test_exact_prior",
    ),
    (
        "WU swap: likelihood left out",
        MOVES,
        "    if move != RESTRUCTURE:",
        "    if move != RESTRUCTURE and move != SWAP:",
        f"{WU} -k test_exact_posterior",
    ),
    (
        "WU restructure: numbers of choices left out",
        "core/restructure.py",
        "        log_forth -= math.log(count) + math.log(high - low)\n",
        "        log_forth -= math.log(high - low)\n",
        f"{WU} -k test_restructure_alone",
    ),
    (
        "WU restructure: widths of the intervals left out",
        "core/restructure.py",
        "        log_forth -= math.log(count) + math.log(high - low)\n",
        "        log_forth -= math.log(count)\n",
        f"{WU} -k test_restructure_alone",
    ),
    (
        "WU restructure: density of the way back left out",
        "core/restructure.py",
        "    return log_back - log_forth\n",
        "    return -log_forth\n",
        f"{WU} -k test_restructure_alone",
    ),
    (
        "WU restructure: prior ratio (pinball and rules) left out",
        MOVES,
        ACCEPT,
        "    log_ratio += 0.0 if move == RESTRUCTURE else log_prior - state.log_prior[0]\n",
        f"{WU} -k test_exact_prior",
    ),
    (
        "classes: the constant of each leaf left out",
        "core/leaves.py",
        "        constant = math.lgamma(alpha.sum()) - sum(math.lgamma(a) for a in alpha)\n",
        "        constant = 0.0\n",
        f"{CGM} -k test_exact_posterior",
    ),
    (
        "regression: the prior's rows left out of a leaf's marginal",
        "core/leaves.py",
        "        constant = 0.5 * math.log(count)\n",
        "        constant = 0.0\n",
        f"{CGM} -k test_exact_posterior",
    ),
    (
        "regression: leaf means drawn without their prior",
        "core/leaves.py",
        "mean = (leaf_model.worth * leaf_model.mean + stats[1]) / weight",
        "mean = stats[1] / max(stats[0], 1.0)",
        f"{CGM} -k test_exact_posterior",
    ),
]
