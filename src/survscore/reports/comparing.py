"""A comparison and its means over time, as tables and in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, plural
from survscore.engine.averaging import Range
from survscore.engine.inputs import about_interpolation
from survscore.inference.support import FEW_FOR_DIFFERENCE
from survscore.metrics import Direction, metric_label
from survscore.reports import verdicts
from survscore.reports.cells import Table
from survscore.results.comparison import Comparison, IntegratedComparison
from survscore.results.printing import undefined_times, verdict_of
from survscore.results.recommendation import Recommendation, is_administrative

if TYPE_CHECKING:
    import pandas as pd

WHOLE: Range = (None, None)


@dataclass(frozen=True, eq=False)
class Findings:
    """A comparison, and its means over a range of time; None with one time only, or where too few times have scores.

    Attributes
    ----------
    comparison : Comparison
        By time.
    means : IntegratedComparison or None
        Over time.
    time_range : tuple of float
        Over which the means were asked for.
    """

    comparison: Comparison
    means: IntegratedComparison | None
    time_range: Range = WHOLE

    @classmethod
    def of(cls, comparison: Comparison, time_range: Range = WHOLE) -> Findings:
        """Take the means over the range, as far as there are scores; single times, where none was asked for."""
        return cls(comparison, means_of(comparison, time_range), time_range)

    @cached_property
    def places(self) -> dict[str, int]:
        """By metric, which row conclusions go by: the only one of means, or that of a time."""
        compared = self.comparison
        return {name: compared.usable_place(name) if self.means is None else 0 for name in compared.metrics}

    @cached_property
    def recommendations(self) -> dict[str, Recommendation]:
        """By metric, what to conclude from administrative and projected scores; of metrics that have both."""
        compared = self.comparison
        if not compared.has_recommendation:
            return {}
        metrics = [one.metric for one in compared.scored if one.by_theta is not None]
        return {name: compared.recommendation(*self.time_range, metric=name) for name in dict.fromkeys(metrics)}

    @cached_property
    def projected(self) -> str | None:
        """The projected weighting that conclusions are based on, in words; None where there is none."""
        some = [verdict for concluded in self.recommendations.values() for verdict in concluded.verdicts]
        return some[0].sensitivity.weighting if some else None

    @property
    def directions(self) -> dict[str, Direction]:
        """Which values are better, by metric."""
        return {scored.metric: scored.direction for scored in self.comparison.scored}

    @property
    def bounded(self) -> set[str]:
        """The metrics of which is known what those who dropped out could change."""
        return {scored.metric for scored in self.comparison.scored if scored.bounds is not None}

    @cached_property
    def time_ranges(self) -> dict[str, tuple[float, float]]:
        """Over which time the means are, by metric; empty where there are none."""
        if self.means is None:
            return {}
        first = self.means.scores.drop_duplicates("metric")
        return {row["metric"]: (float(row["from"]), float(row["to"])) for row in records(first)}

    @cached_property
    def mean_scores(self) -> pd.DataFrame:
        """The means with their skill, missing where there is none; an empty table, where there are no means."""
        import pandas as pd

        if self.means is None:
            return pd.DataFrame()
        scores: pd.DataFrame = self.means.scores
        if self.means.skill is None:
            return scores.assign(skill=math.nan)
        keys = ["metric", "weighting", "model"]
        return scores.merge(self.means.skill[[*keys, "skill"]], on=keys, how="left")

    @cached_property
    def judged(self) -> pd.DataFrame:
        """What verdicts go by: the contrasts of the means, or those at one time, each with its sentence."""
        of_means = None if self.means is None else self.means.contrasts
        contrasts = self.comparison.contrasts if of_means is None else of_means
        if of_means is None:
            contrasts = at_one_time(contrasts, self.comparison)
        # one model alone has no contrasts of means, and by time an empty table
        return contrasts.assign(sentence=[self._sentence(row) for row in records(contrasts)])

    def _sentence(self, row: dict[str, Any]) -> str:
        concluded = self.recommendations.get(row["metric"])
        for verdict in () if concluded is None else concluded.verdicts:
            if (verdict.sensitivity.model, verdict.sensitivity.weighting) == (row["model"], row["weighting"]):
                return verdict.sentence
        about_bounds = self.bounds_sentence(row)
        observed = concluded is not None and is_administrative(row["weighting"])
        whose = " for individuals with C* ≥ t only" if observed else ""
        sentence = verdicts.verdict_sentence(row, self.comparison.level, whose, self.comparison.scored[0].cause)
        return sentence if about_bounds is None else f"{sentence} {about_bounds}"

    def bounds_sentence(self, row: Mapping[str, Any]) -> str | None:
        """Return what those who dropped out could change about a contrast; None where that is not known."""
        compared = self.comparison
        return verdicts.bounds_sentence(row, compared.n_dropped_out or 0, compared.n, compared.level)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return scores and contrasts by time, means with skill, and verdicts, with their marks."""
        marks = [mark_of(row, self.comparison.encodes) for row in records(self.judged)]
        return {
            "scores": self.comparison.scores,
            "contrasts": self.comparison.contrasts,
            "means": self.mean_scores,
            "verdicts": self.judged.assign(mark=marks),
        }

    def disagreements(self) -> dict[str, dict[str, Any]]:
        """Return, by metric, where weightings contradict each other, and what is significant under some only."""
        contradictions: dict[str, list[str]] = {metric: [] for metric in self.comparison.metrics}
        unclear: dict[str, list[str]] = {metric: [] for metric in self.comparison.metrics}
        unknown: dict[str, bool] = dict.fromkeys(self.comparison.metrics, False)
        for (metric, model), rows in by_name(self.judged, "metric", "model"):
            by_weighting = dict(zip(rows["weighting"], rows["verdict"], strict=True))
            if metric in self.recommendations:  # which says where administrative scores differ, and for whom they hold
                by_weighting = {one: said for one, said in by_weighting.items() if not is_administrative(one)}
            contradicting = verdicts.contradiction(model, self.comparison.reference, by_weighting)
            doubted = verdicts.unclear(model, self.comparison.reference, by_weighting)
            contradictions[metric] += [contradicting] if contradicting else []
            unclear[metric] += [doubted] if doubted else []
            unknown[metric] |= "unknown" in by_weighting.values()
        return {"contradictions": contradictions, "unclear": unclear, "unknown": unknown}

    def notes(self, time_range: Range) -> list[str]:
        """Return in sentences at which times there is no score, and what that means for the means."""
        by_sentence: dict[str, list[str]] = {}
        for metric in self.comparison.metrics:
            sentence = undefined_times(scored for scored in self.comparison.scored if scored.metric == metric)
            if sentence:
                by_sentence.setdefault(sentence, []).append(metric)
        notes = [
            _about(metrics if len(metrics) < len(self.comparison.metrics) else [], sentence)
            for sentence, metrics in by_sentence.items()
        ]
        upper = float(self.comparison.times[-1]) if time_range[1] is None else float(time_range[1])
        by_stop: dict[float, list[str]] = {}
        for metric, (_, stop) in self.time_ranges.items():
            if stop < upper:
                by_stop.setdefault(stop, []).append(metric)
        for stop, metrics in by_stop.items():
            told = (
                f"means stop at {verdicts.short(stop)} instead of {verdicts.short(upper)}: then some score is missing"
            )
            notes.append(_about(metrics if len(metrics) < len(self.comparison.metrics) else [], told))
        cautions = dict.fromkeys(
            caution
            for one in self.comparison.scored
            for caution in [*one.support.cautions(), *one.support.few_followed(), *one.support.unequal_weights()]
        )
        read = [sentence for one in self.comparison.scored for sentence in about_interpolation(one.settings["curves"])]
        return notes + [_about([], told) for told in dict.fromkeys([*read, *cautions])] + self._few()

    def _few(self) -> list[str]:
        """Return a sentence about the times at which too few have the rarer status for reliable intervals."""
        contrasts = self.comparison.contrasts
        few = contrasts.loc[~contrasts["reliable"] & contrasts["difference"].notna(), "time"].unique()
        if not few.size:
            return []
        times = self.comparison.times
        return [
            f"At {few.size} of {plural(times.size, 'time')}, fewer than {FEW_FOR_DIFFERENCE} individuals with event, "
            "or without, are counted, or groups are too few: intervals of differences are not reliable there."
        ]


def means_of(result: Any, time_range: Range) -> Any:
    """Return the means of a comparison over a range of time; None where none was asked for and none can be made."""
    if time_range == WHOLE:
        with suppress(InputError):  # one time, or too few with a score
            return result.integrated(nan="stop")
        return None
    return result.integrated(*time_range, nan="stop")


def at_one_time(table: pd.DataFrame, compared: Comparison) -> pd.DataFrame:
    """Return the rows of the one time that conclusions go by where there is no mean, by metric."""
    if table.empty:  # one model alone
        return table
    times = {name: compared.times[compared.usable_place(name)] for name in compared.metrics}
    return table[table["time"] == table["metric"].map(times)].reset_index(drop=True)


def mark_of(row: Mapping[str, Any], encodes: Collection[str]) -> str:
    """Return the mark behind a verdict of the administrative score on a model that encodes C*; else nothing."""
    return verdict_of(row, encodes).removeprefix(row["verdict"]) if row["verdict"] else ""


def _about(metrics: Sequence[str], sentence: str) -> str:
    """Return a sentence about some of the metrics, or about all."""
    told = f"{', '.join(map(metric_label, metrics))}: {sentence}" if metrics else sentence
    return f"{told[0].upper()}{told[1:]}."


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    rows: list[Any] = frame.to_dict("records")
    return rows


def by_name(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yield the parts of a table that have the same names in some columns, in the order of the table."""
    for names, part in frame.groupby(list(columns), sort=False):
        yield tuple(str(name) for name in names), part


def as_table(frame: pd.DataFrame) -> Table:
    """Return a data frame as lists of plain values, None for NaN."""
    return {str(name): [plain(value) for value in frame[name].tolist()] for name in frame.columns}


def extend(table: Table, columns: Mapping[str, NDArray[Any]], **repeated: Any) -> None:
    """Add rows to a table: columns of numbers, beside values that are the same in all these rows."""
    for name, values in columns.items():
        table.setdefault(name, []).extend(plain(value) for value in values.tolist())
    for name, value in repeated.items():
        table.setdefault(name, []).extend([value] * len(next(iter(columns.values()))))


def plain(value: Any) -> Any:
    """Return a number that JSON knows, or None where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table of plain data."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
