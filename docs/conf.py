"""Settings of the documentation; building it needs no network."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from llm_files import write_logs  # noqa: E402
from method_lists import name_accessor, write_lists  # noqa: E402  (imports cvstats)

lists = write_lists()
write_logs(Path(__file__).parent / "tutorials")

project = "cvstats"
author = "cvstats developers"
copyright = f"2026, {author}"
version = release = installed_version("cvstats")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "api/_*", "_templates", "jupyter_execute"]

# Pages are written in Markdown, formulas between dollar signs. MathJax, which sets them in the
# reader's browser, is part of the built pages: they too are complete without a network.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Tutorials are notebooks, run anew by each build: an error, a warning or any other word on the
# standard error stream fails it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 180  # for a cell; the first call of a kernel compiles it
nb_output_stderr = "warn"

# The signature of a typed function says its types; the docstring says what they mean.
autodoc_typehints = "none"
autosummary_generate = ["api/index.md", *lists]  # the pages that list functions
numpydoc_show_class_members = False
# Every docstring of the API pages passes every check of numpydoc, except these.
numpydoc_validation_checks = {
    "all",
    "SA01",  # See Also: tests/project/test_docstrings.py asks methods for it
    "ES01",  # an extended summary: the same file asks methods for their target and formula
    "EX01",  # examples: it asks functions and classes for one, which members do without
}
# These repeat a function as a method: accessor and moments with the docstring of the function,
# plots with one line that names it. Moments and counts are made by their class methods,
# monitors by a function. The options of losses are in a typed dict, which numpydoc does not read.
numpydoc_validation_exclude = {
    r"^cvstats\.losses$",
    r"\.cvci\.",
    r"\.Plots\.\w+$",
    r"\.Moments(\.(?!of_log|save|load)\w+)?$",
    r"\.(LabelCounts|Monitor)$",
}
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
    page: []
    for page in (
        "index",
        "getting_started",
        "faq",
        "cite",
        "glossary",
        "other_tools",
        "benchmarks",
        "evidence",
        "methods",
        "architecture",
        "contributing",
        "changelog",
    )
}
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")


def setup(app):
    app.connect("autodoc-process-docstring", name_accessor, priority=400)  # before numpydoc
