"""Which charts and tables a page has: data about what to draw, no drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from survscore.metrics import sides, survival_label
from survscore.reports.comparing import Table
from survscore.reports.verdicts import short

Panel = dict[str, Any]


def tables(summary: dict[str, Any]) -> dict[str, Table]:
    """Return every table of the page by the name of its file."""
    segments, backtest = summary.get("segments") or {}, summary.get("backtest") or {}
    by_name = {
        "follow-up": summary["data"]["quantiles"],
        "remaining": summary["data"]["remaining"],
        "causes": summary["data"]["causes"],
        "means": summary["means"],
        "scores": summary["scores"],
        "verdicts": summary["verdicts"],
        "pairs": summary["pairs"],
        "score-parts": _by_metric({name: one["parts"] for name, one in summary["answer"].items()}),
        "horizons": summary["horizons"],
        "differences": summary["contrasts"],
        "disagreements": summary["disagreements"]["table"],
        "segments": segments.get("table", {}),
        "segment-differences": segments.get("listed", {}),
        "segment-counts": segments.get("counts", {}),
        "segment-heterogeneity": segments.get("heterogeneity", {}),
        "around-censoring": summary["around_censoring"]["curves"],
        "falls": summary["around_censoring"]["falls"],
        "ipcw-weights": summary["around_censoring"]["weights"],
        "ipcw-caps": summary["around_censoring"]["caps"],
        "calibration": summary["calibration"]["curves"],
        "calibration-numbers": summary["calibration"]["numbers"],
        "calibration-parts": summary["calibration"]["parts"],
        "individuals": summary["curves"]["people"],
        "curves": summary["curves"]["curves"],
        "history": summary["history"]["means"],
        "backtest-summary": backtest.get("summary", {}),
        "backtest-regrets": backtest.get("regrets", {}),
        "backtest-days": backtest.get("table", {}),
        "backtest-scores": backtest.get("scores", {}),
    }
    return {name: table for name, table in by_name.items() if any(table.values())}


def _by_metric(tables: dict[str, Table]) -> Table:
    """Return tables of several metrics as one."""
    known = {metric: table for metric, table in tables.items() if table}
    columns = next(iter(known.values()), {})
    joined = {name: [value for table in known.values() for value in table[name]] for name in columns}
    return {"metric": [metric for metric, table in known.items() for _ in table["model"]], **joined}


def panels(summary: dict[str, Any]) -> dict[str, list[Panel]]:
    """Return the panels of every chart, by the table whose rows they draw."""
    return {
        "answer": _answer(summary),
        "remaining": _remaining(summary),
        "scores": _by_metric_and_weighting(summary, "scores", "score", "{label} ({direction} is better)"),
        "differences": _by_metric_and_weighting(summary, "contrasts", "difference", "difference in {label}"),
        "segments": _forests(summary),
        "around-censoring": _around(summary),
        "calibration": _calibration(summary),
        "curves": single_curves(summary),
        "history": _history(summary),
        "backtest": _backtest(summary),
    }


def _time(summary: dict[str, Any], what: str = "time") -> str:
    """Return the label of an axis of time, with its unit where that is known."""
    unit = summary.get("unit")
    return f"{what} ({unit})" if unit else what


def _runs(table: Table, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yield each run of rows with the same keys, and where it starts and stops."""
    rows = list(zip(*(table.get(key, []) for key in keys), strict=True))
    start = 0
    for stop in range(1, len(rows) + 1):
        if stop == len(rows) or rows[stop] != rows[start]:
            yield rows[start], start, stop
            start = stop


def _short(summary: dict[str, Any], weighting: str) -> str:
    """Return the short name of a weighting; of an earlier run it may be one that is not of this page."""
    names: dict[str, str] = dict(zip(summary["weightings"], summary["short_weightings"], strict=True))
    return names.get(weighting, weighting)


def _of_weighting(summary: dict[str, Any], weighting: str) -> Panel:
    """Return what a panel of a weighting is called, and whether it is the one that the answer goes by."""
    name = _short(summary, weighting)
    main = {"main": True} if weighting == summary["headline"] else {}
    return {"title": name, **({"full": weighting} if name != weighting else {}), **main}


def _answer(summary: dict[str, Any]) -> list[Panel]:
    """Return the differences to the reference, by metric: models in groups, in each the weightings, the main one first.

    Rows say where in the table of verdicts they stand; what has no difference is left out.
    """
    table, panels = summary["verdicts"], []
    for metric, told in summary["metrics"].items():
        rows: dict[str, list[Panel]] = {}
        for k, model in enumerate(table.get("model", [])):
            if table["metric"][k] == metric and table["difference"][k] is not None:
                row = {"at": k, **_of_weighting(summary, table["weighting"][k])}
                rows.setdefault(model, []).append(row)
        order = sorted(rows, key=lambda model: model == summary["null_model"])
        groups = [
            {**_series(summary, model, 0, 0), "rows": sorted(rows[model], key=lambda row: "main" not in row)}
            for model in order
        ]
        if groups:
            over = "mean " if summary["means"] else ""
            panels.append(
                {
                    "kind": "answer",
                    "metric": metric,
                    "title": f"Difference in {over}{told['label']} to {summary['reference']}",
                    "xlabel": f"difference in {over}{told['label']}",
                    "sides": [*sides(told["direction"])],
                    "groups": groups,
                }
            )
    return panels


def _series(summary: dict[str, Any], model: str, start: int, stop: int) -> dict[str, Any]:
    series = {"model": summary["models"].index(model), "label": model, "start": start, "stop": stop}
    return {**series, "null": True} if model == summary["null_model"] else series


def _remaining(summary: dict[str, Any]) -> list[Panel]:
    table, cause = summary["data"]["remaining"], summary.get("cause")
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
            "xlabel": _time(summary),
            "ylabel": "individuals",
            "zero": True,
            "series": [
                {"model": None, "neutral": k, "label": labels[name], "y": name, "start": 0, "stop": stop}
                for k, name in enumerate(shown)
            ],
        }
    ]


def _by_metric_and_weighting(summary: dict[str, Any], key: str, y: str, ylabel: str) -> list[Panel]:
    panels: dict[tuple[str, str], Panel] = {}
    for (metric, weighting, model), start, stop in _runs(summary[key], ("metric", "weighting", "model")):
        named = {"sides": [*sides(summary["metrics"][metric]["direction"])]} if y == "difference" else {}
        panel = panels.setdefault(
            (metric, weighting),
            {
                "metric": metric,
                **_of_weighting(summary, weighting),
                **named,
                "x": "time",
                "y": y,
                "lower": "lower",
                "upper": "upper",
                "xlabel": _time(summary),
                "ylabel": ylabel.format(**summary["metrics"][metric]),
                "zero": True,
                "series": [],
            },
        )
        panel["series"].append(_series(summary, model, start, stop))
    return sorted(panels.values(), key=lambda panel: "main" not in panel)


def _forests(summary: dict[str, Any]) -> list[Panel]:
    """Return one forest for each metric and weighting; the first row of each model is that of all individuals."""
    panels: dict[tuple[str, str], Panel] = {}
    table = (summary.get("segments") or {}).get("table", {})
    for (metric, weighting, model), start, stop in _runs(table, ("metric", "weighting", "model")):
        label = summary["metrics"][metric]["label"]
        panel = panels.setdefault(
            (metric, weighting),
            {
                "kind": "forest",
                "metric": metric,
                **_of_weighting(summary, weighting),
                "xlabel": f"difference in {'mean ' if summary['means'] else ''}{label} to {summary['reference']}",
                "by": summary["segments"]["by"],
                "sides": [*sides(summary["metrics"][metric]["direction"])],
                "series": [],
            },
        )
        panel["series"].append(_series(summary, model, start, stop))
    return sorted(panels.values(), key=lambda panel: "main" not in panel)


def _around(summary: dict[str, Any]) -> list[Panel]:
    around = summary["around_censoring"]
    if around["missing"]:
        return []
    runs = _runs(around["curves"], ("model",))
    return [
        {
            "title": f"Mean predicted {_predicted(summary)} around each individual's own C*",
            "main": True,
            "x": "offset",
            "y": "survival",
            "xlabel": _time(summary, "time since C*"),
            "ylabel": f"mean predicted {_predicted(summary)}",
            "ydomain": [0, 1],
            "marks": [{"x": 0, "label": "C*"}],
            "series": [
                _series(summary, model, start, stop) for (model,), start, stop in runs if model in summary["models"]
            ],
        }
    ]


def _predicted(summary: dict[str, Any]) -> str:
    return survival_label(summary.get("cause") or "")


def _calibration(summary: dict[str, Any]) -> list[Panel]:
    panels: dict[float, Panel] = {}
    top = _top(summary["calibration"]["curves"])
    for (horizon, model), start, stop in _runs(summary["calibration"]["curves"], ("horizon", "model")):
        panel = panels.setdefault(
            horizon,
            {
                "title": f"at {short(horizon)} {summary['unit']}"
                if summary.get("unit")
                else f"at time {short(horizon)}",
                "x": "predicted",
                "y": "observed",
                "lower": "lower",
                "upper": "upper",
                "xlabel": "predicted risk",
                "ylabel": "observed proportion",
                "domain": [0, top],
                "diagonal": True,
                "series": [],
            },
        )
        panel["series"].append(_series(summary, model, start, stop))
    return list(panels.values())


def _top(curves: Table) -> float:
    """Return the end of both axes of calibration, in tenths: the largest risk that is drawn, and no more than 1."""
    drawn = [
        value for name in ("predicted", "observed", "upper") for value in curves.get(name, []) if value is not None
    ]
    return min(1.0, math.ceil(10 * max(drawn, default=1.0)) / 10)


def single_curves(summary: dict[str, Any]) -> list[Panel]:
    """Return a panel for each individual whose curves are shown; of several causes, one for each model as well."""
    people = summary["curves"]["people"]
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
            "xlabel": _time(summary),
            "ylabel": f"predicted {_predicted(summary)}",
            "ydomain": [0, 1],
            "marks": marks,
            "series": [],
        }
    if summary["curves"].get("stacked"):
        return _stacked(summary, panels)
    for (label, model), start, stop in _runs(summary["curves"]["curves"], ("individual", "model")):
        step = {"step": True} if model in summary["steps"] else {}
        panels[label]["series"].append(_series(summary, model, start, stop) | step)
    return list(panels.values())


def _stacked(summary: dict[str, Any], individuals: dict[str, Panel]) -> list[Panel]:
    """Return a panel for each individual and model, with the incidences of all causes one upon the other."""
    panels: dict[tuple[str, str], Panel] = {}
    table = summary["curves"]["curves"]
    causes = list(dict.fromkeys(table["cause"]))
    for (label, model, cause), start, stop in _runs(table, ("individual", "model", "cause")):
        panel = panels.setdefault((label, model), {
            **individuals[label], "title": f"individual {label}, {model}", "of": summary["models"].index(model),
            "y": "up_to", "lower": "below", "upper": "up_to", "ylabel": "predicted probability of an event",
            "series": [],
        })  # fmt: skip
        k = causes.index(cause)
        panel["series"].append(
            {"model": None, "style": k, "label": cause, "start": start, "stop": stop, "stacked": "incidence"}
        )
    return list(panels.values())


def _history(summary: dict[str, Any]) -> list[Panel]:
    """Return a panel for every model, metric and weighting, by the number of the run; its axis tells the dates."""
    table = summary["history"]["means"]
    dates = dict(zip(table.get("run", []), table.get("date", []), strict=True))
    others = [name for name in dict.fromkeys(table.get("model", [])) if name not in summary["models"]]
    panels = []
    for (metric, weighting, model), start, stop in _runs(table, ("metric", "weighting", "model")):
        here = model in summary["models"]
        told = summary["history"]["metrics"][metric]
        # a metric that the page does not switch to is shown whatever it shows
        switched = {"metric": metric} if metric in summary["metrics"] else {}
        style = len(summary["models"]) + others.index(model) if not here else 0
        series = {"model": None, "style": style, "label": model, "start": start, "stop": stop}
        panels.append(
            {
                **switched,
                **({"of": summary["models"].index(model)} if here else {}),
                "title": f"{model}, {_short(summary, weighting)}",
                "x": "run",
                "y": "score",
                "lower": "lower",
                "upper": "upper",
                "xlabel": "run",
                "xnames": [dates.get(number, "") for number in range(max(dates) + 1)],
                "ylabel": f"mean {told['label']} ({told['direction']} is better)",
                "series": [_series(summary, model, start, stop) if here else series],
            }
        )
    return panels


def _backtest(summary: dict[str, Any]) -> list[Panel]:
    """Return how much worse than the best the chosen models were, by weighting, with each day's as a dot."""
    found = summary.get("backtest")
    if not found:
        return []
    rows = {weighting: (start, stop) for (weighting,), start, stop in _runs(found["regrets"], ("weighting",))}
    return [
        {
            "kind": "backtest",
            "title": "By how much the model that was chosen turned out worse than the best",
            "xlabel": f"worse than the best, % of its {found['label']}",
            "rows": [
                {"at": k, "title": name, "full": label, "start": rows[label][0], "stop": rows[label][1]}
                for k, (label, name) in enumerate(zip(found["weightings"], found["short"], strict=True))
            ],
        }
    ]
