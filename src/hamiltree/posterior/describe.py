"""A posterior as text: in a sentence or two, and on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..utils.arrays import FloatArray
from .diagnostics import accepted_shares
from .draws import RunInfo
from .representative_tree import shares_of_splits

if TYPE_CHECKING:
    from .posterior import Posterior

NAMED = 3
"""Features that the sentence names."""
CERTAIN = 1 - 1e-9
"""Sums of weights reach 1 up to rounding."""
MIN_SHARE = 0.1
"""Share of the trees that must use a feature for it to be named."""
_ENDED = {
    "n_draws": "",
    "target": ", ended when target_rhat was met",
    "max_draws": ", ended at max_draws",
    "max_seconds": ", ended by max_seconds",
    "interrupted": ", interrupted",
}


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
    low, high = np.searchsorted(np.cumsum(shares), [0.05, 0.95])  # the central 90%
    if shares[likely] >= CERTAIN:
        sizes = f"All sampled trees have {likely} {leaves}"
    elif low == high:
        sizes = f"Most sampled trees ({share}) have {likely} {leaves}"
    else:
        sizes = f"The sampled trees have {low} to {high} leaves, most often {likely} ({share})"
    if not (posterior.n_leaves > 1).any():
        return f"{sizes}: no column improves the fit enough for a split."
    if posterior.draws.split_weights.shape[1]:
        return f"{sizes}; every split weighs all columns together."
    use = share_of_trees(posterior)
    order = [int(j) for j in np.argsort(-use, kind="stable") if use[j] >= MIN_SHARE]
    if not order:
        return f"{sizes}; hardly any of them has a split."
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
        return "over 99%"
    if 0 < share < 0.005:
        return "under 1%"
    return f"{100 * share:.0f}%"


def summary(posterior: Posterior) -> str:
    """The posterior on one screen."""
    weights, diagnosis = posterior.weights, posterior.diagnose()
    task = f"{posterior.n_classes} classes" if posterior.n_classes else "regression"
    counts = np.bincount(posterior.n_leaves.ravel(), weights=weights.ravel())
    likely = int(counts.argmax())
    leaves = f"{mean_sd(posterior.n_leaves, weights)}, most often {likely} ({counts[likely]:.0%})"
    lines = [
        f"{repr(posterior)[1:-1]}, {task}, {len(posterior.preprocessing.used)} features",
        f"  leaves         {leaves}",
        f"  depth          {mean_sd(posterior.depth, weights)}",
        f"  log posterior  {mean_sd(posterior.log_posterior, weights)}",
    ]
    if not posterior.n_classes:
        lines.append(f"  sigma          {mean_sd(posterior.sigma, weights)}")
    if (softness := _softness(posterior)) is not None:
        lines.append(f"  h              {softness}")
    if posterior.log_evidence is not None:
        apart = posterior.log_evidence_of_chains
        islands = "" if apart is None else f" (islands {', '.join(f'{v:.1f}' for v in apart[:8])})"
        lines.append(f"  log evidence   {evidence_text(posterior)}{islands}")
    if powers := posterior.info.powers:
        lines.append(f"  replicas       {len(powers)}, at powers from 1 to {powers[-1]:.2g}")
    if posterior.acceptance:
        lines.append(f"  accepted       {accepted_shares(posterior.acceptance)}")
    if "divergent" in posterior.stats:
        lines.append(f"  divergences    {diagnosis.n_divergent}")
    ended = _ENDED[posterior.info.stopped]
    lines.append(f"  run time       {posterior.info.seconds:.1f} s{ended}")
    return "\n".join([*lines, diagnosis.sentence])


def evidence_text(posterior: Posterior) -> str:
    """The log evidence with its error, where that is known."""
    error = posterior.log_evidence_error
    known = error is not None and np.isfinite(error)
    return f"{posterior.log_evidence:.2f}{f' +- {error:.2f}' if known else ''}"


def _softness(posterior: Posterior) -> str | None:
    """What h was chosen or learned, or that it differs by column; None where it was one number."""
    h, weights = posterior.draws.h, posterior.weights
    if posterior.draws.h_learned:
        if h.shape[1] == 1:
            return f"{mean_sd(h.reshape(weights.shape), weights)}, learned"
        h = h.mean(axis=0)
    chosen = isinstance(posterior.configuration.h, str)
    how = ", learned" if posterior.draws.h_learned else ", by the data's spacing" if chosen else ""
    if (h == h[0]).all():
        return f"{h[0]:.3g}{how}" if chosen else None
    names = posterior.preprocessing.used_names
    ends = [f"{h[k]:.3g} ({names[k]})" for k in (h.argmin(), h.argmax())]
    return f"{' to '.join(ends)}{how}"


def mean_sd(values: NDArray[Any], weights: FloatArray) -> str:
    """Weighted mean and sd as text."""
    mean = float(np.sum(weights * values))
    sd = float(np.sqrt(np.sum(weights * (values - mean) ** 2)))
    if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
        return f"{mean:.4g} +- {sd:.2g}"
    places = 1 - int(np.floor(np.log10(sd)))  # two digits of the sd
    if not 0 <= places <= 6:
        return f"{mean:.4g} +- {sd:.2g}"
    return f"{mean:.{places}f} +- {sd:.{places}f}"


def acceptance_table(info: RunInfo) -> str:
    """Accepted share by move, in warm-up and in sampling."""
    phases = info.acceptance
    lines = [f"{'move':<16}" + "".join(f"{phase:>22}" for phase in phases)]
    for move in dict.fromkeys(move for moves in phases.values() for move in moves):
        line = f"{move:<16}"
        for moves in phases.values():
            accepted, proposed = moves.get(move, (np.zeros(1), np.zeros(1)))
            share = accepted_share(accepted, proposed)
            percent = "-" if np.isnan(share) else f"{share:.1%}"
            line += f"{f'{percent} of {int(proposed.sum())}':>22}"
        lines.append(line)
    return "\n".join(lines)


def accepted_share(accepted: NDArray[Any], proposed: NDArray[Any]) -> float:
    total = int(np.sum(proposed))
    return float(np.sum(accepted)) / total if total else float("nan")
