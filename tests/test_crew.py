"""Threads that help a chain with its rows: the same bits however many, and none left behind."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.chain_state import capture, restore
from hamiltree.core import bins
from hamiltree.core.buffers import make_work
from hamiltree.core.crew import helpers, look, make_crew, put, shared
from hamiltree.core.jit import kernel
from hamiltree.core.routing import BLOCK
from hamiltree.core.target import (
    dimension,
    log_density_and_gradient,
    make_model,
    unconstrain,
)
from hamiltree.samplers import rjhmc
from hamiltree.settings import Settings

from .core_trees import MAX_LEAVES, random_model, random_tree
from .test_likelihoods import FAMILIES, RULES, check_gradient, check_value

N_ROWS, MORE_ROWS = 2 * BLOCK + 5, 8 * BLOCK + 5


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Have rows in parts however few they are: here in three."""
    monkeypatch.setattr(bins, "BINNED_ROWS", 0)
    monkeypatch.setattr(bins, "PART_ROWS", BLOCK)
    assert bins.n_parts(N_ROWS) == 3


def helping_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("hamiltree-rows")]


# ------------------------------------------------------------------ tasks


@kernel
def wait_for_the_other(here, part, who):
    """Done when the other part is under way as well, or after seconds."""
    put(here, part, 1 + who)
    for _ in range(2_000_000_000):
        if look(here, 0) > 0 and look(here, 1) > 0:
            break


@kernel
def note(seen, part, who):
    seen[part] += 1 + part


_wait, _wait_address = shared(wait_for_the_other)
_note, _note_address = shared(note)


@kernel
def wait_in_two(crew, address, here):
    _wait(crew, 2, address, (here,))


@kernel
def note_in_parts(crew, address, seen):
    _note(crew, seen.shape[0], address, (seen,))


def test_parts_are_done_side_by_side():
    crew, here = make_crew(), np.zeros(2, np.int64)
    with helpers(crew, 1):
        wait_in_two(crew, _wait_address(here, 0, 0), here)
    assert sorted(here) == [1, 2]  # one part each


@pytest.mark.parametrize("n_helpers", [0, 1, 3])
def test_each_part_is_done_once(n_helpers):
    crew, seen = make_crew(), np.zeros(100, np.int64)
    address = _note_address(seen, 0, 0)
    with helpers(crew, n_helpers):
        for _ in range(300):
            note_in_parts(crew, address, seen)
    np.testing.assert_array_equal(seen, 300 * np.arange(1, 101))


def test_threads_end_whatever_happens():
    def fail():
        with helpers(make_crew(), 2):
            assert len(helping_threads()) == 2
            raise RuntimeError("of the chain")

    with pytest.raises(RuntimeError, match="of the chain"):
        fail()
    assert not helping_threads()


# ------------------------------------------------------------------ the likelihood


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", ["classes", "explicit means"])  # the third takes its time
def test_value_of_parcels_matches_the_reference(family, oblique, rng):
    check_value(family, oblique, 0.05, N_ROWS, rng)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_of_parcels_matches_central_differences(family, rules, rng):
    check_gradient(family, rules, 0.05, N_ROWS, rng)


def value_and_gradient(model, tree, work, u):
    gradient = np.zeros_like(u)
    return np.append(log_density_and_gradient(u, gradient, (model, tree, work)), gradient)


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_parcels_give_what_the_plain_likelihood_gives(family, oblique, rng, monkeypatch):
    """To rounding; and the same bits whoever makes their sums."""
    for n_splits in (2, 8):
        tree = random_tree(rng, 3, n_splits, oblique)
        model, _, _, _ = random_model(
            rng, FAMILIES[family], tree, n_rows=MORE_ROWS, n_features=3, h=0.05
        )
        sizes = (MAX_LEAVES, len(model.leaf_prior.class_prior), tree.weights.shape[1], model.family)
        work = make_work(model.data, *sizes, threads=3)
        given = (model.family, model.data, model.prior, model.leaf_prior, model.h, 1.0)
        model = make_model(*given, model.centre, tree, work)
        u = np.zeros(dimension(model, tree))
        unconstrain(model, tree, u)
        alone = value_and_gradient(model, tree, work, u)
        with helpers(work.crew, 2):
            for _ in range(100):
                np.testing.assert_array_equal(value_and_gradient(model, tree, work, u), alone)
        with monkeypatch.context() as small:
            small.setattr(bins, "BINNED_ROWS", MORE_ROWS)
            work = make_work(model.data, *sizes)
            assert work.crew.size == 0
            plain = make_model(*given, model.centre, tree, work)
        expected = value_and_gradient(plain, tree, work, u)
        np.testing.assert_allclose(alone, expected, rtol=1e-10, atol=1e-9)


# ------------------------------------------------------------------ whole chains


def fit(rng, n_jobs, method, target, **more):
    X = rng.random((N_ROWS, 3))
    common = {
        "method": method,
        "n_chains": 1,
        "n_warmup": 8,
        "n_draws": 6,
        "random_state": 1,
        "progress": False,
        "n_jobs": n_jobs,
        "max_leaves": 16,
        **more,
    }
    step = X[:, 0] > 0.4
    if target == "classes":
        y = step ^ (rng.random(N_ROWS) < 0.2)
        return BayesianTreeClassifier(**common).fit(X, y.astype(int)).posterior_
    y = step + 0.3 * rng.normal(size=N_ROWS)
    return BayesianTreeRegressor(leaf_means=target, **common).fit(X, y).posterior_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["classes", "collapsed", "explicit"])
@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_draws_do_not_depend_on_the_threads_of_a_chain(method, target, seed):
    one, *others = (
        fit(np.random.default_rng(seed), n_jobs, method, target).draws for n_jobs in (1, 2, 3)
    )
    assert one.n_leaves.max() > 1
    for other in others:
        for name in ("size", "threshold", "weights", "leaf", "log_likelihood", "sigma"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.filterwarnings("ignore")
def test_chains_that_fill_the_threads_have_no_helpers(rng, monkeypatch):
    def refuse(crew, n):
        raise AssertionError("nobody is idle")

    monkeypatch.setattr(rjhmc, "helpers", refuse)
    fit(rng, 2, "hmc-df", "classes", n_chains=2)
    with pytest.raises(AssertionError, match="idle"):
        fit(rng, 2, "hmc-df", "classes")


@pytest.mark.filterwarnings("ignore")
def test_a_chain_that_fails_leaves_no_threads(rng, monkeypatch):
    seen = []

    def fail(*_):
        seen.extend(helping_threads())
        raise RuntimeError("in the chain")

    monkeypatch.setattr(rjhmc, "in_blocks", fail)
    with pytest.raises(RuntimeError, match="in the chain"):
        fit(rng, 3, "hmc-df", "classes")
    assert len(seen) == 2
    assert not helping_threads()


def test_a_chain_goes_on_with_another_number_of_threads(rng):
    columns, labels = rng.random((3, N_ROWS)), rng.integers(0, 2, N_ROWS)
    settings = Settings(max_leaves=16)

    def start(threads):
        sampler = rjhmc.RJHMC.build(columns, labels, 2, settings, 4, threads)
        return sampler.start(np.random.default_rng(5))

    whole, first, then = start(2), start(2), start(1)
    (expected,) = whole.advance(8)
    first.advance(3)
    restore(then, capture(first))
    (blocks,) = then.advance(5)
    np.testing.assert_array_equal(blocks.threshold, expected.threshold)
    np.testing.assert_array_equal(blocks.scalars, expected.scalars)
