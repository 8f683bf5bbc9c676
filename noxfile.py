#!/usr/bin/env -S uv run --script

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The checks in environments of their own, on any system and for several versions of Python.

`make test` is the short way for one Python. `nox -s tests-3.13` is the way to another, and what the
CI workflow runs where there is no make. `nox --list` says what there is.
"""

from __future__ import annotations

import re

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
FAST = ("-n", "auto", "--dist", "loadfile", "-m", "not long")
# With SCIPY_ARRAY_API two of scikit-learn's checks run that are skipped without it.
ENVIRONMENT = {"SCIPY_ARRAY_API": "1"}


def install(session: nox.Session, *groups: str, also: tuple[str, ...] = ()) -> None:
    """Hamiltree from the sources, and what these groups of pyproject.toml name."""
    session.install("--editable", ".", *nox.project.dependency_groups(PROJECT, *groups), *also)


def oldest(package: str) -> str:
    """The lower bound that pyproject.toml sets on a dependency, as a requirement."""
    for requirement in PROJECT["project"]["dependencies"]:
        if found := re.match(rf"{package}>=([\d.]+)", requirement):
            return f"{package}=={found[1]}"
    raise ValueError(f"pyproject.toml has no lower bound on {package}")


def run_tests(session: nox.Session) -> None:
    """All kernels first, which otherwise each of the tests' processes would compile."""
    session.run("python", "-m", "hamiltree", "compile")
    session.run("pytest", *(session.posargs or FAST), env=ENVIRONMENT)


@nox.session
def lint(session: nox.Session) -> None:
    """Everything in .pre-commit-config.yaml, types included."""
    install(session, "dev")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests without those marked long; arguments after -- go to pytest."""
    install(session, "test", "docs")
    run_tests(session)


@nox.session(default=False)
@nox.parametrize("version", ["oldest", "newest"], ids=["oldest", "newest"])
def numba(session: nox.Session, version: str) -> None:
    """The tests with the oldest and the newest numba that pyproject.toml allows."""
    install(session, "test", "docs", also=(oldest("numba"),) if version == "oldest" else ())
    session.run("python", "-c", "import numba; print('numba', numba.__version__)")
    run_tests(session)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as web pages, in build/docs; a warning is an error."""
    install(session, "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-q", "docs", "build/docs")


@nox.session(default=False)
def dist(session: nox.Session) -> None:
    """Wheel and source distribution: built, looked through, installed, and run."""
    install(session, "dist", "test")
    session.run("python", "-m", "tests.support.dist_check")


@nox.session(default=False)
def review(session: nox.Session) -> None:
    """Scientific-python's list of habits."""
    session.install(*nox.project.dependency_groups(PROJECT, "review"))
    session.run("repo-review", ".")


if __name__ == "__main__":
    nox.main()
