"""What evaluate prints: scores and differences at some times, and of every segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from survscore.engine.averaging import Range
    from survscore.results.comparison import Comparison


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
        from survscore.cli.segments import segment_score_tables, segment_tables
        from survscore.reports.comparing import Findings
        from survscore.reports.segments import SegmentFindings

        if self.time_range is not None or self.total.times.size == 1:
            findings = Findings.of(self.total, self.time_range or (None, None))
            printed = comparison_tables(findings, unit=self.unit, advice=advice)
        else:
            printed = [*self._at_some_times(), *advised(advice)]
        if self.segmented is None:
            return printed
        means = None if self.time_range is None else self.segmented.integrated(*self.time_range, nan="stop")
        segments = SegmentFindings(self.segmented, means)
        return printed + (segment_tables if len(self.total.models) > 1 else segment_score_tables)(segments)

    def _at_some_times(self) -> list[Any]:
        """Return the scores and differences of all individuals at all times, or at some where there are many."""
        from survscore.cli.horizons import MOST_TIMES, about_times, blocks_of, difference_tables, some_of

        times, many = self.total.times, self.total.times.size > MOST_TIMES
        shown = some_of(times) if many else times
        scores, contrasts = (table[table["time"].isin(shown)] for table in (self.total.scores, self.total.contrasts))
        printed: list[Any] = []
        for metric in self.total.metrics:
            theirs = (table[table["metric"] == metric] for table in (scores, contrasts))
            printed += difference_tables(self.total, metric, blocks_of(*theirs), self.unit)
        return [*printed, about_times(times.size, "differences")] if many else printed
