"""The commands as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import hamiltree
from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor, Posterior, plots
from hamiltree.cli import app
from hamiltree.cli.options import value_of
from hamiltree.cli.plot import KINDS
from hamiltree.estimators.classifier import INTERVAL_SEED
from hamiltree.inputs.encoding import encoding_of
from hamiltree.methods import METHODS
from hamiltree.methods.parameters import declared

SHORT = ["--n-chains", "2", "--n-warmup", "150", "--n-draws", "120"]


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with an unlucky header, new rows in another order, and numbers to regress on."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    n = 120
    table = pandas.DataFrame(
        {
            "Patient ID": [f"P{i:03d}" for i in range(n)],
            " Age (years) ": rng.integers(30, 90, n),
            "BMI, kg/m²": rng.normal(27, 4, n).round(1),
            "[bold]Clinic[/bold]": rng.choice(["North", "South", "West"], n),
            "<Grade>": rng.choice(["low", "medium", "high"], n),
        }
    )
    risk = (table[" Age (years) "] > 60) * 2.0 + (table["<Grade>"] == "high") * 2.0
    table["out?"] = np.where(rng.random(n) < 1 / (1 + np.exp(2 - 1.5 * risk)), "yes", "no")
    table.to_csv(folder / "patients.csv", index=False, encoding="utf-8-sig")
    new = table.head(5)[
        ["<Grade>", "BMI, kg/m²", "[bold]Clinic[/bold]", "Patient ID", " Age (years) "]
    ]
    new.to_csv(folder / "new.csv", index=False)
    table["cost"] = 3 * table[" Age (years) "] + rng.normal(0, 5, n)
    table[[" Age (years) ", "BMI, kg/m²", "cost"]].to_parquet(folder / "costs.parquet")
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    model = folder / "model.nc"
    result = run(
        "fit", folder / "patients.csv", "--target", "out?", "--drop", "Patient ID",
        "--ordinal", "<Grade>=low,medium,high", "-o", model, *SHORT,
    )  # fmt: skip
    return model, result


@pytest.fixture(scope="module")
def regression(folder):
    model = folder / "costs.nc"
    run("fit", folder / "costs.parquet", "-t", "cost", "-o", model, "--h", "0.05", *SHORT)
    return model


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


# ---------------------------------------------------------------------- fit


def test_fit_says_what_it_did(fitted):
    _, result = fitted
    for expected in (
        "patients.csv: 120 rows, 4 columns to learn from.",
        "Task: classification of 'out?': the target holds 2 different texts.",
        "[bold]Clinic[/bold]  one-hot, a column each: North, South, West",
        "ordinal: low = 0, medium = 1, high = 2",
        "The sampled trees have",
        "chains",
        "What next:",
    ):
        assert expected in result.stdout


def test_fit_is_what_the_estimator_does(folder, fitted):
    posterior = Posterior.load(fitted[0])
    names = ("Age (years)", "BMI, kg/m²", *(f"[bold]Clinic[/bold]={c}" for c in
             ("North", "South", "West")), "<Grade>")  # fmt: skip
    assert posterior.preprocessing.feature_names == names
    frame = pandas.read_csv(folder / "patients.csv", encoding="utf-8-sig")
    frame["<Grade>"] = frame["<Grade>"].map({"low": 0, "medium": 1, "high": 2})
    for clinic in ("North", "South", "West"):
        frame[f"[bold]Clinic[/bold]={clinic}"] = frame["[bold]Clinic[/bold]"] == clinic
    frame = frame.rename(columns=str.strip)
    X = frame[list(names)].astype(float)
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
            "n_draws must be an integer",
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
    assert "n_warmup was 150 and is 151" in refused
    refused = run(*command, "120", "-o", checkpoint, code=1).stderr
    assert "--checkpoint and --output are the same file" in refused


def test_ctrl_c_in_warm_up_says_how_to_go_on(folder, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hamiltree.running.chains.Chains._advance", stopped)
    command = ["fit", folder / "costs.parquet", "-t", "cost", "-o", tmp_path / "model.nc", *SHORT]
    said = run(*command, "--checkpoint", tmp_path / "run.nc", code=130).stderr
    assert "during warm-up" in said
    assert f"nothing is lost, the same call goes on from {tmp_path / 'run.nc'}" in said
    assert "there is nothing to keep" in run(*command, code=130).stderr


def test_missing_values_are_refused_or_left_out(folder, tmp_path):
    path = tmp_path / "holes.csv"
    frame = pandas.read_parquet(folder / "costs.parquet")
    frame.iloc[[3, 5], 0] = np.nan
    frame.iloc[5, 1] = np.nan
    frame.to_csv(path, index=False)
    model = tmp_path / "model.nc"
    refused = run("fit", path, "-t", "cost", "-o", model, code=1).stderr
    assert "missing values in 2 of 120 rows, in 'Age (years)' (2), 'BMI, kg/m²' (1)." in refused
    assert "--drop-missing" in refused
    result = run("fit", path, "-t", "cost", "-o", model, "--drop-missing", *SHORT)
    assert "left out 2 of 120 rows" in result.stderr
    assert Posterior.load(model).table.n_rows == 118


def test_every_parameter_is_an_option(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = run("fit", "--help").output
    owners = (BayesianTreeClassifier, BayesianTreeRegressor, *METHODS.values())
    names = {f.name for owner in owners for f in declared(owner)}
    for name in names - {"random_state", "progress", "warm_start", "likelihood_power"}:
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

    words = refused("--method", "cgm", "--replicas", "6")
    assert "--replicas does not belong to --method cgm: it is an option of hmc-df, hmc-dfi" in words
    assert "method='cgm' does not use h" in refused("--method", "cgm", "--h", "0.05")
    assert "method='smc' does not use n_warmup" in refused("--method", "smc", "--n-warmup", "9")
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


# ---------------------------------------------------------------------- what takes a model


def test_predict_reads_columns_in_any_order(folder, fitted, tmp_path):
    posterior = Posterior.load(fitted[0])
    result = run("predict", fitted[0], folder / "new.csv", "--keep", "Patient ID")
    path = tmp_path / "out.csv"
    path.write_text(result.stdout)
    found = pandas.read_csv(path)
    training = posterior.training.X[:5]  # new.csv holds the first five rows of the training table
    mean = posterior.predict_mean(training)
    low, high = posterior.predict_probability_quantiles(training, (0.05, 0.95), INTERVAL_SEED)
    assert found["Patient ID"].tolist() == [f"P{i:03d}" for i in range(5)]
    np.testing.assert_allclose(found["probability_yes"], mean[:, 1], rtol=1e-12)
    np.testing.assert_allclose(found["low_yes"], low[:, 1], rtol=1e-12)
    np.testing.assert_allclose(found["high_no"], high[:, 0], rtol=1e-12)
    assert found["prediction"].tolist() == np.array(["no", "yes"])[mean.argmax(axis=1)].tolist()


def test_predict_numbers_to_a_file(folder, regression, tmp_path):
    path = tmp_path / "out.csv"
    result = run("predict", regression, folder / "costs.parquet", "-o", path, "--coverage", "0.5")
    assert "ignored 'cost'" in result.stderr
    assert result.stdout == ""
    posterior, found = Posterior.load(regression), pandas.read_csv(path)
    mean, sd = posterior.predict_mean_std(posterior.training.X)
    low, high = posterior.predict_quantiles(posterior.training.X, (0.25, 0.75))
    np.testing.assert_allclose(found["prediction"], mean, rtol=1e-12)
    np.testing.assert_allclose(found[["sd", "low", "high"]].T, [sd, low, high], rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a\n1\n", "the table lacks 'Age (years)'"),
        (
            'Age (years),"BMI, kg/m²",[bold]Clinic[/bold],<Grade>\n50,30,East,low\n',
            "never saw: 'East' (1 row); it knows North, South, West",
        ),
        (
            'Age (years),"BMI, kg/m²",[bold]Clinic[/bold],<Grade>\nold,30,West,low\n',
            "'Age (years)' should hold numbers, not 'old' (1 row)",
        ),
    ],
)
def test_predict_explains_what_is_wrong(text, complaint, fitted, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(text, "utf-8")
    result = run("predict", fitted[0], path, code=1)
    assert complaint in result.stderr
    assert result.stdout == ""


def test_summary(fitted):
    text = run("summary", fitted[0]).stdout
    assert "The sampled trees have" in text
    assert "chains" in text
    found = json.loads(run("summary", fitted[0], "--json").stdout)
    posterior = Posterior.load(fitted[0])
    assert found["diagnosis"]["sentence"] == posterior.diagnose().sentence
    assert sum(found["leaves"].values()) == pytest.approx(1)
    assert found["classes"] == ["no", "yes"]


def test_summary_can_check(fitted, tmp_path):
    posterior = Posterior.load(fitted[0])
    code = 0 if posterior.diagnose().converged else 3
    run("summary", fitted[0], "--check", code=code)
    short = tmp_path / "short.nc"
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(12)))
    run("fit", table, "-t", "y", "-o", short, "--n-chains", "1", "--n-draws", "5")
    assert "cannot be judged" in run("summary", short, "--check", code=3).stdout


def test_tree(fitted, tmp_path):
    posterior = Posterior.load(fitted[0])
    assert run("tree", fitted[0]).stdout == posterior.best_tree().to_text() + "\n"
    representative = run("tree", fitted[0], "--which", "representative").stdout
    assert representative == posterior.representative_tree().to_text() + "\n"
    shapes = run("tree", fitted[0], "--which", "shapes", "-n", "2").stdout
    assert posterior.shapes(2)[1].text in shapes
    draw = run("tree", fitted[0], "--chain", 1, "--draw", -1, "--json").stdout
    assert json.loads(draw) == posterior.tree(1, -1).to_dict()
    as_json = json.loads(run("tree", fitted[0], "--which", "shapes", "--json").stdout)
    assert as_json[0]["probability"] == posterior.shapes(1)[0].probability
    run("tree", fitted[0], "-o", tmp_path / "tree.png")
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    run("tree", fitted[0], "-o", tmp_path / "tree.dot")
    assert (tmp_path / "tree.dot").read_text("utf-8").startswith("digraph")
    assert "out of range" in run("tree", fitted[0], "--chain", 9, "--draw", 0, code=1).stderr
    run("tree", fitted[0], "--chain", 0, code=2)


def test_the_plots_of_the_command_line_are_those_of_the_library():
    assert {f"plot_{kind.replace('-', '_')}" for kind in KINDS} | {"plot_tree"} == set(
        plots.__all__
    )


@pytest.mark.parametrize("kind", KINDS)
def test_plot(kind, folder, fitted, tmp_path):
    needs_rows = kind in ("calibration", "predictions")
    path = tmp_path / "plot.svg"
    if needs_rows:
        assert "needs --data" in run("plot", fitted[0], kind, "-o", path, code=1).stderr
    data = ["--data", folder / "patients.csv"] if needs_rows else []
    run("plot", fitted[0], kind, "-o", path, *data)
    assert "<svg" in path.read_text("utf-8")


def test_plot_takes_its_options(fitted, tmp_path):
    path = tmp_path / "plot.png"
    run("plot", fitted[0], "thresholds", "--feature", "Age (years)", "-o", path)
    run("plot", fitted[0], "trace", "--quantity", "n_leaves", "-o", path)
    run("plot", fitted[0], "partial-dependence", "--label", "no", "-o", path)
    assert (
        "leaves has no --feature"
        in run("plot", fitted[0], "leaves", "--feature", "x", code=1).stderr
    )
    refused = run("plot", fitted[0], "partial-dependence", "--label", "maybe", code=1).stderr
    assert "there is no class 'maybe'" in refused
    run("plot", fitted[0], "unknown", code=2)


def test_report(fitted, tmp_path):
    page = tmp_path / "report.html"
    result = run("report", fitted[0], "-o", page, "--title", "Who comes back?", "--draws", "50")
    assert "open it in a browser" in result.stderr
    text = page.read_text("utf-8")
    assert "<title>Who comes back?</title>" in text
    assert "of patients.csv" in text


@pytest.mark.parametrize("command", ["summary", "tree", "report", "predict", "plot"])
def test_a_file_that_is_no_model_is_refused(command, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rest = {"predict": [folder / "new.csv"], "plot": ["leaves"]}.get(command, [])
    assert "No such file" in run(command, "nothing.nc", *rest, code=1).stderr
    assert "not a readable NetCDF file" in run(command, folder / "new.csv", *rest, code=1).stderr
    assert list(tmp_path.iterdir()) == []


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


def test_the_encoding_travels_with_the_model(fitted):
    encoding = encoding_of(Posterior.load(fitted[0]))
    assert encoding.target == "out?"
    assert [column.kind for column in encoding.columns] == [
        "number",
        "number",
        "one-hot",
        "ordinal",
    ]
