"""Sphinx configuration; builds without a network."""

import spgls

project = "spgls"
author = "the spgls developers"
copyright = f"2026, {author}"
version = release = spgls.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's parameter sections say the types in words
# Fields of result classes are described once, by the class docstring's Attributes section.
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"spgls {release}"
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_show_sourcelink = False
