"""Formulas that are looked up, or counted in bits and bins, against those of ``densities``; these
against SciPy, and marginal likelihoods against numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from hamiltree.core import densities
from hamiltree.core.densities import (
    dirichlet_constant,
    half_spread,
    log_dirichlet_multinomial,
    log_known_noise_leaf,
    log_normal_leaf,
)
from hamiltree.core.hard.leaves import combine, leaf_log_marginal, leaf_parts, make_leaf_model
from hamiltree.core.scan.by_bins import log_gamma, score_constant, score_moved
from hamiltree.core.scan.by_bits import score_values
from hamiltree.core.scan.data import (
    CLASS_COUNTS,
    FIFTHS,
    KNOWN_VARIANCE,
    OWN_VARIANCE,
    ROWS,
    UNIT,
    Scan,
    ScanModel,
    make_scan,
    make_scan_data,
)
from hamiltree.core.scan.scores import all_right, fill_first_tables, fill_known_tables, leaf_score
from hamiltree.core.tree.priors import make_tree_prior

ALPHA = np.array([0.7, 1.0, 2.5])
SHAPE, RATE, PRIOR_ROWS, MEAN_VARIANCE = 1.5, 0.8, 0.4, 1.44
MAX_LEAVES = 4
N_ROWS = 40
LEAVES = {"classes": CLASS_COUNTS, "known noise": KNOWN_VARIANCE, "own variance": OWN_VARIANCE}


# ------------------------------------------------------------------ densities


def test_densities_are_those_of_scipy(rng):
    for _ in range(50):
        x, (a, b) = rng.uniform(0.01, 0.99), rng.uniform(0.2, 5, size=2)
        pairs = [
            (densities.log_normal(x, a, b), stats.norm(a, b).logpdf(x)),
            (densities.log_inverse_gamma(x, a, b), stats.invgamma(a, scale=b).logpdf(x)),
            (densities.log_beta(x, a, b), stats.beta(a, b).logpdf(x)),
            (densities.log_add(a, b), np.logaddexp(a, b)),
            (densities.log_gamma_ratio(a, b), special.gammaln(a + b) - special.gammaln(b)),
        ]
        for p in (2, 5):
            weights = rng.dirichlet(np.ones(p))
            for concentration in (a, 1.0):
                value = densities.log_symmetric_dirichlet(weights, concentration)
                pairs.append((value, stats.dirichlet([concentration] * p).logpdf(weights)))
        for ours, theirs in pairs:
            assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-11)
    assert densities.log_beta(0.3, 1.0, 1.0) == 0.0
    assert densities.log_add(-np.inf, -np.inf) == -np.inf


def test_class_counts_are_dirichlet_multinomial(rng):
    """Of the labels in their order: SciPy's is of counts, in any order."""
    for counts in rng.integers(0, 9, size=(20, 3)):
        ours = log_dirichlet_multinomial(
            counts.astype(float), ALPHA, ALPHA.sum(), dirichlet_constant(ALPHA)
        )
        orders = special.gammaln(counts.sum() + 1) - special.gammaln(counts + 1).sum()
        theirs = stats.dirichlet_multinomial(ALPHA, counts.sum()).logpmf(counts) - orders
        assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-11)


def normal_leaf(y: np.ndarray, mean: float) -> float:
    constant = 0.5 * math.log(PRIOR_ROWS) + SHAPE * math.log(RATE) - math.lgamma(SHAPE)
    spread = half_spread(float(len(y)), y.sum(), (y**2).sum(), mean, PRIOR_ROWS)
    return log_normal_leaf(float(len(y)), spread, SHAPE, RATE, PRIOR_ROWS, constant)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_normal_leaves_are_multivariate_t(n, rng):
    """Mean and variance integrated out."""
    mean, y = 0.3, rng.normal(size=n)
    expected = 0.0
    if n:
        scale = RATE / SHAPE * (np.eye(n) + 1.0 / PRIOR_ROWS)
        expected = stats.multivariate_t(np.full(n, mean), scale, df=2 * SHAPE).logpdf(y)
    assert normal_leaf(y, mean) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_known_noise_is_multivariate_normal(rng):
    sigma = 0.6
    for n in (0, 1, 5):
        y = rng.normal(size=n)
        ours = log_known_noise_leaf(float(n), y.sum(), MEAN_VARIANCE, sigma)
        expected = 0.0
        if n:
            noise = sigma**2 * np.eye(n)
            expected = stats.multivariate_normal(cov=noise + MEAN_VARIANCE).logpdf(y)
            expected -= stats.multivariate_normal(cov=noise).logpdf(y)
        assert ours == pytest.approx(expected, rel=1e-10, abs=1e-12)


# ------------------------------------------------------------------ hard leaves


@pytest.mark.parametrize("n", [0, 1, 6])
def test_hard_leaves_are_these_formulas(n, rng):
    y, (mean, count) = rng.normal(3.0, size=20), (0.3, PRIOR_ROWS)
    variance = {"variance_prior": (SHAPE, RATE), "mean_prior": (mean, count), "class_prior": 1.0}
    model, centred, _ = make_leaf_model(y, 0, **variance)
    some = centred[:n]
    stats_of = np.array([n, some.sum(), (some**2).sum()], float)
    assert leaf_log_marginal(model, stats_of) == pytest.approx(normal_leaf(y[:n], mean), abs=1e-9)
    codes = rng.integers(0, 3, 20)
    classes, _, _ = make_leaf_model(codes, 3, **{**variance, "class_prior": ALPHA})
    counts = np.bincount(codes[:n], minlength=3).astype(float)
    expected = log_dirichlet_multinomial(counts, ALPHA, ALPHA.sum(), dirichlet_constant(ALPHA))
    assert leaf_log_marginal(classes, counts) == expected
    assert leaf_parts(classes, counts) == (expected, 0.0)
    assert combine(classes, expected, 0.0, n) == expected


def test_a_common_variance_is_integrated_over_all_leaves(rng):
    """One leaf has what it has with a variance of its own; two are an integral over that."""
    y = rng.normal(size=7)
    priors = {"variance_prior": (SHAPE, RATE), "mean_prior": (0.3, PRIOR_ROWS), "class_prior": 1.0}
    model, centred, _ = make_leaf_model(y, 0, common=True, **priors)

    def log_marginal(*leaves):
        parts = [
            leaf_parts(model, np.array([len(leaf), leaf.sum(), (leaf**2).sum()], float))
            for leaf in leaves
        ]
        part, spread = np.sum(parts, axis=0)
        return combine(model, part, spread, sum(map(len, leaves)))

    assert log_marginal(centred) == pytest.approx(normal_leaf(y, 0.3), abs=1e-9)

    def density(log_variance):
        v = math.exp(log_variance)
        total = stats.invgamma(SHAPE, scale=RATE).logpdf(v) + log_variance
        for leaf in (y[:3], y[3:]):
            covariance = v * (np.eye(len(leaf)) + 1.0 / PRIOR_ROWS)
            total += stats.multivariate_normal(np.full(len(leaf), 0.3), covariance).logpdf(leaf)
        return math.exp(total)

    integral, _ = integrate.quad(density, -8.0, 8.0, epsabs=0.0, epsrel=1e-10)
    assert log_marginal(centred[:3], centred[3:]) == pytest.approx(math.log(integral), abs=1e-7)


# ------------------------------------------------------------------ scans


def make_model(leaf: int, p: int = 2) -> ScanModel:
    prior = make_tree_prior(
        p,
        alpha_split=0.95,
        beta_split=1.0,
        min_leaves=1,
        max_leaves=MAX_LEAVES,
        tau_prior=(1.0, 1.0),
        feature_prior=None,
        weight_prior=1.0,
    )
    alpha = ALPHA if leaf == CLASS_COUNTS else np.zeros(0)
    return ScanModel(
        prior=prior,
        kind=UNIT,
        leaf=leaf,
        class_prior=alpha.copy(),
        class_mass=float(alpha.sum()),
        mean_variance=MEAN_VARIANCE,
        prior_rows=PRIOR_ROWS,
        shape=SHAPE,
        rate=RATE,
        h=np.full(p, 0.05),  # soft enough for fifths
        power=np.ones(1),
    )


def scan_of(leaf: int, rng, *, binned: bool = False) -> tuple[Scan, np.ndarray, np.ndarray]:
    """Two columns of ten values each; the label and y of each row."""
    columns = np.ascontiguousarray(rng.integers(0, 10, size=(2, N_ROWS)) / 9)
    label = np.sort(rng.integers(0, 3, N_ROWS)) if leaf == CLASS_COUNTS else np.zeros(N_ROWS, int)
    y = np.zeros(0) if leaf == CLASS_COUNTS else rng.normal(size=N_ROWS)
    data = make_scan_data(columns, np.arange(N_ROWS), label, y, binned=binned)
    scan = fill_first_tables(make_scan(data, make_model(leaf), MAX_LEAVES, 0))
    if leaf == KNOWN_VARIANCE:
        fill_known_tables(scan, 0.6)
    return scan, label, y


def expected_score(leaf: int, label: np.ndarray, y: np.ndarray) -> float:
    """Of some rows in one leaf, over that of none; for own variances over that of independent y."""
    if leaf == CLASS_COUNTS:
        counts = np.bincount(label, minlength=3).astype(float)
        mass, constant = ALPHA.sum(), dirichlet_constant(ALPHA)
        return log_dirichlet_multinomial(counts, ALPHA, mass, constant)
    if leaf == KNOWN_VARIANCE:
        return log_known_noise_leaf(float(len(y)), y.sum(), MEAN_VARIANCE, 0.6)
    return normal_leaf(y, 0.0) + 0.5 * len(y) * densities.LOG_2PI


@pytest.mark.parametrize("units", [ROWS, FIFTHS])
@pytest.mark.parametrize("leaf", LEAVES)
def test_scores_by_tables(leaf, units, rng):
    """All rows of two leaves on the right; what is beyond the tables is computed, to the same."""
    code = LEAVES[leaf]
    scan, label, y = scan_of(code, rng)
    where = rng.integers(0, 2, N_ROWS)
    for k in range(2):
        rows = where == k
        scan.sides.total[1, k] = rows.sum()
        if code == CLASS_COUNTS:
            scan.sides.members[1, k] = np.bincount(label[rows], minlength=3)
        else:
            scan.sides.sums[1, k] = y[rows].sum(), (y[rows] ** 2).sum()
    scan.sides.n_side[:] = 1, 1
    whole = scan.tables.by_rows if units == ROWS else scan.tables.by_fifths
    expected = sum(
        expected_score(code, label[where == k], y[where == k] if len(y) else y) for k in range(2)
    )
    for table in (whole, whole[:, :4].copy(), whole[:, :1].copy()):
        assert all_right(scan, table, units) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("units", [ROWS, FIFTHS])
@pytest.mark.parametrize("leaf", ["known noise", "own variance"])
def test_scores_of_single_leaves(leaf, units, rng):
    code = LEAVES[leaf]
    scan, label, y = scan_of(code, rng)
    table = scan.tables.by_rows if units == ROWS else scan.tables.by_fifths
    for n in (0, 1, 5, N_ROWS):
        scan.sides.total[0, 0] = n * units
        scan.sides.sums[0, 0] = y[:n].sum(), (y[:n] ** 2).sum()
        value = leaf_score(scan.model, scan.sides.total, scan.sides.sums, 0.6, table, 0, units)
        assert value == pytest.approx(expected_score(code, label[:n], y[:n]), rel=1e-11, abs=1e-12)


def test_scores_by_bits(rng):
    """Every cut of every column of a leaf that is split into two."""
    scan, label, y = scan_of(CLASS_COUNTS, rng)
    bits, data = scan.bits, scan.data
    scan.sides.n_side[:] = 1, 1
    scan.sides.members[1, 0] = 0
    scan.sides.members[1, 1] = np.bincount(label, minlength=3)
    bits.n_keys[0] = 3
    cuts = [(f, level) for f in range(2) for level in range(data.n_levels[f])]
    for m in range(3):
        bits.place[m] = 0, 1, m
        for v, (f, level) in enumerate(cuts):
            bits.up_to[m, v] = ((data.level[f] <= level) & (label == m)).sum()
    score_values(scan)
    for v, (f, level) in enumerate(cuts):
        left = data.level[f] <= level
        expected = expected_score(CLASS_COUNTS, label[left], y)
        expected += expected_score(CLASS_COUNTS, label[~left], y)
        assert bits.score[v] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("leaf", ["classes", "known noise"])
def test_scores_by_bins(leaf, rng):
    """Two leaves, some rows moved from the right one to the left: before the first of the bins."""
    code = LEAVES[leaf]
    scan, label, y = scan_of(code, rng, binned=True)
    sides, left = scan.sides, rng.random(N_ROWS) < 0.4
    sides.n_side[:] = 1, 1
    sides.total[1, 1] = N_ROWS
    if code == CLASS_COUNTS:
        sides.members[1, 1] = np.bincount(label, minlength=3)
        before = np.bincount(label[left], minlength=3)
    else:
        sides.sums[1, 1] = y.sum(), (y**2).sum()
        before = np.array([left.sum(), y[left].sum()])
    scan.bins.moved[: 2 * len(before)] = np.tile(before, 2)
    value = score_moved(scan, score_constant(scan))
    expected = sum(
        expected_score(code, label[rows], y[rows] if len(y) else y) for rows in (left, ~left)
    )
    assert value == pytest.approx(expected, rel=1e-10)


def test_log_gamma_of_bins():
    x = np.concatenate([np.geomspace(1e-3, 1e6, 400), [1.0, 2.0, 7.5, 8.0]])
    np.testing.assert_allclose(
        [log_gamma(v) for v in x], special.gammaln(x), rtol=1e-11, atol=1e-11
    )
