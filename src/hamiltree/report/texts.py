"""The sentences of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs.encoding import encoding_of
from ..posterior import Posterior
from ..posterior.describe import evidence_text, finding
from .performance import FEW


def texts(posterior: Posterior, data: dict[str, Any], title: str | None) -> dict[str, str]:
    """Plain text by its place in the template; the page escapes it."""
    diagnosis = posterior.diagnose()
    target = encoding_of(posterior).target
    shown, total = len(data["drawn"]["chain"]), posterior.weights.size
    classification = bool(posterior.n_classes)
    return {
        "title": title or (f"Decision trees for {target}" if target else "Decision trees"),
        "about": _about(posterior),
        "finding": finding(posterior),
        "agreement": "No sign of disagreement." if diagnosis.converged else "Read with care.",
        "agreement_class": "good" if diagnosis.converged else "bad",
        "diagnosis": diagnosis.sentence,
        "trees_note": _trees_note(posterior, classification),
        "hint": "Point at a box to see its rows and its share of trees; click it to see its path. "
        "By keyboard: Tab into the tree, arrow keys from box to box, Enter for the path, Escape to "
        "clear it.",
        "n_draws": f"{shown:,}",
        "prediction_note": _prediction_note(shown, total, classification),
        "effects_note": _effects_note(data),
        "dots_note": "Dots: single chains." if posterior.n_chains > 1 else "",
        "more_features": _more_features(data),
        "draws_note": f"{shown:,} of the {total:,} sampled trees, evenly spaced. The data "
        "determine what the trees have in common, and leave open what changes from tree to tree.",
        "convergence_note": _convergence_note(posterior),
        "run_note": _run_note(posterior),
        "interval_note": _interval_note(classification),
        "soft_note": _soft_note(posterior),
        **_performance_texts(posterior, data["performance"]),
    }


def _performance_texts(posterior: Posterior, found: dict[str, Any] | None) -> dict[str, str]:
    names = ["first_chart", "first_chart_note", "second_chart", "second_chart_note"]
    names += ["first_table", "second_table", "performance_note", "performance_short"]
    empty = dict.fromkeys(names, "")
    if found is None:
        return empty
    note = f"On {found['n']:,} rows that the trees have not seen."
    if found["n"] < FEW:
        note += " These are few: read the figures with their intervals."
    rows = f"Of {found['n']:,} rows that the trees have not seen"
    if not posterior.n_classes:
        inside = next(own["share"] for own in found["coverage"] if own["level"] == 0.9)
        return empty | {
            "performance_note": note,
            "performance_short": f"{rows}, {100 * inside:.1f}% lie inside their 90% intervals; "
            f"the predictions explain {100 * found['r2']:.0f}% of the variance.",
            "first_chart": "Predicted and observed",
            "first_chart_note": "One dot per row; the line through it is its 90% interval. On the "
            "dashed line predictions are exact.",
            "first_table": "How often predictive intervals contain the target",
        }
    return empty | {
        "performance_note": note,
        "performance_short": f"{rows}, {100 * found['accuracy']:.1f}% are classified correctly.",
        "first_chart": "Calibration",
        "first_chart_note": "Rows in groups by predicted probability, with the observed share and "
        "its 90% interval. On the dashed line predicted and observed shares are equal.",
        "second_chart": "ROC curve",
        "second_chart_note": "Sensitivity against false alarms (1 - specificity), for every "
        "threshold of the probability. The dashed line is chance.",
        "first_table": "Confusion matrix",
        "second_table": "Prevalence",
    }


def _about(posterior: Posterior) -> str:
    table = posterior.table
    rows = None if table is None else table.n_rows
    if rows is None and posterior.training is not None:
        rows = len(posterior.training.y)
    parts = [] if rows is None else [f"{rows:,} rows"]
    if table is not None and table.name:
        parts = [f"{' '.join(parts)} of {table.name}".strip()]
    n = len(posterior.preprocessing.used)
    parts.append(f"{n} feature{'s' if n > 1 else ''}")
    parts.append(f"{posterior.n_classes} classes" if posterior.n_classes else "regression")
    chains = "islands" if posterior.has_particles else "chains"
    parts.append(
        f"{posterior.configuration.method.name.upper()}, {posterior.n_chains} {chains} of "
        f"{posterior.n_draws:,} draws"
    )
    return "; ".join(part for part in parts if part) + "."


def _trees_note(posterior: Posterior, classification: bool) -> str:
    note = "Start at the top; if the rule of a box holds, go left to yes, otherwise right to no."
    if posterior.training is not None:
        note += " The bar under a rule shows the share of all sampled trees with such a split."
    bar = "the shares of its classes" if classification else "its mean, with an interval"
    note += f" The bar under a leaf shows {bar}. Lines are thicker if more rows follow them."
    if posterior.draws.h.any() and posterior.training is not None:
        note += (
            " The rows assigned to a leaf are not exactly those that satisfy its rules: near a "
            "soft threshold they go both ways."
        )
    return note


def _prediction_note(shown: int, total: int, classification: bool) -> str:
    what = "probabilities" if classification else "mean and interval"
    if shown == total:
        return f"These are all draws: the {what} are the same as in Python."
    return (
        f"These are a part of all {total:,}, so the {what} can differ slightly from those of all "
        "draws; for the same draws Python gives the same numbers."
    )


def _effects_note(data: dict[str, Any]) -> str:
    found = data["effects"]
    if found is None:
        return ""
    trees = f"{len(found['trees']):,} trees"
    return (
        f"What moved a prediction: Shapley values against {found['rows']:,} training rows, like "
        f"those of explain in Python, over {trees}. They start from the mean over these rows and "
        "add up to the prediction. They say how the trees use a feature, not what would happen if "
        "it were changed in reality."
    )


def _more_features(data: dict[str, Any]) -> str:
    rest = len(data["features"]) - 15
    if rest <= 0:
        return ""
    return f"And {rest} more, each in at most {data['features'][15]['share']:.1%} of the trees."


def _convergence_note(posterior: Posterior) -> str:
    if posterior.has_particles:
        return (
            "Particles are weighted and have no R-hat: what matters is their effective sample "
            "size, and whether the islands agree."
        )
    if posterior.n_chains == 1:
        return "A single chain cannot show that it missed a part of the posterior."
    return (
        f"{posterior.n_chains} chains sampled independently. If they agree, in the table, the dots "
        "and the lines, the results can be trusted."
    )


def _run_note(posterior: Posterior) -> str:
    diagnosis = posterior.diagnose()
    parts = [f"Sampled in {posterior.info.seconds:.1f} s"]
    moves = [f"{m} {share:.0%}" for m, share in diagnosis.acceptance.items() if np.isfinite(share)]
    if moves:
        parts.append(f"accepted: {', '.join(moves)}")
    if "divergent" in posterior.stats:
        parts.append(f"divergences: {diagnosis.n_divergent}")
    if posterior.log_evidence is not None:
        parts.append(f"log evidence {evidence_text(posterior)}")
    return "; ".join(parts) + "."


def _interval_note(classification: bool) -> str:
    if classification:
        return (
            "90% credible intervals. In a leaf, they are for its class probabilities, given the "
            "tree. For a row that you enter, they include the uncertainty about the tree."
        )
    return (
        "90% intervals. In a leaf, they are for its mean, given the tree. For a row that you "
        "enter, they are for a new observation, and include the uncertainty about the tree and "
        "the noise."
    )


def _soft_note(posterior: Posterior) -> str:
    if not np.any(posterior.draws.h > 0):
        return "Splits are hard: each row goes to one side only."
    return (
        "Near a soft threshold a row goes both ways: to no with probability "
        "1 / (1 + exp(-(x - threshold) / h))."
    )
