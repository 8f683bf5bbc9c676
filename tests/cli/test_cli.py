"""The commands as a user types them: those that fit, and what all have in common."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import hamiltree
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior
from hamiltree.cli import app
from hamiltree.cli.options import value_of
from hamiltree.methods import METHODS
from hamiltree.methods.parameters import declared

from ..support.cli import SHORT, run


def test_version():
    assert run("version").output.startswith(f"hamiltree {hamiltree.__version__} (Python ")


def test_the_module_is_the_command(folder):
    done = subprocess.run(
        [sys.executable, "-m", "hamiltree", "version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("hamiltree ")
    assert done.returncode == 0


@pytest.mark.parametrize(
    "command", [c.name or c.callback.__name__ for c in app.registered_commands]
)
def test_every_command_has_help_with_examples(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = run(command, "--help").output
    if command != "version":
        assert f"hamiltree {command}" in text.split("Examples")[1]


def test_compile_takes_every_kernel_that_is_not_compiled_yet(monkeypatch):
    """Without compiling, which `make test` does before all tests."""
    taken = []
    monkeypatch.setattr("hamiltree.cli.compile.compile_with_bar", lambda u: taken.extend(u) or 1.0)
    said = run("compile").output
    if taken:
        assert f"Compiled {len(taken)} kernels" in said
        assert not any(unit.is_compiled for unit in taken)
    else:
        assert "kernels are compiled already" in said


def test_the_demo_ends_with_sentence_tree_and_paths(tmp_path):
    result = run("demo", "--out", tmp_path / "new")
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written == {"leaves.png", "trace.png", "tree.png", "model.nc", "report.html"}
    order = [
        "478 biopsies",
        "all trees together",
        "The sampled trees have",
        "R-hat",
        " <= ",
        "yes: ",
    ]
    places = [result.output.index(text) for text in [*order, "tree.png", "report.html"]]
    assert places == sorted(places)
    page = tmp_path / "new" / "report.html"
    assert page.stat().st_size < 1_500_000
    assert "Uniformity of cell size" in page.read_text("utf-8")


# ---------------------------------------------------------------------- fit


def test_fit_says_what_it_did(fitted):
    _, result = fitted
    for expected in (
        "patients.csv: 120 rows, 4 columns to learn from.",
        "Task: classification of 'out?': the target holds 2 different texts.",
        "[bold]Clinic[/bold]  category: North, South, West",
        "ordinal: low = 0, medium = 1, high = 2",
        "The sampled trees have",
        "chains",
        "What next:",
    ):
        assert expected in result.stdout


def test_fit_is_what_the_estimator_does(folder, fitted):
    posterior = Posterior.load(fitted[0])
    names = ("Age (years)", "BMI, kg/m²", "[bold]Clinic[/bold]", "<Grade>")
    assert posterior.preprocessing.feature_names == names
    frame = pandas.read_csv(folder / "patients.csv", encoding="utf-8-sig")
    order = ["low", "medium", "high"]
    frame["<Grade>"] = pandas.Categorical(frame["<Grade>"], order, ordered=True)
    frame = frame.rename(columns=str.strip)
    X = frame[list(names)]
    model = BayesianTreeClassifier(n_chains=2, n_warmup=150, n_draws=120, random_state=0)
    expected = model.fit(X, frame["out?"]).posterior_
    np.testing.assert_array_equal(posterior.log_posterior, expected.log_posterior)


def test_fit_as_json(folder):
    arguments = ["fit", folder / "costs.parquet", "-t", "cost", "-o", folder / "json.nc"]
    result = run(*arguments, "--json", "--method", "cgm", "--seed", "3", *SHORT)
    found = json.loads(result.stdout)
    assert found["task"] == "regression"
    assert found["method"] == "cgm"
    assert found["encoding"] == {"Age (years)": "as it is", "BMI, kg/m²": "as it is"}
    assert found["model"] == str(folder / "json.nc")
    assert Posterior.load(found["model"]).training is not None


def test_rows_can_be_kept_out_of_the_file(folder, fitted):
    model = folder / "private.nc"
    run("fit", folder / "costs.parquet", "-t", "cost", "-o", model, "--without-data", *SHORT)
    assert Posterior.load(model).training is None
    run("report", model, "-o", folder / "private.html")
    assert (
        "needs the training data" in run("tree", model, "--which", "representative", code=1).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--target", "outt"], "there is no column 'outt' (did you mean 'out?'?)"),
        (["--target", "out?"], "'Patient ID' has 120 different texts"),
        (["-t", "out?", "--drop", "nothing"], "there is no column 'nothing'"),
        (["-t", "out?", "--drop", "out?"], "is the target"),
        (["-t", "out?", "--drop", "Patient ID", "--h", "-1"], "h must be a number of at least 0"),
        (
            ["-t", "out?", "--drop", "Patient ID", "--n-draws", "few"],
            "--n-draws must be an integer",
        ),
        (["-t", "out?", "--drop", "Patient ID", "--mu-prior", "0,1"], "does not belong to classif"),
        (["-t", "out?", "--drop", "Patient ID", "--ordinal", "<Grade>"], "--ordinal needs NAME="),
        (["-t", "out?", "--drop", "Patient ID", "--task", "regression"], "--task classification"),
        (["-t", "out?", "-o", "no/where.nc"], "no folder"),
    ],
)
def test_fit_explains_what_is_wrong(arguments, complaint, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("fit", folder / "patients.csv", *arguments, code=1)
    assert result.stdout == "" or "goes into the trees" in result.stdout
    assert result.stderr.startswith("error: ")
    assert complaint in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_fit_lists_all_problems_at_once_and_points_at_row_numbers(tmp_path):
    path = tmp_path / "table.csv"
    rows = [
        f"{i},2024-01-{i % 28 + 1:02d},{'?' if i == 3 else i % 7},p{i},{i % 2}" for i in range(80)
    ]
    path.write_text("row,when,dose,name,y\n" + "\n".join([*rows, "80,2024-01-01,1,p0,"]))
    said = run("fit", path, "-t", "y", code=1).stderr
    assert "note: 'row' numbers the rows from 0 to 80" in said
    assert "--drop 'row'" in said
    assert "the table has 4 problems:" in said
    for number, reason in enumerate(
        (
            "the target 'y' is missing in 1 of 81 rows",
            "the column 'when' holds dates or times, such as '2024-01-01'",
            "the column 'dose' holds numbers, but also '?' (1 row)",
            "the column 'name' has 80 different texts",
        ),
        start=1,
    ):
        assert f"\n  {number}. {reason}" in said


def test_an_excel_table_is_read_as_a_csv_is(folder, fitted, tmp_path):
    pytest.importorskip("openpyxl", reason="needs the extra excel")
    new = pandas.read_csv(folder / "new.csv")
    new.to_excel(tmp_path / "new.xlsx", index=False)
    from_excel = run("predict", fitted[0], tmp_path / "new.xlsx").stdout
    assert from_excel == run("predict", fitted[0], folder / "new.csv").stdout
    (tmp_path / "new.txt").write_bytes(new.to_csv(sep="\t", index=False).encode("utf-16"))
    assert from_excel == run("predict", fitted[0], tmp_path / "new.txt").stdout


def test_a_run_goes_on_from_its_checkpoint(folder, fitted, tmp_path):
    """The same command again, with more draws, makes those of one run; a signal keeps the run."""
    checkpoint, model = tmp_path / "run.nc", tmp_path / "model.nc"
    command = [
        "fit", folder / "patients.csv", "--target", "out?", "--drop", "Patient ID",
        "--ordinal", "<Grade>=low,medium,high", "-o", model, "--checkpoint", checkpoint,
        "--n-chains", "2", "--n-warmup", "150", "--n-draws",
    ]  # fmt: skip
    run(*command, "60")
    run(*command, "120")
    one, other = Posterior.load(model), Posterior.load(fitted[0])
    np.testing.assert_array_equal(one.log_posterior, other.log_posterior)
    refused = run(*command, "120", "--n-warmup", "151", code=1).stderr
    assert "--n-warmup was 150 and is 151" in refused
    refused = run(*command, "120", "-o", checkpoint, code=1).stderr
    assert "--checkpoint and --output are the same file" in refused


def test_ctrl_c_in_warm_up_says_how_to_go_on(folder, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hamiltree.running.chains.Chains._advance", stopped)
    command = ["fit", folder / "costs.parquet", "-t", "cost", "-o", tmp_path / "model.nc", *SHORT]
    said = run(*command, "--checkpoint", tmp_path / "run.nc", code=130).stderr
    assert "during warm-up" in said
    assert f"nothing is lost, the same call resumes from {tmp_path / 'run.nc'}" in said
    assert "there is nothing to keep" in run(*command, code=130).stderr


def test_missing_values_are_part_of_the_table_or_left_out(folder, tmp_path):
    path = tmp_path / "holes.csv"
    frame = pandas.read_parquet(folder / "costs.parquet")
    frame.iloc[[3, 5], 0] = np.nan
    frame.iloc[5, 1] = np.nan
    frame.to_csv(path, index=False)
    model = tmp_path / "model.nc"
    run("fit", path, "-t", "cost", "-o", model, "--method", "cgm", *SHORT)
    assert Posterior.load(model).table.n_rows == 120
    table = run("predict", model, path).stdout
    assert len(pandas.read_csv(io.StringIO(table))) == 120
    frame.iloc[7, frame.columns.get_loc("cost")] = np.nan
    frame.to_csv(tmp_path / "unknown.csv", index=False)
    refused = run("fit", tmp_path / "unknown.csv", "-t", "cost", "-o", model, code=1).stderr
    assert "the target 'cost' is missing in 1 of 120 rows" in refused
    result = run("fit", path, "-t", "cost", "-o", model, "--drop-missing", *SHORT)
    assert "left out 2 of 120 rows" in result.stderr
    assert Posterior.load(model).table.n_rows == 118


def test_every_parameter_is_an_option(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = run("fit", "--help").output
    owners = (BayesianTreeClassifier, BayesianTreeRegressor, *METHODS.values())
    names = {f.name for owner in owners for f in declared(owner)}
    own = {"random_state", "progress", "warm_start", "likelihood_power", "categorical_features"}
    for name in names - own:
        assert f"--{name.replace('_', '-')} " in text


def test_what_most_users_need_fits_one_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("fit", "--help").output.splitlines()
    first = lines[:24]
    assert lines[24].startswith("╭─") or any(line.startswith("╰") for line in first[-2:])
    for name in ("target", "output", "method", "preset", "h", "n-draws", "target-rhat", "help"):
        assert any(f"--{name} " in line for line in first), name
    panels = [line.split(" ")[1] for line in lines if line.startswith("╭─")]
    assert panels[:2] == ["Arguments", "Options"]
    assert panels[-4:] == ["HMC-DF", "CGM", "WU", "SMC"]


def test_options_of_another_method_or_task_are_refused_by_name(folder, tmp_path):
    def refused(*arguments):
        table = folder / "costs.parquet"
        return run("fit", table, "-t", "cost", "-o", tmp_path / "m.nc", *arguments, code=1).stderr

    words = refused("--method", "cgm", "--leaf-means", "explicit")
    assert "--leaf-means does not belong to --method cgm: it is an option of hmc-df" in words
    words = refused("--method", "cgm", "--h", "0.05")
    assert "--method cgm does not use h, got --h 0.05: its splits are hard. Leave out --h" in words
    words = refused("--method", "smc", "--n-warmup", "9")
    assert "--method smc does not use --n-warmup, got --n-warmup 9" in words
    words = refused("--method", "wu", "--alpha-split", "0.5")
    assert "Leave it out, and set --expected-splits and --left-share of WU instead" in words
    assert "--n-chains must be an integer of at least 1, got 0" in refused("--n-chains", "0")
    assert "--class-mass does not belong to regression" in refused("--class-mass", "1")
    assert "method must be one of" in refused("--method", "bart", "--replicas", "6")


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("1e-3", 1e-3), ("cgm", "cgm"), ("0.4, 0.4,0.2", (0.4, 0.4, 0.2)),
     ("true", True), ("False", False), ("auto", "auto")],
)  # fmt: skip
def test_values_of_options(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_one_value_of_several_and_names_of_pairs():
    assert value_of("grow", "sequence of str") == ("grow",)
    assert value_of("2", "array") == (2,)
    assert value_of("TRUE=3, a=b=1", "dict or str") == {"TRUE": 3, "a=b": 1}


def test_an_error_shows_where_it_was_raised_if_asked(monkeypatch):
    monkeypatch.setenv("HAMILTREE_TRACEBACK", "1")
    result = CliRunner().invoke(app, ["summary", "nothing.nc"])
    assert isinstance(result.exception, FileNotFoundError)


def test_bench_needs_the_repository(tmp_path, monkeypatch):
    from hamiltree.cli import bench

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "SOURCE", tmp_path)
    assert "part of the repository" in run("bench", code=1).stderr
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys; sys.exit(len(sys.argv))")
    run("bench", "a", "b", code=3)


@pytest.mark.parametrize("arguments", [["unknown"], ["demo", "--seed", "x"], ["fit"], ["predict"]])
def test_wrong_usage_fails(arguments):
    run(*arguments, code=2)
