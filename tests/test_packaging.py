"""What pyproject.toml declares is what the package needs, and files that can be read."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def name_of(requirement: str) -> str:
    """A requirement's package, spelled as indexes do."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def imported_modules() -> set[str]:
    """Top-level modules that the package imports, anywhere in it."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"hamiltree"}


def imported_packages() -> set[str]:
    """The distributions that these modules come from; of several, one is enough."""
    owners = metadata.packages_distributions()
    return {re.sub(r"[-_.]+", "-", owners.get(m, [m])[0]).lower() for m in imported_modules()}


def test_dependencies_are_what_is_imported():
    needed = imported_packages()
    always = {name_of(r) for r in PROJECT["project"]["dependencies"]}
    extras = {
        name_of(r) for group in PROJECT["project"]["optional-dependencies"].values() for r in group
    }
    comes_with_numba = {"llvmlite"}  # numba pins the version it was built for
    of_notebooks = {"ipython"}  # imported inside a Jupyter kernel, which is IPython's own
    assert needed - always - extras - comes_with_numba - of_notebooks == set()
    assert always - needed == set()


def groups_of(name: str) -> set[str]:
    """Packages of a dependency group, with those of the groups that it includes."""
    found = set()
    for entry in PROJECT["dependency-groups"][name]:
        found |= groups_of(entry["include-group"]) if isinstance(entry, dict) else {name_of(entry)}
    return found


def test_the_development_environment_runs_every_check():
    assert groups_of("dev") == groups_of("docs") | groups_of("lint") | groups_of("test")
    needed_by_tests = [r for r in PROJECT["dependency-groups"]["test"] if "hamiltree" in r]
    assert needed_by_tests == ["hamiltree[excel,onnx,parquet]"], (
        "else tests of the extras are skipped"
    )


def test_versions_agree_wherever_they_are_written():
    from hamiltree import __version__

    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(rf"^version: {re.escape(__version__)}$", citation, re.MULTILINE)
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_workflow_tests_every_python_that_is_claimed():
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    if not workflow.exists():
        pytest.skip("a source distribution has no workflow")
    text = " ".join(PROJECT["project"]["classifiers"])
    claimed = re.findall(r"Python :: (3\.\d+)", text)
    tested = re.search(r"^ +python: \[(.*)\]$", workflow.read_text("utf-8"), re.MULTILINE)
    assert tested
    assert re.findall(r"[\d.]+", tested[1]) == claimed


def test_no_source_file_is_too_long_to_read_in_one_sitting():
    sources = [
        path
        for folder in ("benchmarks", "src", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".js", ".css", ".cpp", ".h")
    ]
    assert len(sources) > 100
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in sources}
    assert [path for path, length in lengths.items() if length > 400] == []
