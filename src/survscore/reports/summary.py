"""What a report says, as plain data: dictionaries, lists, texts and numbers, ready for JSON."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore._progress import Progress, silent
from survscore._validation import InputError, UndefinedScoreWarning, as_times, check_length, check_whole, plural
from survscore._version import __version__
from survscore.comparison import Comparison, as_models
from survscore.curves import SurvivalCurves
from survscore.diagnostics import diagnose
from survscore.horizon import calibration
from survscore.losses import Loss, as_loss
from survscore.outcomes import Outcomes
from survscore.reports import words
from survscore.reports.comparing import WHOLE, Span, Table, as_table, compare_losses, plain
from survscore.scores import check_inputs, default_times
from survscore.weighting import Weighting, as_weighting

MOST_CALIBRATION_POINTS = 200
MOST_CURVE_POINTS = 200
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def summarise(
    y: Outcomes,
    models: SurvivalCurves | Mapping[str, SurvivalCurves] | Iterable[tuple[str, SurvivalCurves]],
    *,
    weightings: Sequence[str | Weighting] | None = None,
    losses: Sequence[str | Loss] = ("brier", "log"),
    times: ArrayLike | None = None,
    range: Span = (None, None),
    reference: str | None = None,
    null: bool | Outcomes = True,
    horizons: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    ids: Sequence[Any] | None = None,
    n_curves: int = 6,
    title: str = "How good are the predictions?",
    settings: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Compute everything that a report shows.

    Parameters
    ----------
    y : Outcomes
        What was observed.
    models : SurvivalCurves, mapping of str to SurvivalCurves, or pairs
        What was predicted, for the same individuals in the same order.
    weightings : sequence, optional
        As for `compare`; the first is the one that the headline goes by. By default those that the data allow:
        administrative before IPCW, or uncensored where nobody is censored.
    losses : sequence of {"brier", "log"} or Loss
        What a prediction costs.
    times : array_like, optional
        The evaluation times; by default as for `compare`.
    range : tuple of float, optional
        Over which time mean scores are taken; by default over all of `times`, up to the first without score.
    reference, null, groups, level
        As for `compare`.
    horizons : array_like, optional
        At which times to show calibration; by default at three within the range. Calibration needs censoring times.
    ids : sequence, optional
        What to call the individuals whose curves are shown; by default their positions.
    n_curves : int
        Of how many individuals to show the curves; 0 shows none.
    title : str
        Of the report.
    settings : mapping, optional
        More to say about how this was made, such as the names of files.
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
    "Kaplan-Meier can't be told from truth: its mean Brier score differs by 0.00000 (95 % interval −0.00081 to 0.00081,
    p = 0.999)."
    """
    named = as_models({"model": models} if isinstance(models, SurvivalCurves) else models)
    for name, curves in named.items():
        check_inputs(y, curves, f"the curves of {name!r}")
    check_whole("n_curves", n_curves, 0)
    labels = None if ids is None else list(ids)
    if labels is not None:
        check_length("ids", len(labels), "y", len(y))
    if isinstance(losses, (str, Loss)) or not losses:
        raise InputError("losses must be a sequence of at least one")
    chosen = [as_weighting(one, y) for one in (fitting(y) if weightings is None else weightings)]
    wanted = default_times(y, named.values()) if times is None else as_times(times)
    costs = [as_loss(loss) for loss in losses]
    if len({loss.name for loss in costs}) < len(costs):
        raise InputError("losses must have different names")
    if not str(title).strip():
        raise InputError("title must not be empty")
    total = len(costs) + 2
    notes: list[str] = []
    with _noting(notes):
        compared = compare_losses(
            y, named, costs, times=wanted, span=range, weighting=chosen, reference=reference, null=null, groups=groups,
            level=level, progress=lambda done, _, what: progress(done, total, what),
        )  # fmt: skip
    upper = float(wanted[-1]) if range[1] is None else float(range[1])
    if compared.range is not None and compared.range[1] < upper:
        stop, wish = words.short(compared.range[1]), words.short(upper)
        notes.append(f"Means stop at {stop} instead of {wish}: then some score is missing.")
    first = compared.comparisons[0]
    progress(total - 2, total, "checking calibration")
    chosen_horizons = _horizons(y, named, wanted, horizons)
    calibrated = _calibration(y, named, chosen_horizons, level, asked=horizons is not None)
    progress(total - 1, total, "looking at single curves")
    summary = {
        "survscore": __version__,
        "title": str(title),
        "models": list(first.models),
        "reference": first.reference,
        "losses": [loss.name for loss in costs],
        "weightings": first.weightings,
        "steps": [name for name, curves in named.items() if curves.between == "step"],
        "explanations": [weighting.explanation for weighting in chosen],
        "level": float(level),
        "range": None if compared.range is None else list(compared.range),
        "data": _data(y, wanted, groups),
        **compared.tables(),
        "disagreements": compared.disagreements(),
        "calibration": calibrated,
        "around_censoring": _around(y, named),
        "curves": _single_curves(y, named, wanted, n_curves, labels),
        "notes": notes,
        "settings": {
            **(settings or {}),
            "survscore": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            **_asked(first, costs, wanted, range, null, chosen_horizons, groups is not None),
            "curves": {name: _described(curves) for name, curves in named.items()},
        },
    }
    progress(total, total, "summarised")
    return summary


@contextmanager
def _noting(notes: list[str]) -> Iterator[None]:
    """Add warnings about times without score to the notes, as sentences; let others pass."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndefinedScoreWarning)
        yield
    for one in caught:
        if not issubclass(one.category, UndefinedScoreWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
            continue
        text = str(one.message)
        sentence = f"{text[0].upper()}{text[1:]}."
        if sentence not in notes:
            notes.append(sentence)


def _asked(
    first: Comparison,
    losses: Sequence[Loss],
    times: NDArray[np.float64],
    span: Span,
    null: bool | Outcomes,
    horizons: list[float],
    grouped: bool,
) -> dict[str, Any]:
    """Return what was asked for, for the settings."""
    return {
        "weightings": first.weightings,
        "losses": {loss.name: {"epsilon": loss.epsilon} if loss.epsilon else {} for loss in losses},
        "times": _span(times),
        "range": "all times" if span == WHOLE else [plain(end) for end in span],
        "reference": first.reference,
        "null": "Kaplan-Meier of other outcomes" if isinstance(null, Outcomes) else bool(null),
        "horizons": horizons,
        "level": float(first.level),
        "groups": grouped,
    }


def _described(curves: SurvivalCurves) -> str:
    return f"{_span(curves.times)}, between them {curves.between}, beyond them {curves.beyond}"


def _span(times: NDArray[np.float64]) -> str:
    return f"{plural(times.size, 'time')} from {words.short(float(times[0]))} to {words.short(float(times[-1]))}"


def fitting(y: Outcomes) -> list[str]:
    """Return the weightings that these data allow, the one to trust first."""
    if y.event.all():
        return ["uncensored"]
    if y.censoring_time is not None and not y.dropped_out.any():
        return ["administrative", "ipcw"]
    return ["ipcw"]


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
        "dropped_out": None if end is None else int(y.dropped_out.sum()),
        "groups": None if groups is None else len(set(np.asarray(groups).tolist())),
        "quantiles": quantiles,
        "remaining": remaining,
    }


def _at_least(values: NDArray[np.float64], times: NDArray[np.float64], *, strictly: bool = False) -> list[int]:
    """Return how many values are at least, or more than, each of the times."""
    ordered = np.sort(values)
    found: list[int] = (values.size - np.searchsorted(ordered, times, side="right" if strictly else "left")).tolist()
    return found


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
    y: Outcomes, models: Mapping[str, SurvivalCurves], horizons: Sequence[float], level: float, *, asked: bool
) -> dict[str, Any]:
    """Return reliability curves, thinned to what can be drawn, and the parts of the Brier score."""
    if y.censoring_time is None or y.dropped_out.any():
        why = "calibration needs everybody's censoring time, and nobody lost before it"
        if asked:
            raise InputError(f"horizons: {why}")
        return {"missing": why, "curves": {}, "parts": {}}
    curves: Table = {name: [] for name in ("model", "horizon", "predicted", "observed", "lower", "upper")}
    parts: Table = {
        name: [] for name in ("model", "horizon", "n", "score", "miscalibration", "discrimination", "uncertainty")
    }
    for horizon in horizons:
        for model, predicted in models.items():
            found = calibration(y, predicted, horizon, level=level)
            size = found.predicted.size
            shown = np.unique(np.linspace(0, size - 1, min(size, MOST_CALIBRATION_POINTS)).round().astype(np.intp))
            curves["model"] += [model] * shown.size
            curves["horizon"] += [horizon] * shown.size
            for name in ("predicted", "observed", "lower", "upper"):
                curves[name] += getattr(found, name)[shown].tolist()
            parts["model"].append(model)
            parts["horizon"].append(horizon)
            for name in ("n", "score", "miscalibration", "discrimination", "uncertainty"):
                parts[name].append(plain(getattr(found, name)))
    return {"missing": None, "curves": curves, "parts": parts}


def _around(y: Outcomes, models: Mapping[str, SurvivalCurves]) -> dict[str, Any]:
    """Return the mean predictions around everybody's own censoring time, and which share they lose there."""
    nothing: dict[str, Any] = {"curves": {}, "falls": {}, "width": None, "n": 0}
    if y.censoring_time is None:
        return {"missing": "they need everybody's C*", **nothing}
    try:
        found = diagnose(y, models)
    except InputError as error:
        return {"missing": str(error), **nothing}
    curves: Table = {"model": [], "offset": [], "survival": []}
    for name, mean in found.survival.items():
        curves["model"] += [name] * mean.size
        curves["offset"] += found.offsets.tolist()
        curves["survival"] += [plain(value) for value in mean.tolist()]
    return {"missing": None, "curves": curves, "falls": as_table(found.to_frame()), "width": found.width, "n": found.n}


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
    shown: Table = {"individual": [], "model": [], "time": [], "survival": []}
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
            shown["individual"] += [label] * grid.size
            shown["model"] += [model] * grid.size
            shown["time"] += grid.tolist()
            shown["survival"] += [plain(value) for value in curves[row].at(grid)[0].tolist()]
    return {"people": people, "curves": shown}


def _drawn_times(curves: SurvivalCurves, last: float) -> NDArray[np.float64]:
    """Return the times at which to draw a curve: its own, if they are not too many."""
    own = curves.times[curves.times <= last]
    end = min(last, float(curves.times[-1]))
    return np.union1d([0.0, end], own) if own.size <= MOST_CURVE_POINTS else np.linspace(0.0, end, MOST_CURVE_POINTS)
