"""The sections of a report, and what they hold together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from survscore.reports.answers import AnswerSection
from survscore.reports.backtests import BacktestSection
from survscore.reports.calibrated import CalibrationSection
from survscore.reports.cells import Table
from survscore.reports.follow_up import DataSection
from survscore.reports.leakage import DiagnosisSection
from survscore.reports.methods import MethodsSection
from survscore.reports.scores import ScoresSection
from survscore.reports.section import Display, Panel, Section
from survscore.reports.segments import SegmentsSection
from survscore.reports.single_curves import CurvesSection
from survscore.reports.trends import HistorySection

#: In the order in which they are computed: some use what others have found.
SECTIONS: tuple[type[Section], ...] = (
    DataSection, ScoresSection, CalibrationSection, DiagnosisSection, AnswerSection, SegmentsSection, CurvesSection,
    BacktestSection, HistorySection, MethodsSection,
)  # fmt: skip


def tables(summary: dict[str, Any], sections: Iterable[type[Section]] = SECTIONS) -> dict[str, Table]:
    """Return every table of a page by the name of its file."""
    found = {name: table for section in sections for name, table in section(summary).tables().items()}
    return {name: table for name, table in found.items() if any(table.values())}


def panels(summary: dict[str, Any], sections: Iterable[type[Section]] = SECTIONS) -> dict[str, list[Panel]]:
    """Return the panels of every chart, by the table whose rows they draw; no drawing, but data about it."""
    found = {name: drawn for section in sections for name, drawn in section(summary).panels().items()}
    return {name: drawn for name, drawn in found.items() if drawn}


def displays(summary: dict[str, Any], sections: Iterable[type[Section]] = SECTIONS) -> dict[str, list[Display]]:
    """Return the tables that a page shows, by their place; a place may have one for each metric."""
    return {place: shown for section in sections for place, shown in section(summary).displays().items()}
