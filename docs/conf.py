"""Sphinx settings."""

from survscore import __version__

project = "survscore"
copyright = "2026, the survscore developers"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_class_members_toctree = False
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "survscore"
html_show_sourcelink = False
html_sidebars = {"**": []}
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}
templates_path = ["_templates"]


def _leave_out_routing(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every estimator for routing metadata; its text refers to its own pages."""
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or name == "get_metadata_routing" else None


def setup(app):
    """Connect the above."""
    app.connect("autodoc-skip-member", _leave_out_routing)
