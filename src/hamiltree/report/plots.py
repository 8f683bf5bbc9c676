"""The numbers behind the page's plots."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs.encoding import Encoding
from ..posterior import Posterior
from ..posterior.judgement import MIN_ESS, RHAT_LIMIT
from ..posterior.representative_tree import shares_of_splits
from ..utils.arrays import FloatArray

BINS = 60
THRESHOLDS = 9
"""Features whose thresholds are shown."""
RARE = 0.05
"""Features that fewer trees use have too few thresholds to show."""
TRACE = 300
"""Draws per chain in the trace."""
NAMES = {
    "log_posterior": "log posterior",
    "log_likelihood": "log-likelihood",
    "n_leaves": "number of leaves",
    "sigma": "noise sd",
    "predictions": "predictions, worst row",
}
"""Names of monitored quantities where they differ from those in the code."""


def features(posterior: Posterior) -> list[dict[str, Any]]:
    """Share of the trees that use each column, most used first; none for HMC-DFI."""
    if posterior.draws.split_weights.shape[1]:
        return []
    columns = np.arange(len(posterior.preprocessing.used))
    used = (shares_of_splits(posterior.draws, columns) > 0).reshape(*posterior.weights.shape, -1)
    by_chain = np.einsum("cd,cdj->cj", _within_chains(posterior), used)
    share = np.einsum("cd,cdj->j", posterior.weights, used)
    names = posterior.preprocessing.used_names
    return [
        {"name": names[j], "share": min(share[j], 1.0), "byChain": by_chain[:, j]}
        for j in np.argsort(-share, kind="stable")
        if share[j] > 0
    ]


def thresholds(posterior: Posterior, encoding: Encoding) -> list[dict[str, Any]]:
    """Histograms of the thresholds of the features that are used most, over their range.

    Columns of 0 and 1 are left out: any threshold between splits them alike; and so are categories.
    """
    d, scale = posterior.draws, posterior.preprocessing
    weight = np.repeat(posterior.weights.ravel(), d.n_leaves.ravel() - 1)
    ordered = {column.name: column.categories for column in encoding.columns if column.categories}
    one_hot = [column for column in encoding.columns if column.kind == "one-hot"]
    binary = {output for column in one_hot for output in column.outputs}
    binary |= {column.name for column in encoding.columns if column.kind == "category"}
    found: list[dict[str, Any]] = []
    for feature in features(posterior):
        name = feature["name"]
        if name in binary or feature["share"] < RARE or len(found) == THRESHOLDS:
            continue
        j = scale.used_names.index(name)
        here = (d.feature == j) & np.isfinite(d.threshold)
        splits, _ = np.histogram(d.threshold[here], BINS, (0.0, 1.0), weights=weight[here])
        ends = (scale.minimum[j], scale.minimum[j] + scale.span[j])
        low, high = (f"{end:.6g}" for end in ends)
        if name in ordered:
            low, high = ordered[name][0], ordered[name][-1]
        found.append({"name": name, "splits": splits, "low": low, "high": high})
    return found


def leaves(posterior: Posterior) -> dict[str, Any]:
    """Posterior of the number of leaves, and each chain's own."""
    first, last = int(posterior.n_leaves.min()), int(posterior.n_leaves.max())
    is_size = posterior.n_leaves[..., None] == np.arange(first, last + 1)
    return {
        "first": first,
        "shares": np.einsum("cd,cdk->k", posterior.weights, is_size),
        "byChain": np.einsum("cd,cdk->ck", _within_chains(posterior), is_size),
    }


def trace(posterior: Posterior) -> dict[str, Any] | None:
    """Log posterior of each chain, thinned; None for particles, whose order means nothing."""
    if posterior.has_particles:
        return None
    kept = np.linspace(0, posterior.n_draws - 1, min(TRACE, posterior.n_draws)).astype(int)
    values = posterior.log_posterior[:, kept]
    return {
        "chains": [[float(f"{value:.6g}") for value in chain] for chain in values],
        "low": values.min(),
        "high": values.max(),
        "nDraws": posterior.n_draws,
    }


def convergence(posterior: Posterior) -> list[dict[str, Any]]:
    """R-hat and effective draws of each monitored quantity, as texts, and whether they are good."""
    diagnosis = posterior.diagnose()
    rows = []
    for name, rhat in diagnosis.rhat.items():
        ess = diagnosis.ess[name]
        judged = np.isfinite(rhat)
        rows.append(
            {
                "name": NAMES.get(name, name),
                "rhat": f"{np.ceil(1000 * rhat) / 1000:.3f}" if judged else "\N{EN DASH}",
                "ess": f"{ess:,.0f}" if np.isfinite(ess) else "\N{EN DASH}",
                "good": bool((rhat <= RHAT_LIMIT or np.isnan(rhat)) and ess >= MIN_ESS),
            }
        )
    return rows


def _within_chains(posterior: Posterior) -> FloatArray:
    """Weights that sum to 1 in each chain; an island can be without any weight."""
    totals = posterior.weights.sum(axis=1, keepdims=True)
    shares: FloatArray = posterior.weights / np.maximum(totals, 1e-300)
    return shares
