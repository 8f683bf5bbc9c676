"""Typed rows in a real browser: sliders, missing cells, two rows, effects, files and paper."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.cli import app
from hamiltree.posterior import Posterior
from hamiltree.report import effects, write_report
from hamiltree.report.contents import DRAWS, included

from ..support.browser import Watched, accessibility, browser, in_percent
from ..support.fake_draws import fake_posterior, fake_rows, with_learned_h

SVG = "{http://www.w3.org/2000/svg}"
NAMES = {
    "age": {"label": "Age at entry", "unit": "years"},
    "sex": {"label": "Sex", "values": {"f": "female", "m": "male"}},
    "target": {"label": "Outcome", "values": {"bad": "died", "good": "survived"}},
}


@pytest.fixture(scope="module")
def chrome():
    with browser() as running:
        yield running


def patients(n: int = 300) -> tuple[pandas.DataFrame, np.ndarray]:
    """Whole numbers, numbers with holes, categories, an order, and a category with holes."""
    rng = np.random.default_rng(1)
    table = pandas.DataFrame(
        {
            "age": rng.integers(30, 90, n),
            "bmi": rng.normal(27, 4, n).round(1),
            "sex": rng.choice(["f", "m"], n),
            "site": rng.choice(["North", "South", "West"], n),
            "grade": pandas.Categorical(
                rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
        }
    )
    table.loc[::7, "bmi"] = np.nan
    table.loc[::9, "site"] = None
    risk = 2.0 * (table["age"] > 62) + (table["sex"] == "m") + 2.0 * table["bmi"].isna()
    risk += (table["site"] == "West") + table["site"].isna() + (table["grade"] == "high")
    y = np.where(rng.random(n) < 1 / (1 + np.exp(5 - 2.5 * risk)), "bad", "good")
    return table, y


@pytest.fixture(scope="module")
def model():
    X, y = patients()
    model = BayesianTreeClassifier(n_chains=2, n_warmup=150, n_draws=100, random_state=0)
    return model.fit(X, y)


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    X, y = patients(80)
    path = tmp_path_factory.mktemp("rows") / "report.html"
    return model.report(path, X, y, names=NAMES)


@pytest.fixture
def opened(chrome, report):
    watched = Watched(chrome, viewport={"width": 1200, "height": 900}, accept_downloads=True)
    yield watched.open(report)
    assert watched.complaints == []
    assert [own for own in watched.requests if not own.startswith("blob:")] == [report.as_uri()]
    watched.close()


def typed(page, values: dict[str, str], prefix: str = "row") -> None:
    """Fill in fields by the table's own names of the columns."""
    names = page.evaluate("window.hamiltree.data.inputs.map(input => input.column)")
    for name, value in values.items():
        field = page.locator(f"#{prefix}-{names.index(name)}")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(label=value or "missing")
        else:
            field.fill(value)


def shown_probability(page, label: str, where: str = "#answer") -> str:
    return page.locator(f"{where} [data-class='{label}'] .value").inner_text()


def row_of(**cells) -> pandas.DataFrame:
    own = {"age": [55.0], "bmi": [27.0], "sex": ["f"], "site": ["North"], "grade": ["low"]}
    table = pandas.DataFrame(own | {name: [cell] for name, cell in cells.items()})
    table["grade"] = pandas.Categorical(table["grade"], ["low", "mid", "high"], ordered=True)
    return table


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"bmi": np.nan},
        {"age": np.nan},  # no training row lacks it
        {"site": None, "sex": "m"},
        {"sex": None},
        {"grade": "high", "site": "West", "age": 88.0},
        {"grade": None},
    ],
)
def test_an_empty_field_is_a_missing_cell_of_python(cells, opened, model):
    post = model.posterior_
    drawn = post.taken(included(post, DRAWS))
    row = row_of(**cells)
    shown = {"sex": {"f": "female", "m": "male"}}
    texts = {}
    for name in row:
        cell = row[name].iloc[0]
        missing = cell is None or cell != cell
        texts[name] = "" if missing else f"{cell:g}" if isinstance(cell, float) else str(cell)
        texts[name] = shown.get(name, {}).get(texts[name], texts[name])
    typed(opened, texts)
    mean = drawn.predict_mean(post.preprocessing.rows(row))[0]
    assert shown_probability(opened, "died") == in_percent(mean[0])
    assert shown_probability(opened, "survived") == in_percent(mean[1])


def test_sliders_and_fields_go_together(opened):
    slider, field, hint = (opened.locator(f"#row-0{end}") for end in ("-slider", "", "-hint"))
    assert [slider.get_attribute(name) for name in ("min", "max", "step")] == ["30", "89", "1"]
    before = field.input_value()
    slider.focus()
    opened.keyboard.press("ArrowRight")
    assert field.input_value() == str(int(before) + 1)
    opened.keyboard.press("End")
    assert field.input_value() == "89"
    assert slider.get_attribute("aria-valuetext") == "89\u00a0years"
    field.fill("45")
    assert slider.input_value() == "45"
    field.fill("")
    assert hint.inner_text() == "missing, as in no training row"
    field.fill("200")
    assert hint.inner_text() == "outside the training range 30 to 89\u00a0years"
    assert opened.locator("label[for='row-0']").inner_text() == "Age at entry (years)"


def test_the_answer_follows_the_slider(opened, model):
    typed(opened, {"age": "40", "bmi": "27", "sex": "female", "site": "North", "grade": "low"})
    answers = set()
    opened.locator("#row-0-slider").focus()
    for key in ("Home", "End"):
        opened.keyboard.press(key)
        answers.add(shown_probability(opened, "died"))
    assert len(answers) == 2


@pytest.mark.parametrize(
    "post",
    [
        lambda seed: fake_posterior(seed, n_training=40, n_draws=20),
        lambda seed: fake_posterior(seed, n_training=40, n_classes=0, n_draws=20),
        lambda seed: fake_posterior(seed, n_training=40, h=0.0, n_draws=300),
        lambda seed: with_learned_h(fake_posterior(seed, n_training=40), 4),
    ],
    ids=["classes", "regression", "hard, thinned", "learned h"],
)
def test_the_page_moves_rows_as_explain_does(post, chrome, tmp_path, seed):
    """For the same draws the page has the numbers of ``explain``, to single precision."""
    posterior = post(seed)
    drawn = posterior.taken(included(posterior, DRAWS))
    watched = Watched(chrome)
    page = watched.open(write_report(posterior, tmp_path / "report.html"))
    for row in fake_rows(3, seed % 1000):
        expected = drawn.explain(row[None])
        label = 0
        if posterior.n_classes:
            label = list(posterior.preprocessing.classes).index(expected.prediction)
        numbers = row[posterior.preprocessing.used].tolist()
        found = page.evaluate(
            "([row, label]) => window.hamiltree.explain(row, label)", [numbers, label]
        )
        scale = 1.0 if posterior.n_classes else posterior.preprocessing.y_sd
        assert found["start"] == pytest.approx(expected.baseline, abs=2e-6 * scale)
        own = {effect["name"]: effect for effect in found["effects"]}
        assert set(own) == {effect.feature for effect in expected.effects}
        for effect in expected.effects:
            for part in ("mean", "low", "high"):
                value = getattr(effect, part)
                assert own[effect.feature][part] == pytest.approx(value, abs=2e-6 * scale)
    watched.close()


def test_effects_of_categories_and_missing_cells_are_those_of_explain(opened, model):
    post = model.posterior_
    drawn = post.taken(included(post, DRAWS))
    row = row_of(bmi=np.nan, site="West", sex="m", age=70.0)
    typed(opened, {"age": "70", "bmi": "", "sex": "male", "site": "West", "grade": "low"})
    expected = drawn.explain(post.preprocessing.rows(row))
    assert expected.prediction == "bad"
    table = opened.locator("#moved .effects")
    assert in_percent(expected.baseline) in table.locator("caption").inner_text()
    names = {"age": "Age at entry", "sex": "Sex"}
    large = [effect for effect in expected.effects if abs(effect.mean) >= 0.005][:8]
    shown = table.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.feature)")
    assert shown == [names.get(effect.feature, effect.feature) for effect in large]
    texts = table.locator("tbody tr td:nth-child(2)").all_inner_texts()
    for effect, text in zip(large, texts, strict=True):
        assert float(text.replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            100 * effect.mean, abs=0.5
        )


def test_without_training_rows_or_with_weighted_sums_nothing_is_said_to_move(
    chrome, tmp_path, monkeypatch, seed
):
    monkeypatch.setattr(effects, "BUDGET", 40)
    kinds = {
        "no training rows": fake_posterior(seed),
        "weighted sums": fake_posterior(seed, oblique=True, n_training=30),
        "no room": fake_posterior(seed, n_training=30, n_draws=30),
    }
    for kind, posterior in kinds.items():
        watched = Watched(chrome)
        page = watched.open(write_report(posterior, tmp_path / "report.html"))
        assert page.evaluate("window.hamiltree.explain") is None, kind
        assert page.locator(".effects").count() == 0
        assert page.locator("#answer .best").count() == 1
        assert watched.complaints == []
        watched.close()


def test_weighted_sums_need_every_number(chrome, tmp_path, seed):
    watched = Watched(chrome)
    page = watched.open(write_report(fake_posterior(seed, oblique=True), tmp_path / "report.html"))
    page.fill("#row-2", "")
    assert page.locator("#answer").inner_text() == "Fill in every number."
    assert page.locator("#row-path li").count() == 0
    watched.close()


def test_the_page_holds_no_training_row(model, report):
    """Effects need the background's means alone: a shared page must not give rows away."""
    page = report.read_text("utf-8")
    for value in patients()[0]["bmi"].dropna().unique()[:40]:
        assert f"[{value}," not in page
        assert f", {value}," not in page


# ------------------------------------------------------------------ two rows


def test_two_rows_side_by_side(opened):
    assert opened.locator("#second-name").is_hidden()
    opened.click("#compare")
    assert opened.get_attribute("#compare", "aria-pressed") == "true"
    assert "The rows are the same" in opened.inner_text("#comparison")
    typed(opened, {"age": "31"})
    typed(opened, {"age": "88", "sex": "male"}, "second")
    first, second = (
        shown_probability(opened, "survived", where) for where in ("#answer", "#second-answer")
    )
    said = opened.inner_text("#comparison")
    assert f"Probability of survived: row A {first}, row B {second}." in said
    assert "Age at entry (31\u00a0years and 88\u00a0years)" in said
    assert opened.locator("#second-0").is_visible()
    differing = opened.locator(".panel").nth(1).locator(".field.differs label").all_inner_texts()
    assert "Age at entry (years)" in differing
    opened.select_option("#row-which", label="row B")
    steps = opened.locator("#second-path li").count()
    assert opened.locator("#row-tree .edge.on").count() == steps - 1
    opened.click("#compare")
    assert opened.locator("#second-name").is_hidden()
    assert opened.inner_text("#comparison") == ""


def test_back_to_a_typical_row(opened):
    start = opened.input_value("#row-0")
    opened.fill("#row-0", "33")
    opened.click("#row-reset")
    assert opened.input_value("#row-0") == start
    assert opened.input_value("#row-0-slider") == start


# ------------------------------------------------------------------ files and paper


def test_the_saved_rows_are_read_and_predicted_again(opened, model, tmp_path):
    opened.click("#compare")
    typed(opened, {"age": "71", "bmi": "", "sex": "male"}, "second")
    with opened.expect_download() as waiting:
        opened.click("#row-csv")
    text = waiting.value.path().read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2
    assert (rows[1]["age"], rows[1]["bmi"], rows[1]["sex"]) == ("71", "", "m")
    path = tmp_path / "rows.csv"
    path.write_text(text, "utf-8")
    post = model.posterior_
    post.taken(included(post, DRAWS)).save(tmp_path / "drawn.nc")
    arguments = ["predict", str(tmp_path / "drawn.nc"), str(path), "--full-precision"]
    predicted = run_cli([*arguments, "-o", str(tmp_path / "out.csv")], tmp_path / "out.csv")
    for own, other in zip(rows, predicted, strict=True):
        assert own["prediction"] == other["prediction"]
        for name in ("probability_bad", "probability_good", "low_bad", "high_bad"):
            assert float(own[name]) == pytest.approx(float(other[name]), rel=1e-9)
        effects_of = [float(own[name]) for name in own if name.startswith("effect_")]
        assert len(effects_of) >= 2


def run_cli(arguments, path):
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def test_numbers_are_saved_too(chrome, tmp_path, seed):
    watched = Watched(chrome)
    posterior = fake_posterior(seed, n_classes=0)
    page = watched.open(write_report(posterior, tmp_path / "report.html"))
    with page.expect_download() as waiting:
        page.click("#row-csv")
    (row,) = csv.DictReader(io.StringIO(waiting.value.path().read_text("utf-8")))
    names = [name for name in row if name in posterior.preprocessing.used_names]
    X = np.ones((1, 5))
    X[0, posterior.preprocessing.used] = [float(row[name]) for name in names]
    mean, sd = posterior.predict_mean_std(X)
    assert float(row["prediction"]) == pytest.approx(mean[0])
    assert float(row["sd"]) == pytest.approx(sd[0])
    watched.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["#tree-0-figure", "#row-tree", "#first-figure", "#features"])
def test_drawings_are_saved_as_svg_that_stands_alone(scheme, place, chrome, report):
    watched = Watched(chrome, color_scheme=scheme)
    page = watched.open(report)
    with page.expect_download() as waiting:
        page.locator(f"{place} button.save").first.click()
    assert waiting.value.suggested_filename.endswith(".svg")
    text = waiting.value.path().read_text("utf-8")
    drawing = ElementTree.fromstring(text)
    assert drawing.tag == f"{SVG}svg"
    for word in ("var(", "class=", "color-mix", "style=", "color(srgb"):
        assert word not in text, word
    shown = page.locator(f"{place} svg text").first.text_content()
    inks = {own.get("fill") for own in drawing.iter(f"{SVG}text")}
    assert shown in "".join(drawing.itertext())
    for ink in inks:  # dark letters on white, whatever the page has
        channels = re.findall(r"\d+", ink)
        assert max(int(channel) for channel in channels[:3]) < 128, ink
    assert watched.complaints == []
    watched.close()


def test_one_row_is_printed_by_itself(opened):
    opened.evaluate("window.print = () => { window.printed = true; }")
    opened.click("#row-print")
    assert opened.evaluate("window.printed")
    opened.emulate_media(media="print")
    for kept in ("#row-section", "#answer", "#moved .effects", ".print-only", ".verdict", "h1"):
        assert opened.locator(kept).first.is_visible(), kept
    for left_out in ("#trees", "#performance", "#features", "#row-0", ".actions button"):
        assert opened.locator(left_out).first.is_hidden(), left_out
    assert "Age at entry" in opened.locator(".print-only").first.inner_text()
    assert opened.pdf().startswith(b"%PDF")
    opened.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert opened.locator("#trees").is_visible()
    assert opened.locator("#row-section").is_hidden()


# ------------------------------------------------------------------ for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("comparing", [False, True])
def test_axe_finds_nothing_wrong(scheme, width, comparing, chrome, report):
    watched = Watched(chrome, color_scheme=scheme, viewport={"width": width, "height": 800})
    page = watched.open(report)
    if comparing:
        page.click("#compare")
        typed(page, {"age": "88", "bmi": ""}, "second")
    for details in page.locator("details").all():
        if details.is_visible():
            details.locator("summary").click()
    wrong = {item["id"]: item["nodes"][0]["html"] for item in accessibility(page)}
    assert wrong == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    watched.close()


def test_axe_finds_nothing_wrong_with_numbers(chrome, tmp_path, seed):
    posterior = fake_posterior(seed, n_classes=0, n_training=40)
    y = posterior.predict_mean(fake_rows(20)) + 3
    path = write_report(posterior, tmp_path / "page.html", X_test=fake_rows(20), y_test=y)
    watched = Watched(chrome)
    assert accessibility(watched.open(path)) == []
    watched.close()


def test_axe_would_find_something(chrome, report):
    watched = Watched(chrome)
    page = watched.open(report)
    page.evaluate("document.querySelector('label[for=row-0]').remove()")
    page.evaluate("document.querySelector('.about').style.color = '#ccc'")
    page.evaluate("document.getElementById('row-0').removeAttribute('placeholder')")
    assert {"label", "color-contrast"} <= {item["id"] for item in accessibility(page)}
    watched.close()


def test_everything_is_reached_by_keyboard(opened):
    """Tab by tab through the row's section; what acts is a button, a field or a slider."""
    opened.click("#compare")
    opened.locator("#compare").focus()
    reached = ["compare"]
    for _ in range(60):
        opened.keyboard.press("Tab")
        reached.append(opened.evaluate("document.activeElement.id"))
    wanted = {"row-reset", "row-csv", "row-print", "row-0", "row-0-slider", "second-0",
              "second-0-slider", "row-choice", "row-which"}  # fmt: skip
    assert wanted <= set(reached)
    opened.locator("#compare").focus()
    opened.keyboard.press("Space")
    assert opened.locator("#second-name").is_hidden()
    opened.keyboard.press("Enter")
    assert opened.evaluate("document.activeElement.id") == "second-0"


def test_a_regression_has_units(chrome, tmp_path):
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"age": rng.uniform(20, 80, 80), "dose": rng.uniform(0, 5, 80)})
    y = X["age"] + 4 * X["dose"] + rng.normal(0, 2, 80)
    model = BayesianTreeRegressor(n_chains=2, n_warmup=100, n_draws=60, random_state=0).fit(X, y)
    names = {
        "dose": {"label": "Dose", "unit": "mg"},
        "target": {"label": "Pressure", "unit": "mmHg"},
    }
    path = model.report(tmp_path / "page.html", X, y, names=names)
    watched = Watched(chrome)
    page = watched.open(path)
    assert page.locator("#answer .name").inner_text() == "Pressure"
    assert page.locator("#answer .value").inner_text().endswith("\u00a0mmHg")
    assert page.locator("#facts .figure").first.inner_text().endswith("mmHg")
    labels = page.locator(".node.split").evaluate_all(
        "nodes => nodes.map(node => node.getAttribute('aria-label'))"
    )
    doses = [label for label in labels if "Split: Dose" in label]
    assert doses
    assert all("\u00a0mg?" in label for label in doses)
    assert watched.complaints == []
    watched.close()


def test_thinned_effects_keep_the_page_small(tmp_path, seed):
    leaves = np.full((2, 400), 30)
    posterior = fake_posterior(seed, n_draws=400, n_leaves=leaves, n_training=50)
    packed = effects.pack_effects(posterior.taken(included(posterior, DRAWS)))
    assert len(packed["means"]["data"]) <= effects.BUDGET
    assert effects.FEWEST <= len(packed["trees"]) < 400
    deep = Posterior(
        replace(posterior.draws), posterior.info, posterior.preprocessing,
        posterior.configuration,
    )  # fmt: skip
    assert effects.pack_effects(deep.taken([0, 1])) is None
