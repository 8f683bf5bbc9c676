"""What a notebook, or a prompt, shows: text as text, trees as drawings, a badge."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context

from hamiltree import BayesianTreeClassifier, Posterior
from hamiltree.posterior.diagnostics import diagnose
from hamiltree.utils.arrays import evenly

from ..support.browser import Watched, browser
from ..support.fake_draws import fake_posterior, fake_rows
from ..support.fake_special import NAMES, fake_special_posterior


@pytest.fixture
def post(seed):
    return fake_posterior(seed, n_chains=3, n_draws=40, n_training=30).monitored_at(fake_rows(5))


def texts(shown):
    return html.unescape(re.sub(r"<[^>]+>", "\n", shown))


def test_summaries_print_themselves(post):
    for text in (post.summary(), post.acceptance_table()):
        assert isinstance(text, str)
        assert repr(text) == str(text)
        assert "\n" in repr(text)
        assert str(text) in texts(text._repr_html_())


def test_a_diagnosis_prints_as_text(post):
    found = post.diagnose()
    assert repr(found) == str(found)
    assert found.sentence in repr(found)
    assert "another seed" in repr(found)
    shown = found._repr_html_()
    assert found.label in shown
    assert ("chains agree" in shown) == found.converged


def test_trees_and_shapes_are_drawn(post):
    tree = post.best_tree()
    assert tree._repr_html_().count("<rect") == len(tree.size)
    shape = post.shapes(1)[0]
    assert "<svg" in shape._repr_html_()
    assert repr(shape) == f"<Shape of {shape.probability:.1%} of the trees: {shape.text}>"
    large = fake_posterior(0, n_leaves=np.full((2, 5), 40)).best_tree()
    assert "<svg" not in large._repr_html_()
    assert large.to_text() in texts(large._repr_html_())


def test_the_feature_of_a_split_has_a_line_of_its_own(seed):
    """Also of splits on categories and on missing cells."""
    kinds = set()
    for number in range(10):
        tree = fake_special_posterior(seed + number).tree(0, 0)
        first = re.findall(r'font-weight="600">([^<]+)<', tree._repr_html_())
        for node, name in zip(tree.size, first, strict=True):
            if node > 1:
                assert name in NAMES
                kinds.add(name)
    assert kinds == set(NAMES)


def test_a_posterior_shows_its_badge_summary_and_tree(post):
    shown = post._repr_html_()
    assert post.diagnose().label in shown
    assert post.summary() in texts(shown)
    assert "<svg" in shown


@pytest.fixture(scope="module")
def chrome():
    with browser() as running:
        yield running


def opened(chrome, tmp_path, shown, **context):
    """HTML of a notebook in a page that holds it twice, as a notebook that shows it again."""
    path = tmp_path / "notebook.html"
    head = "<!doctype html><html lang=en><meta charset=utf-8><title>t</title><body class=ready>"
    path.write_text(f"{head}{shown}{shown}", "utf-8")
    watched = Watched(chrome, **context)
    return watched, watched.open(path)


def test_a_slider_moves_through_the_sampled_trees(post, chrome, tmp_path):
    watched, page = opened(chrome, tmp_path, post._repr_html_())
    for k, box in enumerate(page.locator("[data-hamiltree]").all()):
        slider, told = box.locator("input"), box.locator("output")
        assert slider.is_visible()
        assert told.inner_text() == f"best tree: {post.best_tree().n_leaves} leaves"
        slider.focus()
        for _ in range(3 + k):
            page.keyboard.press("ArrowRight")
        draw = int(evenly(120, 16)[2 + k])
        chain, own = divmod(draw, 40)
        tree = post.tree(chain, own)
        size = "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves} leaves"
        assert told.inner_text() == f"chain {chain}, draw {own}: {size}"
        assert box.locator("rect").count() == len(tree.size)
        page.keyboard.press("End")
        assert told.inner_text().startswith("chain 2, draw 39")
        page.keyboard.press("Home")
        assert box.locator("rect").count() == len(post.best_tree().size)
    assert watched.complaints == []
    assert len(watched.requests) == 1
    watched.close()


def test_without_scripts_the_best_tree_stays(post, chrome, tmp_path):
    watched, page = opened(chrome, tmp_path, post._repr_html_(), java_script_enabled=False)
    box = page.locator("[data-hamiltree]").first
    assert box.locator("rect").count() == len(post.best_tree().size)
    assert box.locator("input").is_hidden()
    watched.close()


def test_what_a_notebook_stores_is_small(seed):
    large = fake_posterior(seed, n_draws=400, n_leaves=np.full((2, 400), 20), n_training=30)
    assert len(large._repr_html_()) < 80_000
    roots = fake_posterior(seed, n_chains=1, n_draws=1, max_leaves=1)
    assert "1 leaf" in roots._repr_html_()


def test_hostile_names_stay_text_under_the_slider(post, chrome, tmp_path):
    bad = "</script><img src=x onerror=window.hacked=1>"
    post.preprocessing = replace(
        post.preprocessing, feature_names=(bad, bad + "1", bad + "2", "constant", bad + "3")
    )
    watched, page = opened(chrome, tmp_path, post._repr_html_())
    page.locator("input").first.focus()
    page.keyboard.press("End")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert watched.complaints == []
    watched.close()


def test_names_in_notebooks_stay_text(post):
    names = ("<script>", "a&b", "<b>", "constant", '"')
    post.preprocessing = replace(post.preprocessing, feature_names=names)
    for shown in (post._repr_html_(), post.best_tree()._repr_html_()):
        assert "<script>" not in shown
        assert "<b>" not in shown


def test_a_fitted_model_shows_its_posterior(post):
    model = BayesianTreeClassifier()
    before = model._repr_html_()
    assert "BayesianTreeClassifier" in before
    assert "<details><summary>Parameters" not in before
    model.posterior_ = post
    assert post.summary() in texts(model._repr_html_())
    assert model._repr_mimebundle_()["text/html"].startswith("<div>")
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}


# ------------------------------------------------------------------ another seed


def with_monitor(post, monitor, weights=None):
    draws = post.draws if weights is None else replace(post.draws, weights_of_draws=weights)
    return Posterior(draws, post.info, post.preprocessing, post.configuration, monitor=monitor)


def test_the_error_of_another_seed_is_that_of_independent_runs(rng):
    """Of 400 runs of autocorrelated chains, the spread of the pooled means is what one run says.

    A run's squared error has a chi-square law with 3 degrees of freedom over 3 and 6 rows; the
    mean of 400 x 6 of these is within 5 of its standard errors of the truth (rate below 1e-6), and
    2% are for the sd in the denominator, which varies from run to run.
    """
    post = fake_posterior(0, n_chains=4, n_draws=50, n_classes=0)
    squares, pooled, sds = [], [], []
    for _ in range(400):
        steps = rng.normal(size=(4, 50, 6))
        chains = 0.3 * rng.normal(size=(4, 1, 6)) + np.cumsum(steps, axis=1) * 0.02 + 5
        found = diagnose(with_monitor(post, chains)).seed_error
        mean = chains.mean(axis=(0, 1))
        sd = np.sqrt(((chains - mean) ** 2).mean(axis=(0, 1)) + (post.sigma**2).mean())
        squares.append(found**2)
        pooled.append(mean)
        sds.append(sd)
    truth = np.var(pooled) / np.mean(np.square(sds))
    error = 5 * np.sqrt(2 / 3 / 2400 + 2 / 2400)
    assert np.mean(squares) == pytest.approx(truth, rel=error + 0.02)


def test_the_error_by_its_formula(rng):
    post = fake_posterior(0, n_chains=3, n_draws=20)
    monitor = rng.uniform(0.2, 0.8, size=(3, 20, 4))
    own = monitor.mean(axis=1)
    p = own.mean(axis=0)
    expected = np.sqrt(np.mean(own.var(axis=0, ddof=1) / 3 / (p * (1 - p))))
    assert diagnose(with_monitor(post, monitor)).seed_error == pytest.approx(expected)
    # an island without weight counts for nothing
    weights = np.zeros((3, 20))
    weights[:2] = 1 / 40
    two = own[:2]
    variance = 3 / 2 * ((two - two.mean(axis=0)) ** 2).sum(axis=0) / 4
    p = two.mean(axis=0)
    expected = np.sqrt(np.mean(variance / (p * (1 - p))))
    assert diagnose(with_monitor(post, monitor, weights)).seed_error == pytest.approx(expected)


def test_the_error_is_not_known_of_one_chain_or_without_rows(seed):
    one = fake_posterior(seed, n_chains=1).monitored_at(fake_rows(3))
    assert np.isnan(one.diagnose().seed_error)
    assert "another seed" not in str(one.diagnose())
    assert np.isnan(fake_posterior(seed).diagnose().seed_error)
    still = fake_posterior(seed, n_leaves=np.ones((2, 5), int)).monitored_at(fake_rows(3))
    assert np.isfinite(still.diagnose().seed_error)
