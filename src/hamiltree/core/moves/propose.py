"""The list of informed moves, and one of them by its number."""

from __future__ import annotations

import numpy as np

from ..backend.jit import inlined, kernel, pointer_kernel
from ..backend.records import RNG, function_type
from ..backend.units import unit
from ..scan.proposals import Proposals
from ..tree.nodes import Tree
from .change import change_informed
from .grow_prune import grow_informed, prune_informed
from .insert_delete import delete_informed, insert_informed
from .regrow import regrow_informed
from .relocate import relocate_informed
from .rotate import rotate
from .swap import swap
from .transpose import transpose_informed

MOVES = {
    "grow": grow_informed,
    "prune": prune_informed,
    "insert": insert_informed,
    "delete": delete_informed,
    "change": change_informed,
    "regrow": regrow_informed,
    "transpose": transpose_informed,
    "swap": swap,
    "relocate": relocate_informed,
    "rotate": rotate,
}
"""By name. The number of a move is its place here; prune and delete follow what they undo."""
NAMES = tuple(MOVES)
GROW, INSERT, REGROW, TRANSPOSE, RELOCATE = (
    NAMES.index(name) for name in ("grow", "insert", "regrow", "transpose", "relocate")
)
RARE = len(NAMES)
"""In a sweep: with even odds none, or one of the moves that take several scans."""
ENTRIES = {name: k for k, name in enumerate((*NAMES, "rare")) if name not in ("prune", "delete")}
"""What a sweep can be made of."""

PROPOSE = function_type(float, Proposals, Tree, Tree, int, int, RNG)
"""The type of ``propose_informed``."""


@kernel
def move_of(entry, rng):
    """The move that an entry of a sweep stands for this time, or -1.

    GROW is grow or prune by a fair coin, INSERT insert or delete.
    """
    if entry == RARE:
        chance = 6.0 * rng.random()
        if chance >= 3.0:
            return -1
        return REGROW if chance < 1.0 else TRANSPOSE if chance < 2.0 else RELOCATE
    if entry in (GROW, INSERT) and rng.random() < 0.5:
        return entry + 1
    return entry


@inlined
def _impossible(proposals, tree, new, move, mode, rng):
    return -np.inf


def _by_number(moves, number=0):
    """A kernel that calls the move of a number; compiled code cannot index functions."""
    if number == len(moves):
        return _impossible
    propose, propose_later = moves[number], _by_number(moves, number + 1)

    @inlined
    def propose_this_or_later(proposals, tree, new, move, mode, rng):
        if move == number:
            return propose(proposals, tree, new, mode, rng)
        return propose_later(proposals, tree, new, move, mode, rng)

    return propose_this_or_later


_propose = _by_number(tuple(MOVES.values()))


@pointer_kernel
def propose_informed(proposals, tree, new, move, mode, rng):
    """Edit ``new``, a copy of ``tree``, by a move; log q(back) - log q(forth)."""
    return _propose(proposals, tree, new, move, mode, rng)


unit(propose_informed, PROPOSE, seconds=7)
