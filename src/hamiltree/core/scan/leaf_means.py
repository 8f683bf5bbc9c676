"""Scans of regression with soft splits: rules by the likelihood itself, not as if splits were hard.

Where splits are wide, rows reach many leaves, and what is best for the rows of a node, taken alone,
is not what is best for the tree. The likelihood of a new rule, all leaf means integrated out, costs
no more than a hard scan, from two observations:

- The leaves that are not below the node stay as they are. With Q their columns of Phi, made
  orthogonal by the Cholesky factor of Phi'Phi + sigma^2 / mu_sd^2, and r = y - Q Q'y, the
  likelihood needs of the changed leaves only the products of their columns with r, Q and each other
  (``mean_scores``).
- A changed column is (1 - psi) a on the left of the rule and psi b on its right, where psi depends
  on one column of the data. So rows are put into bins of that column, and products are sums over
  bins of psi or its square times what was added up once (``mean_sums``).

Like all scans these only propose: bins, single precision, rows that hardly reach the node and the
score between the points at which it is computed are approximations. What they condition on, that is
the leaves outside the node and the subtrees on its sides, is the same forth and back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backend.records import Byte2, Float1, Float2, Int1, Record, Single1, Single2
from ..tree.kinds import MISSING_BELOW, Kinds

MEAN_BINS = 128
"""Of a column, but for its missing cells."""
PIECES = 16
"""Most cells of an interval between two points of a column; at most MEAN_BINS are such."""
SOFT_SHARE = 1.0 / 16.0
"""Scans are of this kind where h is at least so large a share of half the distance between the
tenth and the ninetieth percent of a column, for half of the columns of numbers, and as wide as a
bin."""
FLOATS = 1 << 19
"""Room for the sums by bin (2 MB), and for what rows reach (4 MB)."""
ROWS_AT_ONCE = 64

PSI, PROJECTED, ASIDE, REST, HERE, REACH = 0, 1, 2, 3, 4, 5
"""Vectors: scratch, three times; r; what reaches the node; and from REACH on, what reaches others,
see ``mean_sums``."""
OUTSIDE_NODE = np.int64(-1)
"""In the place of a node: all leaves but those below the one that is scanned are conditioned on."""


class LeafMeans(Record, role="scratch"):
    """What such a scan needs of the data, and scratch; of no rows where there are none."""

    root: Float1
    """[n]; 1 for rows, or the root of their weight; 0 for padding."""
    y: Float1
    """[n]; times ``root``."""
    narrow: float
    """The smallest h for such scans."""
    code: Byte2
    """[p, n]; bins of the rows."""
    first: Int1
    """[p + 1]; where the bins of a column begin among those of all."""
    centre: Float1
    """[bins]; mean of the values in a bin; those of a column ascend. Missing cells are in the last
    bin of their column."""
    is_on: Int1
    """[1]; whether the scan at hand is one of these."""
    frame: Int1
    """[1]; a node: only leaves outside its subtree are conditioned on. OUTSIDE_NODE: the node's."""
    n_others: Int1
    """[1]; leaves that are conditioned on in the scan at hand."""
    n_side: Int1
    """[2]; leaves of the subtrees that are kept on its sides, 0 for a new leaf."""
    rows: Float2
    """[vectors, n]"""
    near: Int1
    """[n]; rows that reach the node."""
    kept: Int1
    """[max_leaves + 1]; vectors of the leaves that the sides keep: left, then right; or HERE."""
    others: Int1
    """[max_leaves]; vectors of the leaves that are conditioned on."""
    gram: Float2
    """[max_leaves + 1, max_leaves + 1]"""
    terms: Single2
    """[ROWS_AT_ONCE, terms]; of some rows, see ``mean_sums``."""
    sums: Single1
    """[bins * terms]; their sums by bin."""
    merged: Single1
    """[(MEAN_BINS + 1) * terms]; sums of bins of a column that are near each other, see
    ``mean_columns``."""
    middle: Float1
    """[MEAN_BINS + 1]; mean of the values in these."""
    before: Single1
    """[(MEAN_BINS + 2) * terms]; sums over those before one."""
    moved: Single2
    """[3, terms]; all, what goes right, and the squares of what goes right."""
    linear: Float2
    """[max_leaves + 1, max_leaves + 1]; products of the changed columns with r and Q."""
    solved: Float1
    """[max_leaves + 1]"""
    known: Float2
    """[2, MEAN_BINS + 1]; scores at the points of a column, missing cells right or left."""
    goes_right: Float1
    """[MEAN_BINS + 1]; of each bin of a category, or of "is missing": 1 where it goes right."""


def make_leaf_means(
    columns: NDArray[np.float64],
    rows: NDArray[np.int32],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    kinds: Kinds,
    max_leaves: int,
) -> LeafMeans:
    """``columns`` [p, n]; n is 0 where there are no such scans."""
    p, n = columns.shape
    root = np.zeros(n)
    code = np.zeros((p, n), np.uint8)
    first = np.zeros(p + 1, np.int64)
    centres = [np.zeros(0)]
    narrow = np.inf
    if n:
        root[rows] = np.sqrt(weights[rows]) if len(weights) else 1.0
        narrow = _narrow(columns[:, rows], kinds)
        for f in range(p):
            bins, centre = _bins_of(columns[f, rows], kinds.levels[f], kinds.missing[f])
            code[f, rows] = bins
            centres.append(centre)
            first[f + 1] = first[f] + len(centre)
    n_bins = int(first[-1])
    # at most as many sums as a scan can need: with few bins there would be room for far more
    most = min(FLOATS // n_bins, (max_leaves + 2) ** 2 // 2) if n_bins else 0
    vectors = min(REACH + 2 * max_leaves + 1, FLOATS // n) if n else 0
    leaves = max_leaves + 1 if n else 0
    return LeafMeans(
        root=root,
        y=root * y if n else root,
        narrow=narrow,
        code=code,
        first=first,
        centre=np.concatenate(centres),
        is_on=np.zeros(1, np.int64),
        frame=np.full(1, OUTSIDE_NODE),
        n_others=np.zeros(1, np.int64),
        n_side=np.zeros(2, np.int64),
        rows=np.zeros((vectors, n)),
        near=np.zeros(n, np.int64),
        kept=np.zeros(leaves, np.int64),
        others=np.zeros(leaves, np.int64),
        gram=np.zeros((leaves, leaves)),
        terms=np.zeros((ROWS_AT_ONCE, most), np.float32),
        sums=np.zeros(n_bins * most, np.float32),
        merged=np.zeros((MEAN_BINS + 1) * most, np.float32),
        middle=np.zeros(MEAN_BINS + 1),
        before=np.zeros((MEAN_BINS + 2) * most, np.float32),
        moved=np.zeros((3, most), np.float32),
        linear=np.zeros((leaves, leaves)),
        solved=np.zeros(leaves),
        known=np.zeros((2, MEAN_BINS + 1)),
        goes_right=np.zeros(MEAN_BINS + 1),
    )


def _narrow(columns: NDArray[np.float64], kinds: Kinds) -> float:
    """The median over the columns of numbers, but no less than the width of a bin."""
    numbers = [x[x >= MISSING_BELOW] for x in columns[kinds.levels == 0]]
    wide = [np.subtract(*np.quantile(x, (0.9, 0.1))) for x in numbers if len(x)]
    return max(SOFT_SHARE * 0.5 * float(np.median(wide)), 1.0 / MEAN_BINS) if wide else np.inf


def _bins_of(
    x: NDArray[np.float64], n_levels: int, has_missing: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Levels, values where there are few, or bins of equal width; and the mean of each."""
    if n_levels:
        return x.astype(np.int64), np.arange(n_levels, dtype=np.float64)
    there = x >= MISSING_BELOW
    values = np.unique(x[there])
    if len(values) > MEAN_BINS:
        coarse = np.minimum((x[there] * MEAN_BINS).astype(np.int64), MEAN_BINS - 1)
        _, found = np.unique(coarse, return_inverse=True)
        values = np.bincount(found, weights=x[there]) / np.bincount(found)
    else:
        found = np.searchsorted(values, x[there])
    bins = np.full(len(x), len(values))
    bins[there] = found
    return bins, np.append(values, MISSING_BELOW) if has_missing else values
