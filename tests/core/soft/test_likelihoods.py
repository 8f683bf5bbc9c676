"""Values against the independent reference, gradients against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from hamiltree.core.densities import digamma
from hamiltree.core.soft.data import (
    CLASSES,
    COLLAPSED,
    GRADIENT,
    LABELS,
    MEANS,
    PAIRS_PER_SPLIT,
    PAIRS_PER_SPLIT_KEPT,
    VALUE,
)
from hamiltree.core.soft.target import (
    constrain,
    dimension,
    evaluate,
    log_density_and_gradient,
    unconstrain,
)
from hamiltree.core.tree.nodes import n_leaves
from hamiltree.core.tree.priors import log_prior, log_threshold, log_weights
from hamiltree.core.tree.routing import BLOCK

from ...reference.model import (
    log_likelihood_class,
    log_likelihood_collapsed,
    log_likelihood_labels,
    log_likelihood_reg,
    log_posterior,
)
from ...support.core_trees import (
    PRIOR,
    random_chain,
    random_model,
    random_tree,
    to_reference,
    with_room,
)

FAMILIES = {
    "classes": CLASSES,
    "labels": LABELS,
    "explicit means": MEANS,
    "means integrated out": COLLAPSED,
}


RULES = ("columns", "sticks", "log ratios")
"""HMC-DF, and HMC-DFI with the coordinates of the paper and of the informed sampler."""


def test_digamma():
    x = np.concatenate([np.geomspace(1e-3, 1e6, 400), [1.0, 7.999999, 8.0]])
    np.testing.assert_allclose([digamma(v) for v in x], special.digamma(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n_rows", [7, BLOCK + 11])
@pytest.mark.parametrize("h", [0.0, 1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_value_matches_the_reference(family, oblique, h, n_rows, rng):
    check_value(family, oblique, h, n_rows, rng)


def check_value(family, oblique, h, n_rows, rng):
    for n_splits in (0, 1, 5, 11):
        tree = random_tree(rng, 3, n_splits, oblique)
        model, work, X, y = random_model(
            rng, FAMILIES[family], tree, n_rows=n_rows, n_features=3, h=h
        )
        reference, sigma = to_reference(tree), float(tree.sigma[0])
        if family == "classes":
            expected = log_likelihood_class(reference, X, y, 3, h, PRIOR)
        elif family == "labels":
            p = model.leaves.p[: n_leaves(tree)]
            expected = log_likelihood_labels(reference, X, y, p, h)
        elif family == "explicit means":
            expected = log_likelihood_reg(reference, X, y, sigma, h)
        else:
            expected = log_likelihood_collapsed(reference, X, y, sigma, h, PRIOR)
        # the clamp of the sigmoid at 40 leaves 4e-18 a row where the reference has less
        for what in (VALUE, GRADIENT):
            value = evaluate(model, model.family, tree, work, what)
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        if family == "labels":
            continue  # the rest is of trees without leaf probabilities
        whole = value + log_prior(family == "explicit means", model.prior, model.leaf_prior, tree)
        assert whole == pytest.approx(
            log_posterior(
                reference,
                X,
                y,
                h,
                PRIOR,
                n_classes=3 if family == "classes" else 0,
                sigma=sigma,
                explicit_mu=family == "explicit means",
            ),
            rel=1e-9,
        )


@pytest.mark.parametrize("n_rows", [40, 2 * BLOCK + 5])
@pytest.mark.parametrize("h", [1e-3, 1e-2, 1e-1, 0.0])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_matches_central_differences(family, rules, h, n_rows, rng):
    check_gradient(family, rules, h, n_rows, rng)


@pytest.mark.parametrize("n_rows", [40, 2 * BLOCK + 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_column_has_its_own_softness(family, n_rows, rng):
    """Values by the reference's routing, gradients by differences; for all ways to a gradient."""
    h = np.array([0.02, 0.3, 0.08])
    check_value(family, False, h, n_rows, rng)
    check_gradient(family, "columns", h, n_rows, rng)


def check_gradient(family, rules, h, n_rows, rng):
    """|g - fd| <= 1e-5 (1 + |g|) in every unconstrained coordinate.

    Central differences have a best step that depends on the curvature (h) and on rounding; the
    gradient must agree with one of three.
    """
    for n_splits, power in ((1, 1.0), (4, 0.37), (10, 1.0)):  # 4 leaves at a time, and the rest
        tree = random_tree(rng, 3, n_splits, rules != "columns")
        sizes = {"n_rows": n_rows, "n_features": 3}
        model, work, _, _ = random_model(
            rng, FAMILIES[family], tree, **sizes, h=h, power=power, centred=rules == "log ratios"
        )
        n = dimension(model, tree)
        u, grad, ignored = np.zeros(n), np.zeros(n), np.zeros(n)
        assert unconstrain(model, tree, u) == n
        args = (model, tree, work)
        log_density_and_gradient(u, grad, args)

        def density(j: int, step: float, u=u, args=args, ignored=ignored) -> float:
            moved = u.copy()
            moved[j] += step
            return log_density_and_gradient(moved, ignored, args)

        for j in range(n):
            differences = [(density(j, s) - density(j, -s)) / (2 * s) for s in (1e-4, 1e-5, 1e-6)]
            error = min(abs(grad[j] - d) for d in differences)
            assert error <= 1e-5 * (1 + abs(grad[j])), (j, grad[j], differences)


def check_gradient_with_room(room, model, tree, work):
    """With room to keep so many routed nodes, value and gradient are those that ``work`` gives."""
    less = with_room(work, room)
    n = dimension(model, tree)
    u, expected, gradient = np.zeros(n), np.zeros(n), np.zeros(n)
    unconstrain(model, tree, u)
    value = log_density_and_gradient(u, expected, (model, tree, work))
    assert log_density_and_gradient(u, gradient, (model, tree, less)) == pytest.approx(
        value, rel=1e-12
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_large_data_take_the_other_way_to_the_same_gradient(family, oblique, rng):
    """Rows whose routing does not fit the cache are routed again for the way back."""
    tree = random_tree(rng, 3, 8, oblique)
    model, work, _, _ = random_model(
        rng, FAMILIES[family], tree, n_rows=4 * BLOCK + 5, n_features=3, h=0.05
    )
    room = tree.size.size  # of one block: the least that a run has
    assert tree.n_nodes[0] * len(model.data.block_class) > room
    check_gradient_with_room(room, model, tree, work)


@pytest.mark.parametrize("saturated", [False, True])
@pytest.mark.parametrize("h", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("family", ["classes", "means integrated out"])
def test_gradient_from_sums_is_that_of_a_second_pass(family, h, saturated, rng):
    """A tree of a size for which the room for the routing decides between the two ways."""
    n_leaf = {"classes": 8, "means integrated out": 6}[family]
    code = FAMILIES[family]
    for _ in range(5):
        tree = random_chain(rng, 3, n_leaf - 1)
        pairs = int(tree.depth[: tree.n_nodes[0]][tree.size[: tree.n_nodes[0]] == 1].sum())
        assert PAIRS_PER_SPLIT_KEPT[code] < pairs / (n_leaf - 1) <= PAIRS_PER_SPLIT[code]
        model, work, _, _ = random_model(rng, code, tree, n_rows=2 * BLOCK + 5, n_features=3, h=h)
        if saturated:
            model.data.columns[:] = np.round(model.data.columns)
            tree.threshold[tree.size > 1] = 0.5
        room = int(tree.n_nodes[0])  # for one block; ``work`` has it for all
        assert room < tree.n_nodes[0] * len(model.data.block_class) <= work.n_routed
        check_gradient_with_room(room, model, tree, work)


def test_buffers_start_with_a_cache_line(rng):
    tree = random_tree(rng, 3, 2, oblique=False)
    model, work, _, _ = random_model(rng, COLLAPSED, tree, n_rows=40, n_features=3, h=0.1)
    for array in (model.data.columns, model.data.y, work.rows):
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous


def test_gradient_with_saturated_rows(rng):
    """All rows far from the threshold: psi is 0 or 1 to rounding and nothing may overflow."""
    for family in FAMILIES.values():
        tree = random_tree(rng, 2, 3, oblique=False)
        model, work, _, _ = random_model(rng, family, tree, n_rows=30, n_features=2, h=1e-3)
        model.data.columns[:] = np.where(model.data.columns > 0.5, 1.0, 0.0)
        tree.threshold[tree.size > 1] = 0.5
        n = dimension(model, tree)
        u, grad = np.zeros(n), np.zeros(n)
        unconstrain(model, tree, u)
        value = log_density_and_gradient(u, grad, (model, tree, work))
        assert np.isfinite(value)
        assert np.isfinite(grad).all()
        for far in (-800.0, 800.0):  # thresholds pressed against 0 and 1, sigma out of range
            value = log_density_and_gradient(np.full(n, far), grad, (model, tree, work))
            assert not np.isnan(value)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_constrain_inverts_unconstrain(family, rules, rng):
    tree = random_tree(rng, 4, 6, rules != "columns")
    centred = rules == "log ratios"
    model, _, _, _ = random_model(
        rng, FAMILIES[family], tree, n_rows=9, n_features=4, h=0.1, centred=centred
    )
    u = np.zeros(dimension(model, tree))
    unconstrain(model, tree, u)
    before = [a.copy() for a in (tree.threshold, tree.weights, tree.value, tree.sigma)]
    constrain(model, u, tree)
    after = (tree.threshold, tree.weights, tree.value, tree.sigma)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("rules", RULES)
def test_constrain_has_the_jacobian_of_its_map(rules, rng):
    """Prior density plus log determinant of (threshold, all weights but one) by ``u``."""
    tree = random_tree(rng, 3, 1, rules != "columns")
    centred = rules == "log ratios"
    model, _, _, _ = random_model(
        rng, CLASSES, tree, n_rows=9, n_features=3, h=0.1, centred=centred
    )
    u = rng.normal(size=dimension(model, tree))

    def parameters(v):
        total = constrain(model, v, tree)
        return total, np.append(tree.threshold[0], tree.weights[0, :-1].copy())

    step = 1e-6
    numeric = [
        (parameters(u + e)[1] - parameters(u - e)[1]) / (2 * step) for e in step * np.eye(u.size)
    ]
    total, _ = parameters(u)
    log_density = log_threshold(model.prior, tree.threshold[0])
    if rules != "columns":
        log_density += log_weights(model.prior, tree.weights[0])
    assert total == pytest.approx(log_density + np.linalg.slogdet(numeric)[1], abs=1e-6)
