"""One sampled tree for people: as text, as a dictionary, as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .core.predict import Forest, prediction_moments
from .draws import FloatArray
from .preprocess import Preprocessing
from .settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 3
"""Weights of an oblique rule, and classes of a leaf, that are written out."""


def leaf_values(leaf: FloatArray, settings: Settings, n_classes: int) -> FloatArray:
    """What a leaf predicts, [leaves, K].

    Classification (``n_classes`` > 0): posterior mean class probabilities, (counts + alpha) over
    their sum. Regression: the mean, in the model's units.
    """
    if n_classes == 0:
        return np.ascontiguousarray(leaf[:, :1])
    parameters = leaf + np.asarray(settings.class_prior, dtype=np.float64)
    values: FloatArray = parameters / parameters.sum(axis=1, keepdims=True)
    return values


@dataclass(frozen=True, repr=False, eq=False)
class Tree:
    """A tree with its rules in the user's units and feature names.

    A row goes left, "yes", when ``x <= threshold``. With soft splits it goes right with
    probability ``1 / (1 + exp(-(x - threshold) / h))``.
    """

    size: NDArray[np.int32]
    """[nodes] in preorder; nodes in the subtree, 1 for a leaf."""
    feature: NDArray[np.int32]
    """[splits]; index into the used columns, -1 for HMC-DFI."""
    threshold: FloatArray
    """[splits]; on the unit-interval scale."""
    weights: FloatArray
    """[splits, p] for HMC-DFI, [splits, 0] otherwise."""
    leaf: FloatArray
    """[leaves, K]; class counts, or mean and, with K = 2, noise sd in the model's units."""
    h: FloatArray
    """[p]; softness on the unit-interval scale."""
    preprocessing: Preprocessing
    settings: Settings

    @property
    def n_leaves(self) -> int:
        return len(self.leaf)

    @property
    def depth(self) -> int:
        """Splits on the longest path; 0 for a root on its own."""
        return max(depth for _, depth, _ in self._walk())

    @property
    def n_classes(self) -> int:
        """0 for regression."""
        classes = self.preprocessing.classes
        return 0 if classes is None else len(classes)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict with this tree alone: class probabilities [row, class], or means [row]."""
        offset = np.array([0, len(self.size)])
        forest = Forest(offset, self.size, self.feature, self.threshold, self.weights, self.h)
        values = leaf_values(self.leaf, self.settings, self.n_classes)
        columns = self.preprocessing.to_unit(X)
        mean, _ = prediction_moments(forest, values, np.ones(1), columns)
        return mean if self.n_classes else self.preprocessing.y_to_user(mean[:, 0])

    def to_dict(self) -> dict[str, Any]:
        """Nested plain Python values, ready for JSON where the class labels are.

        A split has ``column`` (of the input) and its name ``feature`` (HMC-DF), or lists of both
        with ``weights`` (HMC-DFI), and ``threshold``, ``h``, ``yes`` and ``no``; a leaf has
        ``classes``, ``probabilities`` and ``rows`` (the soft number of training rows), or
        ``mean`` and, where leaves have their own, the noise ``sd``. Everything is in the user's
        units.
        """
        waiting: list[dict[str, Any]] = []
        root: dict[str, Any] = {}
        for _, _, content in self._walk():
            node = root
            if waiting:
                parent = waiting.pop()
                side = "no" if "yes" in parent else "yes"
                parent[side] = node = {}
                if side == "yes":
                    waiting.append(parent)
            node.update(content)
            if "threshold" in content:
                waiting.append(node)
        return root

    def to_text(self) -> str:
        """Rules as indented lines; "yes" goes to where the rule holds."""
        lines = []
        waiting: list[str] = []  # the sides still to come, outermost first
        for _, depth, content in self._walk():
            side = waiting.pop() if waiting else ""
            line = "  " * depth + side
            if "threshold" in content:
                line += self.rule(content)
                waiting += ["no:  ", "yes: "]
            else:
                line += self.leaf_text(content)
            lines.append(line)
        if self.n_leaves > 1 and np.any(self.h > 0):
            lines.append(
                "(h: a row goes to no with probability 1 / (1 + exp(-(x - threshold) / h)))"
            )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the tree; without ``ax``, in a new figure that is large enough for it."""
        from .plots.tree import plot_tree

        return plot_tree(self, ax)

    def __repr__(self) -> str:
        leaves = "1 leaf" if self.n_leaves == 1 else f"{self.n_leaves} leaves"
        return f"<Tree with {leaves}, depth {self.depth}>\n{self.to_text()}"

    def rule(self, split: dict[str, Any], *, softness: bool = True) -> str:
        """A split of ``to_dict`` in words."""
        if "weights" in split:
            text = f"{self._weighted_sum(split)} <= {split['threshold']:.4g}"
        else:
            column = np.searchsorted(self.preprocessing.used, split["column"])
            span = float(self.preprocessing.span[column])
            text = f"{split['feature']} <= {in_units(split['threshold'], span)}"
        return f"{text}  (h = {split['h']:.2g})" if softness and split["h"] > 0 else text

    def leaf_text(self, leaf: dict[str, Any]) -> str:
        """A leaf of ``to_dict`` in words, the likeliest classes first."""
        if "mean" in leaf:
            span = 4 * self.preprocessing.y_sd
            text = f"mean {in_units(leaf['mean'], span)}"
            return f"{text}, sd {in_units(leaf['sd'], span)}" if "sd" in leaf else text
        order = np.argsort(leaf["probabilities"])[::-1]
        parts = [f"{leaf['classes'][k]} {leaf['probabilities'][k]:.2f}" for k in order[:SHOWN]]
        parts += ["..."] * (len(order) > SHOWN)
        return f"{', '.join(parts)} ({leaf['rows']:.1f} rows)"

    def _weighted_sum(self, split: dict[str, Any]) -> str:
        # Largest by their weight on the unit scale, which is what moves rows.
        order = np.argsort(np.array(split["weights"]) * self.preprocessing.span)[::-1]
        parts = [f"{split['weights'][j]:.3g}*{split['feature'][j]}" for j in order[:SHOWN]]
        return " + ".join(parts + ["..."] * (len(order) > SHOWN))

    def _walk(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Nodes in preorder as (index, depth, content in the user's units)."""
        depth = np.zeros(len(self.size), dtype=np.int64)
        values = leaf_values(self.leaf, self.settings, self.n_classes)
        split = leaf = 0
        for i, size in enumerate(self.size):
            if size > 1:
                right = i + 1 + self.size[i + 1]
                depth[i + 1] = depth[right] = depth[i] + 1
                yield i, int(depth[i]), self._split(split)
                split += 1
            else:
                yield i, int(depth[i]), self._leaf(self.leaf[leaf], values[leaf])
                leaf += 1

    def _split(self, split: int) -> dict[str, Any]:
        scale, tau = self.preprocessing, float(self.threshold[split])
        if self.weights.shape[1] == 0:
            column = int(self.feature[split])
            return {
                "column": int(scale.used[column]),
                "feature": scale.used_names[column],
                "threshold": scale.threshold_to_user(column, tau),
                "h": float(self.h[column] * scale.span[column]),
            }
        # sum_j w_j (x_j - minimum_j) / span_j <= tau, with the x_j freed of their shift and scale
        coefficients = self.weights[split] / scale.span
        return {
            "column": scale.used.tolist(),
            "feature": list(scale.used_names),
            "weights": coefficients.tolist(),
            "threshold": float(tau + coefficients @ scale.minimum),
            "h": float(self.h[0]),
        }

    def _leaf(self, leaf: FloatArray, value: FloatArray) -> dict[str, Any]:
        classes = self.preprocessing.classes
        if classes is None:
            content = {"mean": float(self.preprocessing.y_to_user(value[0]))}
            if len(leaf) > 1:
                content["sd"] = float(self.preprocessing.sd_to_user(leaf[1]))
            return content
        return {
            "classes": classes.tolist(),
            "probabilities": value.tolist(),
            "rows": float(leaf.sum()),
        }


def in_units(value: float, span: float) -> str:
    """A number to a thousandth of the span of its scale, or a little finer."""
    if not 1e-4 < span < 1e7:
        return f"{value:.6g}"
    return f"{value:.{max(0, 3 - int(np.floor(np.log10(span))))}f}"
