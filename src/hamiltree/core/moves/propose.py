"""The list of informed moves, and one of them by its number."""

from __future__ import annotations

import numpy as np

from ..backend.jit import kernel
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

GROW, PRUNE, INSERT, DELETE, CHANGE, REGROW, TRANSPOSE, SWAP, RELOCATE, ROTATE = range(10)
NAMES = (
    "grow",
    "prune",
    "insert",
    "delete",
    "change",
    "regrow",
    "transpose",
    "swap",
    "relocate",
    "rotate",
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


@kernel
def propose_informed(proposals, tree, new, move, mode, rng):
    """Edit ``new``, a copy of ``tree``, by a move; log q(back) - log q(forth)."""
    if move == GROW:
        return grow_informed(proposals, tree, new, mode, rng)
    if move == PRUNE:
        return prune_informed(proposals, tree, new, mode, rng)
    if move == INSERT:
        return insert_informed(proposals, tree, new, mode, rng)
    if move == DELETE:
        return delete_informed(proposals, tree, new, mode, rng)
    if move == CHANGE:
        return change_informed(proposals, tree, new, mode, rng)
    if move == REGROW:
        return regrow_informed(proposals, tree, new, mode, rng)
    if move == TRANSPOSE:
        return transpose_informed(proposals, tree, new, mode, rng)
    if move == SWAP:
        return swap(proposals, tree, new, mode, rng)
    if move == ROTATE:
        return rotate(proposals, tree, new, mode, rng)
    if move == RELOCATE:
        return relocate_informed(proposals, tree, new, mode, rng)
    return -np.inf


unit(propose_informed, PROPOSE)
