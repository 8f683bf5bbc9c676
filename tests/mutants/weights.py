"""Terms of the weights of rows."""

from __future__ import annotations

from .harness import Mutant

WEIGHTS = "tests/core/test_weights.py"
SCANS = f"{WEIGHTS} -k scans_see"
DATA = "core/soft/data.py"
ROWS = "core/scan/rows.py"
GROUPS = "core/scan/groups.py"
BINS = "core/scan/by_bins.py"
PARTITION = "core/hard/partition.py"
POOL = "core/smc/node_pool.py"

MUTANTS = [
    Mutant(
        "weights: the root is not reached by weight",
        "core/tree/routing.py",
        "reach_root",
        "data.root.shape[1] > 0",
        "data.root.shape[1] < 0",
        f"{WEIGHTS} -k likelihood",
    ),
    Mutant(
        "weights of regression: the root of the weight forgotten",
        DATA,
        "make_data",
        "weight if n_classes else np.sqrt(weight)",
        "weight",
        f"{WEIGHTS} -k likelihood",
    ),
    Mutant(
        "weights of regression: y not weighted",
        DATA,
        "make_data",
        "target *= root",
        "target *= 1.0",
        f"{WEIGHTS} -k likelihood",
    ),
    Mutant(
        "weights: rows counted instead of weighed",
        DATA,
        "make_data",
        "float(columns.shape[1] if weights is None else weights.sum())",
        "float(columns.shape[1])",
        f"{WEIGHTS} -k likelihood",
    ),
    Mutant(
        "scan with weights: totals of rows",
        ROWS,
        "place_rows",
        "total[which, to] += amount",
        "total[which, to] += 1",
        SCANS,
    ),
    Mutant(
        "scan with weights: classes of rows",
        ROWS,
        "place_rows",
        "members[which, to, label] += amount",
        "members[which, to, label] += 1",
        SCANS,
    ),
    Mutant(
        "scan with weights: sums of y without weights",
        ROWS,
        "place_rows",
        "sums[which, to, 0] += weight * y[row]",
        "sums[which, to, 0] += y[row]",
        SCANS,
    ),
    Mutant(
        "scan with weights: groups of single rows without weights",
        GROUPS,
        "groups_by_row",
        "sums[g, 0] = weight * y[row]",
        "sums[g, 0] = y[row]",
        SCANS,
    ),
    Mutant(
        "scan with weights: histograms count rows",
        GROUPS,
        "groups_by_bin",
        "histogram[at] += amounts[row] if weighted else np.int32(1)",
        "histogram[at] += np.int32(1)",
        SCANS,
    ),
    Mutant(
        "scan with weights: histograms of y without weights",
        GROUPS,
        "groups_by_bin",
        "sums_at[at, 0] += weight * y[row]",
        "sums_at[at, 0] += y[row]",
        SCANS,
    ),
    Mutant(
        "scan with weights: projected groups without weights",
        GROUPS,
        "groups_by_projection",
        "sums[g, 0] = weight * y[row]",
        "sums[g, 0] = y[row]",
        SCANS,
    ),
    Mutant(
        "scan with weights: bins count rows",
        BINS,
        "count_bins",
        "counts[at + m] += weight",
        "counts[at + m] += 1.0",
        SCANS,
    ),
    Mutant(
        "scan with weights: softness judged by the number of rows",
        "core/scan/scan.py",
        "sweep_columns",
        "scan.data.mass",
        "scan.data.rows.shape[0]",
        SCANS,
    ),
    Mutant(
        "scan with weights: segments of classes by weight",
        ROWS,
        "add_parts",
        "scan.data.amount.shape[0] > 0",
        "scan.data.amount.shape[0] < 0",
        SCANS,
    ),
    Mutant(
        "labels with weights: logs not weighed",
        "core/soft/labels.py",
        "labels_through_block",
        "sum_of_weighted_logs(rows, target, data.root, start, n)",
        "sum_of_logs(rows, target, n)",
        f"{WEIGHTS} -k likelihood",
    ),
    Mutant(
        "labels with weights: probabilities not divided",
        "core/soft/labels.py",
        "labels_through_block",
        "divide_by(rows, target, data.root, start, real)",
        "",
        f"{WEIGHTS} -k likelihood",
    ),
    Mutant(
        "labels with weights: drawn rows not weighed",
        "core/soft/labels.py",
        "draw_leaves",
        "weight_below(rows, slope, target, weights, start, n)",
        "count_below(rows, slope, target, n)",
        f"{WEIGHTS} -k weighed",
    ),
    Mutant(
        "hard trees with weights: sums of rows",
        PARTITION,
        "sum_rows",
        "data.weight.shape[0] > 0",
        "data.weight.shape[0] < 0",
        f"{WEIGHTS} -k hard",
    ),
    Mutant(
        "hard trees with weights: squares without weights",
        PARTITION,
        "sum_weighted_rows",
        "weight[row] * y * y",
        "y * y",
        f"{WEIGHTS} -k hard",
    ),
    Mutant(
        "hard trees with weights: rows of a common variance counted",
        PARTITION,
        "make_hard_data",
        "float(n if weights is None else weights.sum())",
        "float(n)",
        f"{WEIGHTS} -k hard",
    ),
    Mutant(
        "particles with weights: sums of rows",
        "core/hard/leaves.py",
        "add_row",
        "weights[row] if weights.shape[0] > 0 else 1.0",
        "1.0",
        f"{WEIGHTS} -k particles",
    ),
    Mutant(
        "particles with weights: the smallest node counts rows",
        POOL,
        "rows_of",
        "table.row_weight.shape[0] == 0",
        "table.row_weight.shape[0] >= 0",
        f"{WEIGHTS} -k smallest",
    ),
]
