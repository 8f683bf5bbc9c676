"""Kinds of columns: numbers, numbers with missing cells, and categories; and hard rules on them.

A column of numbers is on the unit interval, with MISSING in the place of missing cells. A category
has codes 0 .. levels - 1; its missing cells, if there are any, are a level of their own. A rule is
a column, a threshold, and a set of 64 bits, ``levels``:

- number: right when x > threshold. Where the column had missing cells in training, bit 0 says
  whether they go right; and a threshold of infinity is the rule "is missing": inf sends all
  numbers left, and the missing right; -inf the other way round. Where splits are soft, missing
  cells carry a number imputed from the other cells of their row, and a rule IMPUTED treats them as
  that number.
- category: the levels whose bits are set go right. Neither all nor none of them are.

A missing cell with an imputed number u is stored as IMPUTED_UNIT (1 + u), see ``imputed_number``.
A cell that training could say nothing about (missing where none was, or a level never seen) is
MISSING too, and goes both ways in equal parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import inlined, kernel
from ..backend.records import Int1, Record

MISSING = -1e35
"""A missing cell: a number far from any other, also in single precision, so that comparing and
sorting need no exceptions."""
IMPUTED_UNIT = -1e33
"""Missing cells with an imputed number are this times one plus that number, which is in [0, 1]."""
MISSING_BELOW = -1e32
"""What is smaller is missing: numbers outside the training range stop at 1e30."""
MAX_LEVELS = 64
"""Of a category, a missing cell's own level included: bits of a word."""
MISSING_RULE = 0.2
"""Prior probability of the rule "is missing" in a column with missing cells."""
NO_LEVELS = np.uint64(0)
MISSING_RIGHT = np.uint64(1)
IMPUTED = np.uint64(2)
"""In the place of a side: missing cells go where their imputed numbers go."""
IMPUTED_RULE = 0.5
"""Prior probability of IMPUTED among the cuts of a column whose missing cells are imputed; the
other half is shared by the two sides."""
NOT_IMPUTED, WITH_IMPUTED = 1, 2
"""Entries of ``Kinds.missing``."""
CATEGORY_THRESHOLD = 0.5
"""Of splits on categories, which have none."""


class Kinds(Record):
    """What each column is; shared by all chains."""

    special: bool
    """Whether any column is more than numbers without holes."""
    levels: Int1
    """[p]; levels of a category, 0 for a number."""
    missing: Int1
    """[p]; of numbers that have missing cells in training WITH_IMPUTED or NOT_IMPUTED; else 0."""


def make_kinds(levels: Sequence[int], missing: Sequence[int]) -> Kinds:
    """``missing`` says of numbers whether some training cells are missing, and are imputed."""
    n_levels = np.array(levels, np.int64)
    holes = np.where(n_levels > 0, 0, np.array(missing, np.int64))
    if (n_levels > MAX_LEVELS).any():
        raise ValueError(f"a category has at most {MAX_LEVELS} levels")
    return Kinds(special=bool((n_levels > 0).any() or holes.any()), levels=n_levels, missing=holes)


def coded_kinds(kinds: Kinds | None) -> NDArray[np.int64] | None:
    """[p]; levels of a category; for numbers 0, or minus what ``Kinds.missing`` says.

    None where no column is special.
    """
    if kinds is None or not kinds.special:
        return None
    return np.where(kinds.missing > 0, -kinds.missing, kinds.levels)


def decoded_kinds(coded: NDArray[np.int64]) -> Kinds:
    """What ``coded_kinds`` is the code of."""
    return make_kinds(np.maximum(coded, 0).tolist(), np.maximum(-coded, 0).tolist())


def plain_kinds(p: int) -> Kinds:
    """Numbers without missing cells."""
    return make_kinds([0] * p, [0] * p)


@kernel
def is_special(kinds, f):
    """Whether a column is more than numbers without holes."""
    return kinds.special and (kinds.levels[f] > 0 or kinds.missing[f] > 0)


@inlined
def has_level(levels, x):
    """Whether the level of a category is among those that go right."""
    return (levels >> np.uint64(x)) & np.uint64(1) != np.uint64(0)


@inlined
def imputed_number(x):
    """What a missing cell was imputed as, from the way it is stored."""
    return x * (1.0 / IMPUTED_UNIT) - 1.0


@kernel
def sends_right(kinds, f, x, threshold, levels):
    """Where a cell of training goes, as if splits were hard."""
    if kinds.levels[f] > 0:
        return has_level(levels, x)
    if x < MISSING_BELOW:
        return imputed_number(x) > threshold if levels == IMPUTED else levels != NO_LEVELS
    return x > threshold


@kernel
def has_threshold(kinds, f, threshold):
    """Whether a rule has a threshold that can move."""
    if not kinds.special:
        return True
    return kinds.levels[f] == 0 and not math.isinf(threshold)


# ------------------------------------------------------------------ sets of levels


@kernel
def all_levels(n):
    """The set of n levels."""
    return ~NO_LEVELS if n == MAX_LEVELS else (np.uint64(1) << np.uint64(n)) - np.uint64(1)


@kernel
def log_subsets(n):
    """Log of how many sets of n levels there are that are neither empty nor full."""
    return n * math.log(2.0) + math.log1p(-(2.0 ** (1 - n)))


@kernel
def fair_levels(n, rng):
    """Any set of n levels, all alike."""
    levels = NO_LEVELS
    for place in range(n):
        if rng.random() < 0.5:
            levels |= np.uint64(1) << np.uint64(place)
    return levels


@kernel
def draw_levels(n, rng):
    """A set of n levels that is neither empty nor full, all alike."""
    while True:
        levels = fair_levels(n, rng)
        if levels != NO_LEVELS and levels != all_levels(n):
            return levels


# ------------------------------------------------------------------ the prior of special rules


@kernel
def log_special_rule(kinds, f, threshold, levels, log_threshold):
    """Log prior of a rule on a special column, given the column.

    ``log_threshold`` is the log density of its threshold. With MISSING_RULE the rule is "is
    missing"; the side of the missing is a fair coin in either case, unless a cut is IMPUTED.
    """
    if kinds.levels[f] > 0:
        return -log_subsets(kinds.levels[f])
    if math.isinf(threshold):
        return math.log(0.5 * MISSING_RULE)
    return math.log(probability_of_side(kinds, f, levels) * (1.0 - MISSING_RULE)) + log_threshold


@kernel
def probability_of_side(kinds, f, levels):
    """Prior probability of where a cut sends missing cells."""
    if kinds.missing[f] != WITH_IMPUTED:
        return 0.5
    return IMPUTED_RULE if levels == IMPUTED else 0.5 * (1.0 - IMPUTED_RULE)


@kernel
def draw_side(kinds, f, rng):
    """Where a cut sends missing cells."""
    if kinds.missing[f] == WITH_IMPUTED and rng.random() < IMPUTED_RULE:
        return IMPUTED
    return MISSING_RIGHT if rng.random() < 0.5 else NO_LEVELS


@kernel
def draw_special_rule(kinds, f, threshold, rng):
    """A rule on a special column: (threshold, levels), from a threshold drawn by its prior."""
    if kinds.levels[f] > 0:
        return CATEGORY_THRESHOLD, draw_levels(kinds.levels[f], rng)
    levels = draw_side(kinds, f, rng)
    if rng.random() < MISSING_RULE:
        if levels == IMPUTED:
            levels = MISSING_RIGHT if rng.random() < 0.5 else NO_LEVELS
        threshold = np.inf if levels == MISSING_RIGHT else -np.inf
    return threshold, levels
