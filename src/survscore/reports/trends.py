"""Mean scores of earlier runs, for the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._validation import shown
from survscore.causes import ALL_CAUSES
from survscore.checks import Run, read_history
from survscore.metrics import metric_label
from survscore.reports.cells import Column, Table, numbers, with_interval
from survscore.reports.comparing import plain
from survscore.reports.section import Display, Panel, Section, runs
from survscore.reports.verdicts import short

if TYPE_CHECKING:
    from survscore.reports.study import Study

COLUMNS = (
    "run", "id", "date", "metric", "weighting", "model", "from", "to", "score", "lower", "upper",
)  # fmt: skip


def trends(path: Path | str | None, cause: str = "") -> dict[str, Any]:
    """Return the mean scores of all individuals in every run of a history of one cause, and notes about them.

    They are in the order of metric, weighting, model and run; nothing without `path`.
    """
    nothing: dict[str, Any] = {"means": {}, "metrics": {}, "runs": 0, "notes": []}
    if path is None:
        return nothing
    found = read_history(path)
    runs = [run for run in found.runs if run.cause == cause]
    rows = [row for number, run in enumerate(runs, start=1) for row in _means(number, run)]
    if not rows:
        whose = {"": "", ALL_CAUSES: " for all causes"}.get(cause, f" for cause {shown(cause)}")
        return {**nothing, "notes": [*found.notes, f"the history holds no mean scores{whose} yet"]}
    order = {name: list(dict.fromkeys(row[name] for row in rows)) for name in ("metric", "weighting", "model")}
    rows.sort(key=lambda row: (*(order[name].index(row[name]) for name in order), row["run"]))
    means: Table = {name: [plain(row[name]) for row in rows] for name in COLUMNS}
    directions = {metric: run.direction(metric) for run in runs for metric in run.names("metric")}
    return {
        "means": means,
        "metrics": {name: {"label": metric_label(name), "direction": directions[name]} for name in order["metric"]},
        "runs": len(runs),
        "notes": [*found.notes, *_other_ranges(rows)],
    }


def _means(number: int, run: Run) -> list[dict[str, Any]]:
    """Return the first mean of each metric, weighting and model, which is the whole one."""
    first: dict[tuple[str, ...], dict[str, Any]] = {}
    rows: list[dict[Any, Any]] = run.tables["scores"].to_dict("records")
    for row in rows:
        if not row["segment"] and row["from"] < row["to"]:
            name = (row["metric"], row["weighting"], row["model"])
            first.setdefault(name, {"run": number, "id": run.id, "date": run.date[:10], **row})
    return list(first.values())


def _other_ranges(rows: list[dict[str, Any]]) -> list[str]:
    """Return a note where the means of a metric are not over the same time in all runs."""
    notes = []
    for metric in dict.fromkeys(row["metric"] for row in rows):
        ranges = {(row["from"], row["to"]) for row in rows if row["metric"] == metric}
        if len(ranges) > 1:
            least, most = (f"{short(float(low))} to {short(float(high))}" for low, high in (min(ranges), max(ranges)))
            notes.append(
                f"means of the {metric_label(metric)} are not over the same time in all runs ({least}, and {most}), "
                "so that they can hardly be compared; --horizons and --range keep it the same"
            )
    return notes


class HistorySection(Section):
    """Mean scores of earlier runs."""

    files = {"history": "history means"}

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        return {"history": study.history}

    def _by_run(self) -> list[Panel]:
        """Return a panel for every model, metric and weighting, by the number of the run; its axis tells the dates."""
        table = self.summary["history"]["means"]
        dates = dict(zip(table.get("run", []), table.get("date", []), strict=True))
        others = [name for name in dict.fromkeys(table.get("model", [])) if name not in self.summary["models"]]
        panels = []
        for (metric, weighting, model), start, stop in runs(table, ("metric", "weighting", "model")):
            here = model in self.summary["models"]
            told = self.summary["history"]["metrics"][metric]
            # a metric that the page does not switch to is shown whatever it shows
            switched = {"metric": metric} if metric in self.summary["metrics"] else {}
            style = len(self.summary["models"]) + others.index(model) if not here else 0
            series = {"model": None, "style": style, "label": model, "start": start, "stop": stop}
            panels.append(
                {
                    **switched,
                    **({"of": self.summary["models"].index(model)} if here else {}),
                    "title": f"{model}, {self.short(weighting)}",
                    "x": "run",
                    "y": "score",
                    "lower": "lower",
                    "upper": "upper",
                    "xlabel": "run",
                    "xnames": [dates.get(number, "") for number in range(max(dates) + 1)],
                    "ylabel": f"mean {told['label']} ({told['direction']} is better)",
                    "series": [self.series(model, start, stop) if here else series],
                }
            )
        return panels

    def _means(self) -> Iterable[Display]:
        """Yield the mean scores of earlier runs, by metric, also those that the page does not switch to."""
        history = self.summary["history"]
        for metric, told in history["metrics"].items():
            kept = [k for k, one in enumerate(history["means"]["metric"]) if one == metric]
            table = {name: [column[k] for k in kept] for name, column in history["means"].items()}
            columns = [
                *(Column(name, [short(one) for one in table[name]]) for name in ("run", "id", "date")),
                Column("model", table["model"], "model"),
                *(numbers(name, table[name]) for name in ("from", "to")),
                *with_interval("mean score", table["score"], table["lower"], table["upper"], self.level),
            ]
            caption = f"Mean {told['label']} by run, {told['direction']} is better"
            switched = metric if metric in self.summary["metrics"] else None
            yield Display("history", caption, columns, table["model"], switched, table["weighting"], tall=True)

    charts = {"history": _by_run}
    shown = {"history": _means}
