"""What SMC hands over, whatever the threads, batches and memory; its parts; and the estimators."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy import stats

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.core.smc.node_pool import NOWHERE, add_root, children_of, finish_node, make_pool
from hamiltree.core.smc.particles import draw_offspring, drop_unused, make_particles
from hamiltree.core.smc.proposals import propose_rule
from hamiltree.core.tree.kinds import NO_LEVELS
from hamiltree.methods import SMC
from hamiltree.plots import plot_leaves, plot_trace
from hamiltree.posterior import Posterior
from hamiltree.running import chains
from hamiltree.running.run import Problem, sample
from hamiltree.samplers import smc

from ..reference.enumerate_smc import TINY, TinyProblem, grid_problem
from ..reference.special import psi_of
from ..statistical.smc_battery import PROPOSALS, RESAMPLINGS, Z_LIMIT, configuration_of, run_islands
from ..support.configuring import configured
from ..support.special import COLUMNS, as_columns, kinds_of, random_rows, set_of


def walk(draws, problem: TinyProblem, t: int):
    """Log prior density, log-likelihood and depth of tree t, and its leaves' rows in preorder."""
    size = draws.size[draws.node_offset[t] : draws.node_offset[t + 1]]
    split, node, leaves = int((draws.node_offset[t] - t) // 2), 0, []

    def descend(rows: frozenset[int], depth: int) -> tuple[float, int]:
        nonlocal split, node
        mine, node = node, node + 1
        splits = problem.splits(rows)
        p = problem.split_probability(depth)
        if size[mine] == 1:
            leaves.append(rows)
            return (math.log1p(-p) if splits else 0.0), depth
        levels = 0 if draws.levels is None else int(draws.levels[split])
        prior, left = problem.at(rows, int(draws.feature[split]), draws.threshold[split], levels)
        split += 1
        below = [descend(part, depth + 1) for part in (left, rows - left)]
        assert size[mine] == node - mine
        return math.log(p * prior) + below[0][0] + below[1][0], max(below[0][1], below[1][1])

    log_prior, depth = descend(frozenset(range(len(problem.y))), 0)
    return log_prior, sum(math.log(problem.leaf(rows)) for rows in leaves), depth, leaves


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("name", TINY)
def test_densities_and_leaves_belong_to_the_trees(name, proposal, seed):
    problem = TINY[name]
    draws, _ = run_islands(problem, seed, 2, 50, split_proposal=proposal, ess_threshold=0.8)
    for t in range(100):
        log_prior, log_like, depth, leaves = walk(draws, problem, t)
        assert draws.n_leaves.flat[t] == len(leaves)
        assert draws.depth.flat[t] == depth
        assert draws.log_likelihood.flat[t] == pytest.approx(log_like, abs=1e-9)
        assert draws.log_posterior.flat[t] == pytest.approx(log_prior + log_like, abs=1e-9)
        first = (draws.node_offset[t] + t) // 2
        mine = draws.leaf[first : first + len(leaves)]
        if problem.n_classes:
            counts = [
                np.bincount(problem.y[list(rows)], minlength=problem.n_classes) for rows in leaves
            ]
            np.testing.assert_array_equal(mine, counts)
        else:
            square = np.average(mine[:, 1] ** 2, weights=[problem.n_rows(rows) for rows in leaves])
            assert draws.sigma.flat[t] == pytest.approx(math.sqrt(square), rel=1e-12)


@pytest.mark.parametrize("power", [1.0, 0.0])
def test_values_of_a_regression_leaf_are_drawn_from_their_posterior(power, seed):
    problem = replace(TINY["regression"], min_size=7, power=power)
    draws, _ = run_islands(problem, seed, 1, 5000)
    (shape, rate), (mean, count) = problem.variance_prior, problem.mean_prior
    for value in problem.y if power else ():
        rate += 0.5 * count / (count + 1) * (value - mean) ** 2
        mean, count, shape = (count * mean + value) / (count + 1), count + 1, shape + 0.5
    mu, sd = draws.leaf.T
    assert stats.kstest(1 / sd**2, stats.gamma(shape, scale=1 / rate).cdf).pvalue > 1e-4
    assert stats.kstest((mu - mean) / sd * math.sqrt(count), "norm").pvalue > 1e-4


def larger_problem(rng) -> Problem:
    columns = rng.random((3, 200))
    columns[2] = columns[2].round(1)
    y = np.int64(columns[0] + 0.5 * columns[1] + 0.2 * rng.standard_normal(200) > 0.7)
    return Problem(columns, y, 2)


def assert_same(one, other) -> None:
    for name in ("size", "feature", "threshold", "leaf", "weights_of_draws", "log_posterior"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_threads_blocks_and_memory_do_not_change_the_particles(proposal, monkeypatch, rng):
    problem = larger_problem(rng)
    configuration = configured(
        method="smc", split_proposal=proposal, beta_split=0.5, ess_threshold=0.5
    )
    lengths = {"n_chains": 3, "n_warmup": 0, "n_draws": 60, "progress": False, "seed": 7}
    plain, _ = sample(problem, configuration, **lengths, n_jobs=1)
    threads, _ = sample(problem, configuration, **lengths, n_jobs=3)
    assert_same(plain, threads)
    monkeypatch.setattr(chains, "BATCH_SECONDS", 1e-6)
    monkeypatch.setattr(smc, "FIRST_NODES", 3)
    monkeypatch.setattr(smc, "FIRST_ROWS", 2)
    monkeypatch.setattr(smc, "FIRST_WIDTH", 1)
    cramped, _ = sample(problem, configuration, **lengths, n_jobs=2)
    assert_same(plain, cramped)


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_nodes_can_be_dropped_after_any_decision(proposal, seed, rng):
    problem = grid_problem(rng, 2)
    sampler = smc.SMC.build(
        Problem(np.ascontiguousarray(problem.X.T), problem.y, 2),
        configuration_of(problem, split_proposal=proposal, ess_threshold=0.5), 200,
    )  # fmt: skip
    plain, tidy = (sampler.start(np.random.default_rng(seed)) for _ in range(2))
    while not plain.finished:
        kept = plain.advance(1000)
    while not tidy.finished:
        same = tidy.advance(1)
        drop_unused(tidy.island)
    for name in ("size", "feature", "threshold", "leaf", "scalars"):
        np.testing.assert_array_equal(getattr(kept[0], name), getattr(same[0], name))


def test_shared_children_are_the_right_ones(rng):
    columns = rng.random((60, 100))
    configuration = configured(method="smc", min_size=1)
    chain = smc.SMC.build(Problem(columns, np.zeros(100, np.int64), 1), configuration, 1).start(rng)
    table = chain.plan.table
    pool = make_pool(table, 1 + 2 * 60 * 99, 100 * (1 + 60 * 99), optimal=False)
    pool = pool._replace(slot=np.full(8192, NOWHERE))  # so full that most pairs are misplaced
    add_root(table, pool)
    cuts = [(f, cut) for f in range(60) for cut in range(99)]

    def left_of(f, cut):
        return children_of(table, pool, 0, f, cut, 0.0, NO_LEVELS, None)

    lefts = [left_of(f, cut) for f, cut in cuts]
    assert len(set(lefts)) == len(cuts)
    assert [left_of(f, cut) for f, cut in cuts] == lefts
    for (f, cut), left in zip(cuts, lefts, strict=True):
        for child, inside in ((left, table.rank[f] <= cut), (left + 1, table.rank[f] > cut)):
            begin = pool.start[child]
            rows = pool.rows[begin : begin + pool.n_rows[child]]
            np.testing.assert_array_equal(rows, np.flatnonzero(inside))


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_children_are_shared_where_rules_part_the_rows_alike(proposal, rng):
    """Whatever a rule says of levels that no row has, and of missing cells where there are none."""
    X = random_rows(rng, 60)
    X[X[:, 3] == 4, 3] = 2  # the last level is that of no row
    X[30:, 1] = np.where(np.isnan(X[30:, 1]), 0.5, X[30:, 1])
    configuration = configured(method="smc", split_proposal=proposal)
    problem = Problem(as_columns(X), np.arange(60) % 2, 2, None, kinds_of())
    sampler = smc.SMC.build(problem, configuration, 1)
    table, special = sampler.plan.table, sampler.special
    chain, pool = sampler.start(rng), make_pool(table, 4096, 60 * 4096, proposal == "posterior")
    add_root(table, pool)
    half = children_of(table, pool, 0, 0, -1, 0.0, NO_LEVELS, None)  # all go right
    pool.rows[pool.start[half + 1] :][:30] = np.arange(30, 60)
    pool.n_rows[half + 1] = 30
    finish_node(table, pool, half + 1, 0, 0)
    assert np.isnan(X[:30, 1]).any()
    parts: dict[int, set] = {}
    for k in range(3000):
        node = (0, half + 1)[k % 2]
        rows = np.arange(60)[30 * (node > 0) :]
        f, threshold, levels, cut, _ = propose_rule(
            table, pool, node, sampler.plan.proposal, chain.island.scratch, special, rng
        )
        right = np.uint64(levels)
        left = children_of(table, pool, node, f, cut, threshold, right, special)
        goes = psi_of((f, threshold, set_of(levels)), X[rows], COLUMNS, 0.0)
        for child, inside in ((left, rows[goes == 0]), (left + 1, rows[goes == 1])):
            begin = pool.start[child]
            found = pool.rows[begin : begin + pool.n_rows[child]]
            np.testing.assert_array_equal(found, inside)
        parts.setdefault(left, set()).add((node, f, tuple(rows[goes == 0])))
    assert all(len(ways) == 1 for ways in parts.values())
    assert len(set.union(*parts.values())) == len(parts)
    assert len(parts) > 100


@pytest.mark.parametrize("resampling", RESAMPLINGS)
def test_offspring_are_in_proportion_to_the_weights(resampling, rng):
    weight = np.array([0.03, 0.31, 0.0, 0.17, 0.008, 0.252, 0.11, 0.12])
    particles = make_particles(8, 1, 0.0)
    particles.cumulative[:] = np.cumsum(5.0 * weight)  # they need not add up to 1
    counts = []
    for _ in range(20_000):
        draw_offspring(particles, smc.RESAMPLINGS[resampling], rng)
        counts.append(particles.offspring.copy())
    found, wanted = np.array(counts), 8 * weight
    assert (found.sum(axis=1) == 8).all()
    if resampling == "systematic":  # never a whole copy off
        assert (np.abs(found - wanted) < 1).all()
    error = np.maximum(found.std(axis=0), 1e-9) / len(found) ** 0.5
    assert (np.abs(found.mean(axis=0) - wanted) < Z_LIMIT * error + 1e-12).all()


def test_evidence_and_weights_of_the_islands(rng):
    problem = larger_problem(rng)
    draws, info = sample(
        problem, configured(method="smc"), n_chains=3, n_warmup=0, n_draws=50, progress=False
    )
    log_weight = info.stats["log_weight"]
    assert draws.weights_of_draws.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        draws.weights_of_draws, np.exp(log_weight) / np.exp(log_weight).sum(), rtol=1e-9
    )
    of_islands = np.log(np.exp(log_weight).sum(axis=1))
    assert info.log_evidence == pytest.approx(np.log(np.exp(of_islands).mean()))
    assert not draws.h.any()


def test_an_interrupted_run_has_nothing_to_keep(monkeypatch, rng):
    def interrupted(island, n):
        raise KeyboardInterrupt

    monkeypatch.setattr(smc.SMCChain, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt, match="before the particles were complete"):
        sample(
            larger_problem(rng), configured(method="smc"), n_chains=2, n_warmup=0, n_draws=50,
            progress=False,
        )  # fmt: skip


# ------------------------------------------------------------------ as an estimator


def table(rng, n_classes: int):
    X = rng.normal(size=(80, 3))
    signal = X[:, 0] + 0.3 * rng.standard_normal(80)
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def test_a_classifier_works_from_end_to_end(rng, tmp_path):
    X, y = table(rng, 3)
    model = BayesianTreeClassifier(method="smc", n_chains=2, n_draws=300, random_state=0).fit(X, y)
    posterior = model.posterior_
    proba = model.predict_proba(X)
    by_draw = posterior.predict_draws(X)
    np.testing.assert_allclose(proba, np.einsum("cd,cdrk->rk", posterior.weights, by_draw))
    assert model.score(X, y) > 1 / 3 + 5 * (2 / 9 / 80) ** 0.5  # chance, and five errors of it
    assert model.predict_interval(X[:4]).shape == (4, 3, 2)
    assert model.sample_predictive(X[:4], 1000, random_state=1).shape == (1000, 4)
    assert posterior.log_evidence == pytest.approx(
        np.log(np.exp(posterior.log_evidence_of_chains).mean())
    )
    assert "log evidence" in posterior.summary()
    assert "divergences" not in posterior.summary()
    assert "R-hat does not apply" in posterior.diagnose().sentence
    assert np.isnan(posterior.diagnose().median_rhat)
    posterior.to_datatree()
    plot_leaves(posterior)
    plot_trace(posterior)
    posterior.save(tmp_path / "smc.nc")
    again = Posterior.load(tmp_path / "smc.nc")
    np.testing.assert_array_equal(again.predict_mean(X), posterior.predict_mean(X))
    np.testing.assert_array_equal(again.log_evidence_of_chains, posterior.log_evidence_of_chains)
    assert again.log_evidence == posterior.log_evidence


def test_a_regressor_works_from_end_to_end(rng, tmp_path):
    X, y = table(rng, 2)
    target = 100.0 + 5.0 * y + 0.5 * rng.standard_normal(80)
    model = BayesianTreeRegressor(method="smc", n_chains=2, n_draws=300, random_state=0)
    model.fit(X, target)
    mean, sd = model.predict(X, return_std=True)
    assert model.score(X, target) > 0.5  # most of the variance
    by_draw = model.posterior_.predict_draws(X)
    np.testing.assert_allclose(mean, np.einsum("cd,cdr->r", model.posterior_.weights, by_draw))
    interval = model.predict_interval(X, 0.9)
    assert np.mean((interval[:, 0] < target) & (target < interval[:, 1])) > 0.8
    many = model.sample_predictive(X[:3], 4000, random_state=0)
    np.testing.assert_allclose(many.mean(axis=0), mean[:3], atol=5 * (sd[:3] / 4000**0.5).max())
    model.posterior_.save(tmp_path / "smc.nc")
    again = Posterior.load(tmp_path / "smc.nc")
    np.testing.assert_array_equal(again.sigma, model.posterior_.sigma)


def test_few_families_are_reported(rng):
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = BayesianTreeClassifier(
        method=SMC(split_proposal="prior"), n_chains=1, n_draws=200, random_state=0
    )
    with pytest.warns(match="use more particles, such as n_draws=2000"):
        model.fit(X, y)
    assert not model.posterior_.diagnose().converged


def test_what_smc_cannot_do_is_refused(rng):
    X, y = table(rng, 2)
    with pytest.raises(ValueError, match="min_leaves 1 or 2"):
        BayesianTreeRegressor(method=SMC(min_leaves=3)).fit(X, y.astype(float))
    with pytest.raises(TypeError, match="variance"):
        SMC(variance="common")  # a leaf could not be judged on its own


def test_sets_of_too_many_levels_are_refused(rng):
    table = pandas.DataFrame({"site": np.arange(130) % 13, "arm": np.arange(130) % 12})
    y = rng.normal(size=130)
    options = {"n_chains": 1, "n_draws": 20, "categorical_features": ["site", "arm"]}
    with pytest.raises(ValueError, match=r'up to 12 levels: site has 13. Set split_proposal="emp'):
        BayesianTreeRegressor(method="smc", **options).fit(table, y)
    model = BayesianTreeRegressor(method=SMC(split_proposal="empirical"), **options)
    assert np.isfinite(model.fit(table, y).predict(table)).all()
    table["site"] %= 12
    BayesianTreeRegressor(method="smc", **options).fit(table, y)


def test_what_training_did_not_see_goes_both_ways(rng):
    table = pandas.DataFrame({"site": rng.choice(["east", "west"], 50)})
    y = rng.random(50) < np.where(table["site"] == "east", 0.4, 0.6)
    model = BayesianTreeClassifier(method="smc", n_chains=1, n_draws=50, random_state=0)
    posterior = model.fit(table, y).posterior_
    assert set(posterior.draws.n_leaves.flat) == {1, 2}
    east, west, *others = posterior.predict_draws(
        pandas.DataFrame({"site": ["east", "west", "north", None]})
    )[0].transpose(1, 0, 2)
    for other in others:
        np.testing.assert_allclose(other, (east + west) / 2, rtol=1e-12)


def test_the_papers_preset_is_the_papers():
    X, y = table(np.random.default_rng(0), 2)
    model = BayesianTreeClassifier(
        method=SMC.paper(class_mass=0.3), n_chains=5, n_draws=40, random_state=0
    ).fit(X, y)
    configuration, method = model.posterior_.configuration, model.posterior_.configuration.method
    assert (method.split_proposal, method.resampling) == ("prior", "multinomial")
    assert (configuration.alpha_split, configuration.beta_split, method.min_size) == (0.95, 0.5, 1)
    assert method.class_concentration(2) == (0.15, 0.15)
