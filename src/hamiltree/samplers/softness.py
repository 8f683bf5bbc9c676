"""h as one number per used column: as given, or chosen from the spacing of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.scan.data import SHARED
from ..core.tree.kinds import MISSING_BELOW, Kinds

if TYPE_CHECKING:
    from ..methods.base import Configuration

H_RANGE = (1e-4, 0.5)
"""Where the prior of a learned h has all its mass."""
SHARE_OF_GAP = 1 / 8
"""A cut midway between two typical neighbours then sends 98 % of each its own way."""
SMALLEST, LARGEST = 0.001, 0.05
"""Where values are dense h is a thousandth of the range, and where they are few a twentieth."""
SHARED_GAP = 3.0
"""Scans for the likelihood that is normalised over labels see softness in columns whose values are
nearer to each other than so many h, and shared by several rows. Elsewhere hard counts are cheaper,
and nearer to it than soft ones: the label says to which side a row near a cut belongs."""
NOISE = 1e-9
"""Values that are closer, as a share of the range, differ by rounding."""


def softness_of(
    columns: NDArray[np.float64], configuration: Configuration[Any], kinds: Kinds | None = None
) -> NDArray[np.float64]:
    """[p]; softness of each column, or where learning it starts; ``columns`` [p, n], 0 to 1."""
    p = len(columns)
    if isinstance(configuration.h, str):
        if configuration.h == "auto":
            return auto_softness(columns, configuration.method.h_by_feature, kinds)
        return np.full(p, configuration.method.h_prior[0])
    return np.broadcast_to(np.asarray(configuration.h, np.float64), p).copy()


def first_softness_of(
    final: NDArray[np.float64], configuration: Configuration[Any]
) -> NDArray[np.float64]:
    """[p]; softness at the start of warm-up."""
    if configuration.method.h_init is None:
        return final.copy()
    return np.broadcast_to(np.asarray(configuration.method.h_init, np.float64), len(final)).copy()


def auto_softness(
    columns: NDArray[np.float64], by_feature: bool, kinds: Kinds | None = None
) -> NDArray[np.float64]:
    """[p]; an eighth of the median gap between neighbouring distinct values, within limits.

    One for all columns is the median of theirs, those of two values left aside, and categories:
    these say nothing about how exact a number is.
    """
    gaps = np.array([_median_gap(column[column > MISSING_BELOW]) for column in columns])
    if kinds is not None:
        gaps[kinds.levels > 0] = 1.0
    own = np.clip(SHARE_OF_GAP * gaps, SMALLEST, LARGEST)
    if by_feature:
        return own
    telling = own[gaps < 1.0]
    return np.full(len(own), np.median(telling) if len(telling) else LARGEST)


def _median_gap(column: NDArray[np.float64]) -> float:
    gaps = np.diff(np.unique(column))
    gaps = gaps[gaps > NOISE]
    return float(np.median(gaps)) if len(gaps) else 1.0


def softness_in_scans(
    h: NDArray[np.float64], levels: NDArray[np.int64], n_rows: int
) -> NDArray[np.float64]:
    """[p]; what proposals take for h, see ``SHARED_GAP``; ``levels``: distinct values, [p]."""
    shared = n_rows >= SHARED * levels
    return np.where(shared & (SHARED_GAP * h * levels > 1.0), h, 0.0)
