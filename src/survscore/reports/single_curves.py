"""The curves of some individuals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore.curves import SurvivalCurves
from survscore.incidence import IncidenceCurves
from survscore.outcomes import Outcomes
from survscore.reports.cells import Column, Table, numbers
from survscore.reports.comparing import extend, plain
from survscore.reports.section import Display, Panel, Section, runs
from survscore.reports.verdicts import short

if TYPE_CHECKING:
    from survscore.reports.study import Study

MOST_CURVE_POINTS = 200


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
            extend(
                drawn, {"time": grid, "survival": np.asarray(curves[row].at(grid))[0]}, individual=label, model=model
            )
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
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        curves = single_curves(
            study.y, study.models, study.comparison.times, study.options.n_curves, study.ids, study.incidences
        )
        return {"curves": curves}

    def _individuals(self) -> list[Panel]:
        """Return a panel for each individual whose curves are shown; of several causes, one for each model as well."""
        people = self.summary["curves"]["people"]
        panels: dict[str, Panel] = {}
        for label, time, event, end in zip(*people.values(), strict=True):
            happened = "last seen" if event is False else "event" if event is True else event
            marks = [{"x": time, "label": happened, "kind": "event" if event else "seen"}]
            if end is not None:
                marks = ([marks[0]] if event or time < end else []) + [{"x": end, "label": "C*"}]
            panels[label] = {
                "title": f"individual {label}",
                "x": "time",
                "y": "survival",
                "xlabel": self.time(),
                "ylabel": f"predicted {self.predicted}",
                "ydomain": [0, 1],
                "marks": marks,
                "series": [],
            }
        if self.summary["curves"].get("stacked"):
            return self._stacked(panels)
        for (label, model), start, stop in runs(self.summary["curves"]["curves"], ("individual", "model")):
            step = {"step": True} if model in self.summary["steps"] else {}
            panels[label]["series"].append(self.series(model, start, stop) | step)
        return list(panels.values())

    def _stacked(self, individuals: dict[str, Panel]) -> list[Panel]:
        """Return a panel for each individual and model, with the incidences of all causes one upon the other."""
        panels: dict[tuple[str, str], Panel] = {}
        table = self.summary["curves"]["curves"]
        causes = list(dict.fromkeys(table["cause"]))
        for (label, model, cause), start, stop in runs(table, ("individual", "model", "cause")):
            panel = panels.setdefault((label, model), {
                **individuals[label], "title": f"individual {label}, {model}",
                "of": self.summary["models"].index(model),
                "y": "up_to", "lower": "below", "upper": "up_to", "ylabel": "predicted probability of an event",
                "series": [],
            })  # fmt: skip
            k = causes.index(cause)
            panel["series"].append(
                {"model": None, "style": k, "label": cause, "start": start, "stop": stop, "stacked": "incidence"}
            )
        return list(panels.values())

    def _people(self) -> Iterable[Display]:
        """Yield what was observed of the individuals whose curves are shown."""
        table = self.summary["curves"]["people"]
        if not table["individual"]:
            return
        columns = [
            Column("individual", table["individual"]),
            numbers(f"time{self.unit}", table["time"]),
            Column("event", [short(one) for one in table["event"]]),
            numbers(f"C*{self.unit}", table["censoring_time"]),
        ]
        yield Display("individuals", "What was observed of them", columns)

    charts = {"curves": _individuals}
    shown = {"individuals": _people}
