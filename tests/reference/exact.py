"""The exact posterior over tree shapes on tiny data sets, by quadrature and enumeration.

A rule (feature or weights, and threshold) enters a likelihood only through psi, its P(right) of
each row. So a rule prior becomes a list of psi vectors with weights: Gauss-Legendre nodes where
splits are soft, and for hard splits the finitely many 0/1 patterns with their exact prior measure.
Every tree of up to three splits is then a finite sum over rules, and sigma one more trapezoid sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numba import njit
from scipy.special import digamma, gammaln
from scipy.stats import invgamma

from .exact_rules import Rules, make_rules
from .model import TOYS, Array, Prior, Shape, Toy, log_prior_shape

SHAPES: tuple[Shape, ...] = (
    (1,),
    (3, 1, 1),
    (5, 3, 1, 1, 1),
    (5, 1, 3, 1, 1),
    (7, 3, 1, 1, 3, 1, 1),
    (7, 5, 3, 1, 1, 1, 1),
    (7, 5, 1, 3, 1, 1, 1),
    (7, 1, 5, 3, 1, 1, 1),
    (7, 1, 5, 1, 3, 1, 1),
)
"""All shapes of one to four leaves, as subtree sizes in preorder."""
BALANCED: Shape = (7, 3, 1, 1, 3, 1, 1)
ROOTS = ("root", "three", "balanced")
"""Which trees the means of a root's rule are given for; see ``Exact``."""


@dataclass(frozen=True)
class Exact:
    """An exact posterior over shapes, with the means of a few functionals."""

    shapes: dict[Shape, float]
    means: dict[str, float]
    """``n_leaves``; ``root_feature0``: P(root splits on feature 0 | a split exists), for HMC-DFI
    the mean weight of feature 0 there; ``root_threshold``: mean given exactly two leaves;
    ``three_feature0`` and ``three_threshold``: of the root given three leaves;
    ``balanced_feature0`` and ``balanced_threshold``: given BALANCED; for regression ``sigma`` and
    ``log_sigma``. Those of an impossible condition are NaN."""
    log_evidence: float
    """Under the prior normalised over the allowed shapes."""
    error: float
    """Largest change of any probability or mean between the last two refinements."""


def exact_posterior(
    toy: Toy,
    *,
    method: str,
    h: float,
    prior: Prior | None = None,
    likelihood: bool = True,
    order: int | None = None,
) -> Exact:
    """Posterior over shapes of one to four leaves, with the leaf parameters integrated out.

    Parameters
    ----------
    toy : Toy
        Two features, few rows.
    method : {"hmc-df", "hmc-dfi"}
    h : float
        Softness; at least about 0.05 for the default order, or 0 for hard splits.
    prior : Prior, optional
        Instead of the toy's; at most 4 leaves; uniform thresholds, features and weights.
    likelihood : bool
        False gives the prior.
    order : int, optional
        Threshold nodes of the coarser of two rules (the finer has three more); for h > 0 alone.
        The default is enough for h = 0.1.
    """
    prior = toy.prior if prior is None else prior
    if prior.max_leaves > 4 or prior.tau != (1.0, 1.0) or prior.feature or prior.weight != 1:
        raise ValueError("up to four leaves, and uniform thresholds, features and weights only")
    if not likelihood:
        return _prior_only(toy, prior)
    if order is None:
        order = 12 if toy.n_classes else 13
    coarse = _posterior(toy, make_rules(toy.X, method, h, order), h, prior, step=0.25)
    fine = _posterior(toy, make_rules(toy.X, method, h, order + 3), h, prior, step=0.2)
    return replace(fine, error=_largest_change(coarse, fine))


# ------------------------------------------------------------------------- sums over trees
def _posterior(toy: Toy, rules: Rules, h: float, prior: Prior, step: float) -> Exact:
    """Normalise the mass of each shape; ``mass[shape]`` is [sigma nodes, root rules]."""
    if toy.n_classes:
        sigma, mass = np.array([np.nan]), _class_mass(toy, rules, prior)
    else:
        # In log sigma the integrand decays fast on both sides, where the trapezoid rule has an
        # error exponentially small in sd / step, for a posterior sd near 1 / sqrt(2 rows).
        log_sigma = np.arange(-3.0, 3.0 + step / 2, step)
        sigma = np.exp(log_sigma)
        weight = step * sigma * invgamma.pdf(sigma, prior.sigma[0], scale=prior.sigma[1])
        conditional = _hard_regression_mass if h == 0 else _soft_regression_mass
        mass = {s: m * weight[:, None] for s, m in conditional(toy, rules, sigma, prior).items()}
    prior_mass = {s: np.exp(log_prior_shape(s, prior)) for s in SHAPES}
    mass = {s: m * prior_mass[s] for s, m in mass.items()}
    total = sum(m.sum() for m in mass.values())
    shapes = {s: float(m.sum() / total) for s, m in mass.items() if prior_mass[s] > 0}

    split = sum(mass[s].sum(axis=0) for s in SHAPES[1:])  # [root rules]
    stump = mass[(3, 1, 1)].sum(axis=0)
    means = {
        "n_leaves": _mean_leaves(shapes),
        "root_feature0": _ratio(split @ rules.feature0, split.sum()),
        "root_threshold": _ratio(stump @ rules.threshold, stump.sum()),
    }
    for name, given in {"three": SHAPES[2:4], "balanced": [BALANCED]}.items():
        root = sum(mass[s].sum(axis=0) for s in given)
        means[f"{name}_feature0"] = _ratio(root @ rules.feature0, root.sum())
        means[f"{name}_threshold"] = _ratio(root @ rules.threshold, root.sum())
    if not toy.n_classes:
        by_sigma = sum(m.sum(axis=1) for m in mass.values()) / total
        means |= {"sigma": by_sigma @ sigma, "log_sigma": by_sigma @ np.log(sigma)}
    log_evidence = np.log(total) - np.log(sum(prior_mass.values()))
    return Exact(shapes, {k: float(v) for k, v in means.items()}, float(log_evidence), 0.0)


def _factorised_mass(
    rules: Rules, columns: Array, leaf: Callable[[Array], Array]
) -> dict[Shape, Array]:
    """Sum over rules where the likelihood is a product over leaves.

    ``columns`` [K, rows] turns the reach of a leaf into its K sums; ``leaf`` maps sums [..., K]
    to the leaf's factor [..., sigma nodes]. Branch s is the left side of rule s, or the right
    side of rule s - n.
    """
    n, w = len(rules.weight), rules.weight[:, None]
    branch = np.vstack([1 - rules.psi, rules.psi])  # [2 n, rows]
    one = leaf(branch @ columns.T)  # [2 n, sigma]: the branch is a leaf
    grown, deep_left, deep_right = np.empty((3, *one.shape))
    below = np.empty((2 * n, *one.shape))  # two branches in a row, then one more split
    for s in range(2 * n):
        reach = branch * branch[s]
        two = leaf(reach @ columns.T)  # two branches in a row are a leaf
        rest = reach[s:]  # the order of two branches makes no difference to what is below
        three = leaf(np.stack([(rest * column) @ branch.T for column in columns], axis=-1))
        below[s, s:] = (w * three[:, :n] * three[:, n:]).sum(axis=1)
        below[s:, s] = below[s, s:]
        grown[s] = (w * two[:n] * two[n:]).sum(axis=0)
        deep_left[s] = (w * below[s, :n] * two[n:]).sum(axis=0)
        deep_right[s] = (w * two[:n] * below[s, n:]).sum(axis=0)
    sides = {
        (3, 1, 1): (one, one),
        (5, 3, 1, 1, 1): (grown, one),
        (5, 1, 3, 1, 1): (one, grown),
        (7, 3, 1, 1, 3, 1, 1): (grown, grown),
        (7, 5, 3, 1, 1, 1, 1): (deep_left, one),
        (7, 5, 1, 3, 1, 1, 1): (deep_right, one),
        (7, 1, 5, 3, 1, 1, 1): (one, deep_left),
        (7, 1, 5, 1, 3, 1, 1): (one, deep_right),
    }
    mass = {s: (w * left[:n] * right[n:]).T for s, (left, right) in sides.items()}
    return {(1,): leaf(columns.sum(axis=1))[:, None]} | mass


def _class_mass(toy: Toy, rules: Rules, prior: Prior) -> dict[Shape, Array]:
    a = np.broadcast_to(np.asarray(prior.classes, dtype=float), (toy.n_classes,))

    def leaf(counts: Array) -> Array:
        log = gammaln(a.sum()) - gammaln(counts.sum(axis=-1) + a.sum())
        return np.exp(log + (gammaln(counts + a) - gammaln(a)).sum(axis=-1))[..., None]

    return _factorised_mass(rules, toy.row_weights * np.eye(toy.n_classes)[:, toy.y], leaf)


def _hard_regression_mass(toy: Toy, rules: Rules, sigma: Array, prior: Prior) -> dict[Shape, Array]:
    """Rows of a leaf share a mean with a normal prior: one normal density a leaf."""
    residual, sd = toy.y - prior.mu[0], prior.mu[1]

    def leaf(sums: Array) -> Array:
        count, total, square = (sums[..., k, None] for k in range(3))
        spread = sigma**2 + count * sd**2  # of the leaf's covariance along the ones vector
        log = -count * np.log(2 * np.pi * sigma**2) - np.log(spread / sigma**2)
        return np.exp((log - square / sigma**2 + (sd * total) ** 2 / (sigma**2 * spread)) / 2)

    columns = toy.row_weights * np.stack([np.ones_like(residual), residual, residual**2])
    return _factorised_mass(rules, columns, leaf)


def _soft_regression_mass(toy: Toy, rules: Rules, sigma: Array, prior: Prior) -> dict[Shape, Array]:
    """Soft leaves share rows, so that nothing factorises: every combination of rules in turn."""
    residual, sd = toy.y - prior.mu[0], prior.mu[1]
    # a density to a power w is one of the variance over w, up to what does not depend on the tree
    root = np.sqrt(toy.row_weights)
    mass = _enumerate(rules.psi, rules.weight, root, root * residual, sigma**2, sd)
    rows = toy.row_weights.sum()
    mass *= sigma**4 * (2 * np.pi * sigma**2) ** (-rows / 2)  # what _add_density omits
    return {s: mass[k].T if k else mass[k, :1].T for k, s in enumerate(SHAPES)}


_compiled = njit(fastmath=True, error_model="numpy")  # not cached: 4 s, and never stale


@_compiled
def _enumerate(
    psi: Array, weight: Array, root: Array, y: Array, variance: Array, sd: float
) -> Array:
    """p(y | sigma) summed over the rules of each of SHAPES; [shapes, root rules, sigma].

    ``root`` [rows] is what reaches the root: the square root of a row's weight.
    """
    n, rows = psi.shape
    branch = np.stack((1.0 - psi, psi))  # [2, rules, rows]
    rooted = branch * root
    mass = np.zeros((9, n, len(variance)))
    work = np.empty((2, len(variance)))
    leaf = np.zeros((4, rows))  # reach of each leaf, in any order; a leaf nobody reaches is no leaf
    leaf[0] = root
    _add_density(leaf, y, variance, sd, work, 1.0, mass[0, 0])
    for a in range(n):
        leaf[0], leaf[1], leaf[2], leaf[3] = rooted[0, a], rooted[1, a], 0.0, 0.0
        _add_density(leaf, y, variance, sd, work, weight[a], mass[1, a])
        for b in range(n):
            w = weight[a] * weight[b]
            leaf[3] = 0.0
            for side in range(2):  # of the root, where b sits
                leaf[0] = rooted[1 - side, a]
                _halve(rooted[side, a], psi[b], leaf[1], leaf[2])
                _add_density(leaf, y, variance, sd, work, w, mass[2 + side, a])
            for c in range(n):
                w = weight[a] * weight[b] * weight[c]
                _halve(rooted[0, a], psi[b], leaf[0], leaf[1])
                _halve(rooted[1, a], psi[c], leaf[2], leaf[3])
                _add_density(leaf, y, variance, sd, work, w, mass[4, a])
                for chain in range(4):  # left-left, left-right, right-left, right-right
                    side, deep = chain // 2, chain % 2
                    leaf[0] = rooted[1 - side, a]
                    for r in range(rows):
                        leaf[1, r] = rooted[side, a, r] * branch[1 - deep, b, r]
                        leaf[2, r] = rooted[side, a, r] * branch[deep, b, r]
                    _halve(leaf[2], psi[c], leaf[2], leaf[3])
                    _add_density(leaf, y, variance, sd, work, w, mass[5 + chain, a])
    return mass


@_compiled
def _halve(reach: Array, psi: Array, left: Array, right: Array) -> None:
    for r in range(len(psi)):
        right[r] = reach[r] * psi[r]
        left[r] = reach[r] - right[r]


@_compiled
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for r in range(len(a)):
        total += a[r] * b[r]
    return total


@_compiled
def _add_density(
    leaf: Array, y: Array, variance: Array, sd: float, work: Array, weight: float, out: Array
) -> None:
    """Add N(y; 0, sigma^2 I + sd^2 Phi Phi') at every sigma, less a factor the caller applies.

    By an LDL' of the 4 x 4 matrix sigma^2 I + sd^2 Phi'Phi, written out so that the loop over
    sigma vectorises: det(sigma^2 I + sd^2 Phi Phi') is its determinant times sigma^(2 (N - 4)).
    """
    l0, l1, l2, l3 = leaf[0], leaf[1], leaf[2], leaf[3]
    g00, g11, g22, g33 = _dot(l0, l0), _dot(l1, l1), _dot(l2, l2), _dot(l3, l3)
    g10, g20, g30 = _dot(l1, l0), _dot(l2, l0), _dot(l3, l0)
    g21, g31, g32 = _dot(l2, l1), _dot(l3, l1), _dot(l3, l2)
    y0, y1, y2, y3, yy = _dot(l0, y), _dot(l1, y), _dot(l2, y), _dot(l3, y), _dot(y, y)
    for s in range(len(variance)):
        ridge = variance[s] / sd**2
        d0 = g00 + ridge
        r1, r2, r3 = g10 / d0, g20 / d0, g30 / d0
        d1 = g11 + ridge - r1 * g10
        a21, a31, b1 = g21 - r1 * g20, g31 - r1 * g30, y1 - r1 * y0
        d2 = g22 + ridge - r2 * g20 - a21 * a21 / d1
        a32 = g32 - r2 * g30 - a21 * a31 / d1
        b2 = y2 - r2 * y0 - a21 * b1 / d1
        d3 = g33 + ridge - r3 * g30 - a31 * a31 / d1 - a32 * a32 / d2
        b3 = y3 - r3 * y0 - a31 * b1 / d1 - a32 * b2 / d2
        work[0, s] = d0 * d1 * d2 * d3
        work[1, s] = yy - y0 * y0 / d0 - b1 * b1 / d1 - b2 * b2 / d2 - b3 * b3 / d3
    for s in range(len(variance)):
        quadratic = work[1, s] / variance[s]
        out[s] += weight / (sd**4 * np.sqrt(work[0, s])) * np.exp(-0.5 * quadratic)


# ---------------------------------------------------------------------------------- helpers
def _prior_only(toy: Toy, prior: Prior) -> Exact:
    mass = {s: np.exp(log_prior_shape(s, prior)) for s in SHAPES}
    shapes = {s: float(m / sum(mass.values())) for s, m in mass.items() if m > 0}
    means = {"n_leaves": _mean_leaves(shapes)}
    means |= {f"{n}_{of}": 0.5 for n in ROOTS for of in ("feature0", "threshold")}
    if not toy.n_classes:
        a, b = prior.sigma
        means |= {
            "sigma": b / (a - 1) if a > 1 else np.inf,
            "log_sigma": float(np.log(b) - digamma(a)),
        }
    return Exact(shapes, means, 0.0, 0.0)


def _mean_leaves(shapes: dict[Shape, float]) -> float:
    return sum(p * (s[0] + 1) / 2 for s, p in shapes.items())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else np.nan


def _largest_change(coarse: Exact, fine: Exact) -> float:
    changes = [abs(coarse.shapes[s] - p) for s, p in fine.shapes.items()]
    changes += [abs(coarse.means[k] - m) for k, m in fine.means.items() if np.isfinite(m)]
    return float(max(changes))


@cache
def exact_toy(name: str, method: str, h: float) -> Exact:
    """Exact posterior of one of TOYS, computed once a process."""
    return exact_posterior(TOYS[name](), method=method, h=h)
