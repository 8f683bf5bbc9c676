"""What every sampler builds from the settings alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.moves.propose import ENTRIES
from ..core.tree.kinds import Kinds
from ..core.tree.priors import TreePrior, make_tree_prior

if TYPE_CHECKING:
    from ..methods.base import Configuration

KNOWN_MOVES = tuple(ENTRIES)
"""What ``informed_moves`` can be made of."""

INFORMED_MOVES = (
    "grow",
    "rotate",
    "insert",
    "swap",
    "change",
    "rotate",
    "change",
    "swap",
    "rare",
)
"""An iteration of moves="informed". A grow is a prune, and an insert a delete, by a fair coin; rare
is nothing by another, or one of regrow, transpose and relocate, which take several scans."""


def sweep_of(settings: Configuration[Any]) -> tuple[str, ...]:
    """Names of the informed moves of an iteration, in order."""
    method = settings.method
    if method.informed_moves is not None:
        moves: tuple[str, ...] = method.informed_moves
        return moves
    return INFORMED_MOVES if method.moves == "informed" else ()


def tree_prior_of(
    n_features: int, settings: Configuration[Any], kinds: Kinds | None = None
) -> TreePrior:
    method = settings.method
    # What a method does not have, its compiled code does not read.
    return make_tree_prior(
        n_features,
        alpha_split=settings.alpha_split or 0.5,
        beta_split=settings.beta_split or 0.0,
        min_leaves=method.min_leaves,
        max_leaves=settings.max_leaves,
        tau_prior=getattr(method, "tau_prior", (1.0, 1.0)),
        feature_prior=getattr(method, "feature_prior", None),
        weight_prior=getattr(method, "weight_prior", 1.0),
        kinds=kinds,
    )
