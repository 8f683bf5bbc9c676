"""Typed rows in a real browser: sliders, missing cells, two rows, effects, files and paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas
import pytest

from hamiltree import BayesianTreeClassifier, BayesianTreeRegressor
from hamiltree.posterior import Posterior
from hamiltree.posterior.tree_text import soft_marks, softness
from hamiltree.report import effects, write_report
from hamiltree.report.contents import DRAWS, included

from ..support.browser import Watched, in_percent
from ..support.fake_draws import fake_posterior, fake_rows, with_learned_h
from ..support.patients import patients, row_of, shown_probability, typed


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


def test_soft_splits_read_as_in_python(opened, model):
    """Shares of whole numbers and of ordered categories near a threshold, of many trees."""
    post = model.posterior_
    scale = post.preprocessing
    found = {"at": 0, "within": 0, "none": 0}
    for t, draw in enumerate(included(post, DRAWS)):
        tree = post.tree(*divmod(int(draw), post.n_draws))
        nodes = opened.evaluate(
            "t => window.hamiltree.nodes(t).map(n => ({assigned: n.assigned, "
            "soft: n.leaf ? null : window.hamiltree.softMarks(n)}))",
            t,
        )
        walk = [tree.to_dict()]
        for number, shown in enumerate(nodes):
            node = walk.pop()
            assert shown["assigned"] == (number > 0 and bool(soft_marks(scale, tree.to_dict())))
            if shown["soft"] is None:
                continue
            walk += [node["no"], node["yes"]]
            wanted = softness(scale, node)
            for (label, value), mark in zip(shown["soft"], wanted, strict=True):
                if mark.startswith("h = "):
                    assert label == "soft within"
                    found["within"] += 1
                    continue
                name, share = mark.rsplit(": ", 1)
                assert label.replace("\u00a0years", "") == name
                assert value.replace("\u00a0", "") == share
                found["at"] += 1
            found["none"] += not wanted
    assert min(found.values()) > 0, found


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


@pytest.mark.parametrize("method", ["smc", "hmc-dfi"])
def test_methods_that_see_levels_as_columns(method, chrome, tmp_path):
    """Levels are columns of 0 and 1 there, and means stand for missing cells."""
    X, y = patients(120)
    lengths = {"n_draws": 60} if method == "smc" else {"n_warmup": 30, "n_draws": 30}
    fitted = BayesianTreeClassifier(method=method, n_chains=2, random_state=0, **lengths).fit(X, y)
    post = fitted.posterior_
    drawn = post.taken(included(post, DRAWS))
    watched = Watched(chrome)
    page = watched.open(fitted.report(tmp_path / "report.html"))
    for cells in ({}, {"bmi": np.nan, "site": None}, {"age": np.nan, "sex": None, "grade": None}):
        row = row_of(**cells)
        texts = {
            name: "" if pandas.isna(row[name].iloc[0]) else str(row[name].iloc[0]) for name in row
        }
        typed(page, texts)
        rows = post.preprocessing.rows(row)
        mean = drawn.predict_mean(rows)[0]
        assert shown_probability(page, "bad") == in_percent(mean[0])
        if method == "hmc-dfi":
            assert page.evaluate("window.hamiltree.explain") is None
            continue
        expected = drawn.explain(rows)
        start = page.locator("#moved caption").inner_text()
        assert f"from {in_percent(expected.baseline)}," in start
        large = [effect.feature for effect in expected.effects if abs(effect.mean) >= 0.006]
        shown = page.locator("#moved tbody tr").evaluate_all(
            "rows => rows.map(row => row.dataset.feature)"
        )
        assert shown[: len(large)] == large
    assert watched.complaints == []
    watched.close()


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
