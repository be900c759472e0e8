"""A report that can be shown: `summarise` computes plain data, `render` makes one page of them."""

from survscore.reports.page import Report, render, report
from survscore.reports.summary import summarise

__all__ = ["Report", "render", "report", "summarise"]
