"""A backtest in a report: which score would have chosen the best model on earlier days."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from survscore._utils.dates import plural_word
from survscore._validation import InputError, several
from survscore.analysis.backtest_results import Backtest
from survscore.reports.cells import Column, with_interval
from survscore.reports.comparing import as_table, records
from survscore.reports.section import Display, Panel, Section, runs
from survscore.reports.verdicts import short
from survscore.results.printing import short_names

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
    summary = backtest.summary
    regrets = backtest.regrets()
    return {
        "sentence": backtest.sentence,
        "chosen": _chosen(summary, names),
        "models": list(backtest.models),
        "weightings": list(backtest.weightings),
        "short": names,
        "metric": backtest.metric,
        "label": backtest.label,
        "direction": backtest.direction,
        "level": float(backtest.level),
        "days": days,
        "horizons": [float(horizon) for horizon in backtest.horizons],
        "when": _when(backtest, days, plural_word(unit)),
        "n_draws": int(backtest.settings["n_draws"]),
        "summary": as_table(summary),
        "regrets": {
            "weighting": [name for name in backtest.weightings for _ in days],
            "cutoff": days * len(backtest.weightings),
            "relative_regret": [float(value) for q in range(len(backtest.weightings)) for value in regrets[:, q]],
        },
        "table": as_table(_dated(backtest.table)),
        "scores": as_table(_dated(backtest.scores)),
    }


def _dated(frame: Any) -> Any:
    return frame.assign(cutoff=frame["cutoff"].astype(str))


def _chosen(summary: Any, names: list[str]) -> str:
    """Say how often each score would have chosen the model that turned out best."""
    told = [f"{name} in {row['chose_best']} of {row['of']}" for name, row in zip(names, records(summary), strict=True)]
    return f"The model that turned out best would have been chosen by {several(told)} cases."


def _when(backtest: Backtest, days: list[str], unit: str | None) -> str:
    horizons = several([short(float(horizon)) for horizon in backtest.horizons])
    return f"{backtest.label} by {horizons}{f' {unit}' if unit else ''}, as of {several(days)}"


class BacktestSection(Section):
    """Which score would have chosen the best model on earlier days."""

    files = {
        "backtest-summary": "backtest summary", "backtest-regrets": "backtest regrets",
        "backtest-days": "backtest table", "backtest-scores": "backtest scores",
    }  # fmt: skip

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        return {"backtest": study.backtest}

    def _regrets(self) -> list[Panel]:
        """Return how much worse than the best the chosen models were, by weighting, with each day's as a dot."""
        found = self.summary.get("backtest")
        if not found:
            return []
        rows = {weighting: (start, stop) for (weighting,), start, stop in runs(found["regrets"], ("weighting",))}
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

    def _summary(self) -> Iterable[Display]:
        """Yield how each weighting would have chosen on earlier days."""
        found = self.summary.get("backtest")
        if not found:
            return
        table = found["summary"]
        level = f"{100 * found['level']:g} % interval"
        names = ("relative_regret", "regret_lower", "regret_upper", "ordered", "ordered_lower", "ordered_upper")
        percents = {name: [None if one is None else 100 * one for one in table[name]] for name in names}
        chosen = [f"{a} of {b}" for a, b in zip(table["chose_best"], table["of"], strict=True)]
        columns = [
            Column("weighting", table["weighting"], "weighting"),
            Column("chose the best", chosen, "number"),
            *with_interval("chosen worse than best by (%)", percents["relative_regret"], percents["regret_lower"],
                           percents["regret_upper"], level),
            *with_interval("pairs in the true order (%)", percents["ordered"], percents["ordered_lower"],
                           percents["ordered_upper"], level),
        ]  # fmt: skip
        yield Display("backtest-summary", f"{found['when']}, judged by what happened since", columns)

    charts = {"backtest": _regrets}
    shown = {"backtest": _summary}
