"""The paper's model in plain NumPy and SciPy: routing, likelihoods, priors, prior draws; and toys.

Written from the paper alone, slow and direct on purpose. Inputs X are [rows, features] on the
unit-interval scale. Leaves are numbered from left to right, splits in preorder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, gammaln

Array = NDArray[np.float64]
Shape = tuple[int, ...]
"""Subtree sizes in preorder, 1 for a leaf: (1,) is a root, (3, 1, 1) one split."""


@dataclass(frozen=True)
class Leaf:
    mu: float = 0.0


@dataclass(frozen=True)
class Split:
    rule: int | tuple[float, ...]
    """A feature index (HMC-DF), or the simplex weights of all features (HMC-DFI)."""
    threshold: float
    left: Tree
    right: Tree


Tree = Leaf | Split


@dataclass(frozen=True)
class Prior:
    """Hyper-parameters; a ``feature_prior`` of None is uniform."""

    alpha_split: float = 0.95
    beta_split: float = 2.0
    min_leaves: int = 1
    max_leaves: int = 256
    tau: tuple[float, float] = (1.0, 1.0)
    feature: Sequence[float] | None = None
    weight: float = 1.0
    classes: float | Sequence[float] = 1.0
    mu: tuple[float, float] = (0.0, 1.0)
    """Mean and standard deviation."""
    sigma: tuple[float, float] = (1.5, 1.5)
    """Inverse gamma, shape and scale, on the standard deviation."""


# ------------------------------------------------------------------------------------ trees
def leaves(tree: Tree) -> list[Leaf]:
    """Leaves from left to right."""
    return [tree] if isinstance(tree, Leaf) else leaves(tree.left) + leaves(tree.right)


def splits(tree: Tree) -> list[Split]:
    """Internal nodes in preorder."""
    return [] if isinstance(tree, Leaf) else [tree, *splits(tree.left), *splits(tree.right)]


def shape(tree: Tree) -> Shape:
    """Subtree sizes in preorder."""
    if isinstance(tree, Leaf):
        return (1,)
    left, right = shape(tree.left), shape(tree.right)
    return (1 + left[0] + right[0], *left, *right)


def from_flat(
    size: Sequence[int],
    feature: Sequence[int],
    threshold: Sequence[float],
    weights: Sequence[Sequence[float]] | None = None,
    mu: Sequence[float] | None = None,
) -> Tree:
    """Build a tree from preorder arrays: sizes of nodes, rules of splits, means of leaves.

    ``weights`` (HMC-DFI) wins over ``feature`` where it is given with at least one column.
    """
    soft = weights is not None and np.ndim(weights) == 2 and np.shape(weights)[1] > 0
    n_splits, n_leaves, node = 0, 0, 0

    def build() -> Tree:
        nonlocal n_splits, n_leaves, node
        is_leaf = size[node] == 1
        node += 1
        if is_leaf:
            n_leaves += 1
            return Leaf(0.0 if mu is None else float(mu[n_leaves - 1]))
        j, n_splits = n_splits, n_splits + 1
        rule = tuple(float(w) for w in weights[j]) if soft else int(feature[j])  # type: ignore[index]
        left = build()
        return Split(rule, float(threshold[j]), left, build())

    return build()


# ---------------------------------------------------------------------------------- routing
def psi(split: Split, X: Array, h: float | Array) -> Array:
    """P(right) of each row at one split, [rows]; h = 0 sends a row right iff x > threshold.

    ``h`` may be one number per feature, which only splits on one feature have.
    """
    x = X[:, split.rule] if isinstance(split.rule, int) else X @ np.asarray(split.rule)
    own = h if np.ndim(h) == 0 else np.asarray(h)[split.rule]
    if own == 0:
        return (x > split.threshold).astype(float)
    return expit((x - split.threshold) / own)


def phi(tree: Tree, X: Array, h: float | Array) -> Array:
    """Probability that a row ends in a leaf (the paper's eq. 5), [rows, leaves]."""
    if isinstance(tree, Leaf):
        return np.ones((len(X), 1))
    right = psi(tree, X, h)[:, None]
    return np.hstack([(1 - right) * phi(tree.left, X, h), right * phi(tree.right, X, h)])


# ------------------------------------------------------------------------------ likelihoods
def log_likelihood_class(
    tree: Tree, X: Array, y: NDArray[Any], n_classes: int, h: float, prior: Prior = Prior()
) -> float:
    """Dirichlet-multinomial over soft counts (eq. llh-class), every constant kept."""
    a = np.broadcast_to(np.asarray(prior.classes, dtype=float), (n_classes,))
    counts = np.eye(n_classes)[np.asarray(y)].T @ phi(tree, X, h)  # [classes, leaves]
    leaf = gammaln(a.sum()) - gammaln(counts.sum(axis=0) + a.sum())
    return float(leaf.sum() + (gammaln(counts + a[:, None]) - gammaln(a)[:, None]).sum())


def log_likelihood_labels(
    tree: Tree, X: Array, y: NDArray[Any], p: Array, h: float | Array
) -> float:
    """log prod_i sum_k phi_ik p_k[y_i] with the class probabilities p [leaves, classes]."""
    return float(np.log((phi(tree, X, h) @ p)[np.arange(len(y)), np.asarray(y)]).sum())


def log_likelihood_reg(tree: Tree, X: Array, y: Array, sigma: float, h: float) -> float:
    """Normal errors around Phi mu with the means of the tree's leaves (eq. llh-reg)."""
    mu = np.array([leaf.mu for leaf in leaves(tree)])
    # The paper writes sum_k phi_ik (mu_k - y_i); phi sums to one over the leaves.
    residual = (phi(tree, X, h) * (mu[None, :] - np.asarray(y)[:, None])).sum(axis=1)
    return float(stats.norm.logpdf(residual, scale=sigma).sum())


def log_likelihood_collapsed(
    tree: Tree, X: Array, y: Array, sigma: float, h: float, prior: Prior = Prior()
) -> float:
    """The same with the leaf means integrated out: one N-dimensional normal density."""
    mean, sd = prior.mu
    weights = phi(tree, X, h)
    covariance = sigma**2 * np.eye(len(X)) + sd**2 * weights @ weights.T
    return float(stats.multivariate_normal.logpdf(y, mean * weights.sum(axis=1), covariance))


# ----------------------------------------------------------------------------------- priors
def split_probability(depth: int, prior: Prior) -> float:
    """p_split of a node at a depth (root 0)."""
    return min(prior.alpha_split * (1.0 + depth) ** -prior.beta_split, 1 - 1e-6)


def log_prior_shape(shape: Shape, prior: Prior = Prior()) -> float:
    """Topology prior of eq. cgm-prior, -inf outside min_leaves..max_leaves.

    The truncation is not normalised: summed over the allowed shapes this gives the probability
    that the branching process stops inside the limits.
    """
    if not prior.min_leaves <= (shape[0] + 1) // 2 <= prior.max_leaves:
        return -np.inf
    total = 0.0
    for depth, size in node_depths(shape):
        p = split_probability(depth, prior)
        total += np.log1p(-p) if size == 1 else np.log(p)
    return float(total)


def node_depths(shape: Shape) -> Iterator[tuple[int, int]]:
    """(depth, subtree size) of every node in preorder."""
    pending = [0]  # depths of the nodes still to come; the next one is last
    for size in shape:
        depth = pending.pop()
        yield depth, size
        if size > 1:
            pending += [depth + 1, depth + 1]


def log_prior_rules(tree: Tree, n_features: int, prior: Prior = Prior()) -> float:
    """Thresholds (Beta) and feature indices (categorical) or weights (Dirichlet)."""
    total = 0.0
    feature = np.full(n_features, 1.0) if prior.feature is None else np.asarray(prior.feature)
    for split in splits(tree):
        total += stats.beta.logpdf(split.threshold, *prior.tau)
        if isinstance(split.rule, int):
            total += np.log(feature[split.rule] / feature.sum())
        else:
            w = np.asarray(split.rule)
            total += gammaln(n_features * prior.weight) - n_features * gammaln(prior.weight)
            total += ((prior.weight - 1) * np.log(w)).sum()
    return float(total)


def log_prior_mu(tree: Tree, prior: Prior = Prior()) -> float:
    """Independent normal leaf means."""
    return float(sum(stats.norm.logpdf(leaf.mu, *prior.mu) for leaf in leaves(tree)))


def log_prior_sigma(sigma: float, prior: Prior = Prior()) -> float:
    """Inverse gamma on the standard deviation itself."""
    return float(stats.invgamma.logpdf(sigma, prior.sigma[0], scale=prior.sigma[1]))


def log_posterior(
    tree: Tree,
    X: Array,
    y: NDArray[Any],
    h: float,
    prior: Prior = Prior(),
    *,
    n_classes: int = 0,
    sigma: float = np.nan,
    explicit_mu: bool = False,
    power: float = 1.0,
) -> float:
    """Unnormalised log posterior on the constrained scale, no Jacobian, every constant.

    ``n_classes`` = 0 means regression. ``power`` tempers the likelihood alone.
    """
    total = log_prior_shape(shape(tree), prior) + log_prior_rules(tree, X.shape[1], prior)
    if n_classes:
        return total + power * log_likelihood_class(tree, X, y, n_classes, h, prior)
    total += log_prior_sigma(sigma, prior)
    if explicit_mu:
        total += log_prior_mu(tree, prior)
        return total + power * log_likelihood_reg(tree, X, y, sigma, h)
    return total + power * log_likelihood_collapsed(tree, X, y, sigma, h, prior)


# --------------------------------------------------------------------- draws from the prior
def sample_tree(
    rng: np.random.Generator, n_features: int, prior: Prior = Prior(), *, method: str = "hmc-df"
) -> Tree:
    """Draw a tree from the prior; its topology by rejection to the size limits."""
    if method not in ("hmc-df", "hmc-dfi"):
        raise ValueError(f"unknown method {method!r}")
    probabilities = np.full(n_features, 1.0) if prior.feature is None else np.asarray(prior.feature)

    def draw_rule() -> int | tuple[float, ...]:
        if method == "hmc-df":
            return int(rng.choice(n_features, p=probabilities / probabilities.sum()))
        return tuple(rng.dirichlet(np.full(n_features, prior.weight)))

    def build(sizes: Iterator[int]) -> Tree:
        if next(sizes) == 1:
            return Leaf(float(rng.normal(*prior.mu)))
        rule, threshold = draw_rule(), float(rng.beta(*prior.tau))
        left = build(sizes)
        return Split(rule, threshold, left, build(sizes))

    while True:
        candidate = _sample_shape(rng, prior)
        if candidate is not None:
            return build(iter(candidate))


def _sample_shape(rng: np.random.Generator, prior: Prior) -> Shape | None:
    """Run the branching process once; None where it leaves the size limits."""
    is_leaf: list[bool] = []
    pending = [0]
    while pending:
        depth = pending.pop()
        splits_here = rng.random() < split_probability(depth, prior)
        is_leaf.append(not splits_here)
        if splits_here:
            pending += [depth + 1, depth + 1]
        if is_leaf.count(True) + len(pending) > prior.max_leaves:  # will only grow from here
            return None
    if is_leaf.count(True) < prior.min_leaves:
        return None
    sizes: list[int] = []
    subtree: list[int] = []
    for leaf in reversed(is_leaf):  # backwards, both subtrees of a split are already on the stack
        subtree.append(1 if leaf else 1 + subtree.pop() + subtree.pop())
        sizes.append(subtree[-1])
    return tuple(reversed(sizes))


def sample_sigma(rng: np.random.Generator, prior: Prior = Prior()) -> float:
    """Draw the noise standard deviation from its prior."""
    return float(prior.sigma[1] / rng.gamma(prior.sigma[0]))


def sample_y(rng: np.random.Generator, tree: Tree, X: Array, h: float, sigma: float) -> Array:
    """Draw regression outcomes given the tree, its means and sigma."""
    mu = np.array([leaf.mu for leaf in leaves(tree)])
    return np.asarray(phi(tree, X, h) @ mu + sigma * rng.normal(size=len(X)))


# ------------------------------------------------------------------------------------- toys
@dataclass(frozen=True)
class Toy:
    """A tiny data set, already on the unit-interval scale, and the prior it is meant for."""

    X: Array
    """[rows, 2]"""
    y: NDArray[Any]
    n_classes: int
    """0 for regression."""
    prior: Prior
    weights: Array | None = None
    """[rows]; rows that each row counts for."""

    @property
    def row_weights(self) -> Array:
        return np.ones(len(self.y)) if self.weights is None else self.weights


def two_classes() -> Toy:
    """One class in a corner. Columns stay inside (0, 1): some hard cuts separate no rows."""
    x0 = [0.06, 0.18, 0.17, 0.28, 0.21, 0.78, 0.77, 0.69, 0.60, 0.67, 0.84, 0.67]
    x1 = [0.38, 0.05, 0.80, 0.19, 0.29, 0.91, 0.78, 0.90, 0.82, 0.27, 0.08, 0.21]
    y = np.repeat([0, 1, 0], [5, 4, 3])
    prior = Prior(alpha_split=0.6, beta_split=0.5, classes=0.5, max_leaves=4)
    return Toy(np.column_stack([x0, x1]), y, 2, prior)


def shared_values() -> Toy:
    """Several rows for each value of a column, and h = 0.1 near their distance: soft scans."""
    x0 = [0.1, 0.1, 0.1, 0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.9, 0.9, 0.9]
    x1 = [0.2, 0.35, 0.65, 0.2, 0.35, 0.8, 0.2, 0.65, 0.8, 0.35, 0.65, 0.8]
    y = np.array([0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1])
    prior = Prior(alpha_split=0.6, beta_split=0.5, classes=0.5, max_leaves=3)
    return Toy(np.column_stack([x0, x1]), y, 2, prior)


def three_classes() -> Toy:
    """One class on the left, two more on the right, one above the other."""
    x0 = [0.19, 0.19, 0.12, 0.06, 0.0, 0.72, 0.73, 0.56, 0.57, 1.0, 0.84, 0.65]
    x1 = [0.43, 1.0, 0.92, 0.86, 0.39, 0.81, 0.89, 0.63, 0.18, 0.08, 0.3, 0.0]
    y = np.repeat([0, 1, 2], [5, 3, 4])
    prior = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=4)
    return Toy(np.column_stack([x0, x1]), y, 3, prior)


def regression() -> Toy:
    """Three levels in corners of the square under noise, with y standardised."""
    x0 = [0.47, 0.72, 0.54, 0.0, 0.47, 1.0, 0.62, 0.73, 0.97, 0.35]
    x1 = [0.82, 0.23, 0.07, 0.43, 1.0, 0.45, 0.08, 0.77, 0.0, 0.59]
    y = [-0.51, 1.36, 0.8, -1.4, -0.87, 1.4, 0.1, -1.04, 0.94, -0.78]
    prior = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=4)
    return Toy(np.column_stack([x0, x1]), np.array(y), 0, prior)


TOYS: dict[str, Callable[[], Toy]] = {
    "two-classes": two_classes,
    "three-classes": three_classes,
    "regression": regression,
}
