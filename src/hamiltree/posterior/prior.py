"""Trees from the prior of a fitted model, and what they predict: prior predictive checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.predict import tree_predictions
from ..core.tree.kinds import coded_kinds
from ..methods.prior_trees import PriorTree, RuleDraws
from .draws import Draws
from .predictions import Seed, sampled_probabilities

if TYPE_CHECKING:
    from .posterior import Posterior

MOST_TRIES = 1000
"""For each tree, on average; the limits of a tree's size may have too little prior mass."""


def sample_prior(
    posterior: Posterior,
    X: ArrayLike,
    n_draws: int = 1000,
    seed: Seed = None,
    *,
    observations: bool = False,
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """Predictions of trees drawn from the prior, before any target is seen.

    Parameters and results are those of ``sample_prior`` of the estimators; ``seed`` may also be a
    NumPy Generator. CGM, WU and SMC need the training rows, on which their rules depend.
    """
    rng = np.random.default_rng(seed)
    drawn = prior_trees(posterior, n_draws, rng)
    out: NDArray[Any]
    if observations:
        out = drawn.sample_predictive(X, rng, n_jobs=n_jobs)[0]
    elif not drawn.n_classes:
        out = drawn.predict_draws(X, n_jobs=n_jobs)[0]
    else:
        columns = drawn.preprocessing.to_unit(X)
        values = sampled_probabilities(drawn, rng)
        out = tree_predictions(drawn.draws.forest, values, columns, n_jobs)
    return out


def prior_trees(posterior: Posterior, n: int, rng: np.random.Generator) -> Posterior:
    """``n`` trees of the prior as the draws of one chain; leaves have no rows in them."""
    if n < 1:
        raise ValueError(f"n_draws must be at least 1, got {n}")
    configuration, scale = posterior.configuration, posterior.preprocessing
    method, p, kinds = configuration.method, len(scale.used), scale.kinds
    columns = np.empty((p, 0))
    if method.conjugate_leaves:
        columns = scale.to_unit(posterior.data("sample_prior").X)
    draws_of_rules = RuleDraws(method, columns, kinds, rng)
    trees: list[PriorTree] = []
    tries = 0
    while len(trees) < n:
        tries += 1
        if tries > MOST_TRIES * n:
            raise ValueError(
                f"the prior hardly ever has trees of {method.min_leaves} to "
                f"{configuration.max_leaves} leaves: in {tries - 1} attempts there were "
                f"{len(trees)}"
            )
        tree = method.prior_tree(configuration, draws_of_rules)
        if tree is not None:
            trees.append(tree)
    leaves = np.array([tree.n_leaves for tree in trees])
    if posterior.n_classes:
        leaf, sigma = np.zeros((leaves.sum(), posterior.n_classes)), np.full(n, np.nan)
    else:
        parts = [method.prior_leaves(int(count), rng) for count in leaves]
        leaf = np.concatenate([part for part, _ in parts])
        sigma = np.array([own for _, own in parts])
    h = posterior.draws.h
    if posterior.draws.h_learned:
        h = method.prior_h(n * h.shape[1], rng).reshape(n, -1)
    rules = [rule for tree in trees for rule in tree.rules]
    coded = coded_kinds(kinds)
    levels = np.array([rule.levels for rule in rules], np.uint64)
    oblique = posterior.draws.split_weights.shape[1] > 0
    unknown = np.full((1, n), np.nan)
    draws = Draws(
        n_chains=1,
        n_draws=n,
        node_offset=np.cumsum([0, *(len(tree.size) for tree in trees)]),
        size=np.array([size for tree in trees for size in tree.size], np.int32),
        feature=np.array([rule.feature for rule in rules], np.int32),
        threshold=np.array([rule.threshold for rule in rules], np.float64),
        split_weights=np.array([rule.weights for rule in rules if oblique]).reshape(
            len(rules), p if oblique else 0
        ),
        leaf=leaf,
        h=h,
        n_leaves=leaves[None],
        depth=np.array([[_depth(tree.size) for tree in trees]]),
        log_likelihood=unknown,
        log_posterior=unknown,
        sigma=sigma[None],
        weights_of_draws=np.full((1, n), 1 / n),
        levels=None if coded is None else levels,
        kinds=coded,
    )
    info = posterior.info.of_other_draws()
    return posterior._with(draws=draws, info=info, monitor=None)


def _depth(sizes: list[int]) -> int:
    ends: list[int] = []  # where the subtrees end that the node is in
    deepest = 0
    for node, size in enumerate(sizes):
        while ends and ends[-1] <= node:
            ends.pop()
        deepest = max(deepest, len(ends))
        if size > 1:
            ends.append(node + size)
    return deepest
