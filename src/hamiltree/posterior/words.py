"""A posterior in a sentence or two, for someone who will read no table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..utils.arrays import FloatArray
from .consensus import shares_of_splits

if TYPE_CHECKING:
    from .posterior import Posterior

NAMED = 3
"""Features that the sentence names."""
CERTAIN = 1 - 1e-9
"""Sums of weights reach 1 up to rounding."""
WORTH_NAMING = 0.1
"""Share of the trees that must use a feature for it to be named."""


def summary_sentence(posterior: Posterior) -> str:
    """What the trees say, then whether to believe it."""
    return f"{finding(posterior)} {posterior.diagnose().sentence}"


def finding(posterior: Posterior) -> str:
    """What the sampled trees have in common."""
    sizes_of_draws, weights = posterior.n_leaves.ravel(), posterior.weights.ravel()
    shares = np.bincount(sizes_of_draws, weights=weights).astype(np.float64)
    likely = int(shares.argmax())
    leaves = "leaf" if likely == 1 else "leaves"
    share = percent(shares[likely])
    low, high = np.searchsorted(np.cumsum(shares), [0.05, 0.95])  # the central 90 %
    if shares[likely] >= CERTAIN:
        sizes = f"All sampled trees have {likely} {leaves}"
    elif low == high:
        sizes = f"Most sampled trees ({share}) have {likely} {leaves}"
    else:
        sizes = f"The sampled trees have {low} to {high} leaves, most often {likely} ({share})"
    if not (posterior.n_leaves > 1).any():
        return f"{sizes}: no column is worth a split."
    if posterior.draws.weights.shape[1]:
        return f"{sizes}; every split weighs all columns together."
    use = share_of_trees(posterior)
    order = [int(j) for j in np.argsort(-use, kind="stable") if use[j] >= WORTH_NAMING]
    if not order:
        return f"{sizes}; hardly any of them finds a column worth splitting on."
    names = posterior.preprocessing.used_names
    first, *others = order[:NAMED]
    parts = [f"{names[first]} ({percent(use[first])} of the trees)"]
    parts += [f"{names[j]} ({percent(use[j])})" for j in others]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{sizes}; they split mostly on {listed}."


def share_of_trees(posterior: Posterior) -> FloatArray:
    """Posterior probability that a tree splits on each used column at least once; HMC-DF."""
    columns = np.arange(len(posterior.preprocessing.used))
    uses = shares_of_splits(posterior.draws, columns) > 0
    share: FloatArray = posterior.weights.ravel() @ uses
    return share


def percent(share: float) -> str:
    """A percentage that rounding never makes certain."""
    if 0.995 < share < CERTAIN:
        return "over 99 %"
    if 0 < share < 0.005:
        return "under 1 %"
    return f"{100 * share:.0f} %"
