"""A comparison by segment, as tables and in words: the same in the terminal, in files and on the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survscore._utils.parallel import cached_property
from survscore._validation import InputError, plural
from survscore.engine.averaging import Range
from survscore.inference.support import FEW_FOR_DIFFERENCE
from survscore.reports.comparing import WHOLE, as_table, at_one_time, by_name, mark_of, means_of, p_value, records
from survscore.reports.section import (
    MODEL,
    Column,
    PageTable,
    Panel,
    Section,
    Table,
    judged,
    numbers,
    p_values,
    scope,
)
from survscore.results.long_tables import ALL
from survscore.results.rounding import missing, short
from survscore.results.segments import IntegratedSegments, SegmentedComparison

if TYPE_CHECKING:
    import pandas as pd

    from survscore.reports.study import Study

MOST_LISTED = 200  # segments in the page's own table; the file has all


@dataclass(frozen=True, eq=False)
class SegmentFindings:
    """A comparison by segment, and its means over a range of time; None, where there is one time only."""

    segmented: SegmentedComparison
    means: IntegratedSegments | None

    @classmethod
    def of(cls, segmented: SegmentedComparison, time_range: Range = WHOLE) -> SegmentFindings:
        """Take the means over the range, as far as the total has scores."""
        return cls(segmented, means_of(segmented, time_range))

    @property
    def by(self) -> list[str]:
        """The segmenting columns."""
        return list(self.segmented.by)

    @cached_property
    def counts(self) -> pd.DataFrame:
        """How many individuals and events there are, first in the total."""
        return self.segmented.counts

    @cached_property
    def judged(self) -> pd.DataFrame:
        """What verdicts go by: the contrasts of the means, or those at the one time, with n and n_events."""
        return self._counted(self._one_row("contrasts"))

    @cached_property
    def scored(self) -> pd.DataFrame:
        """The mean scores, or those at the one time, with n and n_events."""
        return self._counted(self._one_row("scores").drop(columns=["n_events"], errors="ignore"))

    def _one_row(self, name: str) -> pd.DataFrame:
        """Return a table of the means, or where there are none, or no differences, of the one time."""
        table = None if self.means is None else getattr(self.means, name)
        return at_one_time(getattr(self.segmented, name), self.segmented.total) if table is None else table

    def _counted(self, table: pd.DataFrame) -> pd.DataFrame:
        return table.merge(self.counts[[*self.by, "n", "n_events"]], on=self.by, how="left")

    @cached_property
    def heterogeneity(self) -> pd.DataFrame | None:
        """Whether the segments could be the same; None where they can't be compared with each other, or are alone."""
        result = self.segmented if self.means is None else self.means
        try:
            table = result.heterogeneity()
        except InputError:  # groups that span segments, which `notes` tells
            return None
        if self.means is None:
            table = at_one_time(table, self.segmented.total)
        return table if len(table) else None

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return scores and contrasts by time, means, verdicts, counts and heterogeneity."""
        scores, contrasts = self.segmented.scores, self.segmented.contrasts
        more = {} if self.heterogeneity is None else {"heterogeneity": self.heterogeneity}
        return {
            "scores": scores,
            "contrasts": contrasts,
            "means": self._means(),
            "verdicts": self.judged.drop(columns=["n", "n_events"]),
            "counts": self.counts,
            **more,
        }

    def _means(self) -> pd.DataFrame:
        """Return the means with their skill, where there is a null model; an empty table, where there are no means."""
        import pandas as pd

        if self.means is None:
            return pd.DataFrame()
        skill = self.means.skill
        keys = [*self.by, "metric", "weighting", "model"]
        return self.means.scores if skill is None else self.means.scores.merge(skill[[*keys, "skill"]], how="left")

    def sentences(self, metric: str, weighting: str) -> list[str]:
        """Return in words, for each model, in how many segments it is better or worse, and whether segments differ."""
        sentences = []
        rows = self.judged[(self.judged["metric"] == metric) & (self.judged["weighting"] == weighting)]
        tests = [] if self.heterogeneity is None else records(self.heterogeneity)
        differ = {(row["metric"], row["weighting"], row["model"]): row for row in tests}
        for (model,), part in by_name(rows, "model"):
            sentences.append(self._sentence(model, part.iloc[1:], differ.get((metric, weighting, model))))
        return sentences

    def _sentence(self, model: str, parts: pd.DataFrame, differ: dict[str, Any] | None) -> str:
        counts = parts["verdict"].value_counts()
        reference, of_all = self.segmented.total.reference, plural(len(parts), "segment")
        significant = [(verdict, counts[verdict]) for verdict in ("better", "worse") if verdict in counts]
        clear = f"{model} is significantly better or worse than {reference} in none of {of_all}"
        if significant:
            clear = f"{model} is significantly {significant[0][0]} than {reference} in {significant[0][1]}"
            other = f", and {significant[1][0]} in {significant[1][1]}," if len(significant) > 1 else ""
            clear += f"{other} of {of_all}"
        words = {"undecided": "undecided", "too few": "with too few individuals", "unknown": "without score"}
        rest = [f"{counts[verdict]} {word}" for verdict, word in words.items() if verdict in counts]
        sentence = f"{clear} ({', '.join(rest)})." if rest else f"{clear}."
        if differ is None or missing(differ["q"]):
            return sentence
        differs = "differ" if differ["p_value"] < 1 - self.segmented.total.level else "do not differ"
        return (
            f"{sentence} The {differ['n_segments']:.0f} segments with an interval {differs} significantly "
            f"(Cochran's Q = {differ['q']:.1f} on {differ['df']:.0f}, {p_value(differ['p_value'])})."
        )

    def notes(self) -> list[str]:
        """Return what readers should know: what has no interval, what has no score, and how p-values are adjusted."""
        how = {
            "holm": "P-values are adjusted for the number of segments by Holm's method, as are verdicts.",
            "benjamini-hochberg": "P-values are adjusted for the number of segments by Benjamini and Hochberg's "
            "method, as are verdicts.",
            "none": "P-values are not adjusted for the number of segments.",
        }
        notes = [f"{how[self.segmented.correction]} Intervals are each segment's own."]
        of_all = plural(len(self.segmented.parts), "segment")
        few = int((~self.counts["reliable"].iloc[1:]).sum())
        if few:
            notes.append(
                f"{few} of {of_all} {'has' if few == 1 else 'have'} fewer than {FEW_FOR_DIFFERENCE} individuals with "
                "event, or without, or too few groups: differences have no interval there."
            )
        if self.means is not None:
            scores = self.means.scores
            gone = len(scores.loc[scores["score"].isna(), self.by].drop_duplicates())
            if gone:
                notes.append(
                    f"{gone} of {of_all} {'has' if gone == 1 else 'have'} no mean over the whole range of time by some "
                    "metric or weighting; a shorter range may have one."
                )
        if self.segmented.n_spanning:
            notes.append(
                f"{plural(self.segmented.n_spanning, 'group')} span several segments, so these are not compared with "
                "each other."
            )
        return notes

    def summary(self, headline: str) -> dict[str, Any]:
        """Return the same as plain data, for a page; `headline` is the weighting of its first table."""
        import pandas as pd

        total = self.segmented.total
        # a chart draws rows that follow each other
        runs = [part for _, part in by_name(self.judged, "metric", "weighting", "model")]
        table = pd.concat(runs, ignore_index=True) if runs else self.judged
        table = table.drop(columns=["reliable"])
        table["mark"] = [mark_of(row, total.encodes) for row in records(table)]
        table.insert(0, "segment_label", [segment_name(row, self.by) for row in records(table)])
        counts = self.counts.copy()
        counts.insert(0, "segment_label", [segment_name(row, self.by) for row in records(counts)])
        largest = self.counts.iloc[1:].nlargest(MOST_LISTED, "n")[self.by]
        first = pd.concat([self.counts[self.by].iloc[:1], largest])
        listed = table[table["weighting"] == headline].merge(first, on=self.by)
        return {
            "by": self.by,
            "correction": self.segmented.correction,
            "n": len(self.segmented.parts),
            "n_listed": min(MOST_LISTED, len(self.segmented.parts)),
            "table": as_table(table),
            "listed": as_table(listed),
            "counts": as_table(counts),
            "heterogeneity": {} if self.heterogeneity is None else as_table(self.heterogeneity),
            "sentences": {
                metric: {weighting: self.sentences(metric, weighting) for weighting in total.weightings}
                for metric in total.metrics
            },
            "notes": self.notes(),
        }


def segment_name(row: dict[str, Any], by: list[str]) -> str:
    """Return a segment's labels in one, for people."""
    labels = [str(row[name]) for name in by]
    return ALL if set(labels) == {ALL} else ", ".join(label or "''" for label in labels)


class SegmentsSection(Section):
    """Differences by segment."""

    files = {
        "segments": "segments table",
        "segment-differences": "segments listed",
        "segment-counts": "segments counts",
        "segment-heterogeneity": "segments heterogeneity",
    }
    doing = "judging segments"

    @classmethod
    def data(cls, study: Study, before: dict[str, Any]) -> dict[str, Any]:
        return {"segments": None if study.segments is None else study.segments.summary(study.headline)}

    def _forests(self) -> list[Panel]:
        """Return one forest for each metric and weighting; the first row of each model is that of all individuals."""
        segments, mean = self.summary.get("segments") or {}, "mean " if self.summary["means"] else ""

        def about(metric: str) -> Panel:
            difference = f"difference in {mean}{self.summary['metrics'][metric]['label']}"
            label = f"{difference} to {self.summary['reference']}"
            return {"kind": "forest", "xlabel": label, "by": segments["by"], "sides": self.sides(metric)}

        return self.by_weighting(segments.get("table", {}), about)

    def _of_segments(self, table: Table) -> list[Column]:
        by = self.summary["segments"]["by"]
        return [
            Column(", ".join(by), table["segment_label"]),
            *([Column("model", table["model"], MODEL)] if "model" in table else []),
            numbers("individuals", table["n"]),
            numbers("events", table["n_events"]),
        ]

    def _differences(self) -> Iterable[PageTable]:
        """Yield differences by segment, under the weighting of the answer."""
        segments = self.summary.get("segments")
        if not segments or not segments["listed"]:
            return
        largest = f" (the {segments['n_listed']} largest segments)" if segments["n"] > segments["n_listed"] else ""
        for metric, table in self.by_metric(segments["listed"]):
            p_value, verdict = judged(table)
            columns = [*self._of_segments(table), *self.estimates("difference", table, "difference")]
            columns += [p_value, p_values(table["p_adjusted"], "p, adjusted"), verdict]
            if "reason" in table:
                columns.append(Column("why not", [short(reason) for reason in table["reason"]]))
            caption = f"Differences in {self.mean(metric)} to {self.summary['reference']}, {self.headline}{largest}"
            yield self.page_table("segment-differences", caption + scope(table), columns, metric=metric, tall=True)

    def _counts(self) -> Iterable[PageTable]:
        """Yield how many individuals each segment has."""
        segments = self.summary.get("segments")
        if segments:
            columns = self._of_segments(segments["counts"])
            yield self.page_table("segment-counts", "How many there are", columns, tall=True)

    charts = {"segments": _forests}
    shown = {"segment-differences": _differences, "segment-counts": _counts}
