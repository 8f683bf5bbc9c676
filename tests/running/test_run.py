"""The loop around the chains: seeds, threads, batches, interruption, what is recorded."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pytest

import hamiltree.running.chains as chains_module
import hamiltree.running.progress as progress_module
from hamiltree.core.tree.record import make_block
from hamiltree.running.checkpoints import Checkpoints
from hamiltree.running.interrupts import Stop
from hamiltree.running.run import Chains, Goal, Problem, sample
from hamiltree.samplers.rjhmc import RJHMC

from ..reference.model import TOYS, Prior, from_flat, log_posterior
from ..statistical.battery import CONFIGURATIONS
from ..support.configuring import changed, configured

BASE = configured(h=0.1, max_leaves=6, class_prior=Prior().classes, sigma_prior=Prior().sigma)


def problem(name: str = "three-classes") -> Problem:
    toy = TOYS[name]()
    return Problem(np.ascontiguousarray(toy.X.T), toy.y, toy.n_classes)


def same(a, b) -> bool:
    fields = [f.name for f in dataclasses.fields(a)]
    return all(
        np.array_equal(getattr(a, f), getattr(b, f), equal_nan=True)
        for f in fields
        if isinstance(getattr(a, f), np.ndarray)
    )


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
def test_same_seed_same_draws_whatever_the_threads(method, seed):
    chosen = changed(BASE, method=method)
    results = [
        sample(problem(), chosen, n_chains=3, n_warmup=60, n_draws=40, n_jobs=n_jobs, seed=seed)[0]
        for n_jobs in (1, 2, 3)
    ]
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    other, _ = sample(problem(), chosen, n_chains=3, n_warmup=60, n_draws=40, seed=seed + 1)
    assert not same(results[0], other)


def test_chains_differ_and_more_chains_keep_the_first(seed):
    two, _ = sample(problem(), BASE, n_chains=2, n_warmup=50, n_draws=30, seed=seed)
    three, _ = sample(problem(), BASE, n_chains=3, n_warmup=50, n_draws=30, seed=seed)
    assert not np.array_equal(two.log_posterior[0], two.log_posterior[1])
    np.testing.assert_array_equal(two.log_posterior, three.log_posterior[:2])


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("name", ["three-classes", "regression"])
def test_batches_do_not_change_the_draws(name, configuration, seed):
    """One go, single steps across the end of warm-up, and a buffer that fills up: the same bits."""
    data = problem(name)
    chosen = changed(BASE, h_init=0.3, **CONFIGURATIONS[configuration])

    def chain():
        sampler = RJHMC.build(data, chosen, 40)
        return sampler.start(np.random.default_rng(seed))

    def scalars(pieces):
        return np.concatenate([p.scalars for p in pieces])

    whole = scalars(chain().advance(100))
    stepwise = chain()
    pieces = [piece for n in [39, 1, 1, *[3] * 19, 2] for piece in stepwise.advance(n)]
    np.testing.assert_array_equal(whole, scalars(pieces))
    cramped = chain()
    small = make_block(chosen.max_leaves, 0, cramped.block.leaf.shape[1])
    cramped.block = small._replace(leaf=small.leaf[:20].copy())
    np.testing.assert_array_equal(whole, scalars(cramped.advance(100)))


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
@pytest.mark.parametrize("h", [0.1, 0.0])
@pytest.mark.parametrize("leaf_means", ["collapsed", "explicit"])
@pytest.mark.parametrize("name", ["three-classes", "regression"])
def test_recorded_densities_are_those_of_the_recorded_trees(name, leaf_means, h, method, seed):
    """log posterior on the constrained scale, every constant, means integrated out if collapsed."""
    toy = TOYS[name]()
    # of the paper's likelihood: the other one has leaf probabilities, which are not recorded
    chosen = changed(BASE, method=method, h=h, leaf_means=leaf_means, likelihood="paper")
    draws, _ = sample(problem(name), chosen, n_chains=2, n_warmup=50, n_draws=50, seed=seed)
    prior = Prior(alpha_split=chosen.alpha_split, beta_split=chosen.beta_split, max_leaves=6)
    for t in range(0, 100, 7):
        a, b = draws.node_offset[t], draws.node_offset[t + 1]
        split = slice((a - t) // 2, (b - t - 1) // 2)
        tree = from_flat(
            draws.size[a:b].tolist(),
            draws.feature[split].tolist(),
            draws.threshold[split].tolist(),
            draws.split_weights[split],
            draws.leaf[(a + t) // 2 : (b + t + 1) // 2, 0].tolist(),
        )
        expected = log_posterior(
            tree,
            toy.X,
            toy.y,
            h,
            prior,
            n_classes=toy.n_classes,
            sigma=float(draws.sigma.ravel()[t]),
            explicit_mu=leaf_means == "explicit",
        )
        assert draws.log_posterior.ravel()[t] == pytest.approx(expected, rel=1e-9)


def test_statistics_and_tallies(seed):
    chosen = changed(BASE, moves="prior")
    draws, info = sample(
        problem("regression"), chosen, n_chains=2, n_warmup=100, n_draws=80, seed=seed
    )
    assert set(info.stats) == {"divergent", "nuts_depth", "step_size", "accept_stat", "n_gradients"}
    for value in info.stats.values():
        assert value.shape == (2, 80)
    assert (info.stats["step_size"] > 0).all()
    for phase, iterations in (("warmup", 100), ("sampling", 80)):
        tally = info.acceptance[phase]
        jumps = sum(tally[m][1] for m in ("grow", "prune", "stay"))
        np.testing.assert_array_equal(jumps, [iterations, iterations])
        for accepted, proposed in tally.values():
            assert (accepted <= proposed).all()
    assert (draws.n_leaves >= 1).all()
    # frozen after warm-up: one step for each number of splits
    for chain in range(2):
        pairs = {
            (n, s)
            for n, s in zip(draws.n_leaves[chain], info.stats["step_size"][chain], strict=True)
        }
        assert len(pairs) <= 2 * len(set(draws.n_leaves[chain]))


@pytest.fixture
def ctrl_c_soon(monkeypatch):
    """Ctrl-C a second after a run begins to listen for it, however long setting it up takes."""
    monkeypatch.setattr(chains_module, "BATCH_SECONDS", 0.02)
    listen = Stop.__enter__

    def listen_and_wait(stop):
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        return listen(stop)

    monkeypatch.setattr(Stop, "__enter__", listen_and_wait)


def test_interrupt_keeps_the_draws(seed, ctrl_c_soon, monkeypatch):
    started = time.perf_counter()
    draws, info = sample(
        problem(), BASE, n_chains=2, n_warmup=50, n_draws=2_000_000, n_jobs=2, seed=seed
    )
    assert time.perf_counter() - started < 20
    assert info.stopped == "interrupted"
    assert 0 < draws.n_draws < 2_000_000
    monkeypatch.undo()
    again, _ = sample(
        problem(), BASE, n_chains=2, n_warmup=50, n_draws=min(draws.n_draws, 200), seed=seed
    )
    n = again.n_draws
    np.testing.assert_array_equal(draws.log_posterior[:, :n], again.log_posterior)


@pytest.mark.usefixtures("ctrl_c_soon")
def test_interrupt_in_warm_up_says_that_nothing_is_kept(seed):
    with pytest.raises(KeyboardInterrupt, match="warm-up"):
        sample(problem(), BASE, n_chains=2, n_warmup=2_000_000, n_draws=10, seed=seed)


# ---------------------------------------------------------------------- run, judge, go on


def judged_run(enough, seed, *, max_draws=400, n_draws=30, n_jobs=2, method="hmc-df"):
    """A run towards a goal, and the numbers of draws at which it was judged."""
    looks = []

    def look(draws, info):
        looks.append(draws.n_draws)
        return enough(draws, info)

    chosen = changed(BASE, method=method)
    draws, info = sample(
        problem(), chosen, n_chains=2, n_warmup=40, n_draws=n_draws,
        goal=Goal(look, max_draws), n_jobs=n_jobs, seed=seed,
    )  # fmt: skip
    return draws, info, looks


@pytest.mark.parametrize("method", ["hmc-df", "cgm"])
def test_a_run_that_stops_early_has_the_first_draws_of_a_longer_one(method, seed):
    chosen = changed(BASE, method=method)
    whole, _ = sample(problem(), chosen, n_chains=2, n_warmup=40, n_draws=200, seed=seed)
    for n_jobs, stop_at in ((1, 30), (2, 60), (2, 150)):
        draws, info, _ = judged_run(
            lambda draws, info, n=stop_at: draws.n_draws >= n, seed, n_jobs=n_jobs, method=method
        )
        n = draws.n_draws
        assert info.stopped == "target"
        assert stop_at <= n < 1.5 * stop_at + 1
        np.testing.assert_array_equal(draws.log_posterior, whole.log_posterior[:, :n])
        np.testing.assert_array_equal(draws.n_leaves, whole.n_leaves[:, :n])
        for chain in range(2):  # and the trees themselves
            mine, theirs = chain * n, chain * whole.n_draws
            nodes = draws.node_offset[mine + n] - draws.node_offset[mine]
            np.testing.assert_array_equal(
                draws.size[draws.node_offset[mine] :][:nodes],
                whole.size[whole.node_offset[theirs] :][:nodes],
            )


def test_steps_grow_with_the_run_and_end_at_the_limit(seed):
    draws, info, looks = judged_run(lambda draws, info: False, seed, max_draws=400)
    assert looks == [30, 45, 68, 102, 153, 230, 345, 400]
    assert (info.stopped, draws.n_draws) == ("max_draws", 400)
    assert all(stat.shape == (2, 400) for stat in info.stats.values())
    draws, info, looks = judged_run(lambda draws, info: True, seed)
    assert (info.stopped, looks) == ("target", [30])
    plain, info = sample(problem(), BASE, n_chains=2, n_warmup=40, n_draws=30, seed=seed)
    assert info.stopped == "n_draws"
    assert same(plain, draws)


def test_an_interrupt_while_judging_keeps_the_draws(seed):
    def impatient(draws, info):
        if draws.n_draws > 60:
            raise KeyboardInterrupt
        return False

    draws, info, looks = judged_run(impatient, seed)
    assert (info.stopped, draws.n_draws) == ("interrupted", looks[-1])
    assert looks[-1] == 68


def test_forgotten_draws_are_warm_up_that_was_longer(seed):
    lengths = {"n_chains": 2, "n_warmup": 40, "seed": seed}
    whole, _ = sample(problem(), BASE, **lengths, n_draws=50)
    chains = Chains(problem(), BASE, **lengths, n_jobs=1)
    chains.advance(60)
    assert (chains.done, chains.n_draws) == (60, 20)
    chains.forget()
    assert chains.n_draws == 0
    chains.advance_to(50)
    draws, info = chains.collect("n_draws")
    assert info.stats["step_size"].shape == (2, 30)
    np.testing.assert_array_equal(draws.log_posterior, whole.log_posterior[:, 20:])


def test_the_bar_counts_up_to_a_total_that_moves(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, to rich
    with progress_module.progress_bar(True, unit="iterations") as report:
        report(100, 200)
        report(100, 1300)
        time.sleep(0.3)  # it is drawn ten times per second
    assert "200 of 1,300 iterations" in capsys.readouterr().err


def test_zero_warm_up_runs(seed):
    draws, _ = sample(problem(), BASE, n_chains=1, n_warmup=0, n_draws=20, seed=seed)
    assert draws.n_draws == 20


def test_paper_preset_is_algorithm_one():
    method = configured(preset="paper").method
    assert method.scheme == "double-sided"
    assert method.adapt == "transition"
    assert method.move_probs == (0.2, 0.2, 0.6)
    assert method.warmup_move_probs == (0.5, 0.25, 0.25)
    assert method.warmup_acceptance == "biased"
    assert method.acceptance == "exact"
    assert (method.min_leaves, method.adapt_steps, method.inner_steps) == (2, 500, 1)
    assert configured(preset="paper").h == 0.025
    assert configured(preset="paper", min_leaves=1, h=0.3).h == 0.3  # the user wins


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi"])
@pytest.mark.parametrize("name", ["three-classes", "regression"])
def test_paper_preset_runs(name, method, seed):
    """Per-transition adaptation, the h schedule, at least one split, stays always accepted."""
    chosen = configured(method, "paper", adapt_steps=60, h=0.05, h_init=0.2, max_leaves=8)
    draws, info = sample(
        problem(name), chosen, n_chains=2, n_warmup=15, n_draws=40, n_jobs=2, seed=seed
    )
    assert draws.n_leaves.min() >= 2
    accepted, proposed = info.acceptance["sampling"]["stay"]
    np.testing.assert_array_equal(accepted, proposed)
    assert (draws.h == 0.05).all()
    assert np.isfinite(draws.log_posterior).all()


def test_paper_preset_is_near_the_posterior(seed):
    """Adaptation inside transitions is not exact, but must not be far: leaves within 0.15."""
    from ..reference.exact import exact_toy

    toy = TOYS["two-classes"]()
    chosen = configured(
        preset="paper",
        adapt_steps=40,
        h=0.1,
        min_leaves=1,
        max_leaves=4,
        alpha_split=toy.prior.alpha_split,
        beta_split=toy.prior.beta_split,
        class_prior=toy.prior.classes,
    )
    draws, _ = sample(
        problem("two-classes"), chosen, n_chains=4, n_warmup=20, n_draws=1500, n_jobs=2, seed=seed
    )
    exact = exact_toy("two-classes", "hmc-df", 0.1).means["n_leaves"]
    assert draws.n_leaves.mean() == pytest.approx(exact, abs=0.15)


def test_biased_acceptance_can_be_kept(seed):
    """The option of the paper's discussion: stay moves are then no longer always accepted."""
    chosen = configured(preset="paper", adapt_steps=25, acceptance="biased", h=0.1)
    _, info = sample(problem(), chosen, n_chains=2, n_warmup=10, n_draws=150, seed=seed)
    accepted, proposed = info.acceptance["sampling"]["stay"]
    assert accepted.sum() < proposed.sum()


def test_compilation_is_announced_where_there_is_some(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "compile_units", lambda units: 1.5)
    monkeypatch.setattr(progress_module, "missing", lambda kernels: list(kernels))
    assert progress_module.compiled(["one", "two"]) == 1.5
    assert "compiling 2 kernels" in capsys.readouterr().err
    assert progress_module.compiled(["one"], show=False) == 1.5
    assert progress_module.compiled([]) == 0.0
    assert capsys.readouterr().err == ""


def test_a_slow_chain_does_not_keep_the_others_waiting():
    """One of two threads is busy with a batch of chain 0 until the others have done theirs."""
    others_done = threading.Event()
    chains = Chains(problem(), BASE, n_chains=3, n_warmup=40, n_jobs=2)
    chains.batch = 1
    waited = []

    def slow(advance):
        def advance_slowly(n):
            if not waited:
                waited.append(others_done.wait(timeout=20))
            return advance(n)

        return advance_slowly

    def noted(advance):
        def advance_and_note(n):
            pieces = advance(n)
            if all(chain.iteration == 40 for chain in chains.chains[1:]):
                others_done.set()
            return pieces

        return advance_and_note

    for k, chain in enumerate(chains.chains):
        chain.advance = (noted if k else slow)(chain.advance)
    chains.advance(40)
    assert waited == [True]
    assert [chain.iteration for chain in chains.chains] == [40, 40, 40]


def test_chains_meet_when_asked_to():
    class Soon(Checkpoints):
        def is_time(self):
            return chains.chains[1].iteration > 0

    lengths = {"n_chains": 3, "n_warmup": 10, "n_jobs": 2}
    chains = Chains(problem(), BASE, **lengths, checkpoints=Soon())
    chains.batch = 5
    chains.advance(10_000)
    ends = {chain.iteration for chain in chains.chains}
    assert len(ends) == 1
    assert 0 < ends.pop() < 10_000


def test_a_chain_that_fails_ends_the_round():
    def fail(n):
        raise RuntimeError("out of order")

    chains = Chains(problem(), BASE, n_chains=2, n_warmup=10, n_jobs=1)
    chains.chains[0].advance = fail
    with pytest.raises(RuntimeError, match="out of order"):
        chains.advance(10)
    assert chains.chains[1].iteration == 0
