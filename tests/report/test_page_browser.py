"""What leaves the page, and who can use it: files, paper, keyboard, axe-core."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from hamiltree.cli import app
from hamiltree.report import write_report
from hamiltree.report.contents import DRAWS, included

from ..support.browser import Watched, accessibility
from ..support.fake_draws import fake_posterior, fake_rows
from ..support.patients import typed

SVG = "{http://www.w3.org/2000/svg}"

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
    for kept in ("#row-section", "#answer", "#moved .effects", ".print-only", ".diagnosis", "h1"):
        assert opened.locator(kept).first.is_visible(), kept
    for left_out in ("#trees", "#performance", "#features", "#row-0", ".actions button"):
        assert opened.locator(left_out).first.is_hidden(), left_out
    assert "Age at entry" in opened.locator(".print-only").first.inner_text()
    assert opened.locator("#panels .panel:visible").count() == 1  # not the second row, unasked
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
