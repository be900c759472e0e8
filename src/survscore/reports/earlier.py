"""What was before: a backtest, with the choices of scores on earlier days, and the mean scores of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survscore._utils.dates import plural_word
from survscore._validation import InputError, several, shown
from survscore.analysis.backtest_results import Backtest
from survscore.causes import ALL_CAUSES
from survscore.checks import Run, read_history
from survscore.metrics import metric_label
from survscore.reports.comparing import as_table, plain, records
from survscore.reports.section import (
    MODEL,
    WEIGHTING,
    Column,
    PageTable,
    Panel,
    Section,
    Table,
    numbers,
    rows_where,
    runs,
)
from survscore.results.printing import short_names
from survscore.results.rounding import short

if TYPE_CHECKING:
    from survscore.reports.study import Study


def backtested(backtest: Backtest | None, unit: str | None) -> dict[str, Any] | None:
    """Return what a backtest found as plain data; None where there is none. Times are counted in `unit`."""
    if backtest is None:
        return None
    if not isinstance(backtest, Backtest):
        raise InputError(f"backtest must be a Backtest, as ss.backtest makes it, not {type(backtest).__name__}")
    names = list(short_names(backtest.weightings).values())
    days = [str(day.date.astype("datetime64[D]")) for day in backtest.days]
    summary, regrets = backtest.summary, backtest.regrets()
    rows = zip(names, records(summary), strict=True)
    chosen = several([f"{name} in {row['chose_best']} of {row['of']}" for name, row in rows])
    horizons, word = several([short(float(horizon)) for horizon in backtest.horizons]), plural_word(unit)
    by_day, scores = (frame.assign(cutoff=frame["cutoff"].astype(str)) for frame in (backtest.table, backtest.scores))
    return {
        "sentence": backtest.sentence,
        "chosen": f"The model that turned out best would have been chosen by {chosen} cases.",
        "models": list(backtest.models),
        "weightings": list(backtest.weightings),
        "short": names,
        "metric": backtest.metric,
        "label": backtest.label,
        "direction": backtest.direction,
        "level": float(backtest.level),
        "days": days,
        "horizons": [float(horizon) for horizon in backtest.horizons],
        "when": f"{backtest.label} by {horizons}{f' {word}' if word else ''}, as of {several(days)}",
        "n_draws": int(backtest.settings["n_draws"]),
        "summary": as_table(summary),
        "regrets": {
            "weighting": [name for name in backtest.weightings for _ in days],
            "cutoff": days * len(backtest.weightings),
            "relative_regret": [float(value) for q in range(len(backtest.weightings)) for value in regrets[:, q]],
        },
        "table": as_table(by_day),
        "scores": as_table(scores),
    }


class BacktestSection(Section):
    """Which score would have chosen the best model on earlier days."""

    files = {
        "backtest-summary": "backtest summary",
        "backtest-regrets": "backtest regrets",
        "backtest-days": "backtest table",
        "backtest-scores": "backtest scores",
    }

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        return {"backtest": study.backtest}

    def _regrets(self) -> list[Panel]:
        """Return how much worse than the best the chosen models were, by weighting, with each day's as a dot."""
        backtest = self.summary.get("backtest")
        if not backtest:
            return []
        names = dict(zip(backtest["weightings"], backtest["short"], strict=True))
        rows = [
            {"at": k, "title": names[weighting], "full": weighting, "start": start, "stop": stop}
            for k, ((weighting,), start, stop) in enumerate(runs(backtest["regrets"], ("weighting",)))
        ]
        title = "By how much the model that was chosen turned out worse than the best"
        label = f"worse than the best, % of its {backtest['label']}"
        return [{"kind": "backtest", "title": title, "xlabel": label, "rows": rows}]

    def _summary(self) -> Iterable[PageTable]:
        """Yield how each weighting would have chosen on earlier days."""
        backtest = self.summary.get("backtest")
        if not backtest:
            return
        table = backtest["summary"]

        def percents(heading: str, *names: str) -> list[Column]:
            values, lower, upper = ([None if share is None else 100 * share for share in table[name]] for name in names)
            estimates, intervals = self.with_interval(heading, values, lower, upper)
            return [estimates, intervals._replace(heading=f"{100 * backtest['level']:g} % interval")]

        columns = [
            Column("weighting", table["weighting"], WEIGHTING),
            Column(
                "chose the best", [f"{a} of {b}" for a, b in zip(table["chose_best"], table["of"], strict=True)], "r"
            ),
            *percents("chosen worse than best by (%)", "relative_regret", "regret_lower", "regret_upper"),
            *percents("pairs in the true order (%)", "ordered", "ordered_lower", "ordered_upper"),
        ]
        yield self.page_table("backtest-summary", f"{backtest['when']}, judged by what happened since", columns)

    charts = {"backtest": _regrets}
    shown = {"backtest": _summary}


# Earlier runs

COLUMNS = ("run", "id", "date", "metric", "weighting", "model", "from", "to", "score", "lower", "upper")


def trends(path: Path | str | None, cause: str = "") -> dict[str, Any]:
    """Return the mean scores of all individuals in every run of a history of one cause, and notes about them.

    They are in the order of metric, weighting, model and run; nothing without `path`.
    """
    nothing: dict[str, Any] = {"means": {}, "metrics": {}, "runs": 0, "notes": []}
    if path is None:
        return nothing
    history = read_history(path)
    of_cause = [run for run in history.runs if run.cause == cause]
    rows = [row for number, run in enumerate(of_cause, start=1) for row in _means(number, run)]
    if not rows:
        whose = {"": "", ALL_CAUSES: " for all causes"}.get(cause, f" for cause {shown(cause)}")
        return {**nothing, "notes": [*history.notes, f"the history holds no mean scores{whose} yet"]}
    order = {name: list(dict.fromkeys(row[name] for row in rows)) for name in ("metric", "weighting", "model")}
    rows.sort(key=lambda row: (*(order[name].index(row[name]) for name in order), row["run"]))
    means: Table = {name: [plain(row[name]) for row in rows] for name in COLUMNS}
    directions = {metric: run.direction(metric) for run in of_cause for metric in run.names("metric")}
    return {
        "means": means,
        "metrics": {name: {"label": metric_label(name), "direction": directions[name]} for name in order["metric"]},
        "runs": len(of_cause),
        "notes": [*history.notes, *_other_ranges(rows)],
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
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        return {"history": study.history}

    def _by_run(self) -> list[Panel]:
        """Return a panel for every model, metric and weighting, by the number of the run; its axis names the dates."""
        table, models = self.summary["history"]["means"], self.summary["models"]
        dates = dict(zip(table.get("run", []), table.get("date", []), strict=True))
        others = [name for name in dict.fromkeys(table.get("model", [])) if name not in models]
        panels = []
        for (metric, weighting, model), start, stop in runs(table, ("metric", "weighting", "model")):
            about = self.summary["history"]["metrics"][metric]
            labels = ("run", f"mean {about['label']} ({about['direction']} is better)")
            panel = self.panel(f"{model}, {self.short(weighting)}", "run", "score", labels)
            panel |= {"lower": "lower", "upper": "upper"}
            panel["xnames"] = [dates.get(number, "") for number in range(max(dates) + 1)]
            if metric in self.summary["metrics"]:  # others are shown whatever metric the page shows
                panel["metric"] = metric
            if model in models:
                panel |= {"of": models.index(model), "series": [self.series(model, start, stop)]}
            else:
                style = len(models) + others.index(model)
                series = {"model": None, "style": style, "label": model, "start": start, "stop": stop}
                panel["series"] = [series]
            panels.append(panel)
        return panels

    def _means(self) -> Iterable[PageTable]:
        """Yield the mean scores of earlier runs, by metric, also those that the page does not switch to."""
        history = self.summary["history"]
        for metric, about in history["metrics"].items():
            table = rows_where(history["means"], "metric", metric)
            columns = [
                *(Column(name, [short(value) for value in table[name]]) for name in ("run", "id", "date")),
                Column("model", table["model"], MODEL),
                *(numbers(name, table[name]) for name in ("from", "to")),
                *self.estimates("mean score", table, "score"),
            ]
            caption = f"Mean {about['label']} by run, {about['direction']} is better"
            switched = metric if metric in self.summary["metrics"] else None
            yield self.page_table("history", caption, columns, metric=switched, groups=table["weighting"], tall=True)

    charts = {"history": _by_run}
    shown = {"history": _means}
