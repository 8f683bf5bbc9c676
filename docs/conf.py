"""How ``make docs`` builds the pages. Nothing asks the network, then or when they are read."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import hamiltree

project = "hamiltree"
author = "the hamiltree developers"
release = version = hamiltree.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
# Attributes that a class's docstring lists may be properties with docstrings of their own.
napoleon_use_ivar = True
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"hamiltree {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False


def write_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Formulas as MathML, which browsers draw by themselves: MathJax would be loaded from afar."""
    as_block = isinstance(node, nodes.math_block)
    translator.body.append(tex2mathml(node.astext(), as_block=as_block))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    renderers = (write_formula, None), (write_formula, None)
    app.add_html_math_renderer("mathml", *renderers)
