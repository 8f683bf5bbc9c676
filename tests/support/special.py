"""Data with missing cells and categories as the core has them, and random trees on them."""

from __future__ import annotations

import numpy as np

from hamiltree.core.tree.kinds import IMPUTED_UNIT, MISSING, Kinds, make_kinds
from hamiltree.core.tree.nodes import LEAF, Tree, empty_tree, grow, n_leaves, nth_kind
from hamiltree.core.tree.priors import TreePrior, draw_rule

from ..reference.special import IMPUTED, Column, Rule

COLUMNS: list[Column] = [(0, False), (0, True), (3, False), (5, False)]
"""Numbers, numbers with holes, and two categories."""
IMPUTING: list[Column] = [(0, False), (0, IMPUTED), (3, False), (0, IMPUTED), (0, True)]
"""Numbers, two columns with holes that are imputed, a category, and holes that are not."""


def random_rows(rng: np.random.Generator, n: int, columns: list[Column] = COLUMNS) -> np.ndarray:
    """[n, columns]; numbers of which some are equal, or are missing, codes of categories."""
    X = np.empty((n, len(columns)))
    for f, (levels, missing) in enumerate(columns):
        if levels:
            X[:, f] = rng.permutation(np.arange(n) % levels)
            continue
        X[:, f] = rng.uniform(0.05, 0.95, n).round(1 if f % 2 else 6)
        X[:2, f] = 0.0, 1.0
        if missing:
            gone = rng.choice(np.arange(2, n), n // 4, replace=False)
            X[gone, f] = -1 - rng.uniform(size=len(gone)) if missing == IMPUTED else np.nan
    return X


def as_columns(X: np.ndarray) -> np.ndarray:
    """[columns, rows] with the core's mark of a missing cell."""
    stored = np.where(X < 0, IMPUTED_UNIT * -X, X)
    return np.ascontiguousarray(np.where(np.isnan(X), MISSING, stored).T)


def as_rows(columns: np.ndarray) -> np.ndarray:
    """The rows that such columns, of either precision, are of."""
    cells = np.array(columns.T, np.float64)
    cells[cells < 0.5 * MISSING] = np.nan
    return np.where(cells < 0, cells / -IMPUTED_UNIT, cells)


def kinds_of(columns: list[Column] = COLUMNS) -> Kinds:
    return make_kinds([levels for levels, _ in columns], [missing for _, missing in columns])


def random_special_tree(
    rng: np.random.Generator, prior: TreePrior, n_splits: int, max_leaves: int = 12
) -> Tree:
    """Rules from the prior."""
    tree = empty_tree(max_leaves, 0)
    for _ in range(n_splits):
        node = nth_kind(tree, LEAF, int(rng.integers(n_leaves(tree))))
        grow(tree, node)
        draw_rule(prior, tree, node, rng)
    tree.value[:] = rng.normal(size=tree.value.size)
    tree.sigma[0] = rng.uniform(0.3, 1.5)
    return tree


def set_of(bits: int) -> frozenset[int]:
    return frozenset(k for k in range(64) if (int(bits) >> k) & 1)


def rule_at(tree: Tree, i: int) -> Rule:
    return int(tree.feature[i]), float(tree.threshold[i]), set_of(tree.levels[i])


def phi_of(tree: Tree, psi: dict[int, np.ndarray], n: int) -> np.ndarray:
    """[rows, leaves] from P(right) at each internal node."""
    reach = {0: np.ones(n)}
    out = []
    for i in range(int(tree.n_nodes[0])):
        if tree.size[i] == 1:
            out.append(reach[i])
            continue
        reach[i + 1] = reach[i] * (1 - psi[i])
        reach[i + 1 + int(tree.size[i + 1])] = reach[i] * psi[i]
    return np.column_stack(out)
