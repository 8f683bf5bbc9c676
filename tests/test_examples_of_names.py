"""Every public name has an example, and every example is run.

Examples stand in docstrings, where they are run here as doctests, and in the programs of the pages,
which ``test_docs.py`` runs.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import warnings

import matplotlib.pyplot as plt
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

import hamiltree
import hamiltree.datasets
import hamiltree.methods
import hamiltree.plots
from hamiltree.posterior.tree import Tree

from .support.examples import pages
from .support.examples import programs as programs_of

MODULES = (hamiltree, hamiltree.methods, hamiltree.plots, hamiltree.datasets)
NAMES = {name: getattr(module, name) for module in MODULES for name in module.__all__}
CLASSES = (
    hamiltree.BayesianTreeClassifier,
    hamiltree.BayesianTreeRegressor,
    hamiltree.Posterior,
    Tree,
)
NOT_SHOWN = {"settings"}
"""Deprecated."""


def own_members(cls) -> dict[str, object]:
    """Public methods and properties that are ours, not scikit-learn's."""
    return {
        name: member
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and "sklearn" not in str(getattr(member, "__module__", ""))
    }


DOCUMENTED = {
    **{name: found for name, found in NAMES.items() if callable(found)},
    **{
        f"{cls.__name__}.{name}": member
        for cls in CLASSES[:2]
        for name, member in own_members(cls).items()
        if inspect.isfunction(member) and member.__module__.startswith("hamiltree")
    },
}
EXAMPLES = {
    name: found
    for name, found in DOCUMENTED.items()
    if doctest.DocTestParser().get_examples(inspect.getdoc(found) or "")
}


def programs() -> list[str]:
    """The source of every example."""
    found = [program for page in pages() for program, _ in programs_of(page)]
    for documented in EXAMPLES.values():
        parsed = doctest.DocTestParser().get_examples(inspect.getdoc(documented) or "")
        found.append("".join(example.source for example in parsed))
    return found


def words(program: str) -> set[str]:
    """Names that a program uses: variables, attributes and what it imports."""
    found = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found


@pytest.fixture(scope="module")
def used() -> set[str]:
    return set().union(*(words(program) for program in programs()))


def test_every_public_name_is_in_an_example(used):
    assert set(NAMES) - used == set()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_method_is_in_an_example(cls, used):
    members = set(own_members(cls))
    assert len(members) > 10
    assert members - used - NOT_SHOWN == set()


def test_functions_and_classes_have_an_example_of_their_own():
    without = {name for name, found in NAMES.items() if callable(found) and name not in EXAMPLES}
    assert without == {"Posterior"}, "that of Posterior stands in docs/api-posterior.md"


# ------------------------------------------------------------------ running them


@pytest.fixture(scope="module")
def fitted() -> dict[str, object]:
    """What the examples of plots and of fitted models have: see docs/api-plots.md."""
    iris = load_iris(as_frame=True)
    X, X_test, y, y_test = train_test_split(
        iris.data, iris.target_names[iris.target], random_state=0
    )
    short = {"n_chains": 2, "n_warmup": 100, "n_draws": 100, "random_state": 0}
    model = hamiltree.BayesianTreeClassifier(**short).fit(X, y)
    hard = hamiltree.BayesianTreeClassifier(h=0, **short).fit(X, y)
    return {"model": model, "hard": hard, "X_test": X_test, "y_test": y_test}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_is_true(name, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HAMILTREE_DATA", raising=False)
    text = inspect.getdoc(EXAMPLES[name]) or ""
    assert "+SKIP" not in text, "an example that is not run"
    test = doctest.DocTestParser().get_doctest(text, dict(fitted), name, None, None)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
            test, out=said.append
        )
    plt.close("all")
    assert result.failed == 0, "".join(said)
