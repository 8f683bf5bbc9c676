"""How ``make docs`` builds the pages. Nothing asks the network, then or when they are read."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import hamiltree

sys.path.insert(0, str(Path(__file__).parent))
from notebooks import configure_kernels, publish_notebooks, show_download

project = "hamiltree"
author = "the hamiltree developers"
release = version = hamiltree.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
smartquotes = False  # preset="paper" is code wherever it stands

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# The tutorials are notebooks, which are executed whenever the pages are built; what goes wrong
# there, or is written to standard error, such as a warning that chains disagree, ends the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_show_tb = True
nb_output_stderr = "error"
nb_merge_streams = True
# A package of the theme makes logging show everybody's messages.
for package in ("numexpr", "traitlets"):
    logging.getLogger(package).setLevel(logging.WARNING)

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
# Attributes that a class's docstring lists may be properties with docstrings of their own.
napoleon_use_ivar = True
napoleon_google_docstring = False
# Types in docstrings are words for people, such as "ndarray of shape (n_classes,)", and no links.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"hamiltree {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False


def write_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Formulas as MathML, which browsers draw by themselves: MathJax would be loaded from afar."""
    as_block = isinstance(node, nodes.math_block)
    translator.body.append(tex2mathml(node.astext(), as_block=as_block))
    raise nodes.SkipNode


def quote_fitted_names(app: Any, what: str, name: str, obj: Any, options: Any, lines: Any) -> None:
    """``classes_`` in prose as code: reStructuredText takes a last underscore for a link."""
    for k, line in enumerate(lines):
        entry, colon, rest = line.rpartition(" : ")  # the name of a listed attribute stays bare
        lines[k] = entry + colon + re.sub(r"(?<![\w`.])[a-z]\w*_(?![\w`])", r"``\g<0>``", rest)


def keep_last_underscores(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: Any
) -> None:
    """``posterior_`` as the name of a field, after napoleon: bare, it would lose its underscore."""
    for k, line in enumerate(lines):
        lines[k] = re.sub(r"^(:(?:ivar|vartype) \w*)_:", r"\g<1>\\_:", line)


def skip_inherited(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn gives every estimator."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn") else None


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("autodoc-process-docstring", quote_fitted_names, priority=100)
    app.connect("autodoc-process-docstring", keep_last_underscores, priority=900)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("builder-inited", configure_kernels)
    app.connect("html-page-context", show_download)
    app.connect("build-finished", publish_notebooks)
