"""What a report is about: options, and the comparison that its sections share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from survscore._utils.dates import Unit
from survscore._utils.jobs import Progress
from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    UndefinedScoreWarning,
    UnequalWeightsWarning,
    check_length,
    check_whole,
)
from survscore.analysis.backtest_results import Backtest
from survscore.analysis.compare import compare
from survscore.causes import Cause
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import Range
from survscore.engine.inputs import Null, any_event, check_predictions, of_cause, one_or_more
from survscore.engine.placing import check_on_processor
from survscore.incidence import IncidenceCurves
from survscore.inference.multiplicity import Correction
from survscore.metrics import Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.reports.answers import Answers
from survscore.reports.backtests import backtested
from survscore.reports.calibrated import horizons_of
from survscore.reports.causes import incidences_of
from survscore.reports.comparing import WHOLE, Findings
from survscore.reports.recommendation import WeightingChoice, recommended_weighting
from survscore.reports.segments import SegmentFindings
from survscore.reports.trends import trends
from survscore.results.comparison import Comparison
from survscore.weighting import IPCW, Weighting, as_weighting, default_weightings, weightings_that_fit

TITLE = "How good are the predictions?"
TOLD_BY_NOTES = (UndefinedScoreWarning, FewFollowedWarning, FewGroupsWarning, UnequalWeightsWarning)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportOptions:
    """What a report shows, and how; `survscore.report` says what each is."""

    metric: str | Metric | Sequence[str | Metric] = ("brier", "log")
    weighting: str | Weighting | Sequence[str | Weighting] | None = None
    times: ArrayLike | None = None
    time_range: Range = WHOLE
    reference: str | None = None
    null: Null = True
    horizons: ArrayLike | None = None
    groups: ArrayLike | None = None
    by: Any = None
    correction: Correction = "holm"
    level: float = 0.95
    ids: Sequence[Any] | None = None
    n_curves: int = 6
    title: str = TITLE
    settings: Mapping[str, Any] | None = None
    history: Path | str | None = None
    backtest: Backtest | None = None
    unit: Unit | str | None = None
    cause: Cause | None = None
    progress: Progress | None = None


@dataclass(frozen=True, eq=False)
class Study:
    """Outcomes, predictions and their comparison: what sections are made of.

    `y` and `models` are of one cause of events or of all together, `of_any_kind` and `of_any_event` of any cause.
    `recommended` is the weighting that needs no assumption, by which calibration goes, and `headline` the place of that
    which conclusions go by: the projected one, where there is one.
    """

    options: ReportOptions
    y: Outcomes
    models: Mapping[str, Any]
    of_any_kind: Outcomes
    of_any_event: Mapping[str, SurvivalCurves]
    incidences: Mapping[str, IncidenceCurves]
    metrics: list[Metric]
    weightings: list[Weighting]
    comparison: Comparison
    segments: SegmentFindings | None
    findings: Findings
    answers: Answers
    recommended: WeightingChoice
    headline: int
    horizons: list[float]
    caution: str | None
    ids: list[Any] | None
    history: dict[str, Any]
    backtest: dict[str, Any] | None

    @property
    def chosen(self) -> Weighting:
        """The weighting that needs no assumption, or the first."""
        return self.weightings[self.recommended.position]

    @property
    def label(self) -> str:
        """The weighting that conclusions go by, in words."""
        return self.comparison.weightings[self.headline]

    @classmethod
    def of(cls, y: Outcomes, given: Mapping[str, Any], options: ReportOptions) -> Study:
        """Check what is given, and compare the models."""
        y, named = of_cause(y, given, options.cause, multiclass=True, caller="report")
        # of all causes together, what is no multi-class score is of events of any cause
        of_any_kind, of_any_event = any_event(y, named)
        for name, curves in of_any_event.items():
            check_predictions(of_any_kind, curves, f"the curves of {name!r}")
        check_on_processor("a report", of_any_kind, of_any_event)
        check_whole("n_curves", options.n_curves, 0)
        ids = labels_of(options.ids, y)
        if not str(options.title).strip():
            raise InputError("title must not be empty")
        choices = weightings_that_fit(y)
        metrics = [as_metric(one) for one in one_or_more(options.metric, Metric, "metric")]
        wanted: Any = one_or_more(options.weighting, Weighting, "weighting")
        if options.weighting is None:
            wanted = default_weightings(y, metrics) if choices.default else choices.names
        weightings = [as_weighting(one, y) for one in wanted]
        history, backtest = trends(options.history, y.chosen_cause), backtested(options.backtest, options.unit)
        with warnings.catch_warnings():
            for told_by_notes in TOLD_BY_NOTES:
                warnings.simplefilter("ignore", told_by_notes)
            compared: Any = compare(
                y, named, metric=metrics, weighting=weightings, times=options.times, reference=options.reference,
                null=options.null, groups=options.groups, level=options.level, ranges=[options.time_range],
                by=options.by,
            )  # fmt: skip
        comparison, segments = compared, None
        if options.by is not None:
            comparison = compared.total
            segments = SegmentFindings.of(compared.corrected(options.correction), options.time_range)
        findings = Findings.of(comparison, options.time_range)
        recommended = recommended_weighting(weightings, n=y.n_individuals, n_dropped_out=y.n_dropped_out)
        headline = recommended.position
        if findings.projected is not None:
            headline = comparison.weightings.index(findings.projected)
        asked = options.times is not None
        horizons = horizons_of(of_any_kind, of_any_event, comparison.times, options.horizons, given=asked)
        caution = _caution(y, weightings[recommended.position], choices.sentence)
        answers = Answers(findings, options.time_range, comparison.weightings[headline])
        return cls(
            options, y, named, of_any_kind, of_any_event, incidences_of(given), metrics, weightings, comparison,
            segments, findings, answers, recommended, headline, horizons, caution, ids, history, backtest,
        )  # fmt: skip


def labels_of(ids: Sequence[Any] | None, y: Outcomes) -> list[Any] | None:
    """Return what individuals are called, one label for each."""
    labels = None if ids is None else list(ids)
    if labels is not None:
        check_length("ids", len(labels), "y", len(y))
    return labels


def _caution(y: Outcomes, headline: Weighting, sentence: str) -> str | None:
    """Return a caution where the headline is based on an IPCW score; None elsewhere."""
    if not isinstance(headline, IPCW) or y.event.all():
        return None
    return (
        "This answer is based on an IPCW score. If predictions encode the censoring times, such a score prefers those "
        f"that fall to zero after them, right or wrong. {sentence}."
    )
