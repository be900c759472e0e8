"""Scores by segment: the same comparison for everybody together, and within every country, plan or age group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from survscore._validation import InputError, check_choice, plural, shown
from survscore.engine.averaging import WhereNaN
from survscore.inference.multiplicity import CORRECTIONS, Correction
from survscore.inference.support import FEW_FOR_DIFFERENCE
from survscore.results.comparison import Comparison, MeanOver, has_skill
from survscore.results.comparison_tables import of_segments
from survscore.results.heterogeneity import Quantity, between, heterogeneity
from survscore.results.segment_labels import ALL, Key, check_names, check_part, in_order
from survscore.results.segment_tables import ByTime, Means, SegmentTables
from survscore.results.tables import PrintedAsTables, Tables

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import SegmentsDisplay


@dataclass(frozen=True, eq=False, repr=False)
class SegmentedComparison(PrintedAsTables):
    r"""A comparison of models within segments, and of everybody together. Numbers only.

    Every part is what `compare` gives for its individuals alone, at the times of the total. Tables have the segmenting
    columns first; there, the rows of the total come first, and have "(all)".

    One rule says what has an interval: in a segment, limits and p-values are given where they are `reliable`, that is
    for scores from two individuals of either status on, for differences, skill and AUC from 20 of the rarer status on,
    and with at least four degrees of freedom. Elsewhere they are NaN, and the verdict is "too few".

    Parameters
    ----------
    by : tuple of str
        Names of the segmenting columns.
    total : Comparison
        Of everybody.
    parts : mapping of tuple of str to Comparison
        Of every segment, by its labels, one for each of `by`. All have the models, metrics, weightings and times of the
        total, in the same order. They are kept in the order of their labels, numbers by their value.
    correction : {"holm", "benjamini-hochberg", "none"}, default "holm"
        How ``p_adjusted`` allows for the number of segments: over all segments with a p-value, for each metric,
        weighting, model and time by itself. Verdicts of segments go by it; limits are each segment's own. See
        `survscore.inference.multiplicity.adjusted`.
    n_spanning : int or None, default 0
        How many groups have individuals in several segments, where `groups` were given: segments then depend on each
        other, and are not compared with each other. None: that is not known.

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
    ...     y, models, weighting="administrative", times=times, null=False, by={"country": country}
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
        by = tuple(str(name) for name in self.by)
        check_names(by)
        if not self.parts:
            raise InputError("parts is empty: there is no segment")
        for key, part in self.parts.items():
            check_part(by, self.total, key, part)
        ordered = {key: self.parts[key] for key in sorted(self.parts, key=in_order)}
        object.__setattr__(self, "by", by)
        object.__setattr__(self, "parts", ordered)

    # What it is

    @property
    def segments(self) -> list[Key]:
        """The labels of every segment."""
        return list(self.parts)

    @property
    def counts(self) -> pd.DataFrame:
        """Table: the segmenting columns, n, n_dropped_out, n_events, and whether differences are reliable at some time.

        `n_events` is how many individuals with event are counted under the first weighting at the time at which they
        are most.
        """
        import pandas as pd

        rows = []
        for key, one in {self._all: self.total, **self.parts}.items():
            reliable = any(bool(scored.support.enough(FEW_FOR_DIFFERENCE).any()) for scored in one.scored)
            row: dict[str, Any] = dict(zip(self.by, key, strict=True))
            row |= {"n": one.n, "n_dropped_out": one.n_dropped_out, "n_events": _most_events(one)}
            rows.append({**row, "reliable": reliable})
        return pd.DataFrame(rows)

    @property
    def undefined(self) -> pd.DataFrame:
        """Table of why scores are NaN: the segmenting columns, metric, weighting, reason, and at how many times."""
        import pandas as pd

        rows = [
            {**dict(zip(self.by, key, strict=True)), "metric": one.metric, "weighting": of_total.weighting,
             "reason": reason, "times": count}
            for key, part in {self._all: self.total, **self.parts}.items()
            for one, of_total in zip(part.scored, self.total.scored, strict=True)
            for reason, count in one.undefined.items()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=[*self.by, "metric", "weighting", "reason", "times"])

    def against(self, reference: str) -> SegmentedComparison:
        """Return the same with another model as reference; nothing is computed anew."""
        parts = {key: part.against(reference) for key, part in self.parts.items()}
        return replace(self, total=self.total.against(reference), parts=parts)

    def corrected(self, correction: Correction) -> SegmentedComparison:
        """Return the same with p-values that allow for the number of segments in another way."""
        return replace(self, correction=correction)

    # At every time

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: the segmenting columns, and those of `Comparison.scores`."""
        return self._tables().scores()

    @property
    def contrasts(self) -> pd.DataFrame:
        """Long table: the segmenting columns, and those of `Comparison.contrasts`, with p_adjusted."""
        return self._tables().contrasts()

    @property
    def skill(self) -> pd.DataFrame:
        """Long table: the segmenting columns, and those of `Comparison.skill`."""
        return self._tables().skill()

    def to_frame(self) -> pd.DataFrame:
        """Return the contrasts."""
        return self.contrasts

    def between(
        self, *, of: Quantity = "difference", model: str | None = None, against: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return how much segments differ from each other, at every time.

        Segments are disjoint, so variances add. The total, of which a segment is a part, is nothing to compare with:
        all other segments are.

        Parameters
        ----------
        of : {"difference", "score"}
            Of the differences to the reference: is the model's gain larger here? Or of the scores: is it harder to
            predict here?
        model : str, optional
            Of which model; by default of all.
        against : str or sequence of str, optional
            The segment to compare with, by its labels. By default all others: their mean, each weighted by how many it
            counts, of those that have an interval.

        Returns
        -------
        pandas.DataFrame
            The segmenting columns, metric, weighting, model, reference, against, time, estimate, others, difference,
            se, lower, upper, p_value, p_adjusted, verdict: "better" where the model fares better here than there.
            NaN, and "too few", where a segment has fewer than 20 of the rarer status.
        """
        return between(self._tables(independent=True), of, model, self._key(against))

    def heterogeneity(self, *, of: Quantity = "difference", model: str | None = None) -> pd.DataFrame:
        r"""Return whether all segments could be the same, at every time: Cochran's Q.

        :math:`Q = \sum_g (d_g - \bar d)^2 / V_g` over the segments that have an interval, :math:`\bar d` being their
        mean with weights :math:`1 / V_g`. The p-value is Welch's, which allows for the variances being estimated; with
        many individuals it is that of a chi-square with as many degrees of freedom as there are segments, minus one.

        Parameters
        ----------
        of, model
            As for `interpolation`.

        Returns
        -------
        pandas.DataFrame
            metric, weighting, model, reference, time, n_segments, q, df, p_value.
        """
        return heterogeneity(self._tables(independent=True), of, model)

    # Over time

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
        ax : matplotlib axes, optional
            Where to draw; by default a new figure, as high as it takes.
        metric, weighting, model : str, optional
            Of what; by default of the first, of the first model that is not the reference.
        time : float, optional
            At which of the times; by default the mean over all times, up to the first without score.
        most : int
            How many segments to draw; of more, those with the largest differences, and a note says so.
        width : float, optional
            Of a new figure, in inches: 3.4 is a column of a journal, 7 its page, as by default.

        Returns
        -------
        SegmentsDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import SegmentsDisplay

        if time is None and self.total.times.size > 1:
            means = self.integrated(nan="stop")
            return means.plot(ax, metric=metric, weighting=weighting, model=model, most=most, width=width)
        wanted = float(self.total.times[0] if time is None else time)
        if wanted not in self.total.times:
            raise InputError(f"time must be one of the times scored, from {self.total.times[0]:g} to "
                             f"{self.total.times[-1]:g}, not {wanted:g}")  # fmt: skip
        table = self.contrasts
        drawn = _drawn(self, table[table["time"] == wanted], metric, weighting, model)
        return SegmentsDisplay(**drawn, over=f"at time {wanted:g}").plot(ax=ax, most=most, width=width)

    def _tables(self, *, independent: bool = False) -> SegmentTables:
        if independent:
            check_independent(self)
        return SegmentTables(self.by, self.total, self.parts, self.correction, ByTime(self.total.times))

    def _key(self, labels: str | Sequence[str] | None) -> Key | None:
        if labels is None:
            return None
        return (labels,) if isinstance(labels, str) else tuple(str(label) for label in labels)

    @property
    def _all(self) -> Key:
        return (ALL,) * len(self.by)

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name in self.by)
        few = int((~self.counts["reliable"].iloc[1:]).sum())
        told = f", {few} too small for intervals of differences" if few else ""
        return f"SegmentedComparison({plural(len(self.parts), 'segment')} by {names}{told}; {self.total!r})"

    def _printed(self) -> Tables:
        try:
            return of_segments(self.integrated(nan="stop"))
        except InputError:  # at one time alone, or without score at the first
            return self.total._printed()


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedSegments(PrintedAsTables):
    """Mean scores over a range of time within segments, and their paired differences.

    Attributes
    ----------
    segmented : SegmentedComparison
        What they are the means of.
    over : dict
        By metric, the weights of the times, and from when to when.
    """

    segmented: SegmentedComparison
    over: Mapping[str, MeanOver]

    @property
    def level(self) -> float:
        """Of the confidence intervals."""
        return self.segmented.total.level

    @property
    def range(self) -> tuple[float, float]:
        """From when to when, of the first metric."""
        return next(iter(self.over.values()))[1]

    @property
    def scores(self) -> pd.DataFrame:
        """Long table: the segmenting columns, those of `IntegratedComparison.scores`, and why there is none."""
        return self._tables().scores()

    @property
    def contrasts(self) -> pd.DataFrame | None:
        """Long table: those of `IntegratedComparison.contrasts`, p_adjusted and reason; None with one model alone."""
        return self._tables().contrasts() if len(self.segmented.total.models) > 1 else None

    @property
    def skill(self) -> pd.DataFrame | None:
        """Long table: those of `IntegratedComparison.skill`, and reason; None without null model."""
        some = any(has_skill(one) for one in self.segmented.total.scored)
        return self._tables().skill() if self.segmented.total.null is not None and some else None

    def between(
        self, *, of: Quantity = "difference", model: str | None = None, against: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return how much segments differ from each other; see `SegmentedComparison.interpolation`."""
        return between(self._tables(independent=True), of, model, self.segmented._key(against))

    def heterogeneity(self, *, of: Quantity = "difference", model: str | None = None) -> pd.DataFrame:
        """Return whether all segments could be the same; see `SegmentedComparison.heterogeneity`."""
        return heterogeneity(self._tables(independent=True), of, model)

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
        from survscore.plots import SegmentsDisplay

        drawn = _drawn(self.segmented, self.contrasts, metric, weighting, model)
        first, last = self.over[drawn["metric"]][1]
        return SegmentsDisplay(**drawn, over=f"mean over {first:g} to {last:g}").plot(ax=ax, most=most, width=width)

    def _tables(self, *, independent: bool = False) -> SegmentTables:
        return replace(self.segmented._tables(independent=independent), look=Means(self.over))

    def _printed(self) -> Tables:
        return of_segments(self)

    def __repr__(self) -> str:
        return str(self)


def check_independent(segmented: SegmentedComparison) -> None:
    """Raise if segments depend on each other."""
    if segmented.n_spanning is None:
        raise InputError(
            "segments can't be compared with each other: `groups` are in random buckets, so it is not known whether "
            "some have individuals in several segments; write files that hold whole groups"
        )
    if segmented.n_spanning:
        raise InputError(
            f"segments can't be compared with each other: {plural(segmented.n_spanning, 'group')} of `groups` "
            f"{'has' if segmented.n_spanning == 1 else 'have'} individuals in several segments, which therefore depend "
            "on each other; segment by something that is the same for all of a group"
        )


def _most_events(one: Comparison) -> int:
    counted = one.scored[0].support.n_events
    return int(np.nanmax(counted, initial=0.0)) if counted.size else 0


def _drawn(
    segmented: SegmentedComparison,
    table: Any,
    metric: str | None,
    weighting: str | None,
    model: str | None,
) -> dict[str, Any]:
    """Return what a forest plot needs, of one metric, weighting and model."""
    total = segmented.total
    metric = total.metrics[0] if metric is None else metric
    weighting = total.weightings[0] if weighting is None else weighting
    others = [name for name in total.models if name != total.reference]
    if not others:
        raise InputError("there is one model, and nothing to compare it with")
    model = others[0] if model is None else model
    check_choice("metric", metric, tuple(total.metrics))
    check_choice("weighting", weighting, tuple(total.weightings))
    check_choice("model", model, tuple(others))
    rows = (table["metric"] == metric) & (table["weighting"] == weighting) & (table["model"] == model)
    counts = segmented.counts[[*segmented.by, "n", "n_events"]]
    return {
        "contrasts": table[rows].merge(counts, on=list(segmented.by)).reset_index(drop=True),
        "by": segmented.by,
        "metric": metric,
        "weighting": weighting,
        "model": model,
        "reference": total.reference,
        "direction": next(one.direction for one in total.scored if one.metric == metric),
        "level": total.level,
        "models": total.models,
        "null": total.null,
    }
