"""The data of a report: follow-up, drop-outs, who is counted when, and the curves of some individuals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore.analysis.populations import counted_population
from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.inference.units import SampleWeights
from survscore.outcomes import Outcomes
from survscore.reports.comparing import extend, plain
from survscore.reports.section import Column, PageTable, Panel, Section, Table, numbers, runs
from survscore.results.rounding import fixed, short
from survscore.weighting import Administrative, Weighting

if TYPE_CHECKING:
    from survscore.reports.study import Study

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MOST_CURVE_POINTS = 200


def follow_up(y: Outcomes, times: NDArray[np.float64], groups: ArrayLike | None) -> dict[str, Any]:
    """Describe follow-up: whom there is, how long, and how many are left at each time.

    Sample weights are named, and have no part in that, but that rows with frequency weights are so many individuals.
    """
    sample = SampleWeights.of(y)
    weights = (
        None
        if sample is None
        else {
            "kind": y.weight_kind,
            "n_effective": float(sample.values.sum() ** 2 / sample.squares.sum()),
            "rows": int(np.count_nonzero(sample.values)),
        }
    )
    if y.weights is not None:
        times_each = y.weights if y.weight_kind == "frequency" else y.weights > 0
        rows = np.repeat(np.arange(len(y)), np.asarray(times_each, dtype=np.int64))
        y, groups = y.weighted(None)[rows], None if groups is None else np.asarray(groups)[rows]
    end = y.censoring_time
    columns = {"time": y.time, **({} if end is None else {"censoring_time": end})}
    quantiles: Table = {"quantile": list(QUANTILES)}
    for name, values in columns.items():
        quantiles[name] = [plain(value) for value in np.quantile(values, QUANTILES, method="inverted_cdf")]
    remaining: Table = {"time": times.tolist(), "under_observation": _at_least(y.time, times)}
    remaining["events"] = _by(y.time[y.event_of_interest], times)
    if y.interest > 0:
        remaining["other_events"] = _by(y.time[y.event & ~y.event_of_interest], times)
    if end is not None:
        remaining["censoring_time_at_least"] = _at_least(end, times)
    return {
        "n": len(y),
        **({"clock": y.clock} if y.clock else {}),
        "sample_weights": weights,
        "events": int(y.event.sum()),
        "causes": {"cause": list(y.n_by_cause), "events": list(y.n_by_cause.values())},
        "censoring_times_known": end is not None,
        "dropped_out": y.n_dropped_out,
        "groups": None if groups is None else len(set(np.asarray(groups).tolist())),
        "quantiles": quantiles,
        "remaining": remaining,
    }


def _by(values: NDArray[np.float64], times: NDArray[np.float64]) -> list[int]:
    """Return how many values are at most each of the times."""
    return [values.size - later for later in _at_least(values, times, strictly=True)]


def _at_least(values: NDArray[np.float64], times: NDArray[np.float64], *, strictly: bool = False) -> list[int]:
    """Return how many values are at least, or more than, each of the times."""
    ordered = np.sort(values)
    counts: list[int] = (values.size - np.searchsorted(ordered, times, side="right" if strictly else "left")).tolist()
    return counts


def for_whom(
    y: Outcomes, models: Mapping[str, SurvivalCurves], times: NDArray[np.float64], weighting: Weighting
) -> list[str]:
    """Say to whom the headline refers at the last time, and how they differ from all who started."""
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
        of_all, of_counted = (fixed(float(risk), 3) for risk in table[column])
        risks.append(f"{of_counted} by {model} (all individuals: {of_all})")
    return [
        f"At {short(last)} the administrative score refers to the {100 * share:.0f} % with C* >= "
        f"{short(last)}: their mean predicted risk by {short(horizon)} is {'; '.join(risks)}."
    ]


class DataSection(Section):
    """Follow-up, events by cause, and who is counted when."""

    files = {"follow-up": "data quantiles", "remaining": "data remaining", "causes": "data causes"}

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        notes = for_whom(study.of_any_kind, study.of_any_event, study.comparison.times, study.chosen)
        return {
            "data": follow_up(study.y, study.comparison.times, study.options.groups),
            "notes": study.findings.notes(study.options.time_range) + notes,
        }

    def _remaining(self) -> list[Panel]:
        table, cause = self.summary["data"]["remaining"], self.summary.get("cause")
        labels = {
            "censoring_time_at_least": "C* >= t",
            "under_observation": "still under observation",
            "events": "events so far" if cause is None else f"{cause} so far",
            "other_events": "other events so far",
        }
        axes = (f"time{self.unit}", "individuals")
        panel = self.panel("Individuals by time", "time", None, axes, main=True, zero=True)
        panel["series"] = [
            {"model": None, "neutral": k, "label": labels[name], "y": name, "start": 0, "stop": len(table["time"])}
            for k, name in enumerate(name for name in labels if name in table)
        ]
        return [panel]

    def _follow_up(self) -> Iterable[PageTable]:
        """Yield the quantiles of follow-up."""
        table = self.summary["data"]["quantiles"]
        names = {0.0: "shortest", 0.5: "median", 1.0: "longest"}
        columns = [
            Column("of all", [names.get(share, f"{100 * share:g} % at most") for share in table["quantile"]]),
            numbers(f"time to event or censoring{self.unit}", table["time"]),
        ]
        if "censoring_time" in table:
            columns.append(numbers(f"censoring time C*{self.unit}", table["censoring_time"]))
        yield self.page_table("follow-up", "How long individuals were followed", columns)

    def _counted(self) -> Iterable[PageTable]:
        """Yield who is counted at some of the times."""
        table, cause = self.summary["data"]["remaining"], self.summary.get("cause")
        last = len(table["time"]) - 1
        rows = sorted({round(k * last / 5) for k in range(6)})
        at = {name: [column[k] for k in rows] for name, column in table.items()}
        headings = {
            "time": f"time{self.unit}",
            "under_observation": "still under observation",
            "events": "events so far" if cause is None else f"{cause} so far",
            "other_events": "other events so far",
            "censoring_time_at_least": "counted by the administrative score (C* >= t)",
        }
        columns = [numbers(heading, at[name]) for name, heading in headings.items() if name in at]
        if "censoring_time_at_least" in at:
            columns.append(self._shares("share of all", at["censoring_time_at_least"], ".0f"))
        yield self.page_table("remaining", "Who is counted when", columns)

    def _causes(self) -> Iterable[PageTable]:
        """Yield how many events there are of each cause, under competing risks."""
        table = self.summary["data"]["causes"]
        columns = [Column("cause", table["cause"]), numbers("events", table["events"])]
        yield self.page_table("causes", "Events by cause", [*columns, self._shares("of all", table["events"], ".1f")])

    def _shares(self, heading: str, counts: list[int], digits: str) -> Column:
        n = self.summary["data"]["n"]
        return Column(heading, [f"{100 * count / n:{digits}} %" for count in counts], "r")

    charts = {"remaining": _remaining}
    shown = {"follow-up": _follow_up, "counted": _counted, "causes": _causes}


# Curves of individuals


def single_curves(
    y: Outcomes,
    models: Mapping[str, SurvivalCurves],
    times: NDArray[np.float64],
    n_curves: int,
    ids: Sequence[Any] | None,
    incidences: Mapping[str, IncidenceCurves] | None = None,
) -> dict[str, Any]:
    """Return the curves of some individuals, spread evenly over the order of follow-up.

    Of predictions of several causes these are incidences, one upon the other: `incidences` of all models, or none.
    """
    by = y.time if y.censoring_time is None else y.censoring_time
    ranks = np.unique(((np.arange(n_curves) + 0.5) / max(n_curves, 1) * len(y)).astype(np.intp))
    rows = np.argsort(by, kind="stable")[ranks]
    last = max(float(times[-1]), float(y.time[rows].max(initial=0.0)))
    people: Table = {"individual": [], "time": [], "event": [], "censoring_time": []}
    stacked = bool(incidences)
    drawn: Table = {"individual": [], "model": [], "time": [], "survival": []}
    if stacked:
        drawn = {"individual": [], "model": [], "cause": [], "time": [], "incidence": [], "below": [], "up_to": []}
    names = [str(row if ids is None else ids[row]) for row in rows.tolist()]
    for row, name in zip(rows.tolist(), names, strict=True):
        label = name if names.count(name) == 1 else f"{name} (row {row})"
        while label in people["individual"]:  # whatever others are called
            label += "'"
        people["individual"].append(label)
        people["time"].append(float(y.time[row]))
        people["event"].append(_event(y, row))
        people["censoring_time"].append(None if y.censoring_time is None else plain(float(y.censoring_time[row])))
        for model, by_cause in (incidences or {}).items():
            _add_stack(drawn, label, model, by_cause, y.causes, row, last)
        for model, curves in ({} if stacked else models).items():
            grid = _drawn_times(curves, last)
            survival = np.asarray(curves[row].at(grid))[0]
            extend(drawn, {"time": grid, "survival": survival}, individual=label, model=model)
    return {"people": people, "curves": drawn, "stacked": stacked}


def _event(y: Outcomes, row: int) -> bool | str:
    """Return whether there was an event, or of which cause."""
    if y.cause is None or not y.event[row]:
        return bool(y.event[row])
    return y.causes[int(y.cause[row]) - 1]


def _add_stack(
    drawn: Table, label: str, model: str, curves: IncidenceCurves, causes: Sequence[str], row: int, last: float
) -> None:
    """Add an individual's incidences of all causes by one model, each upon those before it."""
    numbered = curves.causes == tuple(map(str, range(1, len(causes) + 1)))
    names = causes if numbered else curves.causes
    grid = _drawn_times(curves, last)
    incidences = np.asarray(curves[row].at(grid))[0]
    up_to = np.cumsum(incidences, axis=0)
    for cause, incidence, top in zip(names, incidences, up_to, strict=True):
        columns = {"time": grid, "incidence": incidence, "below": top - incidence, "up_to": top}
        extend(drawn, columns, individual=label, model=model, cause=cause)


def _drawn_times(curves: SurvivalCurves | IncidenceCurves, last: float) -> NDArray[np.float64]:
    """Return the times at which to draw a curve: its own, if they are not too many."""
    own = curves.times[curves.times <= last]
    end = min(last, float(curves.times[-1]))
    return np.union1d([0.0, end], own) if own.size <= MOST_CURVE_POINTS else np.linspace(0.0, end, MOST_CURVE_POINTS)


class CurvesSection(Section):
    """The curves of some individuals, and what was observed of them."""

    files = {"individuals": "curves people", "curves": "curves curves"}
    doing = "looking at single curves"

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        y, times, n_curves = study.y, study.comparison.times, study.options.n_curves
        return {"curves": single_curves(y, study.models, times, n_curves, study.ids, study.incidences)}

    def _individuals(self) -> list[Panel]:
        """Return a panel for each individual whose curves are shown; of several causes, one for each model as well."""
        people, table = self.summary["curves"]["people"], self.summary["curves"]["curves"]
        axes, panels = (f"time{self.unit}", f"predicted {self.predicted}"), dict[str, Panel]()
        for label, time, event, end in zip(*people.values(), strict=True):
            happened = "last seen" if event is False else "event" if event is True else event
            marks = [{"x": time, "label": happened, "kind": "event" if event else "seen"}]
            if end is not None:
                marks = ([marks[0]] if event or time < end else []) + [{"x": end, "label": "C*"}]
            title = f"individual {label}"
            panels[label] = self.panel(title, "time", "survival", axes, ydomain=[0, 1], marks=marks)
        if self.summary["curves"].get("stacked"):
            return self._stacked(panels)
        for (label, model), start, stop in runs(table, ("individual", "model")):
            step = {"step": True} if model in self.summary["steps"] else {}
            panels[label]["series"].append(self.series(model, start, stop) | step)
        return list(panels.values())

    def _stacked(self, individuals: dict[str, Panel]) -> list[Panel]:
        """Return a panel for each individual and model, with the incidences of all causes one upon the other."""
        panels: dict[tuple[str, str], Panel] = {}
        table, models = self.summary["curves"]["curves"], self.summary["models"]
        causes = list(dict.fromkeys(table["cause"]))
        axes = {"y": "up_to", "lower": "below", "upper": "up_to", "ylabel": "predicted probability of an event"}
        for (label, model, cause), start, stop in runs(table, ("individual", "model", "cause")):
            own = {**individuals[label], **axes, "title": f"individual {label}, {model}", "of": models.index(model)}
            panel = panels.setdefault((label, model), {**own, "series": []})
            series = {"model": None, "style": causes.index(cause), "label": cause, "start": start, "stop": stop}
            panel["series"].append({**series, "stacked": "incidence"})
        return list(panels.values())

    def _people(self) -> Iterable[PageTable]:
        """Yield what was observed of the individuals whose curves are shown."""
        table = self.summary["curves"]["people"]
        columns = [
            Column("individual", table["individual"]),
            numbers(f"time{self.unit}", table["time"]),
            Column("event", [short(event) for event in table["event"]]),
            numbers(f"C*{self.unit}", table["censoring_time"]),
        ]
        yield self.page_table("individuals", "What was observed of them", columns)

    charts = {"curves": _individuals}
    shown = {"individuals": _people}
