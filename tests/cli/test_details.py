"""Digits, names, advice, held-out rows: what makes the commands pleasant to use."""

from __future__ import annotations

import json

import pandas
import pytest

import hamiltree
from hamiltree import Posterior
from hamiltree.cli.screen import in_options

from ..support.cli import run


def test_predict_prints_json_and_every_digit_if_asked(folder, fitted, regression, tmp_path):
    table = run("predict", fitted[0], folder / "new.csv", "--full-precision").stdout
    (tmp_path / "all.csv").write_text(table)
    exact = pandas.read_csv(tmp_path / "all.csv")
    rows = json.loads(
        run("predict", fitted[0], folder / "new.csv", "--json", "--keep", "Patient ID").stdout
    )
    assert [row["Patient ID"] for row in rows] == [f"P{i:03d}" for i in range(5)]
    shown = [row["probability_yes"] for row in rows]
    assert shown == [round(value, 4) for value in exact["probability_yes"]]
    path = tmp_path / "rows.json"
    run("predict", regression, folder / "costs.parquet", "--json", "-o", path)
    sd = Posterior.load(regression).preprocessing.y_sd
    assert 10 <= sd < 100
    assert all(row["sd"] == round(row["sd"], 1) for row in json.loads(path.read_text()))


def test_version_as_an_option():
    assert run("--version").stdout == run("version").stdout
    assert f"hamiltree {hamiltree.__version__}" in run("--version").stdout


def test_advice_names_options_of_the_command_line(folder, tmp_path):
    result = run(
        "fit", folder / "patients.csv", "--target", "out?", "--drop", "Patient ID",
        "-o", tmp_path / "m.nc", "--n-chains", "2", "--n-warmup", "20", "--n-draws", "20",
    )  # fmt: skip
    assert "run longer: --n-warmup 500, --n-draws 500." in result.stdout
    assert "n_warmup=" not in result.output
    facts = json.loads(run("summary", tmp_path / "m.nc", "--json").stdout)
    assert "--n-draws 500" in facts["sentence"]
    assert "--n-draws 500" in facts["diagnosis"]["sentence"]
    assert in_options("use n_chains=4.") == "use --n-chains 4."
    assert in_options("set target_rhat=1.01.") == "set --target-rhat 1.01."


def test_a_plot_of_a_feature_with_categories(fitted, tmp_path):
    path = tmp_path / "clinic.png"
    run("plot", fitted[0], "partial-dependence", "--feature", "[bold]Clinic[/bold]", "-o", path)
    assert path.stat().st_size > 5000
    both = tmp_path / "both.png"
    run(
        "plot", fitted[0], "partial-dependence", "--feature", "Age (years)",
        "--feature", "BMI, kg/m²", "-o", both,
    )  # fmt: skip
    assert both.stat().st_size > 5000
    wrong = run("plot", fitted[0], "thresholds", "--feature", "a", "--feature", "b", code=1)
    assert "thresholds shows one feature, got 2" in wrong.output


def test_report_with_held_out_rows(folder, fitted, regression, tmp_path):
    page = tmp_path / "page.html"
    table = pandas.read_csv(folder / "patients.csv", encoding="utf-8-sig").tail(40)
    table.to_csv(tmp_path / "held_out.csv", index=False)
    run("report", fitted[0], "-o", page, "--test", tmp_path / "held_out.csv")
    assert "On 40 rows that the trees have not seen" in page.read_text("utf-8")
    run("report", regression, "-o", page, "--test", folder / "costs.parquet")
    assert "On 120 rows that the trees have not seen" in page.read_text("utf-8")
    wrong = run("report", fitted[0], "-o", page, "--test", folder / "new.csv", code=1)
    assert "new.csv lacks the target's column 'out?'" in wrong.output


def test_held_out_rows_for_a_model_that_was_fitted_in_python(tmp_path):
    table = pandas.DataFrame({"x": range(30), "sick": [k > 12 for k in range(30)]})
    model = hamiltree.BayesianTreeClassifier(n_chains=2, n_warmup=30, n_draws=30, random_state=0)
    model.fit(table[["x"]], table["sick"]).save(tmp_path / "m.nc")
    table.to_csv(tmp_path / "t.csv", index=False)
    rows, page = tmp_path / "t.csv", tmp_path / "page.html"
    refused = run("report", tmp_path / "m.nc", "-o", page, "--test", rows, code=1).stderr
    assert "does not know the name of its target: --target NAME" in refused
    run("report", tmp_path / "m.nc", "-o", page, "--test", rows, "--target", "sick")
    assert "On 30 rows that the trees have not seen" in page.read_text("utf-8")
    plot = ("plot", tmp_path / "m.nc", "calibration", "-o", tmp_path / "p.svg", "--data", rows)
    assert "see --target" in run(*plot, code=1).stderr
    run(*plot, "--target", "sick")
    refused = run("report", tmp_path / "m.nc", "-o", page, "--test", rows, "-t", "x", code=1)
    assert "has classes in 'x' that training did not have" in refused.stderr


def test_new_rows_are_read_as_the_training_table_was(tmp_path):
    """What means missing, and the decimal mark, need not be said again."""
    lines = [f"{k},5;{'?' if k == 3 else k % 4};{'ab'[k > 9]}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["x;n;y", *lines]))
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.nc", "--missing", "?",
        "--decimal", ",", "--n-chains", "2", "--n-warmup", "20", "--n-draws", "20")  # fmt: skip
    (tmp_path / "new.csv").write_text("x;n\n3,5;?\n4,5;1\n")
    new = run("predict", tmp_path / "m.nc", tmp_path / "new.csv", "--full-precision").stdout
    (tmp_path / "out.csv").write_text(new)
    model = hamiltree.load(tmp_path / "m.nc")
    expected = model.predict_proba(pandas.DataFrame({"x": [3.5, 4.5], "n": [None, 1.0]}))[:, 1]
    assert pandas.read_csv(tmp_path / "out.csv")["probability_b"].tolist() == expected.tolist()
    run("report", tmp_path / "m.nc", "-o", tmp_path / "r.html", "--test", tmp_path / "t.csv")


def test_weights_of_classes_as_an_option(folder, tmp_path):
    command = ("fit", folder / "patients.csv", "--target", "out?", "--drop", "Patient ID",
               "--n-chains", "2", "--n-warmup", "20", "--n-draws", "20")  # fmt: skip
    run(*command, "-o", tmp_path / "m.nc", "--class-weight", "yes=3, no=1")
    model = hamiltree.load(tmp_path / "m.nc")
    assert model.class_weight == {"yes": 3, "no": 1}
    result = run(*command, "-o", tmp_path / "n.nc", "--class-weight", "maybe=3", code=1)
    assert "maybe" in result.output


@pytest.mark.parametrize("labels", [("TRUE", "FALSE"), ("1", "0"), ("1", "few")])
def test_weights_of_classes_that_look_like_other_values(labels, tmp_path):
    rows = [f"{k},{labels[k % 2]}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows]))
    given = ("--class-weight", f"{labels[0]}=3", "--informed-moves", "change")
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.nc", "--n-chains", "2",
        "--n-warmup", "20", "--n-draws", "20", *given)  # fmt: skip
    model = hamiltree.load(tmp_path / "m.nc")
    (label,) = model.class_weight
    assert label in model.classes_.tolist()
    assert str(label) == labels[0]
    assert model.method.informed_moves == ("change",)
