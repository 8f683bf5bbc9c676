"""Scans of a category: sets of levels, by cuts of the levels in the order of their response.

The levels that the rows of a node have are ordered by the mean of y, or by the share of the node's
most frequent class. The candidates are the cuts of this order, either side to the left, and all to
one side. Of a candidate's levels that no row of the node has, each goes right by a fair coin. A
share of the draws is from the prior, so that every set has a density.
"""

from __future__ import annotations

import math

import numpy as np

from ..backend.jit import kernel
from ..tree.kinds import (
    CATEGORY_THRESHOLD,
    NO_LEVELS,
    all_levels,
    draw_levels,
    fair_levels,
    has_level,
    log_subsets,
)
from ..tree.routing import exp_clamped
from .by_bits import has_keys
from .cells import PRIOR_SHARE, highest, sum_of
from .data import CLASS_COUNTS, ROWS, UNIT
from .groups import groups_by_column
from .scores import all_right, frequent_class, move_groups, score_of_sides

NOT_ONE = -1
"""A set that is no candidate."""


# ------------------------------------------------------------------ levels of a node


@kernel
def order_levels(scan, f):
    """List the levels that rows of the node have, by their response; how many.

    ``level`` gets their codes in this order, ``begin`` and ``stop`` where their groups are.
    """
    groups, of = scan.groups, scan.cells
    n = groups_by_column(scan, f)
    counted = scan.model.leaf == CLASS_COUNTS
    frequent = frequent_class(scan.sides) if counted else 0
    present = 0
    g = 0
    while g < n:
        x, begin = groups.x[g], g
        rows, total = 0.0, 0.0
        while g < n and groups.x[g] == x:
            amount = np.float64(groups.place[g, 3])
            rows += amount
            if not counted:
                total += groups.sums[g, 0]
            elif groups.place[g, 2] == frequent:
                total += amount
            g += 1
        place_level(of, present, np.int64(x), total / rows if rows > 0.0 else 0.0, begin, g)
        present += 1
    return present


@kernel
def place_level(of, present, code, response, begin, stop):
    """Put a level, whose groups are from ``begin`` to ``stop``, among those listed so far."""
    at = present
    while at > 0 and of.response[at - 1] > response:
        of.response[at] = of.response[at - 1]
        of.level[at] = of.level[at - 1]
        of.begin[at], of.stop[at] = of.begin[at - 1], of.stop[at - 1]
        at -= 1
    of.response[at] = response
    of.level[at] = code
    of.begin[at], of.stop[at] = begin, stop


@kernel
def mirrored(scan, present):
    """Whether both sides are one leaf: then the last k left score as all but these left do."""
    if scan.sides.n_side[0] + scan.sides.n_side[1] > 2:
        return False
    weight = scan.cells.weight
    for k in range(1, present):
        weight[present + k] = weight[present - k]
    return True


@kernel
def levels_of_bits(scan, f):
    """As ``order_levels`` and ``score_candidates``, from the scores that are known already."""
    bits, of, value = scan.bits, scan.cells, scan.data.value
    first, second = scan.data.bits.first_value[f], scan.data.bits.second[f]
    present, order, scores, weight = bits.present[f], bits.order, bits.score, of.weight
    weight[0] = scan.sides.start[0]
    for k in range(present):
        of.level[k] = np.int64(value[f, order[first + k]])
        weight[k + 1] = scores[first + k]
    for k in range(present - 1):
        weight[present + k + 1] = scores[second + k]
    return present


@kernel
def score_candidates(scan, present):
    """Scores of the candidates.

    0 sends all right, k < present the first k left, present all left, and present + k the last k
    left, k from 1 on.
    """
    of, table = scan.cells, scan.tables.by_rows
    for backwards in range(2):
        if backwards == 1 and mirrored(scan, present):
            return
        score = all_right(scan, table, ROWS)
        if backwards == 0:
            of.weight[0] = score
        for k in range(present - backwards):
            at = present - 1 - k if backwards == 1 else k
            move_groups(scan, of.begin[at], of.stop[at], ROWS)
            of.weight[k + 1 + backwards * present] = score_of_sides(scan, table, ROWS)


# ------------------------------------------------------------------ probabilities


@kernel
def log_set(scan, n_levels, present, constant):
    """Log prior of a set, given the column; ``constant``: it parts no rows of the node."""
    if scan.model.kind == UNIT:
        return -log_subsets(n_levels)
    if constant:
        return -np.inf
    # the patterns of the levels that are there, and a fair coin for each other one
    return -log_subsets(present) - (n_levels - present) * math.log(2.0)


@kernel
def log_absent(n_levels, present, constant):
    """Log probability of the bits of levels that are not there, given a candidate.

    If those that are there all go to one side, not all of the others may go there too.
    """
    others = n_levels - present
    if not constant:
        return -others * math.log(2.0)
    return -math.log(2.0**others - 1.0)


@kernel
def masses_of_candidates(scan, n_levels, present):
    """Probabilities of the sets that a candidate stands for, by the prior of the rules.

    Of one that sends all levels to one side, and of one that parts them. Sets that part the rows
    but are no candidates are shared out among those that are.
    """
    if present == 0:
        return 1.0, 0.0
    constant, parting = 0.0, 1.0
    if scan.model.kind == UNIT:
        if n_levels > present:
            constant = math.exp(-log_subsets(n_levels) - log_absent(n_levels, present, True))
        if present > 1:
            absent = (n_levels - present) * math.log(2.0)
            parting = math.exp(log_subsets(present) + absent - log_subsets(n_levels))
    return constant, parting / (2.0 * max(present - 1, 1))


@kernel
def candidate_of(of, present, levels):
    """The candidate that a set has the pattern of, or NOT_ONE; and whether it parts no rows."""
    changes, first_left = 0, not has_level(levels, of.level[0])
    lefts = 0
    for k in range(present):
        left = not has_level(levels, of.level[k])
        lefts += 1 if left else 0
        if k > 0 and left == has_level(levels, of.level[k - 1]):
            changes += 1
    constant = lefts == 0 or lefts == present
    if changes > 1:
        return NOT_ONE, constant
    if constant or first_left:
        return lefts, constant
    return present + lefts, constant


@kernel
def log_density_of_set(scan, f, total, levels):
    """Log density of drawing a set, given the column."""
    of, n_levels = scan.cells, scan.data.kinds.levels[f]
    present = of.bounds[0]
    if present == 0:
        return log_set(scan, n_levels, 0, True)
    c, constant = candidate_of(of, present, levels)
    density = PRIOR_SHARE * math.exp(log_set(scan, n_levels, present, constant))
    if c != NOT_ONE and of.weight[c] > 0.0:
        share = (1.0 - PRIOR_SHARE) * of.weight[c] / total
        density += share * math.exp(log_absent(n_levels, present, constant))
    return math.log(density) if density > 0.0 else -np.inf


# ------------------------------------------------------------------ weighing and drawing


@kernel
def sweep_category(scan, f, feature, levels):
    """Weigh a column: (candidates, sum of weights, density of a set or 0)."""
    if has_keys(scan):
        present = levels_of_bits(scan, f)
    else:
        present = order_levels(scan, f)
        score_candidates(scan, present)
    return weigh_candidates(scan, f, present, feature, levels)


@kernel
def weigh_candidates(scan, f, present, feature, levels):
    """Weigh the candidates of a column, whose scores are there; see ``sweep_category``."""
    of, n_levels, power = scan.cells, scan.data.kinds.levels[f], scan.model.power[0]
    of.bounds[0] = present
    of.log_total[f] = -np.inf
    if scan.model.kind != UNIT and present < 2:
        return 0, 0.0, 0.0
    n = max(2 * present, 1)
    top = highest(of.weight, n)
    constant, parting = masses_of_candidates(scan, n_levels, present)
    weight = of.weight
    for c in range(n):
        weight[c] = exp_clamped(power * (weight[c] - top))
    none, every = weight[0], weight[present]
    for c in range(n):
        weight[c] *= parting
    weight[0], weight[present] = none * constant, every * constant
    total = sum_of(weight, n)
    of.log_total[f] = power * top + math.log(total)
    density = math.exp(log_density_of_set(scan, f, total, levels)) if f == feature else 0.0
    return n, total, density


@kernel
def draw_category(scan, f, total, rng):
    """A set from the candidates of a column, or from the prior: (threshold, set, log density)."""
    of, n_levels = scan.cells, scan.data.kinds.levels[f]
    present = of.bounds[0]
    here = NO_LEVELS
    for k in range(present):
        here |= np.uint64(1) << np.uint64(of.level[k])
    everywhere = all_levels(n_levels)
    if present == 0 or rng.random() < PRIOR_SHARE:
        levels = draw_levels(n_levels, rng)
        if scan.model.kind != UNIT:  # what parts the rows
            while levels & here == NO_LEVELS or levels & here == here:
                levels = draw_levels(n_levels, rng)
        return CATEGORY_THRESHOLD, levels, log_density_of_set(scan, f, total, levels)
    u = rng.random() * total
    c = -1
    for k in range(2 * present):
        if of.weight[k] > 0.0:
            c = k
            u -= of.weight[k]
            if u < 0.0:
                break
    right = NO_LEVELS
    for k in range(present):
        left = k < c if c <= present else k >= 2 * present - c
        if not left:
            right |= np.uint64(1) << np.uint64(of.level[k])
    while True:
        levels = right | (fair_levels(n_levels, rng) & ~here)
        if levels != NO_LEVELS and levels != everywhere:
            return CATEGORY_THRESHOLD, levels, log_density_of_set(scan, f, total, levels)
