"""Scores of leaves as rows move from one to another: marginal likelihoods, by tables of counts.

A sweep counts in units: rows, or fifths of rows where the column is soft. Tables hold what a score
needs of a count: log Gamma(c + alpha) / Gamma(alpha) for classes, and in the last row what depends
on a leaf's size alone. For regression with known noise the first row is the factor of the squared
sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .buffers import CLASSES
from .jit import inlined, kernel, never_inline
from .scan_data import FIFTHS, KNOWN, NOBODY, OWN, ScanModel, ScanWork, is_soft, make_scan_work


def make_scorer(
    model: ScanModel,
    max_leaves: int,
    n_weights: int,
    crew: NDArray[np.int64] = NOBODY,
    threads: int = 1,
) -> ScanWork:
    """Scratch with its tables filled, but for those that depend on sigma."""
    work = make_scan_work(model, max_leaves, n_weights, crew, threads)
    if model.leaf != KNOWN:
        fill_tables(model, work.by_rows, 1, 1)
        fill_tables(model, work.by_fifths, FIFTHS, 1)
    return work


@kernel
def log_gamma_ratio(x, a):
    """Log of Gamma(x + a) / Gamma(a)."""
    return math.lgamma(x + a) - math.lgamma(a)


@kernel
def own_size_part(shape, rate, worth, rows):
    """What depends on a leaf's size alone where each leaf has a variance of its own."""
    part = log_gamma_ratio(0.5 * rows, shape) - 0.5 * rows * math.log(rate)
    return part - 0.5 * math.log1p(rows / worth)


@kernel
def fill_tables(model, table, units, ratio):
    """``units`` a row."""
    last = table.shape[0] - 1
    for c in range(table.shape[1]):
        rows = c / units
        if model.leaf == CLASSES:
            table[last, c] = -log_gamma_ratio(rows, model.worth)
            for m in range(last):
                table[m, c] = log_gamma_ratio(rows, model.class_prior[m])
        elif model.leaf == KNOWN:
            table[last, c] = -0.5 * math.log(1.0 + ratio * rows)
            table[0, c] = 0.5 * ratio / (1.0 + ratio * rows) * (ratio / model.mean_variance)
        else:
            table[last, c] = own_size_part(model.shape, model.rate, model.worth, rows)


@kernel
def fill_known_tables(model, work, sigma):
    """For this sigma."""
    never_inline()
    if work.sigma[0] == sigma:
        return
    work.sigma[0] = sigma
    ratio = model.mean_variance / (sigma * sigma)
    soft = work.weights.shape[0] > 0 and model.h[0] > 0.0
    for f in range(model.h.shape[0]):
        soft = soft or is_soft(model, f)
    fill_tables(model, work.by_rows, 1, ratio)
    if soft:
        fill_tables(model, work.by_fifths, FIFTHS, ratio)


@inlined
def class_score(model, table, m, c, units):
    if c < table.shape[1]:
        return table[m, c]
    return log_gamma_ratio(c / units, model.class_prior[m])


@inlined
def size_score(model, table, c, units):
    """Of a leaf with classes."""
    if c < table.shape[1]:
        return table[table.shape[0] - 1, c]
    return -log_gamma_ratio(c / units, model.worth)


@inlined
def leaf_score(model, work, table, leaf, units):
    """Of a regression leaf, from its sums."""
    c = work.total[0, leaf]
    total = work.sums[0, leaf, 0]
    if model.leaf == KNOWN:
        if c < table.shape[1]:
            return table[1, c] + table[0, c] * total * total
        sigma = work.sigma[0]
        ratio = model.mean_variance / (sigma * sigma)
        grown = 1.0 + ratio * c / units
        return 0.5 * (ratio / grown * total * total / (sigma * sigma) - math.log(grown))
    rows = c / units
    spread = max(work.sums[0, leaf, 1] - total * total / (rows + model.worth), 0.0)
    excess = math.log1p(0.5 * spread / model.rate)
    if c < table.shape[1]:
        part = table[1, c]
    else:
        part = own_size_part(model.shape, model.rate, model.worth, rows)
    return part - (model.shape + 0.5 * rows) * excess


@inlined
def put_place(work, g, left, right, label, rows):
    work.group_place[g, 0] = left
    work.group_place[g, 1] = right
    work.group_place[g, 2] = label
    work.group_place[g, 3] = rows


@inlined
def move_group(model, work, table, g, units):
    """Send one unit of each row of a group from the right to the left; the change of the score.

    This is where samplers spend their time. Where tables say it all, nothing is called, so that
    the loop around it keeps its numbers in registers, and indices are unsigned, because a negative
    one would count from the end.
    """
    if table.shape[1] == 1 or model.leaf == OWN:
        return move_without_tables(model, work, table, g, units)
    group = np.uint64(g)
    place = work.group_place
    left, right, m, amount = place[group, 0], place[group, 1], place[group, 2], place[group, 3]
    total = work.total[0]
    p, q = np.uint64(total[left]), np.uint64(total[right])
    grown, shrunk = np.uint64(p + amount), np.uint64(q - amount)
    total[left] = grown
    total[right] = shrunk
    size = table[table.shape[0] - 1]
    if model.leaf == CLASSES:
        members, by_class = work.members[0], table[m]
        a, b = np.uint64(members[left, m]), np.uint64(members[right, m])
        more, less = np.uint64(a + amount), np.uint64(b - amount)
        members[left, m] = more
        members[right, m] = less
        change = by_class[more] + by_class[less] - by_class[a] - by_class[b]
        return change + (size[grown] + size[shrunk] - size[p] - size[q])
    sums, factor = work.sums[0], table[0]
    part = work.group_sums[group, 0] / units
    x, y = sums[left, 0] + part, sums[right, 0] - part
    sums[left, 0] = x
    sums[right, 0] = y
    before = work.score[left] + work.score[right]
    work.score[left] = size[grown] + factor[grown] * x * x
    work.score[right] = size[shrunk] + factor[shrunk] * y * y
    return work.score[left] + work.score[right] - before


@kernel
def move_without_tables(model, work, table, g, units):
    """The same for too many rows for tables, or a variance of its own in each leaf."""
    never_inline()
    place = work.group_place[g]
    left, right, m, amount = place[0], place[1], place[2], place[3]
    total = work.total[0]
    if model.leaf == CLASSES:
        members = work.members[0]
        lost = class_score(model, table, m, members[left, m], units)
        lost += class_score(model, table, m, members[right, m], units)
        lost += size_score(model, table, total[left], units)
        lost += size_score(model, table, total[right], units)
        members[left, m] += amount
        members[right, m] -= amount
        total[left] += amount
        total[right] -= amount
        gained = class_score(model, table, m, members[left, m], units)
        gained += class_score(model, table, m, members[right, m], units)
        gained += size_score(model, table, total[left], units)
        gained += size_score(model, table, total[right], units)
        return gained - lost
    sums = work.sums[0]
    for s in range(2):
        part = work.group_sums[g, s] / units
        sums[left, s] += part
        sums[right, s] -= part
    total[left] += amount
    total[right] -= amount
    before = work.score[left] + work.score[right]
    work.score[left] = leaf_score(model, work, table, left, units)
    work.score[right] = leaf_score(model, work, table, right, units)
    return work.score[left] + work.score[right] - before


@inlined
def all_right(model, work, table, units):
    """Put all rows on the right; returns the score of that."""
    score = 0.0
    for leaf in range(work.n_side[0] + work.n_side[1]):
        work.total[0, leaf] = work.total[1, leaf] * units
        if model.leaf == CLASSES:
            for m in range(work.members.shape[2]):
                c = work.members[1, leaf, m] * units
                work.members[0, leaf, m] = c
                score += class_score(model, table, m, c, units)
            score += size_score(model, table, work.total[0, leaf], units)
        else:
            work.sums[0, leaf, 0] = work.sums[1, leaf, 0]
            work.sums[0, leaf, 1] = work.sums[1, leaf, 1]
            work.score[leaf] = leaf_score(model, work, table, leaf, units)
            score += work.score[leaf]
    return score
