"""Threads that help a chain with its rows: the same bits however many, and none left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from numba import njit

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.core.backend import row_threads
from hamiltree.core.backend.row_threads import n_parts
from hamiltree.core.scan import parts as scan_parts
from hamiltree.core.soft import parallel_likelihood
from hamiltree.core.soft.data import MEANS, make_data, make_work
from hamiltree.core.soft.target import dimension, log_density_and_gradient, make_model, unconstrain
from hamiltree.core.tree.routing import BLOCK
from hamiltree.samplers import rjhmc, rjhmc_state
from hamiltree.samplers.chain_state import capture, restore
from hamiltree.samplers.common import Problem

from ...support.configuring import configured, parameters
from ...support.core_trees import MAX_LEAVES, random_model, random_tree
from ..soft.test_likelihoods import FAMILIES, RULES, check_gradient, check_value

N_ROWS, MORE_ROWS = 2 * BLOCK + 5, 8 * BLOCK + 5


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Have rows in parts however few they are: here in three."""
    for module in (row_threads, rjhmc, rjhmc_state):
        monkeypatch.setattr(module, "BINNED_ROWS", 0)
    monkeypatch.setattr(row_threads, "PART_ROWS", BLOCK)
    assert n_parts(N_ROWS) == 3


def helping_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("hamiltree-rows")]


# ------------------------------------------------------------------ tasks


@njit(nogil=True)
def run_often(work, task, parts, times):
    """How often the task was done."""
    done = 0
    for _ in range(times):
        done += work.run_parts(task, parts)
    return done


def runner_of(task):
    """A runner, and a call of it from compiled code, which has it in a record."""
    data = make_data(np.zeros((1, 8)), np.zeros(8), 0)
    work = make_work(data, 2, 0, 0, MEANS)
    work.run_parts.tasks[7] = task
    return work.run_parts, lambda parts, times: run_often(work, 7, parts, times)


def test_parts_are_done_side_by_side():
    """Either part is done when the other is under way as well."""
    both, seen = threading.Barrier(2, timeout=60), []

    def wait_for_the_other(first, stop, who):
        both.wait()
        seen.append((first, stop, who, threading.get_ident()))

    runner, run = runner_of(wait_for_the_other)
    with runner.helped(2):
        assert run(2, 1) == 1
    assert sorted(s[:2] for s in seen) == [(0, 1), (1, 2)]
    assert {s[2] for s in seen} == {0, 1}
    assert len({s[3] for s in seen}) == 2


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_part_is_done_once(threads):
    times = np.zeros(100, np.int64)

    def note(first, stop, who):
        assert who < threads
        times[first:stop] += np.arange(first, stop) + 1

    runner, run = runner_of(note)
    with runner.helped(threads):
        assert run(100, 300) == 300
    np.testing.assert_array_equal(times, 300 * np.arange(1, 101))


@pytest.mark.parametrize("part", [0, 99])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_exception_in_a_part_reaches_the_caller(threads, part):
    """Once: the runner goes on as if nothing had been."""
    broken = True

    def fail(first, stop, who):
        if broken and first <= part < stop:
            raise RuntimeError(f"in part {part}")

    runner, run = runner_of(fail)
    with pytest.raises(RuntimeError, match=f"in part {part}"), runner.helped(threads):
        assert run(100, 3) == 0
    assert not helping_threads()
    broken = False
    with runner.helped(threads):
        assert run(100, 3) == 3


def test_threads_end_whatever_happens():
    runner, run = runner_of(lambda first, stop, who: None)

    def fail():
        with runner.helped(3):
            run(100, 10)
            assert 1 <= len(helping_threads()) <= 2
            raise RuntimeError("of the chain")

    with pytest.raises(RuntimeError, match="of the chain"):
        fail()
    assert not helping_threads()


# ------------------------------------------------------------------ the likelihood


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", ["classes", "explicit means"])  # the third takes its time
def test_value_of_parts_matches_the_reference(family, oblique, rng):
    check_value(family, oblique, 0.05, N_ROWS, rng)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_of_parts_matches_central_differences(family, rules, rng):
    check_gradient(family, rules, 0.05, N_ROWS, rng)


def value_and_gradient(model, tree, work, u):
    gradient = np.zeros_like(u)
    return np.append(log_density_and_gradient(u, gradient, (model, tree, work)), gradient)


@pytest.mark.parametrize("oblique", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_parts_give_what_the_plain_likelihood_gives(family, oblique, rng, monkeypatch):
    """To rounding; and the same bits whoever makes their sums."""
    for n_splits in (2, 8):
        tree = random_tree(rng, 3, n_splits, oblique)
        model, _, _, _ = random_model(
            rng, FAMILIES[family], tree, n_rows=MORE_ROWS, n_features=3, h=0.05
        )
        sizes = (MAX_LEAVES, len(model.leaf_prior.class_prior), tree.weights.shape[1], model.family)
        work = make_work(model.data, *sizes, threads=3)
        given = (model.family, model.data, model.prior, model.leaf_prior, model.h, 1.0)
        model = make_model(*given, model.centre, work)
        u = np.zeros(dimension(model, tree))
        unconstrain(model, tree, u)
        alone = value_and_gradient(model, tree, work, u)
        for threads in (2, 3):
            with work.run_parts.helped(threads):
                for _ in range(50):
                    np.testing.assert_array_equal(value_and_gradient(model, tree, work, u), alone)
        with monkeypatch.context() as small:
            small.setattr(row_threads, "BINNED_ROWS", MORE_ROWS)
            work = make_work(model.data, *sizes)
            assert len(work.d_sigma) == 1
            plain = make_model(*given, model.centre, work)
        assert not work.run_parts.tasks
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
        return BayesianTreeClassifier(**parameters(**common)).fit(X, y.astype(int)).posterior_
    y = step + 0.3 * rng.normal(size=N_ROWS)
    return BayesianTreeRegressor(**parameters(leaf_means=target, **common)).fit(X, y).posterior_


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["classes", "collapsed", "explicit"])
@pytest.mark.parametrize("h", [0.05, 0.0], ids=["soft", "hard"])
@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_draws_do_not_depend_on_the_threads_of_a_chain(method, h, target, seed):
    one, *others = (
        fit(np.random.default_rng(seed), n_jobs, method, target, h=h).draws for n_jobs in (1, 2, 3)
    )
    assert one.n_leaves.max() > 1
    for other in others:
        for name in (
            "size",
            "feature",
            "threshold",
            "split_weights",
            "leaf",
            "log_likelihood",
            "sigma",
        ):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.filterwarnings("ignore")
def test_chains_that_fill_the_threads_have_no_helpers(rng, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("nobody is idle")

    monkeypatch.setattr(row_threads, "ThreadPoolExecutor", refuse)
    fit(rng, 2, "hmc-df", "classes", n_chains=2)
    with pytest.raises(AssertionError, match="idle"):
        fit(rng, 2, "hmc-df", "classes")


@pytest.mark.filterwarnings("ignore")
def test_a_chain_that_fails_leaves_no_threads(rng, monkeypatch):
    seen, in_blocks = [], rjhmc.in_blocks

    def fail(*given):
        in_blocks(*given)
        seen.extend(helping_threads())
        raise RuntimeError("in the chain")

    monkeypatch.setattr(rjhmc, "in_blocks", fail)
    with pytest.raises(RuntimeError, match="in the chain"):
        fit(rng, 3, "hmc-df", "classes")
    assert 1 <= len(seen) <= 4  # two of the likelihood and two of the scans, where all were needed
    assert not helping_threads()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize(
    ("module", "task"),
    [
        (parallel_likelihood, "pass_over_parts"),
        (scan_parts, "find_parts"),
        (scan_parts, "place_parts"),
        (scan_parts, "sweep_parts"),
    ],
    ids=["likelihood", "find", "place", "sweep"],
)
def test_an_exception_in_a_part_ends_the_fit(module, task, n_jobs, rng, monkeypatch):
    def fail(*_):
        raise MemoryError("of a part")

    monkeypatch.setattr(module, task, fail)
    with pytest.raises(MemoryError, match="of a part"):
        fit(rng, n_jobs, "hmc-df", "classes")
    assert not helping_threads()


def test_a_chain_goes_on_with_another_number_of_threads(rng):
    columns, labels = rng.random((3, N_ROWS)), rng.integers(0, 2, N_ROWS)
    configuration = configured(max_leaves=16)

    def start(threads):
        sampler = rjhmc.RJHMC.build(Problem(columns, labels, 2), configuration, 4, threads)
        return sampler.start(np.random.default_rng(5))

    whole, first, then = start(2), start(2), start(1)
    (expected,) = whole.advance(8)
    first.advance(3)
    restore(then, capture(first))
    (blocks,) = then.advance(5)
    np.testing.assert_array_equal(blocks.threshold, expected.threshold)
    np.testing.assert_array_equal(blocks.scalars, expected.scalars)


# ------------------------------------------------------------------ fork

FORKS = """
    import os, threading, warnings
    import numpy as np
    from hamiltree import BayesianTreeClassifier

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.random((9_000, 3))
    y = ((X[:, 0] > 0.4) ^ (rng.random(9_000) < 0.2)).astype(int)
    def fit():
        model = BayesianTreeClassifier(
            n_chains=1, n_warmup=10, n_draws=60, n_jobs=3, random_state=1, progress=False
        )
        return model.fit(X, y).posterior_.draws.threshold
    expected, found = fit(), []
    thread = threading.Thread(target=lambda: found.append(fit()))
    thread.start()
    forks = helped = 0
    while thread.is_alive():
        busy = any(t.name.startswith("hamiltree-rows") for t in threading.enumerate())
        child = os.fork()
        if child == 0:
            os._exit(0 if X.sum() > 0.0 else 1)
        assert os.waitpid(child, 0)[1] == 0
        forks += 1
        helped += busy
        thread.join(0.01)
    np.testing.assert_array_equal(found[0], expected)
    print("forks", forks, "helped", helped)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_threads_help_disturbs_nobody():
    """Others fork, too: joblib, multiprocessing. The fit must go on as if nothing had been."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORKS)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, forks, _, helped = done.stdout.split()
    assert int(forks) >= int(helped) >= 5, done.stdout
