"""The exact joint posterior of a tree of up to three leaves and of h, by quadrature.

h is given, or learned: log h by Gauss-Legendre nodes weighted with its prior, one for all features
or one per feature. Rules as in ``exact``; sigma by the trapezoid rule. For classification the
likelihood is normalised over labels, prod_i sum_k phi_ik p_k[y_i], and two classes leave one number
per leaf: Gauss-Jacobi nodes, exact for its polynomials, or many more where it has a power.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, roots_jacobi
from scipy.stats import invgamma, truncnorm

from .exact import Exact
from .exact_rules import soft_dfi, unit_legendre
from .model import Array, Prior, Shape, Toy, log_prior_shape

H_RANGE = (1e-4, 0.5)
SHAPES: tuple[Shape, ...] = ((1,), (3, 1, 1), (5, 3, 1, 1, 1), (5, 1, 3, 1, 1))


def h_prior(median: float, sd: float):
    """Of log h."""
    ends = [(np.log(end) - np.log(median)) / sd for end in H_RANGE]
    return truncnorm(*ends, loc=np.log(median), scale=sd)


def learned_posterior(
    toy: Toy,
    *,
    method: str,
    prior_of_h: tuple[float, float],
    by_feature: bool = False,
    order: int = 20,
    h_nodes: int = 12,
    power: float = 1.0,
) -> Exact:
    """Shapes, and means of those of ``exact`` that ``battery.summarise`` knows, and of log h.

    ``log_h`` and ``log_h_squared``; ``log_h0`` and ``log_h1`` by feature; the same with ``_split``
    given that the tree splits. ``power`` of the likelihood, for classification.
    """
    coarse = _posterior(toy, method, _log_h(prior_of_h, by_feature, h_nodes), order, power)
    fine = _posterior(toy, method, _log_h(prior_of_h, by_feature, h_nodes + 3), order + 4, power)
    return _compared(coarse, fine)


def label_posterior_of_rules(
    toy: Toy, psi: Array, weight: Array, values: Array, order: int
) -> tuple[dict[Shape, float], list[float]]:
    """Shapes of up to three leaves for any rules, and means of a value of the first split.

    ``psi`` [rules, rows], ``weight`` [rules] of the prior; means given two leaves, and three.
    """
    n, mass = len(weight), {}
    moments = []
    for shapes in (SHAPES[:1], SHAPES[1:2], SHAPES[2:]):
        sums = [0.0, 0.0]
        for shape in shapes:
            phi, w, root = _reached(psi, weight, shape)
            of_tree = w * _labels(toy, phi, 1.0, order)[0][:, 0]
            of_tree *= np.exp(log_prior_shape(shape, toy.prior))
            mass[shape] = float(of_tree.sum())
            if root is not None:
                sums[0] += float(of_tree @ values[root])
                sums[1] += mass[shape]
        moments.append(sums)
    total = sum(mass.values())
    assert n == len(values)
    return {s: m / total for s, m in mass.items()}, [a / b for a, b in moments[1:]]


def label_posterior(
    toy: Toy, *, method: str, h: float | tuple[float, float], order: int = 20, power: float = 1.0
) -> Exact:
    """The same of a given h, without means of it."""
    given = [(np.log(np.atleast_1d(h)), 1.0)]
    orders = (order, order + 4)
    return _compared(*(_posterior(toy, method, given, n, power, learned=False) for n in orders))


def _compared(coarse: Exact, fine: Exact) -> Exact:
    changes = [abs(coarse.shapes[s] - p) for s, p in fine.shapes.items()]
    changes += [abs(coarse.means[name] - mean) for name, mean in fine.means.items()]
    return Exact(fine.shapes, fine.means, fine.log_evidence, float(np.nanmax(changes)))


@dataclass(frozen=True)
class _Sums:
    """Mass of each shape, and moments."""

    mass: dict[Shape, float]
    moments: dict[str, list[float]]
    """name -> [sum of weight x value, sum of weight]"""

    def add(self, name: str, value: float, weight: float) -> None:
        total = self.moments.setdefault(name, [0.0, 0.0])
        total[0] += weight * value
        total[1] += weight


def _log_h(prior_of_h: tuple[float, float], by_feature: bool, n: int) -> list[tuple[Array, float]]:
    """Values of log h, one or by feature, with their weights."""
    law = h_prior(*prior_of_h)
    low, high = law.ppf([1e-7, 1 - 1e-9])
    node, weight = unit_legendre(n)
    log_h = low + (high - low) * node
    weight = weight * (high - low) * law.pdf(log_h)
    return [
        (log_h[list(places)], float(np.prod(weight[list(places)])))
        for places in product(range(n), repeat=2 if by_feature else 1)
    ]


def _posterior(
    toy: Toy,
    method: str,
    log_h: list[tuple[Array, float]],
    order: int,
    power: float,
    *,
    learned: bool = True,
) -> Exact:
    sums = _Sums(dict.fromkeys(SHAPES, 0.0), {})
    for u, weight in log_h:
        _add_trees(sums, toy, method, u, weight, order, power, learned)
    total = sum(sums.mass.values())
    shapes = {s: m / total for s, m in sums.mass.items() if m > 0}
    means = {name: a / b for name, (a, b) in sums.moments.items()}
    allowed = sum(np.exp(log_prior_shape(s, toy.prior)) for s in SHAPES)
    return Exact(shapes, means, float(np.log(total / allowed)), 0.0)


def _add_trees(
    sums: _Sums,
    toy: Toy,
    method: str,
    u: Array,
    weight_of_h: float,
    order: int,
    power: float,
    learned: bool,
) -> None:
    h = np.broadcast_to(np.exp(u), 2)
    if method == "hmc-dfi":
        rules = soft_dfi(toy.X, float(h[0]), order)
        psi, weight, feature0, threshold = rules.psi, rules.weight, rules.feature0, rules.threshold
    else:
        tau, w = unit_legendre(order)
        psi = np.vstack([expit((toy.X[:, j] - tau[:, None]) / h[j]) for j in (0, 1)])
        weight, threshold = np.tile(w / 2, 2), np.tile(tau, 2)
        feature0 = np.repeat([1.0, 0.0], order)
    prior = toy.prior
    for shape in SHAPES:
        log_shape = log_prior_shape(shape, prior)
        if log_shape == -np.inf:
            continue
        phi, w, root = _reached(psi, weight, shape)
        by_sigma, log_sigma = _likelihood(toy, phi, power, order)  # [trees, sigma]
        mass = np.exp(log_shape) * weight_of_h * w[:, None] * by_sigma
        total = float(mass.sum())
        sums.mass[shape] += total
        sums.add("n_leaves", (shape[0] + 1) / 2, total)
        if toy.n_classes == 0:
            sums.add("log_sigma", float((mass @ log_sigma).sum() / total), total)
        names = ["log_h"] if len(u) == 1 else ["log_h0", "log_h1"]
        for name, value in zip(names, u, strict=True) if learned else ():
            sums.add(name, value, total)
            sums.add(f"{name}_squared", value**2, total)
            if root is not None:
                sums.add(f"{name}_split", value, total)
        if root is not None:
            of_tree = mass.sum(axis=1)
            for name, values in (("feature0", feature0), ("threshold", threshold)):
                value = float(of_tree @ values[root] / total)
                if shape == (3, 1, 1):
                    if name == "threshold":
                        sums.add("root_threshold", value, total)
                else:
                    sums.add(f"three_{name}", value, total)
                if name == "feature0":
                    sums.add("root_feature0", value, total)


def _reached(psi: Array, weight: Array, shape: Shape) -> tuple[Array, Array, Any]:
    """phi [trees, rows, leaves] and prior mass of every tree of a shape, and its root's rule."""
    n = len(weight)
    if shape == (1,):
        return np.ones((1, psi.shape[1], 1)), np.ones(1), None
    if shape == (3, 1, 1):
        return np.stack([1 - psi, psi], axis=2), weight, np.arange(n)
    a, b = (index.ravel() for index in np.meshgrid(range(n), range(n), indexing="ij"))
    split, rest = (1 - psi[a], psi[a]) if shape[1] == 3 else (psi[a], 1 - psi[a])
    phi = np.stack([rest, split * (1 - psi[b]), split * psi[b]], axis=2)
    return phi, weight[a] * weight[b], a


def _likelihood(toy: Toy, phi: Array, power: float, order: int) -> tuple[Array, Array]:
    """[trees, sigma] with leaf parameters integrated out, and log sigma; phi [trees, rows, k]."""
    return _labels(toy, phi, power, order) if toy.n_classes else _normal(toy.y, phi, toy.prior)


def _labels(toy: Toy, phi: Array, power: float, order: int) -> tuple[Array, Array]:
    assert toy.n_classes == 2
    a = float(toy.prior.classes)
    # A leaf's probability of class 1 is Beta(a, a): Jacobi's weight on [-1, 1] but for a factor.
    polynomial = power == 1.0 and toy.weights is None
    n = len(toy.X) // 2 + 1 if polynomial else order // 2
    node, weight = roots_jacobi(n, a - 1, a - 1)
    p, weight = (node + 1) / 2, weight / weight.sum()
    total = np.zeros(len(phi))
    for places in product(range(len(p)), repeat=phi.shape[2]):
        of_class_1 = phi @ p[list(places)]  # [trees, rows]
        of_label = np.where(toy.y == 1, of_class_1, 1 - of_class_1)
        likelihood = (of_label**toy.row_weights).prod(axis=1)
        total += weight[list(places)].prod() * likelihood**power
    return total[:, None], np.zeros(1)


def _normal(y: Array, phi: Array, prior: Prior, step: float = 0.2) -> tuple[Array, Array]:
    """N(y; mu, sigma^2 I + sd^2 Phi Phi') at each sigma, by the eigenvalues of Phi'Phi."""
    log_sigma = np.arange(-3.0, 3.0 + step / 2, step)
    variance = np.exp(2 * log_sigma)
    residual, sd, n = y - prior.mu[0], prior.mu[1], len(y)
    eigenvalue, vector = np.linalg.eigh(np.einsum("tik,til->tkl", phi, phi))
    along = np.einsum("tkj,tik,i->tj", vector, phi, residual) ** 2
    spread = variance + sd**2 * np.maximum(eigenvalue, 0.0)[..., None]  # [trees, k, sigma]
    quadratic = residual @ residual - (sd**2 * along[..., None] / spread).sum(axis=1)
    log_det = (n - phi.shape[2]) * np.log(variance) + np.log(spread).sum(axis=1)
    density = np.exp(-0.5 * (n * np.log(2 * np.pi) + log_det + quadratic / variance))
    sigma = np.exp(log_sigma)
    weight = step * sigma * invgamma.pdf(sigma, prior.sigma[0], scale=prior.sigma[1])
    return density * weight, log_sigma
