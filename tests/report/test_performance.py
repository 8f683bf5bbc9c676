"""The figures of held-out rows against scikit-learn's and SciPy's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from hamiltree import BayesianTreeClassifier
from hamiltree.posterior.predictions import predict_quantiles
from hamiltree.report import report_html
from hamiltree.report.performance import performance

from ..support.browser import Watched, browser
from ..support.fake_draws import fake_posterior, fake_rows


def labelled_rows(posterior, n, seed=3):
    """Rows and labels that the trees know something about."""
    X, rng = fake_rows(n, seed), np.random.default_rng(seed)
    p = posterior.predict_mean(X)
    classes = posterior.preprocessing.classes
    if classes is None:
        return X, p + rng.normal(0, 6, n)
    return X, classes[[rng.choice(len(classes), p=own) for own in p]]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_figures_are_scikit_learns(n_classes, seed):
    post = fake_posterior(seed, n_classes=n_classes, n_training=50)
    X, y = labelled_rows(post, 120)
    found = performance(post, X, y)
    p, labels = post.predict_mean(X), post.preprocessing.classes
    predicted = labels[p.argmax(axis=1)]
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert found["logScore"] == pytest.approx(-metrics.log_loss(y, p, labels=labels))
    one_hot = np.array(y[:, None] == labels, float)
    brier = ((p - one_hot) ** 2).sum(axis=1).mean() / (2 if n_classes == 2 else 1)
    assert found["brier"] == pytest.approx(brier)
    if n_classes == 2:
        assert found["brier"] == pytest.approx(
            metrics.brier_score_loss(y, p[:, 1], pos_label=labels[1])
        )
    np.testing.assert_array_equal(
        found["confusion"], metrics.confusion_matrix(y, predicted, labels=labels)
    )
    np.testing.assert_allclose(found["prevalence"], [(y == label).mean() for label in labels])
    codes = post.training.y
    np.testing.assert_allclose(
        found["prevalenceInTraining"], [(codes == k).mean() for k in range(n_classes)]
    )
    low, high = stats.beta.ppf(
        [0.05, 0.95], (y == predicted).sum() + 0.5, (y != predicted).sum() + 0.5
    )
    assert f"{100 * low:.0f}% to {100 * high:.0f}%" in found["facts"][0]["note"]
    assert found["facts"][1]["value"] == f"{found['logScore']:.3f}"


def test_the_roc_curve_and_its_area_are_scikit_learns(seed):
    post = fake_posterior(seed, n_classes=2)
    X, y = labelled_rows(post, 150)
    X[100:] = X[:50]  # rows with equal probabilities, of either class
    found = performance(post, X, y)["roc"]
    positive = y == post.preprocessing.classes[1]
    p = post.predict_mean(X)[:, 1]
    assert found["area"] == pytest.approx(metrics.roc_auc_score(positive, p))
    false, true, _ = metrics.roc_curve(positive, p, drop_intermediate=False)
    np.testing.assert_allclose(found["falsePositives"], false)
    np.testing.assert_allclose(found["truePositives"], true)
    many = labelled_rows(post, 900)
    assert len(performance(post, *many)["roc"]["falsePositives"]) == 200
    assert performance(post, X[y == "ash"], y[y == "ash"])["roc"] is None


def test_calibration_groups_by_hand(seed):
    post = fake_posterior(seed, n_classes=2)
    X, y = labelled_rows(post, 95)
    found = performance(post, X, y)["calibration"][1]
    p = post.predict_mean(X)[:, 1]
    order = np.argsort(p, kind="stable")
    assert sum(found["rows"]) == 95
    start = 0
    for k, size in enumerate(found["rows"]):
        group = order[start : start + size]
        start += size
        assert found["predicted"][k] == pytest.approx(p[group].mean())
        assert found["observed"][k] == pytest.approx((y[group] == "beech").mean())
        assert found["low"][k] <= found["observed"][k] + 0.5 / size
        assert found["high"][k] >= found["observed"][k] - 0.5 / size
    assert max(found["rows"]) - min(found["rows"]) <= 1


def test_regression_figures(seed):
    post = fake_posterior(seed, n_classes=0, n_draws=30)
    X, y = labelled_rows(post, 80)
    found = performance(post, X, y)
    mean = post.predict_mean(X)
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, mean))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, mean))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, mean))
    for item in found["coverage"]:
        tails = [(1 - item["level"]) / 2, (1 + item["level"]) / 2]
        low, high = predict_quantiles(post, X, tails)
        assert item["share"] == pytest.approx(((y >= low) & (y <= high)).mean())
        assert item["width"] == pytest.approx((high - low).mean())
    means = post.predict_draws(X)
    density = stats.norm.pdf(y, means, post.sigma[..., None]).mean(axis=(0, 1))
    assert found["logScore"] == pytest.approx(np.log(density).mean())
    assert len(found["points"]["observed"]) == 80
    assert len(performance(post, *labelled_rows(post, 500))["points"]["low"]) == 300


def test_what_cannot_be_compared_is_refused(seed):
    post = fake_posterior(seed)
    X, y = labelled_rows(post, 10)
    with pytest.raises(ValueError, match="got 10 rows and targets of shape"):
        performance(post, X, y[:9])
    with pytest.raises(ValueError, match="got 0 rows"):
        performance(post, X[:0], y[:0])
    with pytest.raises(ValueError, match=r"did not have: .*'elm'"):
        performance(post, X, np.array([*y[:9], "elm"]))
    with pytest.raises(ValueError, match="go together"):
        report_html(post, X_test=X)
    numbers = fake_posterior(seed, n_classes=0)
    with pytest.raises(ValueError, match="missing or infinite"):
        performance(numbers, X, np.full(10, np.nan))


def test_the_page_has_the_section_only_with_test_rows(seed):
    post = fake_posterior(seed)
    assert re.search(r'<section id="performance"[^>]* hidden>', report_html(post))
    page = report_html(post, X_test=fake_rows(12), y_test=np.repeat(["ash", "cedar"], 6))
    assert not re.search(r'<section id="performance"[^>]* hidden>', page)
    assert "On 12 rows that the trees have not seen. These are few" in page


def test_a_model_writes_its_report(tmp_path):
    X = fake_rows(60)
    y = np.where(X[:, 0] > 2, "up", "down")
    model = BayesianTreeClassifier(n_chains=2, n_warmup=20, n_draws=20, random_state=0)
    with pytest.warns(UserWarning, match="constant"):
        model.fit(X[:40], y[:40])
    path = model.report(tmp_path / "page.html", X[40:], y[40:], title="Up or down?")
    page = path.read_text("utf-8")
    assert "<title>Up or down?</title>" in page
    assert "On 20 rows that the trees have not seen" in page
    assert model.report(tmp_path / "page.html").stat().st_size < len(page.encode())


# ------------------------------------------------------------------ in the browser


@pytest.fixture(scope="module")
def chrome():
    with browser() as running:
        yield running


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_shows_the_figures(n_classes, width, chrome, tmp_path, seed):
    post = fake_posterior(seed, n_classes=n_classes, n_training=30)
    X, y = labelled_rows(post, 60)
    path = tmp_path / "page.html"
    path.write_text(report_html(post, X_test=X, y_test=y), "utf-8")
    found = performance(post, X, y)
    watched = Watched(chrome, viewport={"width": width, "height": 800})
    page = watched.open(path)
    shown = page.locator("#facts .figure").all_inner_texts()
    assert [text.replace("\u00a0", " ") for text in shown] == [f["value"] for f in found["facts"]]
    if n_classes:
        cells = page.locator("#first-table td").all_inner_texts()
        assert [int(cell) for cell in cells] == found["confusion"].ravel().tolist()
        classes = 1 if n_classes == 2 else 3
        assert page.locator("#first-chart circle").count() == 10 * classes
        assert page.locator("#second-figure").is_visible() == (n_classes == 2)
        assert page.locator("#class-legend").is_visible() == (n_classes == 3)
    else:
        assert page.locator("#first-chart circle").count() == 60
        assert page.locator("#first-table tbody tr").count() == 4
        assert page.locator("#second-table").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.complaints == []
    assert watched.requests == [path.as_uri()]
    watched.close()
