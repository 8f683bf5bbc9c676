"""How well rows are predicted that the trees have not seen: the figures of the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import logsumexp

from ..posterior import Posterior
from ..posterior.describe import percent
from ..posterior.tree_text import in_units
from ..utils.arrays import FloatArray, IntArray, evenly

GROUPS = 10
"""Of rows by their predicted probability, for calibration."""
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Of predictive intervals whose coverage is counted."""
POINTS = 300
"""Rows in a drawing; more could not be told apart."""
ROC_POINTS = 200
FEW = 30
"""Rows below which the figures are rough, which the page says."""


def performance(
    posterior: Posterior,
    X: ArrayLike,
    y: ArrayLike,
    *,
    shown: Posterior | None = None,
    unit: str = "",
) -> dict[str, Any]:
    """Figures of the held-out rows: ``facts`` as texts, and what the page draws.

    ``shown`` is the posterior under its display names, where it has some, and ``unit`` that of a
    numeric target; ``X`` and ``y`` have the table's own names and classes.

    Raises
    ------
    ValueError
        If there are no rows, not as many targets, or targets that cannot be compared.
    """
    rows, target = posterior.preprocessing.rows(X), np.asarray(y)
    if target.shape != (len(rows),) or len(rows) == 0:
        raise ValueError(
            f"test rows and targets must have the same length, at least 1: got {len(rows)} rows "
            f"and targets of shape {target.shape}"
        )
    classes = posterior.preprocessing.classes
    if classes is None:
        return _of_numbers(posterior, rows, target.astype(np.float64), unit)
    codes = np.minimum(np.searchsorted(classes, target), len(classes) - 1)
    unknown = target[classes[codes] != target]
    if len(unknown):
        raise ValueError(f"the test rows have a class that training did not have: {unknown[0]!r}")
    return _of_classes(shown or posterior, rows, codes)


# ------------------------------------------------------------------ classes


def _of_classes(posterior: Posterior, rows: FloatArray, codes: IntArray) -> dict[str, Any]:
    classes = posterior.preprocessing.classes
    assert classes is not None
    n, k = len(codes), len(classes)
    p = posterior.predict_mean(rows)
    predicted = p.argmax(axis=1)
    confusion = np.zeros((k, k), np.int64)
    np.add.at(confusion, (codes, predicted), 1)
    prevalence = np.bincount(codes, minlength=k) / n
    in_training = None
    guess = prevalence
    if posterior.training is not None:
        in_training = np.bincount(posterior.training.y, minlength=k) / len(posterior.training.y)
        guess = in_training
    right = int(np.trace(confusion))
    low, high = _jeffreys(np.array([right]), np.array([n]))
    found: dict[str, Any] = {
        "n": n,
        "accuracy": right / n,
        "logScore": float(np.log(p[np.arange(n), codes]).mean()),
        "brier": brier_score(p, codes),
        "prevalence": prevalence,
        "prevalenceInTraining": in_training,
        "confusion": confusion,
        "calibration": [_calibration(p[:, j], codes == j) for j in range(k)],
        "roc": None,
    }
    with np.errstate(divide="ignore"):  # a class that training lacks cannot be there
        by_guess = float(np.log(guess[codes]).mean())
    always = float(prevalence[int(guess.argmax())])
    facts = [
        _fact(
            "accuracy",
            f"{100 * right / n:.1f}%",
            f"rows whose most probable class is right, 90% interval {percent(float(low[0]))} to "
            f"{percent(float(high[0]))}; always “{classes[int(guess.argmax())]}”: "
            f"{percent(always)}",
        ),
        _fact(
            "log score",
            f"{found['logScore']:.3f}",
            "mean log probability of the observed class, at best 0; with the prevalence for all "
            f"rows {by_guess:.3f}",
        ),
        _fact(
            "Brier score",
            f"{found['brier']:.3f}",
            "mean squared error of the probabilities, at best 0; with the prevalence for all rows "
            f"{brier_score(np.tile(guess, (n, 1)), codes):.3f}",
        ),
    ]
    if k == 2 and 0 < prevalence[1] < 1:
        found["roc"] = roc = _roc(p[:, 1], codes == 1)
        sensitivity = confusion[1, 1] / confusion[1].sum()
        specificity = confusion[0, 0] / confusion[0].sum()
        facts.append(
            _fact(
                "area under the ROC curve",
                f"{roc['area']:.3f}",
                f"at a probability of 50%, {percent(sensitivity)} of “{classes[1]}” and "
                f"{percent(specificity)} of “{classes[0]}” are found",
            )
        )
    return found | {"facts": facts}


def brier_score(p: FloatArray, codes: IntArray) -> float:
    """Mean squared error of the probabilities: of one class of two, or the sum over more."""
    hits = np.zeros_like(p)
    hits[np.arange(len(codes)), codes] = 1.0
    total = ((p - hits) ** 2).sum(axis=1).mean()
    return float(total / 2 if p.shape[1] == 2 else total)


def _jeffreys(hits: NDArray[Any], sizes: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """90% intervals of shares."""
    low, high = stats.beta.ppf([[0.05], [0.95]], hits + 0.5, sizes - hits + 0.5)
    return low, high


def _calibration(p: FloatArray, happened: NDArray[np.bool_]) -> dict[str, Any]:
    """Groups of rows by their probability: what was predicted, and the share that happened."""
    order = np.argsort(p, kind="stable")
    groups = np.array_split(order, min(GROUPS, len(order)))
    sizes = np.array([len(group) for group in groups])
    hits = np.array([int(happened[group].sum()) for group in groups])
    low, high = _jeffreys(hits, sizes)
    return {
        "predicted": [float(p[group].mean()) for group in groups],
        "observed": hits / sizes,
        "low": low,
        "high": high,
        "rows": sizes,
    }


def _roc(p: FloatArray, positive: NDArray[np.bool_]) -> dict[str, Any]:
    """The curve from (0, 0) to (1, 1), and the area under it; rows of one probability together."""
    order = np.argsort(-p, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(p[order])), len(p) - 1)
    hits = np.cumsum(positive[order])[ends]
    true = np.concatenate([[0.0], hits / positive.sum()])
    false = np.concatenate([[0.0], (ends + 1 - hits) / (~positive).sum()])
    area = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
    shown = evenly(len(true), ROC_POINTS)
    return {"falsePositives": false[shown], "truePositives": true[shown], "area": area}


# ------------------------------------------------------------------ numbers


def _of_numbers(posterior: Posterior, rows: FloatArray, y: FloatArray, unit: str) -> dict[str, Any]:
    if not np.isfinite(y).all():
        raise ValueError("the targets of the test rows have missing or infinite values")
    n = len(y)
    mean = posterior.predict_mean(rows)
    tails = [(1 + side * level) / 2 for level in LEVELS for side in (-1, 1)]
    quantiles = posterior.predict_quantiles(rows, tails)
    coverage = []
    for number, level in enumerate(LEVELS):
        low, high = quantiles[2 * number], quantiles[2 * number + 1]
        inside = int(((low <= y) & (y <= high)).sum())
        ends = _jeffreys(np.array([inside]), np.array([n]))
        coverage.append(
            {
                "level": level,
                "share": inside / n,
                "low": float(ends[0][0]),
                "high": float(ends[1][0]),
                "width": float((high - low).mean()),
            }
        )
    residual = y - mean
    rmse = float(np.sqrt(np.mean(residual**2)))
    spread = float(np.sum((y - y.mean()) ** 2))
    r2 = float(1 - np.sum(residual**2) / spread) if spread > 0 else float("nan")
    found: dict[str, Any] = {
        "n": n,
        "rmse": rmse,
        "mae": float(np.abs(residual).mean()),
        "r2": r2,
        "logScore": _log_score(posterior, rows, y),
        "coverage": coverage,
    }
    shown = np.sort(np.argsort(mean, kind="stable")[evenly(n, POINTS)])
    middle = LEVELS.index(0.9)
    found["points"] = {
        "predicted": mean[shown],
        "observed": y[shown],
        "low": quantiles[2 * middle][shown],
        "high": quantiles[2 * middle + 1][shown],
    }

    def written(value: float) -> str:
        return f"{in_units(value, 4 * posterior.preprocessing.y_sd)} {unit}".rstrip()

    own = coverage[middle]
    share, width = f"{100 * own['share']:.1f}%", written(own["width"])
    ends_text = f"{percent(own['low'])} to {percent(own['high'])}"
    facts = [
        _fact(
            "root mean squared error",
            written(rmse),
            f"the targets have an sd of {written(float(y.std()))}; mean absolute error "
            f"{written(found['mae'])}",
        ),
        _fact(
            "R²",
            f"{r2:.3f}" if np.isfinite(r2) else "\N{EN DASH}",
            "share of the targets' variance that is explained",
        ),
        _fact(
            "inside their 90% intervals",
            share,
            f"90% interval of that share {ends_text}; the mean width is {width}",
        ),
        _fact(
            "log score",
            f"{found['logScore']:.3f}",
            "mean log density of the targets; higher is better",
        ),
    ]
    return found | {"facts": facts}


def _log_score(posterior: Posterior, rows: FloatArray, y: FloatArray) -> float:
    """Mean log predictive density: of the mixture over all draws."""
    logs = np.log(np.maximum(posterior.weights, 1e-300))
    step = max(1, 10_000_000 // posterior.weights.size)
    total = 0.0
    for start in range(0, len(y), step):
        part = slice(start, start + step)
        each = posterior.pointwise_log_likelihood(rows[part], y[part])
        total += float(logsumexp(each + logs[..., None], axis=(0, 1)).sum())
    return total / len(y)


def _fact(name: str, value: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "note": note}
