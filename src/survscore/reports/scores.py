"""Scores and differences of a report, by time and as means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from survscore.reports.comparing import as_table, rows_of
from survscore.reports.section import (
    MODEL,
    Column,
    PageTable,
    Panel,
    Section,
    capital,
    judged,
    numbers,
    scope,
)
from survscore.results.rounding import MISSING, missing

if TYPE_CHECKING:
    from survscore.reports.study import Study


class ScoresSection(Section):
    """Scores of every model, differences to the reference, and means of both."""

    files = {"means": "means", "scores": "scores", "verdicts": "verdicts", "differences": "contrasts"}

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        findings, scored = study.findings, study.answers.scored
        return {
            "ratios": [
                name
                for name, direction in findings.directions.items()
                if scored[name].has_ratios and direction in ("lower", "higher")
            ],
            "explanations": [weighting.explanation for weighting in study.weightings],
            "time_ranges": {name: list(ends) for name, ends in findings.time_ranges.items()},
            **{name: as_table(frame) for name, frame in findings.frames().items()},
        }

    def _panels(self, key: str, y: str, ylabel: str) -> list[Panel]:
        def about(metric: str) -> Panel:
            named = {"sides": self.sides(metric)} if y == "difference" else {}
            axes = {"x": "time", "y": y, "lower": "lower", "upper": "upper", "xlabel": f"time{self.unit}"}
            return {**named, **axes, "ylabel": ylabel.format(**self.summary["metrics"][metric]), "zero": True}

        return self.by_weighting(self.summary[key], about)

    def _scores(self) -> list[Panel]:
        return self._panels("scores", "score", "{label} ({direction} is better)")

    def _differences(self) -> list[Panel]:
        return self._panels("contrasts", "difference", "difference in {label}")

    def _means(self) -> Iterable[PageTable]:
        """Yield mean scores, by metric."""
        for metric, table in self.by_metric(self.summary["means"]):
            direction = self.summary["metrics"][metric]["direction"]
            columns = [Column("model", table["model"], MODEL), *self.estimates("mean score", table, "score")]
            columns += self.bounds(table, metric)
            if direction == "lower" and self.summary["null_model"]:
                columns.append(numbers("skill", table["skill"], 4))
            caption = f"{capital(self.mean(metric))}, {direction} is better"
            yield self.page_table("means", caption, columns, metric=metric, groups=table["weighting"])

    def _verdicts(self) -> Iterable[PageTable]:
        """Yield differences to the reference, by metric."""
        reference = self.summary["reference"]
        rows = rows_of(self.summary["means"] or self.summary["scores"])
        scores = {(row["metric"], row["weighting"], row["model"]): row["score"] for row in rows}
        for metric, table in self.by_metric(self.summary["verdicts"]):
            columns = [Column("model", table["model"], MODEL), *self.estimates("difference", table, "difference")]
            if metric in self.summary["ratios"]:
                of = [scores[metric, weighting, reference] for weighting in table["weighting"]]
                percents = [relative(*pair) for pair in zip(table["difference"], of, strict=True)]
                columns.append(Column("in percent", percents, "r"))
            columns += [*self.bounds(table, metric), *judged(table)]
            caption = f"Differences in {self.mean(metric)} to {reference}{scope(table)}"
            yield self.page_table("verdicts", caption, columns, metric=metric, groups=table["weighting"])

    charts = {"scores": _scores, "differences": _differences}
    shown = {"means": _means, "verdicts": _verdicts}


def relative(difference: Any, score: Any) -> str:
    """Return a difference in percent of a score, with its sign."""
    if missing(difference) or missing(score) or score <= 0:
        return MISSING
    text = f"{100 * difference / score:+z,.1f} %"
    return "0.0 %" if text == "+0.0 %" else text.replace("-", "−")
