"""``hamiltree paper`` from end to end, at a size at which its numbers mean nothing."""

from __future__ import annotations

import json
from urllib.error import URLError

import pandas
import pytest
from typer.testing import CliRunner

from hamiltree.cli import app
from hamiltree.datasets import raisin
from hamiltree.experiments import restarts
from hamiltree.experiments.tables import COLUMNS

TINY = ("--shorten", "100", "--jobs", "1")


def paper(*arguments: str):
    return CliRunner().invoke(app, ["paper", *arguments])


@pytest.fixture(autouse=True)
def _no_local_copies(monkeypatch):
    monkeypatch.delenv("HAMILTREE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C within the fourth fit, as it reaches the sampler: a fit that ends early."""
    made = []
    original = restarts.fitted

    def fitted(config, split, *checkpoint):
        made.append((config["dataset"], config["method"], config["seed"]))
        if len(made) == 4:
            raise KeyboardInterrupt
        return original(config, split, *checkpoint)

    monkeypatch.setattr(restarts, "fitted", fitted)
    return made


def test_tables_and_figures_from_start_to_end(tmp_path, interrupted):
    out = str(tmp_path / "out")
    arguments = ("--datasets", "iris,cgm", "--restarts", "2", "--out", out, *TINY)

    stopped = paper("tables", *arguments)
    assert stopped.exit_code == 130
    assert "stopped: 3 of 20 are kept in" in stopped.output

    finished = paper("tables", *arguments)
    assert finished.exit_code == 0, finished.output
    assert "runs: 3 of 20 are there already" in finished.output
    assert len(interrupted) == 4 + 17  # nothing was done twice, but for the one that was stopped
    assert "test figures are within one standard error" in finished.output

    table = pandas.read_csv(tmp_path / "out" / "tables.csv")
    assert list(table.columns) == COLUMNS
    row = table.set_index(["dataset", "method", "metric"]).loc[("iris", "hmc-dfi", "test_acc")]
    assert row["preset"] == "exact"
    assert row["paper_mean"] == 0.917
    assert 0 < row["mean"] <= 1
    wanted = {"test_mse", "ensemble_test_mse", "coverage_90", "log_score", "rhat_leaves", "seconds",
              "acceptance_pct", "acceptance_grow_pct"}  # fmt: skip
    metrics = table[(table["dataset"] == "cgm") & (table["method"] == "hmc-df")]["metric"]
    assert wanted <= set(metrics)
    # The cells that the paper had to leave empty are filled.
    for dataset, method in (("cgm", "smc"), ("iris", "wu")):
        assert ((table["dataset"] == dataset) & (table["method"] == method)).any()

    runs = pandas.read_csv(tmp_path / "out" / "runs.csv")
    assert len(runs) == 20
    assert set(runs["seed"]) == {1, 2}
    cgm = runs[(runs["dataset"] == "cgm") & (runs["method"] == "cgm")].iloc[0]
    assert json.loads(cgm["configuration"])["method__variance_prior"] == [4.0, 2.0]
    assert json.loads(cgm["configuration"])["n_draws"] == 45 + 5
    assert cgm["burn_in_cut"] == 45
    assert (runs["seconds"] > 0).all()
    for name in ("agreement.csv", "tables.md", "tables.tex", "further.md", "further.tex"):
        assert (tmp_path / "out" / name).stat().st_size > 100

    drawn = paper("figures", *arguments)
    assert drawn.exit_code == 0, drawn.output
    assert "runs: all 20 are there already" in drawn.output
    for name in ("figure3-leaves-cgm", "figure4-error-cgm", "figure5-accuracy-real"):
        for ending in ("pdf", "png"):
            assert (tmp_path / "out" / f"{name}.{ending}").stat().st_size > 5_000


def test_a_fit_that_ctrl_c_cut_short_is_not_kept(tmp_path, monkeypatch):
    class Cut:
        def fit(self, X, y):
            self.posterior_ = self
            self.info = self
            self.interrupted = True
            return self

    monkeypatch.setattr(restarts, "estimator_of", lambda config, split: Cut())
    result = paper("tables", "--datasets", "iris", "--methods", "wu", "--out", str(tmp_path), *TINY)
    assert result.exit_code == 130
    assert "stopped: 0 of 10" in result.output


def test_grid_prints_the_chosen_set_beside_table_4(tmp_path):
    arguments = ("--datasets", "iris", "--methods", "cgm,smc", "--most", "2", *TINY)
    result = paper("grid", *arguments, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "CGM on iris, 3 of 275 sets" in result.output
    assert "alpha=0.1, alpha_split=1.2, beta_split=2.8" in result.output
    assert len(pandas.read_csv(tmp_path / "grid-smc-iris.csv")) == 3
    assert len(pandas.read_csv(tmp_path / "grid.csv")) == 2
    again = paper("grid", *arguments, "--out", str(tmp_path))
    assert "sets of CGM on iris: all 3 are there already" in again.output


def test_splits_compare_with_cart_and_a_forest(tmp_path):
    result = paper(
        "splits", "--datasets", "iris", "--methods", "hmc-df,smc", "--number", "2", "--chains", "2",
        "--out", str(tmp_path), *TINY,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table = pandas.read_csv(tmp_path / "splits.csv")
    assert set(table["method"]) == {"hmc-df", "smc", "cart", "forest"}
    assert len(table) == 8
    summary = pandas.read_csv(tmp_path / "splits-summary.csv").set_index(["method", "metric"])
    assert summary.loc[("forest", "log_score"), "minus_forest"] == 0
    assert "minus cart" in (tmp_path / "splits-differences.md").read_text()


def test_what_cannot_be_had_is_said_and_the_rest_runs(tmp_path, monkeypatch):
    def unreachable(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(raisin, "fetch_file", unreachable)
    arguments = ("--methods", "smc", "--restarts", "1", "--out", str(tmp_path), *TINY)
    result = paper("tables", "--datasets", "raisin,wine", *arguments)
    assert result.exit_code == 0, result.output
    assert "without raisin: cannot download the Raisin data" in result.output
    assert set(pandas.read_csv(tmp_path / "tables.csv")["dataset"]) == {"wine"}
    alone = paper("tables", "--datasets", "raisin", *arguments)
    assert alone.exit_code == 1
    assert "no data set left" in alone.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--methods", "bart"), "unknown method bart: there are cgm, smc, wu"),
        (("--datasets", "iris,boston"), "unknown data set boston"),
        (("--preset", "fast"), "unknown preset fast"),
    ],
)
def test_wrong_usage_says_what_there_is(tmp_path, arguments, message):
    result = paper("tables", *arguments, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("\u2502", " ").split())


def test_a_missing_data_folder_is_an_error(tmp_path):
    result = paper("tables", "--data-dir", str(tmp_path / "nowhere"), "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "does not exist" in result.output
