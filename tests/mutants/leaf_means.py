"""Terms of scans of soft regression: they propose, and a node's scan is the same forth and back."""

from __future__ import annotations

from .harness import Mutant

COLUMNS = "core/scan/mean_columns.py"
SCORES = "core/scan/mean_scores.py"
SUMS = "core/scan/mean_sums.py"
REGROW = "core/moves/regrow.py"
MEANS = "core/scan/leaf_means.py"

RATIO = "tests/core/moves/test_informed.py -k test_ratio hmc-df-0.2-0"
SPECIAL = "tests/core/scan/test_leaf_means.py -k special"
SAME = "tests/core/scan/test_leaf_means.py -k same_on_the_way_back"
WEIGHTS = "tests/core/test_weights.py -k scans_see"

MUTANTS = [
    Mutant(
        "leaf means: regrow sees leaves that were grown later",
        REGROW,
        "regrow_informed",
        "frame[0] = node",
        "frame[0] = OUTSIDE_NODE",
        RATIO,
    ),
    Mutant(
        "leaf means: determinant of the changed columns",
        SCORES,
        "log_marginal_of_change",
        "0.5 * total / (sigma * sigma) - log_det",
        "0.5 * total / (sigma * sigma)",
        RATIO,
    ),
    Mutant(
        "leaf means: what other leaves take from the changed ones",
        SCORES,
        "subtract_products",
        "gram[k, m] -= total",
        "",
        RATIO,
    ),
    Mutant(
        "leaf means: what of a row goes left, squared",
        SCORES,
        "product",
        "np.float64(moved[ALL, at]) - 2.0 * right + squares",
        "np.float64(moved[ALL, at]) - right",
        RATIO,
    ),
    Mutant(
        "leaf means: of both sides, what goes left times what goes right",
        SCORES,
        "product",
        "return right - squares",
        "return 0.0",
        RATIO,
    ),
    Mutant(
        "leaf means: prior of the other leaves",
        SUMS,
        "find_means",
        "gram[j, j] += sigma * sigma / scan.model.mean_variance",
        "gram[j, j] += 1e-9",
        RATIO,
    ),
    Mutant(
        "leaf means: what the other leaves explain",
        SUMS,
        "make_orthogonal",
        "add_scaled(rows, REST, -solved[j], others[j], n)",
        "",
        RATIO,
    ),
    Mutant(
        "leaf means: the score between two points",
        COLUMNS,
        "between",
        "p1 + 0.5 * x * (slope + x * (square + x * cube))",
        "p1 + x * (p2 - p1)",
        RATIO,
    ),
    Mutant(
        "leaf means: values that are joined stand at their mean",
        COLUMNS,
        "merge_bins",
        "middle[count - 1] += (x - middle[count - 1]) * here / rows",
        "",
        RATIO,
    ),
    Mutant(
        "leaf means: a bin's share of what goes right",
        SCORES,
        "add_bin",
        "first, psi = np.uint64(at), np.float32(share)",
        "first, psi = np.uint64(at), np.float32(1.0 if share > 0.5 else 0.0)",
        RATIO,
    ),
    Mutant(
        "leaf means: prior of the changed leaves",
        SCORES,
        "log_marginal_of_change",
        "gram[k, k] += noise",
        "",
        RATIO,
    ),
    Mutant(
        "leaf means: products of a new leaf with those of a kept subtree",
        SCORES,
        "fill_gram",
        "total += product(moved, pair_of(moved, square, one, other), a, b)",
        "",
        RATIO,
    ),
    Mutant(
        "leaf means: room asked for by the nodes below the one that is scanned, too",
        SUMS,
        "add_up_terms",
        "REACH + tree.n_nodes[0] + 1 - tree.size[around]",
        "REACH + tree.n_nodes[0]",
        SAME,
    ),
    Mutant(
        "leaf means: missing cells on the right forgotten",
        COLUMNS,
        "score_points",
        "add_bin(moved, means.sums, missing, width, square, 1.0)",
        "",
        SPECIAL,
    ),
    Mutant(
        "leaf means: missing cells on the left forgotten",
        COLUMNS,
        "score_points",
        "add_to(moved[ALL], ZERO, means.sums, missing, width)",
        "",
        SPECIAL,
    ),
    Mutant(
        'leaf means: sides of "is missing" exchanged',
        COLUMNS,
        "score_missing",
        "side == 0",
        "side == 1",
        SPECIAL,
    ),
    Mutant(
        "leaf means: levels on the wrong side",
        COLUMNS,
        "score_bins",
        "goes_right[b] == 1.0",
        "goes_right[b] == 0.0",
        SPECIAL,
    ),
    Mutant(
        "leaf means with weights: rows by their weight instead of its root",
        MEANS,
        "make_leaf_means",
        "np.sqrt(weights[rows])",
        "weights[rows]",
        WEIGHTS,
    ),
    Mutant(
        "leaf means with weights: y without weights",
        MEANS,
        "make_leaf_means",
        "root * y",
        "y",
        WEIGHTS,
    ),
]
