"""Data flows one way, and so do imports: nothing below imports anything above it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hamiltree

PACKAGE = Path(hamiltree.__file__).parent

# From the bottom up; a module may import from its own layer and from those before it.
LAYERS = [
    ["settings", "draws", "core", "files", "json_text"],
    ["samplers"],
    [
        "building",
        "chain_state",
        "chains",
        "checkpoint",
        "datasets",
        "elsewhere",
        "encoding",
        "gathering",
        "interrupts",
        "keeper",
        "preprocess",
        "progress",
        "run",
        "snapshot",
        "tables",
    ],
    [
        "consensus",
        "datatree",
        "diagnostics",
        "ensemble",
        "leaf_posterior",
        "onnx_export",
        "plots",
        "posterior",
        "storage",
        "storage_checks",
        "tree",
        "tree_dict",
        "tree_graphviz",
        "tree_sklearn",
        "tree_text",
        "verdict",
        "words",
    ],
    ["parameters", "estimators"],
    ["experiments", "report"],
    ["cli"],
    ["__init__", "__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """The module, or the subpackage, directly under hamiltree that a file belongs to."""
    first, *rest = path.relative_to(PACKAGE).parts
    return first if rest else Path(first).stem


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement that can run, inside functions too."""
    for child in ast.iter_child_nodes(node):
        if not is_for_types_only(child):
            yield child
            yield from statements(child)


def imports(path: Path) -> Iterator[str]:
    """Absolute dotted names of what a file imports at run time, imported names included."""
    package = ["hamiltree", *path.relative_to(PACKAGE).parts[:-1]]
    for node in statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, node.module or ""]).rstrip(".")
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    here = part(path)
    assert here in LEVEL, f"{here} has no layer: say in this file where it belongs"
    for name in imports(path):
        top, *rest = name.split(".")
        if top != "hamiltree":
            continue
        target = rest[0] if rest and rest[0] in LEVEL else "__init__"
        if rest == ["__version__"]:
            continue
        assert LEVEL[target] <= LEVEL[here], f"{here} imports {name}, which is above it"


def test_only_the_estimators_know_scikit_learns_base_classes():
    importers = {part(p) for p in MODULES if any(n.startswith("sklearn.base") for n in imports(p))}
    assert importers == {"estimators"}


def test_only_the_diagnostics_call_arviz():
    importers = {part(p) for p in MODULES if any(n.startswith("arviz") for n in imports(p))}
    assert importers <= {"diagnostics", "storage"}


def test_the_reader_of_imports_reads_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "core").mkdir()
    file = tmp_path / "core" / "bad.py"
    file.write_text(
        "import numpy\nfrom .nodes import grow\nfrom .. import run\n"
        "def f():\n    from ..posterior import Posterior\n"
        "if TYPE_CHECKING:\n    from ..cli import app\n"
    )
    assert list(imports(file)) == [
        "numpy", "hamiltree.core.nodes.grow", "hamiltree.run", "hamiltree.posterior.Posterior",
    ]  # fmt: skip
