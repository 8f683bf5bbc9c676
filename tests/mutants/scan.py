"""Terms of the scans that informed moves draw their rules by."""

from __future__ import annotations

from .harness import Mutant

PROPOSALS = "core/scan/proposals.py"
SCAN = "core/scan/scan.py"
CELLS = "core/scan/cells.py"
BITS = "core/scan/by_bits.py"
BINS = "core/scan/by_bins.py"

RATIO = "tests/core/moves/test_informed.py -k test_ratio"
BINNED = "tests/core/scan/test_bins.py -k test_binned_ratio[hmc-df-0.1-0]"
BY_BITS = "tests/core/scan/test_bits.py -k test_bits_and_rows"
DRAWS = "tests/core/moves/test_informed.py -k test_rules_are_drawn"
UNIT = "tests/core/moves/test_informed.py"

HARD_CUTS = "tests/core/moves/test_informed.py -k hard_cuts_have"

MUTANTS = [
    Mutant(
        "hard cuts: rows of a class stay on the right",
        "core/scan/sweep.py",
        "sweep_hard_groups",
        "members[0, right, m] = less",
        "",
        HARD_CUTS,
    ),
    Mutant(
        "hard cuts: sum of a leaf on the right",
        "core/scan/sweep.py",
        "sweep_hard_groups",
        "sums[0, right, 0] = y_right",
        "",
        HARD_CUTS,
    ),
    Mutant(
        "hard cuts: no cell behind the last value",
        "core/scan/sweep.py",
        "sweep_hard_groups",
        "before < 1.0 and everywhere",
        "False",
        HARD_CUTS,
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
        "log_in_column_by_scan",
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
        "counts[other + 1] += weight * y[row]",
        "",
        "tests/core/scan/test_bins.py -k test_binned_ratio[hmc-df-0.0-0]",
    ),
    Mutant(
        "bins: the close look does not count for a rule on the way back",
        "core/scan/parts.py",
        "sweep_parts",
        """
        _, _, _, share[f] = sweep_binned_columns(
            scan, f, f + 1, scan.task[NODE], threshold, levels, scan.cells.weights
        )
        """,
        """
        _, _, _, found = sweep_binned_columns(
            scan, f, f + 1, scan.task[NODE], threshold, levels, scan.cells.weights
        )
        if scan.task[CLOSELY] != 1:
            share[f] = found
        """,
        BINNED,
    ),
]
