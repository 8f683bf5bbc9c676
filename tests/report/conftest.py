"""A report of the clinical table, in a browser; fitted once."""

from __future__ import annotations

import pytest

from hamiltree import BayesianTreeClassifier

from ..support.browser import Watched, browser
from ..support.patients import NAMES, patients


@pytest.fixture(scope="module")
def chrome():
    with browser() as running:
        yield running


@pytest.fixture(scope="session")
def model():
    X, y = patients()
    model = BayesianTreeClassifier(n_chains=2, n_warmup=150, n_draws=100, random_state=0)
    return model.fit(X, y)


@pytest.fixture(scope="session")
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
