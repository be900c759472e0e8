"""What a report is about: what was asked for, and the comparison that its sections share."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from survscore._utils.dates import Unit
from survscore._utils.jobs import Progress
from survscore._validation import InputError, as_times, check_length, check_whole
from survscore.analysis.backtest_results import Backtest
from survscore.analysis.compare import compare
from survscore.causes import Cause
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import Range
from survscore.engine.inputs import (
    Null,
    any_event,
    as_models,
    check_outcomes,
    check_predictions,
    counted_from_entry,
    of_cause,
    one_or_more,
)
from survscore.engine.placing import check_on_processor
from survscore.incidence import IncidenceCurves
from survscore.inference.multiplicity import Correction
from survscore.metrics import Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.reports.answers import Answers, recommended_weighting
from survscore.reports.calibrated import horizons_of
from survscore.reports.comparing import SHOWN_AS_NOTES, WHOLE, Findings
from survscore.reports.earlier import backtested, trends
from survscore.reports.segments import SegmentFindings
from survscore.results.comparison import Comparison
from survscore.weighting import IPCW, Weighting, as_weighting, default_weightings, weightings_that_fit

TITLE = "How good are the predictions?"

P = ParamSpec("P")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """What a report is about, and how it is shown: the arguments of `survscore.report`, which documents each."""

    y: Outcomes
    models: (
        SurvivalCurves
        | IncidenceCurves
        | Mapping[str, SurvivalCurves | IncidenceCurves]
        | Iterable[tuple[str, SurvivalCurves | IncidenceCurves]]
    )
    _: KW_ONLY
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

    def data(self) -> tuple[Outcomes, dict[str, Any]]:
        """Return outcomes and models by name, checked, with times counted from entry."""
        if not isinstance(self.y, Outcomes):
            raise InputError(f"y must be Outcomes, not {type(self.y).__name__}")
        alone = isinstance(self.models, SurvivalCurves | IncidenceCurves)
        if not alone and not hasattr(self.models, "__iter__"):
            raise InputError("models must be SurvivalCurves or IncidenceCurves, or map names to them")
        models: Any = {"model": self.models} if alone else self.models
        scored_at = None
        if self.times is not None:
            scored_at = np.union1d(as_times(self.times), [] if self.horizons is None else as_times(self.horizons))
        y, named = counted_from_entry(self.y, as_models(models), scored_at, caller="a report")
        return y, dict(named)


def called_with(
    request: Callable[P, ReportRequest],
) -> Callable[[Callable[[ReportRequest], Result]], Callable[P, Result]]:
    """Let a function of a request be called with the arguments of the request, which so are listed once."""

    def decorate(function: Callable[[ReportRequest], Result]) -> Callable[P, Result]:
        signature = inspect.signature(request)

        @wraps(function)
        def by_arguments(*args: P.args, **kwargs: P.kwargs) -> Result:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:  # which names the function, and not the request
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(request(*args, **kwargs))

        returned = inspect.signature(function).return_annotation
        by_arguments.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
        return by_arguments

    return decorate


def causes_shown(y: Any, models: Mapping[str, Any], cause: Any) -> tuple[str, ...]:
    """Return the causes to report on one after the other; nothing where there is one, or one was chosen.

    All causes, if all models predict several: predictions of one cause need to be told which one it is.
    """
    check_outcomes(y, entry=True)
    chosen = cause is not None or bool(y.interest) or not y.causes
    return () if chosen or not incidences_of(models) else tuple(y.causes)


def incidences_of(models: Mapping[str, Any]) -> dict[str, IncidenceCurves]:
    """Return the models, if all of them predict several causes; nothing otherwise."""
    several = [isinstance(curves, IncidenceCurves) and len(curves.causes) > 1 for curves in models.values()]
    return dict(models) if all(several) else {}


class Study:
    """Outcomes, predictions and their comparison: what sections are made of.

    `y` and `models` are of one cause of events or of all together, `of_any_kind` and `of_any_event` of any cause.
    `recommended` is the weighting that needs no assumption, by which calibration goes, and `headline` that which
    conclusions go by, in words: the projected one, where there is one.
    """

    def __init__(self, y: Outcomes, given: Mapping[str, Any], options: ReportRequest) -> None:
        """Check what is given, and compare the models."""
        self.options, self.incidences = options, incidences_of(given)
        self.y, self.models = of_cause(y, given, options.cause, multiclass=True, caller="report")
        # of all causes together, what is no multi-class score is of events of any cause
        self.of_any_kind, self.of_any_event = any_event(self.y, self.models)
        for name, curves in self.of_any_event.items():
            check_predictions(self.of_any_kind, curves, f"the curves of {name!r}")
        check_on_processor("a report", self.of_any_kind, self.of_any_event)
        check_whole("n_curves", options.n_curves, 0)
        self.ids = labels_of(options.ids, self.y)
        if not str(options.title).strip():
            raise InputError("title must not be empty")
        choices = weightings_that_fit(self.y)
        self.metrics = [as_metric(metric) for metric in one_or_more(options.metric, Metric, "metric")]
        wanted: Any = one_or_more(options.weighting, Weighting, "weighting")
        if options.weighting is None:
            wanted = default_weightings(self.y, self.metrics) if choices.default else choices.names
        self.weightings = [as_weighting(weighting, self.y) for weighting in wanted]
        self.history = trends(options.history, self.y.chosen_cause)
        self.backtest = backtested(options.backtest, options.unit)
        self.comparison, self.segments = self._compared()
        self.findings = Findings.of(self.comparison, options.time_range)
        n, n_dropped_out = self.y.n_individuals, self.y.n_dropped_out
        self.recommended = recommended_weighting(self.weightings, n=n, n_dropped_out=n_dropped_out)
        weightings = self.comparison.weightings
        self.headline = self.findings.projected or weightings[self.recommended.position]
        self.answers = Answers(self.findings, options.time_range, self.headline)
        times, given_times = self.comparison.times, options.times is not None
        self.horizons = horizons_of(self.of_any_kind, self.of_any_event, times, options.horizons, given=given_times)
        self.caution = None
        if isinstance(self.chosen, IPCW) and not self.y.event.all():
            self.caution = (
                "This answer is based on an IPCW score. If predictions encode the censoring times, such a score "
                f"prefers those that fall to zero after them, right or wrong. {choices.sentence}."
            )

    @property
    def chosen(self) -> Weighting:
        """The weighting that needs no assumption, or the first."""
        return self.weightings[self.recommended.position]

    def _compared(self) -> tuple[Comparison, SegmentFindings | None]:
        options = self.options
        with warnings.catch_warnings():
            for category in SHOWN_AS_NOTES:
                warnings.simplefilter("ignore", category)
            compared: Any = compare(
                self.y,
                self.models,
                metric=self.metrics,
                weighting=self.weightings,
                times=options.times,
                reference=options.reference,
                null=options.null,
                groups=options.groups,
                level=options.level,
                ranges=[options.time_range],
                by=options.by,
            )
        if options.by is None:
            return compared, None
        return compared.total, SegmentFindings.of(compared.corrected(options.correction), options.time_range)


def labels_of(ids: Sequence[Any] | None, y: Outcomes) -> list[Any] | None:
    """Return what individuals are called, one label for each."""
    labels = None if ids is None else list(ids)
    if labels is not None:
        check_length("ids", len(labels), "y", len(y))
    return labels
