"""What chains have made, gathered: the flat ``Draws`` of a posterior, and counts of moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.tree.record import SCALARS, Piece
from ..posterior.draws import Draws

STAT_TYPES = {
    "divergent": np.bool_,
    "nuts_depth": np.int64,
    "n_gradients": np.int64,
    "founder": np.int64,
}

Tally = Mapping[str, Mapping[str, tuple[int, int]]]
"""phase -> move -> (accepted, proposed), of one chain."""


def collect(
    pieces: Sequence[Sequence[Piece]],
    kept: int,
    h: NDArray[np.float64],
    kinds: NDArray[np.int64] | None = None,
) -> tuple[Draws, dict[str, NDArray[np.float64]]]:
    """The first ``kept`` draws of every chain, flat, and all scalars, [chain, draw].

    ``h`` is that of all draws, unless the pieces have one of each. ``kinds`` as in ``Draws``.
    """
    counts = [np.concatenate([piece.n_nodes for piece in chain])[:kept] for chain in pieces]
    nodes = np.array([count.sum() for count in counts])
    splits, leaves, trees = (nodes - kept) // 2, (nodes + kept) // 2, np.full(len(pieces), kept)

    def flat(name: str, lengths: NDArray[np.int64]) -> NDArray[Any]:
        """The first so many entries of each chain, one chain after the other, copied once."""
        first = getattr(pieces[0][0], name)
        out = np.empty((lengths.sum(), *first.shape[1:]), first.dtype)
        at = 0
        for chain, length in zip(pieces, lengths, strict=True):
            end = at + length
            for piece in chain:
                part = getattr(piece, name)[: end - at]
                out[at : at + len(part)] = part
                at += len(part)
        return out

    table = flat("scalars", trees).reshape(len(pieces), kept, -1)  # chain, draw, scalar
    scalar = {name: table[:, :, j] for j, name in enumerate(SCALARS)}
    weight = np.exp(scalar["log_weight"] - scalar["log_weight"].max())
    own_h = flat("h", trees)
    draws = Draws(
        n_chains=len(pieces),
        n_draws=kept,
        node_offset=np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64),
        size=flat("size", nodes).astype(np.int32, copy=False),
        feature=flat("feature", splits).astype(np.int32, copy=False),
        threshold=flat("threshold", splits).astype(np.float64, copy=False),
        split_weights=flat("weights", splits).astype(np.float64, copy=False),
        leaf=flat("leaf", leaves).astype(np.float64, copy=False),
        h=own_h if own_h.shape[1] else h,
        n_leaves=scalar["n_leaves"].astype(np.int64),
        depth=scalar["depth"].astype(np.int64),
        log_likelihood=scalar["log_likelihood"].copy(),
        log_posterior=scalar["log_posterior"].copy(),
        sigma=scalar["sigma"].copy(),
        weights_of_draws=weight / weight.sum(),
        levels=None if kinds is None else flat("levels", splits),
        kinds=kinds,
    )
    return draws, scalar


def collect_tallies(
    tallies: Sequence[Tally],
) -> dict[str, dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]]:
    """phase -> move -> (accepted, proposed), [chain] each."""
    moves = list(dict.fromkeys(m for tally in tallies for m in tally["sampling"]))

    def counts(phase: str, move: str, which: int) -> NDArray[np.int64]:
        return np.array([tally[phase].get(move, (0, 0))[which] for tally in tallies])

    return {
        phase: {move: (counts(phase, move, 0), counts(phase, move, 1)) for move in moves}
        for phase in ("warmup", "sampling")
    }
