"""The commands that take a fitted model."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from hamiltree import Posterior, plots
from hamiltree.cli.plot import KINDS
from hamiltree.cli.screen import in_options
from hamiltree.estimators.classifier import INTERVAL_SEED
from hamiltree.inputs.encoding import encoding_of

from ..support.cli import run


def test_predict_reads_columns_in_any_order(folder, fitted, tmp_path):
    posterior = Posterior.load(fitted[0])
    result = run(
        "predict", fitted[0], folder / "new.csv", "--keep", "Patient ID", "--full-precision"
    )
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
    result = run(
        "predict",
        regression,
        folder / "costs.parquet",
        "-o",
        path,
        "--coverage",
        "0.5",
        "--full-precision",
    )
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
    assert found["diagnosis"]["sentence"] == in_options(posterior.diagnose().sentence)
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
    assert "cannot be judged" in run("summary", short, "--check", code=4).stdout


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


def test_the_encoding_travels_with_the_model(fitted):
    encoding = encoding_of(Posterior.load(fitted[0]))
    assert encoding.target == "out?"
    assert [column.kind for column in encoding.columns] == [
        "number",
        "number",
        "category",
        "ordinal",
    ]
