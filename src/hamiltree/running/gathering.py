"""From the blocks of draws that chains hand over to the flat draws of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.tree.record import SCALARS, Piece
from ..draws import Draws

_NUTS_STATS = ("divergent", "nuts_depth", "step_size", "accept_stat", "n_gradients")
_STATS: dict[str, tuple[str, ...]] = {
    "hmc-df": _NUTS_STATS,
    "hmc-dfi": _NUTS_STATS,
    "cgm": (),
    "wu": (),
    "smc": ("log_weight", "founder"),
}
_STAT_TYPES = {
    "divergent": np.bool_,
    "nuts_depth": np.int64,
    "n_gradients": np.int64,
    "founder": np.int64,
}

Tally = Mapping[str, Mapping[str, tuple[int, int]]]
"""phase -> move -> (accepted, proposed), of one chain."""


def gather(
    pieces: Sequence[Sequence[Piece]], kept: int, h: NDArray[np.float64]
) -> tuple[Draws, dict[str, NDArray[np.float64]]]:
    """The first ``kept`` draws of every chain, flat, and all scalars, [chain, draw].

    ``h`` is that of all draws, unless the blocks have one of each.
    """
    counts = [np.concatenate([b.n_nodes for b in chain])[:kept] for chain in pieces]
    nodes = np.array([count.sum() for count in counts])
    lengths = {
        "size": nodes,
        "feature": (nodes - kept) // 2,
        "threshold": (nodes - kept) // 2,
        "weights": (nodes - kept) // 2,
        "leaf": (nodes + kept) // 2,
        "scalars": np.full(len(pieces), kept),
        "h": np.full(len(pieces), kept),
    }
    flat = {name: _joined(pieces, name, length) for name, length in lengths.items()}
    table = flat["scalars"].reshape(len(pieces), kept, -1)  # chain, draw, scalar
    scalar = {name: table[:, :, j] for j, name in enumerate(SCALARS)}
    weight = np.exp(scalar["log_weight"] - scalar["log_weight"].max())
    draws = Draws(
        n_chains=len(pieces),
        n_draws=kept,
        node_offset=np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64),
        size=flat["size"].astype(np.int32, copy=False),
        feature=flat["feature"].astype(np.int32, copy=False),
        threshold=flat["threshold"].astype(np.float64, copy=False),
        weights=flat["weights"].astype(np.float64, copy=False),
        leaf=flat["leaf"].astype(np.float64, copy=False),
        h=flat["h"] if flat["h"].shape[1] else h,
        n_leaves=scalar["n_leaves"].astype(np.int64),
        depth=scalar["depth"].astype(np.int64),
        log_likelihood=scalar["log_likelihood"].copy(),
        log_posterior=scalar["log_posterior"].copy(),
        sigma=scalar["sigma"].copy(),
        weights_of_draws=weight / weight.sum(),
    )
    return draws, scalar


def joined(pieces: Sequence[Piece]) -> Piece:
    """All draws of a chain in one piece."""
    if len(pieces) == 1:
        return pieces[0]
    named = zip(Piece._fields, zip(*pieces, strict=True), strict=True)
    whole = {name: np.concatenate(arrays) for name, arrays in named if name != "filled"}
    return Piece(filled=np.sum([piece.filled for piece in pieces], axis=0), **whole)


def parted(draws: Draws, stats: Mapping[str, NDArray[np.generic]]) -> list[list[Piece]]:
    """The draws of a run as the chains handed them over: ``gather`` undone."""
    table = np.zeros((draws.n_chains, draws.n_draws, len(SCALARS)))
    for j, name in enumerate(SCALARS):
        if name in stats:
            table[:, :, j] = stats[name]
        elif hasattr(draws, name):
            table[:, :, j] = getattr(draws, name)
    pieces = []
    for chain in range(draws.n_chains):
        first, last = chain * draws.n_draws, (chain + 1) * draws.n_draws
        a, b = int(draws.node_offset[first]), int(draws.node_offset[last])
        splits = slice((a - first) // 2, (b - last) // 2)
        leaves = slice((a + first) // 2, (b + last) // 2)
        filled = np.array([last - first, b - a, *(s.stop - s.start for s in (splits, leaves))])
        piece = Piece(
            filled=filled,
            n_nodes=np.diff(draws.node_offset[first : last + 1]),
            size=draws.size[a:b],
            feature=draws.feature[splits],
            threshold=draws.threshold[splits],
            weights=draws.weights[splits],
            leaf=draws.leaf[leaves],
            scalars=table[chain],
            h=draws.h[first:last] if draws.h_learned else np.zeros((last - first, 0)),
        )
        pieces.append([piece])
    return pieces


def _joined(
    pieces: Sequence[Sequence[Piece]], name: str, lengths: NDArray[np.int64]
) -> NDArray[Any]:
    """The first so many entries of each chain, one chain after the other, copied once."""
    first = getattr(pieces[0][0], name)
    out = np.empty((lengths.sum(), *first.shape[1:]), first.dtype)
    at = 0
    for chain, length in zip(pieces, lengths, strict=True):
        end = at + length
        for block in chain:
            part = getattr(block, name)[: end - at]
            out[at : at + len(part)] = part
            at += len(part)
    return out


def stats_of(
    method: str, scalar: Mapping[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.generic]]:
    """What the sampler recorded of itself at each draw, [chain, draw] each."""
    return {
        name: scalar[name].astype(_STAT_TYPES.get(name, np.float64))
        for name in _STATS.get(method, ())
    }


def log_evidence(log_weight: NDArray[np.float64]) -> float:
    """Log of the mean over islands of their estimates, which are the sums of their weights."""
    top = log_weight.max()
    return float(top + np.log(np.exp(log_weight - top).sum(axis=1).mean()))


def gather_tallies(
    tallies: Sequence[Tally],
) -> dict[str, dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]]:
    """phase -> move -> (accepted, proposed), [chain] each."""
    moves = list(dict.fromkeys(m for tally in tallies for m in tally["sampling"]))
    return {
        phase: {
            move: (
                np.array([t[phase].get(move, (0, 0))[0] for t in tallies]),
                np.array([t[phase].get(move, (0, 0))[1] for t in tallies]),
            )
            for move in moves
        }
        for phase in ("warmup", "sampling")
    }
