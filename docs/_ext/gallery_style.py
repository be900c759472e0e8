"""The examples' own figures in the style of the library's, so that a page has one look."""

import matplotlib as mpl

from survscore.plots import PAGE
from survscore.plots.style import settings


def apply(gallery_conf, example):
    """Set it for an example, after what the one before it has set was taken back."""
    mpl.rcParams.update(settings(PAGE))
