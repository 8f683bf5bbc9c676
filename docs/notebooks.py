"""The tutorials as notebooks: pictures at twice the resolution, and a copy of each to download.

MyST-NB executes them and leaves the executed notebooks beside the pages; what is done with them
here makes them worth having elsewhere.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat

FOLDER = "notebooks"
"""Of the built pages."""
PROFILE = """
c.InlineBackend.figure_formats = {"retina"}
c.IPKernelApp.log_level = "ERROR"
"""
DOWNLOAD = (
    '<p class="notebook"><a href="{}" download>Download this page as a notebook</a>; '
    "what it prints was printed when these pages were built.</p>"
)
LINK_TO_A_PAGE = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://)[^)]*\)")


def configure_kernels(app: Any) -> None:
    """Pictures of executed cells have twice the resolution of a plain screen."""
    app.notebook_profile = tempfile.TemporaryDirectory()  # goes with the build
    profile = Path(app.notebook_profile.name) / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text(PROFILE, "utf-8")
    os.environ["IPYTHONDIR"] = app.notebook_profile.name
    os.environ.pop("MPLBACKEND", None)  # with Agg, say, notebooks would have no pictures


def notebook_of(app: Any, page: str) -> Path:
    """Where MyST-NB writes a page's notebook, if the page is one."""
    return Path(app.env.mystnb_config.output_folder) / f"{page}.ipynb"


def is_notebook(app: Any, page: str) -> bool:
    return "kernelspec" in app.env.metadata.get(page, {})


def show_download(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:
    """The way to the notebook, below the title of its page."""
    if is_notebook(app, page):
        link = DOWNLOAD.format(f"{FOLDER}/{page}.ipynb")
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{link}", 1)


def publish_notebooks(app: Any, exception: Exception | None) -> None:
    """Copies of the executed notebooks, without what makes sense in these pages alone."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for page in sorted(filter(lambda page: is_notebook(app, page), app.env.found_docs)):
        notebook = nbformat.read(notebook_of(app, page), as_version=4)
        nbformat.write(for_readers(notebook), folder / f"{page}.ipynb")


def for_readers(notebook: Any) -> Any:
    """Without links to other pages, and without cells that the pages do not show."""
    notebook.cells = [
        cell for cell in notebook.cells if "remove-cell" not in cell.metadata.get("tags", [])
    ]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK_TO_A_PAGE.sub(r"\1", cell.source)
    return notebook
