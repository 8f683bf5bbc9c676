"""A tree as a fitted scikit-learn tree, so that all that works on those works on ours.

The state of scikit-learn's ``Tree`` is private: tests/posterior/export/test_sklearn_tree.py fails
when it changes.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree as SklearnTree

from ...utils.arrays import FloatArray
from ..draws import TrainingData
from ..leaf_posterior import soft_rows

if TYPE_CHECKING:
    from ..tree import Tree

NO_CHILD, NO_FEATURE = -1, -2  # scikit-learn's marks of a leaf


def sklearn_tree(tree: Tree, *, hard: bool) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """See ``Tree.to_sklearn``."""
    if tree.weights.shape[1]:
        raise ValueError(
            "splits of hmc-dfi weigh all features, but scikit-learn's are on a single one: "
            "use to_dict(), or a method with splits on one feature"
        )
    if tree.soft and not hard:
        raise ValueError(
            "this tree has soft splits, which scikit-learn does not have: pass hard=True to send "
            "every row to the more probable side of each split"
        )
    if tree.kinds is not None and any(tree.kinds[f] != 0 for f in tree.feature):
        raise ValueError(
            "scikit-learn's trees have no splits on categories or missing cells, but this tree "
            "has some: use to_dict() or to_text()"
        )
    if tree.preprocessing.indicator is not None:
        raise ValueError(
            "scikit-learn's trees take the columns of X, but this tree splits on levels of "
            "categories, encoded as columns of 0 and 1: use to_dict() or to_text()"
        )
    if tree.training is None:
        raise ValueError(
            "the training data were left out of this posterior, but a scikit-learn tree needs the "
            "numbers of rows at its nodes"
        )
    model = _stump(tree, tree.training)
    nodes, values, depth = _nodes(tree, tree.training, model.tree_.__getstate__()["nodes"].dtype)
    n_features = len(tree.preprocessing.feature_names)
    inside = SklearnTree(n_features, np.array([max(tree.n_classes, 1)], dtype=np.intp), 1)
    state = {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    inside.__setstate__(state)
    model.tree_ = inside
    return model


def _stump(tree: Tree, training: TrainingData) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """Anything fitted to these data, for the attributes that come with it."""
    classes = tree.preprocessing.classes
    if classes is None:
        model = DecisionTreeRegressor(max_depth=1).fit(training.X, training.y)
    else:
        model = DecisionTreeClassifier(max_depth=1).fit(training.X, classes[training.y])
    model.set_params(max_depth=None)
    names = tree.preprocessing.feature_names
    if any(name != f"x{column}" for column, name in enumerate(names)):
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _nodes(tree: Tree, training: TrainingData, dtype: Any) -> tuple[NDArray[Any], FloatArray, int]:
    """scikit-learn's node table, values [nodes, 1, K] and depth; nodes are in preorder in both."""
    columns = tree.preprocessing.to_unit(training.X)
    nodes = np.zeros(len(tree.size), dtype=dtype)
    rows: list[NDArray[np.intp]] = [np.arange(columns.shape[1])] * len(nodes)
    depths = tree.node_depths
    split = 0
    for i, size in enumerate(tree.size):
        nodes["n_node_samples"][i] = len(rows[i])
        if size == 1:
            nodes["left_child"][i] = nodes["right_child"][i] = NO_CHILD
            nodes["feature"][i] = nodes["threshold"][i] = NO_FEATURE
            continue
        column, left, right = int(tree.feature[split]), i + 1, i + 1 + int(tree.size[i + 1])
        goes_right = columns[column, rows[i]] > tree.threshold[split]
        rows[left], rows[right] = rows[i][~goes_right], rows[i][goes_right]
        nodes["left_child"][i], nodes["right_child"][i] = left, right
        nodes["feature"][i] = tree.preprocessing.used[column]
        threshold = tree.preprocessing.threshold_to_user(column, float(tree.threshold[split]))
        values = training.X[:, nodes["feature"][i]].astype(np.float32).astype(np.float64)
        nodes["threshold"][i] = _separating(threshold, values[rows[left]], values[rows[right]])
        split += 1
    weights = training.row_weights
    nodes["weighted_n_node_samples"] = [weights[r].sum() for r in rows]
    # A node above predicts what its leaves do on average over its training rows.
    is_leaf = tree.size == 1
    weight = np.maximum(nodes["weighted_n_node_samples"][is_leaf], 1e-9)
    leaf_values = tree.values.reshape(tree.n_leaves, -1)
    total = soft_rows(tree.size, weight)
    values = np.stack(
        [soft_rows(tree.size, weight * column) / total for column in leaf_values.T], axis=1
    )
    values[is_leaf] = leaf_values
    nodes["impurity"] = [_impurity(training.y[r], weights[r], tree.n_classes) for r in rows]
    return nodes, np.ascontiguousarray(values[:, None, :]), int(depths.max())


def _separating(threshold: float, left: FloatArray, right: FloatArray) -> float:
    """The threshold, or one near it that keeps ``left`` <= it < ``right``."""
    low = left.max(initial=-np.inf)
    high = right.min(initial=np.inf)
    if low <= threshold < high:
        return threshold
    if low >= high:
        stray = int(min(np.sum(left >= high), np.sum(right <= low)))
        warnings.warn(
            f"scikit-learn compares in float32, which cannot distinguish {stray} of the training "
            f"rows from others at the threshold {threshold!r}: they change sides",
            UserWarning,
            stacklevel=5,
        )
        return threshold
    if np.isinf(low):
        return float(np.nextafter(high, -np.inf))
    return float(low if np.isinf(high) else (low + high) / 2)


def _impurity(y: NDArray[Any], weights: FloatArray, n_classes: int) -> float:
    """Gini index or variance of the rows at a node, as scikit-learn's own trees have."""
    if len(y) == 0:
        return 0.0
    if n_classes:
        shares = np.bincount(y, weights, minlength=n_classes) / weights.sum()
        return float(1 - np.sum(shares**2))
    return float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
