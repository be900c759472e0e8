"""The data of a report: follow-up, who is lost, and who is counted when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survscore.analysis.populations import counted_population
from survscore.curves import SurvivalCurves
from survscore.inference.units import SampleWeights
from survscore.outcomes import Outcomes
from survscore.reports import verdicts
from survscore.reports.cells import Column, Table, numbers
from survscore.reports.comparing import plain
from survscore.reports.section import Display, Panel, Section
from survscore.weighting import Administrative, Weighting

if TYPE_CHECKING:
    from survscore.reports.study import Study

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def follow_up(y: Outcomes, times: NDArray[np.float64], groups: ArrayLike | None) -> dict[str, Any]:
    """Describe follow-up: whom there is, how long, and how many are left at each time.

    Sample weights are named, and have no part in that, but that rows with frequency weights are so many individuals.
    """
    sample = sample_weights(y)
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
        "sample_weights": sample,
        "events": int(y.event.sum()),
        "causes": {"cause": list(y.n_by_cause), "events": list(y.n_by_cause.values())},
        "censoring_times_known": end is not None,
        "dropped_out": y.n_dropped_out,
        "groups": None if groups is None else len(set(np.asarray(groups).tolist())),
        "quantiles": quantiles,
        "remaining": remaining,
    }


def sample_weights(y: Outcomes) -> dict[str, Any] | None:
    """Return of which kind sample weights are, and how many individuals of equal weight they are worth."""
    sample = SampleWeights.of(y)
    if sample is None:
        return None
    n_effective = float(sample.values.sum() ** 2 / sample.squares.sum())
    rows = int(np.count_nonzero(sample.values))
    return {"kind": y.weight_kind, "n_effective": n_effective, "rows": rows}


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
        of_all, of_counted = (verdicts.fixed(float(risk), 3) for risk in table[column])
        risks.append(f"{of_counted} by {model} (all individuals: {of_all})")
    return [
        f"At {verdicts.short(last)} the administrative score refers to the {100 * share:.0f} % with C* >= "
        f"{verdicts.short(last)}: their mean predicted risk by {verdicts.short(horizon)} is {'; '.join(risks)}."
    ]


class DataSection(Section):
    """Follow-up, events by cause, and who is counted when."""

    files = {"follow-up": "data quantiles", "remaining": "data remaining", "causes": "data causes"}

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
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
        stop = len(table["time"])
        shown = [name for name in labels if name in table]
        return [
            {
                "title": "Individuals by time",
                "main": True,
                "x": "time",
                "xlabel": self.time(),
                "ylabel": "individuals",
                "zero": True,
                "series": [
                    {"model": None, "neutral": k, "label": labels[name], "y": name, "start": 0, "stop": stop}
                    for k, name in enumerate(shown)
                ],
            }
        ]

    def _of_cause(self, text: str) -> str:
        cause = self.summary.get("cause")
        return text if cause is None else text.replace("events", str(cause))

    def _follow_up(self) -> Iterable[Display]:
        """Yield the quantiles of follow-up."""
        table = self.summary["data"]["quantiles"]
        names = {0.0: "shortest", 0.5: "median", 1.0: "longest"}
        columns = [
            Column("of all", [names.get(one, f"{100 * one:g} % at most") for one in table["quantile"]]),
            numbers(f"time to event or censoring{self.unit}", table["time"]),
        ]
        if "censoring_time" in table:
            columns.append(numbers(f"censoring time C*{self.unit}", table["censoring_time"]))
        yield Display("follow-up", "How long individuals were followed", columns)

    def _counted(self) -> Iterable[Display]:
        """Yield who is counted at some of the times."""
        table = self.summary["data"]["remaining"]
        size = len(table["time"])
        rows = sorted({round(k * (size - 1) / 5) for k in range(6)})
        at = {name: [column[k] for k in rows] for name, column in table.items()}
        n = self.summary["data"]["n"]
        columns = [numbers(f"time{self.unit}", at["time"]), numbers("still under observation", at["under_observation"]),
                   numbers(self._of_cause("events so far"), at["events"])]  # fmt: skip
        if "other_events" in at:
            columns.append(numbers("other events so far", at["other_events"]))
        if "censoring_time_at_least" in at:
            counted = at["censoring_time_at_least"]
            columns += [
                numbers("counted by the administrative score (C* >= t)", counted),
                Column("share of all", [f"{100 * one / n:.0f} %" for one in counted], "number"),
            ]
        yield Display("remaining", "Who is counted when", columns)

    def _causes(self) -> Iterable[Display]:
        """Yield how many events there are of each cause, under competing risks."""
        data = self.summary["data"]
        table = data["causes"]
        if not table["cause"]:
            return
        shares = [f"{100 * events / data['n']:.1f} %" for events in table["events"]]
        columns = [
            Column("cause", table["cause"]),
            numbers("events", table["events"]),
            Column("of all", shares, "number"),
        ]
        yield Display("causes", "Events by cause", columns)

    charts = {"remaining": _remaining}
    shown = {"follow-up": _follow_up, "counted": _counted, "causes": _causes}
