"""The log-likelihood of large data: the rows in parts, which several threads may take on.

The sums of a part go into a set of its own. Sets are added in order, whoever filled them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import kernel, pointer_kernel
from ..backend.records import Float1
from ..backend.row_threads import PartsRunner
from ..backend.units import unit
from ..tree.nodes import copy_tree
from .classes import finish_classes, gradient_from_pairs
from .data import CLASSES, GRADIENT, LABELS, PASS_TASK, Data, Work
from .labels import labels_through_block, put_probabilities
from .likelihoods import (
    LIKELIHOOD,
    Way,
    classes_through_block,
    clear_sums,
    count_sums,
    finish_numbers,
    numbers_through_block,
    way_of,
)
from .means import put_means

FAMILY, N_LEAF, N_PAIRS, PASSES, THROUGH_SPLITS, WITH_GRADIENT, FIRST, WHAT = range(8)
"""Places in ``Work.task``."""


@kernel
def pass_over_parts(data, h, work, first_part, stop_part, who):
    """One pass over the rows of some parts, each into its set; told by ``work.task``."""
    task, tree = work.task, work.task_tree
    family, first = task[FAMILY], task[FIRST] == 1
    n_blocks = data.block_class.shape[0]
    parts = work.d_sigma.shape[0] - 1
    for part in range(first_part, stop_part):
        way = Way(
            task[N_LEAF],
            task[N_PAIRS],
            task[PASSES],
            False,
            task[THROUGH_SPLITS] == 1,
            task[WITH_GRADIENT] == 1,
            part + 1,
            who,
        )
        if first:
            clear_sums(family, tree, work, way)
        squares = 0.0
        for b in range(part * n_blocks // parts, (part + 1) * n_blocks // parts):
            if family == CLASSES:
                classes_through_block(data, h, tree, work, way, b, first)
            elif family == LABELS:
                squares += labels_through_block(data, h, tree, work, way, b, task[WHAT], first)
            else:
                squares += numbers_through_block(family, data, h, tree, work, way, b, first)
        if first:
            work.d_sigma[part + 1] = squares


@kernel
def add_sums(family, tree, work, way):
    """Of all parts, in order; returns the sum of squares, or of logarithms."""
    counts, all_sums, d_value = work.counts, work.sums, work.d_value
    n_sums = count_sums(family, work, way)
    squares = 0.0
    for s in range(1, work.d_sigma.shape[0]):
        squares += work.d_sigma[s]
        for k in range(way.n_leaf):
            for m in range(counts.shape[2]):
                counts[0, k, m] += counts[s, k, m]
        for k in range(n_sums):
            all_sums[0, k] += all_sums[s, k]
        if way.with_gradient:
            for i in range(tree.n_nodes[0]):
                d_value[0, i] += d_value[s, i]
    return squares


@kernel
def add_derivatives(tree, work):
    d_threshold, d_weights = work.d_threshold, work.d_weights
    for s in range(1, work.d_sigma.shape[0]):
        for i in range(tree.n_nodes[0]):
            d_threshold[0, i] += d_threshold[s, i]
            for f in range(d_weights.shape[2]):
                d_weights[0, i, f] += d_weights[s, i, f]


@pointer_kernel
def parallel_likelihood(family, data, leaf_prior, h, p, tree, work, what, routed):
    """``class_likelihood``, ``number_likelihood`` or ``label_likelihood``, part by part."""
    with_gradient = what == GRADIENT
    way = way_of(family, data, h, tree, work, with_gradient, False)
    clear_sums(family, tree, work, way)
    put_means(family, tree, work, way.n_leaf)
    put_probabilities(family, p, work, way.n_leaf)
    copy_tree(tree, work.task_tree)
    task = work.task
    task[FAMILY], task[N_LEAF], task[N_PAIRS] = family, way.n_leaf, way.n_pairs
    task[PASSES], task[THROUGH_SPLITS] = way.passes, 1 if way.through_splits else 0
    task[WITH_GRADIENT], task[WHAT] = 1 if with_gradient else 0, what
    total = 0.0
    for this in range(way.passes):
        task[FIRST] = 1 if this == 0 else 0
        work.run_parts(PASS_TASK, work.d_sigma.shape[0] - 1)
        if this == 0:
            squares = add_sums(family, tree, work, way)
            if family == CLASSES:
                total = finish_classes(leaf_prior, work, way.n_leaf, with_gradient)
                if way.n_pairs > 0:
                    gradient_from_pairs(h, tree, work, way.n_leaf)
            elif family == LABELS:
                total = squares
            else:
                total = finish_numbers(family, data, leaf_prior, h, tree, work, way, squares)
        if way.through_splits and way.n_pairs == 0 and this == way.passes - 1:
            add_derivatives(tree, work)
    return total


def connect_parts(data: Data, h: NDArray[np.float64], work: Work) -> None:
    """Tell the runner of ``work`` how to do the parts of a pass."""
    inside = work._replace(run_parts=PartsRunner())  # the runner must not refer to itself
    work.run_parts.tasks[PASS_TASK] = lambda first, stop, who: pass_over_parts(
        data, h, inside, first, stop, who
    )


unit(parallel_likelihood, LIKELIHOOD, seconds=2)
unit(pass_over_parts, Data, Float1, Work, int, int, int)
