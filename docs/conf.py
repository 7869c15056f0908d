"""Settings of the documentation; building it needs no network."""

from importlib import import_module
from importlib.metadata import version as installed_version

import sphinx_autosummary_accessors

import_module("cvstats")  # registers the accessors whose methods are documented

project = "cvstats"
author = "cvstats developers"
copyright = f"2026, {author}"
version = release = installed_version("cvstats")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_autosummary_accessors",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
templates_path = [sphinx_autosummary_accessors.templates_path]
exclude_patterns = ["_build"]

# Pages are written in Markdown, formulas between dollar signs. MathJax, which sets them in the
# reader's browser, is part of the built pages: they too are complete without a network.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The signature of a typed function says its types; the docstring says what they mean.
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
add_module_names = False

# Copy what was typed, neither the prompt nor the printed output.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"cvstats {release}"
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
# Pages without pages below them need no navigation of their section.
html_sidebars = {
    page: [] for page in ("index", "getting_started", "architecture", "contributing", "changelog")
}
html_static_path = ["_static"]
html_css_files = ["custom.css"]
