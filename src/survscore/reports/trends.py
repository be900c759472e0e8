"""Mean scores of earlier runs, for the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from survscore._validation import shown
from survscore.causes import ALL_CAUSES
from survscore.checks.history import read_history
from survscore.checks.runs import ALL, Run
from survscore.metrics import metric_label
from survscore.reports.comparing import Table, plain
from survscore.reports.verdicts import short

COLUMNS = (
    "run", "id", "date", "metric", "weighting", "model", "from", "to", "score", "lower", "upper",
)  # fmt: skip


def trends(path: Path | str | None, cause: str = "") -> dict[str, Any]:
    """Return the mean scores of all individuals in every run of a history of one cause, and notes about them.

    Parameters
    ----------
    path : path, optional
        The history; without, there is nothing to tell.
    cause : str
        The cause of events that scores are of, ``"all"`` for all together; empty without competing risks.

    Returns
    -------
    dict
        ``means``, a table in the order of metric, weighting, model and run; ``metrics`` by their names; ``notes``.
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
    for row in run.tables["means"]:
        if all(row[column] == ALL for column in run.segment_columns):
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
