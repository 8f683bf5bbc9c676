"""Display names and units: from mappings and files, what is refused, and what they change."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

from hamiltree import BayesianTreeClassifier
from hamiltree.cli import app
from hamiltree.inputs.encoding import Column, Encoding, TrainingTable
from hamiltree.inputs.tables import TableError
from hamiltree.report import report_html
from hamiltree.report.contents import contents
from hamiltree.report.names import Display, displays_of, with_names
from hamiltree.report.performance import performance

from ..support.fake_draws import fake_posterior, fake_rows

GIVEN = {
    "age": {"label": "Age at entry", "unit": "years"},
    "width": "Width of the leaf",
    "target": {"label": "Tree", "values": {"ash": "Fraxinus", "beech": "Fagus"}},
}
CSV = """column,label,unit,value
age,Age at entry,years,
width,Width of the leaf,,

target,Tree,,
target,Fraxinus,,ash
target,Fagus,,beech
"""


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(found[1])


def test_a_mapping_json_and_csv_say_the_same(tmp_path):
    (tmp_path / "names.json").write_text(json.dumps(GIVEN), "utf-8")
    (tmp_path / "names.csv").write_text(CSV, "utf-8")
    (tmp_path / "semicolons.csv").write_text("\ufeff" + CSV.replace(",", ";"), "utf-8")
    expected = displays_of(GIVEN)
    assert expected["age"] == Display("Age at entry", "years")
    assert expected["target"].values == {"ash": "Fraxinus", "beech": "Fagus"}
    for name in ("names.json", "names.csv", "semicolons.csv"):
        assert displays_of(tmp_path / name) == expected
    assert displays_of(None) == {}


def test_the_page_shows_them_everywhere_and_keeps_the_tables_own(seed):
    post = fake_posterior(seed, n_training=30, n_draws=30)
    page = report_html(post, X_test=fake_rows(9), y_test=["ash", "beech", "cedar"] * 3, names=GIVEN)
    data = data_of(page)
    assert data["classes"] == ["Fraxinus", "Fagus", "cedar"]
    assert data["classValues"] == ["ash", "beech", "cedar"]
    assert data["target"] == "Tree"
    names = [entry["name"] for entry in data["inputs"]]
    assert names == ["length", "Width of the leaf", "mass (kg)", "Age at entry"]
    assert [entry["column"] for entry in data["inputs"]] == ["length", "width", "mass (kg)", "age"]
    assert [entry["unit"] for entry in data["inputs"]] == ["", "", "", "years"]
    assert {column["unit"] for column in data["columns"] if column["source"] == "Age at entry"} == {
        "years"
    }
    shown = {feature["name"] for feature in data["features"]}
    assert "Age at entry" in shown
    assert "age" not in shown
    assert any("Age at entry" in item["text"] for item in data["featured"])
    assert "Decision trees for Tree" in page
    plain = performance(post, fake_rows(9), np.array(["ash", "beech", "cedar"] * 3))
    assert data["performance"]["accuracy"] == plain["accuracy"]


def test_predictions_stay_the_same(seed):
    post = fake_posterior(seed)
    renamed = with_names(post, displays_of(GIVEN))
    rows = post.preprocessing.rows(fake_rows(5))
    np.testing.assert_array_equal(renamed.predict_mean(rows), post.predict_mean(rows))
    assert post.preprocessing.used_names[1] == "width"  # the model's own are untouched


def test_categories_of_a_table_are_named(tmp_path):
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(
        {"sex": rng.choice(["0", "1"], 60), "site": rng.choice(["a", "b", "c"], 60)}
    )
    y = np.where(X["sex"] == "1", 1, 0)
    model = BayesianTreeClassifier(n_chains=2, n_warmup=20, n_draws=20, random_state=0).fit(X, y)
    names = {
        "sex": {"label": "Sex", "values": {"0": "female", "1": "male"}},
        "target": {"label": "Readmitted", "values": {"0": "no", "1": "yes"}},
    }
    data = data_of(model.report(tmp_path / "page.html", X, y, names=names).read_text("utf-8"))
    (sex,) = (entry for entry in data["inputs"] if entry["name"] == "Sex")
    assert sex["categories"] == ["female", "male"]
    assert sex["values"] == ["0", "1"]
    assert data["classes"] == ["no", "yes"]
    (column,) = (entry for entry in data["columns"] if entry["name"] == "Sex")
    assert column["labels"] == ["female", "male"]


def test_the_targets_own_name_is_known_where_there_was_a_table(seed):
    post = fake_posterior(seed)
    names = post.preprocessing.feature_names
    encoding = Encoding(tuple(Column(name, "number") for name in names), "outcome")
    post.table = TrainingTable(encoding, "table.csv")
    assert contents(post, displays=displays_of({"outcome": "Tree"}))["target"] == "Tree"
    assert contents(post, displays=displays_of({"target": "Tree"}))["target"] == "Tree"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"agee": "Age"}, r"no column 'agee' \(did you mean 'age'\?\); the columns are 'length'"),
        ({"age": "width"}, "several columns would be shown as width"),
        ({"age": {"labels": "Age"}}, "'age' needs a text, or label, unit and values"),
        ({"age": 3}, "'age' needs a text"),
        ({"age": {"label": 3}}, "must be texts"),
        ({"age": {"values": {"1": ""}}}, "a value of 'age' has no label"),
        ({"age": {"values": {"1": "one"}}}, "'age' has no value '1'; it has numbers"),
        ({"target": {"values": {"oak": "Quercus"}}}, r"no value 'oak'.*it has 'ash', 'beech'"),
        ({"target": {"values": {"ash": "cedar"}}}, "two classes would be shown under one label"),
    ],
)
def test_what_does_not_fit_is_refused(names, message, seed):
    with pytest.raises(TableError, match=message):
        report_html(fake_posterior(seed), names=names)


def test_a_number_has_no_classes_to_name(seed):
    with pytest.raises(TableError, match="is a number: it has no values to name"):
        report_html(fake_posterior(seed, n_classes=0), names={"target": {"values": {"1": "one"}}})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("names.csv", "name,label\nage,Age\n", "needs a header with column and label.*'name'"),
        ("names.csv", "", "needs a header.*it has none"),
        ("names.csv", "column,label\nage,Age,years\n", "line 2 has 3 cells, not 2"),
        ("names.csv", "column,label\nage,Age\nage,Years\n", "line 3 names 'age' a second time"),
        ("names.csv", "column,label,value\nsex,m,1\nsex,f,1\n", "line 3 names '1' a second time"),
        ("names.json", "{", "names.json is not readable JSON"),
        ("names.json", "[1]", "must hold an object"),
        ("names.txt", "age", "ends in .csv or .json"),
    ],
)
def test_files_that_cannot_be_read_say_why(name, text, message, tmp_path):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(TableError, match=message):
        displays_of(path)


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        displays_of(tmp_path / "none.csv")
    (tmp_path / "names.csv").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(TableError, match="not text in UTF-8"):
        displays_of(tmp_path / "names.csv")


def test_the_command_line_takes_a_file(tmp_path, seed):
    fake_posterior(seed, n_training=20).save(tmp_path / "model.nc")
    (tmp_path / "names.csv").write_text(CSV, "utf-8")
    out = tmp_path / "page.html"
    command = ["report", str(tmp_path / "model.nc"), "-o", str(out), "--names"]
    done = CliRunner().invoke(app, [*command, str(tmp_path / "names.csv")])
    assert done.exit_code == 0, done.output
    assert data_of(out.read_text("utf-8"))["target"] == "Tree"
    (tmp_path / "bad.csv").write_text("column,label\nagee,Age\n", "utf-8")
    done = CliRunner().invoke(app, [*command, str(tmp_path / "bad.csv")])
    assert done.exit_code == 1
    assert "did you mean 'age'?" in done.output
