"""CGM (Chipman, George and McCulloch 1998): grow, prune, change or swap, one of four at random.

One iteration is ``proposals`` of them. Each direction of a pair of moves has the same
probability, so that it cancels; an impossible move is a step that stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.hard_moves import attempt
from ..core.hard_record import record_hard_tree, start_tree
from ..core.jit import kernel
from ..core.record import is_full
from ..settings import Settings
from .hard import HardPlan, HardSampler, make_model

MOVES = ("grow", "prune", "change", "swap")
"""Numbered as in ``hard_moves``."""


@kernel
def advance_cgm(model, loop, plan, block, n, rng):
    """Up to n iterations, fewer when the block is full; how many, or -1 without a start."""
    if n > 0 and loop.iteration[0] == 0 and not start_tree(model, loop.state, rng):
        return -1
    for done in range(n):
        phase = 0 if loop.iteration[0] < plan.n_warmup else 1
        if phase == 1 and is_full(block, model.shape.max_leaves):
            return done
        for _ in range(plan.repeats):
            move = int(4.0 * rng.random())
            loop.tally[phase, move, 1] += 1
            if attempt(model, loop.state, move, rng):
                loop.tally[phase, move, 0] += 1
        if phase == 1:
            record_hard_tree(model, loop.state, block, rng)
        loop.iteration[0] += 1
    return n


def build_cgm(
    columns: NDArray[np.float64],
    y: NDArray[np.generic],
    n_classes: int,
    settings: Settings,
    n_warmup: int,
) -> HardSampler:
    model = make_model(columns, y, n_classes, settings, pinball=False)
    return HardSampler(model, HardPlan(n_warmup, settings.proposals), advance_cgm, MOVES)
