"""Random trees and models for the tests of the compiled core."""

from __future__ import annotations

import numpy as np

from hamiltree.core.soft.data import (
    ADJOINT,
    CLASSES,
    LABELS,
    Work,
    aligned_zeros,
    make_data,
    make_leaf_prior,
    make_work,
)
from hamiltree.core.soft.target import Model, make_model
from hamiltree.core.tree.nodes import LEAF, Tree, empty_tree, grow, n_leaves, nth_kind
from hamiltree.core.tree.priors import make_tree_prior

from ..reference.model import Prior, from_flat
from ..reference.model import Tree as ReferenceTree

MAX_LEAVES = 12
PRIOR = Prior(
    alpha_split=0.9,
    beta_split=1.5,
    max_leaves=MAX_LEAVES,
    tau=(1.3, 2.0),
    weight=1.4,
    classes=0.7,
    mu=(0.3, 1.2),
    sigma=(1.5, 1.3),
)


def random_tree(rng: np.random.Generator, n_features: int, n_splits: int, oblique: bool) -> Tree:
    tree = empty_tree(MAX_LEAVES, n_features if oblique else 0)
    for _ in range(n_splits):
        node = nth_kind(tree, LEAF, int(rng.integers(n_leaves(tree))))
        grow(tree, node)
        tree.threshold[node] = rng.uniform(0.05, 0.95)
        if oblique:
            tree.weights[node] = rng.dirichlet(np.ones(n_features))
        else:
            tree.feature[node] = rng.integers(n_features)
    tree.value[:] = rng.normal(size=tree.value.size)
    tree.sigma[0] = rng.uniform(0.3, 1.5)
    return tree


def random_chain(rng: np.random.Generator, n_features: int, n_splits: int) -> Tree:
    """Each split but the last has one leaf, left or right: as deep as a tree of its size can be."""
    tree = empty_tree(MAX_LEAVES, 0)
    node = 0
    for _ in range(n_splits):
        grow(tree, node)
        tree.threshold[node] = rng.uniform(0.05, 0.95)
        tree.feature[node] = rng.integers(n_features)
        node += int(rng.integers(1, 3))  # both children are leaves: i + 1 and i + 2
    tree.sigma[0] = rng.uniform(0.3, 1.5)
    return tree


def to_reference(tree: Tree) -> ReferenceTree:
    n = int(tree.n_nodes[0])
    size = tree.size[:n]
    inner = size > 1
    weights = tree.weights[:n][inner] if tree.weights.shape[1] else None
    return from_flat(
        size.tolist(),
        tree.feature[:n][inner].tolist(),
        tree.threshold[:n][inner].tolist(),
        weights,
        tree.value[:n][~inner].tolist(),
    )


def random_model(
    rng: np.random.Generator,
    family: int,
    tree: Tree,
    *,
    n_rows: int,
    n_features: int,
    h: float | np.ndarray,
    power: float = 1.0,
    centred: bool = False,
    weights: np.ndarray | None = None,
) -> tuple[Model, Work, np.ndarray, np.ndarray]:
    """Model, scratch, and the data as [rows, features] and y in the order given.

    ``centred``: log ratios for the weights, and thresholds counted from the middle of the data.
    """
    X = rng.uniform(size=(n_rows, n_features))
    X[0], X[1] = 0.0, 1.0  # the ends of the range, where small h saturates
    n_classes = 3 if family in (CLASSES, LABELS) else 0
    y = rng.integers(0, 3, n_rows) if n_classes else rng.normal(size=n_rows)
    data = make_data(np.ascontiguousarray(X.T), y, n_classes, weights)
    work = make_work(data, MAX_LEAVES, n_classes, tree.weights.shape[1], family)
    prior = make_tree_prior(
        n_features,
        alpha_split=PRIOR.alpha_split,
        beta_split=PRIOR.beta_split,
        min_leaves=PRIOR.min_leaves,
        max_leaves=PRIOR.max_leaves,
        tau_prior=PRIOR.tau,
        feature_prior=None,
        weight_prior=PRIOR.weight,
    )
    leaf_prior = make_leaf_prior(np.full(n_classes, 0.7), PRIOR.mu, PRIOR.sigma)
    softness = np.broadcast_to(np.asarray(h, float), n_features).copy()
    centre = rng.uniform(0.2, 0.8, n_features) if centred else np.zeros(0)
    model = make_model(family, data, prior, leaf_prior, softness, power, centre, work)
    if family == LABELS:
        model.leaves.p[:] = rng.dirichlet(np.ones(n_classes), size=MAX_LEAVES)
    return model, work, X, y


def with_room(work: Work, n_routed: int) -> Work:
    """The same scratch with room to keep the routing of so many nodes."""
    stride = int(ADJOINT) + work.n_adjoints + 2 * n_routed
    rows = aligned_zeros(stride, work.rows.shape[1])
    return work._replace(rows=rows, stride=stride, n_routed=n_routed)
