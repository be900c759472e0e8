"""What a report says, as plain data: dictionaries, lists, texts and numbers, ready for JSON."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._utils.jobs import Progress, silent
from survscore._utils.units import Unit, plural_word
from survscore._validation import (
    FewFollowedWarning,
    FewGroupsWarning,
    InputError,
    UndefinedScoreWarning,
    as_times,
    check_length,
    check_whole,
    plural,
)
from survscore._version import __version__
from survscore.analysis.backtest_results import Backtest
from survscore.analysis.compare import compare
from survscore.causes import ALL_CAUSES, ALL_STATUSES, Cause
from survscore.curves import SurvivalCurves
from survscore.engine.averaging import Range
from survscore.engine.inputs import (
    Null,
    any_event,
    as_models,
    check_predictions,
    counted_from_entry,
    of_cause,
    one_or_more,
)
from survscore.engine.placing import check_on_processor
from survscore.incidence import IncidenceCurves
from survscore.inference.multiplicity import Correction
from survscore.metrics import Loss, Metric, as_metric
from survscore.outcomes import Outcomes
from survscore.reports import verdicts
from survscore.reports.answers import Answers, recommendation
from survscore.reports.backtests import backtested
from survscore.reports.calibrated import at_horizons, calibrated, for_the_same, horizons_of
from survscore.reports.causes import causes_shown, incidences_of, joined, single_incidences
from survscore.reports.comparing import WHOLE, Findings, as_table, plain
from survscore.reports.follow_up import follow_up, for_whom
from survscore.reports.leakage import around_censoring, leak_sentences
from survscore.reports.methods import methods
from survscore.reports.recommendation import recommended_weighting
from survscore.reports.segments import SegmentFindings
from survscore.reports.single_curves import single_curves
from survscore.reports.trends import trends
from survscore.results.comparison import Comparison
from survscore.results.printing import short_names, with_short_names
from survscore.weighting import IPCW, Weighting, as_weighting, default_weightings, weightings_that_fit

TITLE = "How good are the predictions?"


def summarise(
    y: Outcomes,
    models: SurvivalCurves
    | IncidenceCurves
    | Mapping[str, SurvivalCurves | IncidenceCurves]
    | Iterable[tuple[str, SurvivalCurves | IncidenceCurves]],
    *,
    metric: str | Metric | Sequence[str | Metric] = ("brier", "log"),
    weighting: str | Weighting | Sequence[str | Weighting] | None = None,
    times: ArrayLike | None = None,
    time_range: Range = WHOLE,
    reference: str | None = None,
    null: Null = True,
    horizons: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    by: Any = None,
    correction: Correction = "holm",
    level: float = 0.95,
    ids: Sequence[Any] | None = None,
    n_curves: int = 6,
    title: str = TITLE,
    settings: Mapping[str, Any] | None = None,
    history: Path | str | None = None,
    backtest: Backtest | None = None,
    unit: Unit | str | None = None,
    cause: Cause | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Compute everything that a report shows.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : SurvivalCurves, IncidenceCurves, mapping of str to these, or pairs
        What was predicted, for the same individuals in the same order.
    metric : {"brier", "log", "auc"} or Metric, or several
        What to compute; the headline of the page begins with the first.
    weighting : str, Weighting, or several, optional
        As for `compare`; where C* is unknown, IPCW by default. The headline goes by the projected one, or the one to
        trust if it is among them, or by the first.
    times : array_like, optional
        The evaluation times; by default as for `compare`.
    time_range : tuple of float, optional
        Over which time mean scores are taken; by default over all of `times`, up to the first without score.
    reference, null, groups, by, level
        As for `compare`; `by` adds a section on segments.
    correction : {"holm", "benjamini-hochberg", "none"}
        How p-values of segments allow for their number.
    horizons : array_like, optional
        At which times to show calibration, under the weighting of the headline; by default at three within the range.
    ids : sequence, optional
        What to call the individuals whose curves are shown; by default their positions.
    n_curves : int
        Of how many individuals to show the curves; 0 shows none.
    title : str
        Of the report.
    settings : mapping, optional
        More to say about how this was made, such as the names of files.
    history : path, optional
        Earlier runs that ``survscore check --history`` has stored, to show their mean scores.
    backtest : Backtest, optional
        Made by `backtest`: which score would have chosen the best model on earlier days.
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for labels.
    cause : str or int, optional
        Under competing risks the cause of events to report on; by default all causes, one after the other.
    progress : callable
        Called with (done, total, what is being done).

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
    >>> found = summarise(sample.outcomes, {"truth": sample.survival(range(1, 91))}, times=range(10, 81, 10))
    >>> found["weightings"]
    ['administrative', 'projected (own ranks)']
    >>> found["verdicts"]["sentence"][0]
    'Kaplan-Meier is not significantly different from truth for individuals with C* ≥ t only: its mean Brier score
    differs by 0.0000 (95 % interval −0.0014 to 0.0014, p = 0.999).'
    """
    given = as_models({"model": models} if isinstance(models, (SurvivalCurves, IncidenceCurves)) else models)
    scored_at = None if times is None else np.union1d(as_times(times), [] if horizons is None else as_times(horizons))
    y, given = counted_from_entry(y, given, scored_at, caller="a report")
    several = causes_shown(y, given, cause)
    if several:
        asked: dict[str, Any] = {
            "metric": metric, "weighting": weighting, "times": times, "time_range": time_range, "reference": reference,
            "null": null, "horizons": horizons, "groups": groups, "by": by, "correction": correction, "level": level,
            "title": title, "settings": settings, "unit": unit, "history": history, "backtest": backtest,
            "progress": progress,
        }  # fmt: skip
        return _of_several(y, given, several, asked, n_curves, ids)
    y, named = of_cause(y, given, cause, multiclass=True, caller="report")
    # of all causes together, what is no multi-class score is of events of any cause
    any_kind, of_any_event = any_event(y, named)
    for name, curves in of_any_event.items():
        check_predictions(any_kind, curves, f"the curves of {name!r}")
    check_on_processor("a report", any_kind, of_any_event)
    check_whole("n_curves", n_curves, 0)
    labels = _labels(ids, y)
    if not str(title).strip():
        raise InputError("title must not be empty")
    choices = weightings_that_fit(y)
    metrics = [as_metric(one) for one in one_or_more(metric, Metric, "metric")]
    wanted: Any = one_or_more(weighting, Weighting, "weighting")
    if weighting is None:
        wanted = default_weightings(y, metrics) if choices.default else choices.names
    weightings = [as_weighting(one, y) for one in wanted]
    earlier, tested = trends(history, y.chosen_cause), backtested(backtest, unit)
    progress(0, 3, "comparing")
    with warnings.catch_warnings():
        for told_elsewhere in (
            UndefinedScoreWarning,
            FewFollowedWarning,
            FewGroupsWarning,
        ):  # the notes say so, from the numbers
            warnings.simplefilter("ignore", told_elsewhere)
        compared: Any = compare(
            y, named, metric=metrics, weighting=weightings, times=times, reference=reference, null=null, groups=groups,
            level=level, ranges=[time_range], by=by,
        )  # fmt: skip
    comparison: Comparison = compared if by is None else compared.total
    segments = None if by is None else SegmentFindings.of(compared.corrected(correction), time_range)
    findings = Findings.of(comparison, time_range)
    recommended = recommended_weighting(weightings, n=len(y), n_dropped_out=y.n_dropped_out)
    # calibration goes by the weighting that needs no assumption; conclusions by the projected one, where there is one
    headline = recommended.position
    chosen = weightings[headline]
    if findings.projected is not None:
        headline = comparison.weightings.index(findings.projected)
    label = comparison.weightings[headline]
    answers = Answers(findings, time_range, label)
    disagreements = findings.disagreements()
    caution = _caution(y, chosen, choices.sentence)
    progress(1, 3, "checking calibration")
    horizons_shown = horizons_of(any_kind, of_any_event, comparison.times, horizons, given=times is not None)
    for_these = for_the_same(chosen, comparison.times)
    calibration = calibrated(y, named, for_these, horizons_shown, groups, level, asked=horizons is not None)
    table = at_horizons(
        y, named, for_these, horizons_shown, reference=comparison.reference, null=null, groups=groups, level=level
    )
    progress(2, 3, "looking at single curves")
    around = around_censoring(any_kind, of_any_event, weightings, comparison.times, groups, level)
    leaks = leak_sentences(around)
    summary = {
        "survscore": __version__,
        "title": str(title),
        "cause": y.chosen_cause if y.interest > 0 else None,
        "all_causes": y.interest == ALL_STATUSES,
        "models": list(comparison.models),
        "reference": comparison.reference,
        "metrics": {
            name: {"label": answers.scored[name].label, "direction": direction, "bounded": name in findings.bounded}
            for name, direction in findings.directions.items()
        },
        "ratios": [
            name
            for name in comparison.metrics
            if answers.scored[name].has_ratios and findings.directions[name] in ("lower", "higher")
        ],
        "null_model": comparison.null,
        "weightings": comparison.weightings,
        "short_weightings": list(short_names(comparison.weightings).values()),
        "headline": label,
        "recommended": recommended.sentence if len(weightings) > 1 else None,
        "unit": plural_word(unit),
        "caution": caution,
        "answer": {
            metric: {
                "sentence": findings.recommendations[metric].headline
                if metric in findings.recommendations
                else answers.sentence(metric),
                "cards": answers.cards(metric),
                "parts": answers.parts(metric),
                "recommendation": recommendation(
                    recommended.sentence,
                    caution,
                    with_short_names(disagreements["contradictions"][metric], comparison.weightings),
                    with_short_names(disagreements["unclear"][metric], comparison.weightings),
                    certain=recommended.certain,
                    leaking=_preferred_by_ipcw(leaks, weightings),
                    concluded=findings.recommendations.get(metric),
                ),
            }
            for metric in comparison.metrics
        },
        "leaks": leaks,
        "pairs": as_table(answers.pairs()),
        "interpolation": {name: str(curves.interpolation) for name, curves in named.items()},
        "steps": [name for name, curves in named.items() if curves.interpolation == "step"],
        "explanations": [one.explanation for one in weightings],
        "level": float(level),
        "time_ranges": {name: list(ends) for name, ends in findings.time_ranges.items()},
        "data": follow_up(y, comparison.times, groups),
        **{name: as_table(frame) for name, frame in findings.frames().items()},
        "disagreements": {**disagreements, "table": as_table(comparison.disagreements())},
        "segments": None if segments is None else segments.summary(label),
        "calibration": calibration,
        "horizons": table,
        "around_censoring": around,
        "curves": single_curves(y, named, comparison.times, n_curves, labels, incidences_of(given)),
        "history": earlier,
        "backtest": tested,
        "notes": findings.notes(time_range) + for_whom(any_kind, of_any_event, comparison.times, chosen),
        "settings": {
            **(settings or {}),
            "survscore": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **_asked(comparison, metrics, time_range, null, horizons_shown, groups is not None),
            **({} if segments is None else {"by": segments.by, "correction": correction}),
            "curves": {name: _described(curves) for name, curves in named.items()},
        },
    }
    summary["methods"] = methods(summary, weightings, headline, null, comparison.times.size)
    progress(3, 3, "summarised")
    return summary


def _of_several(
    y: Outcomes, models: Mapping[str, Any], causes: Sequence[str], asked: dict[str, Any], n_curves: int, ids: Any
) -> dict[str, Any]:
    """Return a summary for each cause, and of the metrics that have a multi-class form one for all together."""
    if asked["history"] is not None or asked["backtest"] is not None:
        raise InputError("history and backtest are of one cause of events: say which one (cause=)")
    # curves of individuals show all causes at once, and are not repeated for each
    parts = [summarise(y, models, cause=one, n_curves=0, **asked) for one in causes]
    metrics = map(as_metric, one_or_more(asked["metric"], Metric, "metric"))
    losses = [one for one in metrics if isinstance(one, Loss)]
    if losses:
        every = {**asked, "metric": losses, "horizons": None}
        parts.append(summarise(y, models, cause=ALL_CAUSES, n_curves=0, **every))
    return joined(parts, single_incidences(y, models, parts[0], n_curves, _labels(ids, y)))


def _preferred_by_ipcw(leaks: Sequence[Mapping[str, Any]], weightings: Sequence[Weighting]) -> list[str]:
    """Return the models that encode C*, where some of the weightings are known to prefer these."""
    preferred = any(isinstance(one, IPCW) for one in weightings)
    return [leak["model"] for leak in leaks if leak["verdict"] == "encodes C*" and preferred]


def _labels(ids: Sequence[Any] | None, y: Outcomes) -> list[Any] | None:
    labels = None if ids is None else list(ids)
    if labels is not None:
        check_length("ids", len(labels), "y", len(y))
    return labels


def _caution(y: Outcomes, headline: Weighting, sentence: str) -> str | None:
    """Return what to beware of where the headline goes by an IPCW score; None elsewhere."""
    if not isinstance(headline, IPCW) or y.event.all():
        return None
    return (
        "This answer goes by an IPCW score. If predictions encode the censoring times, such a score prefers those "
        f"that fall to zero after them, right or wrong. {sentence.replace('`', '')}."
    )


def _asked(
    comparison: Comparison,
    metrics: Sequence[Metric],
    time_range: Range,
    null: Null,
    horizons: list[float],
    grouped: bool,
) -> dict[str, Any]:
    """Return what was asked for, for the settings."""
    epsilons = {one.name: getattr(one, "epsilon", 0.0) for one in metrics}
    return {
        "metrics": {name: {"epsilon": epsilon} if epsilon else {} for name, epsilon in epsilons.items()},
        "weightings": comparison.weightings,
        "times": _extent(comparison.times),
        "time range": "all times" if time_range == WHOLE else [plain(end) for end in time_range],
        "reference": comparison.reference,
        "null": "Kaplan-Meier of other outcomes" if isinstance(null, Outcomes) else null,
        "horizons": horizons,
        "level": float(comparison.level),
        "groups": grouped,
    }


def _described(curves: SurvivalCurves) -> str:
    return f"{_extent(curves.times)}, between them {curves.interpolation}, beyond them {curves.extrapolation}"


def _extent(times: NDArray[np.float64]) -> str:
    return f"{plural(times.size, 'time')} from {verdicts.short(float(times[0]))} to {verdicts.short(float(times[-1]))}"
