"""What a score returns: frozen, knows its settings, turns into a table, draws itself. Numbers, never the data."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.units import Unit
from survscore._validation import InputError, plural
from survscore.engine.averaging import WhereNaN, averaging_weights
from survscore.engine.evaluation import Evaluation, Scored
from survscore.inference.intervals import Interval, score_interval
from survscore.metrics import Direction, metric_label
from survscore.results.rounding import DOUBT, Number, decimals, rounded, typical_decimals
from survscore.results.tables import Cell, Part, PrintedAsTables, Tables, spread_over

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import ScoreCurveDisplay

MOST_ROWS = 10  # of a curve, in print


@dataclass(frozen=True, eq=False)
class Bounds:
    """Where a score can lie at all, whatever happened to those who dropped out; no assumption is made about them.

    The score of all with C* >= t, had nobody been lost, lies between `lower` and `upper`.

    Attributes
    ----------
    lower, upper : ndarray of shape (m,)
        At each evaluation time.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurve(PrintedAsTables):
    """A score at every evaluation time; prints as a table.

    Attributes
    ----------
    times, scores : ndarray of shape (m,)
        The evaluation times and the scores there; NaN where the data or the predictions say nothing.
    se, lower, upper : ndarray of shape (m,)
        Standard errors and confidence intervals, for each time by itself; NaN where errors were not asked for.
        Intervals are made on the logarithmic scale, those of AUC on the logit scale, with Student's quantiles.
    reliable : ndarray of shape (m,)
        Whether there are enough individuals of each status, and enough groups, for the interval to hold what it says.
    n_effective : ndarray of shape (m,)
        Kish's effective number of individuals, (sum w)^2 / sum w^2: how many equally weighted ones
        the weights are worth. Under ``administrative`` without drop-outs it is the number with C* >= t.
    weight_sums, n_counted, n_events, n_event_free : ndarray of shape (m,)
        The sum of the weights; for how many the score speaks; how many are counted with either status.
    n_groups, largest_share : ndarray of shape (m,) or None
        How many groups are counted, and the share of the individuals that the largest holds; None without groups.
    n : int
        The number of individuals given.
    n_dropped_out : int or None
        How many of them dropped out; None where that is unknown.
    metric, weighting : str
        What was computed, in words.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    default_times : bool
        Whether the library chose the times.
    level : float
        Of the confidence intervals.
    bounds : Bounds or None
        Whatever happened to those who dropped out, the score lies within; None where nobody did.
    undefined : dict
        Why scores are NaN, and for how many times.
    settings : dict
        The same in a form for machines, with the version of the library.
    """

    times: NDArray[np.float64]
    scores: NDArray[np.float64]
    se: NDArray[np.float64]
    n_effective: NDArray[np.float64]
    weight_sums: NDArray[np.float64]
    n_counted: NDArray[np.float64]
    n_events: NDArray[np.float64]
    n_event_free: NDArray[np.float64]
    n: int
    n_dropped_out: int | None
    metric: str
    weighting: str
    direction: Direction = "lower"
    default_times: bool = False
    level: float = 0.95
    bounds: Bounds | None = None
    undefined: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    n_groups: NDArray[np.float64] | None = None
    largest_share: NDArray[np.float64] | None = None
    _scored: Scored | None = None

    @classmethod
    def of(cls, evaluation: Evaluation, scored: Scored, *, default_times: bool) -> Self:
        """Take the only model of an evaluation, under one of its weightings."""
        y, m = evaluation.index.outcomes, evaluation.times.size

        def padded(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.concatenate((values, np.full(m - values.size, np.nan)))

        se = np.full(scored.scores.shape[1], np.nan)
        if scored.moments is not None:
            se = np.where(np.isnan(scored.scores[0]), np.nan, np.sqrt(scored.moments.variance(0, 0)))
        bounds = None
        if scored.bounds is not None:
            bounds = Bounds(*(padded(values) for values in scored.bounds.at_times(0, 0)))
        support = scored.support
        return cls(
            times=evaluation.times,
            scores=padded(scored.scores[0]),
            se=padded(se),
            n_effective=padded(support.n_effective),
            weight_sums=padded(scored.weight_sums),
            n_counted=padded(support.n_counted),
            n_events=padded(support.n_events),
            n_event_free=padded(support.n_event_free),
            n_groups=padded(support.units.counted) if support.grouped else None,
            largest_share=padded(support.units.largest_share) if support.grouped else None,
            n=len(y),
            n_dropped_out=y.n_dropped_out,
            metric=scored.metric,
            weighting=scored.weighting,
            direction=scored.direction,
            default_times=default_times,
            level=evaluation.level,
            bounds=bounds,
            undefined=scored.undefined,
            settings=scored.settings,
            _scored=scored,
        )

    @cached_property
    def _interval(self) -> Interval:
        if self._scored is None:
            nothing = np.full(self.scores.shape, np.nan)
            return Interval(nothing, nothing, np.zeros(self.scores.shape, dtype=np.bool_))
        m = self._scored.scores.shape[1]
        moments = self._scored.moments
        found = score_interval(
            self.scores[:m], self.se[:m], self.level, self._scored.scale, self._scored.support,
            0.0 if moments is None else moments.added_share(0, 0),
        )  # fmt: skip
        missing = self.scores.size - m
        return Interval(
            np.append(found.lower, np.full(missing, np.nan)),
            np.append(found.upper, np.full(missing, np.nan)),
            np.append(found.reliable, np.zeros(missing, dtype=np.bool_)),
        )

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower limits of the confidence intervals, at `level`, for each time by itself."""
        return self._interval.lower

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper limits."""
        return self._interval.upper

    @property
    def reliable(self) -> NDArray[np.bool_]:
        """Whether enough is there for the intervals to hold what they say."""
        return self._interval.reliable

    def to_frame(self) -> pd.DataFrame:
        """Return a long pandas table: metric, weighting, time, score, se, lower, upper, reliable, n_counted, and so on.

        Where somebody dropped out, also bound_lower and bound_upper; with groups, n_groups and largest_share.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 3], [1, 0], [4, 3])
        >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.8]], times=[2, 3])
        >>> table = ss.brier_score(y, curves, weighting="administrative", times=[2, 3]).to_frame().round(3)
        >>> table[["time", "score", "se", "reliable", "n_events", "n_counted"]]
           time  score    se  reliable  n_events  n_counted
        0   2.0   0.13  0.12     False       1.0        2.0
        1   3.0   0.04  0.00     False       1.0        2.0
        """
        import pandas as pd

        columns: dict[str, Any] = {
            "metric": self.metric,
            "weighting": self.weighting,
            "time": self.times,
            "score": self.scores,
            "se": self.se,
            "lower": self.lower,
            "upper": self.upper,
            "reliable": self.reliable,
            "n_counted": self.n_counted,
            "n_events": self.n_events,
            "n_effective": self.n_effective,
        }
        if self.n_groups is not None:
            columns |= {"n_groups": self.n_groups, "largest_share": self.largest_share}
        if self.bounds is not None:
            columns |= {"bound_lower": self.bounds.lower, "bound_upper": self.bounds.upper}
        return pd.DataFrame(columns)

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> IntegratedScore:
        r"""Return the mean score over a range of time, :math:`\frac{1}{b - a}\int_a^b s(t)\,dt`.

        The curve is taken as linear between the evaluation times, for which the trapezoid rule is exact, also
        for limits between them.

        Parameters
        ----------
        lower, upper : float, optional
            The range, within the evaluation times; by default the whole of them. For large data, ranges other than the
            whole must be named when scoring (``ranges=``), or they have no standard error.
        nan : {"raise", "stop"}, default "raise"
            What to do where the range holds times without score: refuse, or stop at the last
            time before the first of them.

        Returns
        -------
        IntegratedScore

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 3], [1, 0], [4, 3])
        >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.8]], times=[2, 3])
        >>> ss.brier_score(y, curves, weighting="administrative", times=[2, 3]).integrated(2, 3)
        IntegratedScore(0.085, se 0.060, brier, administrative, mean over [2, 3], lower is better)
        """
        weights, (lower, upper) = averaging_weights(self.times, self.scores, lower, upper, nan, self.undefined)
        counted = weights > 0
        value = float(weights[counted] @ self.scores[counted])
        se, bounds, interval = math.nan, None, (math.nan, math.nan, False)
        scored = self._scored
        if scored is not None:
            used = weights[: scored.scores.shape[1]]
            added_share = 0.0
            if scored.moments is not None:
                se = math.sqrt(scored.moments.of_average(used, 0, 0))
                added_share = scored.moments.added_share_of_average(used, 0, 0)
            if scored.bounds is not None:
                bounds = scored.bounds.of_average(used, 0, 0)
            found = score_interval(
                np.array([value]), np.array([se]), self.level, scored.scale, scored.support.mean(used), added_share
            )
            interval = (float(found.lower[0]), float(found.upper[0]), bool(found.reliable[0]))
        return IntegratedScore(
            value, se, *interval, (lower, upper), self.metric, self.weighting, self.direction, self.level, bounds,
            dict(self.settings),
        )  # fmt: skip

    def plot(
        self,
        ax: Any = None,
        *,
        band: bool = True,
        counts: bool | None = None,
        unit: Unit | str | None = None,
        width: float | None = None,
        **line: Any,
    ) -> ScoreCurveDisplay:
        """Draw the curve with matplotlib (extra ``report``).

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        band : bool, default True
            Whether to shade the confidence intervals.
        counts : bool, optional
            Whether to write below the axis how many are counted, and how many of them have the event; by default in a
            new figure.
        unit : str, optional
            What times are counted in, for the label of the axis: "month".
        width : float, optional
            Of a new figure, in inches: 3.4 is a column of a journal, 7 its page, as by default.
        **line
            Passed on to `matplotlib.axes.Axes.plot`, for example ``label="my model"``, which stands at the end of the
            line.

        Returns
        -------
        ScoreCurveDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import ScoreCurveDisplay

        return ScoreCurveDisplay(self).plot(ax=ax, band=band, counts=counts, unit=unit, width=width, **line)

    def _printed(self) -> Tables:
        defined = np.flatnonzero(~np.isnan(self.scores))
        chosen = spread_over(defined, MOST_ROWS)
        places = typical_decimals(self.se[chosen])
        limits = zip(self.scores, self.lower, self.upper, self.reliable, strict=True)
        numbers = [
            Number.of(value, lower, upper, decimals=places, reliable=bool(reliable) or math.isnan(lower))
            for value, lower, upper, reliable in limits
        ]
        rows: list[tuple[Cell, ...]] = [
            (f"{self.times[j]:g}", numbers[j], f"{self.n_counted[j]:,.0f}", f"{self.n_events[j]:,.0f}") for j in chosen
        ]
        better = f"{metric_label(self.metric)} ({self.direction} is better)"
        lost = f", {self.n_dropped_out} dropped out" if self.n_dropped_out else ""
        known = "" if np.isnan(self.lower).all() else f"; {100 * self.level:g} % intervals"
        caption = f"{better}; {self.weighting}; {plural(self.n, 'individual')}{lost}{known}"
        header = ("time", "score", "counted", "with event")
        return Tables(caption, [Part("", header, rows, self._notes(len(chosen), numbers), "rrrr")])

    def _notes(self, n_shown: int, numbers: list[Number]) -> tuple[str, ...]:
        notes = []
        defined = ~np.isnan(self.scores)
        if defined.sum() > 1:
            with suppress(InputError):  # where the first time has no score
                notes.append(self.integrated(nan="stop")._told())
        if n_shown < defined.sum():
            notes.append(f"{n_shown} of {plural(self.times.size, 'time')}; to_frame() has all")
        if not defined.all():
            notes.append(f"no score at {plural(int((~defined).sum()), 'time')}: {'; '.join(self.undefined)}")
        if any(number.doubtful for number in numbers):
            notes.append(f"{DOUBT.strip()} rests on too few for its interval to hold what it says")
        return tuple(notes)

    def __repr__(self) -> str:
        defined = ~np.isnan(self.scores)
        chosen = " (default)" if self.default_times else ""
        parts = [
            self.metric,
            self.weighting,
            f"{plural(self.times.size, 'time')} from {self.times[0]:g} to {self.times[-1]:g}{chosen}",
            f"n={self.n}",
        ]
        if self.n_dropped_out:
            parts.append(f"{self.n_dropped_out} of {self.n} dropped out")
        if defined.any():
            effective, scores = self.n_effective[defined], self.scores[defined]
            parts.append(f"effective n {effective.max():.6g} to {effective.min():.6g}")
            parts.append(f"score {scores.min():.4g} to {scores.max():.4g}")
        if not defined.all():
            parts.append(f"NaN at {plural(int((~defined).sum()), 'time')}: {'; '.join(self.undefined)}")
        return f"ScoreCurve({', '.join(parts)}, {self.direction} is better)"


@dataclass(frozen=True, repr=False)
class IntegratedScore:
    """A score's mean over a range of time; `float` gives the number.

    Attributes
    ----------
    value, se : float
        The mean, and its standard error from each individual's mean influence.
    lower, upper : float
        The confidence interval.
    reliable : bool
        Whether there is enough for the interval to hold what it says.
    range : tuple of float
        From when to when.
    metric, weighting : str
        What was computed, in words.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    level : float
        Of the confidence interval.
    bounds : tuple of float or None
        Whatever happened to those who dropped out, the mean lies within; None where nobody did.
    """

    value: float
    se: float
    lower: float
    upper: float
    reliable: bool
    range: tuple[float, float]
    metric: str
    weighting: str
    direction: Direction = "lower"
    level: float = 0.95
    bounds: tuple[float, float] | None = None
    settings: dict[str, Any] = field(default_factory=dict, compare=False)

    def __float__(self) -> float:
        return self.value

    def _told(self) -> str:
        places = decimals([self.se], otherwise=4)
        number = Number.of(self.value, self.lower, self.upper, decimals=places)
        lost = (
            ""
            if self.bounds is None
            else "; whatever happened to the lost, within {} and {}".format(
                *(f"{bound:.{places}f}" for bound in self.bounds)
            )
        )
        return f"mean over {self.range[0]:g} to {self.range[1]:g}: {number}{lost}"

    def __repr__(self) -> str:
        lost = "" if self.bounds is None else f", bounds {self.bounds[0]:.4g} to {self.bounds[1]:.4g}"
        return (
            f"IntegratedScore({rounded(self.value, self.se)}, {self.metric}, {self.weighting}, "
            f"mean over [{self.range[0]:g}, {self.range[1]:g}]{lost}, {self.direction} is better)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTerms:
    """The pieces of a score before they are summed: each individual's loss and weight at each time.

    Attributes
    ----------
    times : ndarray of shape (m,)
        Only times at which the score is defined by the predictions' grid.
    losses, weights : ndarray of shape (n, m)
        The loss is that of the last known status; where it is unknown, the weight is 0.
    metric, weighting : str
        What was computed, in words.
    """

    times: NDArray[np.float64]
    losses: NDArray[np.float64]
    weights: NDArray[np.float64]
    metric: str
    weighting: str

    def __repr__(self) -> str:
        n, m = self.losses.shape
        return f"ScoreTerms({self.metric}, {self.weighting}, {plural(n, 'individual')}, {plural(m, 'time')})"
