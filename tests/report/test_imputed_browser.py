"""Missing cells that the page imputes in a real browser, against Python."""

from __future__ import annotations

import numpy as np
import pytest

from hamiltree import BayesianTreeClassifier
from hamiltree.inputs.columns import coded
from hamiltree.methods import HMCDF
from hamiltree.posterior.tree_text import rule_text
from hamiltree.report import write_report
from hamiltree.report.contents import DRAWS, included

from ..posterior.imputing import imputing_posterior, imputing_rows
from ..support.browser import Watched, in_percent
from ..support.patients import patients


@pytest.fixture(params=[0.05, 0.0], ids=["soft", "hard"])
def opened(request, chrome, tmp_path, seed):
    post = imputing_posterior(seed, h=request.param)
    watched = Watched(chrome, viewport={"width": 1200, "height": 900})
    yield post, watched.open(write_report(post, tmp_path / "report.html"))
    assert watched.complaints == []
    watched.close()


def rows_to_try(seed):
    """Every combination of missing numbers, an unknown level, and numbers far outside."""
    rows = np.asarray(imputing_rows(24, seed))
    for number, row in enumerate(rows[:8]):
        row[[0, 2, 3]] = np.where([number & 1, number & 2, number & 4], np.nan, [2.0, 50.0, 22.0])
    rows[8, 1] = rows[9, 1] = np.nan
    rows[9, 2:] = rows[10, 2:] = rows[11, 2:] = np.nan
    rows[10, 0], rows[11, 0] = 1e40, -1e40
    return coded(rows)


def test_predictions_and_effects_are_those_of_python(opened, seed):
    post, page = opened
    drawn = post.taken(included(post, DRAWS))
    rows = rows_to_try(seed)
    mean = drawn.predict_mean(rows)
    for row, expected in zip(rows, mean, strict=True):
        cells = [None if np.isnan(cell) else float(cell) for cell in row]
        label = int(expected.argmax())
        found = page.evaluate(
            """([cells, label]) => {
                const row = cells.map(cell => cell === null ? NaN : cell);
                return [window.hamiltree.predict(row), window.hamiltree.explain(row, label)];
            }""",
            [cells, label],
        )
        np.testing.assert_allclose(found[0]["mean"], expected, atol=2e-6)
        wanted = {effect.feature: effect for effect in drawn.explain(row[None]).effects}
        assert {own["name"] for own in found[1]["effects"]} == set(wanted)
        for own in found[1]["effects"]:
            assert own["mean"] == pytest.approx(wanted[own["name"]].mean, abs=4e-6)


def test_a_typed_row_with_empty_fields(opened, seed):
    post, page = opened
    drawn = post.taken(included(post, DRAWS))
    page.fill("#row-0", "6")
    page.select_option("#row-1", label="b")
    for field in (2, 3):
        page.fill(f"#row-{field}", "")
    mean = drawn.predict_mean(coded(np.array([[6.0, 1.0, np.nan, np.nan]])))[0]
    for name, value in zip(post.preprocessing.classes, mean, strict=True):
        shown = page.locator(f"#answer [data-class='{name}'] .value").inner_text()
        assert shown == in_percent(value)


def test_the_path_says_what_cells_were_imputed_as(opened):
    """In the steps that impute one, and in no other."""
    post, page = opened
    scale = post.preprocessing
    filled = scale.imputed(coded(np.array([[6.0, 1.0, np.nan, np.nan]])))[0]
    page.fill("#row-0", "6")
    page.select_option("#row-1", label="b")
    for field in (2, 3):
        page.fill(f"#row-{field}", "")
    found = 0
    for option in page.locator("#row-choice option").all():
        page.select_option("#row-choice", value=option.get_attribute("value"))
        for step in page.locator("#row-path li:not(.end)").all_inner_texts():
            imputed = "imputed if missing" in step
            assert ("imputed as" in step) == imputed
            if imputed:
                found += 1
                column = ["length", "group", "age", "count"].index(step.split(" ")[0])
                number = float(step.split("imputed as ")[1].split(")")[0].split(";")[0])
                assert number == pytest.approx(filled[column], abs=0.05)
                assert ("the threshold is" in step) == (column == 3)
    assert found > 0


def test_ordered_categories_are_named_beside_missing_cells(chrome, tmp_path):
    """Rules read as in Python, and imputed ranks, which lie between categories, as ranks."""
    X, y = patients(150)
    X.loc[::4, "grade"] = None
    lengths = {"n_chains": 2, "n_warmup": 60, "n_draws": 60, "random_state": 0}
    fitted = BayesianTreeClassifier(method=HMCDF(min_leaves=3), **lengths).fit(X, y)
    post = fitted.posterior_
    watched = Watched(chrome)
    page = watched.open(fitted.report(tmp_path / "report.html"))
    found = set()
    for t, draw in enumerate(included(post, DRAWS)):
        shown = page.evaluate("t => window.hamiltree.nodes(t).map(window.hamiltree.spoken)", t)
        walk = [post.tree(*divmod(int(draw), post.n_draws)).to_dict()]
        for text in shown:
            node = walk.pop()
            if "threshold" not in node:
                continue
            walk += [node["no"], node["yes"]]
            if node["feature"] == "grade" and node["threshold"] is not None:
                rule = rule_text(post.preprocessing, node).replace("grade <= ", "grade at most ")
                assert f"Split: {rule}?" in text
                found.add(node["missing"])
    assert found == {"yes", "no", "imputed"}
    assert watched.complaints == []
    watched.close()
