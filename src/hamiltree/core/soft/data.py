"""What the row loops of the likelihoods work on: the data in their order, and scratch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..backend.jit import kernel
from ..backend.records import (
    CONSTANT,
    SCRATCH,
    Float1,
    Float2,
    Float3,
    Int1,
    Record,
    Single2,
)
from ..backend.row_threads import PartsRunner, RunParts, n_parts
from ..densities import dirichlet_constant
from ..tree.kinds import Kinds, plain_kinds
from ..tree.nodes import Tree, empty_tree
from ..tree.routing import BLOCK, LANES, aligned_zeros
from .kept_routing import Kept, make_kept

CLASSES = np.int64(0)
"""Dirichlet-multinomial leaves, leaf probabilities integrated out."""
MEANS = np.int64(1)
"""Normal noise, leaf means explicit (the paper's)."""
COLLAPSED = np.int64(2)
"""Normal noise, leaf means integrated out."""
LABELS = np.int64(3)
"""A distribution over labels for every row, leaf probabilities explicit."""


@kernel
def has_noise(family):
    """Whether there is a sigma."""
    return family in (MEANS, COLLAPSED)


VALUE, GRADIENT = np.int64(0), np.int64(1)
"""What to evaluate: the log-likelihood; or its derivatives, too."""
REACHED, EXPECTED, DRAWN = np.int64(2), np.int64(3), np.int64(4)
"""Of LABELS instead: how many rows of each class belong to each leaf, by routing alone, expected
given the labels, or drawn given the labels."""
INFORMATION = np.int64(5)
"""Of LABELS: the rows as EXPECTED, and what they tell about the leaf probabilities, ``sums``."""

CACHED_FLOATS = 1 << 17
"""Routing of all rows is kept between the two passes while it fits this many floats (1 MB for psi,
and for reach); beyond that recomputing it is cheaper than fetching it from memory."""

PAIRS_PER_SPLIT = (8, 0, 4, 0)
"""By family: up to so many pairs of leaf and ancestor for each split, sums over the rows are the
faster way to the gradient of an HMC-DF tree than a second pass that routes the rows again. Explicit
means and explicit probabilities need neither."""

PAIRS_PER_SPLIT_KEPT = (4, 0, 3, 0)
"""The same where the routing of the first pass could be kept for the second."""

SLOPE, TARGET, ADJOINT = np.int64(0), np.int64(1), np.int64(2)
"""Vectors of a thread in ``Work.rows``: a scratch vector; y or the residual; the first adjoint."""

PASS_TASK = 0
"""A pass over the rows, as a task of ``row_threads``."""


class Data(Record):
    """What is observed, in the order the row loops want it; shared by all chains.

    Classification: rows are sorted by class, so that all rows of a block have one class and its
    leaf sums need no look-up. The rows of a class, or all rows, are padded to a multiple of LANES:
    a loop then has no left-over rows, which would go one by one. Padding reaches no leaf.
    """

    n_rows: int
    """Without the padding."""
    mass: float
    """Sum of their weights: ``n_rows`` where they have none."""
    columns: Float2
    """[p, padded rows]; inputs on the unit interval, a feature contiguous; [p, 0] where they are
    stored in single precision."""
    singles: Single2
    """[p, padded rows] where they are; else [p, 0]."""
    y: Float2
    """[1, padded rows] standardised target, 0 for padding; [1, 0] for classification. Where rows
    have weights, times the root of the row's."""
    weight: Float1
    """[padded rows]; rows that a row counts for, 0 for padding; [0] where all count as one."""
    root: Float2
    """[1, padded rows]; what of a row reaches the root: its weight, or for regression, whose sums
    are of products of two such numbers, the square root of it; 0 for padding. [1, 0] where all
    rows count as one."""
    block: Int1
    """[n_blocks + 1]; rows of block b are block[b]:block[b + 1], at most BLOCK of them."""
    block_rows: Int1
    """[n_blocks]; how many of them are real; padding comes last."""
    block_class: Int1
    """[n_blocks]; the class of its rows; 0 for regression."""
    kinds: Kinds
    """Of the columns."""


class LeafPrior(Record):
    """Hyper-parameters of the leaves and the noise."""

    class_prior: Float1
    """[K] Dirichlet alpha_m; [0] for regression."""
    class_mass: float
    """Their sum."""
    class_constant: float
    """Their ``dirichlet_constant``."""
    mu_mean: float
    mu_sd: float
    sigma_shape: float
    sigma_scale: float


def make_leaf_prior(
    class_prior: NDArray[np.float64], mu: tuple[float, float], sigma: tuple[float, float]
) -> LeafPrior:
    alpha = np.array(class_prior, np.float64)
    return LeafPrior(
        class_prior=alpha,
        class_mass=float(alpha.sum()),
        class_constant=dirichlet_constant(alpha),
        mu_mean=float(mu[0]),
        mu_sd=float(mu[1]),
        sigma_shape=float(sigma[0]),
        sigma_scale=float(sigma[1]),
    )


class LeafProbabilities(Record, role="state"):
    """Class probabilities of the leaves as a part of the state; see the module of this name.

    In use for LABELS alone.
    """

    p: Float2
    """[max_leaves, K]; of the leaves in preorder."""
    new_p: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; those proposed."""
    concentration: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; prior and rows of the tree that was fitted last."""
    of_leaf: Annotated[Float2, SCRATCH]
    """[1, K]; concentration of the leaf that is drawn."""
    centre: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; near the mean of p given that tree; its rows sum to 1."""
    spread: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; unit in which p - centre is counted."""
    away: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; (p - centre) / spread."""
    factor: Annotated[Float2, SCRATCH]
    """[max_leaves, max_leaves]; lower Cholesky factor of the precision of a column of ``away``."""
    rows: Annotated[Float2, SCRATCH]
    """[max_leaves, K]; rows of each class that were drawn to each leaf."""
    prior: Annotated[Float2, CONSTANT]
    """[1, K]; ``LeafPrior.class_prior``."""
    log_likes: Annotated[Float1, SCRATCH]
    """[2]; with ``p`` and with ``new_p``, within a sweep."""


def make_leaf_probabilities(leaf_prior: LeafPrior, max_leaves: int) -> LeafProbabilities:
    classes = len(leaf_prior.class_prior)
    names = ("p", "new_p", "concentration", "centre", "spread", "away", "rows")
    return LeafProbabilities(
        **{name: np.zeros((max_leaves, classes)) for name in names},
        of_leaf=np.zeros((1, classes)),
        factor=np.zeros((max_leaves, max_leaves if classes else 0)),
        prior=leaf_prior.class_prior.reshape(1, -1),
        log_likes=np.zeros(2),
    )


class Work(Record, role="scratch"):
    """Scratch of one chain; nothing in it outlives a call of a likelihood.

    Where data are in parts, counts, sums and the derivatives are there for all rows, set 0, and
    then for each part; ``d_sigma`` of a part is its sum of squares, or of LABELS' logarithms.
    """

    rows: Float2
    """[vectors, largest block]; see ``routing``. Each thread has ``stride`` of them: SLOPE, TARGET,
    the adjoints (or COLLAPSED's tangents), then reach and psi of the nodes."""
    stride: int
    n_adjoints: int
    n_routed: int
    """Nodes that there is room for, of all blocks together: capacity, or more."""
    leaf: Int1
    """[max_leaves]; the nodes that are leaves, preorder."""
    counts: Float3
    """[sets, max_leaves, K]; classification: soft class counts; LABELS: rows by leaf."""
    table: Float2
    """[max_leaves, K]; classification: adjoint of a leaf by class; LABELS: its probabilities."""
    uniform: Float1
    """[padded rows] for LABELS, numbers to draw the leaves of the rows by; else [0]."""
    mean: Float1
    """[max_leaves]; regression: the means, or m, the posterior mean of the leaf means."""
    draws: Float1
    """[max_leaves]; means that are drawn."""
    sums: Float2
    """[sets, ...]; sums over all rows. Classification: of phi x psi by class, for each leaf and
    each of its ancestors. COLLAPSED: see there. LABELS: of the products of two leaves, for
    INFORMATION."""
    gram: Float2
    """[max_leaves, max_leaves] for COLLAPSED; S, then its Cholesky factor."""
    moment: Float2
    """[max_leaves, max_leaves] for COLLAPSED; M = S^-1 + m m'."""
    d_threshold: Float2
    """[sets, capacity]"""
    d_weights: Float3
    """[sets, capacity, p] or [sets, capacity, 0]"""
    d_value: Float2
    """[sets, capacity]"""
    d_sigma: Float1
    """[sets]"""
    run_parts: RunParts
    task: Int1
    """[8]; what the parts of a pass are told, see ``parallel_likelihood``."""
    task_tree: Tree
    """The tree they pass through."""
    kept: Kept
    """The routing of a sweep's tree."""


class Columns(Protocol):
    """Inputs on the unit interval, one row per feature: an array, or one made block by block."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def blocks_of(columns: Columns) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Parts of the rows, and their columns; large data are not there as one array beside X."""
    if isinstance(columns, np.ndarray):
        yield slice(0, columns.shape[1]), columns
    else:
        yield from columns.blocks()  # type: ignore[attr-defined]


def make_data(
    columns: Columns,
    y: NDArray[np.generic],
    n_classes: int,
    weights: NDArray[np.float64] | None = None,
    kinds: Kinds | None = None,
) -> Data:
    """Sort rows by class (classification), pad them, and cut them into blocks.

    ``weights`` [n], positive: a row of weight 2 is two rows. None: all are 1.
    """
    codes = np.asarray(y, np.int64) if n_classes else np.zeros(columns.shape[1], np.int64)
    runs = [np.flatnonzero(codes == label) for label in range(max(n_classes, 1))]
    padded = [-(-len(run) // LANES) * LANES for run in runs]
    bounds = np.concatenate([[0], np.cumsum(padded)])
    p = columns.shape[0]
    out = aligned_zeros(p, bounds[-1], dtype=columns.dtype)
    target = aligned_zeros(1, 0 if n_classes else bounds[-1])
    blocks = []  # start, real rows, class
    place = np.empty(columns.shape[1], np.int64)
    for label, run in enumerate(runs):
        begin = int(bounds[label])
        place[run] = np.arange(begin, begin + len(run))
        if not n_classes:
            target[0, : len(run)] = y
        for start in range(0, len(run), BLOCK):
            blocks.append((begin + start, min(BLOCK, len(run) - start), label))
    for part, block in blocks_of(columns):
        out[:, place[part]] = block
    weight = np.zeros(0 if weights is None else bounds[-1])
    root = aligned_zeros(1, len(weight))
    if weights is not None:
        weight[place] = weights
        root[0] = weight if n_classes else np.sqrt(weight)
        if not n_classes:
            target *= root
    table = np.array(blocks, np.int64).reshape(-1, 3)
    single = out.dtype == np.float32
    return Data(
        n_rows=columns.shape[1],
        mass=float(columns.shape[1] if weights is None else weights.sum()),
        columns=np.zeros((p, 0)) if single else out,
        singles=out if single else np.zeros((p, 0), np.float32),
        y=target,
        weight=weight,
        root=root,
        block=np.append(table[:, 0], bounds[-1]),
        block_rows=np.ascontiguousarray(table[:, 1]),
        block_class=np.ascontiguousarray(table[:, 2]),
        kinds=plain_kinds(p) if kinds is None else kinds,
    )


def inputs_of(data: Data) -> NDArray[Any]:
    """[p, padded rows]; of the precision that they are stored in."""
    return data.columns if data.columns.shape[1] else data.singles


def make_work(
    data: Data, max_leaves: int, n_classes: int, n_weights: int, family: int, threads: int = 1
) -> Work:
    capacity = 2 * max_leaves - 1
    n_blocks = len(data.block_class)
    width = int(np.diff(data.block).max())
    square = max_leaves if family == COLLAPSED else 0
    pairs = PAIRS_PER_SPLIT[family] * max_leaves
    parts = n_parts(data.n_rows)
    routed = max(capacity, min(CACHED_FLOATS // width, capacity * n_blocks))
    if parts:
        routed = capacity
    else:
        threads = 1
    adjoints = max(capacity, pairs if square else 0)
    stride = int(ADJOINT) + adjoints + 2 * routed
    sets = 1 + parts
    n_sums = pairs * (square + 3 if square else n_classes)
    if family == LABELS:
        n_sums = (max_leaves + 1) * (max_leaves + 3)
    return Work(
        rows=aligned_zeros(threads * stride, width),
        stride=stride,
        n_adjoints=adjoints,
        n_routed=routed,
        leaf=np.zeros(max_leaves, np.int64),
        counts=np.zeros((sets, max_leaves, max(n_classes, 1))),
        table=np.zeros((max_leaves, max(n_classes, 1))),
        uniform=np.zeros(data.block[-1] if family == LABELS else 0),
        mean=np.zeros(max_leaves),
        draws=np.zeros(max_leaves),
        sums=np.zeros((sets, n_sums)),
        gram=np.zeros((square, square)),
        moment=np.zeros((square, square)),
        d_threshold=np.zeros((sets, capacity)),
        d_weights=np.zeros((sets, capacity, n_weights)),
        d_value=np.zeros((sets, capacity)),
        d_sigma=np.zeros(sets),
        run_parts=PartsRunner(),
        task=np.zeros(8, np.int64),
        task_tree=empty_tree(max_leaves if parts else 1, n_weights),
        kept=make_kept(max_leaves, 0 if parts else n_blocks, width, family == COLLAPSED),
    )
