"""Rules of SMC on special columns: categories, and numbers with missing cells.

Their prior is CGM's GAP, and draws from it are CGM's (``hard.special_rules``): the ways to part the
levels that rows of the node have are alike, and each other level goes right by a fair coin; "is
missing" has MISSING_RULE where both that and a cut part the rows, cuts are uniform from the
smallest number of the node to the largest, and the side of missing cells is a fair coin.

Kernels that split nodes take a ``SpecialRules``, or None where no column is special; what handles
such columns is then not even compiled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import kernel
from ..backend.records import Record
from ..hard.partition import HardData, make_hard_data, present_levels
from ..hard.rules import RuleModel, RuleWork, make_rule_work
from ..hard.special_rules import draw_special_at, log_special_at
from ..scan.data import GAP
from ..tree.kinds import MISSING_BELOW, NO_LEVELS, is_special, sends_right
from ..tree.priors import TreePrior


class SpecialRules(Record):
    """What rules on special columns need beside the table; shared by all islands."""

    rules: RuleModel
    data: HardData
    """Columns and their kinds alone."""
    work: RuleWork
    """Other priors use it, GAP does not."""


def make_special_rules(columns: NDArray[np.float64], prior: TreePrior) -> SpecialRules | None:
    """None where no column is special."""
    if not prior.kinds.special:
        return None
    nothing = np.zeros(0)
    data = make_hard_data(columns, nothing, np.zeros(0, np.int64), coded=False, kinds=prior.kinds)
    rules = RuleModel(kind=GAP, prior=prior, feature_weight=np.exp(prior.log_feature))
    return SpecialRules(rules=rules, data=data, work=make_rule_work(data))


@kernel
def has_missing(table, pool, node, f):
    """Whether cells of a column are missing in a node: they have the lowest rank."""
    return table.value[table.first[f] + pool.lowest[node, f]] < MISSING_BELOW


@kernel
def levels_in(special, pool, node, f):
    """The levels of a category that rows of a node have: a set, and how many."""
    begin = pool.start[node]
    end = begin + pool.n_rows[node]
    return present_levels(special.data.columns[f], pool.rows, begin, end)


@kernel
def goes_left(special, ranks, f, row, cut, threshold, levels):
    """Whether a rule sends a row left; ``cut`` is the last rank that does in other columns."""
    if special is not None and is_special(special.data.kinds, f):
        x = special.data.columns[f, row]
        return not sends_right(special.data.kinds, f, x, threshold, levels)
    return ranks[f, row] <= cut


@kernel
def key_of(special, table, pool, node, f, n_left, levels):
    """What tells apart the ways in which rules on a column can part the rows of a node."""
    if special is not None:
        if special.data.kinds.levels[f] > 0:
            here, _ = levels_in(special, pool, node, f)
            return levels & here
        if has_missing(table, pool, node, f):
            return np.uint64(2 * n_left + (1 if levels != NO_LEVELS else 0))
    return np.uint64(n_left)


@kernel
def draw_special(special, pool, node, f, rng):
    """A rule of the prior on a special column that varies in a node: (threshold, levels)."""
    begin = pool.start[node]
    end = begin + pool.n_rows[node]
    threshold, levels, _ = draw_special_at(
        special.rules, special.data, special.work, pool.rows, begin, end, f, rng
    )
    return threshold, levels


@kernel
def log_special(special, pool, node, f, threshold, levels):
    """Log prior of a rule on a special column, given the column."""
    begin = pool.start[node]
    end = begin + pool.n_rows[node]
    return log_special_at(
        special.rules, special.data, special.work, pool.rows, begin, end, f, threshold, levels
    )
