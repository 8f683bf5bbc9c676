"""What every sampler is given, what it is, and what all build from the configuration alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.moves.propose import ENTRIES
from ..core.soft.data import Columns
from ..core.tree.kinds import Kinds
from ..core.tree.priors import TreePrior, make_tree_prior
from ..core.tree.record import Piece

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


@dataclass(frozen=True)
class Problem:
    """Data as the samplers want it."""

    columns: Columns
    """[p, n] on the unit interval; ``np.asarray`` makes one array of it."""
    y: NDArray[np.generic]
    """[n]: the standardised target, or class codes 0 .. n_classes - 1."""
    n_classes: int
    """0 for regression."""
    weights: NDArray[np.float64] | None = None
    """[n], positive: a row of weight 2 is two rows. None: all are 1."""
    kinds: Kinds | None = None
    """Of the columns; None: numbers without missing cells."""
    names: tuple[str, ...] = ()
    """Of the columns, for errors; () where nobody knows them."""


class Chain(Protocol):
    """What the loop asks of a chain of any sampler."""

    @property
    def remembers(self) -> tuple[str, ...]:
        """Attributes that its next draws depend on, for ``chain_state``.

        Records, generators, arrays, numbers, chains, and lists of these.
        """

    def compile(self) -> None: ...
    def advance(self, n: int) -> list[Piece]: ...
    def tally(self) -> dict[str, dict[str, tuple[int, int]]]: ...


class Sampler(Protocol):
    """Frozen configuration that starts chains."""

    @property
    def h(self) -> NDArray[np.float64]: ...
    @property
    def kernels(self) -> list[Any]: ...
    def start(self, rng: np.random.Generator) -> Chain: ...


def sweep_of(configuration: Configuration[Any]) -> tuple[str, ...]:
    """Names of the informed moves of an iteration, in order."""
    method = configuration.method
    if method.informed_moves is not None:
        moves: tuple[str, ...] = method.informed_moves
        return moves
    return INFORMED_MOVES if method.moves == "informed" else ()


def tree_prior_of(
    n_features: int, configuration: Configuration[Any], kinds: Kinds | None = None
) -> TreePrior:
    method = configuration.method
    # What a method does not have, its compiled code does not read.
    return make_tree_prior(
        n_features,
        alpha_split=configuration.alpha_split or 0.5,
        beta_split=configuration.beta_split or 0.0,
        min_leaves=method.min_leaves,
        max_leaves=configuration.max_leaves,
        tau_prior=getattr(method, "tau_prior", (1.0, 1.0)),
        feature_prior=getattr(method, "feature_prior", None),
        weight_prior=getattr(method, "weight_prior", 1.0),
        kinds=kinds,
    )
