"""The page: template, style and scripts of the folder ``page``, joined with the data."""

from __future__ import annotations

import hashlib
import html
import os
import re
from base64 import b64encode
from importlib.resources import files
from pathlib import Path

from numpy.typing import ArrayLike

from .. import __version__
from ..posterior import Posterior
from ..utils.json_text import json_text
from .contents import DRAWS, contents
from .names import Names, displays_of, with_names
from .performance import performance
from .texts import texts

SCRIPTS = (
    "numbers", "dom", "downloads", "imputation", "forest", "effects", "node_texts", "tree_parts",
    "tree", "charts", "row_form", "prediction", "performance", "main",
)  # fmt: skip


def write_report(
    posterior: Posterior,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    n_draws: int = DRAWS,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    names: Names | None = None,
) -> Path:
    """Write the report to a file; see ``report_html``."""
    target = Path(path)
    page = report_html(
        posterior, title=title, n_draws=n_draws, X_test=X_test, y_test=y_test, names=names
    )
    target.write_text(page, "utf-8")
    return target


def report_html(
    posterior: Posterior,
    *,
    title: str | None = None,
    n_draws: int = DRAWS,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    names: Names | None = None,
) -> str:
    """The posterior as one HTML page without any request to a network.

    Parameters
    ----------
    posterior : Posterior
    title : str, optional
        Heading of the page; made of the target's name unless given.
    n_draws : int
        Draws that go into the page, evenly spaced: through these the slider moves, and these
        predict the rows that the reader types. Fewer where they would make the page large.
    X_test, y_test : array-like, optional
        Rows that the trees have not seen, and their targets: the page then says how well they are
        predicted.
    names : mapping or path, optional
        Display names and units by column; see ``BayesianTreeClassifier.report``.
    """
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together: give both, or neither")
    displays = displays_of(names)
    data = contents(posterior, n_draws, displays)
    shown, unit = with_names(posterior, displays), data["targetUnit"]
    data["performance"] = None
    if X_test is not None and y_test is not None:
        data["performance"] = performance(posterior, X_test, y_test, shown=shown, unit=unit)
    folder = files("hamiltree.report") / "page"
    code = "\n".join((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    script = f'(() => {{\n"use strict";\n{code}}})();\n'
    style = (folder / "page.css").read_text("utf-8")
    parts = {name: html.escape(text) for name, text in texts(shown, data, title).items()}
    parts |= {
        "features_hidden": "" if data["features"] else "hidden",
        "performance_hidden": "" if data["performance"] else "hidden",
        "second_hidden": "" if posterior.n_classes else "hidden",
        "version": html.escape(__version__),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": _inside_script(json_text(data)),
    }
    template = (folder / "page.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _inside_script(json: str) -> str:
    """JSON that cannot end the element it stands in, whatever its texts hold."""
    for character in "<>&\u2028\u2029":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return json


def _hash(text: str) -> str:
    """For the content security policy: nothing but this very text may run."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
