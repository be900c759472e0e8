"""Sphinx settings."""

import os
import sys
from pathlib import Path

# Before anything starts threads: the examples are small, and beside other work threads mostly wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from survscore import __version__, datasets

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "survscore"
copyright = "2026, the survscore developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "numpydoc",
    "mathml",
    "conformance_table",
    "dataset_table",
    "atlas_page",
    "benchmark_tables",
    "reproduced",
]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_class_members_toctree = False
exclude_patterns = ["_build", "_ext"]
html_theme = "pydata_sphinx_theme"
html_title = "survscore"
html_show_sourcelink = False
html_sidebars = {"**": []}
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2, "header_links_before_dropdown": 3}
html_context = {"default_mode": "auto"}
templates_path = ["_templates"]
html_math_renderer = "mathml"
html_static_path = ["_ext/static"]
html_css_files = ["pages.css", "benchmarks.css"]
# An example on data that are not installed here is left out; the rest of the gallery is built.
NEED_DATA = {"plot_then_and_now": "cdnow", "plot_diabetes_register": "dmlate"}
without_data = [example for example, name in NEED_DATA.items() if name not in datasets.available()]
sphinx_gallery_conf = {
    "ignore_pattern": "|".join(["__init__", *(f"{example}[.]py$" for example in without_data)]),
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "reset_modules": ("matplotlib", "gallery_style.apply"),
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "notebook_extensions": set(),
    "remove_config_comments": True,
    # Of the last value in a cell, show tables and what reads well, not the objects of matplotlib.
    "ignore_repr_types": r"matplotlib|survscore\.plots|list|tuple",
}


def _leave_out_routing(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator for routing metadata; its text refers to its own pages."""
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or name == "get_metadata_routing" else None


def setup(app):
    """Connect the above."""
    app.connect("autodoc-skip-member", _leave_out_routing)
