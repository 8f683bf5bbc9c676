"""What every sampler hands upwards: the kept trees, flat, and information about the run.

``collect`` makes them of the pieces that chains hand over while they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.forest import Forest
from ..core.tree.record import SCALARS, Piece
from ..inputs.columns import coded
from ..utils.arrays import FloatArray, IntArray

STOPPED = ("n_draws", "target", "max_draws", "max_seconds", "interrupted")
"""What ends a run: the draws asked for, chains that agree, the limits on the way there, Ctrl-C."""

REQUESTED = ("n_warmup", "seed", "target_rhat", "max_draws", "max_seconds")
"""Fields of ``RunInfo`` that say how the run was asked for."""


@dataclass(frozen=True)
class Draws:
    """The kept trees of all chains, flat.

    Tree ``t = chain * n_draws + draw`` of ``T = n_chains * n_draws``. A tree with L leaves has
    2L - 1 nodes in preorder, so its splits start at ``(node_offset[t] - t) // 2`` and its leaves
    at ``(node_offset[t] + t) // 2``: one offset array serves all three.
    """

    n_chains: int
    n_draws: int
    node_offset: IntArray
    """[T + 1]; the nodes of tree t are ``node_offset[t]:node_offset[t + 1]``."""
    size: NDArray[np.int32]
    """[nodes]; nodes in the subtree, 1 for a leaf."""
    feature: NDArray[np.int32]
    """[splits]; index into the used columns, -1 throughout for HMC-DFI."""
    threshold: FloatArray
    """[splits]; on the unit-interval scale."""
    split_weights: FloatArray
    """[splits, p] simplex weights of the features for HMC-DFI, [splits, 0] otherwise."""
    leaf: FloatArray
    """[leaves, K]; classification: (soft) class counts. Regression, in standardised units:
    HMC-DF and HMC-DFI K = 1, a draw of the mean; the others K = 2, draws of the mean and of the
    leaf's own noise sd."""
    h: FloatArray
    """[p]; softness of a split on each used column, 0 for hard splits. Where it was learned, by
    tree: [T, p], or [T, 1] for all columns alike."""
    n_leaves: IntArray
    """[chain, draw], as are all that follow."""
    depth: IntArray
    log_likelihood: FloatArray
    log_posterior: FloatArray
    sigma: FloatArray
    """Noise sd in standardised units, with own sds of the leaves their root mean square over the
    training rows; NaN for classification."""
    weights_of_draws: FloatArray
    """Sums to 1; uniform for Markov chains."""
    levels: NDArray[np.uint64] | None = None
    """[splits]; what goes right beside larger numbers: of a category the levels whose bits are
    set, of numbers with missing cells these, by bit 0, unless bit 1 says that they go where the
    imputed numbers go. None where all columns are numbers without missing cells."""
    kinds: IntArray | None = None
    """[p]; levels of a category, -1 for numbers with missing cells in training, -2 for those whose
    missing cells may be imputed, 0 for other numbers; None as for ``levels``. A threshold of inf,
    or -inf, sends all numbers left, or right."""

    @property
    def forest(self) -> Forest:
        """The trees as routing takes them."""
        return Forest(
            node_offset=self.node_offset,
            size=self.size,
            feature=self.feature,
            threshold=self.threshold,
            weights=self.split_weights,
            h=np.ascontiguousarray(self.h if self.h_learned else self.h[None]),
            **special_arrays(self.levels, self.kinds, len(self.threshold)),
        )

    @property
    def h_learned(self) -> bool:
        """Whether each tree has an h of its own."""
        return self.h.ndim == 2


def special_arrays(
    levels: NDArray[np.uint64] | None, kinds: IntArray | None, n_splits: int
) -> dict[str, NDArray[Any]]:
    """Arrays of ``Forest`` that say what special columns need."""
    nothing = np.zeros(0, np.int64)
    if levels is None or kinds is None:
        return {"levels": np.zeros(n_splits, np.uint64), "kind": nothing, "doubts": nothing}
    return {"levels": levels, "kind": kinds, "doubts": nothing}


@dataclass(frozen=True)
class TrainingData:
    """The rows that the trees were sampled from, as the user gave them."""

    X: FloatArray
    """[n, all columns] in the user's units, constant columns included; NaN where cells are missing,
    and codes of categories."""
    y: NDArray[Any]
    """[n]; class codes 0 .. K - 1, or targets in the user's units."""
    weights: FloatArray | None = None
    """[n], positive: rows that each row counts for. None: all are 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", coded(self.X))

    @property
    def row_weights(self) -> FloatArray:
        """[n]; the weights, whether the user gave any or not."""
        return np.ones(len(self.y)) if self.weights is None else self.weights


def places(draws: Draws, t: int) -> tuple[slice, slice, slice]:
    """Where the nodes, splits and leaves of tree t stand in the flat arrays."""
    first, last = int(draws.node_offset[t]), int(draws.node_offset[t + 1])
    splits = slice((first - t) // 2, (last - t - 1) // 2)
    return slice(first, last), splits, slice((first + t) // 2, (last + t + 1) // 2)


def softness(draws: Draws, t: int, p: int) -> FloatArray:
    """[p]; softness of a split of tree t on each used column."""
    own = draws.h[t] if draws.h_learned else draws.h
    return np.broadcast_to(own, p).copy()


def take(draws: Draws, index: IntArray) -> Draws:
    """The trees of these numbers, repetitions included, as one chain of equal weights."""
    lengths = np.diff(draws.node_offset)[index]
    offset = np.concatenate([[0], np.cumsum(lengths)])
    number = np.arange(len(index))

    def picked(first: IntArray, new: IntArray) -> IntArray:
        """Where the parts of a flat array stand that begin at ``first`` and go to ``new``."""
        return np.repeat(first - new[:-1], np.diff(new)) + np.arange(new[-1])

    begin = draws.node_offset[index]
    nodes = picked(begin, offset)
    splits = picked((begin - index) // 2, (offset - np.append(number, len(index))) // 2)
    leaves = picked((begin + index) // 2, (offset + np.append(number, len(index))) // 2)
    scalars = ("n_leaves", "depth", "log_likelihood", "log_posterior", "sigma")
    return replace(
        draws,
        n_chains=1,
        n_draws=len(index),
        node_offset=offset,
        size=draws.size[nodes],
        feature=draws.feature[splits],
        threshold=draws.threshold[splits],
        split_weights=draws.split_weights[splits],
        leaf=draws.leaf[leaves],
        h=draws.h[index] if draws.h_learned else draws.h,
        levels=None if draws.levels is None else draws.levels[splits],
        weights_of_draws=np.full((1, len(index)), 1 / len(index)),
        **{name: getattr(draws, name).reshape(1, -1)[:, index] for name in scalars},
    )


def systematic(weights: FloatArray, n: int, start: float = 0.5) -> IntArray:
    """``n`` numbers of trees, each as often as its weight says, but for rounding, in order.

    ``start`` in [0, 1) shifts the grid of the sums of weights that are picked. Equal weights and
    as many numbers as trees give every tree once.
    """
    positions = (np.arange(n) + start) / n
    sums = np.cumsum(weights.ravel())
    return np.minimum(np.searchsorted(sums / sums[-1], positions), weights.size - 1)


@dataclass(frozen=True)
class RunInfo:
    """Information about a run; nothing here is needed to predict."""

    acceptance: dict[str, dict[str, tuple[IntArray, IntArray]]]
    """phase ("warmup", "sampling") -> move -> (accepted, proposed), each [chain]."""
    stats: dict[str, NDArray[np.generic]]
    """[chain, draw] each. HMC: divergent, nuts_depth, step_size, accept_stat, n_gradients. SMC:
    log_weight, whose exponentials add up to an island's evidence, and founder, the number of the
    first particle that this one descends from."""
    seconds: float
    """Excluding the time to compile."""
    stopped: str
    """What ended the run, one of ``STOPPED``."""
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    """Its standard error; NaN for a single island."""
    powers: tuple[float, ...] = ()
    """Of the likelihood of each replica, the same in every chain; empty without replicas."""
    why_replicas: str = ""
    """What the first draws showed, if replicas="auto" therefore added replicas."""
    compile_seconds: float = 0.0
    """The time to compile, if this run compiled the sampler."""
    n_warmup: int | None = None
    """Iterations of each chain before its first draw; None where it is not known."""
    seed: int | None = None
    """From which the generators of the chains were spawned."""
    target_rhat: float | None = None
    """The R-hat that the fit was asked to reach; None without a target."""
    max_draws: int | None = None
    """Draws per chain at which a run with a target ends in any case."""
    max_seconds: float | None = None
    """Seconds after which the run ends in any case."""

    def of_other_draws(self) -> RunInfo:
        """The same without what was recorded of the chains, for draws that are not theirs."""
        nothing: dict[str, Any] = {"log_evidence": None, "log_evidence_error": None, "powers": ()}
        return replace(self, acceptance={}, stats={}, **nothing)

    def requested(self) -> dict[str, int | float | None]:
        """The fields that say how the run was asked for."""
        return {name: getattr(self, name) for name in REQUESTED}

    @property
    def interrupted(self) -> bool:
        return self.stopped == "interrupted"


# ------------------------------------------------------------------ from the pieces of chains

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
