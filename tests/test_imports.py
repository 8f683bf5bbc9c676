"""Data flows one way, and so do imports: nothing below imports anything above it, by any way."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import hamiltree

PACKAGE = Path(hamiltree.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up; what a line names may import from its own folder and from the lines before.
# Modules of the package itself have no line: they only must not lead a folder to one above it.
ORDER = [
    ["utils"],
    ["core/backend"],
    ["core/densities", "core/sampling", "core/matrices"],
    ["core/tree"],
    ["core/scan", "core/forest"],
    ["core/moves", "core/predict"],
    ["core/soft", "core/hard"],
    ["core/smc"],
    ["samplers"],
    ["methods", "inputs"],
    ["posterior"],
    ["running", "datasets", "plots"],
    ["estimators"],
    ["report", "experiments"],
    ["cli"],
]
LEVEL = {folder: level for level, folders in enumerate(ORDER) for folder in folders}
ON_CALL = {
    ("posterior/tree.py", "plots/tree.py"),
    ("estimators/fitted.py", "report/__init__.py"),
}
"""Steps up that are taken only when a method is called: ``Tree.plot``, ``model.report``."""


def part(path: Path) -> str:
    """The folder of a file, for core the one inside it; the file itself where there is none."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "/".join(parts[: 2 if parts[0] == "core" else 1])


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


def file_of(name: str) -> Path | None:
    """The module that a dotted name is, or is in."""
    top, *rest = name.split(".")
    if top != "hamiltree" or rest == ["__version__"]:
        return None
    for length in (len(rest), len(rest) - 1):
        place = PACKAGE.joinpath(*rest[:length])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None


def graph() -> dict[Path, set[Path]]:
    """By module, the modules that it imports."""
    found = {path: {file_of(name) for name in imports(path)} for path in MODULES}
    allowed = {(PACKAGE / low, PACKAGE / high) for low, high in ON_CALL}
    return {
        path: {f for f in files if f not in (None, path) and (path, f) not in allowed}
        for path, files in found.items()
    }


def test_imports_point_down():
    reached: dict[Path, set[str]] = {}
    links = graph()
    for path in TopologicalSorter(links).static_order():  # refuses circles, and says where
        reached[path] = {part(path)}.union(*(reached[below] for below in links[path]))
    for path, parts in reached.items():
        here = part(path)
        if here in LEVEL:
            above = {p for p in parts if p in LEVEL and p != here and LEVEL[p] >= LEVEL[here]}
            assert not above, f"{path} leads to {above}"


def test_all_folders_have_a_place():
    folders = {part(path) for path in MODULES if path.parent not in (PACKAGE, PACKAGE / "core")}
    assert folders <= set(LEVEL)
    assert {part(path) for path in (PACKAGE / "core").iterdir() if path.suffix} <= {
        *LEVEL,
        "core/__init__",
    }


def test_tests_have_the_folders_of_the_sources():
    tests = Path(__file__).parent
    own = {"statistical", "properties", "reference", "mutants", "support"}
    for folder in {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}:
        assert folder.parts[:1] in {(), *((name,) for name in own)} or (PACKAGE / folder).is_dir()


def test_only_the_estimators_know_scikit_learns_base_classes():
    importers = {part(p) for p in MODULES if any(n.startswith("sklearn.base") for n in imports(p))}
    assert importers == {"estimators"}


def test_only_two_modules_call_arviz():
    importers = {p.stem for p in MODULES if any(n.startswith("arviz") for n in imports(p))}
    assert importers == {"diagnostics", "loo"}


def test_the_reader_of_imports_reads_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "core" / "soft").mkdir(parents=True)
    file = tmp_path / "core" / "soft" / "bad.py"
    file.write_text(
        "import numpy\nfrom .nodes import grow\nfrom ... import run\n"
        "def f():\n    from ...posterior import Posterior\n"
        "if TYPE_CHECKING:\n    from ...cli import app\n"
    )
    assert list(imports(file)) == [
        "numpy", "hamiltree.core.soft.nodes.grow", "hamiltree.run",
        "hamiltree.posterior.Posterior",
    ]  # fmt: skip
    assert part(file) == "core/soft"
    (tmp_path / "posterior.py").touch()
    assert file_of("hamiltree.posterior.Posterior") == tmp_path / "posterior.py"
    assert file_of("hamiltree.core.soft.bad") == file
    assert file_of("numpy.core") is None


@pytest.mark.parametrize("bad", ["core/tree/nodes.py", "methods/parameters.py"])
def test_a_step_up_and_a_circle_are_seen(bad, monkeypatch):
    """What a module imports, all that import it lead to."""
    links = graph()
    links[PACKAGE / bad].add(PACKAGE / "report" / "page.py")
    monkeypatch.setattr(sys.modules[__name__], "graph", lambda: links)
    with pytest.raises((AssertionError, ValueError)):
        test_imports_point_down()
