"""Scores and differences of a report, by time and as means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from survscore.inference.intervals import sides
from survscore.reports.cells import Column, even, judged, relative, scope, with_interval
from survscore.reports.comparing import as_table, rows_of
from survscore.reports.section import Display, Panel, Section, capital

if TYPE_CHECKING:
    from survscore.reports.study import Study


class ScoresSection(Section):
    """Scores of every model, differences to the reference, and means of both."""

    files = {"means": "means", "scores": "scores", "verdicts": "verdicts", "differences": "contrasts"}

    @classmethod
    def data(cls, study: Study, found: dict[str, Any]) -> dict[str, Any]:
        findings, scored = study.findings, study.answers.scored
        return {
            "ratios": [
                name
                for name, direction in findings.directions.items()
                if scored[name].has_ratios and direction in ("lower", "higher")
            ],
            "explanations": [one.explanation for one in study.weightings],
            "time_ranges": {name: list(ends) for name, ends in findings.time_ranges.items()},
            **{name: as_table(frame) for name, frame in findings.frames().items()},
        }

    def _by_time(self, key: str, y: str, ylabel: str) -> list[Panel]:
        def about(metric: str) -> Panel:
            told = self.summary["metrics"][metric]
            named = {"sides": [*sides(told["direction"])]} if y == "difference" else {}
            axes = {"x": "time", "y": y, "lower": "lower", "upper": "upper", "xlabel": self.time()}
            return {**named, **axes, "ylabel": ylabel.format(**told), "zero": True}

        return self.by_weighting(self.summary[key], about)

    def _means(self) -> Iterable[Display]:
        """Yield mean scores, by metric."""
        for metric, table in self._by_metric(self.summary["means"]):
            told = self.summary["metrics"][metric]
            columns = [
                Column("model", table["model"], "model"),
                *with_interval("mean score", table["score"], table["lower"], table["upper"], self.level),
                *self._bounds(table, metric),
            ]
            if told["direction"] == "lower" and self.summary["null_model"]:
                columns.append(Column("skill", [even(one, 4) for one in table["skill"]], "number"))
            caption = f"{capital(self._mean(metric))}, {told['direction']} is better"
            yield Display("means", caption, columns, table["model"], metric, table["weighting"])

    def _verdicts(self) -> Iterable[Display]:
        """Yield differences to the reference, by metric."""
        scores = {(row["metric"], row["weighting"], row["model"]): row["score"]
                  for row in rows_of(self.summary["means"] or self.summary["scores"])}  # fmt: skip
        ratios = self.summary["ratios"]
        for metric, table in self._by_metric(self.summary["verdicts"]):
            columns = [
                Column("model", table["model"], "model"),
                *with_interval("difference", table["difference"], table["lower"], table["upper"], self.level),
            ]
            if metric in ratios:
                of = [scores[metric, weighting, self.summary["reference"]] for weighting in table["weighting"]]
                columns.append(
                    Column(
                        "in percent", [relative(d, s) for d, s in zip(table["difference"], of, strict=True)], "number"
                    )
                )
            columns += [*self._bounds(table, metric), *judged(table)]
            caption = f"Differences in {self._mean(metric)} to {self.summary['reference']}{scope(table)}"
            yield Display("verdicts", caption, columns, table["model"], metric, table["weighting"])

    def _scores(self) -> list[Panel]:
        return self._by_time("scores", "score", "{label} ({direction} is better)")

    def _differences(self) -> list[Panel]:
        return self._by_time("contrasts", "difference", "difference in {label}")

    charts = {"scores": _scores, "differences": _differences}
    shown = {"means": _means, "verdicts": _verdicts}
