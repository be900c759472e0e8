"""The tables and the forest plot of the page on real data, made from the files of one run when the pages are built."""

from pathlib import Path

from survscore.paper.atlas.page import write_page


def _write(app):
    source = Path(app.srcdir)
    write_page(source / "atlas", source / "atlas_page")


def setup(app):
    """Make them before the pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
