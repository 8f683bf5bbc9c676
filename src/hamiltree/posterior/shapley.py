"""Shapley values of the features of one row, tree by tree, against background rows.

The prediction of a tree is a sum over its leaves of the leaf's value times the probability of
reaching it, and that is a product of factors, one per column asked about on the way. With the
columns of a set S from the row and the others from a background row, the mean over the background
is the product of the row's own factors in S times the background's mean product of the others. The
latter, one number per leaf and set of columns, are all that is needed to know of the background:
``background_means``. The sum over all sets is exact.

Splits on weighted sums of all columns (HMC-DFI) have no such factors: there, and where a way asks
about more than ``MOST_COLUMNS`` columns, random orders of the columns estimate the values.
"""

from __future__ import annotations

from functools import cache
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.predict import tree_predictions
from ..utils.arrays import FloatArray, IntArray, evenly

if TYPE_CHECKING:
    from .posterior import Posterior

BACKGROUND = 256
"""Training rows that effects start from, evenly spaced."""
SAMPLED = 64
"""The same where orders are sampled; each row with two orders of the columns."""
MOST_COLUMNS = 12
"""On the way to one leaf, for exact values: there are two to this power sets of them."""

Way = list[tuple[int, int]]
"""To a leaf: the splits, in preorder of the tree's splits, each with 0 for yes and 1 for no."""


def shapley_values(
    trees: Posterior, row: FloatArray, label: int, n_jobs: int | None = None
) -> tuple[IntArray, FloatArray, float]:
    """Columns of the input that are used; [tree, column] Shapley values; the mean they start from.

    ``trees`` is one chain of equal weights with its training data, ``row`` [all columns] coded,
    ``label`` the code of the class whose probability is explained (regression: anything). Each
    tree's values add up to its prediction of the row less its mean prediction of the background.
    """
    training = trees.data("explain").X
    if not exact(trees):
        return sampled_values(trees, row, training[evenly(len(training), SAMPLED)], label, n_jobs)
    return exact_values(trees, row, training[evenly(len(training), BACKGROUND)], label)


def exact(trees: Posterior) -> bool:
    """Whether the values can be computed and need not be sampled."""
    if trees.draws.split_weights.shape[1]:
        return False
    return all(
        len(order) <= MOST_COLUMNS
        for t in range(trees.n_draws)
        for order in orders_of(trees, t, ways_of(trees, t))
    )


def exact_values(
    trees: Posterior, row: FloatArray, background: FloatArray, label: int
) -> tuple[IntArray, FloatArray, float]:
    """By their definition, over all sets of columns; see ``shapley_values``."""
    from .predictions import values_of_leaves

    scale = trees.preprocessing
    columns = np.unique(scale.used[np.unique(trees.draws.feature)]).astype(np.int64)
    place = {int(column): k for k, column in enumerate(columns)}
    leaf = values_of_leaves(trees)[:, label if trees.n_classes else 0]
    of_row, of_background = to_no(trees, row[None]), to_no(trees, background)
    found = np.zeros((trees.n_draws, len(columns)))
    start, number = 0.0, 0
    for t in range(trees.n_draws):
        split, ways = first_split(trees, t), ways_of(trees, t)
        for way, order in zip(ways, orders_of(trees, t, ways), strict=True):
            own = subset_products(factors(trees, way, order, of_row[split:], split))[:, 0]
            means = subset_products(factors(trees, way, order, of_background[split:], split))
            mean = means.mean(axis=1)
            # own[S] * mean[all but S]: the number of the complement counts from the other end
            shares = shapley_weights(len(order)) @ (own * mean[::-1])
            for column, share in zip(order, shares, strict=True):
                found[t, place[column]] += leaf[number] * share
            start += leaf[number] * float(mean[-1])
            number += 1
    start /= trees.n_draws
    if trees.n_classes:
        return columns, found, start
    return columns, scale.sd_to_user(found), float(scale.y_to_user(start))


def background_means(trees: Posterior, background: FloatArray) -> list[FloatArray]:
    """Per tree, [leaf by leaf, sets of columns]: mean product of the background's factors in a set.

    Sets are numbered by bits, the first column on the way from the root being bit 0.
    """
    probabilities = to_no(trees, background)
    found = []
    for t in range(trees.n_draws):
        split, ways = first_split(trees, t), ways_of(trees, t)
        tables = [
            subset_products(factors(trees, way, order, probabilities[split:], split)).mean(axis=1)
            for way, order in zip(ways, orders_of(trees, t, ways), strict=True)
        ]
        found.append(np.concatenate(tables))
    return found


# ------------------------------------------------------------------ parts


def to_no(trees: Posterior, rows: FloatArray) -> FloatArray:
    """[split, row]; the probability of going to no, of every split on its own."""
    forest, n = trees.draws.forest, len(trees.draws.feature)
    h = forest.h
    if len(h) > 1:
        h = np.repeat(h, trees.n_leaves.ravel() - 1, axis=0)
    alone = forest._replace(
        node_offset=np.arange(0, 3 * n + 1, 3),
        size=np.tile(np.array([3, 1, 1], np.int32), n),
        h=np.ascontiguousarray(h),
    )
    if n == 0:
        return np.empty((0, len(rows)))
    values = np.tile([0.0, 1.0], n)[:, None]
    found: FloatArray = tree_predictions(alone, values, trees.preprocessing.to_unit(rows))[..., 0]
    return found


def ways_of(trees: Posterior, t: int) -> list[Way]:
    """To each leaf of tree t, in preorder."""
    offset = trees.draws.node_offset
    size = trees.draws.size[offset[t] : offset[t + 1]].tolist()
    ways: list[Way] = []
    waiting: list[Way] = [[]]
    split = 0
    for n in size:  # in preorder: the left subtree comes first, so that its way is taken first
        way = waiting.pop()
        if n == 1:
            ways.append(way)
            continue
        waiting += [[*way, (split, 1)], [*way, (split, 0)]]
        split += 1
    return ways


def orders_of(trees: Posterior, t: int, ways: list[Way]) -> list[list[int]]:
    """Columns of the input on the way to each leaf, the first first."""
    first, used = first_split(trees, t), trees.preprocessing.used
    feature = trees.draws.feature
    return [
        list(dict.fromkeys(int(used[feature[first + split]]) for split, _ in way)) for way in ways
    ]


def first_split(trees: Posterior, t: int) -> int:
    """Number of the first split of tree t: a tree has one node more than twice its splits."""
    return (int(trees.draws.node_offset[t]) - t) // 2


def factors(
    trees: Posterior, way: Way, order: list[int], probabilities: FloatArray, first: int
) -> FloatArray:
    """[column on the way, row]; probability of staying on it at all splits on the column."""
    found = np.ones((len(order), probabilities.shape[1]))
    used, feature = trees.preprocessing.used, trees.draws.feature
    for split, side in way:
        own = probabilities[split] if side else 1 - probabilities[split]
        found[order.index(int(used[feature[first + split]]))] *= own
    return found


def subset_products(own: FloatArray) -> FloatArray:
    """[k, row] factors to [2 ** k, row]: their products over every set, numbered by bits."""
    table = np.ones((1, own.shape[1]))
    for factor in own:
        table = np.concatenate([table, table * factor])
    return table


@cache
def shapley_weights(k: int) -> FloatArray:
    """[k, 2 ** k]; times the worth of every set, the Shapley values of k players."""
    sets = np.arange(2**k)
    sizes = np.array([int(s).bit_count() for s in sets])
    found = np.zeros((k, len(sets)))
    for player in range(k):
        inside = sets >> player & 1 == 1
        others = sizes - inside
        found[player] = np.where(inside, 1, -1) / (
            k * np.array([comb(k - 1, int(size)) for size in others])
        )
    return found


# ------------------------------------------------------------------ random orders


def sampled_values(
    trees: Posterior,
    row: FloatArray,
    background: FloatArray,
    label: int,
    n_jobs: int | None = None,
    seed: int = 0,
) -> tuple[IntArray, FloatArray, float]:
    """Estimated by random orders; see ``shapley_values``.

    From each background row the columns are set to the row's, one after the other, in a random
    order and in its reverse; the differences are averaged. A missing cell keeps the number that it
    was imputed as in its own row.
    """
    from .predictions import values_of_leaves

    scale = trees.preprocessing
    used: Any = slice(None)
    if not trees.draws.split_weights.shape[1]:
        used = np.unique(trees.draws.feature)
    columns = np.unique(scale.used[used]).astype(np.int64)
    forest, values = trees.draws.forest, values_of_leaves(trees)
    if not trees.n_classes:
        values = scale.y_to_user(values)
    own = scale.to_unit(row[None])
    rng = np.random.default_rng(seed)
    total = np.zeros((trees.n_draws, len(columns)))
    start = 0.0
    for base in background:
        order = rng.permutation(len(columns))
        for way in (order, order[::-1]):
            walk = np.repeat(scale.to_unit(base[None]), len(columns) + 1, axis=1)
            for step, place in enumerate(way):
                changed = scale.used == columns[place]
                walk[changed, step + 1 :] = own[changed]
            predicted = tree_predictions(forest, values, walk, n_jobs)
            predicted = predicted[..., label if trees.n_classes else 0]
            total[:, way] += np.diff(predicted, axis=1)
            start += float(predicted[:, 0].mean())
    n = 2 * len(background)
    return columns, total / n, start / n
