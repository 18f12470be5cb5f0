"""Sphinx configuration; builds, and can be read, without a network."""

import os
import sys
import warnings
from pathlib import Path

import spgls

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "spgls"
author = "the spgls developers"
copyright = f"2026, {author}"
version = release = spgls.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "line_breaks",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Pages about how an example did, and its notebook, are no part of the site.
exclude_patterns = ["_build", "gallery/*.py", "gallery/*.ipynb", "sg_execution_times.rst"]
html_math_renderer = "mathml"
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
# The contents of a page say fit(), not StackelbergRegressor.fit(), which would be cut off.
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's parameter sections say the types in words
# Fields of result classes are described once, by the class docstring's Attributes section.
numpydoc_show_class_members = False

# Examples on the papers' data are shown and not run where SPGLS_DATA does not name its folder.
run = r"plot_" if os.environ.get("SPGLS_DATA") else r"plot_(?!data_)"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": run,
    "abort_on_example_error": True,
    "show_memory": False,
    "capture_repr": (),
    "min_reported_time": 1e9,
    "download_all_examples": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "show_signature": False,
    "plot_gallery": "True",
}
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

html_theme = "pydata_sphinx_theme"
html_title = f"spgls {release}"
# Without it the theme complains on every page that it was told no mode.
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navigation_depth": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# A summary is fetched from the page that was found, which browsers refuse for files on a disk.
html_show_search_summary = False
