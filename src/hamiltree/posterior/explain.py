"""Explain the prediction of one row by the posterior over trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inputs.preprocess import Preprocessing
from ..utils.arrays import FloatArray, evenly
from .explanation import Cell, Change, Effect, Explanation, Step
from .shapley import shapley_values
from .svg import tree_svg
from .tree import COVERAGE, Tree
from .tree_text import in_units, leaf_text, rule_text, soft_marks

if TYPE_CHECKING:
    from .posterior import Posterior

DRAWS = 1000
"""Trees whose effects are computed, evenly spaced."""
CANDIDATES = 200
"""Values of a feature that are tried for a change."""
REFINED = 64
"""Steps between two of them, where the feature is not a whole number."""
SEED = 0
"""The same explanation each time."""
LEVELS = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)


def explain(
    posterior: Posterior,
    row: ArrayLike,
    tree: Tree | None = None,
    *,
    n_jobs: int | None = None,
) -> Explanation:
    """Explain the prediction of one row, [1, all columns]; see ``Explanation``.

    Parameters
    ----------
    row : array-like of shape (1, n_features)
    tree : Tree, optional
        The tree whose path is described; by default the tree of highest posterior.

    Raises
    ------
    ValueError
        If there is more than one row, or the training data were left out.
    """
    scale = posterior.preprocessing
    rows = scale.rows(row)
    if len(rows) != 1:
        raise ValueError(f"explain takes one row, got {len(rows)}")
    training = posterior.data("explain").X
    chosen = posterior.best_tree() if tree is None else tree
    label, about = _prediction(posterior, rows, n_jobs)
    steps, leaf, nodes = _path(chosen, rows)
    effects, baseline = _effects(posterior, rows, label, n_jobs)
    return Explanation(
        row={name: _named_cell(scale, j, rows) for j, name in enumerate(scale.used_names)},
        **about,
        steps=steps,
        leaf=leaf,
        baseline=baseline,
        effects=effects,
        changes=_changes(posterior, rows, training, label, about, n_jobs),
        span=4 * scale.y_sd,
        spans=dict(zip(scale.used_names, scale.span.tolist(), strict=True)),
        svg=tree_svg(chosen, marked=nodes),
        tree="the tree of highest posterior" if tree is None else "the given tree",
    )


def _prediction(
    posterior: Posterior, rows: FloatArray, n_jobs: int | None
) -> tuple[int, dict[str, Any]]:
    """Code of the class (0 for regression), and what is predicted."""
    weights = posterior.weights
    drawn = posterior.predict_draws(rows, n_jobs=n_jobs)[:, :, 0]
    classes = posterior.preprocessing.classes
    if classes is None:
        mean, sd = (float(v[0]) for v in posterior.predict_mean_std(rows, n_jobs=n_jobs))
        ends = posterior.predict_quantiles(rows, LEVELS, n_jobs=n_jobs)[:, 0]
        near = np.abs(drawn - mean) <= sd
        about = {"prediction": mean, "probability": None, "sd": sd}
        return 0, {**about, **_shares(ends, weights, near)}
    probabilities = posterior.predict_mean(rows, n_jobs=n_jobs)[0]
    k = int(probabilities.argmax())
    ends = posterior.predict_probability_quantiles(rows, LEVELS, SEED, n_jobs=n_jobs)[:, 0, k]
    about = {
        "prediction": classes[k].item() if hasattr(classes[k], "item") else classes[k],
        "probability": float(probabilities[k]),
        "sd": None,
    }
    return k, {**about, **_shares(ends, weights, drawn.argmax(axis=2) == k)}


def _shares(ends: FloatArray, weights: FloatArray, agree: NDArray[np.bool_]) -> dict[str, Any]:
    low, high = ends.tolist()
    return {"interval": (low, high), "agreement": min(float(weights[agree].sum()), 1.0)}


# ------------------------------------------------------------------ the path


def _path(tree: Tree, rows: FloatArray) -> tuple[tuple[Step, ...], str, tuple[int, ...]]:
    """Steps along the likelier side of each split, the leaf as text, and the nodes in preorder."""
    scale = tree.preprocessing
    content: dict[str, Any] = tree.to_dict()
    assigned = bool(soft_marks(scale, content))
    node, steps, nodes = 0, [], [0]
    while "threshold" in content:
        value: Cell
        shown: Cell
        if "weights" in content:
            units = scale.to_unit(rows)[:, 0] * scale.span + scale.minimum
            shown = value = float(units @ np.array(content["weights"]))
        else:
            place = int(np.searchsorted(scale.used, content["column"]))
            value, shown = _cell(scale, place, rows), _named_cell(scale, place, rows)
        imputed = None
        if value is None and content.get("missing") == "imputed":
            value = float(scale.imputed(rows)[0, content["column"]])
            imputed = float(in_units(value, float(scale.span[place])))
        right = _probability_of_no(value, content)
        holds = right <= 0.5 if content["h"] > 0 else right == 0
        steps.append(
            Step(
                rule=rule_text(scale, content, exact=imputed is not None),
                value=shown,
                holds=bool(holds),
                probability=float(1 - right if holds else right),
                share=content["certainty"],
                imputed=imputed,
            )
        )
        node = node + 1 if holds else node + 1 + int(tree.size[node + 1])
        nodes.append(node)
        content = content["yes" if holds else "no"]
    return tuple(steps), f"leaf: {leaf_text(scale, content, assigned=assigned)}", tuple(nodes)


def _cell(scale: Preprocessing, place: int, rows: FloatArray) -> Cell:
    """The cell of a used column: a number, the label of a level, or None where it is missing."""
    value, column = float(rows[0, scale.used[place]]), scale.column(place)
    if np.isnan(value):
        return None
    return column.label(int(value)) if column.levels is not None else value


def _named_cell(scale: Preprocessing, place: int, rows: FloatArray) -> Cell:
    """The same for people: of an ordered category its label, not its rank."""
    return _named(scale, place, _cell(scale, place, rows))


def _named(scale: Preprocessing, place: int, value: Cell) -> Cell:
    order = scale.column(place).order
    return str(order[int(value)]) if order and isinstance(value, float) else value


def _probability_of_no(value: Cell, split: dict[str, Any]) -> float:
    if "levels" in split:
        return 0.5 if value is None else float(value not in split["levels"])
    if value is None:
        return {"yes": 0.0, "no": 1.0, None: 0.5}[split.get("missing")]
    threshold, h = split["threshold"], split["h"]
    if threshold is None:  # whether it is missing
        return 1.0 if split["missing"] == "yes" else 0.0
    assert isinstance(value, float)
    if h == 0:
        return float(value > threshold)
    z = np.clip((value - threshold) / h, -700, 700)
    return float(1 / (1 + np.exp(-z)))


# ------------------------------------------------------------------ effects


def _effects(
    posterior: Posterior, rows: FloatArray, label: int, n_jobs: int | None
) -> tuple[tuple[Effect, ...], float]:
    """Shapley values of the features, the largest first, and the mean that they start from."""
    scale = posterior.preprocessing
    trees = posterior.equally_weighted(DRAWS)
    columns, values, start = shapley_values(trees, rows[0], label, n_jobs)
    ends = np.quantile(values, LEVELS, axis=0) if len(columns) else np.empty((2, 0))
    found = [
        Effect(
            feature=scale.feature_names[column],
            value=_named_cell(scale, int(np.flatnonzero(scale.used == column)[0]), rows),
            mean=float(values[:, place].mean()),
            low=float(ends[0, place]),
            high=float(ends[1, place]),
        )
        for place, column in enumerate(columns)
    ]
    return tuple(sorted(found, key=lambda effect: -abs(effect.mean))), start


# ------------------------------------------------------------------ changes


def _changes(
    posterior: Posterior,
    rows: FloatArray,
    training: FloatArray,
    label: int,
    about: dict[str, Any],
    n_jobs: int | None,
) -> tuple[Change, ...]:
    """For each feature the smallest change that changes the prediction, the smallest first."""
    scale = posterior.preprocessing

    def tried(column: int, values: FloatArray) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Whether each value of the feature changes the prediction, and into what."""
        changed = np.repeat(rows, len(values), axis=0)
        changed[:, column] = values
        mean = posterior.predict_mean(changed, n_jobs=n_jobs)
        if scale.classes is None:
            return np.abs(mean - about["prediction"]) >= about["sd"], mean
        codes = mean.argmax(axis=1)
        return codes != label, scale.classes[codes]

    found = []
    for place, column in enumerate(scale.used):
        now, levels = float(rows[0, column]), scale.column(place).n_levels
        if levels:
            found += _other_level(scale, place, rows, levels, tried)
            continue
        if not np.isfinite(now):
            continue
        values, whole = _candidates(training[:, column])
        flips, into = tried(column, values)
        if not flips.any():
            continue
        best = int(np.where(flips, np.abs(values - now), np.inf).argmin())
        if not whole:  # from the last value on the way that does not change it
            between = (values - now) * np.sign(values[best] - now)
            on_way = values[(between >= 0) & (between < abs(values[best] - now))]
            last = on_way[np.abs(on_way - now).argmax()] if len(on_way) else now
            values = np.linspace(last, values[best], REFINED + 1)
            flips, into = tried(column, values)
            best = int(np.where(flips, np.abs(values - now), np.inf).argmin())
        found.append(
            Change(
                feature=scale.used_names[place],
                value=_named(scale, place, now),
                becomes=_named(scale, place, float(values[best])),
                share_of_range=float(abs(values[best] - now) / scale.span[place]),
                prediction=into[best].item() if hasattr(into[best], "item") else into[best],
            )
        )
    return tuple(sorted(found, key=lambda change: change.share_of_range))


def _other_level(
    scale: Preprocessing, place: int, rows: FloatArray, levels: int, tried: Any
) -> list[Change]:
    """The first level of a category that changes the prediction, if one does."""
    flips, into = tried(int(scale.used[place]), np.arange(float(levels)))
    if not flips.any():
        return []
    code = int(flips.argmax())
    return [
        Change(
            feature=scale.used_names[place],
            value=_cell(scale, place, rows),
            becomes=scale.column(place).label(code),
            share_of_range=1.0,
            prediction=into[code].item() if hasattr(into[code], "item") else into[code],
        )
    ]


def _candidates(column: FloatArray) -> tuple[FloatArray, bool]:
    """Values to try, ascending, and whether the feature has whole numbers only."""
    distinct = np.unique(column[np.isfinite(column)])
    whole = bool((distinct == np.round(distinct)).all())
    if whole and distinct[-1] - distinct[0] < CANDIDATES:
        return np.arange(distinct[0], distinct[-1] + 1), True
    return distinct[evenly(len(distinct), CANDIDATES)], whole
