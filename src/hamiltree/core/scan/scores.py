"""Scores of leaves as rows move from one to another: marginal likelihoods, by tables of counts.

A sweep counts in units of rows (one, or a part of one where rows have weights that are not whole),
or in fifths of them where the column is soft. Tables hold what a score
needs of a count: log Gamma(c + alpha) / Gamma(alpha) for classes, and in the last row what depends
on a leaf's size alone. For regression with known noise the first row is the factor of the squared
sum. Up to a constant per leaf these are ``log_dirichlet_multinomial``, ``log_known_noise_leaf`` and
``log_normal_leaf`` of ``densities`` (tests/core/scan/test_scores.py compares them).
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import inlined, kernel
from ..densities import log_gamma_ratio, log_known_noise_leaf
from .data import CLASS_COUNTS, FIFTHS, KNOWN_VARIANCE, ROWS, Scan, is_soft


def fill_first_tables(scan: Scan) -> Scan:
    """Fill the tables, but for those that depend on sigma."""
    if scan.model.leaf != KNOWN_VARIANCE:
        fill_tables(scan.model, scan.tables.by_rows, per_row(scan, ROWS), 1.0)
        fill_tables(scan.model, scan.tables.by_fifths, per_row(scan, FIFTHS), 1.0)
    return scan


@kernel
def per_row(scan, parts):
    """What a sweep counts per row where each unit has so many parts: 1, or fifths."""
    return parts * scan.data.units


@kernel
def own_size_part(model, rows):
    """What depends on a leaf's size alone where each leaf has a variance of its own."""
    part = log_gamma_ratio(0.5 * rows, model.shape) - 0.5 * rows * math.log(model.rate)
    return part - 0.5 * math.log1p(rows / model.prior_rows)


@kernel
def fill_tables(model, table, units, ratio):
    """With so many ``units`` per row; ``ratio`` of the prior variance of a mean to the noise's."""
    last = table.shape[0] - 1
    for c in range(table.shape[1]):
        rows = c / units
        if model.leaf == CLASS_COUNTS:
            table[last, c] = -log_gamma_ratio(rows, model.class_mass)
            for m in range(last):
                table[m, c] = log_gamma_ratio(rows, model.class_prior[m])
        elif model.leaf == KNOWN_VARIANCE:
            table[last, c] = -0.5 * math.log(1.0 + ratio * rows)
            table[0, c] = 0.5 * ratio / (1.0 + ratio * rows) * (ratio / model.mean_variance)
        else:
            table[last, c] = own_size_part(model, rows)


@kernel
def fill_known_tables(scan, sigma):
    """For this sigma."""
    model, tables = scan.model, scan.tables
    if tables.sigma[0] == sigma:
        return
    tables.sigma[0] = sigma
    ratio = model.mean_variance / (sigma * sigma)
    soft = scan.cells.weights.shape[0] > 0 and model.h[0] > 0.0
    for f in range(model.h.shape[0]):
        soft = soft or is_soft(scan, f)
    fill_tables(model, tables.by_rows, per_row(scan, ROWS), ratio)
    if soft:
        fill_tables(model, tables.by_fifths, per_row(scan, FIFTHS), ratio)


@inlined
def class_score(alpha, table, m, c, units):
    return table[m, c] if c < table.shape[1] else log_gamma_ratio(c / units, alpha[m])


@inlined
def size_score(mass, table, c, units):
    """Of a leaf with classes."""
    last = table.shape[0] - 1
    return table[last, c] if c < table.shape[1] else -log_gamma_ratio(c / units, mass)


@kernel
def leaf_score(model, total, sums, sigma, table, leaf, units):
    """Of a regression leaf, from its sums."""
    c = total[0, leaf]
    sum_of_y = sums[0, leaf, 0]
    rows = c / units
    if model.leaf == KNOWN_VARIANCE:
        if c < table.shape[1]:
            return table[1, c] + table[0, c] * sum_of_y * sum_of_y
        return log_known_noise_leaf(rows, sum_of_y, model.mean_variance, sigma)
    spread = max(sums[0, leaf, 1] - sum_of_y * sum_of_y / (rows + model.prior_rows), 0.0)
    excess = math.log1p(0.5 * spread / model.rate)
    part = table[1, c] if c < table.shape[1] else own_size_part(model, rows)
    return part - (model.shape + 0.5 * rows) * excess


@kernel
def move_without_tables(scan, table, g, parts):
    """Send one part of each unit of a group from the right to the left; the change of the score.

    For too many rows for tables, or a variance of its own in each leaf; ``scan.sweep_groups`` has
    the same by tables.
    """
    model, sides, groups = scan.model, scan.sides, scan.groups
    units = per_row(scan, parts)
    left, right = np.int64(groups.place[g, 0]), np.int64(groups.place[g, 1])
    m, amount = np.int64(groups.place[g, 2]), np.int64(groups.place[g, 3])
    total, members, sums, score = sides.total, sides.members, sides.sums, sides.score
    if model.leaf == CLASS_COUNTS:
        alpha, mass = model.class_prior, model.class_mass
        lost = class_score(alpha, table, m, members[0, left, m], units)
        lost += class_score(alpha, table, m, members[0, right, m], units)
        lost += size_score(mass, table, total[0, left], units)
        lost += size_score(mass, table, total[0, right], units)
        members[0, left, m] += amount
        members[0, right, m] -= amount
        total[0, left] += amount
        total[0, right] -= amount
        gained = class_score(alpha, table, m, members[0, left, m], units)
        gained += class_score(alpha, table, m, members[0, right, m], units)
        gained += size_score(mass, table, total[0, left], units)
        gained += size_score(mass, table, total[0, right], units)
        return gained - lost
    for s in range(2):
        part = groups.sums[g, s] / parts
        sums[0, left, s] += part
        sums[0, right, s] -= part
    total[0, left] += amount
    total[0, right] -= amount
    sigma = scan.tables.sigma[0]
    before = score[left] + score[right]
    score[left] = leaf_score(model, total, sums, sigma, table, left, units)
    score[right] = leaf_score(model, total, sums, sigma, table, right, units)
    return score[left] + score[right] - before


@kernel
def move_groups(scan, begin, end, parts):
    """Send the groups from ``begin`` to ``end`` from the right to the left, all parts of them.

    Only the sums follow: what comes next asks ``score_of_sides``.
    """
    sides, groups = scan.sides, scan.groups
    total, members, sums, place = sides.total, sides.members, sides.sums, groups.place
    counted = scan.model.leaf == CLASS_COUNTS
    for g in range(begin, end):
        left, right = np.int64(place[g, 0]), np.int64(place[g, 1])
        m, amount = np.int64(place[g, 2]), np.int64(place[g, 3]) * parts
        total[0, left] += amount
        total[0, right] -= amount
        if counted:
            members[0, left, m] += amount
            members[0, right, m] -= amount
        else:
            for s in range(2):
                sums[0, left, s] += groups.sums[g, s]
                sums[0, right, s] -= groups.sums[g, s]


@kernel
def score_of_sides(scan, table, parts):
    """The score of the leaves as their rows are now."""
    model, sides, sigma = scan.model, scan.sides, scan.tables.sigma[0]
    total, members, sums, scores = sides.total, sides.members, sides.sums, sides.score
    alpha, mass, counted = model.class_prior, model.class_mass, model.leaf == CLASS_COUNTS
    units = per_row(scan, parts)
    score = 0.0
    for leaf in range(sides.n_side[0] + sides.n_side[1]):
        if counted:
            for m in range(members.shape[2]):
                score += class_score(alpha, table, m, members[0, leaf, m], units)
            score += size_score(mass, table, total[0, leaf], units)
        else:
            scores[leaf] = leaf_score(model, total, sums, sigma, table, leaf, units)
            score += scores[leaf]
    return score


@kernel
def all_right(scan, table, parts):
    """Put all rows on the right, in so many parts; returns the score of that."""
    sides = scan.sides
    total, members, sums = sides.total, sides.members, sides.sums
    counted = scan.model.leaf == CLASS_COUNTS
    for leaf in range(sides.n_side[0] + sides.n_side[1]):
        total[0, leaf] = total[1, leaf] * parts
        if counted:
            for m in range(members.shape[2]):
                members[0, leaf, m] = members[1, leaf, m] * parts
        else:
            sums[0, leaf, 0] = sums[1, leaf, 0]
            sums[0, leaf, 1] = sums[1, leaf, 1]
    return score_of_sides(scan, table, parts)


@kernel
def frequent_class(sides):
    """The class of most rows of the node, the first of several."""
    best, most = 0, np.int64(-1)
    for m in range(sides.members.shape[2]):
        count = np.int64(0)
        for leaf in range(sides.n_side[0] + sides.n_side[1]):
            count += sides.members[1, leaf, m]
        if count > most:
            best, most = m, count
    return best
