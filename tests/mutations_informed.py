"""Terms of the informed moves to break on purpose; data for ``mutations``, which runs them.

Most are judged by tests that call one move at a time, and these run uncompiled. Those of whole
chains show that the statistical tests would see it too.
"""

from __future__ import annotations

MOVES = "core/informed.py"
RULES = "core/proposed_rules.py"
SCAN = "core/scan.py"
BINS = "core/scan_bins.py"
BITS = "core/scan_bits.py"
ROTATION = "core/rotation.py"
NOISE = "core/noise.py"
SWEEP = "core/exploring.py"

RATIO = "tests/test_informed.py -k test_ratio"
CHOICES = "tests/test_informed.py -k test_choices"
BINNED = "tests/test_bins.py -k test_binned_ratio[hmc-df-0.1-0]"
BY_BITS = "tests/test_bits.py -k test_bits_and_rows"
DRAWS = "tests/test_informed.py -k test_rules_are_drawn"
UNIT = "tests/test_informed.py"
SIGMA = "tests/test_noise.py"
POSTERIOR = "tests/test_informed_posterior.py -k test_posterior"
PRIOR = "tests/test_informed_posterior.py -k test_prior"
RECOVERY = "tests/test_prior_recovery.py"

GROW = "return math.log(leaves) - math.log(count_prunable(new)) - log_rule"
PRUNE = "return log_rule + math.log(candidates) - math.log(leaves - 1)"
INSERT = "return math.log(2.0 * (leaves - 1)) - math.log(count_deletable(new)) - log_rule"
DELETE = "return log_rule + math.log(candidates) - math.log(2.0 * (leaves - 2))"
CHANGE = "    put_rule(work, new, node)\n    return log_back - log_forth\n"
REGROWN = "total += math.log1p(-split) if tree.size[i] == 1 else math.log(split) + log_rule"
REGROW = "log_forth += math.log(split) + draw_weighed(model, work, MODE_COLUMNS, rng)"
TRANSPOSE = "return log_back - log_forth + math.log(candidates) - math.log(count_transposable(new))"
RELOCATE = "return log_back - log_forth + math.log(candidates) - math.log(count_removable(new))"
CELL = "share = (1.0 - PRIOR_SHARE) * work.weight[c] / total + PRIOR_SHARE * width / widths"
COLUMN = "work.share[f] = (1.0 - PRIOR_SHARE) * by_score + PRIOR_SHARE * by_prior"

# (term removed, file, text, what replaces it, tests that must fail)
MUTANTS: list[tuple[str, str, str, str, str]] = [
    # ------------------------------------------------------------------ grow, prune
    ("grow: number of leaves", MOVES, GROW, GROW.replace("math.log(leaves) -", "-"), RATIO),
    (
        "grow: number of nodes to prune",
        MOVES,
        GROW,
        GROW.replace(" - math.log(count_prunable(new))", ""),
        RATIO,
    ),
    ("grow: density of the rule", MOVES, GROW, GROW.replace(" - log_rule", ""), RATIO),
    ("prune: density of the rule", MOVES, PRUNE, PRUNE.replace("log_rule + ", ""), RATIO),
    (
        "prune: number of nodes to prune",
        MOVES,
        PRUNE,
        PRUNE.replace(" + math.log(candidates)", ""),
        RATIO,
    ),
    (
        "prune: number of leaves",
        MOVES,
        PRUNE,
        PRUNE.replace(" - math.log(leaves - 1)", ""),
        RATIO,
    ),
    # ------------------------------------------------------------------ insert, delete
    ("insert: coin for the side", MOVES, INSERT, INSERT.replace("2.0 * ", ""), RATIO),
    ("insert: number of nodes", MOVES, INSERT, INSERT.replace(" * (leaves - 1)", ""), RATIO),
    (
        "insert: number of splits to delete",
        MOVES,
        INSERT,
        INSERT.replace(" - math.log(count_deletable(new))", ""),
        RATIO,
    ),
    ("insert: density of the rule", MOVES, INSERT, INSERT.replace(" - log_rule", ""), RATIO),
    ("delete: coin for the side", MOVES, DELETE, DELETE.replace("2.0 * ", ""), RATIO),
    ("delete: number of nodes", MOVES, DELETE, DELETE.replace(" * (leaves - 2)", ""), RATIO),
    (
        "delete: number of splits to delete",
        MOVES,
        DELETE,
        DELETE.replace(" + math.log(candidates)", ""),
        RATIO,
    ),
    ("delete: density of the rule", MOVES, DELETE, DELETE.replace("log_rule + ", ""), RATIO),
    (
        "insert: a coin that is not fair",
        MOVES,
        "leaf_left = rng.random() < 0.5",
        "leaf_left = rng.random() < 0.7",
        CHOICES,
    ),
    # ------------------------------------------------------------------ change
    ("change: density back", MOVES, CHANGE, CHANGE.replace("log_back - ", "-"), RATIO),
    ("change: density forth", MOVES, CHANGE, CHANGE.replace(" - log_forth", ""), RATIO),
    # ------------------------------------------------------------------ regrow
    ("regrow: stops back", MOVES, REGROWN, REGROWN.replace("math.log1p(-split)", "0.0"), RATIO),
    ("regrow: splits back", MOVES, REGROWN, REGROWN.replace("math.log(split) + ", ""), RATIO),
    ("regrow: rules back", MOVES, REGROWN, REGROWN.replace(" + log_rule", ""), RATIO),
    (
        "regrow: stops forth",
        MOVES,
        "            log_forth += math.log1p(-split)",
        "            log_forth += 0.0",
        RATIO,
    ),
    ("regrow: splits forth", MOVES, REGROW, REGROW.replace("math.log(split) + ", ""), RATIO),
    (
        "regrow: rules forth",
        MOVES,
        REGROW,
        REGROW.replace("+= math.log(split) + ", "+= math.log(split) + 0.0 * "),
        RATIO,
    ),
    (
        "regrow: pick of the node back",
        MOVES,
        "    log_back -= math.log(new.size[node] * sum_of_picks(new))\n",
        "",
        RATIO,
    ),
    (
        "regrow: pick of the node forth",
        MOVES,
        "    log_forth -= math.log(tree.size[node] * all_forth)\n",
        "",
        RATIO,
    ),
    (
        "regrow: splits by the prior, but counted as by the scan",
        MOVES,
        "        if rng.random() < split:",
        "        if rng.random() < split_probability(model.prior, new.depth[i]):",
        f"{UNIT} -k test_regrow",
    ),
    # ------------------------------------------------------------------ rotate
    (
        "rotate: a ratio of proposals where labels cancel",
        MOVES,
        "return 0.0 if rotate(tree, new, rng)",
        "return math.log(2.0) if rotate(tree, new, rng)",
        RATIO,
    ),
    (
        "rotate: the left child rises more often than the right",
        ROTATION,
        "left_rises = rng.random() < 0.5",
        "left_rises = rng.random() < 0.8",
        CHOICES,
    ),
    (
        "rotate: some nodes more often than others",
        ROTATION,
        "1 + int(rng.random() * pairs)",
        "1 + int(rng.random() ** 2 * pairs)",
        CHOICES,
    ),
    (
        "rotate: what moves up lands on the other side",
        ROTATION,
        "(stays, sibling) if on_left else (sibling, stays)",
        "(sibling, stays) if on_left else (stays, sibling)",
        RATIO,
    ),
    (
        "rotate: the node that comes down loses its rule",
        ROTATION,
        "    copy_rule(tree, parent, new, lower)\n",
        "",
        RATIO,
    ),
    # ------------------------------------------------------------------ rows as bits
    (
        "bits: rows at the threshold go right",
        BITS,
        "data.value[f, level] <= threshold",
        "data.value[f, level] < threshold",
        BY_BITS,
    ),
    (
        "bits: rows that leave the right side are counted there",
        BITS,
        "                    members[v] -= up_to[v]\n",
        "                    members[v] -= 0\n",
        BY_BITS,
    ),
    (
        "bits: counts run on from column to column",
        BITS,
        """        for f in range(data.bits.first_value.shape[0]):
            so_far = np.int64(0)
""",
        """        so_far = np.int64(0)
        for f in range(data.bits.first_value.shape[0]):
""",
        BY_BITS,
    ),
    (
        "bits: only the first word counts",
        BITS,
        "for w in range(of_value.shape[0]):",
        "for w in range(1):",
        BY_BITS,
    ),
    (
        "bits: sizes of leaves have no score",
        BITS,
        "bits.score[v] += score + of_size[size]",
        "bits.score[v] += score",
        BY_BITS,
    ),
    (
        "bits: too many sets, and the last of them dropped",
        BITS,
        "                        bits.n_keys[0] = -1\n",
        "                        bits.n_keys[0] = keys\n",
        BY_BITS,
    ),
    # ------------------------------------------------------------------ transpose
    ("transpose: density back", MOVES, TRANSPOSE, TRANSPOSE.replace("log_back - ", "-"), RATIO),
    ("transpose: density forth", MOVES, TRANSPOSE, TRANSPOSE.replace(" - log_forth", ""), RATIO),
    (
        "transpose: number of nodes forth",
        MOVES,
        TRANSPOSE,
        TRANSPOSE.replace(" + math.log(candidates)", ""),
        RATIO,
    ),
    (
        "transpose: number of nodes back",
        MOVES,
        TRANSPOSE,
        TRANSPOSE.replace(" - math.log(count_transposable(new))", ""),
        RATIO,
    ),
    (
        "transpose: back, the rule that rises instead of the one that is dropped",
        MOVES,
        "log_back = log_one_rule(model, work, tree, dropped, mode)",
        "log_back = log_one_rule(model, work, tree, riser, mode)",
        RATIO,
    ),
    (
        "transpose: coin of the riser not fair",
        MOVES,
        "left_rises = rng.random() < 0.5",
        "left_rises = rng.random() < 0.7",
        CHOICES,
    ),
    (
        "transpose: coin of the heir not fair",
        MOVES,
        "left_inherits = rng.random() < 0.5",
        "left_inherits = rng.random() < 0.7",
        CHOICES,
    ),
    # ------------------------------------------------------------------ swap
    (
        "swap: only the child's rule moves",
        MOVES,
        "    copy_rule(tree, parent, new, child)\n",
        "",
        RATIO,
    ),
    (
        "swap: the first child always",
        MOVES,
        "child = nth_internal(tree, 1 + pick(pairs, rng))",
        "child = nth_internal(tree, 1 + 0 * pick(pairs, rng))",
        CHOICES,
    ),
    # ------------------------------------------------------------------ relocate
    ("relocate: density back", MOVES, RELOCATE, RELOCATE.replace("log_back - ", "-"), RATIO),
    ("relocate: density forth", MOVES, RELOCATE, RELOCATE.replace(" - log_forth", ""), RATIO),
    (
        "relocate: number of splits forth",
        MOVES,
        RELOCATE,
        RELOCATE.replace(" + math.log(candidates)", ""),
        RATIO,
    ),
    (
        "relocate: number of splits back",
        MOVES,
        RELOCATE,
        RELOCATE.replace(" - math.log(count_removable(new))", ""),
        RATIO,
    ),
    (
        "relocate: coin for the side back",
        MOVES,
        "log_back = remove_rule(model, work, new, node, mode) - math.log(2.0)",
        "log_back = remove_rule(model, work, new, node, mode)",
        RATIO,
    ),
    (
        "relocate: coin for the side forth",
        MOVES,
        "log_forth = insert_rule(model, work, new, target, mode, rng) - math.log(2.0)",
        "log_forth = insert_rule(model, work, new, target, mode, rng)",
        RATIO,
    ),
    # ------------------------------------------------------------------ densities of rules
    ("scan: share of cells by width", SCAN, CELL, "share = work.weight[c] / total", RATIO),
    ("scan: width of a cell", SCAN, "    return share / width\n", "    return share\n", RATIO),
    (
        "scan: cells by width drawn more often than counted",
        SCAN,
        "by_width = rng.random() < PRIOR_SHARE",
        "by_width = rng.random() < 4 * PRIOR_SHARE",
        DRAWS,
    ),
    ("scan: share of columns by prior", SCAN, COLUMN, "work.share[f] = by_score", RATIO),
    (
        "scan: probability of the column back",
        SCAN,
        "log_density = math.log(density) + math.log(work.share[feature])",
        "log_density = math.log(density)",
        RATIO,
    ),
    (
        "scan: probability of the column forth",
        SCAN,
        "return feature, threshold, log_density + math.log(work.share[feature])",
        "return feature, threshold, log_density",
        RATIO,
    ),
    (
        "HMC-DFI: shares in the mixture of weights",
        RULES,
        "total += work.share[f] * weights[f] ** LEAN",
        "total += weights[f] ** LEAN / p",
        RATIO,
    ),
    (
        "HMC-DFI: constant of the mixture of weights",
        RULES,
        "constant = math.lgamma(p * a + LEAN) - math.lgamma(p * a) + math.lgamma(a)",
        "constant = 0.0",
        f"{UNIT} -k add_up",
    ),
    (
        "HMC-DFI: mixture of weights back",
        RULES,
        "        log_density += log_leaning(model, work, tree.weights[node])\n",
        "        log_density += 0.0\n",
        RATIO,
    ),
    (
        "HMC-DFI: mixture of weights forth",
        RULES,
        "        log_density += log_leaning(model, work, work.weights)\n",
        "        log_density += 0.0\n",
        RATIO,
    ),
    (
        "HMC-DFI: prior of weights forth",
        RULES,
        "log_density = log_weights(model.prior, work.weights)",
        "log_density = 0.0",
        RATIO,
    ),
    (
        "HMC-DFI: density of the threshold back",
        RULES,
        "    log_density += log_projected(model, work, tree.weights[node], tree.threshold[node])\n",
        "",
        RATIO,
    ),
    (
        "HMC-DFI: density of the threshold forth",
        RULES,
        "return log_density + math.log(density)",
        "return log_density",
        RATIO,
    ),
    # ------------------------------------------------------------------ bins
    (
        "bins: rows not spread over their bin",
        BINS,
        "work.bins.share[j] = (at - begin) / (edge[b] - begin) if inside else 0.0",
        "work.bins.share[j] = 0.0",
        BINNED,
    ),
    (
        "bins: rows before the window forgotten",
        BINS,
        "bins_work.base[k] = bins_work.counts[(first - 1) * width + k]",
        "bins_work.base[k] = 0.0",
        BINNED,
    ),
    (
        "bins: no close look on the way back of a threshold",
        RULES,
        "    work.bins.close[tree.feature[node]] = 1\n    return log_threshold_density",
        "    work.bins.close[tree.feature[node]] = 0\n    return log_threshold_density",
        BINNED,
    ),
    (
        "bins: quantiles of one bin at their sum instead of their mean",
        BINS,
        "    work.bins.share[0] = total / n_quantiles\n",
        "    work.bins.share[0] = total\n",
        "tests/test_bins.py -k test_binned_ratio[hmc-dfi-0.1-0]",
    ),
    (
        "bins: sums of y forgotten on the left where both sides have leaves",
        BINS,
        "            counts[other + 1] += y[row]\n    else:",
        "    else:",
        "tests/test_bins.py -k test_binned_ratio[hmc-df-0.0-0]",
    ),
    (
        "bins: the close look does not count for a rule on the way back",
        SCAN,
        "    _, _, _, work.share[f] = _sweep(model.calls.columns, arguments)\n",
        "    _, _, _, found = _sweep(model.calls.columns, arguments)\n"
        "    if not closely:\n        work.share[f] = found\n",
        BINNED,
    ),
    # ------------------------------------------------------------------ sigma and means
    (
        "sigma: height of the slice not drawn",
        NOISE,
        "height += math.log(max(rng.random(), 1e-300))",
        "height += math.log(0.5)",
        SIGMA,
    ),
    (
        "sigma: Jacobian of log sigma",
        NOISE,
        "log_density = log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale) + log_sigma",
        "log_density = log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale)",
        SIGMA,
    ),
    (
        "sigma: prior",
        NOISE,
        "log_density = log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale) + log_sigma",
        "log_density = log_sigma",
        SIGMA,
    ),
    (
        "sigma: power of the likelihood",
        NOISE,
        "log_density += model.power[0] * log_like",
        "log_density += log_like",
        SIGMA,
    ),
    (
        "sigma: the interval shrinks on the wrong side",
        NOISE,
        "        if proposal < u:\n",
        "        if proposal > u:\n",
        SIGMA,
    ),
    (
        "sigma: prior of the means left out",
        NOISE,
        "        work.gram[a, a] += prior_precision\n",
        "",
        SIGMA,
    ),
    (
        "means: centre",
        SWEEP,
        "            draws[k] += work.table[k, 0]",
        "            draws[k] += 0.0",
        SIGMA,
    ),
    (
        "means: covariance",
        SWEEP,
        "        solve_upper(work.gram, leaves, draws)\n",
        "",
        SIGMA,
    ),
    # ------------------------------------------------------------------ whole chains
    (
        "sweep: a sweep's GROW is not a fair coin between grow and prune",
        MOVES,
        "if entry in (GROW, INSERT) and rng.random() < 0.5:",
        "if entry in (GROW, INSERT) and rng.random() < 0.3:",
        f"{PRIOR} 3-hmc-df-0.1-grow",
    ),
    (
        "sweep: log posterior not renewed after an accepted move",
        SWEEP,
        "current, log_like = proposed, new_like",
        "log_like = new_like",
        f"{POSTERIOR} hmc-df-0.1-grow",
    ),
    (
        "sweep: explicit means not drawn anew after the moves",
        SWEEP,
        "                tree.value[i] = draws[k]\n",
        "                tree.value[i] = tree.value[i]\n",
        f"{RECOVERY} -k 0-hmc-df-0.0-informed-explicit-1",
    ),
    (
        "grow in chains: density of the rule",
        MOVES,
        GROW,
        GROW.replace(" - log_rule", ""),
        f"{PRIOR} 3-hmc-df-0.1-grow",
    ),
    (
        "prune in chains: number of nodes to prune",
        MOVES,
        PRUNE,
        PRUNE.replace(" + math.log(candidates)", ""),
        f"{PRIOR} 3-hmc-df-0.1-grow",
    ),
    (
        "insert in chains: coin for the side",
        MOVES,
        INSERT,
        INSERT.replace("2.0 * ", ""),
        f"{PRIOR} hmc-dfi-0.0-insert",
    ),
    (
        "regrow in chains: pick of the node back",
        MOVES,
        "    log_back -= math.log(new.size[node] * sum_of_picks(new))\n",
        "",
        f"{PRIOR} hmc-df-0.0-regrow",
    ),
    (
        "change in chains: density forth",
        MOVES,
        CHANGE,
        CHANGE.replace(" - log_forth", ""),
        f"{POSTERIOR} three-classes-hmc-df-0.1-change",
    ),
    (
        "relocate in chains: density back",
        MOVES,
        RELOCATE,
        RELOCATE.replace("log_back - ", "-"),
        f"{POSTERIOR} two-classes-hmc-df-0.1-relocate",
    ),
    (
        "relocate in chains: density forth",
        MOVES,
        RELOCATE,
        RELOCATE.replace(" - log_forth", ""),
        f"{POSTERIOR} two-classes-hmc-df-0.1-relocate",
    ),
    (
        "swap in chains: a ratio of proposals where labels cancel",
        MOVES,
        "return 0.0 if swap_rules(tree, new, rng)",
        "return math.log(3.0) if swap_rules(tree, new, rng)",
        f"{POSTERIOR} two-classes-hmc-df-0.0-swap",
    ),
    (
        "rotate in chains: a ratio of proposals where labels cancel",
        MOVES,
        "return 0.0 if rotate(tree, new, rng)",
        "return math.log(3.0) if rotate(tree, new, rng)",
        f"{POSTERIOR} three-classes-hmc-df-0.0-rotate",
    ),
]
