"""What a score returns: frozen, knows its settings, turns into a table, draws itself. Numbers, never the data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from survscore._utils.dates import Unit
from survscore._validation import InputError, plural
from survscore.engine.averaging import WhereNaN, averaging_weights
from survscore.engine.evaluation import Evaluation, ScoreArrays
from survscore.inference.intervals import LEAST_LOG_DEGREES
from survscore.metrics import Direction, cause_label
from survscore.results.estimates import Columns, Estimates
from survscore.results.long_tables import names_of, padded, parts_table
from survscore.results.printing import caption, interpolation_note, no_score_at
from survscore.results.rounding import Number, decimals, rounded
from survscore.results.tables import Line, Part, PrintedAsTables, Tables, spread_over

if TYPE_CHECKING:
    import pandas as pd

    from survscore.plots import ScoreCurveDisplay

MOST_ROWS = 10  # of a curve, in print
LEGEND = "observed: C* >= t; projected: C* < t"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of the score of all individuals with C* >= t, whatever happened to those who dropped out.

    Attributes
    ----------
    lower, upper : ndarray of shape (m,)
        At each evaluation time.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreCurve(PrintedAsTables):
    r"""A score at every evaluation time; prints as a table.

    Attributes
    ----------
    times, scores : ndarray of shape (m,)
        The evaluation times and the scores there; NaN where the data or the predictions do not reach.
    se, lower, upper : ndarray of shape (m,)
        Standard errors and confidence intervals, for each time by itself; NaN where errors were not asked for.
        Intervals are made on the logarithmic scale, those of AUC on the logit scale, with Student's quantiles; they end
        where values become impossible, as a Brier score above 1, and there is none for fewer than three individuals.
    reliable : ndarray of shape (m,)
        Whether there are enough individuals of each status, and enough groups, for a reliable interval.
    n_effective : ndarray of shape (m,)
        Kish's effective sample size, :math:`(\sum w)^2 / \sum w^2` over those who have a weight at t: how many equally
        weighted ones they are worth, at most ``n_events + n_event_free``. Under ``administrative`` without drop-outs it
        is the number with C* >= t. Under IPCW those with an earlier event count as well, also if their C* is before t.
        Under ``projected`` all weights are one, and it is the number of individuals, while the status of ``n_events +
        n_event_free`` was observed. Sample weights are factors of all of these. It is about weights alone: with groups,
        see `n_groups`. For concordance, CRPS and logarithmic score, whose weights change along the follow-up, it is the
        number with known status.
    weight_sums, n_counted, n_events, n_event_free : ndarray of shape (m,)
        The sum of the weights; how many individuals the score refers to, lost or not; how many have a weight, with
        either status.
    n_groups, largest_share : ndarray of shape (m,) or None
        How many groups are counted, and the share of the individuals that the largest holds; None without groups.
    n : int
        The number of individuals given.
    n_dropped_out : int or None
        How many of them dropped out; None where that is unknown.
    default_times : bool
        Whether the library chose the times.
    level : float
        Level of the confidence intervals.
    bounds : Bounds or None
        Whatever happened to those who dropped out, the score lies within; None without drop-outs.
    scored : ScoreArrays
        Scores with their moments, from which means over time are made.
    """

    times: NDArray[np.float64]
    scores: NDArray[np.float64]
    se: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    reliable: NDArray[np.bool_]
    n_effective: NDArray[np.float64]
    weight_sums: NDArray[np.float64]
    n_counted: NDArray[np.float64]
    n_events: NDArray[np.float64]
    n_event_free: NDArray[np.float64]
    n: int
    n_dropped_out: int | None
    level: float
    default_times: bool
    bounds: Bounds | None
    n_groups: NDArray[np.float64] | None
    largest_share: NDArray[np.float64] | None
    scored: ScoreArrays

    @classmethod
    def of(cls, evaluation: Evaluation, scored: ScoreArrays, *, default_times: bool) -> Self:
        """Take the only model of an evaluation, under one of its weightings."""
        y, m = evaluation.index.outcomes, evaluation.times.size
        estimates = Estimates(scored, evaluation.level)
        columns: Columns = {**estimates.score(0), **estimates.counts(), **estimates.bounds(0, 0, where_undefined=True)}
        columns |= {"weight_sums": scored.weight_sums, "n_event_free": scored.support.n_event_free}
        by_time: Columns = {name: padded(values, m) for name, values in columns.items()}
        bounds = None if scored.bounds is None else Bounds(by_time.pop("bound_lower"), by_time.pop("bound_upper"))
        return cls(
            times=evaluation.times,
            scores=by_time.pop("estimate"),
            n=y.n_individuals,
            n_dropped_out=y.n_dropped_out,
            level=evaluation.level,
            default_times=default_times,
            bounds=bounds,
            scored=scored,
            **{"n_groups": None, "largest_share": None, **by_time},
        )

    @property
    def metric(self) -> str:
        """What was computed, in words."""
        return self.scored.metric

    @property
    def weighting(self) -> str:
        """Under which weighting, in words."""
        return self.scored.weighting

    @property
    def direction(self) -> Direction:
        """Which values are better."""
        return self.scored.direction

    @property
    def undefined(self) -> dict[str, int]:
        """Why scores are NaN, and for how many times."""
        return self.scored.undefined

    @property
    def settings(self) -> dict[str, Any]:
        """What was computed and how, in a form for machines, with the version of the library."""
        return self.scored.settings

    @property
    def _n_observed(self) -> NDArray[np.float64]:
        """How many have a status that was observed, and not projected."""
        return self.n_events + self.n_event_free

    @property
    def parts(self) -> pd.DataFrame | None:
        r"""Both parts of a score whose statuses are projected: of those who could be followed to t, and of the others.

        .. math:: \mathrm{score} = P(C^* \ge t) \times \mathrm{observed} + P(C^* < t) \times \mathrm{projected}

        Without drop-outs, the observed part is the administrative score. A model that is good for those who could be
        followed, and bad for the others, probably encodes the entry date. Columns: metric, weighting, time, score,
        share_observed, observed, projected; None where nothing is projected.

        Examples
        --------
        >>> import survscore as ss
        >>> sample = ss.simulate.SineConstantAcceleratingStudy().sample(1000, seed=1)
        >>> score = ss.brier_score(sample.outcomes, sample.survival([50]), weighting="projected", times=[50])
        >>> score.parts.drop(columns=["metric", "weighting"]).round(4)
           time   score  share_observed  observed  projected
        0  50.0  0.1098           0.463    0.1097       0.11
        """
        return parts_table((), self.times, (self.scored,))

    def to_frame(self) -> pd.DataFrame:
        """Return a long pandas table: metric, weighting, time, score, se, lower, upper, reliable, n_counted, and so on.

        Where individuals dropped out, also bound_lower and bound_upper; with groups, n_groups and largest_share; under
        competing risks, after the metric, the cause.

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

        columns: Columns = {**names_of(self.scored), "time": self.times, "score": self.scores}
        numbers = "se lower upper reliable n_counted n_events n_effective n_groups largest_share"
        columns |= {name: getattr(self, name) for name in numbers.split() if getattr(self, name) is not None}
        if self.bounds is not None:
            columns |= {"bound_lower": self.bounds.lower, "bound_upper": self.bounds.upper}
        return pd.DataFrame(columns)

    def integrated(
        self, lower: float | None = None, upper: float | None = None, *, nan: WhereNaN = "raise"
    ) -> IntegratedScore:
        r"""Return the mean score over a range of time, :math:`\frac{1}{b - a}\int_a^b s(t)\,dt`.

        The curve is taken as linear between the evaluation times: the trapezoid rule is exact, also for limits between.

        Parameters
        ----------
        lower, upper : float, optional
            The range, within the evaluation times; by default the whole of them. Ranges other than the whole have a
            standard error only if they were named when scoring (``ranges=``).
        nan : {"raise", "stop"}, default "raise"
            What to do where the range holds times without score: refuse, or stop before the first of them.

        Examples
        --------
        >>> import survscore as ss
        >>> y = ss.Outcomes([1, 3], [1, 0], [4, 3])
        >>> curves = ss.SurvivalCurves([[0.5, 0.2], [0.9, 0.8]], times=[2, 3])
        >>> ss.brier_score(y, curves, weighting="administrative", times=[2, 3]).integrated(2, 3)
        IntegratedScore(0.085, se 0.060, brier, administrative, mean over [2, 3], lower is better)
        """
        weights, used_range = averaging_weights(self.times, self.scores, lower, upper, nan, self.undefined)
        estimates = Estimates(self.scored, self.level, weights)
        integrated = {
            name: values[0].item() for name, values in {**estimates.score(0), **estimates.bounds(0, 0)}.items()
        }
        bounds = (integrated.pop("bound_lower"), integrated.pop("bound_upper")) if "bound_lower" in integrated else None
        return IntegratedScore(
            value=integrated.pop("estimate"),
            **integrated,
            range=used_range,
            metric=self.metric,
            weighting=self.weighting,
            direction=self.direction,
            level=self.level,
            bounds=bounds,
            parts=self._parts_of_mean(weights),
            reason=estimates.without_error,
            settings=dict(self.settings),
        )

    def _parts_of_mean(self, weights: NDArray[np.float64]) -> tuple[float, float, float] | None:
        parts = self.scored.parts
        if parts is None:
            return None
        weights = weights[: parts.share.size]
        observed, projected = parts.mean(parts.scores, weights)[0]
        return float(parts.share @ weights), float(observed), float(projected)

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
            Whether to write below the axis how many are counted, and how many with event; by default in a new figure.
        unit : str, optional
            What times are counted in, for the label of the axis: "month".
        width : float, optional
            Of a new figure, in inches: 3.4 is a column of a journal, 7 its page, as by default.
        **line
            Passed on to `matplotlib.axes.Axes.plot`: ``label="my model"`` stands at the end of the line.

        Returns
        -------
        ScoreCurveDisplay
            With the axes in ``ax_``, the figure in ``figure_``, and ``save("figure.pdf")``.
        """
        from survscore.plots import ScoreCurveDisplay

        return ScoreCurveDisplay(self).plot(ax=ax, band=band, counts=counts, unit=unit, width=width, **line)

    def _printed(self) -> Tables:
        defined = ~np.isnan(self.scores)
        chosen = spread_over(np.flatnonzero(defined), MOST_ROWS)
        beside, note, numbers, parts = "", "", self.n_effective, self.scored.parts
        weighted = self.scored.support.weighted
        if self.scored.support.projected and not weighted:
            if parts is None:
                beside, note, numbers = "observed", "observed: number of individuals whose status is", self._n_observed
        elif weighted or bool((self.n_effective[chosen] < self.n_counted[chosen] - 0.5).any()):
            beside, note = "effective n", "effective n: Kish's effective sample size of the weights"
        lines = list[Line]()
        for j in chosen:
            value, se, lower, upper = (float(column[j]) for column in (self.scores, self.se, self.lower, self.upper))
            number = Number(value, lower, upper, se=se, reliable=bool(self.reliable[j]))
            counts: tuple[str, ...] = (f"{self.n_counted[j]:,.0f}", f"{self.n_events[j]:,.0f}")
            if beside:
                counts += (f"{numbers[j]:,.0f}",)
            if parts is not None:
                scores = "" if np.isnan(parts.projected[0, j]) else f"{parts.projected[0, j]:.4f}"
                counts += (f"{parts.observed[0, j]:.4f}", scores, f"{parts.share[j]:.0%}")
            lines.append(Line((f"{self.times[j]:g}",), (number,), counts))
        notes = []
        if defined.sum() > 1:
            with suppress(InputError):  # where the first time has no score
                notes.append(self.integrated(nan="stop")._sentence())
        if len(chosen) < defined.sum():
            notes.append(f"{len(chosen)} of {plural(self.times.size, 'time')}; to_frame() has all")
        if parts is not None:
            notes.append(f"{LEGEND}; share: proportion with C* >= t")
        notes += interpolation_note(self.settings["curves"])
        notes += no_score_at(int((~defined).sum()), self.undefined)
        degrees = padded(self.scored.support.score_degrees, self.times.size)
        few = np.isnan(self.lower) & ~np.isnan(self.se) & (degrees < LEAST_LOG_DEGREES)
        if few.any():
            units = "individuals" if self.n_groups is None else "groups"
            notes.append(f"no interval at {plural(int(few.sum()), 'time')}: too few {units} for one")
        about = f"{self.scored.title}; "
        level = None if np.isnan(self.lower).all() else self.level
        about += caption(self.n, self.n_dropped_out, level, settings=self.settings)
        header = ("time", "score", "counted", "with event", *filter(None, [beside]))
        header += () if parts is None else ("observed", "projected", "share")
        notes += filter(None, [note])
        return Tables(about, [Part.of("", header, lines, notes, "r" * len(header))])

    def __repr__(self) -> str:
        defined = ~np.isnan(self.scores)
        chosen = " (default)" if self.default_times else ""
        times = f"{plural(self.times.size, 'time')} from {self.times[0]:g} to {self.times[-1]:g}{chosen}"
        parts = [cause_label(self.metric, self.scored.cause), self.weighting, times, f"n={self.n}"]
        if self.n_dropped_out:
            parts.append(f"{self.n_dropped_out} of {self.n} dropped out")
        if defined.any():
            projected, scores = self.scored.support.projected, self.scores[defined]
            sizes = (self._n_observed if projected else self.n_effective)[defined]
            what = "status observed of" if projected else "effective sample size"
            parts.append(f"{what} {sizes.max():.6g} to {sizes.min():.6g}")
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
        Whether there is enough for a reliable interval.
    range : tuple of float
        From when to when.
    metric, weighting : str
        What was computed, in words.
    direction : {"lower", "higher", "closer to 1", "closer to 0"}
        Which values are better.
    level : float
        Of the confidence interval.
    bounds : tuple of float or None
        Whatever happened to those who dropped out, the mean lies within; None without drop-outs.
    parts : tuple of float or None
        Where statuses are projected, the mean proportion with C* >= t, their score, and that of the others.
    reason : str
        What the mean lacks for a standard error, where the scores have one; empty otherwise.
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
    parts: tuple[float, float, float] | None = None
    reason: str = ""
    settings: dict[str, Any] = field(default_factory=dict, compare=False)

    def __float__(self) -> float:
        return self.value

    def _sentence(self) -> str:
        places = decimals([self.se], otherwise=4)
        number = Number(self.value, self.lower, self.upper, decimals=places)
        lost = ""
        if self.bounds is not None:
            lower, upper = (f"{bound:.{places}f}" for bound in self.bounds)
            lost = f"; whatever happened to those who dropped out, within {lower} and {upper}"
        missing = f" (no standard error: {self.reason})" if self.reason else ""
        return f"mean over {self.range[0]:g} to {self.range[1]:g}: {number}{missing}{lost}"

    def __repr__(self) -> str:
        lost = "" if self.bounds is None else f", bounds {self.bounds[0]:.4g} to {self.bounds[1]:.4g}"
        missing = f" ({self.reason})" if self.reason else ""
        metric = cause_label(self.metric, str(self.settings.get("cause", "")))
        return (
            f"IntegratedScore({rounded(self.value, self.se)}{missing}, {metric}, {self.weighting}, "
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
