"""Every hard tree on tiny data with missing cells and categories, for the priors of CGM and WU.

A split's code, ``100 * column + what``: of a category 1 + the bits of its set; of numbers with
missing cells 2 (cell + 1) + side + 1, or 60 + side for "is missing"; other numbers as in
``enumerate_hard``. Side 1: missing cells go right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .enumerate_hard import LEAF, Array, Label, Rows, Toy
from .special import IS_MISSING, Column, bits, psi_of, subsets


@dataclass(frozen=True)
class SpecialToy(Toy):
    """X has NaN where cells are missing, and codes of categories; no weights of features."""

    columns: tuple[Column, ...] = ()

    @cached_property
    def levels(self) -> list[Array]:
        return [np.unique(x[~np.isnan(x)]) for x in self.X.T]

    def rules_at(self, rows: Rows) -> Iterator[tuple[int, int, float, Rows, Rows]]:
        kind = self.prior.kind
        found = [list(self._in_column(f, rows)) for f in range(len(self.columns))]
        able = sum(1 for rules in found if rules)
        for f, rules in enumerate(found):
            for what, mass, left, right in rules:
                share = 1 / len(self.columns) if kind in ("uniform01", "wu") else 1 / able
                yield f, what, share * mass, left, right

    def _in_column(self, f: int, rows: Rows) -> Iterator[tuple[int, float, Rows, Rows]]:
        """(code - 1, prior mass given the column, left, right)"""
        kind, (levels, holes) = self.prior.kind, self.columns[f]
        everywhere = kind == "uniform01"
        x = self.X[:, f]
        if levels:
            here = {int(x[i]) for i in rows}
            for s in subsets(list(range(levels))):
                left, right = self._parted(f, 0.5, s, rows)
                mass = 1 / (2**levels - 2)
                if kind in ("uniform", "gap") and len(here) > 1:
                    mass = 1 / ((2 ** len(here) - 2) * 2 ** (levels - len(here)))
                if everywhere or (left and right):
                    yield bits(s), mass, left, right
            return
        there = sorted({x[i] for i in rows if not np.isnan(x[i])})
        gone = [i for i in rows if np.isnan(x[i])]
        cuts = list(self._cuts(f, there))
        parted = bool(gone) and bool(there)
        share = IS_MISSING if holes else 0.0
        if kind in ("uniform", "gap"):
            share = (IS_MISSING if cuts else 1.0) if parted else 0.0
        for side in (0, 1) if holes else (0,):
            s = frozenset({0}) if side else frozenset()
            half = 0.5 if holes else 1.0
            for cell, threshold, mass in cuts:
                left, right = self._parted(f, threshold, s, rows)
                if everywhere or (left and right):
                    what = 2 * (cell + 1) + side if holes else cell
                    yield what, half * (1 - share) * mass, left, right
            if holes and share > 0:
                left, right = self._parted(f, np.inf if side else -np.inf, s, rows)
                if everywhere or (left and right):
                    yield 59 + side, half * share, left, right

    def _cuts(self, f: int, there: list[float]) -> Iterator[tuple[int, float, float]]:
        """(cell, a threshold in it, mass of the cell given that the rule has a threshold)"""
        kind, levels = self.prior.kind, self.levels[f]
        edges = [0.0, *levels, 1.0]
        for cell in range(-1, len(levels)):
            low, high = edges[cell + 1], edges[cell + 2]
            middle = (low + high) / 2
            if kind in ("uniform01", "wu"):
                if high > low:
                    yield cell, middle, high - low
                continue
            if len(there) < 2 or not there[0] <= low < there[-1] or cell < 0:
                continue
            if kind == "gap":
                yield cell, middle, (high - low) / (there[-1] - there[0])
            elif levels[cell] in there:
                yield cell, middle, 1 / (len(there) - 1)

    def _parted(self, f: int, threshold: float, s: frozenset[int], rows: Rows):
        X = self.X[list(rows)]
        goes = psi_of((f, threshold, s), X, list(self.columns), 0.0) if rows else []
        left = tuple(i for i, right in zip(rows, goes, strict=True) if right == 0)
        return left, tuple(i for i, right in zip(rows, goes, strict=True) if right == 1)


def labels_of_special(
    toy: SpecialToy, node_offset: NDArray[np.int64], size: NDArray[np.int32],
    feature: NDArray[np.int32], threshold: Array, levels: NDArray[np.uint64],
) -> list[Label]:  # fmt: skip
    """Labels of flat draws, in order."""
    what = np.empty(len(feature), np.int64)
    for f, (n_levels, holes) in enumerate(toy.columns):
        mine = feature == f
        if n_levels:
            what[mine] = levels[mine]
            continue
        cell = np.searchsorted(toy.levels[f], threshold[mine], side="right") - 1
        side = levels[mine].astype(np.int64)
        inside = 2 * (cell + 1) + side if holes else cell
        what[mine] = np.where(np.isinf(threshold[mine]), 59 + side, inside)
    code = np.full(len(size), LEAF)
    code[size > 1] = 100 * feature + what + 1
    return [tuple(code[a:b].tolist()) for a, b in itertools.pairwise(node_offset)]
