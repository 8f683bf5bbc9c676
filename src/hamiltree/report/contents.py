"""Everything the page shows, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.classifier import INTERVAL_SEED
from ..inputs.encoding import Encoding, encoding_of, encoding_of_trees
from ..posterior import Posterior
from ..posterior.describe import percent
from ..posterior.predictions import sampled_probabilities
from ..posterior.tree import COVERAGE, Tree
from ..utils.arrays import IntArray
from .effects import pack_effects
from .inputs import columns_of, inputs_of
from .names import Display, units_of, with_names
from .pack import bytes_of_a_tree, pack_forest
from .plots import convergence, features, leaves, thresholds, trace

DRAWS = 400
"""Draws in a page, unless asked for otherwise: enough for stable predictions, and quick to open."""
BUDGET = 1_500_000
"""Bytes of the page that trees may take."""
SHAPES = 4


@dataclass(frozen=True)
class Featured:
    """A tree to read."""

    short: str
    label: str
    note: str
    tree: Tree


def contents(
    posterior: Posterior, n_draws: int = DRAWS, displays: Mapping[str, Display] | None = None
) -> dict[str, Any]:
    """The data of the page; ``forest`` holds ``n_draws`` draws or as many as there is room for.

    ``displays`` are the names and units that a reader sees, by the table's own names.
    """
    own, own_classes = encoding_of_trees(posterior), posterior.preprocessing.classes
    units, target_unit = _units(posterior, displays or {})
    posterior = with_names(posterior, displays or {})
    room = max(1, int(BUDGET / bytes_of_a_tree(posterior)))
    index = included(posterior, min(n_draws, room))
    chain, draw = np.divmod(index, posterior.n_draws)
    drawn = posterior.taken(index)
    trees = [posterior.tree(int(c), int(d)) for c, d in zip(chain, draw, strict=True)]
    shown = featured_trees(posterior)
    encoding = encoding_of_trees(posterior)
    imputation = posterior.preprocessing.imputation
    classes = posterior.preprocessing.classes
    rng = np.random.default_rng(INTERVAL_SEED)  # as predict_interval does
    sampled = sampled_probabilities(drawn, rng) if posterior.n_classes else None
    used = np.unique(np.concatenate([tree.feature for tree in trees]))
    return {
        "classes": None if classes is None else [str(label) for label in classes],
        "classValues": None if own_classes is None else [str(label) for label in own_classes],
        "target": encoding.target or "prediction",
        "targetNamed": bool(encoding.target),
        "targetUnit": target_unit,
        "yMean": posterior.preprocessing.y_mean,
        "ySd": posterior.preprocessing.y_sd,
        "levels": [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2],
        "coverage": percent(COVERAGE),
        "columns": columns_of(posterior, encoding, units),
        "inputs": inputs_of(posterior, encoding, own, units, used),
        "imputation": None if imputation is None else vars(imputation),
        "effects": pack_effects(drawn),
        "forest": pack_forest(drawn, trees, [item.tree for item in shown], sampled),
        "featured": [
            {
                "short": item.short,
                "label": item.label,
                "note": item.note,
                "text": item.tree.to_text(),
                "tree": len(trees) + number,
            }
            for number, item in enumerate(shown)
        ],
        "drawn": {
            "chain": chain,
            "draw": draw,
            "leaves": drawn.draws.n_leaves.ravel(),
            "logPosterior": drawn.draws.log_posterior.ravel(),
        },
        "meanRange": _mean_range(drawn),
        "features": features(posterior),
        "thresholds": thresholds(posterior, encoding),
        "leaves": leaves(posterior),
        "trace": trace(posterior),
        "convergence": convergence(posterior),
    }


def _units(posterior: Posterior, displays: Mapping[str, Display]) -> tuple[dict[str, str], str]:
    """By the name that a reader sees, and of the target."""
    units, of_target = units_of(posterior, displays)
    shown: Encoding = encoding_of(with_names(posterior, displays))
    return dict(zip([c.name for c in shown.columns], units, strict=True)), of_target


def included(posterior: Posterior, n: int) -> IntArray:
    """Numbers of ``n`` draws, evenly spaced; weighted draws each as often as their weight says."""
    weights = posterior.weights.ravel()
    n = min(n, weights.size)
    middles = 2 * np.arange(n, dtype=np.int64) + 1  # of n equal parts, in halves of a part
    if not posterior.weighted:
        return middles * weights.size // (2 * n)
    chosen = np.searchsorted(np.cumsum(weights), middles / (2 * n))
    return np.minimum(chosen, weights.size - 1).astype(np.int64)


def featured_trees(posterior: Posterior) -> list[Featured]:
    """The best tree, a typical one, and the best of each of the likeliest shapes."""
    total = f"{posterior.weights.size:,}"
    shown = [
        Featured(
            "Best tree",
            "Tree of highest posterior",
            "Of all trees that were found, the one that data and prior support most.",
            posterior.best_tree(),
        )
    ]
    if posterior.training is not None:
        shown.append(
            Featured(
                "Most typical tree",
                "Most typical tree",
                f"Of the {total} sampled trees the one whose predictions are nearest to the mean "
                "of all.",
                posterior.representative_tree(),
            )
        )
    for number, shape in enumerate(posterior.shapes(SHAPES), start=1):
        share = percent(shape.probability)
        shown.append(
            Featured(
                f"Shape {number} \N{MIDDLE DOT} {share}",
                f"Best tree of shape {number}",
                f"{share} of the sampled trees have this shape, ignoring thresholds: {shape.text}.",
                shape.tree,
            )
        )
    return shown


def _mean_range(drawn: Posterior) -> dict[str, float]:
    """Of the leaf means, the outermost left out; the scale on which means are drawn."""
    if drawn.n_classes:
        return {"low": 0.0, "high": 1.0}
    means = drawn.preprocessing.y_to_user(drawn.draws.leaf[:, 0])
    low, high = np.quantile(means, [0.005, 0.995])
    return {"low": float(low), "high": float(high)}
