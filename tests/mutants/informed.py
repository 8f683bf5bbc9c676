"""Terms of the informed moves, and of what goes with them.

Most are judged by tests that call one move at a time, and these run uncompiled. Those of whole
chains show that the statistical tests would see it too.
"""

from __future__ import annotations

from .harness import Mutant

GROW_PRUNE = "core/moves/grow_prune.py"
INSERT_DELETE = "core/moves/insert_delete.py"
CHANGE = "core/moves/change.py"
REGROW = "core/moves/regrow.py"
ROTATE = "core/moves/rotate.py"
TRANSPOSE = "core/moves/transpose.py"
SWAP = "core/moves/swap.py"
RELOCATE = "core/moves/relocate.py"
PROPOSALS = "core/scan/proposals.py"
SCAN = "core/scan/scan.py"
CELLS = "core/scan/cells.py"
BITS = "core/scan/by_bits.py"
BINS = "core/scan/by_bins.py"
COLLAPSED = "core/soft/collapsed.py"
NOISE = "core/soft/noise.py"
SWEEP = "core/soft/sweep.py"
TARGET = "core/soft/target.py"

RATIO = "tests/core/moves/test_informed.py -k test_ratio"
CHOICES = "tests/core/moves/test_informed.py -k test_choices"
BINNED = "tests/core/scan/test_bins.py -k test_binned_ratio[hmc-df-0.1-0]"
BY_BITS = "tests/core/scan/test_bits.py -k test_bits_and_rows"
DRAWS = "tests/core/moves/test_informed.py -k test_rules_are_drawn"
UNIT = "tests/core/moves/test_informed.py"
SIGMA = "tests/core/soft/test_noise.py"
POSTERIOR = "tests/statistical/test_informed_posterior.py -k test_posterior"
PRIOR = "tests/statistical/test_informed_posterior.py -k test_prior"
RECOVERY = "tests/statistical/test_prior_recovery.py"

GROWN = "math.log(leaves) - math.log(count_kind(new, PRUNABLE)) - log_rule"
PRUNED = "log_rule + math.log(candidates) - math.log(leaves - 1)"
INSERTED = "math.log(2.0 * (leaves - 1)) - math.log(count_kind(new, DELETABLE)) - log_rule"
DELETED = "log_rule + math.log(candidates) - math.log(2.0 * (leaves - 2))"
PICK_BACK = "log_back -= math.log(new.size[node] * sum_of_picks(new))"
PRIOR_OF_SIGMA = "log_inverse_gamma(sigma, prior.sigma_shape, prior.sigma_scale)"

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
    # ------------------------------------------------------------------ rows as bits
    Mutant(
        "bits: rows at the threshold go right",
        BITS,
        "first_right",
        "value[f, level] <= threshold",
        "value[f, level] < threshold",
        BY_BITS,
    ),
    Mutant(
        "bits: rows that leave the right side are counted there",
        BITS,
        "score_values",
        "members[m, v] -= up_to[key, v]",
        "members[m, v] -= 0",
        BY_BITS,
    ),
    Mutant(
        "bits: counts run on from column to column",
        BITS,
        "add_up",
        "np.int64(0)",
        "np.int64(0) if f == 0 else so_far",
        BY_BITS,
    ),
    Mutant(
        "bits: only the first word counts",
        BITS,
        "count_values",
        "of_value.shape[0]",
        "1",
        BY_BITS,
    ),
    Mutant(
        "bits: sizes of leaves have no score",
        BITS,
        "score_values",
        "score + table[size_row, size]",
        "score",
        BY_BITS,
    ),
    Mutant(
        "bits: too many sets, and the last of them dropped",
        BITS,
        "place_bits",
        "bits.n_keys[0] = -1",
        "bits.n_keys[0] = keys",
        BY_BITS,
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
    # ------------------------------------------------------------------ densities of rules
    Mutant(
        "scan: share of cells by width",
        CELLS,
        "cell_density",
        "(1.0 - PRIOR_SHARE) * of.weight[c] / total + PRIOR_SHARE * width / widths",
        "of.weight[c] / total",
        RATIO,
    ),
    Mutant(
        "scan: width of a cell",
        CELLS,
        "cell_density",
        "share / width",
        "share",
        RATIO,
    ),
    Mutant(
        "scan: cells by width drawn more often than counted",
        CELLS,
        "draw_cell",
        "rng.random() < PRIOR_SHARE",
        "rng.random() < 4 * PRIOR_SHARE",
        DRAWS,
    ),
    Mutant(
        "scan: share of columns by prior",
        SCAN,
        "scan_columns",
        "(1.0 - PRIOR_SHARE) * by_score + PRIOR_SHARE * by_prior",
        "by_score",
        RATIO,
    ),
    Mutant(
        "scan: probability of the column back",
        SCAN,
        "scan_columns",
        "math.log(density) + math.log(share[feature])",
        "math.log(density)",
        RATIO,
    ),
    Mutant(
        "scan: probability of the column forth",
        SCAN,
        "draw_from_scan",
        "log_density + math.log(scan.cells.share[feature])",
        "log_density",
        RATIO,
    ),
    Mutant(
        "HMC-DFI: shares in the mixture of weights",
        PROPOSALS,
        "log_leaning",
        "scan.cells.share[f] * weights[f] ** LEAN",
        "weights[f] ** LEAN / p",
        RATIO,
    ),
    Mutant(
        "HMC-DFI: constant of the mixture of weights",
        PROPOSALS,
        "log_leaning",
        "math.lgamma(p * a + LEAN) - math.lgamma(p * a) + math.lgamma(a)",
        "0.0",
        f"{UNIT} -k add_up",
    ),
    Mutant(
        "HMC-DFI: mixture of weights back",
        PROPOSALS,
        "weigh_node",
        "log_leaning(scan, weights)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "HMC-DFI: mixture of weights forth",
        PROPOSALS,
        "draw_weights",
        "log_leaning(scan, weights)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "HMC-DFI: prior of weights forth",
        PROPOSALS,
        "draw_weights",
        "log_weights(scan.model.prior, weights)",
        "0.0",
        RATIO,
    ),
    Mutant(
        "HMC-DFI: density of the threshold back",
        PROPOSALS,
        "weigh_node",
        "log_density + (math.log(density) if density > 0.0 else -np.inf)",
        "log_density",
        RATIO,
    ),
    Mutant(
        "HMC-DFI: density of the threshold forth",
        PROPOSALS,
        "draw_from_weights",
        "log_density + math.log(density)",
        "log_density",
        RATIO,
    ),
    # ------------------------------------------------------------------ bins
    Mutant(
        "bins: rows not spread over their bin",
        BINS,
        "find_quantiles",
        "(at - begin) / (edge[b] - begin) if inside else 0.0",
        "0.0",
        BINNED,
    ),
    Mutant(
        "bins: rows before the window forgotten",
        BINS,
        "binned_cells",
        "bins_work.counts[(first - 1) * width + k]",
        "0.0",
        BINNED,
    ),
    Mutant(
        "bins: no close look on the way back of a threshold",
        PROPOSALS,
        "log_threshold_by_scan",
        "scanner.scan.bins.close[f] = 1",
        "scanner.scan.bins.close[f] = 0",
        BINNED,
    ),
    Mutant(
        "bins: quantiles of one bin at their sum instead of their mean",
        BINS,
        "find_quantiles",
        "total / n_quantiles",
        "total",
        "tests/core/scan/test_bins.py -k test_binned_ratio[hmc-dfi-0.1-0]",
    ),
    Mutant(
        "bins: sums of y forgotten on the left where both sides have leaves",
        BINS,
        "count_values",
        "counts[other + 1] += y[row]",
        "",
        "tests/core/scan/test_bins.py -k test_binned_ratio[hmc-df-0.0-0]",
    ),
    Mutant(
        "bins: the close look does not count for a rule on the way back",
        "core/scan/parts.py",
        "sweep_parts",
        """
        _, _, _, share[f] = sweep_binned_columns(
            scan, f, f + 1, scan.task[NODE], scan.task_threshold[0], scan.cells.weights
        )
        """,
        """
        _, _, _, found = sweep_binned_columns(
            scan, f, f + 1, scan.task[NODE], scan.task_threshold[0], scan.cells.weights
        )
        if scan.task[CLOSELY] != 1:
            share[f] = found
        """,
        BINNED,
    ),
    # ------------------------------------------------------------------ a power inside an integral
    Mutant(
        "explicit means: power outside of the integral",
        TARGET,
        "integrate_means",
        "tree.sigma[0] = sigma / math.sqrt(power)",
        "",
        SIGMA,
    ),
    Mutant(
        "explicit means: constant of a power of a normal",
        TARGET,
        "integrate_means",
        "log_like + log_power_of_normal(model.data.n_rows, sigma, power)",
        "log_like",
        SIGMA,
    ),
    Mutant(
        "explicit means: the same in the update of sigma",
        NOISE,
        "log_density_of_noise",
        "log_like += log_power_of_normal(n, sigma, power)",
        "",
        SIGMA,
    ),
    Mutant(
        "explicit means: noise of the power in the update of sigma",
        NOISE,
        "log_density_of_noise",
        "sigma / math.sqrt(power) if inside else sigma",
        "sigma",
        SIGMA,
    ),
    # ------------------------------------------------------------------ sigma and means
    Mutant(
        "sigma: height of the slice not drawn",
        NOISE,
        "update_noise",
        "math.log(max(rng.random(), 1e-300))",
        "math.log(0.5)",
        SIGMA,
    ),
    Mutant(
        "sigma: Jacobian of log sigma",
        NOISE,
        "log_density_of_noise",
        f"{PRIOR_OF_SIGMA} + log_sigma",
        PRIOR_OF_SIGMA,
        SIGMA,
    ),
    Mutant(
        "sigma: prior",
        NOISE,
        "log_density_of_noise",
        f"{PRIOR_OF_SIGMA} + log_sigma",
        "log_sigma",
        SIGMA,
    ),
    Mutant(
        "sigma: power of the likelihood",
        NOISE,
        "log_density_of_noise",
        "tempered(power, log_like)",
        "0.0 if power == 0.0 else log_like",
        SIGMA,
    ),
    Mutant(
        "sigma: the interval shrinks on the wrong side",
        NOISE,
        "update_noise",
        "proposal < u",
        "proposal > u",
        SIGMA,
    ),
    Mutant(
        "sigma: prior of the means left out",
        COLLAPSED,
        "log_marginal",
        "gram[a, a] += prior_precision",
        "",
        SIGMA,
    ),
    Mutant(
        "means: centre",
        COLLAPSED,
        "draw_means",
        "work.mean[k]",
        "0.0",
        SIGMA,
    ),
    Mutant(
        "means: covariance",
        COLLAPSED,
        "draw_means",
        "solve_upper(work.gram, leaves, draws)",
        "",
        SIGMA,
    ),
    # ------------------------------------------------------------------ whole chains
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
        "informed_sweep",
        "current, log_like = proposed, new_like",
        "log_like = new_like",
        f"{POSTERIOR} hmc-df-0.1-grow",
    ),
    Mutant(
        "sweep: explicit means not drawn anew after the moves",
        SWEEP,
        "informed_sweep",
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
