"""What a report says, as plain data: dictionaries, lists, texts and numbers, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from survscore._utils.dates import plural_word
from survscore._utils.jobs import silent
from survscore._validation import InputError
from survscore._version import __version__
from survscore.causes import ALL_CAUSES, ALL_STATUSES
from survscore.engine.inputs import of_cause, one_or_more
from survscore.metrics import Loss, Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.reports.answers import AnswerSection
from survscore.reports.calibrated import CalibrationSection
from survscore.reports.earlier import BacktestSection, HistorySection
from survscore.reports.individuals import CurvesSection, DataSection, single_curves
from survscore.reports.leakage import DiagnosisSection
from survscore.reports.methods import MethodsSection
from survscore.reports.scores import ScoresSection
from survscore.reports.section import PageTable, Panel, Section, Table
from survscore.reports.segments import SegmentsSection
from survscore.reports.study import ReportRequest, Study, called_with, causes_shown, incidences_of, labels_of
from survscore.results.printing import short_names

#: In the order in which they are computed: some use what others have computed.
SECTIONS: tuple[type[Section], ...] = (
    DataSection,
    ScoresSection,
    CalibrationSection,
    DiagnosisSection,
    AnswerSection,
    SegmentsSection,
    CurvesSection,
    BacktestSection,
    HistorySection,
    MethodsSection,
)


@called_with(ReportRequest)
def summarise(request: ReportRequest) -> dict[str, Any]:
    """Compute everything that a report shows.

    Parameters
    ----------
    y, models, and all others
        As for `survscore.report`.

    Returns
    -------
    dict
        Of plain data, with tables as dictionaries of equally long lists; missing numbers are None. Of several causes,
        ``"causes"`` has such a summary for each.

    Examples
    --------
    >>> from survscore.reports import summarise
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(500, seed=1)
    >>> summary = summarise(sample.outcomes, {"truth": sample.survival(range(1, 91))}, times=range(10, 81, 10))
    >>> summary["weightings"]
    ['administrative', 'projected (own ranks)']
    >>> summary["verdicts"]["sentence"][0]
    'Kaplan-Meier is not significantly different from truth for individuals with C* ≥ t only: its mean Brier score
    differs by 0.0000 (95 % interval −0.0014 to 0.0014, p = 0.999).'
    """
    return summarise_request(request)


def summarise_request(request: ReportRequest) -> dict[str, Any]:
    """Return the plain data of a report that was asked for."""
    y, models = request.data()
    causes = causes_shown(y, models, request.cause)
    return _of_several(y, models, causes, request) if causes else _of_one(y, models, request)


def tables_of(summary: dict[str, Any], sections: Iterable[type[Section]] = SECTIONS) -> dict[str, Table]:
    """Return every table of a page by the name of its file."""
    every = {name: table for section in sections for name, table in section(summary).tables().items()}
    return {name: table for name, table in every.items() if any(table.values())}


def panels_of(summary: dict[str, Any], sections: Iterable[type[Section]] = SECTIONS) -> dict[str, list[Panel]]:
    """Return the panels of every chart, by the table whose rows they draw; no drawing, but data about it."""
    every = {name: drawn for section in sections for name, drawn in section(summary).panels().items()}
    return {name: drawn for name, drawn in every.items() if drawn}


def page_tables_of(summary: dict[str, Any], sections: Iterable[type[Section]] = SECTIONS) -> dict[str, list[PageTable]]:
    """Return the tables that a page shows, by their place; a place may have one for each metric."""
    return {place: shown for section in sections for place, shown in section(summary).page_tables().items()}


def _of_one(y: Outcomes, models: Mapping[str, Any], options: ReportRequest) -> dict[str, Any]:
    """Return the summary of one cause of events, or of all together: what sections share, and then each section."""
    tell = options.progress or silent
    tell(0, len(SECTIONS) + 1, "comparing")
    study = Study(y, models, options)
    comparison, scored = study.comparison, study.answers.scored
    summary: dict[str, Any] = {
        "survscore": __version__,
        "title": str(options.title),
        "cause": study.y.chosen_cause if study.y.interest > 0 else None,
        "all_causes": study.y.interest == ALL_STATUSES,
        "models": list(comparison.models),
        "reference": comparison.reference,
        "metrics": {
            name: {"label": scored[name].label, "direction": direction, "bounded": name in study.findings.bounded}
            for name, direction in study.findings.directions.items()
        },
        "null_model": comparison.null,
        "weightings": comparison.weightings,
        "short_weightings": list(short_names(comparison.weightings).values()),
        "headline": study.headline,
        "unit": plural_word(options.unit),
        "level": float(options.level),
        "steps": [name for name, curves in study.models.items() if curves.interpolation == "step"],
    }
    for done, section in enumerate(SECTIONS, start=1):
        tell(done, len(SECTIONS) + 1, section.doing)
        summary |= section.data(study, summary)
    tell(len(SECTIONS) + 1, len(SECTIONS) + 1, "summarised")
    return summary


def _of_several(
    y: Outcomes, models: Mapping[str, Any], causes: Sequence[str], options: ReportRequest
) -> dict[str, Any]:
    """Return a summary for each cause, and of the metrics that have a multi-class form one for all together."""
    if options.history is not None or options.backtest is not None:
        raise InputError("history and backtest are of one cause of events: say which one (cause=)")
    # curves of individuals show all causes at once, and are not repeated for each
    each = replace(options, n_curves=0, ids=None)
    parts = [_of_one(y, models, replace(each, cause=one)) for one in causes]
    losses = [one for one in map(as_metric, one_or_more(options.metric, Metric, "metric")) if isinstance(one, Loss)]
    if losses:
        parts.append(_of_one(y, models, replace(each, cause=ALL_CAUSES, metric=losses, horizons=None)))
    # what they share is there once
    shared = {name: parts[0][name] for name in ("survscore", "title", "models", "null_model", "unit", "level", "data")}
    of_first, named = of_cause(y, models, y.causes[0])
    times, ids = np.array(parts[0]["data"]["remaining"]["time"]), labels_of(options.ids, y)
    curves = single_curves(of_first, named, times, options.n_curves, ids, incidences_of(models))
    return {**shared, "causes": parts, "curves": curves}
