"""Scores by segment: the same comparison for all individuals together, and within each country, plan or age group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import InputError, check_choice, plural, shown
from survscore.engine.averaging import WhereNaN
from survscore.inference.multiplicity import CORRECTIONS, Correction
from survscore.inference.support import FEW_FOR_DIFFERENCE
from survscore.results import long_tables, printing
from survscore.results.comparison import Comparison, IntegratedComparison
from survscore.results.latex import MatrixEntry
from survscore.results.long_tables import ALL, Comparand, Key, LongTable, Tabulated, cause_column
from survscore.results.tables import PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import SegmentsDisplay

#: Columns of tables, whose names segmenting columns can't have.
TAKEN = """
metric weighting model reference time from to score difference skill se lower upper p_value p_adjusted verdict reliable
reason n_counted n_events n_effective n_groups largest_share bound_lower bound_upper bound_p_value against n
n_dropped_out others q df estimate n_segments times sentence segment_label
"""


class _SegmentTables(Tabulated):
    """What results by segment share, at each time or as means over time."""

    def between(
        self, *, of: Comparand = "difference", model: str | None = None, against: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return how much segments differ from each other, at every time, or in their means over time.

        Segments are disjoint, so variances add. A segment is part of the total, so it is compared with all other
        segments instead.

        Parameters
        ----------
        of : {"difference", "score"}
            Of differences to the reference (is the gain larger here?), or of scores (is it harder to predict here?).
        model : str, optional
            Of which model; by default of all.
        against : str or sequence of str, optional
            The segment to compare with, by its labels. By default all others: their mean, each weighted by how many
            individuals it counts, of those that have an interval.

        Returns
        -------
        pandas.DataFrame
            The segmenting columns, metric, weighting, model, reference, against, time, estimate, others, difference,
            se, lower, upper, p_value, p_adjusted, verdict: "better" where the model fares better here than there.
            NaN, and "too few", where a segment has fewer than 20 of the rarer status.
        """
        return long_tables.between(self._table(), of, model, against)

    def heterogeneity(self, *, of: Comparand = "difference", model: str | None = None) -> pd.DataFrame:
        r"""Return whether all segments could be the same, at every time, or in their means: Cochran's Q.

        :math:`Q = \sum_g (d_g - \bar d)^2 / V_g` over the segments that have an interval, :math:`\bar d` being their
        mean with weights :math:`1 / V_g`. The p-value is Welch's, which allows for the variances being estimated; with
        many individuals it is that of a chi-square with as many degrees of freedom as there are segments, minus one.

        Arguments are those of `between`; columns metric, weighting, model, reference, time, n_segments, q, df, p_value.
        """
        return long_tables.heterogeneity(self._table(), of, model)


@dataclass(frozen=True, eq=False, repr=False)
class SegmentedComparison(_SegmentTables):
    r"""A comparison of models within segments, and of all individuals together. Numbers only.

    Every part is what `compare` gives for its individuals alone, at the times of the total. Tables have the segmenting
    columns first; there, the rows of the total come first, and have "(all)".

    In a segment, limits and p-values are given where they are `reliable`: for scores from two individuals of either
    status on, for differences, skill and AUC from 20 of the rarer status on, and with at least four degrees of freedom.
    Elsewhere they are NaN, and the verdict is "too few".

    Parameters
    ----------
    by : tuple of str
        Names of the segmenting columns.
    total : Comparison
        Of all individuals.
    parts : mapping of tuple of str to Comparison
        Of every segment, by its labels, one for each of `by`. All have the models, metrics, weightings and times of the
        total, in the same order. They are kept in the order of their labels, numbers by their value.
    correction : {"holm", "benjamini-hochberg", "none"}, default "holm"
        How ``p_adjusted`` allows for the number of segments (see `survscore.inference.multiplicity.adjusted`), for each
        metric, weighting, model and time. Verdicts of segments go by it; limits are each segment's own.
    n_spanning : int or None, default 0
        How many `groups` have individuals in several segments, which then are not compared with each other, since they
        depend on each other. None: that is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import survscore as ss
    >>> rng = np.random.default_rng(1)
    >>> country = rng.choice(["DE", "FR", "SE"], 1500, p=[0.6, 0.39, 0.01])
    >>> rate = rng.gamma(2, 0.05, 1500)
    >>> event_time, end = rng.exponential(1 / rate), rng.uniform(5, 25, 1500)
    >>> y = ss.Outcomes(np.minimum(event_time, end), event_time <= end, end)
    >>> times = np.arange(1.0, 21.0)
    >>> wrong = np.where(country == "FR", 2.0, 1.0)  # the second model is wrong in France
    >>> models = {
    ...     "truth": ss.SurvivalCurves(np.exp(-rate[:, None] * times), times),
    ...     "other": ss.SurvivalCurves(np.exp(-(rate * wrong)[:, None] * times), times),
    ... }
    >>> found = ss.compare(
    ...     y, models, weighting="administrative", times=times, null=False, by={"country": country}, ranges=[(5, 15)]
    ... )
    >>> means = found.integrated(5, 15)
    >>> means.contrasts[["country", "model", "difference", "lower", "upper", "p_adjusted", "verdict"]].round(4)
      country  model  difference   lower   upper  p_adjusted    verdict
    0   (all)  other      0.0197  0.0138  0.0256         0.0      worse
    1      DE  other      0.0000 -0.0000  0.0000         1.0  undecided
    2      FR  other      0.0508  0.0359  0.0657         0.0      worse
    3      SE  other      0.0000     NaN     NaN         NaN    too few
    >>> means.heterogeneity().round(4)[["model", "n_segments", "df", "p_value"]]
       model  n_segments   df  p_value
    0  other         2.0  1.0      0.0
    """

    by: tuple[str, ...]
    total: Comparison
    parts: Mapping[Key, Comparison]
    correction: Correction = "holm"
    n_spanning: int | None = 0

    def __post_init__(self) -> None:
        check_choice("correction", self.correction, CORRECTIONS)
        check_names(self.by, self.total.scored[0].cause)
        if any(ALL in key for key in self.parts):
            raise InputError(f"by: the label {ALL!r} stands for all individuals in the results: rename it")
        object.__setattr__(self, "parts", {key: self.parts[key] for key in sorted(self.parts, key=_in_order)})

    @property
    def segments(self) -> list[Key]:
        """The labels of every segment."""
        return list(self.parts)

    @property
    def _everything(self) -> dict[Key, Comparison]:
        return {(ALL,) * len(self.by): self.total, **self.parts}

    @property
    def counts(self) -> pd.DataFrame:
        """Table: the segmenting columns, n, n_dropped_out, n_events, and whether differences are reliable at some time.

        `n_events` is how many individuals with event are counted under the first weighting at the time at which they
        are most.
        """
        import pandas as pd

        rows = []
        for key, comparison in self._everything.items():
            n_events = int(np.nanmax(comparison.scored[0].support.n_events, initial=0.0))
            reliable = any(bool(scored.support.enough(FEW_FOR_DIFFERENCE).any()) for scored in comparison.scored)
            rows.append((*key, comparison.n, comparison.n_dropped_out, n_events, reliable))
        return pd.DataFrame(rows, columns=[*self.by, "n", "n_dropped_out", "n_events", "reliable"])

    def against(self, reference: str) -> SegmentedComparison:
        """Return the same with another model as reference; nothing is computed anew."""
        parts = {key: part.against(reference) for key, part in self.parts.items()}
        return replace(self, total=self.total.against(reference), parts=parts)

    def corrected(self, correction: Correction) -> SegmentedComparison:
        """Return the same with p-values that allow for the number of segments in another way."""
        return replace(self, correction=correction)

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> IntegratedSegments:
        """Return the same for the scores' mean over a range of time; see `Comparison.integrated`.

        The range is that of the total, for all segments alike, so that they can be compared. A segment without score at
        some time within the range has no mean, and the column reason says why; the others have theirs.
        """
        return IntegratedSegments(self, self.total.means_over(lower, upper, nan=nan))

    def plot(
        self,
        ax: Any = None,
        *,
        metric: str | None = None,
        weighting: str | None = None,
        model: str | None = None,
        time: float | None = None,
        most: int = 50,
        width: float | None = None,
    ) -> SegmentsDisplay:
        """Draw a forest plot: every segment's difference to the reference with its interval, and that of the total.

        Parameters
        ----------
        metric, weighting, model : str, optional
            Of what; by default of the first, of the first model that is not the reference.
        time : float, optional
            At which of the times; by default the mean over all times, up to the first without score.
        most : int
            How many segments to draw; of more, those with the largest differences, and a note says so.
        ax, width
            As for `ScoreCurve.plot`; a new figure is as high as it takes.

        Returns
        -------
        SegmentsDisplay
        """
        if time is None and self.total.times.size > 1:
            means = self.integrated(nan="stop")
            return means.plot(ax, metric=metric, weighting=weighting, model=model, most=most, width=width)
        place = 0 if time is None else self.total.place(time)
        wanted, table = float(self.total.times[place]), self.contrasts
        display = self._display(table[table["time"] == wanted], metric, weighting, model)
        return replace(display, over=f"at time {wanted:g}").plot(ax=ax, most=most, width=width)

    def _display(self, table: Any, metric: str | None, weighting: str | None, model: str | None) -> SegmentsDisplay:
        """Return a forest plot of one metric, weighting and model."""
        from survscore.plots import SegmentsDisplay

        total = self.total
        metric = total.checked_metric(metric)
        weighting = total.weightings[0] if weighting is None else weighting
        others = [name for name in total.models if name != total.reference]
        if not others:
            raise InputError("there is one model, and nothing to compare it with")
        model = others[0] if model is None else model
        check_choice("weighting", weighting, tuple(total.weightings))
        check_choice("model", model, tuple(others))
        rows = (table["metric"] == metric) & (table["weighting"] == weighting) & (table["model"] == model)
        counts = self.counts[[*self.by, "n", "n_events"]]
        contrasts = table[rows].merge(counts, on=list(self.by)).reset_index(drop=True)
        return SegmentsDisplay(total, contrasts, self.by, metric, weighting, model)

    def _table(self) -> LongTable:
        return LongTable(self._everything, self.by, correction=self.correction, n_spanning=self.n_spanning)

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name in self.by)
        few = int((~self.counts["reliable"].iloc[1:]).sum())
        too_small = f", {few} too small for intervals of differences" if few else ""
        return f"SegmentedComparison({plural(len(self.parts), 'segment')} by {names}{too_small}; {self.total!r})"

    def _printed(self) -> Tables:
        try:
            return self.integrated(nan="stop")._printed()
        except InputError:  # at one time alone, or without score at the first
            return self.total._printed()


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedSegments(_SegmentTables, IntegratedComparison):
    """Mean scores over a range of time within segments, and their paired differences; see `IntegratedComparison`."""

    compared: SegmentedComparison  # type: ignore[assignment]

    def plot(
        self,
        ax: Any = None,
        *,
        metric: str | None = None,
        weighting: str | None = None,
        model: str | None = None,
        most: int = 50,
        width: float | None = None,
    ) -> SegmentsDisplay:
        """Draw a forest plot; see `SegmentedComparison.plot`."""
        display = self.compared._display(self.contrasts, metric, weighting, model)
        first, last = self.over[display.metric][1]
        return replace(display, over=f"mean over {first:g} to {last:g}").plot(ax=ax, most=most, width=width)

    def _printed(self) -> Tables:
        return printing.of_segments(self._table())

    def _entries(self, unit: str | None) -> tuple[list[MatrixEntry], Sequence[str]]:
        return PrintedAsTables._entries(self, unit)  # raises: that layout has no rows for segments


def check_names(by: tuple[str, ...], cause: str = "") -> None:
    """Raise unless these can be columns beside those of the tables; scores of a cause have a column for it."""
    if not by:
        raise InputError("by is empty: name at least one column")
    repeated = sorted({name for name in by if by.count(name) > 1})
    if repeated:
        raise InputError(f"by must name different columns; repeated: {', '.join(map(repr, repeated))}")
    taken = [name for name in by if name in (*TAKEN.split(), *cause_column(cause))]
    if taken:
        raise InputError(f"by must not be called {taken[0]!r}, which is a column of the results: rename it")


def _in_order(key: Key) -> list[tuple[bool, float, str]]:
    """Return what to sort labels by: numbers by their value, before texts."""
    sort_keys = []
    for label in key:
        try:
            number = float(label)
        except ValueError:
            number = np.inf
        sort_keys.append((not np.isfinite(number), number if np.isfinite(number) else 0.0, label))
    return sort_keys
