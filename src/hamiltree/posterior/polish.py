"""The best tree that can be reached from the best draws: a short search by the moves of the chains.

Draws are typical trees, and the best of them is rarely the best there is. From the best draws of
the posterior the same moves go on, with the posterior to rising powers as their target, until in
the end only improvements are accepted. The generators have fixed seeds, so the tree depends on the
draws alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from ..core.hard.climb import climb_hard, place_hard
from ..core.hard.informed_sweep import make_explorer
from ..core.soft.climb import climb_soft, log_integral, log_posterior_of
from ..core.soft.data import LABELS
from ..core.soft.learned_h import log_prior_of_h
from ..core.soft.target import log_posterior
from ..core.tree.nodes import Tree as Nodes
from ..core.tree.nodes import copy_tree, empty_tree
from ..methods.base import Configuration, build_sampler
from ..samplers.cgm import scan_data_of, scan_model_of
from ..samplers.common import INFORMED_MOVES, Problem
from ..samplers.hard import HardChain
from ..samplers.rjhmc import RJHMCChain
from ..utils.arrays import FloatArray
from .draws import places, softness
from .representative_tree import best_draw
from .tree import Tree

if TYPE_CHECKING:
    from .posterior import Posterior

STARTS = 4
"""Searches, each from the best draw of so many equal parts of all draws."""
COLDEST = 20.0
"""Power of the posterior before only improvements are accepted; it rises from 1."""
GREEDY_SHARE = 0.2
"""Of the iterations, the last, in which only improvements are accepted."""
MOST_ITERATIONS, FEWEST_ITERATIONS = 200, 10
"""Of a search. Where fewer than the second would be allowed, there is no search."""
CELLS_SEEN = 3_000_000
"""Rows times columns that the iterations of a search look at together: a second or so for all
searches. Columns of two values are scanned faster, and count a quarter."""
MOST_CELLS = 4 * CELLS_SEEN // FEWEST_ITERATIONS
"""Above these there are too few iterations, whatever the columns."""
SEEN_DRAWS = 64
"""Of each part, at most, to start from the best, where draws of trees alone are to be compared."""
INTEGRAL_DRAWS = np.int64(2_000)
"""Of leaf probabilities, for the log posterior of the tree that is returned."""
OTHER_SAMPLER = {
    "moves": "informed",
    "informed_moves": None,
    "replicas": 1,
    "hottest_power": None,
    "scheme": "composed",
    "h_init": None,
}
"""Parameters of methods that say how to sample, not what, as the search needs them."""


class Found(NamedTuple):
    """A tree that a search ended with."""

    log_posterior: float
    nodes: Nodes
    h: FloatArray
    """[p]"""


def polished_tree(posterior: Posterior) -> Tree | None:
    """The best tree met by the searches; None where there are none, or no tree is better.

    There are none without training data, for methods or leaves that ``can_polish`` leaves out, for
    data of too many cells, and where draws do not have the log posterior that the configuration
    gives them.
    """
    if posterior.training is None or not can_polish(posterior.configuration, posterior.n_classes):
        return None
    if len(posterior.training.y) * len(posterior.preprocessing.used) > MOST_CELLS:
        return None
    n_iterations = iterations_for(posterior.preprocessing.to_unit(posterior.training.X))
    if n_iterations < FEWEST_ITERATIONS:
        return None
    searches = searches_of(posterior)
    starts = searches.starts()
    found = [searches.climb(seed, start, n_iterations) for seed, start in enumerate(starts)]
    best = max((one for one in found if one is not None), key=lambda one: one[0], default=None)
    if best is None or not best.log_posterior > searches.best_so_far + 1e-9:
        return None
    return searches.tree(best)


def best_tree(posterior: Posterior, *, polish: bool = True) -> Tree:
    """The tree of highest log posterior found by a search from the best draws.

    The search continues from the best draws, with the moves of the chains, until nothing improves.
    It takes about a second for data of ordinary size, is made once per posterior, and always gives
    the same tree. With hard splits, and in regression, ``log_posterior`` of the tree is exact and
    never below that of the best draw.

    There is no search, and the tree is the draw of highest log posterior, without training data,
    for HMC-DFI, for SMC, for regression with leaf_means="explicit" (preset="paper"), and for data
    of more than 300,000 cells (rows times columns; columns of two values count a quarter).

    Leaf means of regression are posterior means given the tree; ``tree(chain, draw)`` has the draws
    themselves. With soft splits and likelihood="normalised", the class probabilities of the leaves
    are sampled, and their density is part of the log posterior of a draw. Here they are integrated
    out, so trees are compared and not their leaf probabilities: to second order in the search, and
    by importance sampling with 2,000 draws for ``log_posterior``.

    Parameters
    ----------
    polish : bool
        Whether to search; False returns the best draw.
    """
    return posterior._best if polish else posterior._tree(best_draw(posterior)).settled()


def can_polish(configuration: Configuration[Any], n_classes: int) -> bool:
    """Whether there is a best tree, which a search by the moves of the chains can find.

    Not with weights of splits (HMC-DFI), particles (SMC) and explicit leaf means.
    """
    method = configuration.method
    explicit = n_classes == 0 and getattr(method, "leaf_means", "collapsed") == "explicit"
    without = method.makes_particles or getattr(method, "oblique", False) or explicit
    return not without and method.likelihood_power > 0.0


def iterations_for(columns: FloatArray) -> int:
    """Of each search, for columns [p, n]."""
    low, high = columns.min(axis=1, keepdims=True), columns.max(axis=1, keepdims=True)
    two_valued = ((columns == low) | (columns == high)).all(axis=1)
    cells = columns.shape[1] * np.where(two_valued, 0.25, 1.0).sum()
    return int(min(CELLS_SEEN / max(cells, 1.0), MOST_ITERATIONS))


def coldness_of(n: int) -> FloatArray:
    """[n]; powers of the posterior, by iteration."""
    greedy = max(int(GREEDY_SHARE * n), 1)
    rising = np.geomspace(1.0, COLDEST, n - greedy)
    return np.concatenate([rising, np.full(greedy, np.inf)])


def searches_of(posterior: Posterior) -> Searches:
    """With the data and the configuration of a posterior, and a sampler that has the moves."""
    data, scale = posterior.data("best_tree"), posterior.preprocessing
    configuration = posterior.configuration
    known = configuration.method.get_params()
    method = configuration.method.set_params(
        **{name: value for name, value in OTHER_SAMPLER.items() if name in known}
    )
    y = data.y if posterior.n_classes else scale.y_to_model(data.y)
    columns = scale.columns_of(data.X)
    problem = Problem(columns, y, posterior.n_classes, data.weights, scale.kinds)
    chain = build_sampler(problem, replace(configuration, method=method), 0, 0).start(
        np.random.default_rng(0)
    )
    if isinstance(chain, HardChain):
        return HardSearches(posterior, chain)
    assert isinstance(chain, RJHMCChain)
    return SoftSearches(posterior, chain)


class Searches:
    """Searches with one chain's buffers; either ``HardSearches`` or ``SoftSearches``."""

    def __init__(self, posterior: Posterior, nodes: Nodes) -> None:
        self.posterior = posterior
        self.nodes = nodes
        """The tree of the chain."""
        self.best = empty_tree((len(nodes.size) + 1) // 2, 0)
        self.best_so_far = float(posterior.log_posterior.max())
        """Log posterior that the searches have to surpass."""

    def starts(self) -> list[int]:
        """Numbers of the draws to start from."""
        values = self.posterior.log_posterior.ravel()
        parts = np.array_split(np.arange(values.size), min(STARTS, values.size))
        return [int(part[values[part].argmax()]) for part in parts]

    def climb(self, seed: int, start: int, n: int) -> Found | None:
        """From draw number ``start``; None where its log posterior is not that of the model."""
        raise NotImplementedError

    def tree(self, found: Found) -> Tree:
        raise NotImplementedError

    def write(self, t: int) -> None:
        """Make tree t of the draws the chain's tree."""
        draws, to = self.posterior.draws, self.nodes
        at, splits, _ = places(draws, t)
        size = draws.size[at].astype(np.int64)
        n, inner = len(size), size > 1
        to.n_nodes[0], to.size[:n], to.feature[:n] = n, size, -1
        to.feature[:n][inner] = draws.feature[splits]
        to.threshold[:n][inner] = draws.threshold[splits]
        to.levels[:n][inner] = 0 if draws.levels is None else draws.levels[splits]
        to.parent[0], to.depth[0] = -1, 0
        for i in np.flatnonzero(inner):
            for child in (i + 1, i + 1 + size[i + 1]):
                to.parent[child], to.depth[child] = i, to.depth[i] + 1
        sigma = float(draws.sigma.ravel()[t])
        to.sigma[0] = sigma if np.isfinite(sigma) else 1.0

    def read(self, found: Found, sigma: float) -> Tree:
        """As a tree to show, its leaves still without values."""
        posterior, nodes = self.posterior, found.nodes
        n = int(nodes.n_nodes[0])
        inner = nodes.size[:n] > 1
        draws = posterior.draws
        return Tree(
            size=nodes.size[:n].astype(np.int32),
            feature=nodes.feature[:n][inner].astype(np.int32),
            threshold=nodes.threshold[:n][inner].copy(),
            levels=None if draws.levels is None else nodes.levels[:n][inner].copy(),
            kinds=draws.kinds,
            weights=np.zeros((int(inner.sum()), 0)),
            leaf=np.zeros(((n + 1) // 2, draws.leaf.shape[1])),
            h=found.h,
            preprocessing=posterior.preprocessing,
            method=posterior.configuration.method,
            sigma=sigma,
            training=posterior.training,
            census=posterior._census,
            log_posterior=found.log_posterior,
        )

    def counted(self, tree: Tree) -> Tree:
        """With the class counts of the training rows in its leaves, soft where its splits are."""
        data = self.posterior.data("best_tree")
        classes = np.eye(self.posterior.n_classes)[data.y] * data.row_weights[:, None]
        return replace(tree, leaf=tree.reach(data.X).T @ classes)


class HardSearches(Searches):
    """Of CGM and WU."""

    def __init__(self, posterior: Posterior, chain: HardChain) -> None:
        self.state = chain.loop.state
        super().__init__(posterior, self.state.tree)
        self.model = chain.model
        self.power = float(chain.model.power[0])
        # WU's own chains do not scan, but what they could is defined as for CGM.
        self.explorer = chain.explorer or make_explorer(
            scan_data_of(chain.model),
            scan_model_of(chain.model),
            INFORMED_MOVES,
            chain.model.shape.max_leaves,
        )

    def climb(self, seed: int, start: int, n: int) -> Found | None:
        self.write(start)
        value = place_hard(self.model, self.state)
        if not np.isclose(value, self.posterior.log_posterior.ravel()[start], rtol=1e-7):
            return None
        copy_tree(self.nodes, self.best)
        found = np.array([value, self.power])
        rng = np.random.default_rng(seed)
        climb_hard(self.model, self.state, self.explorer, coldness_of(n), self.best, found, rng)
        h = np.zeros(len(self.posterior.preprocessing.used))
        return Found(float(found[0]), copied(self.best), h)

    def tree(self, found: Found) -> Tree:
        copy_tree(found.nodes, self.nodes)
        exact = found._replace(log_posterior=place_hard(self.model, self.state))
        if self.posterior.n_classes:
            return self.counted(self.read(exact, float("nan")))
        tree = self.read(exact, float("nan")).settled()
        data = self.posterior.data("best_tree")
        rows = data.row_weights @ tree.reach(data.X)
        return replace(tree, sigma=float(np.sqrt(np.average(tree.leaf[:, 1] ** 2, weights=rows))))


class SoftSearches(Searches):
    """Of HMC-DF, whose splits may be hard, too."""

    def __init__(self, posterior: Posterior, chain: RJHMCChain) -> None:
        super().__init__(posterior, chain.state.tree)
        self.chain, self.state, self.model = chain, chain.state, chain.state.model
        self.h_prior = chain.plan.h_prior
        self.labelled = self.model.family == LABELS
        if self.labelled:
            self.best_so_far = -np.inf  # log posteriors of draws are of their probabilities, too

    def starts(self) -> list[int]:
        if not self.labelled:
            return super().starts()
        n = self.posterior.n_leaves.size
        with self.chain.helped():
            parts = [
                {t: self.value_of(t) for t in part[:: -(-len(part) // SEEN_DRAWS)].tolist()}
                for part in np.array_split(np.arange(n), min(STARTS, n))
            ]
        return [max(part, key=part.__getitem__) for part in parts]

    def value_of(self, t: int) -> float:
        """Log posterior of a draw, which becomes the chain's tree; ``climb.log_posterior_of``."""
        self.write(t)
        self.model.h[:] = softness(self.posterior.draws, t, len(self.model.h))
        self.state.proposals.scan.tables.sigma[0] = np.nan
        return float(log_posterior_of(self.model, self.h_prior, self.nodes, self.state.work))

    def climb(self, seed: int, start: int, n: int) -> Found | None:
        h = self.model.h
        with self.chain.helped():
            value = self.value_of(start)
            if not self.agrees(value, start):
                return None
            copy_tree(self.nodes, self.best)
            best_h, found = h.copy(), np.array([value])
            climb_soft(
                self.state,
                self.chain.plan.sweep,
                self.h_prior,
                coldness_of(n),
                self.best,
                best_h,
                found,
                np.random.default_rng(seed),
            )
        return Found(float(found[0]), copied(self.best), best_h)

    def agrees(self, value: float, start: int) -> bool:
        """Whether a draw was recorded with its log posterior.

        Leaf probabilities are not kept: where they are sampled the likelihood is taken as recorded,
        and their prior is known where it is flat.
        """
        recorded = self.posterior.log_posterior.ravel()[start]
        if self.labelled:
            prior = self.model.leaves.prior[0]
            if not (prior == 1.0).all():
                return bool(np.isfinite(value))
            log_like = self.posterior.log_likelihood.ravel()[start]
            value = log_posterior(self.model, self.nodes, log_like)
            value += (int(self.nodes.n_nodes[0]) + 1) // 2 * float(gammaln(len(prior)))
            if self.h_prior.learned:
                value += log_prior_of_h(self.model, self.h_prior)
        return bool(np.isclose(value, recorded, rtol=1e-7))

    def tree(self, found: Found) -> Tree:
        copy_tree(found.nodes, self.nodes)
        self.model.h[:] = found.h
        model, work = self.model, self.state.work
        with self.chain.helped():
            value = log_posterior_of(model, self.h_prior, self.nodes, work)
            if self.labelled:
                rng = np.random.default_rng(0)
                value = log_integral(model, self.h_prior, self.nodes, work, INTEGRAL_DRAWS, rng)
        sigma = float("nan") if self.posterior.n_classes else float(self.nodes.sigma[0])
        tree = self.read(found._replace(log_posterior=float(value)), sigma)
        if self.labelled:  # the rows that each leaf is expected to have
            concentration = model.leaves.concentration[: tree.n_leaves]
            return replace(tree, leaf=concentration - model.leaves.prior)
        return self.counted(tree) if self.posterior.n_classes else tree.settled()


def copied(nodes: Nodes) -> Nodes:
    return Nodes(**{name: array.copy() for name, array in nodes._asdict().items()})
