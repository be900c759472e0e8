"""What evaluate prints: scores and differences at some times, and of every segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from survscore._validation import plural
from survscore._validation import shown as printable

if TYPE_CHECKING:
    import pandas as pd

    from survscore.engine.averaging import Range
    from survscore.results.comparison import Comparison

SHOWN_TIMES = 4  # of many
MOST_SEGMENTS = 50


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The results of all individuals, and of segments where there are any.

    Attributes
    ----------
    total : Comparison
        Of all individuals.
    segmented : SegmentedComparison or None
        With the segments.
    time_range : tuple or None
        Over which time there are means.
    unit : str or None
        What times are counted in, where that is known: days.
    """

    total: Comparison
    segmented: Any
    time_range: Range | None
    unit: str | None = None

    @classmethod
    def of(cls, result: Any, time_range: Range | None, unit: str | None = None) -> Evaluated:
        """Tell a comparison from one with segments."""
        from survscore.results.segments import SegmentedComparison

        segmented = result if isinstance(result, SegmentedComparison) else None
        return cls(result if segmented is None else segmented.total, segmented, time_range, unit)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return long tables, in which the segmenting columns come first."""
        whole = self.total if self.segmented is None else self.segmented
        found = {"scores": whole.scores, "contrasts": whole.contrasts}
        if self.time_range is not None:
            means = whole.integrated(*self.time_range, nan="stop")
            found |= {"means": means.scores, "verdicts": means.contrasts}
        return {name: frame for name, frame in found.items() if frame is not None and len(frame)}

    def tables(self, advice: Sequence[str] = ()) -> list[Any]:
        """Return the tables of compare, or where there are no means, the results at some times; then the segments'.

        Parameters
        ----------
        advice : sequence of str
            What to say after the tables of all individuals.
        """
        from survscore.cli.horizons import advised, comparison_tables
        from survscore.reports.comparing import Findings

        if self.time_range is not None or self.total.times.size == 1:
            findings = Findings.of(self.total, self.time_range or (None, None))
            printed = comparison_tables(findings, unit=self.unit, advice=advice)
        else:
            printed = [*self._at_some_times(), *advised(advice)]
        if self.segmented is None:
            return printed
        by = list(self.segmented.by)
        frames = self.frames()
        if self.time_range is not None:
            return printed + self._printed(frames["means"], frames.get("verdicts"), by)
        scores, contrasts = frames["scores"], frames.get("contrasts")
        last = _some(self.total.times, 1)
        contrasts = None if contrasts is None else contrasts[contrasts["time"].isin(last)]
        return printed + self._printed(scores[scores["time"].isin(last)], contrasts, by)

    def _at_some_times(self) -> list[Any]:
        """Return the scores and differences of all individuals at all times, or at some where there are many."""
        from survscore.cli.horizons import MOST_TIMES, about_times, blocks_of, difference_tables

        times = _some(self.total.times, MOST_TIMES if self.total.times.size <= MOST_TIMES else SHOWN_TIMES)
        scores, contrasts = (table[table["time"].isin(times)] for table in (self.total.scores, self.total.contrasts))
        printed: list[Any] = []
        for metric in self.total.metrics:
            theirs = (table[table["metric"] == metric] for table in (scores, contrasts))
            printed += difference_tables(self.total, metric, blocks_of(*theirs), self.unit)
        many = self.total.times.size > MOST_TIMES
        return [*printed, about_times(self.total.times.size, "differences")] if many else printed

    def _printed(self, scores: pd.DataFrame, contrasts: pd.DataFrame | None, by: list[str]) -> list[Any]:
        from rich.text import Text

        from survscore.metrics import metric_label
        from survscore.reports.comparing import by_name

        timed = "time" in scores
        times = _some(self.total.times, SHOWN_TIMES) if timed else []
        found: dict[Any, Any] = {}
        if contrasts is not None:
            keys = _keys(by, timed)
            found = {tuple(row[key] for key in keys): row for row in contrasts.to_dict("records")}
        printed: list[Any] = []
        directions = {one.metric: one.direction for one in self.total.scored}
        for (metric,), of_metric in by_name(scores, "metric"):
            better = f"{directions[metric]} is better"
            how = f" of {self.total.n:,} individuals, {100 * self.total.level:g} % intervals, {better}"
            label = metric_label(metric) + (f" by {', '.join(map(printable, by))}" if by else "")
            printed.append(Text.assemble((label[0].upper() + label[1:], "bold"), how))
            for (weighting,), rows in by_name(of_metric, "weighting"):
                some = rows[rows["time"].isin(times)] if timed else rows
                printed += self._table(weighting, some, found, by, timed)
        return printed

    def _table(self, title: str, rows: pd.DataFrame, contrasts: Any, by: list[str], timed: bool) -> list[Any]:
        from rich.box import SIMPLE
        from rich.table import Table
        from rich.text import Text

        table = Table(title=_text(title), title_justify="left", box=SIMPLE, pad_edge=False)
        for name in (*by, "model"):
            table.add_column(_text(name), overflow="fold")
        for name in (*(["time"] if timed else []), "score", f"difference to {self.total.reference}", _p_name(by)):
            table.add_column(_text(name), justify="right", overflow="fold", min_width=4)
        table.add_column("verdict", no_wrap=True)
        records = rows.to_dict("records")
        segments = list(dict.fromkeys(tuple(row[name] for name in by) for row in records))
        shown = set(segments[: MOST_SEGMENTS + 1])
        for row in records:
            if tuple(row[name] for name in by) not in shown:
                continue
            contrast = contrasts.get(tuple(row[key] for key in _keys(by, timed)))
            told = ["", "", "reference"] if contrast is None else _contrast(contrast)
            time = [f"{row['time']:g}"] if timed else []
            labels = [_text(str(row[name])) for name in (*by, "model")]
            table.add_row(*labels, *time, _number("{:.4f}", row["score"], row["lower"], row["upper"]), *told)
        left_out = len(segments) - len(shown)
        if left_out <= 0:
            return [table]
        return [table, Text(f"{plural(left_out, 'more segment')} not shown: --csv, --json and --parquet write all\n")]


def _keys(by: list[str], timed: bool) -> list[str]:
    return [*by, "metric", "weighting", "model", *(["time"] if timed else [])]


def _p_name(by: list[str]) -> str:
    return "p adjusted" if by else "p"


def _contrast(row: dict[str, Any]) -> list[Any]:
    from rich.text import Text

    p = row.get("p_adjusted", row["p_value"])  # of segments, what their verdicts go by
    p = row["p_value"] if _missing(p) else p
    return [
        _number("{:+.4f}", row["difference"], row["lower"], row["upper"]),
        "-" if _missing(p) else "<0.001" if p < 0.001 else f"{p:.3f}",
        Text(str(row["verdict"]), {"better": "green", "worse": "red"}.get(row["verdict"], "dim")),
    ]


def _number(form: str, value: float, lower: float, upper: float) -> str:
    if _missing(value):
        return "-"
    return form.format(value) + ("" if _missing(lower) else f" ±{(upper - lower) / 2:.4f}")


def _text(text: str) -> Any:
    """Return text as it is: no markup, no control characters."""
    from rich.text import Text

    return Text(printable(text, most=200))


def _missing(value: float | None) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN


def _some(times: Any, most: int) -> list[float]:
    """Return some of the times, from early to the last."""
    if len(times) <= most:
        return [float(time) for time in times]
    return [float(times[round(k * (len(times) - 1) / most)]) for k in range(1, most + 1)]
