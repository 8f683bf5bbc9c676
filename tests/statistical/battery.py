"""Runs the RJHMC samplers on toys and reads off what the references know exactly."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from hamiltree.posterior.draws import Draws
from hamiltree.running.run import Problem, sample

from ..reference.exact import BALANCED, Exact
from ..reference.model import Shape, Toy
from ..reference.stats import compare_means, total_variation
from ..support.configuring import configured, usable, values_of

# Every configuration that claims to leave the posterior invariant. The paper's adaptation inside a
# transition and its biased acceptance do not, and are not here.
CONFIGURATIONS: dict[str, dict[str, object]] = {
    "informed": {},
    "informed-explicit": {"leaf_means": "explicit"},
    "composed": {"moves": "prior"},
    "composed-liu": {
        "moves": "prior",
        "index_update": "liu",
        "leaf_means": "explicit",
        "inner_steps": 2,
    },
    "double-sided": {
        "moves": "prior",
        "scheme": "double-sided",
        "index_update": "mh",
        "leaf_means": "explicit",
        "likelihood": "paper",
    },
}


@dataclass(frozen=True)
class Sampled:
    """Chain x draw summaries of trees."""

    draws: Draws
    shapes: list[list[Shape]]
    functionals: dict[str, np.ndarray]
    acceptance: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """After warm-up: move -> (accepted, proposed), each [chain]."""


def run_toy(
    toy: Toy,
    *,
    method: str,
    h: float | str,
    n_draws: int,
    seed: int,
    configuration: str = "composed",
    n_chains: int = 4,
    n_warmup: int = 500,
    likelihood: bool = True,
    of_labels: str = "normalised",
    **overrides: object,
) -> Sampled:
    """``likelihood`` False leaves the prior; ``of_labels``: that of soft classification."""
    options = {
        **values_of(toy.prior),
        "likelihood_power": float(likelihood),
        "likelihood": of_labels,
        **CONFIGURATIONS[configuration],
        **overrides,
    }
    chosen = configured(method, **usable(method, {"h": h, **options}))
    columns = np.ascontiguousarray(toy.X.T)
    draws, info = sample(
        Problem(columns, toy.y, toy.n_classes, toy.weights),
        chosen,
        n_chains=n_chains,
        n_warmup=n_warmup,
        n_draws=n_draws,
        n_jobs=2,
        seed=seed,
    )
    return replace(summarise(draws), acceptance=info.acceptance["sampling"])


def assert_exact(sampled: Sampled, exact: Exact, *, level: float, most: float = np.inf) -> None:
    """Total variation of the shapes, and z-tests of the functionals, against quadrature."""
    distance = total_variation(sampled.shapes, exact.shapes, level=level)
    means = compare_means(sampled.functionals, exact.means, level=level)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.value < most
    assert distance.ok, distance
    assert means.ok, means


def summarise(draws: Draws) -> Sampled:
    offset = draws.node_offset
    size = draws.size.tolist()
    labels = [tuple(size[a:b]) for a, b in itertools.pairwise(offset)]
    shapes = [labels[c * draws.n_draws : (c + 1) * draws.n_draws] for c in range(draws.n_chains)]
    trees = np.arange(len(labels))
    first_split = (offset[:-1] - trees) // 2
    has_split = draws.n_leaves.ravel() > 1
    root = np.where(has_split, first_split, 0)
    if draws.feature.size == 0:
        feature0 = threshold = np.full(len(labels), np.nan)
    else:
        uses0 = draws.split_weights[:, 0] if draws.split_weights.shape[1] else draws.feature == 0
        feature0 = np.where(has_split, np.asarray(uses0, float)[root], np.nan)
        threshold = np.where(has_split, draws.threshold[root], np.nan)
    square = (draws.n_chains, draws.n_draws)
    leaves = draws.n_leaves.ravel()
    balanced = np.array([label == BALANCED for label in labels])
    functionals = {"n_leaves": draws.n_leaves.astype(float)}
    for name, value, given in (
        ("root_feature0", feature0, has_split),
        ("root_threshold", threshold, leaves == 2),
        ("three_feature0", feature0, leaves == 3),
        ("three_threshold", threshold, leaves == 3),
        ("balanced_feature0", feature0, balanced),
        ("balanced_threshold", threshold, balanced),
    ):
        functionals[name] = np.where(given, value, np.nan).reshape(square)
    if not np.isnan(draws.sigma).all():
        functionals["log_sigma"] = np.log(draws.sigma)
    if draws.h_learned:
        log_h = np.log(draws.h).reshape(*square, -1)
        names = ["log_h"] if log_h.shape[2] == 1 else ["log_h0", "log_h1"]
        for name, value in zip(names, np.moveaxis(log_h, 2, 0), strict=False):
            functionals[name] = value
            functionals[f"{name}_squared"] = value**2
            functionals[f"{name}_split"] = np.where(draws.n_leaves > 1, value, np.nan)
    return Sampled(draws, shapes, functionals)
