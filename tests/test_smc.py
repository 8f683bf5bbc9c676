"""SMC against sums over every tree: evidence, posterior, prior, and what it hands over.

An island is one independent run, so the spread over islands is the error bar. With the unnormalised
weights, the sum over an island of weight x f(tree) has mean evidence x E[f] exactly, whatever the
number of particles, the proposal or the resampling: z-tests of that have no bias to allow for. All
limits are two-sided with a false-alarm rate of 1e-4 a test or less.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, run
from hamiltree.core.predict import Forest, most_likely_leaf
from hamiltree.plots import plot_leaves, plot_trace
from hamiltree.posterior import Posterior
from hamiltree.run import Problem, sample
from hamiltree.samplers import smc
from hamiltree.settings import Settings

from .reference.enumerate_smc import (
    TINY,
    Exact,
    TinyProblem,
    grid_problem,
    log_evidence,
    queue_sums,
    tree_sums,
)

PROPOSALS = ("prior", "empirical", "posterior")
RESAMPLINGS = ("systematic", "multinomial")
Z_LIMIT = 4.0  # two-sided rate 6e-5

exact = lru_cache(tree_sums)


def settings_of(problem: TinyProblem, **others) -> Settings:
    return Settings(
        method="smc",
        alpha_split=problem.alpha_split,
        beta_split=problem.beta_split,
        min_leaves=problem.min_leaves,
        max_leaves=min(problem.max_leaves, 256),
        min_size=problem.min_size,
        feature_prior=problem.feature_weight,
        class_prior=problem.class_prior or 1.0,
        variance_prior=problem.variance_prior,
        mean_prior=problem.mean_prior,
        likelihood_power=problem.power,
        **others,
    )


def run_islands(problem: TinyProblem, seed: int, islands: int, particles: int, **others):
    data = Problem(np.ascontiguousarray(problem.X.T), problem.y, problem.n_classes)
    return sample(
        data, settings_of(problem, **others), n_chains=islands, n_warmup=0, n_draws=particles,
        seed=seed, n_jobs=1, progress=False,
    )  # fmt: skip


def partitions_of(problem: TinyProblem, draws) -> np.ndarray:
    """[tree, row]; the first row that shares a row's leaf, which names the partition."""
    forest = Forest(
        draws.node_offset, draws.size, draws.feature, draws.threshold, draws.weights, draws.h
    )
    leaf = most_likely_leaf(forest, np.ascontiguousarray(problem.X.T), 1)
    return (leaf[:, :, None] == leaf[:, None, :]).argmax(axis=2)


def named(partition, n_rows: int) -> tuple[int, ...]:
    """The same name for a partition of the reference."""
    first = {row: min(rows) for rows in partition for row in rows}
    return tuple(first[row] for row in range(n_rows))


def z_scores(problem: TinyProblem, truth: Exact, draws, info) -> dict[str, float]:
    """Of the evidence, the mean number of leaves, and every partition that is not rare."""
    islands = draws.n_chains
    weight = np.exp(info.stats["log_weight"] - truth.log_evidence)  # sums to 1 on average
    names = partitions_of(problem, draws).reshape(islands, draws.n_draws, -1)
    functionals = {
        "evidence": weight.sum(axis=1) - 1.0,
        "leaves": (weight * (draws.n_leaves - truth.mean_leaves)).sum(axis=1),
    }
    rare = np.ones(weight.shape, bool)
    rare_mass = 1.0
    for partition, mass in truth.partitions.items():
        share = mass / truth.evidence
        if share < 0.02:
            continue
        name = named(partition, len(problem.y))
        here = (names == np.array(name)).all(axis=2)
        rare &= ~here
        rare_mass -= share
        functionals[str(name)] = (weight * here).sum(axis=1) - share
    functionals["rare"] = (weight * rare).sum(axis=1) - rare_mass
    return {
        name: float(f.mean() / (f.std(ddof=1) / math.sqrt(islands)))
        for name, f in functionals.items()
    }


def assert_close(z: dict[str, float]) -> None:
    worst = max(z, key=lambda name: abs(z[name]))
    assert abs(z["evidence"]) < Z_LIMIT, f"evidence: z = {z['evidence']:.1f}"
    limit = max(Z_LIMIT, float(stats.norm.isf(0.5e-4 / len(z))))
    assert abs(z[worst]) < limit, f"{worst}: z = {z[worst]:.1f}"


# ------------------------------------------------------------------ the truth


@pytest.mark.parametrize("name", TINY)
def test_the_two_references_agree(name):
    small = replace(TINY[name], X=TINY[name].X[:5], y=TINY[name].y[:5])
    by_subtree, by_queue = tree_sums(small), queue_sums(small)
    assert by_subtree.evidence == pytest.approx(by_queue.evidence, rel=1e-12)
    for partition, mass in by_queue.partitions.items():
        assert by_subtree.partitions[partition] == pytest.approx(mass, rel=1e-12)
    prior = tree_sums(replace(small, power=0.0))
    assert prior.evidence == pytest.approx(1.0, rel=1e-12)
    assert log_evidence(small) == pytest.approx(by_queue.log_evidence, rel=1e-12)


@pytest.mark.parametrize("resampling", RESAMPLINGS)
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("name", TINY)
def test_evidence_is_unbiased_and_the_posterior_is_exact(name, proposal, resampling, seed):
    problem = TINY[name]
    draws, info = run_islands(
        problem, seed, 200, 100, split_proposal=proposal, resampling=resampling, ess_threshold=0.8
    )
    assert np.mean([len(set(f)) for f in info.stats["founder"]]) < 90  # it did resample
    assert_close(z_scores(problem, exact(problem), draws, info))


@pytest.mark.long
@pytest.mark.parametrize("threshold", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("resampling", RESAMPLINGS)
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("name", TINY)
def test_the_same_with_many_islands(name, proposal, resampling, threshold, seed):
    problem = TINY[name]
    draws, info = run_islands(
        problem, seed, 2000, 50,
        split_proposal=proposal, resampling=resampling, ess_threshold=threshold,
    )  # fmt: skip
    z = z_scores(problem, exact(problem), draws, info)
    print(name, proposal, resampling, threshold, {k: round(v, 2) for k, v in z.items()})
    assert_close(z)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_evidence_of_more_rows_and_larger_trees(n_classes, seed, rng):
    problem = grid_problem(rng, n_classes)
    truth = log_evidence(problem)
    draws, info = run_islands(problem, seed, 100, 500, ess_threshold=0.5)
    assert draws.n_leaves.max() > 8
    ratio = np.exp(info.stats["log_weight"] - truth).sum(axis=1)
    print(f"evidence / truth: {ratio.mean():.4f} +- {ratio.std(ddof=1) / 10:.4f}")
    assert abs(ratio.mean() - 1.0) < Z_LIMIT * ratio.std(ddof=1) / 10


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("limits", [{"max_leaves": 3}, {"min_leaves": 2}, {"power": 0.5}])
def test_limits_on_the_tree_and_powers_of_the_likelihood(proposal, limits, seed):
    problem = TINY["two classes"]
    problem = replace(problem, X=problem.X[1:6], y=problem.y[1:6], **limits)
    draws, info = run_islands(problem, seed, 200, 100, split_proposal=proposal, ess_threshold=0.8)
    assert draws.n_leaves.min() >= problem.min_leaves
    assert draws.n_leaves.max() <= problem.max_leaves
    assert_close(z_scores(problem, queue_sums(problem), draws, info))


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_without_the_likelihood_there_is_the_prior(proposal, seed):
    problem = replace(TINY["three classes"], power=0.0)
    draws, info = run_islands(problem, seed, 100, 200, split_proposal=proposal)
    if proposal == "empirical":  # its weights still correct the thresholds
        assert_close(z_scores(problem, exact(problem), draws, info))
        return
    assert info.log_evidence == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(draws.weights_of_draws, 1 / 20_000, rtol=1e-12)
    shares = exact(problem).partitions
    common = {named(p, 7): share for p, share in shares.items() if share > 0.005}
    codes = {name: k for k, name in enumerate(common)}
    found = [codes.get(tuple(n), len(codes)) for n in partitions_of(problem, draws).tolist()]
    expected = np.array([*common.values(), 1 - sum(common.values())]) * len(found)
    counts = np.bincount(found, minlength=len(expected))
    assert stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_thresholds_are_uniform_within_their_gap(proposal, seed):
    problem = TINY["regression"]
    draws, _ = run_islands(problem, seed, 1, 20_000, split_proposal=proposal, ess_threshold=0.0)
    split = draws.n_leaves.ravel() > 1
    first = ((draws.node_offset[:-1] - np.arange(20_000)) // 2)[split]
    feature, threshold = draws.feature[first], draws.threshold[first]
    for f in range(2):
        values = np.unique(problem.X[:, f])
        mine = threshold[feature == f]
        gap = np.searchsorted(values, mine, side="right") - 1
        assert gap.min() >= 0
        assert gap.max() <= len(values) - 2
        within = (mine - values[gap]) / (values[gap + 1] - values[gap])
        assert stats.kstest(within, "uniform").pvalue > 1e-4
        if proposal == "prior":
            assert stats.kstest(mine, "uniform").pvalue > 1e-4


# ------------------------------------------------------------------ what is handed over


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
        f, tau = int(draws.feature[split]), draws.threshold[split]
        split += 1
        x = [problem.X[i, f] for i in rows]
        of_feature = sum(mass for mass, _, _, feature in splits if feature == f)
        left = frozenset(i for i in rows if problem.X[i, f] <= tau)
        below = [descend(part, depth + 1) for part in (left, rows - left)]
        assert size[mine] == node - mine
        density = math.log(p * of_feature / (max(x) - min(x)))
        return density + below[0][0] + below[1][0], max(below[0][1], below[1][1])

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
            square = np.average(mine[:, 1] ** 2, weights=[len(rows) for rows in leaves])
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
    settings = Settings(method="smc", split_proposal=proposal, beta_split=0.5, ess_threshold=0.5)
    lengths = {"n_chains": 3, "n_warmup": 0, "n_draws": 60, "progress": False, "seed": 7}
    plain, _ = sample(problem, settings, **lengths, n_jobs=1)
    threads, _ = sample(problem, settings, **lengths, n_jobs=3)
    assert_same(plain, threads)
    monkeypatch.setattr(run, "BLOCK_SECONDS", 1e-6)
    monkeypatch.setattr(smc, "FIRST_NODES", 3)
    monkeypatch.setattr(smc, "FIRST_ROWS", 2)
    monkeypatch.setattr(smc, "FIRST_WIDTH", 1)
    cramped, _ = sample(problem, settings, **lengths, n_jobs=2)
    assert_same(plain, cramped)


def test_evidence_and_weights_of_the_islands(rng):
    problem = larger_problem(rng)
    draws, info = sample(
        problem, Settings(method="smc"), n_chains=3, n_warmup=0, n_draws=50, progress=False
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
            larger_problem(rng), Settings(method="smc"), n_chains=2, n_warmup=0, n_draws=50,
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
    assert "R-hat does not judge" in posterior.diagnose().sentence
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
        method="smc", split_proposal="prior", n_chains=1, n_draws=200, random_state=0
    )
    with pytest.warns(match="use more particles, such as n_draws=2000"):
        model.fit(X, y)
    assert not model.posterior_.diagnose().converged


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"min_leaves": 3}, "min_leaves 1 or 2"), ({"variance": "common"}, "variance='leaf'")],
)
def test_what_smc_cannot_do_is_refused(rng, wrong, message):
    X, y = table(rng, 2)
    with pytest.raises(ValueError, match=message):
        BayesianTreeRegressor(method="smc", **wrong).fit(X, y.astype(float))


def test_the_papers_preset_is_the_papers():
    X, y = table(np.random.default_rng(0), 2)
    model = BayesianTreeClassifier(
        method="smc", preset="paper", class_mass=0.3, n_chains=5, n_draws=40, random_state=0
    ).fit(X, y)
    settings = model.posterior_.settings
    assert (settings.split_proposal, settings.resampling) == ("prior", "multinomial")
    assert (settings.alpha_split, settings.beta_split, settings.min_size) == (0.95, 0.5, 1)
    assert settings.class_prior == (0.15, 0.15)
