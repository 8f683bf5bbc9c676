"""Draws from the priors over hard trees, top down, in plain Python.

CGM's prior is a recipe and is followed; WU's is one up to the condition that no leaf is empty, so
its trees are drawn without it and thrown away where they fail. ``HardPrior`` as for enumeration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .enumerate_hard import HardPrior

Array = NDArray[np.float64]
Tree = tuple[()] | tuple[int, float, "Tree", "Tree"]
"""A leaf is empty; a split is (feature, threshold, left, right), right iff x > threshold."""


def draw_tree(rng: np.random.Generator, X: Array, prior: HardPrior) -> Tree:
    """One tree with min_leaves to max_leaves leaves."""
    while True:
        tree: Tree | None
        if prior.kind == "wu":
            tree = _pinball(rng, X.shape[1], prior, 1 + int(rng.poisson(prior.expected_splits)))
            if len(np.unique(leaf_of(tree, X))) < n_leaves(tree):
                continue
        else:
            tree = _branch(rng, X, prior, np.arange(len(X)), 0)
        if prior.min_leaves <= n_leaves(tree) <= prior.max_leaves:
            return tree


def _pinball(rng: np.random.Generator, p: int, prior: HardPrior, m: int) -> Tree:
    if m == 1:
        return ()
    left = 1 + int(rng.binomial(m - 2, prior.left_share))
    f = int(rng.choice(p, p=_weights(p, prior)))
    tau = float(rng.beta(*prior.tau))
    return f, tau, _pinball(rng, p, prior, left), _pinball(rng, p, prior, m - left)


def _branch(
    rng: np.random.Generator, X: Array, prior: HardPrior, rows: NDArray[np.int64], depth: int
) -> Tree:
    split = min(prior.alpha_split * (1 + depth) ** -prior.beta_split, 1 - 1e-6)
    weight = _weights(X.shape[1], prior)
    if prior.kind != "uniform01":
        weight = weight * [len(np.unique(x)) > 1 for x in X[rows].T]
    if weight.sum() == 0 or rng.random() >= split:
        return ()
    f = int(rng.choice(len(weight), p=weight / weight.sum()))
    x = X[rows, f]
    if prior.kind == "uniform01":
        tau = float(rng.beta(*prior.tau))
    elif prior.kind == "gap":
        tau = float(rng.uniform(x.min(), x.max()))
    else:  # a value but the largest; the library writes it midway to the column's next one
        value = rng.choice(np.unique(x)[:-1])
        tau = float((value + X[X[:, f] > value, f].min()) / 2)
    sides = [_branch(rng, X, prior, rows[side], depth + 1) for side in (x <= tau, x > tau)]
    return f, tau, sides[0], sides[1]


def _weights(p: int, prior: HardPrior) -> Array:
    weight = np.ones(p) if prior.features is None else np.array(prior.features)
    return weight / weight.sum()


def n_leaves(tree: Tree) -> int:
    return n_leaves(tree[2]) + n_leaves(tree[3]) if tree else 1


def depth(tree: Tree) -> int:
    return 1 + max(depth(tree[2]), depth(tree[3])) if tree else 0


def splits(tree: Tree) -> list[tuple[int, float]]:
    """(feature, threshold) in preorder."""
    return [(tree[0], tree[1]), *splits(tree[2]), *splits(tree[3])] if tree else []


def leaf_of(tree: Tree, X: Array) -> NDArray[np.int64]:
    """[n] number, from left to right, of the leaf of each row."""
    if not tree:
        return np.zeros(len(X), np.int64)
    f, tau, left, right = tree
    return np.where(X[:, f] > tau, n_leaves(left) + leaf_of(right, X), leaf_of(left, X))
