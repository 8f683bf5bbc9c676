"""One chain's scans and trees for the tests of informed moves, beside the reference's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hamiltree.core.backend import row_threads
from hamiltree.core.moves.propose import NAMES, propose_informed
from hamiltree.core.scan import bins
from hamiltree.core.scan.data import CLASS_COUNTS
from hamiltree.core.scan.data import Scan as CompiledScan
from hamiltree.core.scan.proposals import Proposals, draw_weighed, put_rule, weigh
from hamiltree.core.scan.scores import fill_known_tables
from hamiltree.core.tree.nodes import Tree, copy_tree, empty_tree
from hamiltree.samplers import rjhmc, rjhmc_state
from hamiltree.samplers.common import Problem
from hamiltree.samplers.rjhmc import RJHMC, RJHMCChain

from ..reference.model import Prior
from ..reference.model import Tree as ReferenceTree
from ..reference.scan import Scan
from ..reference.scan_means import MeansScan
from .configuring import configured, usable, values_of
from .core_trees import MAX_LEAVES, random_tree, to_reference

PRIOR = Prior(
    alpha_split=0.9,
    beta_split=1.0,
    max_leaves=MAX_LEAVES,
    tau=(1.3, 2.0),
    feature=(1.0, 2.0, 3.0),
    weight=1.4,
    classes=0.7,
    mu=(0.3, 1.2),
)
POWER = 0.7  # neither 0 nor 1, so that a missing power is seen
N_ROWS = 14
BACK = {"grow": "prune", "prune": "grow", "insert": "delete", "delete": "insert"}
"""The way back, of the moves that are not their own."""


@dataclass(frozen=True)
class Bench:
    """A chain whose moves are called one by one."""

    chain: RJHMCChain
    X: np.ndarray
    y: np.ndarray
    n_classes: int
    method: str
    h: float
    prior: Prior
    rng: np.random.Generator
    max_bins: int = 0
    """Of a column where columns are binned, see ``make_binned``."""

    @classmethod
    def build(
        cls,
        method: str,
        h: float,
        n_classes: int,
        rng: np.random.Generator,
        prior: Prior = PRIOR,
        separable: bool = False,
        weights: np.ndarray | None = None,
        repeated: bool = False,
    ) -> Bench:
        """Three columns: one of three values, one that reaches 0 and 1, and one inside.

        ``separable``: two classes, told apart by the last column. ``weights`` of the rows, or,
        with ``repeated``, how often each is there.
        """
        X = rng.uniform(0.05, 0.95, size=(N_ROWS, 3))
        X[:, 0] = rng.choice([0.1, 0.5, 0.8], size=N_ROWS)
        X[:2, 1] = 0.0, 1.0
        y = rng.integers(0, n_classes, N_ROWS) if n_classes else rng.normal(size=N_ROWS)
        if separable:
            y = (X[:, 2] > np.median(X[:, 2])).astype(np.int64)
        values = {
            "h": h,
            **values_of(prior),
            "tau_prior": prior.tau,
            "feature_prior": tuple(prior.feature or ()),
            "weight_prior": prior.weight,
            "mu_prior": prior.mu,
            "likelihood_power": POWER,
            "likelihood": "paper",  # whose scans count softly whatever the data are
        }
        configuration = configured(method, **usable(method, values))
        if repeated:
            X, y, weights = np.repeat(X, weights, axis=0), np.repeat(y, weights), None
        problem = Problem(np.ascontiguousarray(X.T), y, n_classes, weights)
        sampler = RJHMC.build(problem, configuration, 0)
        max_bins = sampler.scan_data.grid.shape[1]
        return cls(sampler.start(rng), X, y, n_classes, method, h, prior, rng, max_bins)

    @property
    def proposals(self) -> Proposals:
        return self.chain.state.proposals

    @property
    def compiled(self) -> CompiledScan:
        return self.proposals.scan

    def tree(self, n_splits: int) -> Tree:
        """A random tree, and the tables for its sigma."""
        tree = random_tree(self.rng, 3, n_splits, oblique=self.method == "hmc-dfi")
        tree.value[:] = 0.0
        self.use(tree)
        return tree

    def use(self, tree: Tree) -> None:
        if self.compiled.model.leaf != CLASS_COUNTS:
            fill_known_tables(self.compiled, tree.sigma[0])

    def scan(self, tree: Tree) -> Scan:
        sigma = float(tree.sigma[0])
        kind = MeansScan if self.sees_means else Scan
        return kind(self.X, self.y, self.n_classes, self.h, self.prior, sigma, POWER, self.max_bins)

    @property
    def sees_means(self) -> bool:
        """Whether scans see the likelihood itself, in single precision."""
        return self.h >= self.compiled.means.narrow

    @property
    def rounding(self) -> float:
        """Of a log density: single precision, and leaves that hardly overlap with the node."""
        return 0.02 if self.sees_means else 1e-9

    def propose(self, move: str, tree: Tree, mode: int) -> tuple[Tree, float]:
        new = copy_of(tree)
        number = NAMES.index(move)
        log_q = propose_informed(self.proposals, tree, new, number, mode, self.rng)
        return new, float(log_q)

    def weigh(self, tree: Tree, node: int, left: int, right: int, mode: int, rule_of: int):
        """(log of all weight, log density of the rule of ``rule_of``) of a scan of a node."""
        return weigh(self.proposals, tree, node, rule_of, left, right, mode)

    def draw(self, tree: Tree, node: int, mode: int) -> float:
        """Give a node a rule drawn from the last scan; its log density."""
        log_density = draw_weighed(self.proposals, mode, self.rng)
        put_rule(self.compiled, tree, node)
        return log_density


def make_binned(monkeypatch, max_bins: int) -> None:
    """Have columns binned however few the rows are, with so many bins at most."""
    for module in (row_threads, rjhmc, rjhmc_state):
        monkeypatch.setattr(module, "BINNED_ROWS", 0)
    monkeypatch.setattr(bins, "MAX_BINS", max_bins)


def copy_of(tree: Tree) -> Tree:
    new = empty_tree(MAX_LEAVES, tree.weights.shape[1])
    copy_tree(tree, new)
    return new


def pair(tree: Tree, new: Tree) -> tuple[ReferenceTree, ReferenceTree]:
    return to_reference(tree), to_reference(new)
