"""What the page needs to say which features moved a row: means over the background, no rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..posterior import Posterior
from ..posterior.shapley import BACKGROUND, background_means, exact, orders_of, ways_of
from ..utils.arrays import evenly
from .pack import packed

BUDGET = 400_000
"""Bytes of the page that these means may take."""
FEWEST = 20
"""Trees without which the effects would mean little."""


def pack_effects(drawn: Posterior) -> dict[str, Any] | None:
    """Means per tree, leaf and set of columns, for as many of the draws as there is room for.

    See ``posterior.shapley``: the page finishes what ``explain`` computes, for any row. None
    without training data, for weighted sums (HMC-DFI), and for trees that are too deep.
    """
    if drawn.training is None or not exact(drawn):
        return None
    sizes = np.array(
        [
            sum(2 ** len(order) for order in orders_of(drawn, t, ways_of(drawn, t)))
            for t in range(drawn.n_draws)
        ]
    )
    room = drawn.n_draws
    while (taken := float(sizes[evenly(drawn.n_draws, room)].sum()) * 4 * 4 / 3) > BUDGET:
        room = min(room - 1, int(room * BUDGET / taken))
        if room < min(FEWEST, drawn.n_draws):
            return None
    chosen = evenly(drawn.n_draws, room)
    rows = drawn.training.X[evenly(len(drawn.training.X), BACKGROUND)]
    means = background_means(drawn.taken(chosen), rows)
    return {"trees": chosen, "rows": len(rows), "means": packed("f4", np.concatenate(means))}
