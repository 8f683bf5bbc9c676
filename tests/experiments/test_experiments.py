"""The parts of the paper's experiments: configurations, measures, store, tables."""

from __future__ import annotations

import json
import math
import pickle
import shutil
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pandas
import pytest
from joblib._parallel_backends import ThreadingBackend
from rich.console import Console
from scipy.integrate import trapezoid

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.datasets import PAPER_DATASETS, load_paper_split
from hamiltree.datasets.paper import Split, generate_split
from hamiltree.experiments import grid, measures, render, restarts, splits, store, tables
from hamiltree.experiments.configurations import (
    HMC,
    METHODS,
    Lengths,
    classical_estimator,
    classical_method,
    hmc_estimator,
    lengths_of,
    presets_of,
)
from hamiltree.experiments.hyperparameters import OURS, TABLE_3, TABLE_4, grid_of, span
from hamiltree.experiments.references import MEASURE, measure_cart
from hamiltree.experiments.runner import Job, StoppedError, complete
from hamiltree.experiments.store import Result, Store, key_of
from hamiltree.methods import CGM, HMCDF, WU
from hamiltree.posterior.draws import RunInfo
from hamiltree.running.chains import Chains

from ..support.configuring import parameters

QUIET = Console(quiet=True)


# ------------------------------------------------------------------ configurations


def test_every_method_has_a_setting_for_every_data_set():
    assert set(TABLE_4) == {(method, name) for method in METHODS for name in PAPER_DATASETS}
    assert set(TABLE_3) == {pair for pair in TABLE_4 if pair[0] not in HMC}


def test_spans_are_the_papers():
    assert span(0.6, 0.2, 1.2) == (0.6, 0.8, 1.0, 1.2)
    assert span(0.1, 0.2, 1.0) == (0.1, 0.3, 0.5, 0.7, 0.9)


def test_grids_have_the_papers_sizes_and_hold_table_4():
    assert len(grid_of("wu", "cgm")) == 13_200
    assert len(grid_of("cgm", "iris")) == 5 * 11 * 5
    for (method, name), values in TABLE_3.items():
        assert all(TABLE_4[method, name][s] in values[s] for s in values), (method, name)


def test_run_lengths_are_the_papers():
    assert lengths_of("cgm", "cgm") == Lengths(4500, 500)
    assert lengths_of("cgm", "wu") == lengths_of("cgm", "hmc-df") == Lengths(500, 500)
    assert lengths_of("iris", "cgm") == Lengths(200, 800)


def test_symbols_become_parameters():
    assert classical_method("wu", TABLE_4["wu", "raisin"], 2) == WU.paper(
        class_prior=(1.0, 2.0), expected_splits=1.8, left_share=0.3
    )
    three = classical_method("wu", {"alpha": 0.5, "lambda": 1.0, "p": 0.5}, 3)
    assert three.class_prior == (0.5, 0.5, 0.5)
    cgm = classical_estimator("cgm", TABLE_4["cgm", "cgm"], 0, Lengths(3, 4), seed=1)
    assert cgm.method == CGM.paper(variance_prior=(4.0, 2.0), mean_prior=(3.0, 0.3))
    assert (cgm.alpha_split, cgm.beta_split) == (1.2, 1.0)
    smc = classical_estimator("smc", TABLE_4["smc", "bcw"], 2, Lengths(3, 4), seed=1)
    assert (smc.method.class_mass, smc.n_chains, smc.n_draws) == (0.3, 5, 40)


@pytest.mark.parametrize("method", ["hmc-df", "hmc-dfi", "cgm", "wu", "smc"])
@pytest.mark.parametrize("preset", ["exact", "paper"])
def test_a_stored_configuration_makes_its_estimator_again(method, preset):
    split = generate_split("cgm", seed=3)
    make = hmc_estimator if method in HMC else classical_estimator
    which = (method, preset) if method in HMC else (method,)
    estimator = make(*which, TABLE_4[method, "cgm"], 0, Lengths(3, 4), 1)
    config = json.loads(json.dumps({"parameters": restarts.parameters_set(estimator)}))
    assert repr(restarts.estimator_of(config, split)) == repr(estimator)


@pytest.mark.parametrize("method", HMC)
@pytest.mark.parametrize("n_classes", [0, 3])
def test_both_presets_sample_the_same_model(method, n_classes):
    name = "iris" if n_classes else "cgm"
    model = ("min_leaves", "tau_prior", "class_prior", "mu_prior", "sigma_prior")
    shared = ("h", "alpha_split", "beta_split", "max_leaves")
    found = []
    for preset in ("exact", "paper"):
        estimator = hmc_estimator(
            method, preset, TABLE_4[method, name], n_classes, Lengths(5, 5), 1
        )
        given = {name: getattr(estimator, name) for name in shared}
        found.append(estimator.method.configured(**given))
        assert estimator.method.moves == ("prior" if preset == "paper" else "informed")
        assert (estimator.preset == "paper") == (preset == "paper")
    one, other = ([getattr(c.method, k) for k in model] for c in found)
    assert one == other
    one, other = ([getattr(c, k) for k in shared] for c in found)
    assert one == other
    assert found[0].h == TABLE_4[method, name]["h_final"]


def test_classical_methods_keep_the_papers_moves():
    estimator = classical_estimator("cgm", TABLE_4["cgm", "bcw"], 2, Lengths(3, 4), seed=7)
    assert (estimator.method.moves, estimator.preset) == ("prior", "paper")
    assert (estimator.n_warmup, estimator.n_draws, estimator.random_state) == (3, 4, 7)
    assert presets_of("cgm", "both") == ("paper",)
    assert presets_of("hmc-df", "both") == ("exact", "paper")


# ------------------------------------------------------------------ measures


def test_calibration_error_by_hand():
    probabilities = np.array([[0.95, 0.05], [0.95, 0.05], [0.4, 0.6], [0.2, 0.8]])
    hits = np.array([[True, False], [False, True], [False, True], [False, True]])
    # bins: two rows at .95 of which one is right; .6 right; .8 right
    expected = (2 * abs(0.95 - 0.5) + abs(0.6 - 1) + abs(0.8 - 1)) / 4
    assert measures.calibration_error(probabilities, hits) == pytest.approx(expected)
    sure = np.eye(2)[[0, 1, 0]]
    assert measures.calibration_error(sure, sure.astype(bool)) == 0


def test_probability_measures_by_hand():
    values = measures.probability_measures(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), np.array([0, 1]), np.arange(3)
    )
    assert values["log_score"] == pytest.approx((math.log(0.7) + math.log(0.1)) / 2)
    assert values["brier"] == pytest.approx((0.09 + 0.04 + 0.01 + 0.01 + 0.81 + 0.64) / 2)


def test_acceptance_counts_the_whole_chain_and_staying():
    def counts(accepted, proposed):
        return np.array([accepted]), np.array([proposed])

    info = RunInfo(
        acceptance={
            "warmup": {"grow": counts(1, 2), "stay": counts(3, 3), "feature": counts(0, 90)},
            "sampling": {"grow": counts(0, 5), "stay": counts(10, 10), "iteration": counts(1, 1)},
        },
        stats={}, seconds=0.0, stopped="n_draws",
    )  # fmt: skip
    values = measures.acceptance_measures(info)
    assert values["acceptance_pct"] == pytest.approx(100 * 14 / 20)
    assert values["acceptance_grow_pct"] == pytest.approx(100 / 7)
    assert values["acceptance_iteration_pct"] == 100


def test_leaves_without_the_constant_are_those_of_the_posterior_without_it():
    leaves = np.array([[2, 3, 3, 5]])
    posterior = SimpleNamespace(
        n_classes=3, n_leaves=leaves, weights=np.full((1, 4), 0.25),
        configuration=HMCDF().configured(),
    )  # fmt: skip
    # Gamma(3) = 2 a leaf: draws weigh 2^-leaves
    weights = 0.5 ** leaves[0]
    expected = weights @ leaves[0] / weights.sum()
    assert measures.leaves_without_constant(posterior) == pytest.approx(expected)


@pytest.fixture(scope="module")
def regression() -> Split:
    whole = generate_split("cgm", seed=3)
    return Split("cgm", whole.X[:80], whole.y[:80], whole.X_test[:30], whole.y_test[:30], "part")


def fit_regressor(split, method, **settings):
    model = BayesianTreeRegressor(
        **parameters(
            method=method, n_chains=1, n_warmup=20, n_draws=30, random_state=0, n_jobs=1,
            standardize=False, **settings,
        )
    )  # fmt: skip
    return model.fit(split.X, split.y).posterior_


@pytest.mark.parametrize("method", ["hmc-df", "cgm", "smc"])
def test_log_density_integrates_to_one_and_agrees_with_the_quantiles(regression, method):
    posterior = fit_regressor(regression, method)
    row = regression.X_test[:1]
    y = np.linspace(-60, 80, 140_001)
    density = np.exp(measures.log_density(posterior, np.repeat(row, len(y), axis=0), y))
    assert trapezoid(density, y) == pytest.approx(1, abs=1e-3)
    (low,), (high,) = posterior.predict_quantiles(row, [0.2, 0.7], n_jobs=1)
    inside = (y >= low) & (y <= high)
    assert trapezoid(density[inside], y[inside]) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("method", ["cgm", "wu", "smc"])
def test_leaves_of_hard_trees_predict_their_posterior_means(regression, method):
    prior_mean, prior_rows = 2.0, 0.7
    posterior = fit_regressor(regression, method, mean_prior=(prior_mean, prior_rows))
    found = measures.leaf_mean_predictions(posterior, regression, regression.X_test)
    # Rows share a leaf of a tree where they share its drawn mean.
    for draw in (0, 17, 29):
        drawn = posterior.predict_single_trees(np.vstack([regression.X_test, regression.X]))
        test, train = np.split(drawn.reshape(-1, drawn.shape[-1])[draw], [30])
        for row in range(30):
            ys = regression.y[train == test[row]]
            mean = (ys.sum() + prior_rows * prior_mean) / (len(ys) + prior_rows)
            assert found[draw, row] == pytest.approx(mean)


def test_measures_agree_with_the_estimators_own_scores():
    split = load_paper_split("iris")
    model = BayesianTreeClassifier(
        method="smc", n_chains=2, n_draws=50, random_state=1, n_jobs=1
    ).fit(split.X, split.y)
    values, arrays = measures.measure(model.posterior_, split)
    assert values["test_acc"] == pytest.approx(model.single_tree_score(split.X_test, split.y_test))
    assert values["ensemble_test_acc"] == pytest.approx(model.score(split.X_test, split.y_test))
    assert values["train_acc"] == pytest.approx(model.single_tree_score(split.X, split.y))
    assert arrays["score_by_row"].mean() == pytest.approx(values["test_acc"])
    assert arrays["monitor"].shape == (100, 20)


# ------------------------------------------------------------------ burn-in


@pytest.mark.parametrize("method", HMC)
@pytest.mark.parametrize("preset", ["exact", "paper"])
def test_burn_in_is_watched_on_the_same_chain(method, preset):
    split = load_paper_split("iris")
    ((config, _),) = restarts.restart_configs([split], [method], preset, 1, shorten=40)
    config = restarts.burn_in_config(config)
    if preset == "paper":
        config["parameters"]["method__adapt_steps"] = 20
    posterior = restarts.fitted(config, split)
    watched = restarts.watch_burn_in(posterior, split)
    assert watched.n_draws == config["parameters"]["n_warmup"] == 5
    # ``watch_burn_in`` itself refuses a chain that made other moves than the fit. Besides, one more
    # iteration of the burn-in's chain is the fit's only draw: a jump of the paper's changes the
    # number of leaves by one at most. (Informed moves may regrow whole subtrees.)
    if preset == "paper":
        assert abs(int(watched.n_leaves[0, -1]) - int(posterior.n_leaves[0, 0])) <= 1


def test_the_burn_in_of_another_chain_is_refused():
    split = load_paper_split("iris")
    ((config, _),) = restarts.restart_configs([split], ["hmc-df"], "exact", 1, shorten=2)
    posterior = restarts.fitted(restarts.burn_in_config(config), split)
    restarts.watch_burn_in(posterior, split)
    posterior.info = replace(posterior.info, seed=posterior.info.seed + 1)
    with pytest.raises(RuntimeError, match="not the chain's own"):
        restarts.watch_burn_in(posterior, split)


def test_a_long_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    split = load_paper_split("iris")
    ((config, _),) = restarts.restart_configs([split], ["hmc-df"], "paper", 1, shorten=20)
    config["parameters"]["method__adapt_steps"] = 20
    whole = restarts.run_restart(config, split)
    advance = Chains._advance

    def impatient(self, *arguments):
        advance(self, *arguments)
        if self.done > 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("hamiltree.running.chains.BLOCKS_PER_ROUND", 1)
    monkeypatch.setattr(Chains, "_advance", impatient)
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        restarts.run_restart(config, split, tmp_path)
    assert len(list(tmp_path.glob("*.nc"))) == 1
    monkeypatch.undo()
    on = restarts.run_restart(config, split, tmp_path)
    assert not list(tmp_path.iterdir())
    for result in (whole, on):
        del result.values["seconds"]
    assert on.values == whole.values
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(on.arrays[name], array)


# ------------------------------------------------------------------ store and runner


def test_store_keeps_values_and_arrays(tmp_path):
    kept = Store(tmp_path / "new")
    config = {"kind": "x", "parameters": {"h": 0.1}}
    assert kept.load(config) is None
    kept.save(config, Result({"a": 0.1, "b": float("inf")}, {"v": np.arange(3)}))
    kept.close()
    again = Store(tmp_path / "new").load({"parameters": {"h": 0.1}, "kind": "x"})
    assert again.values == {"a": 0.1, "b": float("inf")}
    np.testing.assert_array_equal(again.arrays["v"], np.arange(3))


def test_keys_know_the_configuration_the_version_and_the_code(monkeypatch):
    config = {"kind": "x", "seed": 1}
    keys = {key_of(config), key_of({**config, "seed": 2})}
    monkeypatch.setattr(store, "__version__", "99")
    keys.add(key_of(config))
    monkeypatch.setattr(store, "sources_digest", lambda: "other")
    keys.add(key_of(config))
    assert len(keys) == 4


def test_every_source_counts(tmp_path):
    """Also those in folders of folders, as the compiled code is, and new ones."""
    package = tmp_path / "package"
    shutil.copytree(store.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "data"))

    def digest():
        store.sources_digest.cache_clear()
        return store.sources_digest(package)

    seen = {store.sources_digest()}
    assert digest() in seen, "where the library stands does not matter"
    for name in ("core/tree/priors.py", "samplers/cgm.py", "running/chains.py", "ensemble.py"):
        with open(package / name, "a") as file:
            file.write("# other code")
        assert digest() not in seen
        seen.add(digest())
    (package / "core" / "new.py").touch()
    assert digest() not in seen
    store.sources_digest.cache_clear()


def test_data_digest_sees_every_cell():
    split = load_paper_split("iris")
    before = store.data_digest(split)
    split.y_test[3] += 1
    assert store.data_digest(split) != before


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / store.FILE).write_text("not a database, and long enough to be taken for one" * 50)
    with pytest.raises(OSError, match="choose another --out"):
        Store(tmp_path)


def doubled(config, split):
    return Result({"twice": 2.0 * config["n"]})


def test_runner_runs_what_is_missing_and_stops_clean(tmp_path):
    split = load_paper_split("iris")
    calls = []

    def function(config, split):
        if config["n"] == 3 and 3 not in calls:
            calls.append(3)
            raise KeyboardInterrupt
        calls.append(config["n"])
        return doubled(config, split)

    jobs = [Job({"n": n}, split, function) for n in range(6)]
    kept = Store(tmp_path)
    with pytest.raises(StoppedError, match="3 of 6 are kept"):
        complete(jobs, kept, 1, QUIET, "things")
    complete(jobs, kept, 1, QUIET, "things")
    assert calls == [0, 1, 2, 3, 3, 4, 5]
    assert [kept.load(job.config).values["twice"] for job in jobs] == [0, 2, 4, 6, 8, 10]


def test_runner_uses_the_backend_of_the_context(tmp_path):
    """As with Dask or Ray: theirs is used, though threads are what we prefer."""
    used = []

    class Watched(ThreadingBackend):
        def submit(self, *arguments, **options):
            used.append(1)
            return super().submit(*arguments, **options)

    joblib.register_parallel_backend("watched", Watched)
    jobs = [Job({"n": n}, load_paper_split("iris"), doubled) for n in range(3)]
    with joblib.parallel_config("watched"):
        complete(jobs, Store(tmp_path), 2, QUIET, "things")
    assert len(used) == 3
    assert len(Store(tmp_path).keys()) == 3


def test_jobs_can_be_sent_to_other_machines():
    split = load_paper_split("iris")
    configs = restarts.restart_configs([split], METHODS, "both", 1)
    jobs = [*restarts.restart_jobs(configs), *restarts.burn_in_jobs(configs)]
    for job in (*jobs, *splits.split_jobs([split], METHODS, 1, 2)):
        assert pickle.loads(pickle.dumps(job)).config == job.config


def test_progress_lines_say_what_is_left(tmp_path, capsys):
    jobs = [Job({"n": n}, load_paper_split("iris"), doubled) for n in range(2)]
    complete(jobs, Store(tmp_path), 1, Console(), "things")
    complete(jobs, Store(tmp_path), 1, Console(), "things")
    text = capsys.readouterr().out
    assert "things: 2 of 2" in text
    assert "all 2 are there already" in text


# ------------------------------------------------------------------ tables


def made_runs(method="cgm", scores=((0.8, 0.1), (0.9, 0.2)), draws=40):
    rng = np.random.default_rng(0)
    split = load_paper_split("iris")
    return [
        tables.Run(
            {"dataset": "iris", "method": method, "preset": "paper", "seed": seed, "cut": 0,
             "data_source": "", "parameters": {}},
            split,
            Result(
                {"test_acc": mean, "test_acc_sd": sd, "ensemble_test_acc": mean, "seconds": 2.0},
                {"log_posterior": rng.standard_normal(draws), "n_leaves": np.full(draws, 3 + seed),
                 "monitor": rng.random((draws, 2)), "score_by_row": np.full(45, mean)},
            ),
        )
        for seed, (mean, sd) in enumerate(scores)
    ]  # fmt: skip


def test_summary_pools_draws_and_restarts():
    summary = tables.summary_table(made_runs()).set_index("metric")
    assert list(summary.reset_index().columns).count("paper_mean") == 1
    row = summary.loc["test_acc"]
    assert row["mean"] == pytest.approx(0.85)
    # variance: mean of those within plus that between
    assert row["sd"] == pytest.approx(np.sqrt((0.01 + 0.04) / 2 + 0.05**2))
    assert (row["paper_mean"], row["paper_sd"]) == (0.908, 0.022)
    assert summary.loc["ensemble_test_acc"]["sd"] == pytest.approx(np.std([0.8, 0.9], ddof=1))
    assert np.isnan(summary.loc["ensemble_test_acc"]["paper_mean"])
    # Two chains that stand still at different sizes do not agree at all.
    assert summary.loc["rhat_leaves"]["mean"] == np.inf
    assert summary.loc["rhat_log_posterior"]["mean"] < 1.3


def test_smc_is_compared_as_the_ensemble_that_the_paper_scored():
    summary = tables.summary_table(made_runs("smc")).set_index("metric")
    assert summary.loc["ensemble_test_acc"]["paper_mean"] == 0.909
    assert np.isnan(summary.loc["test_acc"]["paper_mean"])
    assert not any(name.startswith("rhat") for name in summary.index)


def test_agreement_is_in_standard_errors():
    runs = made_runs(scores=((0.9, 0.1), (0.9, 0.1)))
    (row,) = tables.agreement_table(runs, tables.summary_table(runs)).itertuples()
    error = np.sqrt(0.908 * 0.092 / 45)
    assert row.standard_error == pytest.approx(error)
    assert row.differs_by_se == pytest.approx((0.9 - 0.908) / error)
    assert row.within_one_se
    assert tables.standard_error([np.array([0.0, 2.0]), np.array([0.0, 2.0])]) == pytest.approx(1)


def test_paper_table_is_whole():
    table = tables.paper_table()
    assert table.groupby("dataset").size().to_dict() == {
        "cgm": 17, "bcw": 20, "iris": 15, "wine": 15, "raisin": 20,
    }  # fmt: skip
    assert not table.duplicated(["dataset", "method", "metric"]).any()
    assert set(table["method"]) == set(METHODS)


def test_rendering_marks_the_best_and_shows_the_paper_below():
    summary = pandas.DataFrame(
        [
            ("iris", "cgm", "paper", "test_acc", 0.9, 0.02, 0.908, 0.022),
            ("iris", "hmc-df", "exact", "test_acc", 0.95, 0.0001, 0.906, 0.026),
            ("iris", "cgm", "paper", "leaves", 4.0, 1.0, 4.33, np.nan),
            ("iris", "hmc-df", "exact", "leaves", 5.0, 1.0, 3.38, np.nan),
        ],
        columns=tables.COLUMNS,
    )
    lines = render.lines_of(summary, render.PAPER_METRICS)
    titles = render.headings(render.columns_of(summary))
    assert render.to_markdown(lines, titles).splitlines() == [
        "| data |  |  | CGM | HMC-DF |",
        "| --- | --- | --- | --- | --- |",
        "| iris | test accuracy, one tree | ours | 0.900 (0.020) | **0.950 (1e-04)** |",
        "|  |  | paper | **0.908 (0.022)** | 0.906 (0.026) |",
        "|  | leaves | ours | **4.00 (1.00)** | 5.00 (1.00) |",
        "|  |  | paper | 4.33 | **3.38** |",
    ]
    latex = render.to_latex(lines, titles, "A caption.")
    assert r"\textbf{0.950 (1e-04)} \\" in latex
    assert latex.count("&") == 4 * 5
    narrow = render.to_terminal(lines, titles, "t", width=60)
    assert next(iter(narrow.columns[3].cells)) == "0.900"
    wide = render.to_terminal(lines, titles, "t", width=200)
    assert next(iter(wide.columns[3].cells)) == "0.900 (0.020)"


def test_both_presets_are_told_apart_in_the_heading():
    columns = [("cgm", "paper"), ("hmc-df", "exact"), ("hmc-df", "paper")]
    assert render.headings(columns) == ["CGM", "HMC-DF (exact)", "HMC-DF (paper)"]


# ------------------------------------------------------------------ grid and splits


def test_grid_takes_a_seeded_subset_with_table_4_in_it():
    split = load_paper_split("cgm")
    search = grid.make_search("wu", split, most=7)
    assert search.n_in_grid == 13_200
    assert TABLE_4["wu", "cgm"] in search.sets
    assert 7 <= len(search.sets) <= 8
    assert search.sets == grid.make_search("wu", split, most=7).sets
    assert search.sets != grid.make_search("wu", split, most=7, seed=1).sets


def test_grid_chooses_by_score_then_by_likelihood(tmp_path):
    split = load_paper_split("iris")
    search = grid.make_search("cgm", split, most=3)
    kept = Store(tmp_path)
    for config, score, likelihood in zip(
        search.configs, [0.9, 0.95, 0.95 + 1e-12, 0.1], [0.0, -20.0, -30.0, 0.0], strict=True
    ):
        kept.save(config, Result({"score": score, "log_likelihood": likelihood}))
    table = grid.sets_table(search, kept)
    assert table.loc[0, ["score", "log_likelihood"]].tolist() == [0.95, -20.0]
    (row,) = grid.report([search], kept).itertuples()
    assert row.score == 0.95
    assert row.table_4 == "alpha=0.1, alpha_split=1.2, beta_split=2.8"
    assert row.table_4_score == 0.1
    assert row.table_4_rank == 4


def test_what_is_ours_has_no_published_set(tmp_path):
    assert {("wu", "iris"), ("wu", "wine"), ("smc", "cgm")} == OURS
    search = grid.make_search("wu", load_paper_split("iris"), most=2)
    kept = Store(tmp_path)
    for config in search.configs:
        kept.save(config, Result({"score": 0.9, "log_likelihood": 0.0}))
    (row,) = grid.report([search], kept).itertuples()
    assert row.table_4 == "none"


def test_differences_are_paired_and_widened_for_shared_rows():
    rows = [
        {"dataset": "iris", "method": method, "preset": preset, "seed": seed, "data_source": "",
         "n_train": 100, "n_test": 50, "log_score": base[seed] + gain}
        for base in ([-0.1, -0.5, -0.3],)
        for method, preset, gain in (
            ("cgm", "paper", 0.2), ("cart", "reference", 0.0), ("forest", "reference", 0.3),
        )
        for seed in range(3)
    ]  # fmt: skip
    rows[0]["log_score"] += 0.3  # one split of CGM
    summary = splits.summary_of_splits(pandas.DataFrame(rows))
    row = summary[(summary["method"] == "cgm")].iloc[0]
    assert row["minus_cart"] == pytest.approx(0.3)
    assert row["minus_forest"] == pytest.approx(0.0)
    sd = np.std([0.5, 0.2, 0.2], ddof=1)
    assert row["minus_cart_se"] == pytest.approx(sd * np.sqrt(1 / 3 + 0.5))
    columns = render.columns_of(summary)
    assert columns == [("cgm", "paper"), ("cart", "reference"), ("forest", "reference")]
    lines = splits.difference_lines(summary, columns)
    assert [line.source for line in lines] == ["minus cart", "minus forest"]
    assert lines[0].cells[0].short == "+0.300"
    assert lines[0].cells[2].bold  # the forest's lead of 0.3 is the same on every split


@pytest.mark.parametrize("name", ["iris", "cgm"])
def test_references_give_what_the_methods_give(name):
    split = load_paper_split(name)
    for measure in MEASURE.values():
        values = measure(split, 0)
        assert np.isfinite(values["log_score"])
        if name == "iris":
            assert values["ensemble_test_acc"] > 0.85
            assert values["brier"] < 0.3
        else:
            assert values["ensemble_test_mse"] < 0.06
            assert 0.8 < values["coverage_90"] < 0.98
    assert measure_cart(split, 0)["leaves"] >= 3
