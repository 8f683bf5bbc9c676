"""Parts of the scans of large data, as tasks that several threads may share."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
from ..backend.row_threads import PartsRunner
from ..backend.units import unit
from .binned_columns import sweep_binned_columns
from .bins import make_bin_work
from .data import Scan, make_cells, value_at
from .rows import (
    CLOSELY,
    COLUMNS_TASK,
    FIND_TASK,
    FIRST_PART,
    LEFT,
    LENGTH,
    NODE,
    PROJECT_TASK,
    RIGHT,
    SIDES_TASK,
    keep_rows,
    part_bounds,
    place_rows,
)


@kernel
def find_parts(scan, first_part, stop_part):
    """The rows that reach a node, of each part at its place; how many, in ``total``."""
    for part in range(first_part, stop_part):
        first, stop = part_bounds(scan, scan.node.rows.shape[0], part)
        stop = keep_rows(scan, scan.task_tree, scan.task[NODE], scan.task[LENGTH], first, stop)
        scan.sides.total[FIRST_PART + part, 0] = stop - first


@kernel
def place_parts(scan, first_part, stop_part):
    for part in range(first_part, stop_part):
        first, stop = part_bounds(scan, scan.node.n_rows[0], part)
        left, right = scan.task[LEFT], scan.task[RIGHT]
        place_rows(scan, scan.task_tree, left, right, FIRST_PART + part, first, stop)


@kernel
def project_parts(scan, first_part, stop_part):
    """Projections of the rows of each part, and the smallest and the largest."""
    data, rows, projected, weights = (
        scan.data,
        scan.node.rows,
        scan.bins.projected,
        scan.bins.weights,
    )
    for part in range(first_part, stop_part):
        low, high = np.inf, -np.inf
        first, stop = part_bounds(scan, scan.node.n_rows[0], part)
        for k in range(first, stop):
            x = 0.0
            for f in range(weights.shape[0]):
                x += weights[f] * value_at(data, f, rows[k])
            x = min(max(x, 0.0), 1.0)
            projected[k] = x
            low = min(low, x)
            high = max(high, x)
        scan.sides.sums[FIRST_PART + part, 0, 0] = low
        scan.sides.sums[FIRST_PART + part, 0, 1] = high


@kernel
def sweep_parts(scan, first_part, stop_part):
    """Weigh columns, one per part: all, or those to look closely at.

    ``share`` gets the density of the rule asked for, where it is of this column.
    """
    close, share = scan.bins.close, scan.cells.share
    for part in range(first_part, stop_part):
        f = part
        if scan.task[CLOSELY] == 1:
            f = -1
            for _ in range(part + 1):
                f += 1
                while close[f] == 0:
                    f += 1
        threshold, levels = scan.task_threshold[0], scan.task_levels[0]
        _, _, _, share[f] = sweep_binned_columns(
            scan, f, f + 1, scan.task[NODE], threshold, levels, scan.cells.weights
        )


def connect_parts(scan: Scan, max_leaves: int, threads: int) -> None:
    """Tell the runner of a scan of large data how to do its tasks, each thread with own scratch."""
    runner = scan.run_parts
    scan = scan._replace(run_parts=PartsRunner())  # the runner must not refer to itself
    own = [scan, *(_with_own_scratch(scan, max_leaves) for _ in range(threads - 1))]
    runner.tasks.update(
        {
            FIND_TASK: lambda first, stop, who: find_parts(scan, first, stop),
            SIDES_TASK: lambda first, stop, who: place_parts(scan, first, stop),
            PROJECT_TASK: lambda first, stop, who: project_parts(scan, first, stop),
            COLUMNS_TASK: lambda first, stop, who: sweep_parts(own[who], first, stop),
        }
    )


def _with_own_scratch(scan: Scan, max_leaves: int) -> Scan:
    """The same scan with cells and bins of its own; what is summed up over columns is shared."""
    cells, bins, model = scan.cells, scan.bins, scan.model
    classes, n_weights = len(model.class_prior), len(cells.weights)
    rows = len(scan.data.rows)
    fresh = make_bin_work(len(bins.close), rows, classes, max_leaves, n_weights)
    return scan._replace(
        cells=make_cells(scan.data, model, n_weights, coupled=False)._replace(
            log_total=cells.log_total, share=cells.share, weights=cells.weights
        ),
        bins=fresh._replace(
            projected=bins.projected, code=bins.code, segment=bins.segment, close=bins.close
        ),
    )


PART_KERNELS = (find_parts, place_parts, project_parts, sweep_parts)
for _kernel in PART_KERNELS:
    unit(_kernel, Scan, int, int)
