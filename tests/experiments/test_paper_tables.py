"""Tables, grid search and comparisons over splits."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from rich.console import Console

from hamiltree.datasets import load_paper_split
from hamiltree.experiments import grid, render, splits, tables
from hamiltree.experiments.configurations import METHODS
from hamiltree.experiments.hyperparameters import OURS, TABLE_4
from hamiltree.experiments.references import MEASURE, measure_cart
from hamiltree.experiments.store import Result, Store

QUIET = Console(quiet=True)


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
