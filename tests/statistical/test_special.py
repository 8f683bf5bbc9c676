"""Missing cells and categories: posteriors against quadrature and enumeration, and priors.

Soft and hard trees of HMC-DF: total variation over shapes, and means of what the first split is.
CGM and WU: total variation over every tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hamiltree.posterior.draws import Draws
from hamiltree.running.run import Problem, sample

from ..reference import exact as quadrature
from ..reference.enumerate_hard import HardPrior
from ..reference.enumerate_special import SpecialToy, labels_of_special
from ..reference.exact_learned import label_posterior_of_rules
from ..reference.exact_rules import Rules
from ..reference.model import Prior, Toy
from ..reference.special import IMPUTED, TAKEN_AS_IMPUTED, Column, bits, psi_of, rules_of
from ..reference.stats import compare_means, total_variation
from ..support.configuring import configured, usable, values_of
from ..support.informed_battery import make_binned
from ..support.special import as_columns, kinds_of
from .battery import CONFIGURATIONS, summarise
from .hard_battery import LEAVES, configuration_of

LEVEL = 1e-4  # of each test

X = np.column_stack(
    [
        [0.0, 0.2, 0.2, np.nan, 0.4, 0.7, np.nan, 1.0, 0.9, np.nan, 0.6, 0.35],
        [0, 1, 2, 0, 1, 2, 2, 1, 0, 1, 0, 2],
    ]
)
COLUMNS = [(0, True), (3, False)]
CLASSES = np.array([0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0])
TARGET = np.array([-0.9, 1.1, -0.4, 0.8, 1.3, -1.2, 0.2, 1.0, -0.6, 1.4, -1.1, -0.8])
IMPUTING = [(0, IMPUTED), (3, False)]
IMPUTED_X = X.copy()
IMPUTED_X[np.isnan(X[:, 0]), 0] = -1 - np.array([0.55, 0.1, 0.8])
WEIGHTS = np.array([1.0, 0.4, 2.0, 1.0, 0.7, 1.3, 1.0, 0.5, 1.6, 1.0, 1.0, 0.8])


def is_missing(rule):
    return float(rule[0] == 0 and np.isinf(rule[1]))


def is_right(rule):
    """The missing go right, or level 2 does."""
    return float(bool(rule[2] & ({0} if rule[0] == 0 else {2})))


def is_imputed(rule):
    return float(rule[0] == 0 and rule[2] == TAKEN_AS_IMPUTED)


FUNCTIONALS = {"is missing": is_missing, "is right": is_right, "is imputed": is_imputed}


def functionals_in(columns):
    """Those that are not the same of every rule."""
    return {k: of for k, of in FUNCTIONALS.items() if columns == IMPUTING or of != is_imputed}


@dataclass(frozen=True)
class Truth:
    shapes: dict
    means: dict[str, float]
    error: float


def truth_of(toy: Toy, h: float, order: int, columns: list[Column] = COLUMNS) -> Truth:
    """Shapes, and means over the first split of trees of two, three, and four leaves."""
    found = []
    for more in (0, 3):
        nodes = None
        if h > 0:
            node, weight = np.polynomial.legendre.leggauss(order + more)
            nodes = ((node + 1) / 2, weight / 2)
        rules = list(rules_of(toy.X, columns, nodes))
        psi = np.array([psi_of(rule, toy.X, columns, h) for rule, _ in rules])
        weight = np.array([mass for _, mass in rules])
        feature0 = np.array([float(rule[0] == 0) for rule, _ in rules])
        means = {}
        for name, of in functionals_in(columns).items():
            value = np.array([of(rule) for rule, _ in rules])
            exact = quadrature._posterior(
                toy, Rules(psi, weight, feature0, value), h, toy.prior, step=0.2
            )
            means |= {f"{name} {k}": exact.means[f"{k}_threshold"] for k in ("root", "three")}
        means |= {k: exact.means[k] for k in ("n_leaves", "root_feature0", "three_feature0")}
        if not toy.n_classes:
            means["log_sigma"] = exact.means["log_sigma"]
        found.append(Truth(exact.shapes, means, 0.0))
    change = [abs(found[0].shapes[s] - p) for s, p in found[1].shapes.items()]
    change += [abs(found[0].means[k] - m) for k, m in found[1].means.items()]
    return replace(found[1], error=max(change))


def functionals_of(draws: Draws, columns: list[Column] = COLUMNS) -> dict[str, np.ndarray]:
    known = summarise(draws).functionals
    out = {k: known[k] for k in ("n_leaves", "root_feature0", "three_feature0")}
    if "log_sigma" in known:
        out["log_sigma"] = known["log_sigma"]
    trees = np.arange(draws.n_leaves.size)
    first = (draws.node_offset[:-1] - trees) // 2
    leaves = draws.n_leaves.ravel()
    for name, of in functionals_in(columns).items():
        value = np.full(len(trees), np.nan)
        for t in np.flatnonzero((leaves == 2) | (leaves == 3)):
            s = first[t]
            levels = frozenset(k for k in range(3) if (int(draws.levels[s]) >> k) & 1)
            value[t] = of((int(draws.feature[s]), float(draws.threshold[s]), levels))
        for k, size in (("root", 2), ("three", 3)):
            given = np.where(leaves == size, value, np.nan)
            out[f"{name} {k}"] = given.reshape(draws.n_leaves.shape)
    return out


def run(
    toy: Toy,
    h: float,
    configuration: str,
    n_draws: int,
    seed: int,
    power: float = 1.0,
    likelihood: str = "paper",
    columns: list[Column] = COLUMNS,
) -> Draws:
    options = {
        "h": h,
        **values_of(toy.prior),
        "likelihood_power": power,
        "likelihood": likelihood,
        **CONFIGURATIONS[configuration],
    }
    problem = Problem(as_columns(toy.X), toy.y, toy.n_classes, toy.weights, kinds_of(columns))
    draws, _ = sample(
        problem, configured("hmc-df", **usable("hmc-df", options)), n_chains=4, n_warmup=500,
        n_draws=n_draws, n_jobs=2, seed=seed, progress=False,
    )  # fmt: skip
    return draws


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("configuration", ["informed", "composed"])
@pytest.mark.parametrize("h", [0.1, 0.0])
@pytest.mark.parametrize("n_classes", [2, 0])
def test_exact_posterior_of_hmc_df(n_classes, h, configuration, weights, seed):
    prior = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=3)
    toy = Toy(X, CLASSES if n_classes else TARGET, n_classes, prior, weights)
    truth = truth_of(toy, h, 12)
    assert truth.error < 1e-3
    draws = run(toy, h, configuration, 15_000, seed)
    distance = total_variation(summarise(draws).shapes, truth.shapes, level=LEVEL)
    means = compare_means(functionals_of(draws), truth.means, level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.ok, distance
    assert means.ok, means


@pytest.mark.parametrize(
    ("n_classes", "configuration", "bins"),
    [
        (2, "informed", 0),
        (2, "composed", 0),
        (0, "informed", 0),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (0, "composed", 0),
                (0, "informed-explicit", 0),
                (2, "informed", 3),
                (0, "informed", 3),
            )
        ),
    ],
)
def test_exact_posterior_where_missing_cells_are_imputed(
    n_classes, configuration, bins, seed, monkeypatch
):
    """``bins``: of a column, as of large data; 0 where it has none."""
    if bins:
        make_binned(monkeypatch, bins)
    prior = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=3)
    toy = Toy(IMPUTED_X, CLASSES if n_classes else TARGET, n_classes, prior)
    truth = truth_of(toy, 0.1, 12, IMPUTING)
    assert truth.error < 1e-3
    draws = run(toy, 0.1, configuration, 15_000, seed, columns=IMPUTING)
    distance = total_variation(summarise(draws).shapes, truth.shapes, level=LEVEL)
    means = compare_means(functionals_of(draws, IMPUTING), truth.means, level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {means.z}")
    assert distance.ok, distance
    assert means.ok, means


@pytest.mark.parametrize(("n_classes", "h"), [(2, 0.1), (0, 0.0)])
def test_exact_posterior_where_columns_are_binned(n_classes, h, seed, monkeypatch):
    """As large data are: two bins of numbers, one of missing cells, and one for each level."""
    make_binned(monkeypatch, 3)
    prior = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=3)
    toy = Toy(X, CLASSES if n_classes else TARGET, n_classes, prior)
    truth = truth_of(toy, h, 12)
    assert truth.error < 1e-3
    draws = run(toy, h, "informed", 6_000, seed)
    distance = total_variation(summarise(draws).shapes, truth.shapes, level=LEVEL)
    means = compare_means(functionals_of(draws), truth.means, level=LEVEL)
    assert distance.ok, distance
    assert means.ok, means


@pytest.mark.parametrize(
    ("columns", "weights"),
    [
        (COLUMNS, None),
        (COLUMNS, WEIGHTS),
        pytest.param(IMPUTING, None, marks=pytest.mark.long),
    ],
    ids=["plain", "weighted", "imputed"],
)
def test_exact_posterior_of_labels(columns, weights, seed):
    """The likelihood that is normalised over labels, of a few of the rows."""
    keep, h = [0, 2, 3, 4, 6, 7, 9, 11], 0.1
    weights = None if weights is None else weights[keep]
    rows = (IMPUTED_X if columns == IMPUTING else X)[keep]
    toy = Toy(rows, CLASSES[keep], 2, Prior(alpha_split=0.7, max_leaves=3), weights)
    shapes, means = [], []
    for order in (14, 18):
        node, weight = np.polynomial.legendre.leggauss(order)
        rules = list(rules_of(toy.X, columns, ((node + 1) / 2, weight / 2)))
        psi = np.array([psi_of(rule, toy.X, columns, h) for rule, _ in rules])
        mass = np.array([own for _, own in rules])
        found = {}
        for name, of in functionals_in(columns).items():
            value = np.array([of(rule) for rule, _ in rules])
            by_shape, of_root = label_posterior_of_rules(toy, psi, mass, value, 2 * order)
            found |= dict(zip((f"{name} root", f"{name} three"), of_root, strict=True))
        shapes.append(by_shape)
        means.append(found)
    assert max(abs(shapes[0][s] - p) for s, p in shapes[1].items()) < 1e-3
    assert max(abs(means[0][k] - m) for k, m in means[1].items()) < 1e-3
    draws = run(toy, h, "informed", 12_000, seed, likelihood="normalised", columns=columns)
    distance = total_variation(summarise(draws).shapes, shapes[1], level=LEVEL)
    drawn = functionals_of(draws, columns)
    compared = compare_means({k: drawn[k] for k in means[1]}, means[1], level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}; z {compared.z}")
    assert distance.ok, distance
    assert compared.ok, compared


@pytest.mark.parametrize("configuration", ["informed", "composed"])
@pytest.mark.parametrize(
    ("h", "columns"),
    [(0.1, COLUMNS), (0.0, COLUMNS), (0.1, IMPUTING)],
    ids=["0.1", "0.0", "imputed"],
)
def test_prior_recovery_of_hmc_df(h, columns, configuration, seed):
    """With the likelihood switched off, rules have their prior's probabilities."""
    prior = Prior(alpha_split=0.7, beta_split=1.0, max_leaves=3)
    rows = IMPUTED_X if columns == IMPUTING else X
    toy = Toy(rows, CLASSES, 2, prior)
    draws = run(toy, h, configuration, 15_000, seed, power=0.0, columns=columns)
    found = functionals_of(draws, columns)
    rules = list(rules_of(rows, columns, None))
    expected = {"root_feature0": 0.5, "three_feature0": 0.5}
    for name, of in functionals_in(columns).items():
        mean = sum(mass * of(rule) for rule, mass in rules)
        expected |= {f"{name} {k}": mean for k in ("root", "three")}
    means = compare_means({k: found[k] for k in expected}, expected, level=LEVEL)
    assert means.ok, means


@pytest.mark.parametrize("likelihood", [True, False], ids=["posterior", "prior"])
@pytest.mark.parametrize("leaves", ["classes", "regression"])
@pytest.mark.parametrize(
    ("kind", "moves"),
    [
        ("uniform", "informed"),
        ("gap", "informed"),
        ("uniform01", "informed"),
        ("uniform", "prior"),
        ("gap", "prior"),
        ("wu", ""),
    ],
)
def test_exact_trees_of_cgm_and_wu(kind, moves, leaves, likelihood, seed):
    x = X[:8]
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1]) if leaves == "classes" else TARGET[:8]
    toy = SpecialToy(x, y, HardPrior(kind, max_leaves=3), LEAVES[leaves], columns=tuple(COLUMNS))
    configuration = configuration_of(
        toy, **({"moves": moves} if moves else {}), likelihood_power=float(likelihood)
    )
    problem = Problem(as_columns(x), y, toy.n_classes, None, kinds_of(COLUMNS))
    draws, _ = sample(
        problem, configuration, n_chains=4, n_warmup=200, n_draws=10_000, n_jobs=2, seed=seed,
        progress=False,
    )  # fmt: skip
    labels = labels_of_special(
        toy, draws.node_offset, draws.size, draws.feature, draws.threshold, draws.levels
    )
    n = draws.n_draws
    by_chain = [labels[c * n : (c + 1) * n] for c in range(draws.n_chains)]
    distance = total_variation(by_chain, toy.exact(likelihood=likelihood), level=LEVEL)
    print(f"total variation {distance.value:.4f} +- {distance.standard_error:.4f}")
    assert distance.ok, distance


def test_masses_of_the_reference():
    for rows, columns in ((X, COLUMNS), (IMPUTED_X, IMPUTING)):
        rules = rules_of(rows, columns, None)
        assert sum(mass for _, mass in rules) == pytest.approx(1.0)
    assert bits(frozenset({0, 2})) == 5
