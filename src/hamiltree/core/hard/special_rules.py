"""Priors over the rules of hard trees on special columns, given the column and a node's rows.

Category. UNIFORM and GAP: all ways to part the levels that rows of the node have, both sides told
apart, alike (Chipman, George and McCulloch 1998); each other level goes right by a fair coin. FULL:
all sets of levels that are neither empty nor full, where they part the rows.

Numbers with missing cells. A rule is "is missing" with probability MISSING_RULE where both that and
a threshold are available, and the side of the missing is a fair coin. UNIFORM and GAP: thresholds
as among the rows whose number is there; "is missing" where it parts the rows. FULL: the prior on
the unit interval, where a rule parts the rows.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..sampling import draw_between
from ..scan.data import FULL, GAP
from ..tree.kinds import (
    CATEGORY_THRESHOLD,
    MISSING_BELOW,
    MISSING_RIGHT,
    MISSING_RULE,
    NO_LEVELS,
    draw_levels,
    draw_special_rule,
    log_special_rule,
    log_subsets,
)
from ..tree.priors import log_threshold
from .partition import present_levels, range_of_present


@kernel
def distinct_numbers(data, f, work, rows, start, stop):
    """Put one row for each distinct number into ``seen``, but for the largest; how many.

    Missing cells are left aside.
    """
    work.clock[0] += 1
    clock = work.clock[0]
    count, top, place = 0, -1, -1
    for k in range(start, stop):
        if data.columns[f, rows[k]] < MISSING_BELOW:
            continue
        code = data.codes[f, rows[k]]
        if work.stamp[code] != clock:
            work.stamp[code] = clock
            work.seen[count] = rows[k]
            if code > top:
                top, place = code, count
            count += 1
    if count == 0:
        return 0
    work.seen[place] = work.seen[count - 1]
    return count - 1


@kernel
def probability_of_missing(low, high, missing):
    """Of the rule "is missing", by what parts the rows: (probability, whether any rule does)."""
    numbers = low < high
    holes = missing > 0 and low <= high
    if numbers and holes:
        return MISSING_RULE, True
    return (1.0, True) if holes else (0.0, numbers)


@kernel
def parts_rows(low, high, missing, threshold, levels):
    """Whether a rule on numbers with missing cells leaves no side of a node empty."""
    if math.isinf(threshold):
        return missing > 0 and low <= high
    holes_right = levels != NO_LEVELS
    some_left = low <= threshold or (missing > 0 and not holes_right)
    some_right = high > threshold or (missing > 0 and holes_right)
    return some_left and some_right


@kernel
def log_category_at(rules, data, rows, start, stop, f, levels):
    here, count = present_levels(data.columns[f], rows, start, stop)
    if levels & here == NO_LEVELS or levels & here == here:
        return -np.inf
    n_levels = data.kinds.levels[f]
    if rules.kind == FULL:
        return -log_subsets(n_levels)
    return -log_subsets(count) - (n_levels - count) * math.log(2.0)


@kernel
def log_special_at(rules, data, work, rows, start, stop, f, threshold, levels):
    """Log prior of a rule given its column; minus infinity where it is not available."""
    if data.kinds.levels[f] > 0:
        return log_category_at(rules, data, rows, start, stop, f, levels)
    low, high, missing = range_of_present(data.columns[f], rows, start, stop)
    if not parts_rows(low, high, missing, threshold, levels):
        return -np.inf
    if rules.kind == FULL:
        density = 0.0 if math.isinf(threshold) else log_threshold(rules.prior, threshold)
        return log_special_rule(data.kinds, f, threshold, levels, density)
    by_missing, _ = probability_of_missing(low, high, missing)
    if math.isinf(threshold):
        return math.log(0.5 * by_missing)
    if not low <= threshold < high:
        return -np.inf
    log_side = math.log(0.5 * (1.0 - by_missing))
    if rules.kind == GAP:
        return log_side - math.log(high - low)
    observed = False
    for k in range(start, stop):
        row = rows[k]
        there = data.columns[f, row] > MISSING_BELOW
        observed = observed or (there and data.cuts[f, row] == threshold)
    if not observed:
        return -np.inf
    return log_side - math.log(distinct_numbers(data, f, work, rows, start, stop))


@kernel
def parting_mass(data, rows, start, stop, f):
    """Probability that a rule of the prior FULL, thresholds uniform, leaves no side empty."""
    if data.kinds.levels[f] > 0:
        _, count = present_levels(data.columns[f], rows, start, stop)
        if count < 2:
            return 0.0
        n_levels = data.kinds.levels[f]
        other = (n_levels - count) * math.log(2.0)
        return math.exp(log_subsets(count) + other - log_subsets(n_levels))
    low, high, missing = range_of_present(data.columns[f], rows, start, stop)
    if low > high:
        return 0.0
    if missing == 0:
        return (1.0 - MISSING_RULE) * (high - low)
    # missing right: a threshold from the smallest number on; missing left: up to the largest
    return MISSING_RULE + 0.5 * (1.0 - MISSING_RULE) * ((1.0 - low) + high)


@kernel
def draw_special_at(rules, data, work, rows, start, stop, f, rng):
    """A rule given its column, in which one is available: (threshold, levels, log prior).

    It is drawn from that prior; for FULL, given that it leaves no side empty, thresholds uniform.
    """
    x = data.columns[f]
    if data.kinds.levels[f] > 0:
        here, _ = present_levels(x, rows, start, stop)
        levels = draw_levels(data.kinds.levels[f], rng)
        while levels & here == NO_LEVELS or levels & here == here:
            levels = draw_levels(data.kinds.levels[f], rng)
        log_prior = log_category_at(rules, data, rows, start, stop, f, levels)
        return CATEGORY_THRESHOLD, levels, log_prior
    low, high, missing = range_of_present(x, rows, start, stop)
    if rules.kind == FULL:
        while True:
            threshold = min(max(rng.random(), 1e-15), 1.0 - 1e-15)
            threshold, levels = draw_special_rule(data.kinds, f, threshold, rng)
            if parts_rows(low, high, missing, threshold, levels):
                break
    else:
        by_missing, _ = probability_of_missing(low, high, missing)
        levels = MISSING_RIGHT if rng.random() < 0.5 else NO_LEVELS
        if rng.random() < by_missing:
            threshold = np.inf if levels == MISSING_RIGHT else -np.inf
        elif rules.kind == GAP:
            threshold = draw_between(low, high, rng)
        else:
            count = distinct_numbers(data, f, work, rows, start, stop)
            threshold = data.cuts[f, work.seen[int(rng.random() * count)]]
    log_prior = log_special_at(rules, data, work, rows, start, stop, f, threshold, levels)
    return threshold, levels, log_prior
