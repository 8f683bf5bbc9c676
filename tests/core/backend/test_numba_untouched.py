"""numba is left as others know it, and only what it documents is used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hamiltree

from ...support.programs import run_program

SOURCES = sorted(Path(hamiltree.__file__).parent.rglob("*.py"))

LEAVES_NUMBA_ALONE = """
import inspect, sys, warnings
import numpy as np
import numba

def compile_something():
    def total(x, rng):
        return x.sum() + rng.random()
    numba.njit(total)(np.ones(3), np.random.default_rng(0))

def attributes():
    "Of all modules of numba, and of their classes."
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "numba":
            for key, value in list(vars(module).items()):
                found[name, key] = value
                if inspect.isclass(value) and value.__module__.split(".")[0] == "numba":
                    for inner, part in list(vars(value).items()):
                        found[value.__module__, value.__qualname__, inner] = part
    # pickle notes in a class which fields it found there; numba pickles what it caches
    return {key: value for key, value in found.items() if key[-1] != "__slotnames__"}

compile_something()  # numba loads the rest of itself, and fills tables, when it first compiles
before = attributes()
assert len(before) > 10_000

def compare():
    after = attributes()
    for key, value in before.items():
        if after.get(key) is not value:
            print("changed:", *key)
    modules = {key[0] for key in before}
    for key, value in after.items():
        if key not in before and key[0] in modules and not inspect.ismodule(value):
            print("new:", *key)

if sys.argv[1] == "hamiltree":
    import hamiltree
    compare()
    from sklearn.exceptions import ConvergenceWarning
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ConvergenceWarning)
    X = np.random.default_rng(0).random((20, 2))
    for model, y in (
        (hamiltree.BayesianTreeClassifier, X[:, 0] > 0.5),
        (hamiltree.BayesianTreeRegressor, X[:, 0]),
    ):
        model(n_chains=1, n_warmup=5, n_draws=5, random_state=0, n_jobs=1).fit(X, y)
elif sys.argv[1] == "patch":
    from numba.core import compiler
    compiler.Flags.__hash__ = lambda flags: 0
    compiler.compile_extra = None
else:
    compile_something()

compare()
"""


@pytest.mark.parametrize("who", ["hamiltree", "plain"])
def test_nothing_of_numba_is_changed(who):
    """Nor of its classes, by import or fit; a submodule that is loaded later is merely new."""
    assert run_program(LEAVES_NUMBA_ALONE, who) == ""


def test_a_change_would_be_seen():
    changed = run_program(LEAVES_NUMBA_ALONE, "patch")
    assert "changed: numba.core.compiler compile_extra\n" in changed
    assert "new: numba.core.compiler Flags __hash__\n" in changed


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


ALLOWED = {
    # The base class for what ``numba.extending.infer_getattr`` decorates; numba.extending lacks it.
    "records.py": {
        "numba.core.typing.templates",
        "numba.core.typing.templates.AttributeTemplate",
    },
    # llvmlite documents it, and numba asks it for the processor before it loads what it kept.
    "cache.py": {"llvmlite.binding"},
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCES[0].parent)))
def test_only_what_numba_documents_is_imported(path):
    for name in imported_modules(path) - ALLOWED.get(path.name, set()):
        top, *rest = name.split(".")
        assert top != "llvmlite"
        if top == "numba":
            assert not {"core", "np", "cpython"} & set(rest), name
            assert not any(part.startswith("_") for part in rest if part != "__version__"), name
