"""WU (Wu, Tjelmeland and West 2007): the pinball prior, and a radical restructure.

One iteration: ``triples`` of (change, grow or prune, swap), one restructure, and as many triples
again. An iteration counts as accepted if anything in it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types

from ..core.backend.jit import kernel
from ..core.backend.records import RNG
from ..core.backend.units import unit
from ..core.hard.moves import CHANGE, GROW, PRUNE, RESTRUCTURE, SWAP, HardModel, attempt
from ..core.hard.record import record_hard_tree, start_tree
from ..core.tree.record import Block, is_full
from .common import Problem
from .hard import HardLoop, HardPlan, HardSampler, make_model

if TYPE_CHECKING:
    from ..methods.base import Configuration

MOVES = ("grow", "prune", "change", "swap", "restructure", "iteration")
ITERATION = MOVES.index("iteration")


@kernel
def counted(model, loop, phase, move, rng):
    """Attempt a move and count it; 1 where accepted."""
    accepted = 1 if attempt(model, loop.state, move, rng) else 0
    loop.tally[phase, move, 0] += accepted
    loop.tally[phase, move, 1] += 1
    return accepted


@kernel
def advance_wu(model, loop, explorer, plan, block, n, rng):
    """Up to n iterations, fewer when the block is full; how many, or -1 without a start.

    There is no explorer: ``None``.
    """
    if n > 0 and loop.iteration[0] == 0 and not start_tree(model, loop.state, rng):
        return -1
    for done in range(n):
        phase = 0 if loop.iteration[0] < plan.n_warmup else 1
        if phase == 1 and is_full(block, model.shape.max_leaves):
            return done
        accepted = 0
        for step in range(6 * plan.repeats + 1):
            if step == 3 * plan.repeats:
                move = RESTRUCTURE
            else:
                turn = (step if step < 3 * plan.repeats else step - 1) % 3
                move = CHANGE if turn == 0 else SWAP
                if turn == 1:
                    move = GROW if rng.random() < 0.5 else PRUNE
            accepted += counted(model, loop, phase, move, rng)
        loop.tally[phase, ITERATION, 0] += 1 if accepted > 0 else 0
        loop.tally[phase, ITERATION, 1] += 1
        if phase == 1:
            record_hard_tree(model, loop.state, block, rng)
        loop.iteration[0] += 1
    return n


unit(advance_wu, HardModel, HardLoop, types.none, HardPlan, Block, int, RNG)


def build_wu(problem: Problem, configuration: Configuration[Any], n_warmup: int) -> HardSampler:
    model = make_model(problem, configuration, pinball=True)
    return HardSampler(
        model, HardPlan(n_warmup=n_warmup, repeats=configuration.method.triples), advance_wu, MOVES
    )
