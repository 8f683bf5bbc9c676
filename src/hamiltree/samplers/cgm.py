"""CGM (Chipman, George and McCulloch 1998): the posterior over hard trees with conjugate leaves.

``moves="prior"`` is theirs: grow, prune, change or swap, one of four at random, with rules drawn
from the prior; one iteration is ``proposals`` of them. ``moves="informed"`` makes a sweep of moves
that look at the data instead. Each direction of a pair of moves has the same probability, so that
it cancels; an impossible move is a step that stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.backend.jit import kernel
from ..core.backend.records import RNG
from ..core.backend.units import unit
from ..core.hard.informed_sweep import Explorer, sweep_hard_tree
from ..core.hard.moves import HardModel, attempt
from ..core.hard.record import record_hard_tree, start_tree
from ..core.scan.data import CLASS_COUNTS, OWN_VARIANCE, ScanData, ScanModel, make_scan_data
from ..core.tree.record import Block, is_full
from .common import Problem, sweep_of
from .hard import HardLoop, HardPlan, HardSampler, make_model

if TYPE_CHECKING:
    from ..methods.base import Configuration

MOVES = ("grow", "prune", "change", "swap")
"""Numbered as in ``core.hard.moves``."""


@kernel
def advance_cgm(model, loop, explorer, plan, block, n, rng):
    """Up to n iterations, fewer when the block is full; how many, or -1 without a start.

    Without an explorer, ``None``, its branch is not even compiled.
    """
    if n > 0 and loop.iteration[0] == 0 and not start_tree(model, loop.state, rng):
        return -1
    for done in range(n):
        phase = 0 if loop.iteration[0] < plan.n_warmup else 1
        if phase == 1 and is_full(block, model.shape.max_leaves):
            return done
        if explorer is not None:
            sweep_hard_tree(model, loop.state, explorer, phase, rng)
        for _ in range(plan.repeats):
            move = int(4.0 * rng.random())
            loop.tally[phase, move, 1] += 1
            if attempt(model, loop.state, move, rng):
                loop.tally[phase, move, 0] += 1
        if phase == 1:
            record_hard_tree(model, loop.state, block, rng)
        loop.iteration[0] += 1
    return n


unit(advance_cgm, HardModel, HardLoop, Explorer, HardPlan, Block, int, RNG)


def build_cgm(problem: Problem, configuration: Configuration[Any], n_warmup: int) -> HardSampler:
    model = make_model(problem, configuration, pinball=False)
    sweep = sweep_of(configuration)
    proposals = configuration.method.proposals if configuration.method.moves == "prior" else 0
    return HardSampler(
        model,
        HardPlan(n_warmup=n_warmup, repeats=proposals),
        advance_cgm,
        MOVES,
        scanned=(scan_data_of(model), scan_model_of) if sweep else None,
        sweep=sweep,
    )


def scan_data_of(model: HardModel) -> ScanData:
    n = model.data.columns.shape[1]
    classes = model.data.classes
    label = classes if len(classes) else np.zeros(n, np.int64)
    weights = model.data.weight if len(model.data.weight) else None
    y = model.data.y - model.leaf.mean
    return make_scan_data(
        model.data.columns, np.arange(n), label, y, weights=weights, kinds=model.data.kinds
    )


def scan_model_of(model: HardModel) -> ScanModel:
    """Scores as leaves of their own have them; only a proposal where all share a variance."""
    leaf = model.leaf
    regression = len(leaf.class_prior) == 0
    return ScanModel(
        prior=model.rules.prior,
        kind=model.rules.kind,
        leaf=OWN_VARIANCE if regression else CLASS_COUNTS,
        class_prior=leaf.class_prior,
        class_mass=leaf.mass,
        mean_variance=1.0,  # of leaves with a known variance
        prior_rows=leaf.prior_rows,
        shape=leaf.shape,
        rate=leaf.rate,
        h=np.zeros(model.data.columns.shape[0]),
        power=model.power,
    )
