"""What goes into the report, before a browser sees it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from hamiltree.inputs.encoding import Column, Encoding, TrainingTable
from hamiltree.inputs.tables import TableError
from hamiltree.posterior import Posterior
from hamiltree.posterior.describe import finding, percent, share_of_trees, summary_sentence
from hamiltree.report import report_html
from hamiltree.report.contents import contents, included
from hamiltree.utils.json_text import json_text

from ..support.fake_draws import fake_posterior


def with_table(posterior: Posterior, encoding: Encoding) -> Posterior:
    """The same trees, on the columns of a table."""
    scale = replace(posterior.preprocessing, feature_names=encoding.outputs)
    table = TrainingTable(encoding, "table.csv")
    return Posterior(posterior.draws, posterior.info, scale, posterior.configuration, table=table)


def uses(posterior: Posterior, column: int) -> np.ndarray:
    """[chain, draw]: whether the tree splits on a used column, tree by tree."""
    shape = posterior.weights.shape
    found = [posterior.tree(*index).feature for index in np.ndindex(shape)]
    return np.array([column in feature for feature in found]).reshape(shape)


def test_features_are_shares_of_trees(seed):
    posterior = fake_posterior(seed, n_draws=30)
    data = contents(posterior)
    names = posterior.preprocessing.used_names
    assert len(data["features"]) == 4
    for feature in data["features"]:
        used = uses(posterior, names.index(feature["name"]))
        assert feature["share"] == pytest.approx(used.mean())
        np.testing.assert_allclose(feature["byChain"], used.mean(axis=1))
    shares = [feature["share"] for feature in data["features"]]
    assert shares == sorted(shares, reverse=True)


def test_thresholds_count_the_splits_of_a_tree(seed):
    posterior = fake_posterior(seed, n_draws=30)
    draws = posterior.draws
    for plot in contents(posterior)["thresholds"]:
        column = posterior.preprocessing.used_names.index(plot["name"])
        own = draws.threshold[draws.feature == column]
        assert plot["splits"].sum() == pytest.approx(len(own) / posterior.weights.size)
        assert plot["splits"][:30].sum() * posterior.weights.size == pytest.approx(
            (own < 0.5).sum()
        )


def test_leaves_are_shares_of_draws(seed):
    posterior = fake_posterior(seed)
    data = contents(posterior)["leaves"]
    for place, share in enumerate(data["shares"]):
        assert share == pytest.approx((posterior.n_leaves == data["first"] + place).mean())


def test_the_included_draws_are_evenly_spaced(seed):
    posterior = fake_posterior(seed, n_chains=2, n_draws=50)
    assert included(posterior, 1000).tolist() == list(range(100))
    assert included(posterior, 10).tolist() == list(range(5, 100, 10))
    weights = np.zeros((2, 50))
    weights[1, :2] = 0.25, 0.75
    heavy = Posterior(
        replace(posterior.draws, weights_of_draws=weights), posterior.info,
        posterior.preprocessing, posterior.configuration,
    )  # fmt: skip
    assert included(heavy, 8).tolist() == [50, 50, 51, 51, 51, 51, 51, 51]


def test_the_form_asks_for_the_columns_of_the_table(seed):
    columns = (
        Column("age", "number"),
        Column("site", "one-hot", ("north", "south")),
        Column("grade", "ordinal", ("low", "mid", "high")),
        Column("hue", "one-hot", ("blue", "red")),
        Column("dose", "number"),
    )
    encoding = Encoding(columns, "outcome")
    with pytest.raises(TableError, match="does not fit its trees"):
        contents(with_table(fake_posterior(seed), encoding))  # grades from 100 to 1600
    posterior = with_table(fake_posterior(seed), encoding)
    scale = replace(
        posterior.preprocessing,
        minimum=np.array([-3.0, 0.0, 0.0, 1e-3]),
        span=np.array([10.0, 1.0, 2.0, 4e-3]),
    )
    posterior = Posterior(
        posterior.draws,
        posterior.info,
        scale,
        posterior.configuration,
        table=posterior.table,
    )
    data = contents(posterior)
    assert [entry["start"] for entry in data["inputs"]] == [2.0, "north", "mid", 0.003]
    assert [entry["name"] for entry in data["inputs"]] == ["age", "site", "grade", "dose"]
    assert data["inputs"][1]["columns"] == [{"column": 1, "category": "south"}]
    assert data["inputs"][0]["low"] == posterior.preprocessing.minimum[0]
    assert [column["source"] for column in data["columns"]] == ["age", "site", "grade", "dose"]
    assert "site=south" not in [plot["name"] for plot in data["thresholds"]]


def test_the_page_says_what_is_known_about_the_data(seed):
    names = fake_posterior(seed).preprocessing.feature_names
    encoding = Encoding(tuple(Column(name, "number") for name in names), "outcome")
    page = report_html(with_table(fake_posterior(seed), encoding))
    assert "<title>Decision trees for outcome</title>" in page
    assert "table.csv; 4 features; 3 classes; HMC-DF, 2 chains of 5 draws." in page


def test_the_page_is_the_same_each_time_and_complete(seed):
    posterior = fake_posterior(seed)
    page = report_html(posterior)
    assert page == report_html(posterior)
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert json.loads(data[1])["classes"] == ["ash", "beech", "cedar"]


def test_nothing_but_the_pages_own_script_and_style_may_run(seed):
    page = report_html(fake_posterior(seed))
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.startswith("default-src 'none';")
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://", page.replace("http://www.w3.org/2000/svg", ""))


def test_no_draws_are_refused(seed):
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        report_html(fake_posterior(seed), n_draws=0)


# ---------------------------------------------------------------------- texts


def test_share_of_trees(seed):
    posterior = fake_posterior(seed, n_draws=20)
    expected = [uses(posterior, column).mean() for column in range(4)]
    np.testing.assert_allclose(share_of_trees(posterior), expected)


def test_the_sentence_says_sizes_and_features(seed):
    posterior = fake_posterior(seed, n_leaves=np.array([[3, 3, 3, 4, 5], [3, 3, 4, 3, 3]]))
    sentence = summary_sentence(posterior)
    assert sentence.startswith("The sampled trees have 3 to 5 leaves, most often 3 (70%); they ")
    best = int(share_of_trees(posterior).argmax())
    assert f"mostly on {posterior.preprocessing.used_names[best]} (" in sentence
    assert sentence.endswith(posterior.diagnose().sentence)


def test_the_sentence_knows_certain_sizes_weighted_sums_and_roots(seed):
    four = np.full((2, 5), 4)
    assert finding(fake_posterior(seed, n_leaves=four)).startswith(
        "All sampled trees have 4 leaves"
    )
    oblique = finding(fake_posterior(seed, n_leaves=four, oblique=True))
    assert oblique == "All sampled trees have 4 leaves; every split weighs all columns together."
    nearly = np.where(np.arange(40) == 0, 5, 4).reshape(2, 20)
    mostly = finding(fake_posterior(seed, n_draws=20, n_leaves=nearly))
    assert mostly.startswith("Most sampled trees (98%) have 4 leaves; they split mostly on ")
    roots = finding(fake_posterior(seed, max_leaves=1))
    assert roots == "All sampled trees have 1 leaf: no column improves the fit enough for a split."


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1e-4, "under 1%"), (0.334, "33%"), (0.9999, "over 99%"), (1.0, "100%"),
     (1 - 1e-12, "100%")],
)  # fmt: skip
def test_rounding_makes_nothing_certain(share, text):
    assert percent(share) == text


def test_json_has_no_nan():
    value = {"a": np.array([1.0, np.nan]), "b": (np.inf, np.int64(3)), "c": "x"}
    assert json_text(value) == '{"a": [1.0, null], "b": [null, 3], "c": "x"}'
