"""Which feature and which classes a plot is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from .style import INK

if TYPE_CHECKING:
    from ..posterior import Posterior


def column_of(posterior: Posterior, feature: str | int | None) -> int:
    """Index into the used columns of a feature named or numbered as in the input.

    None: the feature with the largest share of the splits.
    """
    scale = posterior.preprocessing
    names = scale.feature_names
    if feature is None:
        feature = int(posterior.feature_inclusion().argmax())
    elif isinstance(feature, str):
        encoded = encoded_names(posterior, feature)
        if len(encoded) > 1:
            raise ValueError(f"{feature!r} has several columns, name one: {', '.join(encoded)}")
        feature = names.index(encoded[0])
    if not 0 <= feature < len(names):
        raise ValueError(f"no feature {feature}: there are {len(names)}, counted from 0")
    if feature not in scale.used:
        raise ValueError(f"{names[feature]} is constant in the training data: no tree uses it")
    return int(np.searchsorted(scale.used, feature))


def encoded_names(posterior: Posterior, feature: str) -> list[str]:
    """The columns of a feature: its own, or one per category where the table had categories."""
    names = posterior.preprocessing.feature_names
    if feature in names:
        return [feature]
    table = posterior.table
    columns = () if table is None else table.encoding.columns
    outputs = [output for column in columns if column.name == feature for output in column.outputs]
    if not outputs:
        known = dict.fromkeys([*(column.name for column in columns), *names])
        raise ValueError(f"no feature {feature!r}: there are {', '.join(known)}")
    used = [name for name in outputs if name in posterior.preprocessing.used_names]
    return used or outputs


def shown_classes(posterior: Posterior, label: Any) -> list[int]:
    """Codes of the classes to draw: that of ``label``; else the second of two, or all.

    An empty list for regression.
    """
    classes = posterior.preprocessing.classes
    if classes is None:
        if label is not None:
            raise ValueError("label is for classification; this is a regression posterior")
        return []
    if label is None:
        return [1] if len(classes) == 2 else list(range(len(classes)))
    found = np.flatnonzero(classes == label)
    if len(found) == 0:
        raise ValueError(f"no class {label!r}: there are {', '.join(map(str, classes))}")
    return [int(found[0])]


def mark_training_values(ax: Axes, posterior: Posterior, column: int) -> None:
    """Ticks on the lower edge where the training rows lie, if they were kept."""
    if posterior.training is not None:
        values = np.unique(posterior.training.X[:, posterior.preprocessing.used[column]])
        values = values[np.isfinite(values)]
        ax.plot(
            values, np.zeros(len(values)), "|", color=INK, markersize=7, alpha=0.6,
            transform=ax.get_xaxis_transform(), clip_on=False, zorder=3,
        )  # fmt: skip
