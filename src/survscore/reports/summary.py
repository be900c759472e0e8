"""What a report says, as plain data: dictionaries, lists, texts and numbers, ready for JSON."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._progress import Progress, silent
from survscore._units import Unit, plural_word
from survscore._validation import (
    FewGroupsWarning,
    InputError,
    UndefinedScoreWarning,
    as_times,
    check_length,
    check_whole,
    plural,
)
from survscore._version import __version__
from survscore.belief import which_to_believe
from survscore.calibrating import Calibration, calibration
from survscore.comparison import Comparison, compare
from survscore.curves import SurvivalCurves
from survscore.diagnostics import diagnose
from survscore.engine.evaluation import Range
from survscore.engine.inputs import Null, as_models, check_outcomes, check_predictions, one_or_more
from survscore.engine.placing import check_on_processor
from survscore.metrics import Metric, as_metric, metric_label
from survscore.multiplicity import Correction
from survscore.outcomes import Outcomes
from survscore.populations import counted_population
from survscore.reports import verdicts
from survscore.reports.comparing import WHOLE, Findings, Table, as_table, plain
from survscore.reports.segments import SegmentFindings
from survscore.reports.trends import trends
from survscore.weighting import IPCW, Administrative, Weighting, as_weighting, weightings_that_fit

CALIBRATION_NUMBERS = (
    "observed_expected", "observed_expected_lower", "observed_expected_upper", "slope", "slope_lower", "slope_upper",
    "miscalibration_corrected", "ici", "ici_if_right",
)  # fmt: skip
BRIER_PARTS = ("brier", "miscalibration", "miscalibration_if_right", "discrimination", "uncertainty")
MOST_CURVE_POINTS = 200
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
TITLE = "How good are the predictions?"


def summarise(
    y: Outcomes,
    models: SurvivalCurves | Mapping[str, SurvivalCurves] | Iterable[tuple[str, SurvivalCurves]],
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
    unit: Unit | str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Compute everything that a report shows.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : SurvivalCurves, mapping of str to SurvivalCurves, or pairs
        What was predicted, for the same individuals in the same order.
    metric : {"brier", "log", "auc"} or Metric, or several
        What to compute; the headline of the page begins with the first.
    weighting : str, Weighting, or several, optional
        As for `compare`; by default those that the data allow (`weightings_that_fit`). The headline goes by the one to
        trust if it is among them, by the first otherwise.
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
    unit : {"D", "W", "M", "Y", "h", "min", "s"}, or a word such as "month", optional
        What times are counted in, for labels.
    progress : callable
        Is told (done, total, what is being done).

    Returns
    -------
    dict
        Of plain data, with tables as dictionaries of equally long lists; missing numbers are None.

    Examples
    --------
    >>> from survscore.reports import summarise
    >>> from survscore.simulate import ConstantHazardStudy
    >>> sample = ConstantHazardStudy().sample(500, seed=1)
    >>> found = summarise(sample.outcomes, {"truth": sample.survival(range(1, 91))}, times=range(10, 81, 10))
    >>> found["weightings"]
    ['administrative', 'ipcw (Kaplan-Meier of the scored outcomes)']
    >>> found["verdicts"]["sentence"][0]
    "Kaplan-Meier can't be told from truth: its mean Brier score differs by 0.0000 (95 % interval −0.0014 to 0.0014,
    p = 0.999)."
    """
    named = as_models({"model": models} if isinstance(models, SurvivalCurves) else models)
    check_outcomes(y)
    for name, curves in named.items():
        check_predictions(y, curves, f"the curves of {name!r}")
    check_on_processor("a report", y, named)
    check_whole("n_curves", n_curves, 0)
    labels = None if ids is None else list(ids)
    if labels is not None:
        check_length("ids", len(labels), "y", len(y))
    if not str(title).strip():
        raise InputError("title must not be empty")
    choices = weightings_that_fit(y)
    wanted = choices.names if weighting is None else one_or_more(weighting, Weighting, "weighting")
    weightings = [as_weighting(one, y) for one in wanted]
    metrics = [as_metric(one) for one in one_or_more(metric, Metric, "metric")]
    earlier = trends(history)
    progress(0, 3, "comparing")
    with warnings.catch_warnings():
        for told_elsewhere in (UndefinedScoreWarning, FewGroupsWarning):  # the notes say so, from the numbers
            warnings.simplefilter("ignore", told_elsewhere)
        compared: Any = compare(
            y, named, metric=metrics, weighting=weightings, times=times, reference=reference, null=null, groups=groups,
            level=level, ranges=[time_range], by=by,
        )  # fmt: skip
    comparison: Comparison = compared if by is None else compared.total
    segments = None if by is None else SegmentFindings.of(compared.corrected(correction), time_range)
    findings = Findings.of(comparison, time_range)
    belief = which_to_believe(weightings, n=len(y), n_dropped_out=y.n_dropped_out)
    headline = belief.position
    progress(1, 3, "checking calibration")
    calibrated_at = _horizons(y, named, comparison.times, horizons)
    calibrated = _calibration(
        y, named, _for_the_same(weightings[headline], comparison.times), calibrated_at, groups, level,
        asked=horizons is not None,
    )  # fmt: skip
    progress(2, 3, "looking at single curves")
    summary = {
        "survscore": __version__,
        "title": str(title),
        "models": list(comparison.models),
        "reference": comparison.reference,
        "metrics": {
            name: {"label": metric_label(name), "direction": direction, "bounded": name in findings.bounded}
            for name, direction in findings.directions.items()
        },
        "null_model": comparison.null,
        "weightings": comparison.weightings,
        "headline": comparison.weightings[headline],
        "believe": belief.sentence if len(weightings) > 1 else None,
        "unit": plural_word(unit),
        "caution": _caution(y, weightings[headline], choices.sentence),
        "steps": [name for name, curves in named.items() if curves.between == "step"],
        "explanations": [one.explanation for one in weightings],
        "level": float(level),
        "time_ranges": {name: list(ends) for name, ends in findings.time_ranges.items()},
        "data": _data(y, comparison.times, groups),
        **{name: as_table(frame) for name, frame in findings.frames().items()},
        "disagreements": {**findings.disagreements(), "table": as_table(comparison.disagreements())},
        "segments": None if segments is None else segments.summary(comparison.weightings[headline]),
        "calibration": calibrated,
        "around_censoring": _around(y, named, weightings, comparison.times, groups, level),
        "curves": _single_curves(y, named, comparison.times, n_curves, labels),
        "history": earlier,
        "notes": findings.notes(time_range) + _for_whom(y, named, comparison.times, weightings[headline]),
        "settings": {
            **(settings or {}),
            "survscore": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **_asked(comparison, metrics, time_range, null, calibrated_at, groups is not None),
            **({} if segments is None else {"by": segments.by, "correction": correction}),
            "curves": {name: _described(curves) for name, curves in named.items()},
        },
    }
    progress(3, 3, "summarised")
    return summary


def _caution(y: Outcomes, headline: Weighting, sentence: str) -> str | None:
    """Return what to beware of where the headline goes by an IPCW score; None elsewhere."""
    if not isinstance(headline, IPCW) or y.event.all():
        return None
    return (
        "This answer goes by an IPCW score. If predictions can tell the censoring times, such a score prefers those "
        f"that fall to zero after them, right or wrong. {sentence}."
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
    return f"{_extent(curves.times)}, between them {curves.between}, beyond them {curves.beyond}"


def _extent(times: NDArray[np.float64]) -> str:
    return f"{plural(times.size, 'time')} from {verdicts.short(float(times[0]))} to {verdicts.short(float(times[-1]))}"


def _for_whom(
    y: Outcomes, models: Mapping[str, SurvivalCurves], times: NDArray[np.float64], weighting: Weighting
) -> list[str]:
    """Say for whom the headline speaks at the last time, and how they differ from all who started."""
    if not isinstance(weighting, Administrative) or weighting.population is not None:
        return []
    last = float(times[-1])
    horizon = min(last, *(float(curves.times[-1]) for curves in models.values()))
    table = counted_population(y, models, times=[0.0, last], horizon=horizon)
    share = float(table["share"].iloc[-1])
    if not 0 < share < 1:
        return []
    risks = []
    for model, column in zip(models, table.columns[3:], strict=True):
        of_all, of_counted = (verdicts.number(float(risk), 3) for risk in table[column])
        risks.append(f"by {model} {of_counted}, that of all {of_all}")
    return [
        f"At {verdicts.short(last)} the administrative score speaks for the {share:.0%} who could be followed so long: "
        f"their mean risk of the event by {verdicts.short(horizon)} is {'; '.join(risks)}."
    ]


def _data(y: Outcomes, times: NDArray[np.float64], groups: ArrayLike | None) -> dict[str, Any]:
    """Describe follow-up: whom there is, how long, and how many are left at each time."""
    end = y.censoring_time
    columns = {"time": y.time, **({} if end is None else {"censoring_time": end})}
    quantiles: Table = {"quantile": list(QUANTILES)}
    for name, values in columns.items():
        quantiles[name] = [plain(value) for value in np.quantile(values, QUANTILES, method="inverted_cdf")]
    remaining: Table = {
        "time": times.tolist(),
        "under_observation": _at_least(y.time, times),
        "events": (np.count_nonzero(y.event) - np.array(_at_least(y.time[y.event], times, strictly=True))).tolist(),
    }
    if end is not None:
        remaining["censoring_time_as_late"] = _at_least(end, times)
    return {
        "n": len(y),
        "events": int(y.event.sum()),
        "censoring_times_known": end is not None,
        "dropped_out": y.n_dropped_out,
        "groups": None if groups is None else len(set(np.asarray(groups).tolist())),
        "quantiles": quantiles,
        "remaining": remaining,
    }


def _at_least(values: NDArray[np.float64], times: NDArray[np.float64], *, strictly: bool = False) -> list[int]:
    """Return how many values are at least, or more than, each of the times."""
    ordered = np.sort(values)
    counts: list[int] = (values.size - np.searchsorted(ordered, times, side="right" if strictly else "left")).tolist()
    return counts


def _horizons(
    y: Outcomes, models: Mapping[str, SurvivalCurves], times: NDArray[np.float64], asked: ArrayLike | None
) -> list[float]:
    if asked is not None:
        return [float(t) for t in as_times(asked, "horizons")]
    last = min([float(times[-1]), *(float(curves.times[-1]) for curves in models.values())])
    if y.censoring_time is not None:
        last = min(last, float(y.censoring_time.max()))
    return [] if last <= 0 else [float(f"{last * share:.3g}") for share in (0.25, 0.5, 0.75)]


def _calibration(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weighting: Weighting,
    horizons: Sequence[float],
    groups: ArrayLike | None,
    level: float,
    *,
    asked: bool,
) -> dict[str, Any]:
    """Return smooth calibration curves, their numbers, and the parts of the Brier score, under one weighting."""
    curves: Table = {name: [] for name in ("model", "horizon", "predicted", "observed", "lower", "upper")}
    numbers: Table = {name: [] for name in ("model", "horizon", "n", "events", *CALIBRATION_NUMBERS)}
    parts: Table = {name: [] for name in ("model", "horizon", "n", *BRIER_PARTS)}
    missing = None
    for horizon in horizons:
        for model, predicted in models.items():
            try:
                found = calibration(y, predicted, horizon, weighting=weighting, groups=groups, level=level)
            except InputError as error:
                if asked:
                    raise
                missing = str(error)  # a horizon that nobody asked for may be out of reach
                continue
            if not np.isnan(found.curve.observed).all():
                for name in ("predicted", "observed", "lower", "upper"):
                    curves[name] += [plain(value) for value in getattr(found.curve, name).tolist()]
                curves["model"] += [model] * found.curve.predicted.size
                curves["horizon"] += [horizon] * found.curve.predicted.size
            for table in (numbers, parts):
                table["model"].append(model)
                table["horizon"].append(horizon)
                table["n"].append(found.n_counted)
            numbers["events"].append(found.n_events)
            for name, value in _calibration_numbers(found).items():
                numbers[name].append(plain(value))
            for name in BRIER_PARTS:
                parts[name].append(plain(getattr(found, name)))
    nothing = not numbers["model"]
    return {
        "missing": missing if nothing else None,
        "weighting": weighting.label(y),
        "curves": {} if nothing else curves,
        "numbers": {} if nothing else numbers,
        "parts": {} if nothing else parts,
    }


def _for_the_same(weighting: Weighting, times: NDArray[np.float64]) -> Weighting:
    """Return a weighting that counts at one time those whom it counts at all times together."""
    if isinstance(weighting, Administrative) and isinstance(weighting.population, str):  # "fixed", by the last time
        return replace(weighting, population=float(times[-1]))
    return weighting


def _calibration_numbers(found: Calibration) -> dict[str, float]:
    """Return the numbers that a report shows first."""
    ratio, slope = found.observed_expected, found.slope
    values = (
        ratio.value, ratio.lower, ratio.upper, slope.value, slope.lower, slope.upper,
        found.miscalibration_corrected, found.ici.value, found.ici.if_right,
    )  # fmt: skip
    return dict(zip(CALIBRATION_NUMBERS, values, strict=True))


def _around(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    weightings: Sequence[Weighting],
    times: NDArray[np.float64],
    groups: ArrayLike | None,
    level: float,
) -> dict[str, Any]:
    """Return whether IPCW can be trusted and which predictions know C*: in words, tables, and means around C*."""
    nothing: dict[str, Any] = {
        "curves": {}, "falls": {}, "weights": {}, "caps": {}, "ipcw": None, "sentences": [], "width": None, "n": 0,
    }  # fmt: skip
    if y.censoring_time is None:
        return {"missing": "they need everybody's C*", **nothing}
    questioned = next((one for one in weightings if isinstance(one, IPCW)), "ipcw")
    try:
        diagnosis = diagnose(y, models, weighting=questioned, times=times, groups=groups, level=level)
    except InputError as error:
        return {"missing": str(error), **nothing}
    curves: Table = {"model": [], "offset": [], "survival": []}
    for name, mean in diagnosis.survival.items():
        curves["model"] += [name] * mean.size
        curves["offset"] += diagnosis.offsets.tolist()
        curves["survival"] += [plain(value) for value in mean.tolist()]
    return {
        "missing": None,
        "curves": curves,
        "falls": as_table(diagnosis.models),
        "weights": as_table(diagnosis.weights),
        "caps": as_table(diagnosis.caps),
        "ipcw": diagnosis.ipcw,
        "sentences": list(diagnosis.sentences),
        "width": diagnosis.width,
        "n": diagnosis.n,
    }


def _single_curves(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    times: NDArray[np.float64],
    n_curves: int,
    ids: Sequence[Any] | None,
) -> dict[str, Any]:
    """Return the curves of some individuals, spread evenly over the order of follow-up."""
    by = y.time if y.censoring_time is None else y.censoring_time
    ranks = np.unique(((np.arange(n_curves) + 0.5) / max(n_curves, 1) * len(y)).astype(np.intp))
    rows = np.argsort(by, kind="stable")[ranks]
    last = max(float(times[-1]), float(y.time[rows].max(initial=0.0)))
    people: Table = {"individual": [], "time": [], "event": [], "censoring_time": []}
    drawn: Table = {"individual": [], "model": [], "time": [], "survival": []}
    names = [str(row if ids is None else ids[row]) for row in rows.tolist()]
    for row, name in zip(rows.tolist(), names, strict=True):
        label = name if names.count(name) == 1 else f"{name} (row {row})"
        while label in people["individual"]:  # whatever others are called
            label += "'"
        people["individual"].append(label)
        people["time"].append(float(y.time[row]))
        people["event"].append(bool(y.event[row]))
        people["censoring_time"].append(None if y.censoring_time is None else plain(float(y.censoring_time[row])))
        for model, curves in models.items():
            grid = _drawn_times(curves, last)
            drawn["individual"] += [label] * grid.size
            drawn["model"] += [model] * grid.size
            drawn["time"] += grid.tolist()
            drawn["survival"] += [plain(value) for value in curves[row].at(grid)[0].tolist()]
    return {"people": people, "curves": drawn}


def _drawn_times(curves: SurvivalCurves, last: float) -> NDArray[np.float64]:
    """Return the times at which to draw a curve: its own, if they are not too many."""
    own = curves.times[curves.times <= last]
    end = min(last, float(curves.times[-1]))
    return np.union1d([0.0, end], own) if own.size <= MOST_CURVE_POINTS else np.linspace(0.0, end, MOST_CURVE_POINTS)
