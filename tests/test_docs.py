"""The documentation: its programs run, its links lead somewhere, its reference is complete."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest

import hamiltree
import hamiltree.datasets
import hamiltree.plots
from hamiltree.core.moves.propose import NAMES
from hamiltree.methods import METHODS
from hamiltree.posterior.loo import FEWEST_DRAWS
from hamiltree.posterior.tree import Tree

from .support.browser import accessibility, browser
from .support.draws import place
from .support.examples import CELL, ROOT, WRITTEN, pages, programs, run_page

DOCS = ROOT / "docs"
DIRECTIVE = re.compile(r"^\.\. auto\w+:: ([\w.]+)", re.MULTILINE)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
REFERENCE = sorted(DOCS.glob("api*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


# ------------------------------------------------------------------ programs


@pytest.fixture
def short_chains(monkeypatch):
    """The pages' chains, too short to mean anything."""
    for cls in METHODS.values():
        warmup = None if cls.defaults.n_warmup is None else 10
        short = replace(cls.defaults, n_chains=2, n_warmup=warmup, n_draws=FEWEST_DRAWS)
        monkeypatch.setattr(cls, "defaults", short)
    yield
    plt.close("all")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_programs_run(page, short_chains):
    programs = 0
    for program, printed, shown in run_page(page):
        assert not (shown and not printed), f"prints nothing, and the page says it does:\n{program}"
        programs += 1
    assert programs


def lasting(output: str) -> list[str]:
    """Lines that no clock changes."""
    return [line.rstrip() for line in output.rstrip().splitlines() if "run time" not in line]


@pytest.mark.long
@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_pages_show_what_their_programs_print(page):
    written = json.loads(WRITTEN.read_text("utf-8"))
    if place() != written:
        pytest.skip(f"written on another processor or numba: {written}")
    compared = 0
    for program, printed, shown in run_page(ROOT / page):
        if shown is not None:
            assert lasting(printed) == lasting(shown), program
            compared += 1
    assert compared >= 2


def test_pages_with_programs_are_found():
    tutorials = {path.name for path in DOCS.glob("tutorial-*.md")}
    assert len(tutorials) == 4
    assert {"README.md", "start.md", "choosing.md", "gallery.md"} | tutorials <= {
        path.name for path in pages()
    }


def test_cells_of_notebooks_are_formatted_as_programs_are(tmp_path):
    """Ruff looks into blocks of Python alone."""
    cells = [
        found[2] for page in DOCS.glob("tutorial-*.md") for found in CELL.finditer(page.read_text())
    ]
    assert len(cells) > 40
    for k, cell in enumerate(cells):
        (tmp_path / f"cell_{k}.py").write_text(cell, "utf-8")
    command = ["ruff", "format", "--check", "--config", ROOT / "pyproject.toml", tmp_path]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------ the reference


def public_names() -> set[str]:
    modules = (hamiltree, hamiltree.methods, hamiltree.plots, hamiltree.datasets)
    return {f"{module.__name__}.{name}" for module in modules for name in module.__all__}


def documented_names() -> set[str]:
    return {name for page in REFERENCE for name in DIRECTIVE.findall(page.read_text("utf-8"))}


def test_the_reference_has_every_public_name():
    assert public_names() <= documented_names(), "add what is missing to docs/api-*.md"


def test_the_reference_has_no_name_that_does_not_exist():
    for name in documented_names():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_reference_has_the_classes_that_methods_return():
    known = {name.rsplit(".", 1)[1] for name in documented_names()}
    found = set()
    for cls in (hamiltree.Posterior, Tree):
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            returned = str(inspect.signature(method).return_annotation)
            for word in re.findall(r"[A-Z]\w+", "" if name.startswith("_") else returned):
                kind = method.__globals__.get(word)
                if inspect.isclass(kind) and kind.__module__.startswith("hamiltree"):
                    found.add(word)
    assert {"Diagnosis", "Shape", "Tree"} <= found <= known


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("sampler.md", NAMES),
        ("choosing.md", METHODS),
        ("plots.md", hamiltree.plots.__all__),
        ("gallery.md", hamiltree.plots.__all__),
    ],
)
def test_pages_name_all_there_is(page, names):
    text = (DOCS / page).read_text("utf-8")
    missing = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)]
    assert not missing, f"docs/{page} does not mention {missing}"


# ------------------------------------------------------------------ links and the build


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text("utf-8")):
        if not target.startswith(("http://", "https://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    for name in re.findall(r"`((?:\w+/)+\w+\.\w+)`", page.read_text("utf-8")):
        assert any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "hamiltree")), name


def test_every_page_is_in_the_index():
    listed = [
        word for page in ("index", "api") for word in (DOCS / f"{page}.md").read_text().split()
    ]
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= set(listed)


LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//|<link[^>]+href=\"(?:https?:)?//"
)


def build(site, *options):
    """The pages, in a folder; a warning is an error. The notebooks are executed unless told not."""
    for needed in ("sphinx", "myst_nb", "furo"):
        pytest.importorskip(needed, reason="pip install --group docs")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", *options, DOCS, site]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    for page in site.glob("*.html"):
        assert not LOADED.search(page.read_text("utf-8")), page.name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages without what the tutorials print."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    build(folder, "-D", "nb_execution_mode=off")
    return folder


def test_the_pages_build_without_a_warning_and_load_nothing(site):
    assert (site / "index.html").exists()
    reference = "".join((site / f"{p.stem}.html").read_text("utf-8") for p in REFERENCE)
    for name in public_names():
        assert f'id="{name}"' in reference, name


def test_tutorials_can_be_downloaded(site):
    assert len(check_notebooks(site)) == 4


def test_pages_are_accessible(site):
    check_accessibility(site, "index", "start", "gallery", "api-classifier", "command-line")


@pytest.mark.long
def test_the_build_executes_the_tutorials(tmp_path):
    """With the chains that readers get: a warning or a false claim of the text ends the build."""
    site = tmp_path / "site"
    build(site)
    for page, notebook in check_notebooks(site).items():
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert all(cell["execution_count"] for cell in cells)
        kinds = {
            kind
            for cell in cells
            for output in cell["outputs"]
            for kind in output.get("data", {output["output_type"]: None})
        }
        assert {"stream", "text/html", "image/png"} <= kinds, page
    check_accessibility(site, *(page.stem for page in DOCS.glob("tutorial-*.md")))


def check_accessibility(site, *pages):
    """What axe-core says about pages in the light and in the dark: nothing serious."""
    with browser() as running:
        for scheme in ("light", "dark"):
            page = running.new_page(color_scheme=scheme)
            for name in pages:
                page.goto((site / f"{name}.html").as_uri())
                found = [v for v in accessibility(page) if v["impact"] in ("serious", "critical")]
                assert found == [], f"{name}, {scheme}"


def check_notebooks(site):
    """Each tutorial offers its notebook, which can be read without the other pages."""
    found = {}
    for page in sorted(DOCS.glob("tutorial-*.md")):
        path = site / "notebooks" / f"{page.stem}.ipynb"
        assert f'href="notebooks/{path.name}"' in (site / f"{page.stem}.html").read_text("utf-8")
        found[page.name] = notebook = json.loads(path.read_text("utf-8"))
        code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
        assert [f"{source}\n" for source in code] == [program for program, _ in programs(page)]
        text = "".join("".join(c["source"]) for c in notebook["cells"])
        assert not re.search(r"\]\((?!https?://)", text), "a link to a page that is not there"
    return found
